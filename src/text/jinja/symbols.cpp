#include "text/jinja/symbols.h"

namespace qwench::jinja {

const Symbols::Place* Symbols::find(const std::string& name) const {
  for (const Symbols* scope = this; scope != nullptr;
       scope = scope->base_ != nullptr ? scope->base_ : scope->parent_) {
    const auto found = scope->places_.find(name);
    if (found != scope->places_.end()) return &found->second;
  }
  return nullptr;
}

bool Symbols::in_this_scope(const std::string& name) const {
  for (const Symbols* scope = this; scope != nullptr; scope = scope->base_) {
    if (scope->places_.count(name) != 0) return true;
  }
  return false;
}

bool Symbols::stored_in_this_scope(const std::string& name) const {
  for (const Symbols* scope = this; scope != nullptr; scope = scope->base_) {
    if (scope->stores_.count(name) != 0) return true;
  }
  return false;
}

Symbols Symbols::branch() const {
  Symbols result(parent_, function_);
  result.base_ = this;
  result.slots_ = slots_;
  return result;
}

Symbols::Place Symbols::define(const std::string& name, LoadRule rule) {
  const auto [entry, fresh] = slots_->try_emplace(name, function_->slots);
  if (fresh) ++function_->slots;
  const Place place{function_, entry->second};
  places_[name] = place;
  loads_[place.slot] = std::move(rule);
  return place;
}

void Symbols::load(const std::string& name) {
  if (find(name) == nullptr) define(name, {Load::context, name, {}});
}

void Symbols::store(const std::string& name) {
  stores_.insert(name);
  if (in_this_scope(name)) return;
  const Place* outer = parent_ == nullptr ? nullptr : parent_->find(name);
  if (outer != nullptr) {
    define(name, {Load::alias, name, *outer});
  } else {
    define(name, {Load::undefined, name, {}});
  }
}

int Symbols::declare_parameter(const std::string& name) {
  stores_.insert(name);
  return define(name, {Load::parameter, name, {}}).slot;
}

void Symbols::merge_branches(const std::vector<Symbols>& branches) {
  std::set<std::string> assigned;
  for (const Symbols& branch : branches) {
    for (const std::string& name : branch.stores_) {
      if (!stored_in_this_scope(name)) assigned.insert(name);
    }
  }
  for (const Symbols& branch : branches) {
    for (const auto& [name, place] : branch.places_) places_[name] = place;
    for (const auto& [slot, rule] : branch.loads_) loads_[slot] = rule;
    stores_.insert(branch.stores_.begin(), branch.stores_.end());
  }
  for (const std::string& name : assigned) {
    const Place* outer = parent_ == nullptr ? nullptr : parent_->find(name);
    const int slot = find(name)->slot;
    loads_[slot] = outer != nullptr ? LoadRule{Load::alias, name, *outer} : LoadRule{Load::context, name, {}};
  }
}

VariableRef Symbols::reference(const Place& place) const {
  return {function_->depth - place.function->depth, place.slot};
}

VariableRef Symbols::variable(const std::string& name) {
  load(name);
  return reference(*find(name));
}

ScopeLoads Symbols::loads() const {
  ScopeLoads result;
  for (const auto& [slot, rule] : loads_) {
    switch (rule.load) {
      case Load::parameter:
        break;
      case Load::context:
        result.push_back({slot, ScopeLoad::Source::context, rule.name, {}});
        break;
      case Load::alias:
        result.push_back({slot, ScopeLoad::Source::alias, {}, reference(rule.alias)});
        break;
      case Load::undefined:
        result.push_back({slot, ScopeLoad::Source::undefined, {}, {}});
        break;
    }
  }
  return result;
}

std::vector<Export> Symbols::visible_stores() const {
  std::set<std::string> seen;
  std::vector<Export> result;
  for (const Symbols* scope = this; scope != nullptr; scope = scope->parent_) {
    for (const std::string& name : scope->stores_) {
      if (seen.insert(name).second) result.push_back({name, reference(*find(name))});
    }
  }
  return result;
}

}  // namespace qwench::jinja
