#include "text/post_processor.h"

#include <fmt/format.h>

#include "checkpoint/printable.h"
#include "qwench/error.h"
#include "text/bpe_vocabulary.h"
#include "text/tokenizer_fields.h"

namespace qwench {
namespace {

TokenId read_id(const Json& value, const std::string& where) {
  const Json object = {{"id", value}};
  return static_cast<TokenId>(Fields(object, where).number("id", 0, kMaxTokenId - 1));
}

}  // namespace

PostProcessor PostProcessor::around(std::vector<TokenId> before, std::vector<TokenId> after) {
  PostProcessor out;
  if (!before.empty() || !after.empty())
    out.steps_ = {{{false, std::move(before)}, {true, {}}, {false, std::move(after)}}};
  return out;
}

void PostProcessor::append_steps(const Json& json, const std::string& where, int depth,
                                 std::vector<std::vector<Item>>& steps) {
  const Fields fields(json, where);
  const std::string type = fields.type();
  if (type == "ByteLevel") {
    fields.only({"add_prefix_space", "trim_offsets", "use_regex"});  // about offsets, which are not kept
    return;
  }
  if (type == "Sequence") {
    fields.only({"processors"});
    if (depth > 16) fields.fail("processors", "are nested more than 16 deep");
    size_t i = 0;
    for (const Json& step : fields.list("processors")) {
      append_steps(step, fmt::format("{}[{}]", fields.at("processors"), i++), depth + 1, steps);
    }
    return;
  }
  if (type == "TemplateProcessing") {
    fields.only({"single", "pair", "special_tokens"});
    const Fields special(fields.get("special_tokens"), fields.at("special_tokens"));
    std::vector<Item> items;
    for (const Json& entry : fields.list("single")) {
      const std::string at = fmt::format("{}[{}]", fields.at("single"), items.size());
      const Fields item(entry, at);
      if (item.has("Sequence")) {
        const std::string which = Fields(item.get("Sequence"), item.at("Sequence")).text("id");
        if (which != "A")
          item.fail("Sequence", fmt::format("is {}; a template for one text has only A", printable(which)));
        items.push_back({true, {}});
      } else if (item.has("SpecialToken")) {
        const std::string name = Fields(item.get("SpecialToken"), item.at("SpecialToken")).text("id");
        if (!special.has(name))
          item.fail("SpecialToken", fmt::format("{} is not in special_tokens", printable(name)));
        Item ids;
        const Fields token(special.get(name), special.where() + "." + printable(name));
        for (const Json& id : token.list("ids")) ids.ids.push_back(read_id(id, token.at("ids")));
        items.push_back(std::move(ids));
      } else {
        item.fail("SpecialToken", "is missing, and so is \"Sequence\"; one of them is needed");
      }
    }
    steps.push_back(std::move(items));
    return;
  }
  if (type == "RobertaProcessing" || type == "BertProcessing") {
    fields.only({"sep", "cls", "trim_offsets", "add_prefix_space"});
    const auto id = [&](std::string_view name) {
      const Json& pair = fields.list(name);
      if (pair.size() != 2) fields.fail(name, "is not [token, id]");
      return read_id(pair[1], fields.at(name));
    };
    steps.push_back({{false, {id("cls")}}, {true, {}}, {false, {id("sep")}}});
    return;
  }
  fields.unknown_type("post-processor",
                      "ByteLevel, TemplateProcessing, Sequence, RobertaProcessing and BertProcessing");
}

PostProcessor PostProcessor::from_json(const Json& json, const std::string& where) {
  PostProcessor out;
  if (!json.is_null()) append_steps(json, where, 0, out.steps_);
  // The reference takes what a step adds for texts of their own, which the next step puts more around.
  for (size_t i = 0; i + 1 < out.steps_.size(); ++i) {
    if (out.steps_[i].size() != 1) {
      throw Error(ErrorKind::unsupported,
                  fmt::format("{}: more than one processor adds tokens, which is not supported", where));
    }
  }
  return out;
}

std::vector<TokenId> PostProcessor::apply(std::vector<TokenId> ids) const {
  for (const auto& items : steps_) {
    std::vector<TokenId> out;
    for (const Item& item : items) {
      const auto& from = item.is_text ? ids : item.ids;
      out.insert(out.end(), from.begin(), from.end());
    }
    ids = std::move(out);
  }
  return ids;
}

std::vector<TokenId> PostProcessor::added() const {
  std::vector<TokenId> out;
  for (const auto& items : steps_) {
    for (const Item& item : items) out.insert(out.end(), item.ids.begin(), item.ids.end());
  }
  return out;
}

}  // namespace qwench
