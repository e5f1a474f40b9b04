#version 450
// The index of the largest of a row's first columns, the first of equals; -1 where one is not finite.
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kThreads = 128;  // a power of two
layout(set = 0, binding = 0) readonly buffer Inputs { uint x[]; };
layout(set = 0, binding = 1) writeonly buffer Ids { int ids[]; };
layout(push_constant) uniform Arguments {
  uint columns;
  uint x_stride;
};

shared float values[kThreads];
shared uint indices[kThreads];
shared uint broken[kThreads];

void main() {
  const uint row = gl_WorkGroupID.x;
  const uint thread = gl_LocalInvocationID.x;
  float value = -3.4e38;
  uint index = columns;
  uint bad = 0u;
  for (uint i = thread; i < columns; i += kThreads) {
    const uint bits = x[row * x_stride + i];
    if ((bits & 0x7f800000u) == 0x7f800000u) bad = 1u;
    const float number = uintBitsToFloat(bits);
    if (index == columns || number > value) {
      value = number;
      index = i;
    }
  }
  values[thread] = value;
  indices[thread] = index;
  broken[thread] = bad;
  for (uint half_size = kThreads / 2u; half_size > 0u; half_size /= 2u) {
    barrier();
    if (thread < half_size) {
      const uint other = thread + half_size;
      const bool there = indices[other] < columns;
      const bool better = values[other] > values[thread] ||
                          (values[other] == values[thread] && indices[other] < indices[thread]);
      if (there && (indices[thread] == columns || better)) {
        values[thread] = values[other];
        indices[thread] = indices[other];
      }
      broken[thread] |= broken[other];
    }
  }
  if (thread == 0u) ids[row] = broken[0] != 0u ? -1 : int(indices[0]);
}
