#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "text/jinja/ast.h"

namespace qwench::jinja {

/// A function of the template: the template itself, a macro, the body of a call block, a recursive loop, the
/// test of a loop, a block. Each call of it has an activation with this many variables.
struct FunctionScope {
  const FunctionScope* outer = nullptr;
  int depth = 0;
  int slots = 0;
};

/// The names of one scope (a template, loop body, macro, with ...), after Jinja's rules: a name that is read
/// before anything assigns it comes from the enclosing scope or the context; a name assigned here shadows it
/// from then on; a name assigned on some branches only keeps the outer value on the others.
class Symbols {
 public:
  Symbols(const Symbols* parent, FunctionScope* function)
      : parent_(parent), function_(function), slots_(std::make_shared<std::map<std::string, int>>()) {}

  void load(const std::string& name);
  void store(const std::string& name);
  int declare_parameter(const std::string& name);  ///< gives its slot
  /// One branch of an if: sees what this scope has seen so far and collects what comes new.
  Symbols branch() const;
  /// Takes over what the branches of an if have seen.
  void merge_branches(const std::vector<Symbols>& branches);

  /// The variable of a name that was loaded or stored here or outside, as seen from this scope's function.
  VariableRef variable(const std::string& name);
  /// What must be done when the scope is entered.
  ScopeLoads loads() const;
  /// All names assigned in this scope and around it.
  std::vector<Export> visible_stores() const;
  FunctionScope* function() const { return function_; }

 private:
  struct Place {
    const FunctionScope* function;
    int slot;
  };
  enum class Load : uint8_t { parameter, context, alias, undefined };
  struct LoadRule {
    Load load;
    std::string name;
    Place alias;
  };

  const Place* find(const std::string& name) const;
  bool in_this_scope(const std::string& name) const;
  bool stored_in_this_scope(const std::string& name) const;
  Place define(const std::string& name, LoadRule rule);
  VariableRef reference(const Place& place) const;

  const Symbols* parent_;
  const Symbols* base_ = nullptr;  // of a branch: the same scope before it
  FunctionScope* function_;
  std::shared_ptr<std::map<std::string, int>> slots_;  // shared by the branches
  std::map<std::string, Place> places_;
  std::map<int, LoadRule> loads_;
  std::set<std::string> stores_;
};

}  // namespace qwench::jinja
