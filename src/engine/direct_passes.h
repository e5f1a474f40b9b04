#pragma once

#include "engine/loaded_model.h"
#include "model/block_pool.h"

namespace qwench {

/// A pass beside the scheduler, while it holds nothing; see Engine. By the thread that owns the model.
Score score_directly(LoadedModel& model, BlockPool& blocks, std::span<const TokenId> ids, int top);

}  // namespace qwench
