#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/device.h"
#include "checkpoint/checkpoint.h"
#include "model/memory_plan.h"
#include "qwench/engine.h"

namespace qwench {

/// What a model takes when `batch` sequences run at `context` positions each. Bytes that are resident then;
/// the engine reserves from the same numbers when it loads.
struct ModelPlan {
  uint64_t weights = 0;      ///< packed into panels, and norms and biases as f32; the embedding apart
  uint64_t embedding = 0;    ///< packed where it is the head too, else resident after some hundred tokens
  uint64_t activations = 0;  ///< the decoder's buffers at max_batch_tokens rows, logits for `batch` rows
  uint64_t text = 0;         ///< tokenizer and chat template
  uint64_t program = 0;      ///< code, libraries, threads
  uint64_t kv_per_token = 0;
  int context = 0;           ///< positions a sequence may have
  int batch = 0;             ///< sequences of full length that the cache holds at once, at most max_batch
  MemoryPlan memory;         ///< what the engine reserves
  int max_batch = 0;         ///< completions that run at once: as asked for, or chosen
  int max_batch_tokens = 0;  ///< rows of one forward pass: as asked for, or chosen

  // On a device, whose memory alone counts then:
  bool on_device = false;
  uint64_t weights_resident = 0;  ///< on the device
  uint64_t weights_slots = 0;     ///< on the device: what streamed layers go through
  uint64_t weights_streamed = 0;  ///< in the host's memory, copied to the device in every pass
  int gpu_layers = 0;             ///< layers whose weights stay on the device
  int layers = 0;

  bool quantized = false;  ///< some matrix is kept in a quantized type
  int64_t parameters = 0;
  uint64_t bytes_per_token = 0;  ///< weights read for one token
  int64_t macs_per_token = 0;    ///< multiplications by weights, the head's left out

  uint64_t kv_cache() const;
  uint64_t total() const;
};

/// The type that stands for how a checkpoint's weights are stored: the embedding's.
DType stored_type(const Checkpoint& checkpoint);

/// Bytes of the device's memory that may be used: options.device_memory, or its budget.
uint64_t device_memory(const DeviceInfo& device, const EngineOptions& options);

/// On the CPU, or on `device` where there is one: as many layers as fit are resident, unless
/// options.gpu_layers says how many, so that a sequence has the context asked for, or 4096 positions. Throws
/// Error (out_of_memory, invalid_argument) with the sentence that Engine::load gives for the same options and
/// memory.
ModelPlan plan_model(const Checkpoint& checkpoint, const EngineOptions& options, uint64_t available,
                     const DeviceInfo* device = nullptr);

/// The longest context of one sequence, and the most sequences of options.context, that fit; 0 where none
/// does.
int longest_context(const Checkpoint& checkpoint, EngineOptions options, uint64_t available,
                    const DeviceInfo* device = nullptr);
int largest_batch(const Checkpoint& checkpoint, EngineOptions options, uint64_t available,
                  const DeviceInfo* device = nullptr);

/// The change of options that costs least and makes it fit: "--kv-dtype f16"; empty when none does.
std::string cheapest_change(const Checkpoint& checkpoint, const EngineOptions& options, uint64_t available,
                            const DeviceInfo* device = nullptr);

}  // namespace qwench
