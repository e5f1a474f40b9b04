#include "text/gguf_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "checkpoint/gguf.h"
#include "checkpoint/printable.h"
#include "qwench/error.h"
#include "text/gguf_tokenizer_pre.h"
#include "text/tokenizer.h"
#include "text/tokenizer_parts.h"
#include "text/unicode_classes.h"

namespace qwench {
namespace {

[[noreturn]] void fail(const GgufVocabulary& v, const std::string& problem) {
  throw Error(ErrorKind::malformed, fmt::format("{}: {}", v.what, problem));
}

GgufTokenType type_of(const GgufVocabulary& v, size_t id) {
  return v.token_types.empty() ? GgufTokenType::normal : v.token_types[id];
}

bool in_model(GgufTokenType type) {
  return type == GgufTokenType::normal || type == GgufTokenType::unknown || type == GgufTokenType::byte;
}

/// Control and unused tokens stay out of it: no text gives them by merging.
Vocabulary model_vocabulary(const GgufVocabulary& v) {
  if (v.tokens.empty()) fail(v, "tokenizer.ggml.tokens is empty");
  if (v.tokens.size() > static_cast<size_t>(kMaxTokenId)) {
    fail(v, fmt::format("tokenizer.ggml.tokens has {} tokens, more than {}", v.tokens.size(), kMaxTokenId));
  }
  if (!v.token_types.empty() && v.token_types.size() != v.tokens.size()) {
    fail(v, fmt::format("tokenizer.ggml.token_type has {} entries for {} tokens", v.token_types.size(),
                        v.tokens.size()));
  }
  Vocabulary vocabulary;
  size_t bytes = 0;
  for (const auto token : v.tokens) bytes += token.size();
  vocabulary.reserve(v.tokens.size(), bytes);
  for (size_t id = 0; id < v.tokens.size(); ++id) {
    if (!in_model(type_of(v, id))) continue;
    if (vocabulary.add(v.tokens[id], static_cast<TokenId>(id)) == Vocabulary::Added::text_taken) {
      fail(v, fmt::format("tokenizer.ggml.tokens has {} twice, at {} and {}", printable(v.tokens[id]),
                          *vocabulary.find(v.tokens[id]), id));
    }
  }
  return vocabulary;
}

std::vector<Bpe::Merge> listed_merges(const GgufVocabulary& v, const Vocabulary& vocabulary) {
  std::vector<Bpe::Merge> merges;
  merges.reserve(v.merges.size());
  std::string joined;
  for (size_t i = 0; i < v.merges.size(); ++i) {
    const std::string_view line = v.merges[i];
    const size_t space = line.find(' ');
    if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) {
      fail(v, fmt::format("tokenizer.ggml.merges[{}] is {}, expected two parts with one space between them",
                          i, printable(line)));
    }
    const auto need = [&](std::string_view token) {
      const auto id = vocabulary.find(token);
      if (!id)
        fail(v, fmt::format("tokenizer.ggml.merges[{}] ({}) needs the token {}, which is not in "
                            "tokenizer.ggml.tokens",
                            i, printable(line), printable(token)));
      return *id;
    };
    joined = line.substr(0, space);
    joined += line.substr(space + 1);
    merges.push_back(
        {need(line.substr(0, space)), need(line.substr(space + 1)), need(joined), static_cast<uint32_t>(i)});
  }
  return merges;
}

/// SentencePiece's BPE (Kudo and Richardson 2018, arXiv:1808.06226) merges the adjacent pair whose joined
/// text is the token of the highest score: every way to cut a token in two tokens is a merge, ranked by its
/// score.
std::vector<Bpe::Merge> merges_by_score(const GgufVocabulary& v, const Vocabulary& vocabulary) {
  constexpr size_t kLongest = 1024;  // bytes; cutting is quadratic in it
  if (v.scores.size() != v.tokens.size()) {
    fail(v,
         fmt::format("tokenizer.ggml.scores has {} entries for {} tokens", v.scores.size(), v.tokens.size()));
  }
  std::vector<uint32_t> order(v.tokens.size());
  std::iota(order.begin(), order.end(), 0U);
  for (const float score : v.scores) {
    if (std::isnan(score)) fail(v, "tokenizer.ggml.scores holds a value that is not a number");
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return v.scores[a] > v.scores[b]; });
  std::vector<Bpe::Merge> merges;
  uint32_t rank = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t id = order[i];
    if (i > 0 && v.scores[id] != v.scores[order[i - 1]]) ++rank;  // equal scores: the leftmost pair
    const std::string_view token = v.tokens[id];
    if (type_of(v, id) != GgufTokenType::normal || token.size() > kLongest) continue;
    for (size_t cut = 1; cut < token.size(); ++cut) {
      if ((static_cast<uint8_t>(token[cut]) & 0xC0) == 0x80) continue;
      const auto left = vocabulary.find(token.substr(0, cut));
      const auto right = vocabulary.find(token.substr(cut));
      if (left && right) merges.push_back({*left, *right, static_cast<TokenId>(id), rank});
    }
  }
  return merges;
}

