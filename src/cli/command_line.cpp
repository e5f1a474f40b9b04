#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <optional>

// Nothing else includes CLI11, which takes seconds to compile.

namespace qwench::cli {

Option& Option::value_name(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Option& Option::group(const std::string& name) {
  option_->group(name);
  return *this;
}

// CLI11 alone takes 010 for 8, and -1 for the largest unsigned number.
Option& Option::whole_number(bool negative) {
  const auto check = [negative](std::string& text) -> std::string {
    const size_t sign = negative && text.starts_with('-') ? 1 : 0;
    const bool digits = text.size() > sign && text.find_first_not_of("0123456789", sign) == std::string::npos;
    const bool octal = text.size() > sign + 1 && text[sign] == '0';
    return digits && !octal ? "" : "expected a whole number, found " + text;
  };
  option_->check(CLI::Validator(check, "", "whole_number"));
  return *this;
}

Option& Option::separated_by(char separator) {
  option_->delimiter(separator)->allow_extra_args(false);
  return *this;
}

Option& Option::value_optional() {
  option_->expected(0, 1);
  return *this;
}

Option& Option::repeatable() {
  option_->allow_extra_args(false)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  return *this;
}

Option& Option::show_default() {
  option_->capture_default_str();
  return *this;
}

Option& Option::required() {
  option_->required();
  return *this;
}

bool Option::given() const { return option_->count() > 0; }

CommandLine::CommandLine(const std::string& name, const std::string& description, const std::string& examples)
    : name_(name), app_(std::make_unique<CLI::App>(description, "qwench " + name)) {
  app_->footer("Examples:\n" + examples);
  app_->get_formatter()->column_width(34);
  app_->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
}

CommandLine::~CommandLine() = default;

template <typename T>
Option CommandLine::add_option(const std::string& names, T& value, const std::string& help) {
  return Option(*app_->add_option(names, value, help));
}

template Option CommandLine::add_option(const std::string&, std::string&, const std::string&);
template Option CommandLine::add_option(const std::string&, int&, const std::string&);
template Option CommandLine::add_option(const std::string&, std::optional<int>&, const std::string&);
template Option CommandLine::add_option(const std::string&, std::optional<float>&, const std::string&);
template Option CommandLine::add_option(const std::string&, std::optional<uint64_t>&, const std::string&);
template Option CommandLine::add_option(const std::string&, std::vector<std::string>&, const std::string&);
template Option CommandLine::add_option(const std::string&, std::vector<int>&, const std::string&);

Option CommandLine::add_rest(const std::string& name, std::vector<std::string>& values,
                             const std::string& help) {
  CLI::Option* option = app_->add_option(name, values, help);
  option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  return Option(*option);
}

Option CommandLine::add_flag(const std::string& names, bool& value, const std::string& help) {
  return Option(*app_->add_flag(names, value, help));
}

bool CommandLine::parse(const Arguments& arguments) {
  Arguments reversed(arguments.rbegin(), arguments.rend());
  try {
    app_->parse(std::move(reversed));
    return true;
  } catch (const CLI::CallForHelp&) {
    std::fputs(app_->help().c_str(), stdout);
    return false;
  } catch (const CLI::ParseError& error) {
    throw UsageError(fmt::format("{}; see: qwench {} --help", error.what(), name_));
  }
}

}  // namespace qwench::cli
