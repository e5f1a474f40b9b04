#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>

#include "checkpoint/printable.h"
#include "core/log.h"
#include "qwench/error.h"
#include "text/tokenizer_fields.h"
#include "text/tokenizer_parts.h"

namespace qwench {
namespace {

namespace dom = simdjson::dom;

constexpr size_t kMaxDepth = 64;

[[noreturn]] void fail(const std::string& what, const std::string& problem) {
  throw Error(ErrorKind::malformed, fmt::format("{}: {}", what, problem));
}

Json to_json(dom::element element, const std::string& what) {
  return parse_json(simdjson::minify(element), what);
}

int64_t read_id(dom::element value, const std::string& what, std::string_view token) {
  int64_t id = 0;
  if (value.get_int64().get(id) != simdjson::SUCCESS || id < 0 || id >= kMaxTokenId) {
    fail(what,
         fmt::format("model.vocab gives the token {} the id {}, expected a whole number from 0 to {}",
                     printable(token), std::string(simdjson::minify(value)).substr(0, 40), kMaxTokenId - 1));
  }
  return id;
}

Vocabulary read_vocabulary(dom::element model, const std::string& what) {
  dom::object entries;
  if (model["vocab"].get_object().get(entries) != simdjson::SUCCESS) {
    fail(what, "model.vocab is missing or no object; expected {\"token\": id, ...}");
  }
  Vocabulary vocabulary;
  size_t count = 0;
  size_t bytes = 0;
  for (const auto entry : entries) {
    ++count;
    bytes += entry.key.size();
  }
  vocabulary.reserve(count, bytes);
  for (const auto entry : entries) {
    const auto id = static_cast<TokenId>(read_id(entry.value, what, entry.key));
    switch (vocabulary.add(entry.key, id)) {
      case Vocabulary::Added::yes:
        break;
      case Vocabulary::Added::text_taken:
        fail(what, fmt::format("model.vocab has the token {} twice", printable(entry.key)));
      case Vocabulary::Added::id_taken:
        fail(what, fmt::format("model.vocab gives the id {} to {} and to {}", id,
                               printable(vocabulary.text(id)), printable(entry.key)));
    }
  }
  return vocabulary;
}

/// One merge: "a b", or ["a", "b"].
std::pair<std::string_view, std::string_view> read_merge(dom::element entry, size_t index,
                                                         const std::string& what) {
  std::string_view line;
  if (entry.get_string().get(line) == simdjson::SUCCESS) {
    const size_t space = line.find(' ');
    if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) {
      fail(what, fmt::format("model.merges[{}] is {}, expected two parts with one space between them", index,
                             printable(line)));
    }
    return {line.substr(0, space), line.substr(space + 1)};
  }
  dom::array pair;
  std::string_view parts[2];
  size_t count = 0;
  if (entry.get_array().get(pair) == simdjson::SUCCESS) {
    for (const dom::element part : pair) {
      if (count == 2 || part.get_string().get(parts[count]) != simdjson::SUCCESS) {
        count = 3;
        break;
      }
      ++count;
    }
  }
  if (count != 2) fail(what, fmt::format("model.merges[{}] is no pair of strings", index));
  return {parts[0], parts[1]};
}

std::vector<Bpe::Merge> read_merges(dom::element model, const Vocabulary& vocabulary, std::string_view prefix,
                                    const std::string& what) {
  dom::array entries;
  if (model["merges"].get_array().get(entries) != simdjson::SUCCESS) {
    fail(what, "model.merges is missing or no list; expected [\"a b\", ...] or [[\"a\", \"b\"], ...]");
  }
  std::vector<Bpe::Merge> merges;
  merges.reserve(std::min<size_t>(entries.size(), 1 << 20));
  std::string joined;
  for (const dom::element entry : entries) {
    std::string_view line;
    if (merges.empty() && entry.get_string().get(line) == simdjson::SUCCESS && line.starts_with("#version"))
      continue;
    const auto parts = read_merge(entry, merges.size(), what);
    const std::string_view left = parts.first;
    const std::string_view right = parts.second;
    const auto need = [&](std::string_view token) {
      const auto id = vocabulary.find(token);
      if (!id) {
        fail(what, fmt::format("model.merges[{}] ({} and {}) needs the token {}, which is not in model.vocab",
                               merges.size(), printable(left), printable(right), printable(token)));
      }
      return *id;
    };
    const TokenId left_id = need(left);
    const TokenId right_id = need(right);
    joined = left;
    joined += right.starts_with(prefix) ? right.substr(prefix.size()) : right;
    merges.push_back({left_id, right_id, need(joined), static_cast<uint32_t>(merges.size())});
  }
  return merges;
}

std::shared_ptr<const Bpe> read_model(dom::element model, const std::string& what) {
  dom::object entries;
  if (model.get_object().get(entries) != simdjson::SUCCESS) fail(what, "\"model\" is no object");
  Json rest = Json::object();
  for (const auto entry : entries) {
    if (entry.key != "vocab" && entry.key != "merges")
      rest[std::string(entry.key)] = to_json(entry.value, what);
  }
  const Fields fields(rest, what + ": model");
  // Files older than the type field are told by their merges.
  if (fields.has("type") && fields.type() != "BPE") fields.unknown_type("model", "BPE");
  fields.only({"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
               "byte_fallback", "ignore_merges", "cache_capacity"});
  if (fields.has("dropout") && fields.get("dropout") != 0) {
    throw Error(ErrorKind::unsupported,
                fmt::format("{}: model.dropout is {}; random merges are not supported, set it to null", what,
                            fields.get("dropout").dump()));
  }
  BpeOptions options;
  options.unk_token = fields.text_or("unk_token", "");
  options.continuing_subword_prefix = fields.text_or("continuing_subword_prefix", "");
  options.end_of_word_suffix = fields.text_or("end_of_word_suffix", "");
  options.fuse_unk = fields.flag("fuse_unk", false);
  options.byte_fallback = fields.flag("byte_fallback", false);
  options.ignore_merges = fields.flag("ignore_merges", false);
  Vocabulary vocabulary = read_vocabulary(model, what);
  const auto merges = read_merges(model, vocabulary, options.continuing_subword_prefix, what);
  return std::make_shared<const Bpe>(std::move(vocabulary), merges, std::move(options), what);
}

/// The id that `tokenizers` gives a token of added_tokens: that of its text, or else the next one. The ids in
/// the file are what it wrote down, and it does not read them back. `last`: the highest id of the tokens
/// before, or -1.
TokenId added_token_id(const TokenizerParts& parts, const std::string& content, TokenId last) {
  if (const auto known = find_token(parts, content)) return *known;
  const auto count = static_cast<TokenId>(parts.model->vocabulary().count());
  return last >= count || (count == 0 && last >= 0) ? last + 1 : count;
}

void read_added_tokens(const Json& list, TokenizerParts& parts, const std::string& what) {
  if (list.is_null()) return;
  if (!list.is_array()) fail(what, fmt::format("\"added_tokens\" is {}, expected a list", list.type_name()));
  TokenId last = -1;
  std::unordered_map<TokenId, std::string> said;  // by the file's ids
  for (size_t i = 0; i < list.size(); ++i) {
    const Fields fields(list[i], fmt::format("{}: added_tokens[{}]", what, i));
    fields.only({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
    AddedToken token;
    token.id = static_cast<TokenId>(fields.number("id", 0, kMaxTokenId - 1));
    token.content = fields.text("content");
    token.special = fields.flag("special", false);
    token.single_word = fields.flag("single_word", false);
    token.lstrip = fields.flag("lstrip", false);
    token.rstrip = fields.flag("rstrip", false);
    token.normalized = fields.flag("normalized", !token.special);
    if (token.content.empty()) continue;  // nothing could ever match it
    const auto [holder, fresh] = said.emplace(token.id, token.content);
    if (!fresh && holder->second != token.content) {
      fail(fields.where(), fmt::format("the id {} is that of {} and of {}", token.id,
                                       printable(holder->second), printable(token.content)));
    }
    if (const auto same = parts.added_by_text.find(token.content); same != parts.added_by_text.end()) {
      AddedToken& other = parts.added[same->second];  // said again: the last one counts, special stays so
      token.special |= other.special;
      token.id = other.id;
      other = std::move(token);
      continue;
    }
    const TokenId id = added_token_id(parts, token.content, last);
    if (id != token.id) {
      const Vocabulary& vocabulary = parts.model->vocabulary();
      if (vocabulary.has(token.id) && !vocabulary.find(token.content)) {
        fail(fields.where(), fmt::format("the id {} of {} is that of {} in the vocabulary", token.id,
                                         printable(token.content), printable(vocabulary.text(token.id))));
      }
      log_warning(
          fmt::format("{}: the token {} has the id {} here; {}, which is that of its text or the next "
                      "one, is used, as Hugging Face tokenizers does",
                      fields.where(), printable(token.content), token.id, id));
      token.id = id;
    }
    last = std::max(last, id);
    parts.added_by_id[id] = parts.added.size();
    parts.added_by_text.emplace(token.content, parts.added.size());
    parts.added.push_back(std::move(token));
  }
}

}  // namespace

void add_token(TokenizerParts& parts, AddedToken token, const std::string& what) {
  if (token.content.empty()) return;  // nothing could ever match it
  if (const auto known = parts.model->vocabulary().find(token.content); known && *known != token.id) {
    log_warning(
        fmt::format("{}: the token {} has the id {} here and {} in the vocabulary; the latter is used", what,
                    printable(token.content), token.id, *known));
    token.id = *known;
  }
  if (parts.model->vocabulary().has(token.id) && parts.model->vocabulary().text(token.id) != token.content) {
    fail(what, fmt::format("the id {} of {} is that of {} in the vocabulary", token.id,
                           printable(token.content), printable(parts.model->vocabulary().text(token.id))));
  }
  if (const auto same = parts.added_by_text.find(token.content); same != parts.added_by_text.end()) {
    AddedToken& other = parts.added[same->second];
    if (other.id != token.id)
      fail(what,
           fmt::format("the token {} has the ids {} and {}", printable(token.content), other.id, token.id));
    other = std::move(token);  // said again: the last one counts
    return;
  }
  if (const auto [other, fresh] = parts.added_by_id.emplace(token.id, parts.added.size()); !fresh) {
    fail(what, fmt::format("the id {} is that of {} and of {}", token.id,
                           printable(parts.added[other->second].content), printable(token.content)));
  }
  parts.added_by_text.emplace(token.content, parts.added.size());
  parts.added.push_back(std::move(token));
}

std::optional<TokenId> find_token(const TokenizerParts& parts, std::string_view text) {
  const auto found = parts.added_by_text.find(std::string(text));
  if (found != parts.added_by_text.end()) return parts.added[found->second].id;
  return parts.model->vocabulary().find(text);
}

TokenizerParts parse_tokenizer_json(std::string_view text, const std::string& what) {
  dom::parser parser;
  dom::element root;
  auto error = parser.allocate(std::max<size_t>(text.size(), 64), kMaxDepth);
  if (error == simdjson::SUCCESS) error = parser.parse(simdjson::padded_string(text)).get(root);
  if (error != simdjson::SUCCESS) {
    fail(what, fmt::format("not valid JSON ({}); fetch the file again", simdjson::error_message(error)));
  }
  dom::object entries;
  if (root.get_object().get(entries) != simdjson::SUCCESS)
    fail(what, "no JSON object at the top, so no tokenizer.json");
  Json rest = Json::object();
  dom::element model;
  bool has_model = false;
  for (const auto entry : entries) {
    if (entry.key == "model") {
      model = entry.value;
      has_model = true;
    } else {
      rest[std::string(entry.key)] = to_json(entry.value, what);
    }
  }
  for (const auto& [name, value] : rest.items()) {
    const bool known = name == "version" || name == "truncation" || name == "padding" ||
                       name == "added_tokens" || name == "normalizer" || name == "pre_tokenizer" ||
                       name == "post_processor" || name == "decoder";
    if (!known)
      throw Error(
          ErrorKind::unsupported,
          fmt::format("{}: the field {} is not known, so the tokens could be wrong", what, printable(name)));
    if ((name == "truncation" || name == "padding") && !value.is_null()) {
      log_warning(
          fmt::format("{}: {} is set and not used; texts are tokenized whole", what, printable(name)));
    }
  }
  if (!has_model) fail(what, "\"model\" is missing; expected a BPE model");
  TokenizerParts parts;
  parts.model = read_model(model, what);
  const auto field = [&](const char* name) { return rest.contains(name) ? rest[name] : Json(nullptr); };
  const auto where = [&](const char* name) { return what + ": " + name; };
  parts.normalizer = Normalizer::from_json(field("normalizer"), where("normalizer"));
  parts.pre_tokenizer =
      PreTokenizer::from_json(field("pre_tokenizer"), where("pre_tokenizer"), parts.model->works_on_bytes());
  parts.post_processor = PostProcessor::from_json(field("post_processor"), where("post_processor"));
  parts.decoder = TokenDecoder::from_json(field("decoder"), where("decoder"));
  read_added_tokens(field("added_tokens"), parts, what);
  if (!parts.model->options().unk_token.empty())
    parts.unk = parts.model->vocabulary().find(parts.model->options().unk_token);
  return parts;
}

}  // namespace qwench
