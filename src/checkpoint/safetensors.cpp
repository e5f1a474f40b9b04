#include "checkpoint/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_set>

#include "checkpoint/printable.h"
#include "qwench/error.h"

// The rules of the format, all held here: 8 bytes of little-endian header length N, N at most 100,000,000 and
// inside the file; the header is UTF-8 JSON that begins with '{', may end with white space and has no key
// twice; "__metadata__" maps strings to strings; every other entry has a known dtype, a shape of whole
// numbers and data_offsets [begin, end] relative to the end of the header; bytes = elements * element size,
// nothing overflows; sorted by offset the tensors cover the rest of the file without gap or overlap.

namespace qwench {
namespace {

constexpr uint64_t kMaxHeader = 100'000'000;
constexpr size_t kMaxRank = 32;

struct DTypeEntry {
  std::string_view name;
  unsigned bits;
};
constexpr std::array<DTypeEntry, 20> kDTypes{{
    {"F32", 32},    {"F16", 16}, {"BF16", 16}, {"F64", 64},    {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6},
    {"F6_E3M2", 6}, {"U8", 8},   {"I8", 8},    {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"I16", 16},
    {"U16", 16},    {"I32", 32}, {"U32", 32},  {"C64", 64},    {"I64", 64},    {"U64", 64},
}};

using simdjson::dom::element;

class Header {
 public:
  Header(std::span<const std::byte> file, const std::string& what) : file_(file), what_(what) {}

