#include "grammar/stack_pool.h"

#include <algorithm>

#include "grammar/grammar_checks.h"
#include "qwench/error.h"

namespace qwench {
namespace {

using EdgeKind = Grammar::EdgeKind;

uint64_t pair_of(uint32_t a, uint32_t b) { return (uint64_t{a} << 32) | b; }

uint64_t hash_of(const StackPool::State& state) {
  uint64_t hash = 0xCBF29CE484222325ULL + static_cast<uint64_t>(state.complete) * 2 + state.leaves;
  for (const StackPool::Stack& stack : state.stacks)
    hash = (hash ^ pair_of(stack.node, stack.frame)) * 0x9E3779B97F4A7C15ULL, hash ^= hash >> 29;
  return hash;
}

}  // namespace

StackPool::StackPool(const std::shared_ptr<const Grammar>& grammar,
                     const std::function<std::optional<TokenId>(const std::string&)>& find)
    : grammar_(*grammar) {
  bind(find);
  tails_ = find_tails(grammar_);
  find_classes();
  frames_.push_back({0, 0, 0});              // kRoot
  frames_.push_back({0, 0, kUnknownDepth});  // kUnknown
  intern({});                                // kDead
}

void StackPool::bind(const std::function<std::optional<TokenId>(const std::string&)>& find) {
  const size_t nodes = grammar_.nodes.size();
  for (size_t node = 0; node < nodes; ++node) {
    for (uint32_t i = 0; i < grammar_.nodes[node].edge_count; ++i) {
      const size_t at = grammar_.nodes[node].first_edge + i;
      const Grammar::Edge edge = grammar_.edges[at];
      if (edge.kind != EdgeKind::special) continue;
      const std::string& text = grammar_.specials[edge.what];
      if (const auto id = find(text)) {
        grammar_.edges[at].what = static_cast<uint32_t>(*id);
        continue;
      }
      for (size_t k = 0; k < text.size(); ++k) {
        const bool last = k + 1 == text.size();
        const auto byte = static_cast<uint8_t>(text[k]);
        const auto next = static_cast<uint32_t>(grammar_.nodes.size());
        const Grammar::Edge step{EdgeKind::bytes, byte, byte, last ? edge.target : next, 0};
        if (k == 0) {
          grammar_.edges[at] = step;
        } else {
          grammar_.edges.push_back(step);
        }
        if (last) break;
        grammar_.nodes.push_back(
            {static_cast<uint32_t>(grammar_.edges.size()), 1, next, grammar_.nodes[edge.target].depth});
      }
    }
  }
  ends_.assign(grammar_.nodes.size(), false);
  for (const Grammar::Rule& rule : grammar_.rules) ends_[rule.end] = true;
  for (const Grammar::Node& node : grammar_.nodes) {
    shallow_ = shallow_ && (node.depth == kNeverEnds || node.depth < Grammar::kDeepest - kUnknownDepth);
  }
}

/// Bytes between which no edge tells share their steps.
void StackPool::find_classes() {
  bool begins[257] = {true};
  for (const Grammar::Edge& edge : grammar_.edges) {
    if (edge.kind != EdgeKind::bytes) continue;
    begins[edge.low] = true;
    begins[edge.high + 1] = true;
  }
  for (size_t byte = 0; byte < 256; ++byte) {
    if (begins[byte]) ++classes_;
    class_of_[byte] = static_cast<uint8_t>(classes_ - 1);
  }
}

StackPool::StateId StackPool::intern(State state) {
  std::sort(state.stacks.begin(), state.stacks.end(), [](const Stack& a, const Stack& b) {
    return a.frame != b.frame ? a.frame < b.frame : a.node < b.node;
  });
  const uint64_t hash = hash_of(state);
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto found = first; found != last; ++found) {
    const State& known = states_[static_cast<size_t>(found->second)];
    if (known.stacks == state.stacks && known.complete == state.complete && known.leaves == state.leaves)
      return found->second;
  }
  const auto id = static_cast<StateId>(states_.size());
  bytes_ += sizeof(State) + state.stacks.size() * sizeof(Stack) + classes_ * sizeof(StateId) + 48;
  states_.push_back(std::move(state));
  next_.resize(next_.size() + classes_, id == kDead ? kDead : -1);
  by_hash_.emplace(hash, id);
  return id;
}

StackPool::FrameId StackPool::push(uint32_t node, FrameId parent) {
  const auto [found, is_new] =
      by_return_.emplace(pair_of(node, parent), static_cast<FrameId>(frames_.size()));
  if (is_new) {
    frames_.push_back({node, parent, static_cast<uint16_t>(frames_[parent].depth + 1)});
    bytes_ += sizeof(Frame) + 48;
  }
  return found->second;
}

void StackPool::add(Stack stack) {
  if (!seen_.insert(pair_of(stack.node, stack.frame)).second) return;
  if (seen_.size() > kMostStacks) {
    todo_.clear();
    seen_.clear();
    building_ = {};
    throw Error(ErrorKind::invalid_argument,
                "the grammar is too ambiguous: more than 20000 ways to go on at one place; write it with "
                "fewer alternatives that begin alike");
  }
  todo_.push_back(stack);
}

