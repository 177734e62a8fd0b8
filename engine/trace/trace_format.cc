#include "engine/trace/trace_format.h"

#include <algorithm>
#include <type_traits>

#include "engine/config/errors.h"
#include "engine/config/hash.h"

namespace vllm {
namespace {

// FieldWriter and FieldReader have the same members, so that one function per record type describes both directions.
class FieldWriter {
 public:
  explicit FieldWriter(std::string& out) : out_(out) {}

  void Unsigned(int64_t value) { Bits(static_cast<uint64_t>(value)); }
  void Signed(int64_t value) { Bits(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63)); }
  void Switch(bool value) { Unsigned(value ? 1 : 0); }
  template <typename E>
  void Enum(E value, E /*last*/) {
    Unsigned(static_cast<int64_t>(value));
  }
  // Writes `high` and the `num_bits` bits of `low` as one number.
  void Packed(int64_t high, unsigned num_bits, uint64_t low) { Bits(static_cast<uint64_t>(high) << num_bits | low); }
  void Text(const std::string& text, int64_t /*max_bytes*/) {
    Unsigned(static_cast<int64_t>(text.size()));
    out_ += text;
  }
  void Tag(uint64_t value) {
    for (int i = 0; i < 8; ++i) out_ += static_cast<char>(value >> (8 * i));
  }
  template <typename T>
  void Count(const std::vector<T>& list, size_t /*min_bytes*/) {
    Unsigned(static_cast<int64_t>(list.size()));
  }
  // For a list whose length follows from earlier fields.
  template <typename T>
  void ImpliedCount(const std::vector<T>& /*list*/, int64_t /*count*/, size_t /*min_bytes*/) {}
  template <typename T>
  void RestIsList(const std::vector<T>& /*list*/, size_t /*item_bytes*/) {}
  void Check(bool /*holds*/, const char* /*what*/) {}

 private:
  void Bits(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }

  std::string& out_;
};

class FieldReader {
 public:
  explicit FieldReader(std::string_view in) : in_(in) {}

  void Unsigned(int64_t& value) {
    const uint64_t bits = Bits();
    Check(bits <= uint64_t{1} << 62, "number too large");
    value = static_cast<int64_t>(bits);
  }
  void Signed(int64_t& value) {
    const uint64_t bits = Bits();
    value = static_cast<int64_t>(bits >> 1 ^ (~(bits & 1) + 1));
  }
  void Switch(bool& value) {
    const uint64_t bits = Bits();
    Check(bits <= 1, "a switch that is neither 0 nor 1");
    value = bits == 1;
  }
  template <typename E>
  void Enum(E& value, E last) {
    const uint64_t bits = Bits();
    Check(bits <= static_cast<uint64_t>(last), "unknown value of an enumeration");
    value = static_cast<E>(bits);
  }
  void Packed(int64_t& high, unsigned num_bits, uint64_t& low) {
    const uint64_t bits = Bits();
    low = bits & ((uint64_t{1} << num_bits) - 1);
    high = static_cast<int64_t>(bits >> num_bits);
  }
  void Text(std::string& text, int64_t max_bytes) {
    int64_t size = 0;
    Unsigned(size);
    Check(size <= max_bytes, "text too long");
    text = Take(static_cast<size_t>(size));
  }
  void Tag(uint64_t& value) {
    const std::string_view bytes = Take(8);
    value = 0;
    for (size_t i = 0; i < 8; ++i) value |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  // Reads the length of a list whose items have at least `min_bytes` bytes each, and resizes it.
  template <typename T>
  void Count(std::vector<T>& list, size_t min_bytes) {
    int64_t count = 0;
    Unsigned(count);
    ImpliedCount(list, count, min_bytes);
  }
  template <typename T>
  void ImpliedCount(std::vector<T>& list, int64_t count, size_t min_bytes) {
    Check(count >= 0 && static_cast<uint64_t>(count) <= in_.size() / min_bytes, "list longer than the record");
    list.resize(static_cast<size_t>(count));
  }
  template <typename T>
  void RestIsList(std::vector<T>& list, size_t item_bytes) {
    Check(in_.size() % item_bytes == 0, "incomplete item at the end");
    list.resize(in_.size() / item_bytes);
  }
  void Check(bool holds, const char* what) {
    if (!holds) throw ModelError(what);
  }
  bool AtEnd() const { return in_.empty(); }

 private:
  std::string_view Take(size_t size) {
    Check(size <= in_.size(), "record too short");
    const std::string_view bytes = in_.substr(0, size);
    in_.remove_prefix(size);
    return bytes;
  }
  uint64_t Bits() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      Check(!in_.empty(), "record too short");
      const auto byte = static_cast<unsigned char>(in_.front());
      in_.remove_prefix(1);
      Check(shift < 63 || byte <= 1, "number longer than 64 bits");
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    throw ModelError("number longer than 64 bits");
  }