void add_tokens(const GgufVocabulary& v, TokenizerParts& parts) {
  for (size_t id = 0; id < v.tokens.size(); ++id) {
    const GgufTokenType type = type_of(v, id);
    if (type != GgufTokenType::control && type != GgufTokenType::user_defined) continue;
    AddedToken token;
    token.id = static_cast<TokenId>(id);
    token.content = v.tokens[id];
    token.special = type == GgufTokenType::control;
    add_token(parts, std::move(token), v.what);
  }
}

std::shared_ptr<const Bpe> byte_level_model(const GgufVocabulary& v, bool ignore_merges) {
  Vocabulary vocabulary = model_vocabulary(v);
  const auto merges = listed_merges(v, vocabulary);
  BpeOptions options;
  options.ignore_merges = ignore_merges;
  return std::make_shared<const Bpe>(std::move(vocabulary), merges, std::move(options), v.what);
}

std::shared_ptr<const Bpe> sentencepiece_model(const GgufVocabulary& v) {
  Vocabulary vocabulary = model_vocabulary(v);
  const auto merges = merges_by_score(v, vocabulary);
  BpeOptions options;
  options.byte_fallback = true;
  options.fuse_unk = true;
  if (v.unknown && vocabulary.has(*v.unknown)) options.unk_token = vocabulary.text(*v.unknown);
  return std::make_shared<const Bpe>(std::move(vocabulary), merges, std::move(options), v.what);
}

constexpr const char* kMark = "\xE2\x96\x81";  // U+2581 stands for a space

Json sentencepiece_normalizer(bool space_prefix) {
  const Json spaces = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kMark}};
  if (!space_prefix) return spaces;
  return {{"type", "Sequence"},
          {"normalizers", Json::array({{{"type", "Prepend"}, {"prepend", kMark}}, spaces})}};
}

Json sentencepiece_decoder(bool space_prefix) {
  Json steps = Json::array({{{"type", "Replace"}, {"pattern", {{"String", kMark}}}, {"content", " "}},
                            {{"type", "ByteFallback"}},
                            {{"type", "Fuse"}}});
  if (space_prefix) steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return {{"type", "Sequence"}, {"decoders", std::move(steps)}};
}

