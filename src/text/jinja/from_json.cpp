#include "text/jinja/from_json.h"

#include "core/large_integers.h"
#include "core/utf8.h"

namespace qwench::jinja {
namespace {

/// is_valid_utf8, quick over ASCII: contents are long.
bool is_well_formed(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const Utf8Char c = decode_utf8(text.substr(at));
    if (!c.valid) return false;
    at += static_cast<size_t>(c.length);
  }
  return true;
}

}  // namespace

Value from_json(Runtime& rt, const Json& json, bool from_input) {
  const Runtime::Nesting nesting(rt);
  Value value;
  const auto text = [&](const std::string& raw) {
    TrackedText tracked;
    tracked.append(is_well_formed(raw) ? raw : to_valid_utf8(raw), from_input);
    return rt.heap.string(std::move(tracked));
  };
  switch (json.type()) {
    case Json::value_t::string:
      return text(json.get_ref<const std::string&>());
    case Json::value_t::boolean:
      value = Value::boolean(json.get<bool>());
      break;
    case Json::value_t::number_integer:
      value = Value::integer(json.get<int64_t>());
      break;
    case Json::value_t::number_unsigned: {
      const uint64_t number = json.get<uint64_t>();
      const BigInt high(static_cast<int64_t>(number >> 1));
      value = rt.heap.integer(high + high + BigInt(static_cast<int64_t>(number & 1)));
      break;
    }
    case Json::value_t::number_float:
      value = Value::real(json.get<double>());
      break;
    case Json::value_t::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const Json& item : json) items.push_back(from_json(rt, item, from_input));
      value = rt.heap.list(std::move(items));
      break;
    }
    case Json::value_t::object: {
      auto dict = std::make_shared<Dict>();
      for (const auto& [key, item] : json.items()) dict->set(text(key), from_json(rt, item, from_input));
      value = rt.heap.dict(std::move(dict));
      break;
    }
    case Json::value_t::binary: {
      const std::string digits = large_integer(json).value_or("0");
      const bool negative = digits.starts_with('-');
      const BigInt size = *BigInt::parse(digits.substr(negative ? 1 : 0), 10);
      value = rt.heap.integer(negative ? -size : size);
      break;
    }
    case Json::value_t::null:
    case Json::value_t::discarded:
      value = Value::none();
      break;
  }
  return value.mark_input(from_input);
}

}  // namespace qwench::jinja
