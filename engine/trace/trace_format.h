// The records of a scheduler trace (--trace FILE) and their encoding. A trace contains, in order, every input of the
// Scheduler and every decision that it made, so that ReplayTrace can run a Scheduler again and compare. It contains no
// token ids, no text and no error messages: a tag represents a block of tokens. Plain values and pure functions; any
// thread.
//
// clang-format off
//   trace     = "vllmcli-trace " version "\n" record*       version: decimal digits, at present "3"
//   record    = length payload checksum
//   length    = uint                                        bytes of the payload, at most kMaxRecordBytes
//   checksum  = 4 bytes, little-endian                      the low half of the payload's XXH3-64 hash
//   payload   = begin | add | finish | reset | pause | step | update | rollback | end | drafts
//
//   begin     = 1 uint byte* uint{11} uint uint*            always the first record, and only there
//       version of the program (a count and that many bytes); max_num_batched_tokens, max_num_seqs,
//       long_prefill_token_threshold, enable_chunked_prefill, policy, scheduler_reserve_full_isl, block_size,
//       enable_prefix_caching, num_blocks, num_state_blocks, max_model_len; the number of KV-cache groups and their
//       windows
//   add       = 2 id uint{4} sint{2} uint tag*              Scheduler::AddRequest
//       prompt tokens, prior output tokens, max_tokens + 1 (0: none), min_tokens; priority, arrival time in ns since
//       the start; flags (1: accepted, 2: prompt_logprobs, 4: skip_reading_prefix_cache, 8: interactive); with prefix
//       caching, the tags of the full blocks of prompt and prior output tokens
//   finish    = 3 uint ids                                  FinishRequests; FinishReason
//   reset     = 4 uint                                      ResetPrefixCache; 1 if it returned true, else 0
//   step      = 5 uint{2} ids ids uint scheduled* sint*     Schedule
//       us since the previous step; KV blocks in use; finished_req_ids; preempted_req_ids; the scheduled requests; all
//       their new block ids, each as the difference to its predecessor in this record, or to 0, minus 1
//   scheduled = id uint [uint] [uint]
//       tokens << 3 | has_blocks << 2 | kind (0: was running, 1: new, 2: resumed); num_computed_tokens unless it was
//       running; if has_blocks, the number of its new block ids in all groups
//   update    = 6 uint uint sampled* tag*                   UpdateFromOutput
//       us since the step; the requests that got tokens or ended
//   sampled   = id uint [uint] [uint]
//       tokens << 5 | has_accepted << 4 | has_tags << 3 | end (0: continues, 1: EOS, 2: stop token, 3: length, 4: error);
//       if has_tags, the number of blocks that these tokens completed; if has_accepted, the number of accepted drafts
//   rollback  = 7 uint                                      RollBackStep; us since the step
//   end       = 8                                           the engine shut down normally
//   pause     = 9 uint                                      SetAdmissionPaused; 1 if paused, else 0
//   drafts    = 10 uint count*                              SetDrafts
//   count     = id uint                                     the number of drafts of a request
//
//   uint      = LEB128: 7 bits per byte, the lowest first; the high bit is set in all bytes but the last
//   sint      = uint                                        zigzag: 0, -1, 1, -2, ... are 0, 1, 2, 3, ...
//   id        = sint                                        difference to the previous id in this record, or to 0
//   ids       = uint id*                                    a count and that many ids
//   tag       = 8 bytes, little-endian
//       SipHash of the tag of the previous block (of a first block: the hash of the cache salt, or 0) and the block's
//       tokens. The key is random and not stored, so a tag only says which blocks have the same tokens after the same
//       prefix.
// clang-format on
//
// A step with scheduled tokens is followed by its update or rollback, unless the engine failed in it. If the last
// record is cut off, the records before it are valid.
//
// Example: a prompt of 3 tokens and max_tokens 2, with at most 2 tokens per step. The trace ends after the first output
// token.
//
// clang-format off
//   76 6c 6c 6d 63 6c 69 2d 74 72 61 63 65 20 33 0a                         "vllmcli-trace 3\n"
//   12  01 03 30 2e 31  02 08 00 01 00 01 10 01 0a 00 40  01 00  80 1a c9 70  begin: "0.1", 2 tokens, 8 sequences, ...
//   09  02 02 03 00 03 00 00 00 01  a7 8f 45 73                             add: request 1, 3 tokens, max_tokens 2
//   0b  05 00 01 00 00 01  02 15 00 01  00  99 13 0e 7d                     step: 2 tokens of request 1, new, block 1
//   03  06 07 00  b1 be fa 13                                               update after 7 us: no token sampled
//   08  05 09 01 00 00 01  02 08  24 ae cd 65                               step after 9 us: 1 token of request 1
//   05  06 07 01  02 20  a5 87 c8 e2                                        update: request 1 got a token
// clang-format on
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/request/finish_reason.h"
#include "engine/request/request_id.h"

