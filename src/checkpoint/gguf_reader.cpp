#include "checkpoint/gguf_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <unordered_set>

#include "checkpoint/ggml_types.h"
#include "checkpoint/printable.h"
#include "qwench/error.h"

namespace qwench {

static_assert(std::endian::native == std::endian::little, "values are read from the file as they lie there");

namespace {

constexpr std::array<std::string_view, 13> kTypeNames{"uint8",  "int8",    "uint16", "int16",  "uint32",
                                                      "int32",  "float32", "bool",   "string", "array",
                                                      "uint64", "int64",   "float64"};
constexpr std::array<size_t, 13> kTypeBytes{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
constexpr uint32_t kMaxDimensions = 4;
constexpr uint64_t kMaxNameBytes = 65535;
// The least a file spends on an entry: for a value an empty key, a type and one byte; for a tensor an empty
// name, the number of dimensions, a type and an offset.
constexpr uint64_t kLeastValueBytes = 8 + 4 + 1;
constexpr uint64_t kLeastTensorBytes = 8 + 4 + 4 + 8;

class Reader {
 public:
  Reader(std::span<const std::byte> file, const std::string& what) : file_(file), what_(what) {}

  GgufContent read() {
    read_header();
    for (uint64_t i = 0; i < value_count_; ++i) read_value(i);
    read_alignment();
    for (uint64_t i = 0; i < tensor_count_; ++i) read_tensor(i);
    place_tensors();
    return std::move(content_);
  }

 private:
  [[noreturn]] void fail(const std::string& message, ErrorKind kind = ErrorKind::malformed) const {
    throw Error(kind, fmt::format("{}: {}", what_, message));
  }

  uint64_t left() const { return file_.size() - position_; }

  std::span<const std::byte> take(uint64_t bytes, const std::string& label) {
    if (bytes > left())
      fail(fmt::format("{} takes {} bytes, but only {} remain in the file", label, bytes, left()));
    const auto result = file_.subspan(position_, bytes);
    position_ += bytes;
    return result;
  }

  template <typename T>
  T number(const std::string& label) {
    T value;
    std::memcpy(&value, take(sizeof(T), label).data(), sizeof(T));
    return value;
  }

  std::string_view text(const std::string& label, uint64_t limit = UINT64_MAX) {
    const auto length = number<uint64_t>(label);
    if (length > limit) fail(fmt::format("{} has a length of {} bytes, more than {}", label, length, limit));
    const auto bytes = take(length, label);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  void read_header() {
    const std::string label = "the header";
    const auto magic = take(4, label);
    if (std::memcmp(magic.data(), "GGUF", 4) != 0) fail("not a GGUF file: it does not begin with \"GGUF\"");
    const auto version = number<uint32_t>(label);
    if (version != 2 && version != 3) {
      const uint32_t swapped = __builtin_bswap32(version);
      if (swapped >= 1 && swapped <= 3) {
        fail("a big-endian GGUF file; only little-endian ones can be read", ErrorKind::unsupported);
      }
      fail(fmt::format("GGUF version {}; versions 2 and 3 can be read", version), ErrorKind::unsupported);
    }
    content_.version = version;
    tensor_count_ = number<uint64_t>(label);
    value_count_ = number<uint64_t>(label);
    if (value_count_ > left() / kLeastValueBytes) {
      fail(fmt::format("{} metadata entries cannot fit the {} bytes that follow", value_count_, left()));
    }
    if (tensor_count_ > left() / kLeastTensorBytes) {
      fail(fmt::format("{} tensors cannot fit the {} bytes that follow", tensor_count_, left()));
    }
  }

  GgufType value_type(const std::string& label) {
    const auto type = number<uint32_t>(label);
    if (type >= kTypeNames.size()) fail(fmt::format("{} has the unknown value type {}", label, type));
    return static_cast<GgufType>(type);
  }

  void read_value(uint64_t index) {
    const std::string_view key = text(fmt::format("the key of metadata entry {}", index), kMaxNameBytes);
    if (!keys_.insert(key).second) fail(fmt::format("the metadata key {} is there twice", printable(key)));
    const std::string label = fmt::format("metadata {}", printable(key));
    GgufValue value{value_type(label), false, 1, {}};
    if (value.type == GgufType::array) {
      value.is_array = true;
      value.type = value_type(label);
      if (value.type == GgufType::array)
        fail(fmt::format("{} is an array of arrays, which no key has", label));
      value.count = number<uint64_t>(label);
    }
    const uint64_t start = position_;
    const size_t size = gguf_value_bytes(value.type);
    if (size > 0) {
      if (value.count > left() / size) {
        fail(fmt::format("{} has {} values of {}, more than fit the {} bytes that remain", label, value.count,
                         name(value.type), left()));
      }
      position_ += value.count * size;
    } else {
      if (value.count > left() / 8) {
        fail(fmt::format("{} has {} strings, more than fit the {} bytes that remain", label, value.count,
                         left()));
      }
      for (uint64_t i = 0; i < value.count; ++i) text(label);
    }
    value.bytes = file_.subspan(start, position_ - start);
    if (value.type == GgufType::boolean &&
        std::any_of(value.bytes.begin(), value.bytes.end(), [](std::byte b) { return b > std::byte{1}; })) {
      fail(fmt::format("{} is a bool that is neither 0 nor 1", label));
    }
    content_.values.emplace_back(key, value);
  }

  void read_alignment() {
    for (const auto& [key, value] : content_.values) {
      if (key != "general.alignment") continue;
      if (value.is_array || value.type != GgufType::u32) {
        fail(fmt::format("general.alignment is of type {}, not uint32", name(value.type)));
      }
      uint32_t alignment = 0;
      std::memcpy(&alignment, value.bytes.data(), sizeof(alignment));
      if (alignment < 8 || !std::has_single_bit(alignment)) {
        fail(fmt::format("general.alignment is {}, not a power of two from 8 up", alignment));
      }
      alignment_ = alignment;
    }
  }

  void read_tensor(uint64_t index) {
    const std::string_view tensor_name = text(fmt::format("the name of tensor {}", index), kMaxNameBytes);
    const std::string label = fmt::format("tensor {}", printable(tensor_name));
    if (!tensor_names_.insert(tensor_name).second) fail(fmt::format("{} is there twice", label));
    GgufTensor tensor;
    tensor.name = tensor_name;
    const auto dimensions = number<uint32_t>(label);
    if (dimensions > kMaxDimensions) {
      fail(fmt::format("{} has {} dimensions; at most {} are allowed", label, dimensions, kMaxDimensions));
    }
    uint64_t count = 1;
    for (uint32_t i = 0; i < dimensions; ++i) {
      const auto size = number<uint64_t>(label);
      if (size > INT64_MAX || __builtin_mul_overflow(count, size, &count) || count > INT64_MAX) {
        fail(fmt::format("{}: the product of its dimensions overflows", label));
      }
      tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(size));
    }
    const auto type_number = number<uint32_t>(label);
    const GgmlType* type = ggml_type(type_number);
    if (type == nullptr) fail(fmt::format("{} has the unknown type {}", label, type_number));
    tensor.type_name = type->name;
    tensor.dtype = type->dtype;
    const uint64_t row = tensor.shape.empty() ? 1 : static_cast<uint64_t>(tensor.shape.back());
    if (row % type->block_size != 0) {
      fail(fmt::format("{}: rows of {} numbers are no multiple of the {} in a block of {}", label, row,
                       type->block_size, type->name));
    }
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(count / type->block_size, uint64_t{type->block_bytes}, &bytes)) {
      fail(fmt::format("{}: its size in bytes overflows", label));
    }
    places_.push_back({number<uint64_t>(label), bytes});
    content_.tensors.push_back(std::move(tensor));
  }

  void place_tensors() {
    const uint64_t padding = (alignment_ - position_ % alignment_) % alignment_;
    // Without tensors the padding may be missing.
    const auto data = padding <= left() ? file_.subspan(position_ + padding) : std::span<const std::byte>{};
    for (size_t i = 0; i < places_.size(); ++i) {
      GgufTensor& tensor = content_.tensors[i];
      const auto [offset, bytes] = places_[i];
      const std::string label = fmt::format("tensor {}", printable(tensor.name));
      if (offset % alignment_ != 0) {
        fail(fmt::format("{}: its offset {} is no multiple of the alignment {}", label, offset, alignment_));
      }
      if (offset > data.size() || bytes > data.size() - offset) {
        fail(
            fmt::format("{}: its {} bytes at offset {} do not lie in the {} bytes of data that the file has; "
                        "the file may "
                        "be cut short",
                        label, bytes, offset, data.size()));
      }
      tensor.bytes = data.subspan(offset, bytes);
    }
    check_overlaps();
  }

  void check_overlaps() const {
    std::vector<const GgufTensor*> order;
    for (const GgufTensor& tensor : content_.tensors) {
      if (!tensor.bytes.empty()) order.push_back(&tensor);
    }
    std::sort(order.begin(), order.end(),
              [](const GgufTensor* a, const GgufTensor* b) { return a->bytes.data() < b->bytes.data(); });
    for (size_t i = 1; i < order.size(); ++i) {
      if (order[i]->bytes.data() < order[i - 1]->bytes.data() + order[i - 1]->bytes.size()) {
        fail(fmt::format("the tensors {} and {} overlap", printable(order[i - 1]->name),
                         printable(order[i]->name)));
      }
    }
  }

  struct Place {
    uint64_t offset;
    uint64_t bytes;
  };

  std::span<const std::byte> file_;
  const std::string& what_;
  uint64_t position_ = 0;
  uint64_t tensor_count_ = 0;
  uint64_t value_count_ = 0;
  uint64_t alignment_ = 32;
  GgufContent content_;
  std::vector<Place> places_;  // of each tensor, relative to the data
  std::unordered_set<std::string_view> keys_;
  std::unordered_set<std::string_view> tensor_names_;
};

}  // namespace

size_t gguf_value_bytes(GgufType type) noexcept { return kTypeBytes[static_cast<size_t>(type)]; }
std::string_view name(GgufType type) noexcept { return kTypeNames[static_cast<size_t>(type)]; }

GgufContent read_gguf(std::span<const std::byte> file, const std::string& what) {
  return Reader(file, what).read();
}

}  // namespace qwench
