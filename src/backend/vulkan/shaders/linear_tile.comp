#version 450
#extension GL_GOOGLE_include_directive : require
// Many rows of x: a workgroup has 64 outputs of 16 * kTile rows, an invocation 4 of kTile. The tiles of x and of
// the weight's values lie in 16 KiB of shared memory at most.
layout(local_size_x = 16, local_size_y = 16) in;
layout(constant_id = 0) const uint kTile = 4;  // 1 to 4

#include "weight.glsl"
#include "linear.glsl"

const uint kStep = 32;
const uint kOutputs = 64;
const uint kTileRows = 16 * kTile;

shared float x_tile[kStep * kTileRows];
shared float weight_tile[kStep * kOutputs];

void main() {
  const uint tx = gl_LocalInvocationID.x;
  const uint ty = gl_LocalInvocationID.y;
  const uint thread = gl_LocalInvocationIndex;
  const uint first_output = gl_WorkGroupID.x * kOutputs;
  const uint first_row = gl_WorkGroupID.y * kTileRows;
  const uint last_weight = ((outputs + 31u) & ~31u) - 1u;
  precise float total[kTile * 4];
  precise float part[kTile * 4];
  for (uint i = 0u; i < kTile * 4u; ++i) total[i] = part[i] = 0.0;
  for (uint k = 0u; k < columns; k += kStep) {
    {
      const uint output_at = thread & 63u;
      const uint eight = thread >> 6;
      vec4 low, high;
      weight8(min(first_output + output_at, last_weight), units, quants, k + eight * 8u, low, high);
      for (uint i = 0u; i < 4u; ++i) {
        weight_tile[(eight * 8u + i) * kOutputs + output_at] = low[i];
        weight_tile[(eight * 8u + 4u + i) * kOutputs + output_at] = high[i];
      }
    }
    for (uint i = thread; i < kTileRows * (kStep / 4u); i += 256u) {
      const uint row = i % kTileRows;
      const uint four = i / kTileRows;
      const vec4 values = x[min(first_row + row, rows - 1u) * x_stride + (k >> 2) + four];
      for (uint j = 0u; j < 4u; ++j) x_tile[(four * 4u + j) * kTileRows + row] = values[j];
    }
    barrier();
    for (uint i = 0u; i < kStep; ++i) {
      float w[4];
      for (uint j = 0u; j < 4u; ++j) w[j] = weight_tile[i * kOutputs + tx + 16u * j];
      for (uint r = 0u; r < kTile; ++r) {
        const float value = x_tile[i * kTileRows + ty * kTile + r];
        for (uint j = 0u; j < 4u; ++j) part[r * 4u + j] = fma(value, w[j], part[r * 4u + j]);
      }
    }
    if ((k + kStep) % kChunk == 0u || k + kStep >= columns) {
      for (uint i = 0u; i < kTile * 4u; ++i) {
        total[i] += part[i];
        part[i] = 0.0;
      }
    }
    barrier();
  }
  for (uint r = 0u; r < kTile; ++r) {
    const uint row = first_row + ty * kTile + r;
    if (row >= rows) break;
    for (uint j = 0u; j < 4u; ++j) {
      const uint n = first_output + tx + 16u * j;
      if (n >= outputs) break;
      precise float value = total[r * 4u + j];
      if (has_bias != 0u) value += bias[first + n];
      y[row * y_stride + first + n] = value;
    }
  }
}
