#pragma once

#include <stdexcept>
#include <string>

namespace qwench {

/// What went wrong, for programs; the sentence in `what()` is for people.
enum class ErrorKind {
  invalid_argument,  ///< a caller's value is out of range or contradicts another (HTTP 400, exit code 2 on
                     ///< the command line)
  not_found,         ///< a file, folder, tensor or model that was named is not there
  malformed,         ///< a file's content breaks its format
  unsupported,       ///< well-formed, but not something this engine can do
  template_error,    ///< a chat template could not be parsed or rendered
  out_of_memory,     ///< the plan does not fit the memory there is
  numeric,           ///< non-finite logits
  io,                ///< the operating system refused a read or a write
  busy,              ///< the queue of requests is full; later there is room again (HTTP 429)
  shutting_down,     ///< no more requests are taken (HTTP 503)
  device_lost,       ///< the GPU stopped answering; its memory is gone, the model must be loaded again
};

/// Thrown at load, parse and submit time, never in the hot path. `what()` is one sentence that names the
/// file or field, what was found, what was expected and, where there is something to do, what to do.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace qwench
