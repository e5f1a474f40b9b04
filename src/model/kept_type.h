#pragma once

#include <optional>

#include "core/tensor_view.h"

namespace qwench {

/// The type that the backend keeps a checkpoint's tensor as, where `wanted` is EngineOptions::dtype: vectors
/// as f32; matrices as they are stored, or as a plain type, or quantized. Of quantized types:
/// - embedding and head are kept as q8_0 where fewer bits are wanted, as errors in them reach every logit;
/// - a matrix whose rows are no whole blocks of 256 is kept as q8_0 in place of q4_k, and as it is stored
/// where
///   they are no whole blocks of 32 either;
/// - a matrix that is stored in no more bytes already is kept as it is stored.
DType kept_type(const TensorView& tensor, std::optional<DType> wanted);

}  // namespace qwench
