#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace qwench::hub {

/// What the environment says about hubs, with the names, defaults and order of huggingface_hub
/// (https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables).
struct Environment {
  std::string endpoint;             ///< HF_ENDPOINT, else https://huggingface.co; no slash at its end
  std::string modelscope_endpoint;  ///< MODELSCOPE_ENDPOINT, else https://modelscope.cn
  /// HF_HUB_CACHE, else HUGGINGFACE_HUB_CACHE, else HF_HOME/hub, with HF_HOME by default
  /// XDG_CACHE_HOME/huggingface, and that by default ~/.cache/huggingface.
  std::filesystem::path cache;
  std::filesystem::path token_path;  ///< HF_TOKEN_PATH, else HF_HOME/token
  std::string token_variable;        ///< HF_TOKEN, else HUGGING_FACE_HUB_TOKEN
  bool uses_token = true;            ///< false with HF_HUB_DISABLE_IMPLICIT_TOKEN
  bool offline = false;              ///< HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE
  int stall_seconds = 30;  ///< HF_HUB_DOWNLOAD_TIMEOUT: a transfer that brings nothing for so long is broken

  /// The token to send to `endpoint`: the variable, else the file. Throws Error (malformed) for one that
  /// cannot stand in a header.
  std::optional<std::string> token() const;
};

/// `get` answers like getenv, with "" for what is not set. Throws Error (invalid_argument) for an endpoint
/// that is no http or https address.
Environment read_environment(const std::function<std::string(const char*)>& get);
Environment read_environment();  ///< of this process

}  // namespace qwench::hub
