#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/things.h"

namespace qwench::jinja {

/// The variables of one running function of the template.
class Activation final : public Collectable {
 public:
  Activation(Heap& heap, int count, std::shared_ptr<Activation> outer_activation);
  ~Activation() override;
  void surrender(std::vector<Value>& values, std::vector<std::shared_ptr<Collectable>>& others) override;

  std::vector<Value> slots;
  std::shared_ptr<Activation> outer;  // where the function was defined

 private:
  Heap& heap_;
  size_t held_;
};

/// The variables that are known by name: those passed in, the globals, and what the top level of the template
/// set.
class Context final : public Collectable {
 public:
  using Variables = std::unordered_map<std::string, Value>;
  Context(Heap& heap, Variables variables) : Collectable(heap), variables_(std::move(variables)) {}
  ~Context() override;
  void surrender(std::vector<Value>& values, std::vector<std::shared_ptr<Collectable>>& others) override;
  Value find(const std::string& name) const;  ///< missing when there is none
  void set(const std::string& name, Value value) { variables_[name] = std::move(value); }
  const Variables& variables() const { return variables_; }

 private:
  Variables variables_;
};

/// Text that is being written: counted as memory and bounded.
class Output {
 public:
  explicit Output(Runtime& rt) : rt_(rt) {}
  ~Output() { rt_.heap.let_go(held_); }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void append(const std::string& template_text) {
    text_.append(template_text, false);
    account();
  }
  void append(const TrackedText& text) {
    text_.append(text);
    account();
  }
  const TrackedText& text() const { return text_; }
  /// The text, moved out; fails when something was written that is no text.
  TrackedText take();
  /// Python finds a piece that is no text only when it joins the pieces.
  void refuse(std::string message) { refused_ = std::move(message); }
  /// The code points written so far; each is counted once.
  size_t count_written();

 private:
  void account() {
    rt_.check_size(text_.size());
    if (text_.size() > held_) grow();
  }
  void grow();

  Runtime& rt_;
  TrackedText text_;
  size_t held_ = 0;
  size_t counted_bytes_ = 0;
  size_t counted_ = 0;
  std::optional<std::string> refused_;
};

/// Where a piece of the template runs.
struct Frame {
  std::shared_ptr<Activation> activation;
  std::shared_ptr<Context> context;
  Output* out;

  Value& variable(const VariableRef& ref) const {
    Activation* at = activation.get();
    for (int i = 0; i < ref.hops; ++i) at = at->outer.get();
    return at->slots[static_cast<size_t>(ref.slot)];
  }
};

}  // namespace qwench::jinja
