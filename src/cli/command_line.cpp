#include "cli/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>

#include "cli/suggestion.h"

// Nothing else includes CLI11, which takes seconds to compile.

namespace qwench::cli {
namespace {

std::vector<std::string> long_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
  }
  return names;
}

/// "there is no option '--temprature'; did you mean --temperature?"
std::string no_such_option(const CLI::App& app, const std::string& argument) {
  const std::string typed = argument.substr(0, argument.find('='));
  std::string sentence = fmt::format("there is no option '{}'", typed);
  const std::string word = typed.substr(std::min(typed.find_first_not_of('-'), typed.size()));
  if (const auto meant = suggestion(word, long_names(app))) {
    sentence += fmt::format("; did you mean --{}?", *meant);
  }
  return sentence;
}

/// What no option and no positional took, in the order typed: options that do not exist, or words.
std::string about_leftovers(const CLI::App& app, const Arguments& leftovers, bool takes_text) {
  std::string sentence;
  Arguments words;
  bool options_end = false;
  for (const std::string& argument : leftovers) {
    if (argument == "--" && !options_end) {
      options_end = true;
    } else if (!options_end && argument.size() > 1 && argument.starts_with('-')) {
      sentence += (sentence.empty()          ? ""
                   : sentence.ends_with('?') ? " And "
                                             : ", and ") +
                  no_such_option(app, argument);
    } else {
      words.push_back(argument);
    }
  }
  if (!sentence.empty() || words.empty()) return sentence;
  const std::string shown = fmt::format("{}", fmt::join(words, " "));
  return takes_text ? fmt::format("the text is one argument; put it in quotes (left over: {})", shown)
                    : fmt::format("more arguments than this command takes: {}", shown);
}

/// A long option with one dash, which is read as letters: -temp is -t with the value emp.
std::string one_dash(const CLI::App& app, const Arguments& arguments) {
  const std::vector<std::string> names = long_names(app);
  for (const std::string& argument : arguments) {
    if (argument.size() < 3 || argument[0] != '-' || argument[1] == '-') continue;
    const std::string word = argument.substr(1, argument.find('=') - 1);
    if (std::find(names.begin(), names.end(), word) != names.end()) return word;
  }
  return "";
}

}  // namespace

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
    if (digits && !octal) return "";
    return fmt::format("expected a whole number{}, found {}", negative ? "" : " from 0", text);
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
  app_->allow_extras();  // parse() says more about them than CLI11 does
}

CommandLine::~CommandLine() = default;

template <typename T>
Option CommandLine::add_option(const std::string& names, T& value, const std::string& help) {
  return Option(*app_->add_option(names, value, help));
}

template Option CommandLine::add_option(const std::string&, std::string&, const std::string&);
template Option CommandLine::add_option(const std::string&, int&, const std::string&);
template Option CommandLine::add_option(const std::string&, std::optional<int>&, const std::string&);
template Option CommandLine::add_option(const std::string&, std::optional<std::string>&, const std::string&);
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

void CommandLine::takes_text() { takes_text_ = true; }

bool CommandLine::parse(const Arguments& arguments) {
  Arguments reversed(arguments.rbegin(), arguments.rend());
  const auto fail = [&](std::string sentence) {
    sentence += sentence.ends_with('?') ? " See" : "; see";
    throw UsageError(fmt::format("{}: qwench {} --help", sentence, name_));
  };
  try {
    app_->parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    std::fputs(app_->help().c_str(), stdout);
    return false;
  } catch (const CLI::ParseError& error) {
    const std::string word = one_dash(*app_, arguments);
    fail(word.empty() ? error.what()
                      : fmt::format("there is no option '-{}'; did you mean --{}?", word, word));
  }
  const std::string leftovers = about_leftovers(*app_, app_->remaining(), takes_text_);
  if (!leftovers.empty()) fail(leftovers);
  return true;
}

}  // namespace qwench::cli
