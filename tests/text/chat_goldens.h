#pragma once

#include <gtest/gtest.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/json.h"
#include "text/chat_template.h"

namespace qwench::chat_test {

inline std::filesystem::path chat_data() { return std::filesystem::path(QWENCH_TEST_DATA) / "chat"; }

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) ADD_FAILURE() << "cannot read " << path;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

inline std::vector<Json> read_rows(const std::string& file) {
  std::vector<Json> rows;
  std::istringstream lines(read_file(chat_data() / file));
  for (std::string line; std::getline(lines, line);) rows.push_back(parse_json(line, file));
  return rows;
}

/// Where `./dev fetch-models` puts the published tokenizers and models.
inline std::filesystem::path cache_folder() {
  if (const char* own = std::getenv("QWENCH_CACHE")) return own;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME")) return std::filesystem::path(xdg) / "qwench";
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home == nullptr ? "" : home) / ".cache" / "qwench";
}

/// The template of a golden row: a file of the test data, or the chat template of a published tokenizer.
inline std::string template_source(const std::string& file) {
  const std::string name = file.substr(0, file.size() - std::string(".jinja").size());
  if (name != "qwen3" && name != "qwen2.5" && name != "smollm2")
    return read_file(chat_data() / "templates" / file);
  const auto config = cache_folder() / "tokenizers" / name / "tokenizer_config.json";
  if (!std::filesystem::exists(config)) {
    ADD_FAILURE() << "no " << config << ": run ./dev fetch-models";
    return "";
  }
  return parse_json(read_file(config), config.string()).at("chat_template").get<std::string>();
}

/// "2025-03-07T14:05:09" as local time.
inline LocalTime parse_time(const std::string& iso) {
  const auto number = [&](size_t at, size_t size) {
    int value = 0;
    std::from_chars(iso.data() + at, iso.data() + at + size, value);
    return value;
  };
  const std::chrono::year_month_day date(std::chrono::year(number(0, 4)),
                                         std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                         std::chrono::day(static_cast<unsigned>(number(8, 2))));
  return std::chrono::local_days(date) + std::chrono::hours(number(11, 2)) +
         std::chrono::minutes(number(14, 2)) + std::chrono::seconds(number(17, 2));
}

inline ChatTemplateInput input_of(const Json& row) {
  ChatTemplateInput input;
  input.messages = row.at("messages");
  if (row.contains("tools")) input.tools = row["tools"];
  if (row.contains("documents")) input.documents = row["documents"];
  if (row.contains("kwargs")) input.kwargs = row["kwargs"];
  if (row.contains("bos_token")) input.bos_token = row["bos_token"].get<std::string>();
  if (row.contains("eos_token")) input.eos_token = row["eos_token"].get<std::string>();
  input.add_generation_prompt = row.value("add_generation_prompt", false);
  input.now = parse_time(row.value("now", "2025-03-07T14:05:09"));
  return input;
}

inline std::string kind_name(TemplateErrorKind kind) {
  switch (kind) {
    case TemplateErrorKind::syntax:
      return "syntax";
    case TemplateErrorKind::raise_exception:
      return "raise_exception";
    case TemplateErrorKind::undefined:
      return "undefined";
    case TemplateErrorKind::security:
      return "security";
    default:
      return "other";
  }
}

}  // namespace qwench::chat_test
