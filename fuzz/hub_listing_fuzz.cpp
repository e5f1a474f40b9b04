#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "hub/remote.h"
#include "hub/selection.h"
#include "qwench/error.h"

namespace {

void choose(const qwench::hub::Listing& listing) {
  if (!qwench::hub::is_safe_word(listing.commit)) std::abort();
  for (const qwench::hub::RemoteFile& file : listing.files) {
    if (!qwench::hub::is_safe_path(file.path)) std::abort();
  }
  for (const char* choice : {"", "q4_k_m"}) {
    try {
      qwench::hub::select_files(listing, {"a", "b", choice, ""}, {});
    } catch (const qwench::Error&) {
    }
  }
}

}  // namespace

/// Whatever a hub answers gives a list of files whose names stay below their folder, or an Error; a name that
/// is accepted prints as it was typed.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLimit = 1 << 16;
  if (size > kLimit) return 0;
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const auto parse : {qwench::hub::parse_hugging_face_listing, qwench::hub::parse_modelscope_listing}) {
    try {
      choose(parse(text, "fuzz"));
    } catch (const qwench::Error&) {
    }
  }
  if (const auto name = qwench::hub::parse_model_name(text); name && name->text() != text) std::abort();
  return 0;
}