namespace vllm {

inline constexpr std::string_view kTraceMagic = "vllmcli-trace ";
inline constexpr int kTraceVersion = 3;
inline constexpr size_t kMaxRecordBytes = size_t{16} << 20;
// Upper limits for fields of a record. The recorder clamps times; larger counts are an error.
inline constexpr int64_t kMaxElapsedUs = int64_t{1} << 40;
inline constexpr int64_t kMaxScheduledTokens = int64_t{1} << 30;
inline constexpr int64_t kMaxSampledTokens = 1024;

enum class TraceRecordType : uint8_t {
  kBegin = 1,
  kAdd,
  kFinish,
  kReset,
  kStep,
  kUpdate,
  kRollBack,
  kEnd,
  kPause,
  kDrafts,
};

struct TraceBegin {
  std::string program_version;  // at most 64 bytes
  SchedulerConfig scheduler;
  CacheConfig cache;  // only block_size, enable_prefix_caching, num_blocks, num_state_blocks and group_windows
  int64_t max_model_len = 0;
};

struct TraceAdd {
  RequestId request_id = 0;
  int64_t num_prompt_tokens = 0;
  int64_t num_prior_output_tokens = 0;
  int64_t max_tokens_plus_one = 0;  // 0: no max_tokens
  int64_t min_tokens = 0;
  int64_t priority = 0;
  int64_t arrival_ns = 0;
  bool accepted = false;
  bool prompt_logprobs = false;
  bool skip_reading_prefix_cache = false;
  bool interactive = false;
  std::vector<uint64_t> tags;
};

struct TraceFinish {
  FinishReason reason = FinishReason::kAbort;
  std::vector<RequestId> request_ids;
};

enum class ScheduledKind : uint8_t { kRunning, kNew, kResumed };

struct TraceScheduled {
  RequestId request_id = 0;
  int64_t num_tokens = 0;
  ScheduledKind kind = ScheduledKind::kRunning;
  int64_t num_computed_tokens = 0;  // not of a running request; for a new one, the prefix-cache hit
  int64_t num_block_ids = 0;        // in all groups

  friend bool operator==(const TraceScheduled&, const TraceScheduled&) = default;
};

struct TraceStep {
  int64_t elapsed_us = 0;
  int64_t num_blocks_in_use = 0;
  std::vector<RequestId> finished_req_ids;
  std::vector<RequestId> preempted_req_ids;
  std::vector<TraceScheduled> scheduled;
  std::vector<int32_t> block_ids;  // of all scheduled requests, in order
};

enum class SampledEnd : uint8_t { kContinues, kEos, kStopToken, kLength, kError };

struct TraceSampled {
  RequestId request_id = 0;
  int64_t num_tokens = 0;
  SampledEnd end = SampledEnd::kContinues;
  int64_t num_tags = 0;
  int64_t num_accepted_drafts = 0;
};

struct TraceDrafts {
  RequestId request_id = 0;
  int64_t num_tokens = 0;
};

struct TraceUpdate {
  int64_t elapsed_us = 0;
  std::vector<TraceSampled> sampled;
  std::vector<uint64_t> tags;  // of all sampled requests, in order
};

// One record. Only the member that belongs to `type` is valid; the others keep their memory for later records.
struct TraceRecord {
  TraceRecordType type = TraceRecordType::kEnd;
  TraceBegin begin;
  TraceAdd add;
  TraceFinish finish;
  bool reset_ok = false;
  bool paused = false;
  TraceStep step;
  TraceUpdate update;
  int64_t rollback_elapsed_us = 0;
  std::vector<TraceDrafts> drafts;
};

// Returns the number of tags of an added request.
int64_t NumTraceTags(const TraceBegin& begin, const TraceAdd& add);

// Appends the record's payload to `payload`.
void EncodeTraceRecord(const TraceRecord& record, std::string& payload);
// Appends the record with its length and checksum to `file`. `payload` is replaced; it is a buffer of the caller.
// Returns false and appends nothing if the payload is longer than kMaxRecordBytes.
bool AppendTraceRecord(const TraceRecord& record, std::string& payload, std::string& file);

// Decodes a payload into `record`. Throws ModelError with the reason if it is invalid: an unknown type, a value out of
// range, missing or superfluous bytes. Allocates memory in proportion to the size of the payload.
void DecodeTraceRecord(std::string_view payload, TraceRecord& record);

// Returns the checksum of a payload.
uint32_t TraceChecksum(std::string_view payload);

}  // namespace vllm
