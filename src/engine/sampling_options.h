#pragma once

#include <string>
#include <string_view>

#include "core/json.h"
#include "qwench/sampling.h"

namespace qwench {

/// Reads one field of a request or of a generation_config.json by the name of its member ("top_k", ...) into
/// `options`; null leaves it open. `logit_bias` is an object of ids, {"42": -1.5}, or an array of [id, bias].
/// False when `name` is no sampling field. Throws Error (invalid_argument) that names the field and the type
/// expected; ranges are checked by SamplingOptions::resolve.
bool read_sampling_field(std::string_view name, const Json& value, SamplingOptions& options);

/// The same for the members of StopParams. `stop` is a string or an array of strings.
bool read_stop_field(std::string_view name, const Json& value, StopParams& stop);

/// Throws Error (invalid_argument) that names the field, the value and its range.
void check(const StopParams& stop);

/// The effective set as one object with the members' names; `seed` is null when it is to be drawn.
Json to_json(const SamplingParams& params);
/// Adds the members of StopParams to `object`.
void add_to_json(const StopParams& stop, Json& object);

/// Draws a seed where the effective set, `options` over `weaker`, has a temperature above 0 and no seed:
/// whoever keeps `options` can then say which seed an answer came from. 32 bits, short enough to type. Throws
/// Error as SamplingOptions::resolve does.
void draw_seed(SamplingOptions& options, const SamplingOptions& weaker);

/// "temperature 0.7, top_k 20, top_p 0.8": what is not off, for people; "greedy" for temperature 0.
std::string describe(const SamplingParams& params);

}  // namespace qwench
