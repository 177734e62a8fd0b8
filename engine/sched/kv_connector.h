// KVConnector: a store of KV blocks outside the KV cache, as the Scheduler sees it. vLLM has an interface of the same
// name. Owned by EngineCore, borrowed by the Scheduler; engine thread only.
//
// A request whose next blocks are in the store waits (kWaitingForRemoteKVs) without blocks while they are loaded. The
// Scheduler then publishes the loaded blocks in the prefix cache and admits the request like any other, so an
// incomplete load only means that more tokens are computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/kv_cache/kv_cache_block.h"
#include "engine/request/request.h"

namespace vllm {

class KVConnector {
 public:
  virtual ~KVConnector() = default;

  struct StartedLoad {
    int64_t load_id = 0;  // 0: nothing is loaded
    // The request started this load. False: another request did, and this one waits for the same blocks.
    bool is_leader = false;
  };
  // Starts to load the KV of at most max_blocks blocks of tokens that follow the request's first first_block blocks, if
  // the store has it and loading takes less time than computing. Of a group with a sliding window, these are the blocks
  // that later tokens attend to. Ids of loads are not reused. REQUIRES: max_blocks > 0; the request has
  // tokens for all of these blocks.
  virtual StartedLoad StartLoad(Request& request, int64_t first_block, int64_t max_blocks) = 0;

  struct FinishedLoad {
    int64_t load_id = 0;
    int64_t first_block = 0;
    // Verified, sorted by index; may be fewer than were started. block_id is not set.
    std::vector<SequenceBlock> blocks;
  };
  // Returns the next load that has ended, or null. The result, and its blocks, are valid until the next call.
  virtual const FinishedLoad* NextFinishedLoad() = 0;
  // Copies blocks[i] of the last FinishedLoad into the KV cache.
  virtual void CopyIn(size_t i, int32_t block_id) = 0;

  // Saves those of the request's blocks that the store does not have. Their KV is computed. Copies them before it
  // returns. May save only some of them. Returns the number of blocks that it saves.
  virtual int64_t Save(Request& request, std::span<const SequenceBlock> blocks) = 0;
};

}  // namespace vllm
