#pragma once

#include <string>

#include "qwench/error.h"

namespace qwench {

/// What made a chat template fail.
enum class TemplateErrorKind {
  syntax,           ///< the template text is not valid Jinja
  raise_exception,  ///< the template itself refused the input: `message()` is its sentence
  undefined,        ///< an operation on an undefined value
  security,         ///< the sandbox forbids it
  limit,            ///< a budget (steps, depth, size) ran out
  other,            ///< any other failure while rendering: a wrong type, a missing filter, a division by zero
};

/// A chat template that could not be parsed or rendered. `what()` is "NAME: line L, column C: message".
class TemplateError : public Error {
 public:
  TemplateError(TemplateErrorKind kind, const std::string& name, const std::string& message, int line,
                int column)
      : Error(ErrorKind::template_error, name + ": line " + std::to_string(line) + ", column " +
                                             std::to_string(column) + ": " + message),
        template_kind_(kind),
        message_(message),
        line_(line),
        column_(column) {}

  TemplateErrorKind template_kind() const noexcept { return template_kind_; }
  const std::string& message() const noexcept { return message_; }
  int line() const noexcept { return line_; }      ///< in the template, from 1
  int column() const noexcept { return column_; }  ///< in code points, from 1

 private:
  TemplateErrorKind template_kind_;
  std::string message_;
  int line_;
  int column_;
};

}  // namespace qwench

namespace qwench::jinja {

/// Where a token stands in the template: line and column (in code points), both from 1.
struct Position {
  int line = 1;
  int column = 1;
};

/// Thrown inside the interpreter, where the position is not at hand; the renderer turns it into a
/// TemplateError.
struct Failure {
  TemplateErrorKind kind;
  std::string message;
};

[[noreturn]] inline void fail(TemplateErrorKind kind, std::string message) {
  throw Failure{kind, std::move(message)};
}
[[noreturn]] inline void fail(std::string message) {
  throw Failure{TemplateErrorKind::other, std::move(message)};
}

}  // namespace qwench::jinja
