#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "grammar/grammar.h"
#include "qwench/sampling.h"

namespace qwench {

/// A grammar as it runs: its states, found as they are needed and kept. A state is a set of stacks, each a
/// node of the grammar above the frames of the calls that are open; equal states and equal frames have the
/// same number, so that a step that was taken before is a look-up. Grows without bound: see bytes(). Not
/// thread-safe.
class StackPool {
 public:
  using StateId = int32_t;
  using FrameId = uint32_t;
  static constexpr StateId kDead = 0;
  /// Beneath it lies nothing: a text that returns there is complete.
  static constexpr FrameId kRoot = 0;
  /// What lies beneath is not known.
  static constexpr FrameId kUnknown = 1;
  static constexpr size_t kMostStacks = 20000;
  /// What lies beneath kUnknown is taken to be so deep.
  static constexpr int kUnknownDepth = Grammar::kDeepest / 2;

  struct Stack {
    uint32_t node;
    FrameId frame;

    friend auto operator<=>(const Stack&, const Stack&) = default;
  };
  struct State {
    std::vector<Stack> stacks;  ///< ascending by frame, then node; those that can take a byte or a token
    bool complete = false;      ///< the text may end here
    bool leaves = false;        ///< it may go on beneath kUnknown
  };

  /// `find` gives the id of the added token of a text, if there is one; else its bytes are taken.
  StackPool(const std::shared_ptr<const Grammar>& grammar,
            const std::function<std::optional<TokenId>(const std::string&)>& find);

  StateId start();
  StateId step(StateId state, uint8_t byte) {
    const StateId known = next_[static_cast<size_t>(state) * classes_ + class_of_[byte]];
    return known >= 0 ? known : find_step(state, byte);
  }
  /// After the added token `id`.
  StateId step_token(StateId state, TokenId id);
  const State& state(StateId id) const { return states_[static_cast<size_t>(id)]; }
  /// The added tokens that may come next.
  std::vector<TokenId> tokens(StateId state) const;

  /// The state of some stacks' nodes over kUnknown.
  StateId above_unknown(std::span<const Stack> stacks);
  /// The state after a return to `frame`, which is not kUnknown.
  StateId after_return(FrameId frame);
  /// Whether above_unknown() stands for stacks over this frame: none that nests too deep.
  bool is_shallow(FrameId frame) const { return shallow_ && frames_[frame].depth <= kUnknownDepth; }

  /// A state of another pool of the same grammar in this one.
  StateId import(const StackPool& other, StateId state);

  size_t bytes() const { return bytes_; }

 private:
  struct Frame {
    uint32_t node;  // to return to
    FrameId parent;
    uint16_t depth;
  };

  void bind(const std::function<std::optional<TokenId>(const std::string&)>& find);
  void find_classes();
  StateId find_step(StateId state, uint8_t byte);
  FrameId push(uint32_t node, FrameId parent);
  void add(Stack stack);
  StateId close();
  void follow(const Stack& stack);
  StateId intern(State state);
  FrameId import_frame(const StackPool& other, FrameId frame);

  Grammar grammar_;  // with its special tokens bound
  std::vector<bool> tails_;
  bool shallow_ = true;     // no text needs more frames than are left above kUnknownDepth
  std::vector<bool> ends_;  // by node: of a rule
  uint8_t class_of_[256];
  size_t classes_ = 0;

  std::vector<State> states_;
  std::vector<StateId> next_;  // [states * classes]; -1: not known yet
  std::unordered_multimap<uint64_t, StateId> by_hash_;
  std::vector<Frame> frames_;
  std::unordered_map<uint64_t, FrameId> by_return_;  // node << 32 | parent
  std::unordered_map<FrameId, StateId> after_return_;
  size_t bytes_ = 0;

  // Of the state that is being built.
  std::vector<Stack> todo_;
  std::unordered_set<uint64_t> seen_;
  State building_;
};

}  // namespace qwench
