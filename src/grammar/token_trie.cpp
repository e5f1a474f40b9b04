#include "grammar/token_trie.h"

#include <algorithm>

#include "text/token_bytes.h"
#include "text/tokenizer.h"

namespace qwench {

TokenTrie::TokenTrie(std::vector<std::pair<std::string, TokenId>> tokens, int vocabulary_size)
    : vocabulary_size_(vocabulary_size) {
  std::erase_if(tokens, [&](const auto& token) {
    return token.first.empty() || token.first.size() > kLongestToken || token.second < 0 ||
           token.second >= vocabulary_size;
  });
  std::sort(tokens.begin(), tokens.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  begins_.assign(static_cast<size_t>(vocabulary_size) + 1, 0);
  size_t at = 0;
  for (int id = 0; id < vocabulary_size; ++id) {
    begins_[static_cast<size_t>(id)] = static_cast<uint32_t>(arena_.size());
    for (; at < tokens.size() && tokens[at].second == id; ++at) {
      if (begins_[static_cast<size_t>(id)] == arena_.size()) arena_ += tokens[at].first;
    }
  }
  begins_.back() = static_cast<uint32_t>(arena_.size());

  std::sort(tokens.begin(), tokens.end());
  std::vector<uint32_t> path;  // of the token before
  std::string_view last;
  const auto leave = [&](size_t depth) {
    for (; path.size() > depth; path.pop_back())
      nodes_[path.back()].next = static_cast<uint32_t>(nodes_.size());
  };
  for (const auto& [bytes, id] : tokens) {
    const size_t common = static_cast<size_t>(
        std::mismatch(last.begin(), last.end(), bytes.begin(), bytes.end()).first - last.begin());
    if (common == bytes.size()) {
      nodes_[path.back()].has_more = true;
      others_.emplace_back(path.back(), id);
      continue;
    }
    leave(common);
    for (size_t i = common; i < bytes.size(); ++i) {
      path.push_back(static_cast<uint32_t>(nodes_.size()));
      nodes_.push_back({0, -1, static_cast<uint16_t>(i + 1), static_cast<uint8_t>(bytes[i]), false});
    }
    nodes_.back().token = id;
    deepest_ = std::max(deepest_, bytes.size());
    last = bytes;
  }
  leave(0);
}

TokenTrie TokenTrie::of(const Tokenizer& tokenizer, int valid_ids) {
  std::vector<std::pair<std::string, TokenId>> tokens;
  for (TokenId id = 0; id < valid_ids; ++id) {
    if (tokenizer.has(id) && !tokenizer.is_added(id) && !tokenizer.is_special(id))
      tokens.emplace_back(token_bytes(tokenizer, id), id);
  }
  return TokenTrie(std::move(tokens), valid_ids);
}

std::string_view TokenTrie::bytes_of(TokenId id) const {
  if (id < 0 || id >= vocabulary_size_) return {};
  const size_t begin = begins_[static_cast<size_t>(id)];
  return std::string_view(arena_).substr(begin, begins_[static_cast<size_t>(id) + 1] - begin);
}

}  // namespace qwench
