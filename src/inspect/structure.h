#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/json.h"
#include "inspect/listing.h"
#include "inspect/model_card.h"

namespace qwench {

/// A module of the model, or a run of equal ones folded into one.
struct ModuleNode {
  std::string name;                          ///< "self_attn"; of folded ones "0–27" or "0, 2–5"
  int copies = 1;                            ///< equal modules that stand here as one
  int64_t parameters = 0;                    ///< of one copy
  std::vector<const ListedTensor*> tensors;  ///< its own: weight, bias; of the first copy
  std::vector<ModuleNode> children;
};

/// The tree of modules by the parts of the tensors' names; numbered siblings whose insides have equal shapes
/// and types are folded. Tensors are those of `listing`, which must outlive it.
ModuleNode module_tree(const Listing& listing);

/// One line a module, drawn as a tree: "├─ q_proj   1024 → 2048   BF16".
std::string draw(const ModuleNode& tree, const ModelCard& card);
Json to_json(const ModuleNode& tree);

}  // namespace qwench