  std::vector<SafetensorsEntry> read() {
    simdjson::dom::parser parser;
    const simdjson::dom::object root = parse(parser);
    std::unordered_set<std::string_view> names;
    for (const auto& [key, value] : root) {
      if (!names.insert(key).second) fail(fmt::format("the name {} is there twice", printable(key)));
      if (key == "__metadata__") {
        check_metadata(value);
      } else {
        entries_.push_back(entry(key, value));
      }
    }
    check_layout();
    return std::move(entries_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw Error(ErrorKind::malformed, fmt::format("{}: {}", what_, message));
  }

  simdjson::dom::object parse(simdjson::dom::parser& parser) {
    if (file_.size() < 8) {
      fail(fmt::format(
          "{} bytes are too few for a safetensors file, which begins with 8 bytes of header length",
          file_.size()));
    }
    uint64_t length = 0;
    for (size_t i = 0; i < 8; ++i) length |= std::to_integer<uint64_t>(file_[i]) << (8 * i);
    if (length > kMaxHeader || length > file_.size() - 8) {
      fail(
          fmt::format("the header length is {}, but at most {} bytes can follow; the file is cut short or no "
                      "safetensors file",
                      length, std::min<uint64_t>(kMaxHeader, file_.size() - 8)));
    }
    data_ = file_.subspan(8 + length);
    const auto* text = reinterpret_cast<const char*>(file_.data()) + 8;
    if (length == 0 || text[0] != '{') fail("the header does not begin with '{'");
    element root;
    if (const auto error = parser.parse(text, length).get(root)) {
      fail(fmt::format("the header is not valid JSON: {}", simdjson::error_message(error)));
    }
    simdjson::dom::object object;
    if (root.get(object)) fail("the header is not a JSON object");
    return object;
  }

  void check_metadata(const element& value) const {
    if (value.is_null()) return;
    simdjson::dom::object object;
    if (value.get(object)) fail("__metadata__ is not an object");
    std::unordered_set<std::string_view> names;
    for (const auto& [key, text] : object) {
      if (!names.insert(key).second) fail(fmt::format("the key {} is in __metadata__ twice", printable(key)));
      if (!text.is_string())
        fail(fmt::format("the value of {} in __metadata__ is not a string", printable(key)));
    }
  }

  SafetensorsEntry entry(std::string_view tensor_name, const element& value) const {
    const std::string label = fmt::format("tensor {}", printable(tensor_name));
    simdjson::dom::object object;
    if (value.get(object)) fail(fmt::format("{} is not described by an object", label));
    element dtype;
    element shape;
    element offsets;
    int dtypes = 0;
    int shapes = 0;
    int offset_pairs = 0;
    for (const auto& [key, field] : object) {
      if (key == "dtype") ++dtypes, dtype = field;
      if (key == "shape") ++shapes, shape = field;
      if (key == "data_offsets") ++offset_pairs, offsets = field;
    }
    if (dtypes != 1 || shapes != 1 || offset_pairs != 1) {
      fail(fmt::format("{} must have dtype, shape and data_offsets, each once", label));
    }
    SafetensorsEntry result;
    result.name = tensor_name;
    const unsigned bits = read_dtype(label, dtype, result);
    const uint64_t bytes = read_shape(label, shape, bits, result);
    const auto [begin, end] = read_offsets(label, offsets);
    if (end - begin != bytes) {
      fail(fmt::format("{}: {} of shape [{}] takes {} bytes, but data_offsets span {}", label,
                       result.dtype_name, fmt::join(result.shape, ", "), bytes, end - begin));
    }
    result.bytes = data_.subspan(begin, bytes);
    return result;
  }

  unsigned read_dtype(const std::string& label, const element& value, SafetensorsEntry& result) const {
    std::string_view text;
    if (value.get(text)) fail(fmt::format("{}: dtype is not a string", label));
    const auto* found =
        std::find_if(kDTypes.begin(), kDTypes.end(), [&](const DTypeEntry& e) { return e.name == text; });
    if (found == kDTypes.end()) fail(fmt::format("{}: the dtype {} does not exist", label, printable(text)));
    result.dtype_name = text;
    if (text == "F32") result.dtype = DType::f32;
    if (text == "F16") result.dtype = DType::f16;
    if (text == "BF16") result.dtype = DType::bf16;
    return found->bits;
  }

  uint64_t read_shape(const std::string& label, const element& value, unsigned bits,
                      SafetensorsEntry& result) const {
    simdjson::dom::array array;
    if (value.get(array)) fail(fmt::format("{}: shape is not a list", label));
    uint64_t count = 1;
    for (const element dimension : array) {
      uint64_t size = 0;
      if (!dimension.is<uint64_t>() || dimension.get(size) || size > INT64_MAX) {
        fail(fmt::format("{}: the shape holds a value that is not a whole number >= 0", label));
      }
      if (__builtin_mul_overflow(count, size, &count)) {
        fail(fmt::format("{}: the product of the shape's dimensions overflows", label));
      }
      result.shape.push_back(static_cast<int64_t>(size));
      if (result.shape.size() > kMaxRank) fail(fmt::format("{}: more than {} dimensions", label, kMaxRank));
    }
    uint64_t total_bits = 0;
    if (count > INT64_MAX || __builtin_mul_overflow(count, uint64_t{bits}, &total_bits)) {
      fail(fmt::format("{}: the product of the shape's dimensions overflows", label));
    }
    if (total_bits % 8 != 0) fail(fmt::format("{}: its {} bits are not whole bytes", label, total_bits));
    return total_bits / 8;
  }

  std::pair<uint64_t, uint64_t> read_offsets(const std::string& label, const element& value) const {
    simdjson::dom::array array;
    std::array<uint64_t, 2> offsets{};
    size_t count = 0;
    const bool list = !value.get(array);
    if (list) {
      for (const element offset : array) {
        if (count == 2 || !offset.is<uint64_t>() || offset.get(offsets[count])) {
          count = 3;
          break;
        }
        ++count;
      }
    }
    if (count != 2) fail(fmt::format("{}: data_offsets must be two whole numbers >= 0", label));
    if (offsets[0] > offsets[1] || offsets[1] > data_.size()) {
      fail(fmt::format("{}: data_offsets [{}, {}] do not lie in the {} bytes of data that the file has",
                       label, offsets[0], offsets[1], data_.size()));
    }
    return {offsets[0], offsets[1]};
  }

  void check_layout() {
    std::stable_sort(
        entries_.begin(), entries_.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
          return std::pair(a.bytes.data(), a.bytes.size()) < std::pair(b.bytes.data(), b.bytes.size());
        });
    const std::byte* next = data_.data();
    for (const SafetensorsEntry& e : entries_) {
      if (e.bytes.data() != next) {
        fail(fmt::format("tensor {} begins at {} of the data, but the one before it ends at {}: {}",
                         printable(e.name), e.bytes.data() - data_.data(), next - data_.data(),
                         e.bytes.data() < next ? "they overlap" : "the bytes between belong to none"));
      }
      next += e.bytes.size();
    }
    if (next != data_.data() + data_.size()) {
      fail(fmt::format("the last tensor ends at {} of the data, but the file has {} bytes of it",
                       next - data_.data(), data_.size()));
    }
  }

  std::span<const std::byte> file_;
  std::span<const std::byte> data_;
  const std::string& what_;
  std::vector<SafetensorsEntry> entries_;
};

}  // namespace

std::vector<SafetensorsEntry> parse_safetensors(std::span<const std::byte> file, const std::string& what) {
  return Header(file, what).read();
}

}  // namespace qwench
