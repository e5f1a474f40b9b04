#version 450
#extension GL_GOOGLE_include_directive : require
// Rows of the embedding's table; of a slice of it, where the table is larger than a binding may be.
layout(local_size_x = 32) in;

#include "weight.glsl"
#include "step.glsl"

layout(set = 0, binding = 1) writeonly buffer Outputs { vec4 y[]; };

layout(push_constant) uniform Arguments {
  uint columns;   // a multiple of 8, at most y_stride
  uint first;     // the slice
  uint count;
  uint y_stride;  // in fours
  uint units;
  uint quants;
};

void main() {
  const uint row = gl_WorkGroupID.y;
  const uint k = gl_GlobalInvocationID.x * 8u;
  const uint token = step_value(kTokens, row);
  if (k >= columns || token < first || token >= first + count) return;
  vec4 low, high;
  weight8(token - first, units, quants, k, low, high);
  y[row * y_stride + (k >> 2)] = low;
  y[row * y_stride + (k >> 2) + 1u] = high;
}
