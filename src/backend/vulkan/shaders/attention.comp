#version 450
#extension GL_GOOGLE_include_directive : require
// Causal attention over the paged cache: one head of up to kQueries rows of a sequence, 64 positions at a time
// (Dao et al. 2022, arXiv:2205.14135). In scores an invocation has a position, in sums of values elements.
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint kQueries = 1;
layout(constant_id = 1) const bool kParts = false;  // results of parts, which attention_merge.comp merges

#include "step.glsl"
#include "cells.glsl"
#include "attention_state.glsl"

layout(set = 0, binding = 0) readonly buffer Queries { float q[]; };
layout(set = 0, binding = 1) readonly buffer KeyCells { uint key_cells[]; };
layout(set = 0, binding = 2) readonly buffer ValueCells { uint value_cells[]; };
layout(set = 0, binding = 3) writeonly buffer Outputs { float y[]; };
layout(set = 0, binding = 4) writeonly buffer PartResults { float results[]; };

layout(push_constant) uniform Arguments {
  uint heads;
  uint kv_heads;
  uint head_dim;
  uint q_stride;
  uint y_stride;
  uint window;     // 0: all
  uint most_parts;  // room in results for each head of a row
  float scale;
};

const uint kThreads = 64;
const uint kLargestHead = 256;
const uint kElements = kLargestHead / kThreads;  // an invocation's

shared float queries[kQueries * kLargestHead];
shared float weights[kQueries * kThreads];

