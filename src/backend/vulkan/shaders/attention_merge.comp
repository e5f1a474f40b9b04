#version 450
#extension GL_GOOGLE_include_directive : require
// Merges the parts of one head of one row, as attention.comp does where it computes all of them.
layout(local_size_x = 64) in;

#include "step.glsl"
#include "attention_state.glsl"

layout(set = 0, binding = 3) writeonly buffer Outputs { float y[]; };
layout(set = 0, binding = 4) readonly buffer PartResults { float results[]; };

layout(push_constant) uniform Arguments {
  uint heads;
  uint kv_heads;
  uint head_dim;
  uint q_stride;
  uint y_stride;
  uint window;
  uint most_parts;
  float scale;
};

void main() {
  const uint thread = gl_LocalInvocationID.x;
  const uint row = gl_WorkGroupID.x;
  const uint head = gl_WorkGroupID.y;
  const uint position = step_value(kPositions, row);
  const uint begin = window == 0u || position + 1u <= window ? 0u : position + 1u - window;
  for (uint element = thread; element < head_dim; element += 64u) {
    float largest = kNone;
    float sum = 0.0;
    float value = 0.0;
    for (uint part = begin / kPart; part <= position / kPart; ++part) {
      const uint from = ((row * heads + head) * most_parts + part) * (head_dim + 2u);
      if (results[from + head_dim] == kNone) continue;
      float keep, take;
      merge(largest, sum, results[from + head_dim], results[from + head_dim + 1u], keep, take);
      value = merged_value(value, keep, results[from + element], take);
    }
    precise const float quotient = value / sum;
    y[row * y_stride + head * head_dim + element] = quotient;
  }
}
