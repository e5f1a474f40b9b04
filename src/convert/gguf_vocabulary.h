#pragma once

#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf_writer.h"
#include "engine/model_text.h"

namespace qwench {

/// tokenizer.* from the tokenizer.json of a Hugging Face checkpoint: its byte-level BPE, under the name that
/// GGUF has for its way of cutting text, its special tokens, and its chat templates. A checkpoint without a
/// tokenizer adds nothing. Throws Error (unsupported) for a tokenizer that the format has no name for.
void add_vocabulary(GgufWriter& writer, const Checkpoint& checkpoint, const ModelText& text);

}  // namespace qwench