TokenizerParts make_parts(const GgufVocabulary& v) {
  TokenizerParts parts;
  bool add_bos = false;
  if (v.model == "gpt2") {
    const GgufPreTokenizer pre = gguf_pre_tokenizer(v.pre, v.what);
    parts.model = byte_level_model(v, pre.ignore_merges);
    parts.normalizer = Normalizer::from_json(pre.normalizer, v.what);
    parts.pre_tokenizer = PreTokenizer::from_json(pre.pre_tokenizer, v.what, parts.model->works_on_bytes());
    parts.decoder = TokenDecoder::from_json({{"type", "ByteLevel"}}, v.what);
    add_bos = pre.add_bos;
  } else if (v.model == "llama") {
    const bool space_prefix = v.add_space_prefix.value_or(true);
    parts.model = sentencepiece_model(v);
    parts.normalizer = Normalizer::from_json(sentencepiece_normalizer(space_prefix), v.what);
    parts.decoder = TokenDecoder::from_json(sentencepiece_decoder(space_prefix), v.what);
    add_bos = true;
  } else {
    throw Error(ErrorKind::unsupported,
                fmt::format("{}: tokenizer.ggml.model is {}; supported are \"gpt2\" (byte-level BPE) and "
                            "\"llama\" (SentencePiece BPE)",
                            v.what, printable(v.model)));
  }
  add_tokens(v, parts);
  parts.bos = v.bos;
  parts.eos = v.eos;
  parts.pad = v.padding;
  parts.unk = v.unknown;
  for (const auto& id : {v.eos, v.eot, v.eom}) {
    if (id) parts.stop_ids.push_back(*id);
  }
  std::vector<TokenId> before;
  std::vector<TokenId> after;
  if (v.add_bos.value_or(add_bos) && v.bos) before.push_back(*v.bos);
  if (v.add_eos.value_or(false) && v.eos) after.push_back(*v.eos);
  parts.post_processor = PostProcessor::around(std::move(before), std::move(after));
  return parts;
}

}  // namespace

bool has_gguf_vocabulary(const GgufFile& file) {
  // Converters write "none" for a checkpoint that came without a tokenizer.
  const auto model =
      file.find("tokenizer.ggml.model") == nullptr ? std::nullopt : file.string("tokenizer.ggml.model");
  return model && *model != "none" && *model != "no_vocab";
}

GgufVocabulary read_gguf_vocabulary(const GgufFile& file) {
  GgufVocabulary v;
  v.what = file.what();
  const auto need = [&](const char* key) {
    const auto value = file.string(key);
    if (!value) fail(v, fmt::format("{} is missing; the file has no tokenizer", key));
    return *value;
  };
  v.model = need("tokenizer.ggml.model");
  v.pre = file.string("tokenizer.ggml.pre").value_or("");
  v.tokens = file.strings("tokenizer.ggml.tokens").value_or(std::vector<std::string_view>());
  v.merges = file.strings("tokenizer.ggml.merges").value_or(std::vector<std::string_view>());
  v.scores = file.floats("tokenizer.ggml.scores").value_or(std::vector<float>());
  if (const auto types = file.integers("tokenizer.ggml.token_type")) {
    v.token_types.reserve(types->size());
    for (const int64_t type : *types) {
      if (type < 1 || type > 6)
        fail(v, fmt::format("tokenizer.ggml.token_type holds {}, expected 1 to 6", type));
      v.token_types.push_back(static_cast<GgufTokenType>(type));
    }
  }
  const auto id = [&](const char* key) -> std::optional<TokenId> {
    const auto value = file.integer(key);
    if (!value) return std::nullopt;
    if (*value < 0 || *value >= static_cast<int64_t>(v.tokens.size())) {
      fail(v, fmt::format("{} is {}, expected an id below {}", key, *value, v.tokens.size()));
    }
    return static_cast<TokenId>(*value);
  };
  v.bos = id("tokenizer.ggml.bos_token_id");
  v.eos = id("tokenizer.ggml.eos_token_id");
  v.eot = id("tokenizer.ggml.eot_token_id");
  v.eom = id("tokenizer.ggml.eom_token_id");
  v.unknown = id("tokenizer.ggml.unknown_token_id");
  v.padding = id("tokenizer.ggml.padding_token_id");
  v.add_bos = file.boolean("tokenizer.ggml.add_bos_token");
  v.add_eos = file.boolean("tokenizer.ggml.add_eos_token");
  v.add_space_prefix = file.boolean("tokenizer.ggml.add_space_prefix");
  return v;
}

std::shared_ptr<const Tokenizer> Tokenizer::from_gguf(const GgufVocabulary& vocabulary) {
  return std::make_shared<const Tokenizer>(make_parts(vocabulary));
}

}  // namespace qwench
