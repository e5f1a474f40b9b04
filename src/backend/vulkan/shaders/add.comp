#version 450
layout(local_size_x = 128) in;
layout(set = 0, binding = 0) buffer Sums { float x[]; };
layout(set = 0, binding = 1) readonly buffer Added { float y[]; };
layout(push_constant) uniform Arguments {
  uint columns;
  uint x_stride;
  uint y_stride;
};

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i < columns) x[gl_WorkGroupID.y * x_stride + i] += y[gl_WorkGroupID.y * y_stride + i];
}
