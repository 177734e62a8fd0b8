// Fuzzes the reader of job files. The target first writes the correct checksums, because no fuzzer would guess them.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "app/batch/job/finished_rows.h"
#include "app/batch/job/job_file.h"
#include "app/batch/job/job_identity.h"
#include "engine/config/errors.h"
#include "tests/fuzz/fuzz_target.h"

namespace vllm {
namespace {

std::string FixChecksums(std::string bytes) {
  const size_t header_bytes = bytes.find('\n') + 1;
  for (size_t at = header_bytes; header_bytes > 0 && at + 64 <= bytes.size(); at += 64) {
    const auto checksum = static_cast<uint32_t>(Hash64(std::string_view(bytes).substr(at, 60)));
    std::memcpy(bytes.data() + at + 60, &checksum, sizeof checksum);
  }
  return bytes;
}

}  // namespace

void FuzzOne(std::string_view input) {
  const std::string bytes = FixChecksums(std::string(input));
  const int fd = memfd_create("job", 0);
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  Require(write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()), "the file is written");
  app::FinishedRows rows;
  int64_t size = 0;
  try {
    const auto header = app::ReadJob(
        path, [&](const app::JobEntry& entry) { rows.Add(entry); }, size);
    Require(size > 0 && size <= static_cast<int64_t>(bytes.size()) && size % 64 == 0,
            "the size is that of whole entries");
    Require(app::JobDifferences(header, header).empty(), "a job is the same as itself");
    rows.Sort();
    bool was_openai = false;
    rows.HasRow(0, 0, was_openai);
    rows.Find(1, 2, Hash128{3, 4});
  } catch (const ConfigError&) {
  }
  close(fd);
}

}  // namespace vllm
