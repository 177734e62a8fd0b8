#include "app/batch/job/job_file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "app/output/json_text.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

constexpr int64_t kMaxHeaderBytes = 16 << 20;
constexpr std::array<std::string_view, kNumRowStatuses> kStatusNames = {
    "ok",           "invalid_json", "invalid_row", "invalid_request", "duplicate_custom_id", "line_too_long",
    "engine_error", "aborted"};

template <typename T>
void Put(std::array<char, JobEntry::kBytes>& bytes, size_t offset, T value) {
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

template <typename T>
T Get(std::string_view bytes, size_t offset) {
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

uint32_t Checksum(std::string_view bytes) { return static_cast<uint32_t>(Hash64(bytes.substr(0, 60))); }

std::array<char, JobEntry::kBytes> Encode(const JobEntry& entry) {
  std::array<char, JobEntry::kBytes> bytes{};
  Put(bytes, 0, static_cast<uint8_t>(entry.kind));
  Put(bytes, 1, static_cast<uint8_t>(entry.status));
  Put(bytes, 2, static_cast<uint8_t>(entry.in_errors_file ? 1 : 0));
  Put(bytes, 3, static_cast<uint8_t>(entry.was_openai ? 1 : 0));
  Put(bytes, 4, entry.time);
  Put(bytes, 8, entry.index);
  Put(bytes, 16, entry.digest);
  Put(bytes, 24, entry.id.lo);
  Put(bytes, 32, entry.id.hi);
  Put(bytes, 40, entry.end);
  Put(bytes, 48, entry.record_hash);
  Put(bytes, 52, entry.num_prompt_tokens);
  Put(bytes, 56, entry.num_output_tokens);
  Put(bytes, 60, Checksum({bytes.data(), bytes.size()}));
  return bytes;
}

// Returns false if the entry is damaged.
bool Decode(std::string_view bytes, JobEntry& entry) {
  const auto kind = Get<uint8_t>(bytes, 0);
  const auto status = Get<uint8_t>(bytes, 1);
  const auto file = Get<uint8_t>(bytes, 2);
  if (Get<uint32_t>(bytes, 60) != Checksum(bytes) || kind < 1 || kind > 4 || status >= kNumRowStatuses || file > 1) {
    return false;
  }
  entry.kind = static_cast<JobEntry::Kind>(kind);
  entry.status = static_cast<RowStatus>(status);
  entry.in_errors_file = file == 1;
  entry.was_openai = Get<uint8_t>(bytes, 3) == 1;
  entry.time = Get<uint32_t>(bytes, 4);
  entry.index = Get<int64_t>(bytes, 8);
  entry.digest = Get<uint64_t>(bytes, 16);
  entry.id = {Get<uint64_t>(bytes, 24), Get<uint64_t>(bytes, 32)};
  entry.end = Get<int64_t>(bytes, 40);
  entry.record_hash = Get<uint32_t>(bytes, 48);
  entry.num_prompt_tokens = Get<uint32_t>(bytes, 52);
  entry.num_output_tokens = Get<uint32_t>(bytes, 56);
  return entry.index >= 0 && entry.end >= 0;
}

std::string HeaderLine(const nlohmann::ordered_json& header) {
  std::string line = DumpJson(header);
  line.append(JobEntry::kBytes - 1 - line.size() % JobEntry::kBytes, ' ');
  line += '\n';
  return line;
}

}  // namespace

std::string RowStatusName(RowStatus status) { return std::string(kStatusNames[static_cast<size_t>(status)]); }

RowStatus RowStatusOf(std::string_view name) {
  const auto at = std::find(kStatusNames.begin(), kStatusNames.end(), name);
  return static_cast<RowStatus>(at - kStatusNames.begin());
}

std::string JobPath(const std::string& output_path) { return output_path + ".job"; }

nlohmann::ordered_json ReadJob(const std::string& path, const std::function<void(const JobEntry&)>& on_entry,
                               int64_t& size) {
  const auto fail = [&](const std::string& why) -> ConfigError {
    return ConfigError("batch job file " + path + ": " + why, "--overwrite starts the job again");
  };
  const tokenizer::RegularFile file = tokenizer::OpenRegularFile(path);
  if (!file.ok()) throw fail(file.error);
  std::string buffer;
  bool at_end = false;
  const auto fill = [&] {
    constexpr size_t kReadBytes = 1 << 18;
    const size_t old_size = buffer.size();
    buffer.resize(old_size + kReadBytes);
    const ssize_t num_read = read(file.fd.get(), buffer.data() + old_size, kReadBytes);
    if (num_read < 0 && errno != EINTR) throw fail(std::strerror(errno));
    buffer.resize(old_size + static_cast<size_t>(std::max<ssize_t>(num_read, 0)));
    at_end = num_read == 0;
  };
  size_t line_end = std::string::npos;
  while (line_end == std::string::npos) {
    const size_t searched = buffer.size();
    if (searched > kMaxHeaderBytes || at_end) throw fail("has no valid header");
    fill();
    line_end = buffer.find('\n', searched);
  }
  nlohmann::ordered_json header;
  const size_t header_bytes = line_end + 1;
  if (header_bytes % JobEntry::kBytes != 0 || !ParseJsonText(buffer.substr(0, line_end), header).empty() ||
      !header.is_object() || header.value("job", nlohmann::ordered_json()) != "vllmcli batch") {
    throw fail("has no valid header");
  }
  if (header.value("version", nlohmann::ordered_json()) != 1) throw fail("has a version that this program cannot read");
  size = static_cast<int64_t>(header_bytes);
  size_t begin = header_bytes;
  while (true) {
    while (buffer.size() - begin >= JobEntry::kBytes) {
      JobEntry entry;
      if (!Decode(std::string_view(buffer).substr(begin, JobEntry::kBytes), entry)) return header;
      on_entry(entry);
      begin += JobEntry::kBytes;
      size += JobEntry::kBytes;
    }
    if (at_end) return header;
    buffer.erase(0, begin);
    begin = 0;
    fill();
  }
}

std::unique_ptr<JobFile> JobFile::Create(const std::string& path, const nlohmann::ordered_json& header) {
  const std::string temporary = path + ".tmp";
  unlink(temporary.c_str());  // an interrupted start may have left it
  std::unique_ptr<JobFile> job(new JobFile(path, temporary));
  job->file_.Append(HeaderLine(header));
  return job;
}

std::unique_ptr<JobFile> JobFile::Open(const std::string& path, int64_t size) {
  std::unique_ptr<JobFile> job(new JobFile(path, path));
  job->file_.Cut(size);
  return job;
}

void JobFile::Rename() {
  file_.Sync();
  file_.RenameTo(path_);
}

void JobFile::Append(const JobEntry& entry) {
  const auto bytes = Encode(entry);
  file_.Append({bytes.data(), bytes.size()});
}

}  // namespace vllm::app
