#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/error.h"

namespace qwench::jinja {

enum class TokenKind : uint8_t {
  data,            ///< template text
  variable_begin,  ///< {{
  variable_end,
  block_begin,  ///< {%
  block_end,
  name,
  string,   ///< text is the unescaped value
  integer,  ///< text is the literal without underscores
  real,
  op,  ///< text is the operator
  end,
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;
  Position position;
};

/// The tokens of a template with trim_blocks and lstrip_blocks, in the way of Jinja 2's lexer: white space
/// control by - and +, raw blocks and comments are resolved here. `source` is valid UTF-8. Throws a
/// TemplateError (syntax).
std::vector<Token> tokenize(const std::string& source, const std::string& name);

}  // namespace qwench::jinja
