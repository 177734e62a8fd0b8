// StepContext: the kernels, threads, communicator and scratch that the layers of one tensor-parallel rank use.
// Owned by the Worker; outlives its layers. Used on the rank's thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/layers/attention_workspace.h"
#include "engine/layers/communicator.h"
#include "engine/layers/lora_workspace.h"
#include "engine/layers/moe_workspace.h"
#include "engine/layers/recurrent_workspace.h"
#include "engine/layers/shard.h"
#include "kernels/kernels.h"
#include "kernels/matrix/aligned_buffer.h"
#include "kernels/matrix/packed_activations.h"
#include "kernels/threading/thread_pool.h"

namespace vllm {

// Scratch buffers that all layers of a rank share, one layer at a time. Reserved at load for the largest step.
struct Workspace {
  kernels::PackedActivations packed_activations;   // for LinearMatrix
  kernels::PackedActivations packed_intermediate;  // for Mlp: the activations
  kernels::AlignedBuffer ordered_x;      // for LinearMatrix: x with its columns in the order of the stored matrix
  kernels::AlignedBuffer unpacked_rows;  // for LinearMatrix::UnpackRow: one row per thread, in stored order
  kernels::AlignedBuffer output_runs;    // for LinearWeight::MultiplyInRuns: one run per thread
  kernels::AlignedBuffer gathered_x;     // for GatherColumns: the columns of all ranks
  AttentionWorkspace attention;          // for Attention
  MoeWorkspace moe;                      // for SparseMoe
  LoRAWorkspace lora;                    // for LoRALinear
  RecurrentWorkspace recurrent;          // for the mixers of layers/recurrent

  size_t size_bytes() const {
    return packed_activations.size_bytes() + packed_intermediate.size_bytes() + ordered_x.size_bytes() +
           unpacked_rows.size_bytes() + output_runs.size_bytes() + gathered_x.size_bytes() + attention.size_bytes() +
           moe.size_bytes() + lora.size_bytes() + recurrent.size_bytes();
  }
};

struct StepContext {
  const kernels::Kernels* kernels = nullptr;
  kernels::ThreadPool* threads = nullptr;
  Communicator* communicator = nullptr;
  Workspace* workspace = nullptr;

  int rank() const { return communicator->rank(); }
  int world_size() const { return communicator->world_size(); }
};

}  // namespace vllm
