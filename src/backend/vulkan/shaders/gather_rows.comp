#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 128) in;
#include "step.glsl"
layout(set = 0, binding = 0) readonly buffer Inputs { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Outputs { float y[]; };
layout(push_constant) uniform Arguments {
  uint columns;
  uint x_stride;
  uint y_stride;
};

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= columns) return;
  y[gl_WorkGroupID.y * y_stride + i] = x[step_value(kLogitRows, gl_WorkGroupID.y) * x_stride + i];
}
