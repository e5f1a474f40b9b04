#pragma once

#include <span>
#include <string>
#include <string_view>

#include "engine/generation.h"
#include "qwench/engine.h"

namespace qwench {

/// Each throws Error (invalid_argument) with a sentence that names the value and what is expected.
void check_range(const char* name, int value, int low, int high);
void check_ids(std::span<const TokenId> ids, const ModelInfo& info);
void check_request(const Request& request, const ModelInfo& info, const GenerationContext& context);

/// "1 token", "2 tokens"
std::string tokens(size_t count);
/// The end of a sentence about something that is longer than the context.
std::string what_to_shorten(std::string_view what, const ModelInfo& info);

}  // namespace qwench
