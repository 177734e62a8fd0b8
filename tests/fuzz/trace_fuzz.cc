// Fuzzes the reader and the replay of traces. The target first writes the current version, so that inputs stay useful
// when it changes, and the correct checksums, because no fuzzer would guess them. A record that is accepted must decode
// to the same record again after it was encoded.
#include <algorithm>
#include <string>

#include "engine/config/errors.h"
#include "engine/trace/trace_replay.h"
#include "tests/fuzz/fuzz_target.h"

namespace vllm {
namespace {

// Replaces the number after the magic by the current version.
std::string FixVersion(std::string bytes) {
  const size_t begin = kTraceMagic.size();
  if (!bytes.starts_with(kTraceMagic)) return bytes;
  const size_t end = std::min(bytes.find_first_not_of("0123456789", begin), bytes.size());
  return bytes.replace(begin, end - begin, std::to_string(kTraceVersion));
}

// Corrects the checksums of all records up to the first whose length is damaged.
std::string FixChecksums(std::string bytes) {
  size_t position = bytes.find('\n') + 1;
  while (position > 0 && position < bytes.size()) {
    size_t length = 0;
    for (unsigned shift = 0; position < bytes.size() && shift < 28; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes[position++]);
      length |= static_cast<size_t>(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    if (length + 4 > bytes.size() - position) break;
    const uint32_t checksum = TraceChecksum(std::string_view(bytes).substr(position, length));
    position += length;
    for (int i = 0; i < 4; ++i) bytes[position++] = static_cast<char>(checksum >> (8 * i));
  }
  return bytes;
}

void CheckRecords(const std::string& bytes) {
  try {
    TraceReader reader(TraceBytes(bytes));
    TraceRecord record, again;
    std::string payload, second_payload;
    while (reader.Next(record)) {
      payload.clear();
      EncodeTraceRecord(record, payload);
      DecodeTraceRecord(payload, again);
      second_payload.clear();
      EncodeTraceRecord(again, second_payload);
      Require(payload == second_payload, "a record survives encoding and decoding");
    }
  } catch (const ModelError&) {
  }
}

}  // namespace

void FuzzOne(std::string_view input) {
  const std::string bytes = FixChecksums(FixVersion(std::string(input)));
  CheckRecords(bytes);
  try {
    TraceReader reader(TraceBytes(bytes));
    ReplayTrace(reader, {.max_scheduler_bytes = 1 << 20,
                         .max_token_bytes = 1 << 20,
                         .max_tag_bytes = 1 << 20,
                         .max_model_len = 1 << 14});
  } catch (const ModelError&) {
  } catch (const ResourceError&) {
  }
}

}  // namespace vllm
