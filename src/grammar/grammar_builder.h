#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/code_ranges.h"
#include "grammar/grammar.h"

namespace qwench {

/// Makes a Grammar of expressions. An expression may be used in several places: each use costs its states
/// anew, a call of a rule costs two. Every function throws Error (invalid_argument) where the grammar grows
/// beyond its limits.
class GrammarBuilder {
 public:
  using Expr = int32_t;
  using RuleId = uint32_t;
  static constexpr int kUnbounded = -1;

  static constexpr size_t kMostExpressions = size_t{1} << 20;
  static constexpr size_t kMostNodes = size_t{1} << 19;
  static constexpr size_t kMostEdges = size_t{1} << 21;
  static constexpr size_t kMostRules = size_t{1} << 17;

  /// `what` begins errors: "the JSON schema".
  explicit GrammarBuilder(std::string what) : what_(std::move(what)) {}
  const std::string& what() const { return what_; }
  /// What errors begin with from now on.
  void speak_of(std::string what) { what_ = std::move(what); }

  Expr empty();                          ///< the empty text
  Expr nothing();                        ///< no text at all
  Expr literal(std::string_view bytes);  ///< these bytes
  Expr chars(const CodeRanges& set);     ///< one character, as UTF-8
  Expr byte(uint8_t low, uint8_t high);  ///< one byte of a range
  Expr special(std::string text);        ///< an added token
  Expr sequence(std::vector<Expr> parts);
  Expr either(std::vector<Expr> alternatives);
  /// `most` kUnbounded or at least `least`.
  Expr repeat(Expr part, int least, int most);
  Expr optional(Expr part) { return repeat(part, 0, 1); }

  /// A rule without a definition, so that it can be referred to before it has one.
  RuleId declare(std::string name);
  void define(RuleId rule, Expr body);
  bool defined(RuleId rule) const { return rules_[rule].body >= 0; }
  Expr ref(RuleId rule);
  /// declare, define and ref at once.
  Expr rule(std::string name, Expr body);

  /// Throws Error too for rules without a definition, left recursion, and a root that no finite text belongs
  /// to, or one of `each` that none belongs to, whose name the sentence says.
  std::shared_ptr<const Grammar> build(RuleId root, const std::vector<RuleId>& each = {});

  [[noreturn]] void fail(const std::string& sentence) const;

 private:
  friend class GrammarLowering;

  enum class Kind : uint8_t { empty, nothing, literal, chars, special, sequence, either, repeat, ref };
  struct Expression {
    Kind kind;
    uint16_t depth = 0;
    bool may_be_empty = true;  // conservative: calls may
    int32_t least = 0;
    int32_t most = 0;
    uint32_t what = 0;  // rule, or index of texts_, sets_
    std::vector<Expr> parts{};
  };
  struct NamedRule {
    std::string name;
    Expr body = -1;
  };

  Expr add(Expression expression);

  std::string what_;
  std::vector<Expression> expressions_;
  std::vector<std::string> texts_;
  std::vector<std::vector<ByteSequence>> sets_;
  std::vector<NamedRule> rules_;
};

}  // namespace qwench
