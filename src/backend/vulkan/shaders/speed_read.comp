#version 450
// Reads all of a buffer, 16 bytes at a time: how fast the device's memory can be read at best.
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer Inputs { uvec4 x[]; };
layout(set = 0, binding = 1) writeonly buffer Outputs { uint y[]; };
layout(push_constant) uniform Arguments {
  uint count;   // of units
  uint stride;  // invocations in all
};

void main() {
  uvec4 sum = uvec4(0u);
  for (uint i = gl_GlobalInvocationID.x; i < count; i += stride) sum ^= x[i];
  const uint all = sum.x ^ sum.y ^ sum.z ^ sum.w;
  if (all == 0x12345678u) y[0] = all;  // hardly ever, but the compiler cannot know
}
