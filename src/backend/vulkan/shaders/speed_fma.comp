#version 450
// Sixteen independent chains of fused multiply-adds: how fast the device computes in f32 at best.
layout(local_size_x = 256) in;
layout(set = 0, binding = 1) writeonly buffer Outputs { uint y[]; };
layout(push_constant) uniform Arguments { uint rounds; };

void main() {
  vec4 a = vec4(gl_GlobalInvocationID.x) * 1.0e-7;
  vec4 b = a + 0.25, c = a + 0.5, d = a + 0.75;
  const vec4 factor = vec4(0.999, 0.998, 0.997, 0.996);
  for (uint i = 0u; i < rounds; ++i) {
    a = fma(a, factor, vec4(0.001));
    b = fma(b, factor, vec4(0.002));
    c = fma(c, factor, vec4(0.003));
    d = fma(d, factor, vec4(0.004));
  }
  const vec4 sum = a + b + c + d;
  if (sum.x + sum.y + sum.z + sum.w == 12345.0) y[0] = 1u;  // hardly ever, but the compiler cannot know
}
