// y = x · weightᵀ + bias. Both kernels sum in one order, which depends on the columns alone: chunks of 64
// from the first on, each an ascending chain of fused multiply-adds that begins with 0, and the chunks'
// sums one after the other.
const uint kChunk = 64;

layout(set = 0, binding = 1) readonly buffer Inputs { vec4 x[]; };    // [rows, x_stride] in fours
layout(set = 0, binding = 2) readonly buffer Bias { float bias[]; };  // [outputs]
layout(set = 0, binding = 3) writeonly buffer Outputs { float y[]; };  // [rows, y_stride]

layout(push_constant) uniform Arguments {
  uint columns;   // a multiple of 32
  uint outputs;   // rows of this slice of the weight
  uint first;     // the slice's first output
  uint rows;
  uint x_stride;  // in fours
  uint y_stride;
  uint units;
  uint quants;
  uint has_bias;
};
