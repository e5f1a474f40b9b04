#include "text/jinja/scopes.h"

#include "text/jinja/unicode.h"

namespace qwench::jinja {

Activation::Activation(Heap& heap, int count, std::shared_ptr<Activation> outer_activation)
    : Collectable(heap),
      slots(static_cast<size_t>(count)),
      outer(std::move(outer_activation)),
      heap_(heap),
      held_(sizeof(Activation) + 32 + slots.size() * sizeof(Value)) {
  heap_.hold(held_);
}

Activation::~Activation() {
  heap_.let_go(held_);
  release(std::move(slots));
  release(std::move(outer));
}

void Activation::surrender(std::vector<Value>& values, std::vector<std::shared_ptr<Collectable>>& others) {
  for (Value& slot : slots) values.push_back(std::move(slot));
  slots.clear();
  others.push_back(std::move(outer));
}

Context::~Context() {
  std::vector<Value> values;
  for (auto& [name, value] : variables_) values.push_back(std::move(value));
  release(std::move(values));
}

void Context::surrender(std::vector<Value>& values, std::vector<std::shared_ptr<Collectable>>&) {
  for (auto& [name, value] : variables_) values.push_back(std::move(value));
  variables_.clear();
}

Value Context::find(const std::string& name) const {
  const auto found = variables_.find(name);
  return found == variables_.end() ? Value() : found->second;
}

size_t Output::count_written() {
  counted_ += count_code_points(text_.view().substr(counted_bytes_));
  counted_bytes_ = text_.size();
  return counted_;
}

TrackedText Output::take() {
  if (refused_) fail(*refused_);
  return std::move(text_);
}

void Output::grow() {
  const size_t more = std::max(text_.size() - held_, size_t{4096});
  rt_.heap.hold(more);
  held_ += more;
  rt_.work(more);
}

}  // namespace qwench::jinja