  std::string_view in_;
};

// In the following templates, `Record` is const for FieldWriter. Comparisons of ids wrap around, so every id has an
// encoding.
void Id(FieldWriter& io, RequestId id, RequestId& previous) {
  io.Signed(static_cast<int64_t>(id - previous));
  previous = id;
}

void Id(FieldReader& io, RequestId& id, RequestId& previous) {
  int64_t difference = 0;
  io.Signed(difference);
  id = previous += static_cast<RequestId>(difference);
}

template <typename IO, typename Ids>
void IdList(IO& io, Ids& ids, RequestId& previous) {
  io.Count(ids, 1);
  for (auto& id : ids) Id(io, id, previous);
}

void BlockId(FieldWriter& io, int32_t id, int64_t& previous) {
  io.Signed(id - previous - 1);
  previous = id;
}

void BlockId(FieldReader& io, int32_t& id, int64_t& previous) {
  int64_t difference = 0;
  io.Signed(difference);
  constexpr int64_t kMaxBlockId = int64_t{1} << 30;
  io.Check(difference >= -kMaxBlockId - 1 && difference < kMaxBlockId, "block id out of range");
  previous += difference + 1;
  io.Check(previous >= 0 && previous <= kMaxBlockId, "block id out of range");
  id = static_cast<int32_t>(previous);
}

template <typename IO, typename Time>
void Elapsed(IO& io, Time& us) {
  io.Unsigned(us);
  io.Check(us <= kMaxElapsedUs, "time out of range");
}

template <typename IO, typename Begin>
void BeginFields(IO& io, Begin& begin) {
  io.Text(begin.program_version, 64);
  auto& scheduler = begin.scheduler;
  io.Unsigned(scheduler.max_num_batched_tokens);
  io.Unsigned(scheduler.max_num_seqs);
  io.Unsigned(scheduler.long_prefill_token_threshold);
  io.Switch(scheduler.enable_chunked_prefill);
  io.Enum(scheduler.policy, SchedulingPolicy::kPriority);
  io.Switch(scheduler.scheduler_reserve_full_isl);
  auto& cache = begin.cache;
  io.Unsigned(cache.block_size);
  io.Switch(cache.enable_prefix_caching);
  io.Unsigned(cache.num_blocks);
  io.Unsigned(cache.num_state_blocks);
  io.Unsigned(begin.max_model_len);
  io.Count(cache.group_windows, 1);
  bool needs_cache = cache.num_state_blocks > 0;
  for (auto& window : cache.group_windows) {
    io.Unsigned(window);
    io.Check(window <= int64_t{1} << 30, "sliding window out of range");
    needs_cache |= window != 1;
  }
  // The limits are those of VllmConfig::Finalize, except that tests use smaller blocks.
  const auto check = [&io](int64_t value, int64_t low, int64_t high, const char* what) {
    io.Check(value >= low && value <= high, what);
  };
  check(scheduler.max_num_batched_tokens, 1, int64_t{1} << 30, "max_num_batched_tokens out of range");
  check(scheduler.max_num_seqs, 1, 4096, "max_num_seqs out of range");
  check(scheduler.long_prefill_token_threshold, 0, int64_t{1} << 30, "long_prefill_token_threshold out of range");
  check(cache.block_size, 1, 1024, "block_size out of range");
  check(cache.num_blocks, 1, int64_t{1} << 30, "num_blocks out of range");
  check(cache.num_state_blocks, 0, int64_t{1} << 20, "num_state_blocks out of range");
  check(begin.max_model_len, 1, int64_t{1} << 30, "max_model_len out of range");
  check(static_cast<int64_t>(cache.group_windows.size()), 1, 1024, "number of KV-cache groups out of range");
  io.Check(needs_cache, "no KV-cache group needs more than one token");
}

template <typename IO, typename Add>
void AddFields(IO& io, Add& add) {
  RequestId previous = 0;
  Id(io, add.request_id, previous);
  io.Unsigned(add.num_prompt_tokens);
  io.Unsigned(add.num_prior_output_tokens);
  io.Check(add.num_prompt_tokens <= kMaxScheduledTokens && add.num_prior_output_tokens <= kMaxScheduledTokens,
           "too many tokens of a request");
  io.Unsigned(add.max_tokens_plus_one);
  io.Unsigned(add.min_tokens);
  io.Signed(add.priority);
  io.Signed(add.arrival_ns);
  int64_t flags = (add.accepted ? 1 : 0) | (add.prompt_logprobs ? 2 : 0) | (add.skip_reading_prefix_cache ? 4 : 0) |
                  (add.interactive ? 8 : 0);
  io.Unsigned(flags);
  if constexpr (!std::is_const_v<Add>) {
    io.Check(flags < 16, "unknown flag");
    add.accepted = (flags & 1) != 0;
    add.prompt_logprobs = (flags & 2) != 0;
    add.skip_reading_prefix_cache = (flags & 4) != 0;
    add.interactive = (flags & 8) != 0;
  }
  io.RestIsList(add.tags, 8);
  for (auto& tag : add.tags) io.Tag(tag);
}

template <typename IO, typename Step>
void StepFields(IO& io, Step& step) {
  Elapsed(io, step.elapsed_us);
  io.Unsigned(step.num_blocks_in_use);
  RequestId previous = 0;
  IdList(io, step.finished_req_ids, previous);
  IdList(io, step.preempted_req_ids, previous);
  io.Count(step.scheduled, 2);
  int64_t num_block_ids = 0;
  for (auto& scheduled : step.scheduled) {
    Id(io, scheduled.request_id, previous);
    uint64_t low = (scheduled.num_block_ids > 0 ? 4u : 0u) | static_cast<uint64_t>(scheduled.kind);
    io.Packed(scheduled.num_tokens, 3, low);
    if constexpr (!std::is_const_v<Step>) {
      io.Check((low & 3) <= static_cast<uint64_t>(ScheduledKind::kResumed), "unknown kind of scheduled request");
      scheduled.kind = static_cast<ScheduledKind>(low & 3);
      scheduled.num_computed_tokens = 0;
      scheduled.num_block_ids = 0;
    }
    if (scheduled.kind != ScheduledKind::kRunning) io.Unsigned(scheduled.num_computed_tokens);
    if ((low & 4) != 0) io.Unsigned(scheduled.num_block_ids);
    // The bounds keep sums from overflowing.
    io.Check(scheduled.num_tokens <= kMaxScheduledTokens, "too many scheduled tokens");
    io.Check(scheduled.num_computed_tokens <= kMaxScheduledTokens, "too many computed tokens");
    io.Check(scheduled.num_block_ids <= static_cast<int64_t>(kMaxRecordBytes), "too many block ids");
    num_block_ids += scheduled.num_block_ids;
  }
  io.ImpliedCount(step.block_ids, num_block_ids, 1);
  int64_t previous_block = 0;
  for (auto& id : step.block_ids) BlockId(io, id, previous_block);
}

template <typename IO, typename Update>
void UpdateFields(IO& io, Update& update) {
  Elapsed(io, update.elapsed_us);
  io.Count(update.sampled, 2);
  RequestId previous = 0;
  int64_t num_tags = 0;
  for (auto& sampled : update.sampled) {
    Id(io, sampled.request_id, previous);
    uint64_t low = (sampled.num_accepted_drafts > 0 ? 16u : 0u) | (sampled.num_tags > 0 ? 8u : 0u) |
                   static_cast<uint64_t>(sampled.end);
    io.Packed(sampled.num_tokens, 5, low);
    if constexpr (!std::is_const_v<Update>) {
      io.Check((low & 7) <= static_cast<uint64_t>(SampledEnd::kError), "unknown end of a request");
      io.Check(sampled.num_tokens <= kMaxSampledTokens, "too many tokens of a request");
      sampled.end = static_cast<SampledEnd>(low & 7);
      sampled.num_tags = 0;
      sampled.num_accepted_drafts = 0;
    }
    if ((low & 8) != 0) io.Unsigned(sampled.num_tags);
    if ((low & 16) != 0) io.Unsigned(sampled.num_accepted_drafts);
    io.Check(sampled.num_accepted_drafts <= kMaxSpeculativeTokens, "too many accepted drafts");
    io.Check(sampled.num_tags <= sampled.num_tokens, "more blocks than tokens");
    num_tags += sampled.num_tags;
  }
  io.ImpliedCount(update.tags, num_tags, 8);
  for (auto& tag : update.tags) io.Tag(tag);
}

template <typename IO, typename Record>
void Fields(IO& io, Record& record) {
  switch (record.type) {
    case TraceRecordType::kBegin:
      return BeginFields(io, record.begin);
    case TraceRecordType::kAdd:
      return AddFields(io, record.add);
    case TraceRecordType::kFinish: {
      io.Enum(record.finish.reason, FinishReason::kError);
      io.Check(record.finish.reason != FinishReason::kNone, "a request that finished without a reason");
      RequestId previous = 0;
      return IdList(io, record.finish.request_ids, previous);
    }
    case TraceRecordType::kReset:
      return io.Switch(record.reset_ok);
    case TraceRecordType::kStep:
      return StepFields(io, record.step);
    case TraceRecordType::kUpdate:
      return UpdateFields(io, record.update);
    case TraceRecordType::kRollBack:
      return Elapsed(io, record.rollback_elapsed_us);
    case TraceRecordType::kEnd:
      return;
    case TraceRecordType::kPause:
      return io.Switch(record.paused);
    case TraceRecordType::kDrafts: {
      io.Count(record.drafts, 2);
      RequestId previous = 0;
      for (auto& drafts : record.drafts) {
        Id(io, drafts.request_id, previous);
        io.Unsigned(drafts.num_tokens);
        io.Check(drafts.num_tokens <= kMaxSpeculativeTokens, "too many drafts of a request");
      }
      return;
    }
  }
}

}  // namespace

