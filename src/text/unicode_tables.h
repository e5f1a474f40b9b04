#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

/// Data of tools/generate_unicode_tables.py; src/text/unicode_classes.h is the way to use it.
namespace qwench::unicode {

struct Range {
  uint32_t first;
  uint32_t last;  ///< inclusive
};

/// The characters of the general categories in `category_mask` (bit = Category), but for `differences`: those
/// are members where the mask has them not, and the other way round.
struct NamedSet {
  std::string_view name;
  uint32_t category_mask;
  const Range* differences;
  size_t differences_size;
};

/// first, first + step, ... last become target, target + step, ...
struct CaseRun {
  uint32_t first;
  uint32_t last;
  uint32_t step;
  uint32_t target;
};

// Runs: (first code point << 8 | value), the value holds until the next run.
extern const uint32_t category_runs[];  // Category
extern const size_t category_runs_size;
extern const uint32_t script_runs[];  // index into script_names
extern const size_t script_runs_size;
extern const uint32_t
    normalization_runs[];  // 1: combining class not 0; 2, 4, 8, 16: not inert in NFC, NFD, NFKC, NFKD
extern const size_t normalization_runs_size;
extern const std::string_view script_names[];
extern const size_t script_names_size;
extern const NamedSet named_sets[];
extern const size_t named_sets_size;
extern const CaseRun lowercase_runs[];
extern const size_t lowercase_runs_size;

}  // namespace qwench::unicode
