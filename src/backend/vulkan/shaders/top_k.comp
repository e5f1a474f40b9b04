#version 450
// The k largest of a row's first columns, largest first and equals by index: their indices, then their bits. In the
// place of the first index stands -1 where a number is not finite, -2 where too many are candidates to be ranked here.
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kThreads = 128;
layout(set = 0, binding = 0) readonly buffer Inputs { uint x[]; };
layout(set = 0, binding = 1) writeonly buffer Largest { uint top[]; };
layout(push_constant) uniform Arguments {
  uint columns;
  uint x_stride;
  uint k;
};

const uint kSlots = 512u;
const uint kRoom = 1024u;

shared uint slots[kSlots];
shared uint keys[kRoom];
shared uint indices[kRoom];
shared uint bound;
shared uint count;
shared uint broken;

// Ordered as the numbers are, and zeros of either sign equal; 0 is below all finite numbers.
uint key_of(uint bits) {
  if (bits == 0x80000000u) bits = 0u;
  return (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u;
}

uint bits_of(uint key) { return (key & 0x80000000u) != 0u ? key & 0x7fffffffu : ~key; }

void main() {
  const uint thread = gl_LocalInvocationID.x;
  const uint row = gl_WorkGroupID.x * x_stride;
  const uint out_row = gl_WorkGroupID.x * 2u * k;
  if (thread == 0u) {
    count = 0u;
    broken = 0u;
  }
  barrier();
  // Columns are dealt to slots. The k-th largest of the slots' largest has k numbers at or above it, so that all
  // that is sought is there too, and little else.
  bool bad = false;
  for (uint slot = thread; slot < kSlots; slot += kThreads) {
    uint largest = 0u;
    for (uint i = slot; i < columns; i += kSlots) {
      const uint bits = x[row + i];
      bad = bad || (bits & 0x7f800000u) == 0x7f800000u;
      largest = max(largest, key_of(bits));
    }
    slots[slot] = largest;
  }
  if (bad) atomicOr(broken, 1u);
  barrier();
  for (uint slot = thread; slot < kSlots; slot += kThreads) {
    const uint own = slots[slot];
    uint above = 0u;
    for (uint i = 0u; i < kSlots; ++i) above += uint(slots[i] > own || (slots[i] == own && i < slot));
    if (above == k - 1u) bound = own;
  }
  barrier();
  for (uint i = thread; i < columns; i += kThreads) {
    const uint key = key_of(x[row + i]);
    if (key < bound) continue;
    const uint at = atomicAdd(count, 1u);
    if (at < kRoom) {
      keys[at] = key;
      indices[at] = i;
    }
  }
  barrier();
  if (broken != 0u || count > kRoom) {
    if (thread == 0u) top[out_row] = broken != 0u ? ~0u : ~1u;
    return;
  }
  for (uint candidate = thread; candidate < count; candidate += kThreads) {
    const uint own = keys[candidate];
    const uint index = indices[candidate];
    uint above = 0u;
    for (uint i = 0u; i < count; ++i) above += uint(keys[i] > own || (keys[i] == own && indices[i] < index));
    if (above < k) {
      top[out_row + above] = index;
      top[out_row + k + above] = bits_of(own);
    }
  }
}