int64_t NumTraceTags(const TraceBegin& begin, const TraceAdd& add) {
  if (!begin.cache.enable_prefix_caching) return 0;
  return (add.num_prompt_tokens + add.num_prior_output_tokens) / begin.cache.block_size;
}

void EncodeTraceRecord(const TraceRecord& record, std::string& payload) {
  payload += static_cast<char>(record.type);
  FieldWriter writer(payload);
  Fields(writer, record);
}

uint32_t TraceChecksum(std::string_view payload) { return static_cast<uint32_t>(Hash64(payload)); }

bool AppendTraceRecord(const TraceRecord& record, std::string& payload, std::string& file) {
  payload.clear();
  EncodeTraceRecord(record, payload);
  if (payload.size() > kMaxRecordBytes) return false;
  FieldWriter(file).Unsigned(static_cast<int64_t>(payload.size()));
  file += payload;
  const uint32_t checksum = TraceChecksum(payload);
  for (int i = 0; i < 4; ++i) file += static_cast<char>(checksum >> (8 * i));
  return true;
}

void DecodeTraceRecord(std::string_view payload, TraceRecord& record) {
  if (payload.empty()) throw ModelError("record without a type");
  const auto type = static_cast<unsigned char>(payload.front());
  if (type < static_cast<uint8_t>(TraceRecordType::kBegin) || type > static_cast<uint8_t>(TraceRecordType::kDrafts)) {
    throw ModelError("unknown record type (" + std::to_string(type) + ")");
  }
  record.type = static_cast<TraceRecordType>(type);
  FieldReader reader(payload.substr(1));
  Fields(reader, record);
  if (!reader.AtEnd()) throw ModelError("superfluous bytes at the end of the record");
}

}  // namespace vllm
