#include "kernels/unpack.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/unpack.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"
//
#include "kernels/blocks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qwench {
namespace HWY_NAMESPACE {

struct StoreSink {
  float* dst;
  HWY_INLINE void operator()(size_t i, VF v) { hn::StoreU(v, DF(), dst + i); }
};

template <class Block>
void UnpackBlocks(const uint8_t* src, int64_t n, float* dst) {
  for (int64_t i = 0; i < n; i += Block::kSize, src += Block::kBytes) {
    const typename Block::Header header(src);
    for (int part = 0; part < Block::kSize / kPart; ++part) {
      StoreSink sink{dst + i + part * kPart};
      Block::Part(src, header, part, sink);
    }
  }
}

template <class Element>
void UnpackElements(const uint8_t* src, int64_t n, float* dst) {
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) hn::StoreU(Element::Load(src + i * Element::kBytes), DF(), dst + i);
  if (i == n) return;
  HWY_ALIGN float tail[kLanes];
  hn::Store(LoadTail<Element>(src + i * Element::kBytes, n - i), DF(), tail);
  std::memcpy(dst + i, tail, static_cast<size_t>(n - i) * sizeof(float));
}

void Unpack(DType dtype, const uint8_t* src, int64_t n, float* dst) {
  switch (dtype) {
    case DType::f32:
      std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(float));
      return;
    case DType::f16:
      UnpackElements<ElementF16>(src, n, dst);
      return;
    case DType::bf16:
      UnpackElements<ElementBf16>(src, n, dst);
      return;
    case DType::q8_0:
      UnpackBlocks<BlockQ8_0>(src, n, dst);
      return;
    case DType::q4_0:
      UnpackBlocks<BlockQ4_0>(src, n, dst);
      return;
    case DType::q4_1:
      UnpackBlocks<BlockQ4_1>(src, n, dst);
      return;
    case DType::q5_0:
      UnpackBlocks<BlockQ5_0>(src, n, dst);
      return;
    case DType::q5_1:
      UnpackBlocks<BlockQ5_1>(src, n, dst);
      return;
    case DType::q2_k:
      UnpackBlocks<BlockQ2K>(src, n, dst);
      return;
    case DType::q3_k:
      UnpackBlocks<BlockQ3K>(src, n, dst);
      return;
    case DType::q4_k:
      UnpackBlocks<BlockQ4K>(src, n, dst);
      return;
    case DType::q5_k:
      UnpackBlocks<BlockQ5K>(src, n, dst);
      return;
    case DType::q6_k:
      UnpackBlocks<BlockQ6K>(src, n, dst);
      return;
    case DType::iq4_nl:
      UnpackBlocks<BlockIq4Nl>(src, n, dst);
      return;
  }
}

// bf16 of a vector of f32, to nearest even, NaN kept (half.h).
void PackBf16(const float* src, int64_t n, uint8_t* dst) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const DU du;
  const hn::Rebind<uint16_t, DF> d16;
  for (; i + kStep <= n; i += kStep) {
    const auto bits = hn::BitCast(du, hn::LoadU(DF(), src + i));
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1U));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFFU))));
    const auto nan = hn::Or(hn::ShiftRight<16>(bits), hn::Set(du, 0x40U));
    const auto is_nan = hn::RebindMask(du, hn::IsNaN(hn::BitCast(DF(), bits)));
    const auto halves = hn::BitCast(DI(), hn::IfThenElse(is_nan, nan, rounded));
    hn::StoreU(hn::DemoteTo(d16, halves), d16, reinterpret_cast<uint16_t*>(dst + i * 2));
  }
#endif
  for (; i < n; ++i) {
    const uint16_t half = f32_to_bf16(src[i]);
    std::memcpy(dst + i * 2, &half, 2);
  }
}

void PackF16(const float* src, int64_t n, uint8_t* dst) {
  int64_t i = 0;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  const hn::Rebind<hwy::float16_t, DF> d16;
  for (; i + kStep <= n; i += kStep) {
    hn::StoreU(hn::DemoteTo(d16, hn::LoadU(DF(), src + i)), d16,
               reinterpret_cast<hwy::float16_t*>(dst + i * 2));
  }
#endif
  for (; i < n; ++i) {
    const uint16_t half = f32_to_f16(src[i]);
    std::memcpy(dst + i * 2, &half, 2);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace qwench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qwench {
HWY_EXPORT(Unpack);
HWY_EXPORT(PackBf16);
HWY_EXPORT(PackF16);

void unpack(DType dtype, const std::byte* row, int64_t begin, int64_t n, float* dst) {
  const DTypeTraits& t = traits(dtype);
  const auto* src = reinterpret_cast<const uint8_t*>(row) + begin / t.block_size * t.block_bytes;
  HWY_DYNAMIC_DISPATCH(Unpack)(dtype, src, n, dst);
}

void pack(DType plain, const float* src, int64_t n, std::byte* dst) {
  auto* out = reinterpret_cast<uint8_t*>(dst);
  if (plain == DType::bf16) {
    HWY_DYNAMIC_DISPATCH(PackBf16)(src, n, out);
  } else if (plain == DType::f16) {
    HWY_DYNAMIC_DISPATCH(PackF16)(src, n, out);
  } else {
    std::memcpy(out, src, static_cast<size_t>(n) * sizeof(float));
  }
}

}  // namespace qwench
#endif
