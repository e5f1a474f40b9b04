#version 450
// x += y where there is a y; out = x / sqrt(mean(x²) + eps) * weight (Zhang & Sennrich 2019, arXiv:1910.07467).
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kThreads = 128;  // a power of two

layout(set = 0, binding = 0) buffer Inputs { float x[]; };
layout(set = 0, binding = 1) readonly buffer Added { float added[]; };
layout(set = 0, binding = 2) readonly buffer Weights { float weight[]; };
layout(set = 0, binding = 3) writeonly buffer Outputs { float y[]; };

layout(push_constant) uniform Arguments {
  uint columns;
  uint x_stride;
  uint added_stride;
  uint y_stride;
  float eps;
  uint adds;
};

shared float sums[kThreads];

void main() {
  const uint row = gl_WorkGroupID.x;
  const uint thread = gl_LocalInvocationID.x;
  precise float squares = 0.0;
  for (uint i = thread; i < columns; i += kThreads) {
    precise float value = x[row * x_stride + i];
    if (adds != 0u) {
      value += added[row * added_stride + i];
      x[row * x_stride + i] = value;
    }
    squares = fma(value, value, squares);
  }
  sums[thread] = squares;
  for (uint half_size = kThreads / 2u; half_size > 0u; half_size /= 2u) {
    barrier();
    if (thread < half_size) sums[thread] += sums[thread + half_size];
  }
  barrier();
  precise const float scale = 1.0 / sqrt(sums[0] / float(columns) + eps);
  for (uint i = thread; i < columns; i += kThreads) {
    precise const float scaled = x[row * x_stride + i] * scale;
    y[row * y_stride + i] = scaled * weight[i];
  }
}
