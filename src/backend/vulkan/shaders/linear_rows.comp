#version 450
#extension GL_GOOGLE_include_directive : require
// A few rows of x: an invocation has one output and every kSegments-th chunk of its columns.
layout(local_size_x = 32, local_size_y_id = 0) in;
layout(constant_id = 0) const uint kSegments = 8;
layout(constant_id = 1) const uint kRows = 1;

#include "weight.glsl"
#include "linear.glsl"

shared float sums[2 * kSegments * kRows * 32];

void main() {
  const uint lane = gl_LocalInvocationID.x;
  const uint segment = gl_LocalInvocationID.y;
  const uint n = gl_WorkGroupID.x * 32u + lane;
  const uint first_row = gl_WorkGroupID.y * kRows;
  const uint chunks = (columns + kChunk - 1u) / kChunk;
  precise float total[kRows];
  for (uint r = 0u; r < kRows; ++r) total[r] = 0.0;
  uint half_at = 0u;
  for (uint begin = 0u; begin < chunks; begin += kSegments) {
    precise float part[kRows];
    for (uint r = 0u; r < kRows; ++r) part[r] = 0.0;
    const uint chunk = begin + segment;
    if (chunk < chunks) {
      const uint end = min(columns, (chunk + 1u) * kChunk);
      for (uint k = chunk * kChunk; k < end; k += 8u) {
        vec4 low, high;
        weight8(n, units, quants, k, low, high);
        for (uint r = 0u; r < kRows; ++r) {
          const uint at = min(first_row + r, rows - 1u) * x_stride + (k >> 2);
          const vec4 a = x[at];
          const vec4 b = x[at + 1u];
          part[r] = fma(a.x, low.x, part[r]);
          part[r] = fma(a.y, low.y, part[r]);
          part[r] = fma(a.z, low.z, part[r]);
          part[r] = fma(a.w, low.w, part[r]);
          part[r] = fma(b.x, high.x, part[r]);
          part[r] = fma(b.y, high.y, part[r]);
          part[r] = fma(b.z, high.z, part[r]);
          part[r] = fma(b.w, high.w, part[r]);
        }
      }
    }
    for (uint r = 0u; r < kRows; ++r) sums[half_at + (segment * kRows + r) * 32u + lane] = part[r];
    barrier();
    if (segment == 0u) {
      const uint count = min(kSegments, chunks - begin);
      for (uint s = 0u; s < count; ++s) {
        for (uint r = 0u; r < kRows; ++r) total[r] += sums[half_at + (s * kRows + r) * 32u + lane];
      }
    }
    // The other half is free: all have passed the barrier behind its last use.
    half_at = kSegments * kRows * 32u - half_at;
  }
  if (segment != 0u || n >= outputs) return;
  for (uint r = 0u; r < kRows; ++r) {
    if (first_row + r >= rows) break;
    precise float value = total[r];
    if (has_bias != 0u) value += bias[first + n];
    y[(first_row + r) * y_stride + first + n] = value;
  }
}
