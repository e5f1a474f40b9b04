#version 450
// gate = gate / (1 + exp(-gate)) * up (Shazeer 2020, arXiv:2002.05202)
layout(local_size_x = 128) in;
layout(set = 0, binding = 0) buffer Gates { float gate[]; };
layout(set = 0, binding = 1) readonly buffer Ups { float up[]; };
layout(push_constant) uniform Arguments {
  uint columns;
  uint gate_stride;
  uint up_stride;
};

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= columns) return;
  const uint at = gl_WorkGroupID.y * gate_stride + i;
  const float g = gate[at];
  gate[at] = g / (1.0 + exp(-g)) * up[gl_WorkGroupID.y * up_stride + i];
}
