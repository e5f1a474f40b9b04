#include "cli/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace qwench::cli {

CommandLine::CommandLine(const std::string& name, const std::string& description, const std::string& examples)
    : name_(name), app_(description, "qwench " + name) {
  app_.footer("Examples:\n" + examples);
  app_.get_formatter()->column_width(34);
  app_.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
}

bool CommandLine::parse(const Arguments& arguments) {
  Arguments reversed(arguments.rbegin(), arguments.rend());
  try {
    app_.parse(std::move(reversed));
    return true;
  } catch (const CLI::CallForHelp&) {
    std::fputs(app_.help().c_str(), stdout);
    return false;
  } catch (const CLI::ParseError& error) {
    throw UsageError(fmt::format("{}; see: qwench {} --help", error.what(), name_));
  }
}

CLI::Validator whole_number(bool negative) {
  return {[negative](std::string& text) -> std::string {
            const size_t sign = negative && text.starts_with('-') ? 1 : 0;
            const bool digits =
                text.size() > sign && text.find_first_not_of("0123456789", sign) == std::string::npos;
            const bool octal = text.size() > sign + 1 && text[sign] == '0';
            return digits && !octal ? "" : "expected a whole number, found " + text;
          },
          "", "whole_number"};
}

}  // namespace qwench::cli