/// What `todo_` reaches while nothing is taken.
StackPool::StateId StackPool::close() {
  while (!todo_.empty()) {
    const Stack stack = todo_.back();
    todo_.pop_back();
    if (!ends_[stack.node]) {
      follow(stack);
    } else if (stack.frame == kRoot) {
      building_.complete = true;
    } else if (stack.frame == kUnknown) {
      building_.leaves = true;
    } else {
      add({frames_[stack.frame].node, frames_[stack.frame].parent});
    }
  }
  seen_.clear();
  return intern(std::exchange(building_, {}));
}

void StackPool::follow(const Stack& stack) {
  const Grammar::Node& node = grammar_.nodes[stack.node];
  const int depth = frames_[stack.frame].depth;
  bool takes = false;
  for (uint32_t i = 0; i < node.edge_count; ++i) {
    const Grammar::Edge& edge = grammar_.edges[node.first_edge + i];
    switch (edge.kind) {
      case EdgeKind::bytes:
      case EdgeKind::special:
        takes = true;
        break;
      case EdgeKind::empty:
        add({edge.target, stack.frame});
        break;
      case EdgeKind::call: {
        const uint32_t start = grammar_.rules[edge.what].start;
        const bool tail = tails_[edge.target];
        if (depth + (tail ? 0 : 1) + grammar_.nodes[start].depth > Grammar::kDeepest) break;
        add({start, tail ? stack.frame : push(edge.target, stack.frame)});
        break;
      }
    }
  }
  if (takes) building_.stacks.push_back(stack);
}

StackPool::StateId StackPool::start() {
  add({grammar_.rules[grammar_.root].start, kRoot});
  return close();
}

StackPool::StateId StackPool::find_step(StateId state, uint8_t byte) {
  for (const Stack& stack : states_[static_cast<size_t>(state)].stacks) {
    const Grammar::Node& node = grammar_.nodes[stack.node];
    for (uint32_t i = 0; i < node.edge_count; ++i) {
      const Grammar::Edge& edge = grammar_.edges[node.first_edge + i];
      if (edge.kind == EdgeKind::bytes && edge.low <= byte && byte <= edge.high)
        add({edge.target, stack.frame});
    }
  }
  const StateId next = close();
  next_[static_cast<size_t>(state) * classes_ + class_of_[byte]] = next;
  return next;
}

StackPool::StateId StackPool::step_token(StateId state, TokenId id) {
  for (const Stack& stack : states_[static_cast<size_t>(state)].stacks) {
    const Grammar::Node& node = grammar_.nodes[stack.node];
    for (uint32_t i = 0; i < node.edge_count; ++i) {
      const Grammar::Edge& edge = grammar_.edges[node.first_edge + i];
      if (edge.kind == EdgeKind::special && edge.what == static_cast<uint32_t>(id))
        add({edge.target, stack.frame});
    }
  }
  return close();
}

std::vector<TokenId> StackPool::tokens(StateId state) const {
  std::vector<TokenId> ids;
  if (grammar_.specials.empty()) return ids;
  for (const Stack& stack : states_[static_cast<size_t>(state)].stacks) {
    const Grammar::Node& node = grammar_.nodes[stack.node];
    for (uint32_t i = 0; i < node.edge_count; ++i) {
      const Grammar::Edge& edge = grammar_.edges[node.first_edge + i];
      if (edge.kind == EdgeKind::special) ids.push_back(static_cast<TokenId>(edge.what));
    }
  }
  return ids;
}

StackPool::StateId StackPool::above_unknown(std::span<const Stack> stacks) {
  for (const Stack& stack : stacks) add({grammar_.nodes[stack.node].alias, kUnknown});
  return close();
}

StackPool::StateId StackPool::after_return(FrameId frame) {
  const auto known = after_return_.find(frame);
  if (known != after_return_.end()) return known->second;
  if (frame == kRoot) {
    building_.complete = true;
  } else {
    add({frames_[frame].node, frames_[frame].parent});
  }
  const StateId state = close();
  after_return_.emplace(frame, state);
  return state;
}

StackPool::FrameId StackPool::import_frame(const StackPool& other, FrameId frame) {
  if (frame == kRoot || frame == kUnknown) return frame;
  std::vector<uint32_t> path;
  for (; frame != kRoot && frame != kUnknown; frame = other.frames_[frame].parent)
    path.push_back(other.frames_[frame].node);
  for (size_t i = path.size(); i-- > 0;) frame = push(path[i], frame);
  return frame;
}

StackPool::StateId StackPool::import(const StackPool& other, StateId state) {
  State copy = other.states_[static_cast<size_t>(state)];
  for (Stack& stack : copy.stacks) stack.frame = import_frame(other, stack.frame);
  return intern(std::move(copy));
}

bool accepts(const Grammar& grammar, std::string_view text) {
  StackPool pool(std::make_shared<const Grammar>(grammar),
                 [](const std::string&) { return std::optional<TokenId>(); });
  StackPool::StateId state = pool.start();
  for (const char byte : text) state = pool.step(state, static_cast<uint8_t>(byte));
  return pool.state(state).complete;
}

}  // namespace qwench
