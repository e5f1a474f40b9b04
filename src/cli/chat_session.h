#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/json.h"
#include "qwench/sampling.h"

namespace qwench::cli {

/// A conversation and its settings, and the commands that change them. Knows neither the model nor the
/// terminal.
class ChatSession {
 public:
  struct Settings {
    SamplingOptions sampling;  ///< flags, then what /params sets
    StopParams stop;
    std::optional<bool> thinking;  ///< as the template's own default when absent
  };
  /// What a command wants of its caller.
  struct Reply {
    std::string text;     ///< to be shown; may be empty
    bool leave = false;   ///< /exit
    bool answer = false;  ///< /retry: the last message is to be answered again
  };

  ChatSession(Settings settings, std::string system, SamplingOptions model_defaults);

  static bool is_command(const std::string& line) { return line.starts_with('/'); }
  /// Throws Error, with the session as it was, when the command is unknown or cannot be done.
  Reply command(const std::string& line);

  void add_user(const std::string& text);
  void add_assistant(const std::string& text);
  void drop_last() { messages_.erase(messages_.size() - 1); }  ///< the last message

  /// The seed that was drawn for the last answer, where one was; /params shows it.
  void set_answer_seed(std::optional<uint64_t> seed) { answer_seed_ = seed; }

  Json messages() const;  ///< [{"role", "content"}], the system message first where there is one
  const Settings& settings() const { return settings_; }
  Json parameters() const;  ///< the effective set

 private:
  Reply set_system(const std::string& argument);
  Reply reset();
  Reply undo();
  Reply retry();
  Reply save(const std::string& file) const;
  Reply load(const std::string& file);
  Reply params(const std::string& argument);
  Reply history() const;

  Settings settings_;
  std::string system_;
  SamplingOptions model_defaults_;
  std::optional<uint64_t> answer_seed_;
  Json messages_ = Json::array();  // without the system message
};

}  // namespace qwench::cli
