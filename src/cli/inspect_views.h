#pragma once

#include <optional>
#include <string>
#include <vector>

#include "inspect/listing.h"
#include "inspect/model_card.h"
#include "inspect/model_diff.h"
#include "inspect/tensor_stats.h"

namespace qwench::cli {

// The views of `qwench inspect` as text: columns for people, cut by nothing, colours where `colours`.

std::string card_text(const ModelCard& card, const Listing& listing, bool colours);
std::string config_text(const std::vector<ConfigField>& fields, const std::vector<std::string>& unused,
                        bool colours);
/// One line a tensor: name, type, shape, bytes, file and offset; with `stats` those too, in the same order.
std::string tensors_text(const std::vector<const ListedTensor*>& tensors, const Listing& listing,
                         const std::vector<std::optional<TensorStats>>& stats, bool colours);
std::string diff_text(const ModelDiff& diff, bool colours);

Json tensors_json(const std::vector<const ListedTensor*>& tensors, const Listing& listing,
                  const std::vector<std::optional<TensorStats>>& stats);
Json config_json(const std::vector<ConfigField>& fields);

}  // namespace qwench::cli