void main() {
  const uint thread = gl_LocalInvocationID.x;
  const uint head = gl_WorkGroupID.y;
  const uint kv_head = head / (heads / kv_heads);
  const uint first_row = step_value(kPieces, gl_WorkGroupID.x * 2u);
  const uint count = step_value(kPieces, gl_WorkGroupID.x * 2u + 1u);
  const uint first_position = step_value(kPositions, first_row);
  const uint table = step_value(kTables, first_row);
  const uint end = first_position + count;  // positions that the last row sees
  const uint begin = window == 0u || first_position + 1u <= window ? 0u : first_position + 1u - window;
  const uint first_part = begin / kPart;
  const uint last_part = (end - 1u) / kPart;
  if (kParts && (gl_WorkGroupID.z < first_part || gl_WorkGroupID.z > last_part)) return;

  for (uint i = thread; i < count * head_dim; i += kThreads) {
    const uint row = i / head_dim;
    const uint element = i % head_dim;
    queries[row * kLargestHead + element] = q[(first_row + row) * q_stride + head * head_dim + element] * scale;
  }
  barrier();

  float all_largest[kQueries];
  float all_sum[kQueries];
  float all[kQueries * kElements];
  for (uint r = 0u; r < kQueries; ++r) {
    all_largest[r] = kNone;
    all_sum[r] = 0.0;
    for (uint i = 0u; i < kElements; ++i) all[r * kElements + i] = 0.0;
  }
  const uint parts_begin = kParts ? gl_WorkGroupID.z : first_part;
  const uint parts_end = kParts ? gl_WorkGroupID.z + 1u : last_part + 1u;
  for (uint part = parts_begin; part < parts_end; ++part) {
    float largest[kQueries];
    precise float sum[kQueries];
    precise float value_sums[kQueries * kElements];
    for (uint r = 0u; r < kQueries; ++r) {
      largest[r] = kNone;
      sum[r] = 0.0;
      for (uint i = 0u; i < kElements; ++i) value_sums[r * kElements + i] = 0.0;
    }
    const uint part_begin = max(part * kPart, begin / kThreads * kThreads);
    const uint part_end = min((part + 1u) * kPart, end);
    for (uint at = part_begin; at < part_end; at += kThreads) {
      const uint position = at + thread;
      precise float scores[kQueries];
      for (uint r = 0u; r < kQueries; ++r) scores[r] = 0.0;
      if (position < end) {
        const uint block = step_words[table + position / kBlockSize];
        const uint slot = position % kBlockSize;
        float cell_scale = 1.0;
        for (uint word = 0u; word < head_dim / kPerWord; ++word) {
          const uint bits = key_cells[key_word(block, kv_heads, kv_head, head_dim, word, slot)];
          const uint element = word * kPerWord;
#ifdef CELL_Q8_0
          if (element % kPerScale == 0u)
            cell_scale = scale_in(key_cells[key_scales(block, kv_heads, kv_head, head_dim, element / (2u * kPerScale), slot)],
                             element);
#endif
          for (uint i = 0u; i < kPerWord; ++i) {
            const float key = cell_number(bits, i, cell_scale);
            for (uint r = 0u; r < kQueries; ++r)
              scores[r] = fma(queries[r * kLargestHead + element + i], key, scores[r]);
          }
        }
      }
      for (uint r = 0u; r < kQueries; ++r) {
        const uint own = first_position + r;
        const bool seen = r < count && position <= own && (window == 0u || position + window > own);
        weights[r * kThreads + thread] = seen ? scores[r] : kNone;
      }
      barrier();
      float weight[kQueries];
      float keep[kQueries];
      for (uint r = 0u; r < kQueries; ++r) {
        float most = largest[r];
        for (uint j = 0u; j < kThreads; ++j) most = max(most, weights[r * kThreads + j]);
        const float score = weights[r * kThreads + thread];
        weight[r] = score == kNone ? 0.0 : exp(score - most);
        keep[r] = largest[r] == most ? 1.0 : exp(largest[r] - most);
        largest[r] = most;
      }
      barrier();
      for (uint r = 0u; r < kQueries; ++r) {
        weights[r * kThreads + thread] = weight[r];
        sum[r] *= keep[r];
        for (uint i = 0u; i < kElements; ++i) value_sums[r * kElements + i] *= keep[r];
      }
      barrier();
      const uint first = max(at, begin) - at;
      const uint last = min(kThreads, part_end - at);
      for (uint j = first; j < last; ++j) {
        const uint block = step_words[table + (at + j) / kBlockSize];
        const uint slot = (at + j) % kBlockSize;
        float values[kElements];
        for (uint i = 0u; i < kElements; ++i) {
          const uint element = thread + i * kThreads;
          if (element >= head_dim) break;
          const uint bits =
              value_cells[value_word(block, kv_heads, kv_head, head_dim, element / kPerWord, slot)];
          float cell_scale = 1.0;
#ifdef CELL_Q8_0
          cell_scale = scale_in(
              value_cells[value_scales(block, kv_heads, kv_head, head_dim, element / (2u * kPerScale), slot)], element);
#endif
          values[i] = cell_number(bits, element, cell_scale);
        }
        for (uint r = 0u; r < kQueries; ++r) {
          const float share = weights[r * kThreads + j];
          if (share == 0.0) continue;
          sum[r] += share;
          for (uint i = 0u; i < kElements; ++i) {
            if (thread + i * kThreads >= head_dim) break;
            value_sums[r * kElements + i] = fma(share, values[i], value_sums[r * kElements + i]);
          }
        }
      }
      barrier();
    }
    for (uint r = 0u; r < count; ++r) {
      if (kParts) {
        const uint to = (((first_row + r) * heads + head) * most_parts + part) * (head_dim + 2u);
        for (uint i = 0u; i < kElements; ++i) {
          if (thread + i * kThreads < head_dim) results[to + thread + i * kThreads] = value_sums[r * kElements + i];
        }
        if (thread == 0u) {
          results[to + head_dim] = largest[r];
          results[to + head_dim + 1u] = sum[r];
        }
        continue;
      }
      if (largest[r] == kNone) continue;
      float keep, take;
      merge(all_largest[r], all_sum[r], largest[r], sum[r], keep, take);
      for (uint i = 0u; i < kElements; ++i)
        all[r * kElements + i] = merged_value(all[r * kElements + i], keep, value_sums[r * kElements + i], take);
    }
  }
  if (kParts) return;
  for (uint r = 0u; r < count; ++r) {
    for (uint i = 0u; i < kElements; ++i) {
      const uint element = thread + i * kThreads;
      if (element >= head_dim) break;
      precise const float value = all[r * kElements + i] / all_sum[r];
      y[(first_row + r) * y_stride + head * head_dim + element] = value;
    }
  }
}
