#include "hub/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>

#include "checkpoint/printable.h"
#include "core/mapped_file.h"
#include "qwench/error.h"

namespace qwench::hub {
namespace {

namespace fs = std::filesystem;
using Get = std::function<std::string(const char*)>;

bool is_true(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text == "1" || text == "ON" || text == "YES" || text == "TRUE";
}

fs::path expand_home(const std::string& path, const std::string& home) {
  if (path == "~") return home;
  if (path.starts_with("~/")) return fs::path(home) / path.substr(2);
  return path;
}

std::string endpoint(const Get& get, const char* variable, const char* otherwise) {
  std::string address = get(variable);
  if (address.empty()) return otherwise;
  while (address.ends_with('/')) address.pop_back();
  if (!address.starts_with("http://") && !address.starts_with("https://")) {
    throw Error(ErrorKind::invalid_argument, fmt::format("{} is {}; expected an address such as {}", variable,
                                                         printable(address), otherwise));
  }
  return address;
}

std::string trimmed(std::string text) {
  const auto blank = [](unsigned char c) { return std::isspace(c) != 0; };
  text.erase(std::find_if_not(text.rbegin(), text.rend(), blank).base(), text.end());
  text.erase(text.begin(), std::find_if_not(text.begin(), text.end(), blank));
  return text;
}

}  // namespace

Environment read_environment(const Get& get) {
  Environment result;
  result.endpoint = endpoint(get, "HF_ENDPOINT", "https://huggingface.co");
  result.modelscope_endpoint = endpoint(get, "MODELSCOPE_ENDPOINT", "https://modelscope.cn");

  const std::string home = get("HOME");
  const std::string xdg = get("XDG_CACHE_HOME");
  const std::string hf_home = get("HF_HOME");
  const fs::path caches = xdg.empty() ? fs::path(home) / ".cache" : expand_home(xdg, home);
  const fs::path base = hf_home.empty() ? caches / "huggingface" : expand_home(hf_home, home);
  result.cache = base / "hub";
  for (const char* variable : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (const std::string path = get(variable); !path.empty()) {
      result.cache = expand_home(path, home);
      break;
    }
  }
  const std::string token_path = get("HF_TOKEN_PATH");
  result.token_path = token_path.empty() ? base / "token" : expand_home(token_path, home);
  result.token_variable = trimmed(get("HF_TOKEN"));
  if (result.token_variable.empty()) result.token_variable = trimmed(get("HUGGING_FACE_HUB_TOKEN"));
  result.uses_token = !is_true(get("HF_HUB_DISABLE_IMPLICIT_TOKEN"));
  result.offline = is_true(get("HF_HUB_OFFLINE")) || is_true(get("TRANSFORMERS_OFFLINE"));

  const std::string stall = get("HF_HUB_DOWNLOAD_TIMEOUT");
  int seconds = 0;
  if (std::from_chars(stall.data(), stall.data() + stall.size(), seconds).ec == std::errc() && seconds > 0)
    result.stall_seconds = seconds;
  return result;
}

Environment read_environment() {
  return read_environment([](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  });
}

std::optional<std::string> Environment::token() const {
  if (!uses_token) return std::nullopt;
  std::string text = token_variable;
  std::string where = "HF_TOKEN";
  if (text.empty()) {
    std::error_code error;
    if (!fs::is_regular_file(token_path, error)) return std::nullopt;
    text = trimmed(read_text_file(token_path, 65536));
    where = token_path.string();
  }
  if (text.empty()) return std::nullopt;
  if (!std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7F; })) {
    throw Error(ErrorKind::malformed,
                fmt::format("{}: the token holds a blank or a character that is not ASCII; expected one word",
                            where));
  }
  return text;
}

}  // namespace qwench::hub
