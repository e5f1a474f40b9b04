#include "text/added_tokens.h"

#include <algorithm>

#include "text/unicode_classes.h"

namespace qwench {
namespace {

uint16_t properties_before(std::string_view text, size_t place, size_t& start) {
  start = place - 1;
  while ((static_cast<uint8_t>(text[start]) & 0xC0) == 0x80) --start;
  const char* p = text.data() + start;
  return unicode::property_table()[unicode::next_char(p)];
}

uint16_t properties_at(std::string_view text, size_t place, size_t& end) {
  const char* p = text.data() + place;
  const uint16_t properties = unicode::property_table()[unicode::next_char(p)];
  end = static_cast<size_t>(p - text.data());
  return properties;
}

bool word_before(std::string_view text, size_t place) {
  size_t start;
  return place > 0 && properties_before(text, place, start) & unicode::kWord;
}

bool word_at(std::string_view text, size_t place) {
  size_t end;
  return place < text.size() && properties_at(text, place, end) & unicode::kWord;
}

/// Where the white space before `place` begins, but not before `lowest`.
size_t space_begin(std::string_view text, size_t place, size_t lowest) {
  size_t start;
  while (place > lowest && properties_before(text, place, start) & unicode::kWhiteSpace) place = start;
  return std::max(place, lowest);
}

size_t space_end(std::string_view text, size_t place) {
  size_t end;
  while (place < text.size() && properties_at(text, place, end) & unicode::kWhiteSpace) place = end;
  return place;
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(std::vector<AddedToken> tokens) : ends_(1, -1) {
  for (AddedToken& token : tokens) {
    if (token.content.empty()) continue;
    uint32_t node = 0;
    for (const char c : token.content) {
      const uint64_t key = uint64_t{node} << 8 | static_cast<uint8_t>(c);
      const auto [child, added] = children_.emplace(key, static_cast<uint32_t>(ends_.size()));
      if (added) ends_.push_back(-1);
      node = child->second;
    }
    begins_[static_cast<uint8_t>(token.content[0])] = true;
    if (ends_[node] < 0) ends_[node] = static_cast<int>(tokens_.size());
    tokens_.push_back(std::move(token));
  }
}

int AddedTokenMatcher::longest(std::string_view text, size_t trusted) const {
  int best = -1;
  uint32_t node = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto child = children_.find(uint64_t{node} << 8 | static_cast<uint8_t>(text[i]));
    if (child == children_.end()) break;
    node = child->second;
    if (ends_[node] < 0) continue;
    if (i < trusted || !tokens_[static_cast<size_t>(ends_[node])].special) best = ends_[node];
  }
  return best;
}

void AddedTokenMatcher::split(std::string_view text, std::span<const ByteSpan> trusted, bool skip_special,
                              std::vector<TextPart>& parts) const {
  size_t done = 0;  // what is before it lies in parts
  auto span = trusted.begin();
  for (size_t i = 0; !tokens_.empty() && i < text.size();) {
    if (!begins_[static_cast<uint8_t>(text[i])]) {
      ++i;
      continue;
    }
    while (span != trusted.end() && span->end <= i) ++span;
    const int found = longest(text.substr(i), span != trusted.end() && span->begin <= i ? span->end - i : 0);
    if (found < 0) {
      ++i;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<size_t>(found)];
    size_t begin = i;
    size_t end = i + token.content.size();
    i = end;  // a match that is refused is passed over whole
    if (skip_special && token.special) continue;
    if (token.single_word && (word_before(text, begin) || word_at(text, end))) continue;
    // What an rstrip before took along is matched again, but for what this one's lstrip lets go of.
    if (token.lstrip) begin = std::max(space_begin(text, begin, std::min(done, begin)), done);
    if (token.rstrip) end = space_end(text, end);
    if (done < begin) parts.push_back({{done, begin}, -1});
    if (begin < end) parts.push_back({{begin, end}, token.id});
    done = end;
  }
  if (done < text.size()) parts.push_back({{done, text.size()}, -1});
}

}  // namespace qwench
