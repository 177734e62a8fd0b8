#include "app/batch/job/batch_job.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>
#include <vector>

#include "app/batch/job/job_identity.h"
#include "app/terminal/progress_line.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

constexpr std::chrono::seconds kFlushInterval{1};

bool IsFile(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0;
}

int64_t SizeOf(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? status.st_size : 0;
}

std::string RewrittenPath(const std::string& output_path, int64_t generation) {
  return output_path + "." + std::to_string(generation) + ".tmp";
}

int64_t GenerationOf(const nlohmann::ordered_json& header) {
  const auto generation = header.find("generation");
  return generation != header.end() && generation->is_number_unsigned() ? generation->get<int64_t>() : 0;
}

uint32_t RecordHash(std::string_view record) { return static_cast<uint32_t>(Hash64(record)); }

// Reads the bytes from `begin` to `end`, or those of them that the file has.
std::string ReadBytes(const OutputFile& file, int64_t begin, int64_t end) {
  end = std::min(end, file.size());
  std::string bytes(static_cast<size_t>(std::max<int64_t>(end - begin, 0)), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count =
        pread(file.fd(), bytes.data() + done, bytes.size() - done, begin + static_cast<int64_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw ResourceError("reading " + file.path() + ": " + std::strerror(count < 0 ? errno : EIO));
    done += static_cast<size_t>(count);
  }
  return bytes;
}

JobInput InputOf(const JobEntry& entry) { return {entry.digest, entry.end, entry.index}; }

}  // namespace

JobState ReadJobState(const std::string& output_path, bool leaves_out_failed) {
  JobState state;
  state.exists = IsFile(output_path) && SizeOf(output_path) > 0;
  state.has_job_file = IsFile(JobPath(output_path));
  state.is_locked = IsLocked(output_path);
  if (!state.has_job_file) return state;
  int64_t size = 0;
  int64_t head_bytes = 0;
  state.header = ReadJob(
      JobPath(output_path),
      [&](const JobEntry& entry) {
        if (entry.kind == JobEntry::Kind::kHead && !entry.in_errors_file) head_bytes = entry.end;
        if (entry.kind == JobEntry::Kind::kInput) {
          state.input = InputOf(entry);
        } else if (entry.kind == JobEntry::Kind::kRow && !(leaves_out_failed && entry.status != RowStatus::kOk)) {
          state.finished.Add(entry);
        }
        if (entry.kind != JobEntry::Kind::kInput) state.has_ended = entry.kind == JobEntry::Kind::kEnd;
      },
      size);
  state.finished.Sort();
  state.has_no_rows = state.finished.empty() && SizeOf(output_path) <= head_bytes;
  return state;
}

void CheckJob(const std::string& output_path, const JobState& state, const nlohmann::ordered_json& header,
              const JobOptions& options) {
  const std::string object = "batch output " + output_path + ": ";
  if (state.is_locked) throw ConfigError(object + "another process is writing to it");
  if (options.overwrites || (!state.exists && !state.has_job_file)) return;
  // A job without rows has nothing to lose, for example after an error in the header of a table.
  if (state.has_job_file && state.has_no_rows) return;
  if (!state.has_job_file) {
    throw ConfigError(object + (options.resumes ? "cannot be resumed, because it has no job file (" +
                                                      JobPath(output_path) + "); --overwrite replaces it"
                                                : "exists; --overwrite replaces it"));
  }
  if (!IsFile(output_path) && !state.finished.empty() &&
      !IsFile(RewrittenPath(output_path, GenerationOf(state.header)))) {
    throw ConfigError(object + "is missing, but its job file " + JobPath(output_path) +
                      " is there; --overwrite starts the job again");
  }
  std::string differences;
  for (const JobDifference& difference : JobDifferences(state.header, header)) {
    differences += (differences.empty() ? "" : "; ") + ChangeText(difference);
  }
  if (!differences.empty()) {
    throw ConfigError(
        object + (options.resumes ? "cannot be resumed: " : "exists and belongs to another job: ") + differences,
        options.resumes ? "use the settings of the job, or --overwrite to start again" : "--overwrite replaces it");
  }
  if (options.resumes) return;
  if (state.has_ended) {
    const int64_t num_failed = state.finished.num_failed();
    throw ConfigError(object + "this job is finished (" + GroupedText(state.finished.size()) + " rows, " +
                      GroupedText(num_failed) + " failed); " +
                      (num_failed > 0 ? "--retry-errors runs the failed rows again, " : "") +
                      "--overwrite starts the job again");
  }
  throw ConfigError(object + "has " + GroupedText(state.finished.size()) +
                    " rows of this unfinished job; --resume continues it, --overwrite starts again");
}

BatchJob::BatchJob(const std::string& output_path, const std::string& errors_path, nlohmann::ordered_json header,
                   const JobOptions& options)
    : header_(std::move(header)), options_(options) {
  bool starts = options_.overwrites;
  {
    // Another process may have changed the files since the caller read their state.
    JobState state = ReadJobState(output_path);
    CheckJob(output_path, state, header_, options_);
    starts = starts || !state.has_job_file || state.has_no_rows;
    // An interrupted rewrite may have left a file.
    if (starts && state.has_job_file) unlink(RewrittenPath(output_path, GenerationOf(state.header)).c_str());
    if (!starts) header_ = std::move(state.header);
  }
  if (starts) {
    Start(output_path, errors_path);
  } else {
    FinishRewrite(output_path, GenerationOf(header_));
    Resume(output_path, errors_path);
  }
  flush_due_ = std::chrono::steady_clock::now() + kFlushInterval;
}

void BatchJob::Start(const std::string& output_path, const std::string& errors_path) {
  if (!errors_path.empty() && !options_.overwrites && !IsFile(JobPath(output_path)) && SizeOf(errors_path) > 0) {
    throw ConfigError("batch errors file " + errors_path + ": exists; --overwrite replaces it");
  }
  output_ = std::make_unique<OutputFile>(output_path);
  if (!errors_path.empty()) errors_ = std::make_unique<OutputFile>(errors_path);
  // Without its job file, the output is not taken for that of the old job if this start fails.
  unlink(JobPath(output_path).c_str());
  output_->Cut(0);
  if (errors_ != nullptr) errors_->Cut(0);
  job_ = JobFile::Create(JobPath(output_path), header_);
  output_->Sync();
  job_->Rename();
  SyncDirectoryOf(output_path);
}

void BatchJob::FinishRewrite(const std::string& output_path, int64_t generation) {
  const std::string rewritten = RewrittenPath(output_path, generation);
  if (generation == 0 || !IsFile(rewritten)) return;
  OutputFile file(rewritten);
  file.RenameTo(output_path);
}

void BatchJob::Resume(const std::string& output_path, const std::string& errors_path) {
  output_ = std::make_unique<OutputFile>(output_path);
  if (!errors_path.empty()) errors_ = std::make_unique<OutputFile>(errors_path);
  std::array<int64_t, 2> ends{};  // of the last whole record of the output and of the errors file
  int64_t num_entries = 0;
  int64_t num_whole = 0;  // entries before the first whose record is not there
  bool is_whole = true;
  std::vector<Record> kept;
  bool drops_failed = false;
  int64_t size = 0;
  const auto on_entry = [&](const JobEntry& entry) {
    ++num_entries;
    if (!is_whole) return;
    if (entry.kind == JobEntry::Kind::kHead || entry.kind == JobEntry::Kind::kRow) {
      const OutputFile* file = entry.in_errors_file ? errors_.get() : output_.get();
      int64_t& end = ends[entry.in_errors_file ? 1 : 0];
      const std::string record = file == nullptr ? "" : ReadBytes(*file, end, entry.end);
      if (static_cast<int64_t>(record.size()) != entry.end - end || RecordHash(record) != entry.record_hash) {
        // After a power failure, the end of a file may be missing or consist of zeros.
        if (file == nullptr || (entry.end <= file->size() && record.find('\0') == std::string::npos)) {
          throw ConfigError("batch output " + (file == nullptr ? output_path : file->path()) +
                                ": another program has changed it, at byte " + std::to_string(end),
                            "--overwrite starts the job again");
        }
        is_whole = false;
        return;
      }
      if (options_.retries_errors && entry.kind == JobEntry::Kind::kRow && entry.status != RowStatus::kOk) {
        drops_failed = true;
      } else {
        if (options_.retries_errors && !entry.in_errors_file) kept.push_back({end, entry});
        if (entry.kind == JobEntry::Kind::kRow) finished_.Add(entry);
      }
      end = entry.end;
      if (entry.kind == JobEntry::Kind::kHead) has_head_[entry.in_errors_file ? 1 : 0] = true;
    } else if (entry.kind == JobEntry::Kind::kInput) {
      input_ = InputOf(entry);
    }
    ++num_whole;
  };
  ReadJob(JobPath(output_path), on_entry, size);
  finished_.Sort();
  num_cut_bytes_ = output_->size() - ends[0];
  output_->Cut(ends[0]);
  if (errors_ != nullptr) errors_->Cut(ends[1]);
  const int64_t lost_bytes = (num_entries - num_whole) * static_cast<int64_t>(JobEntry::kBytes);
  job_ = JobFile::Open(JobPath(output_path), size - lost_bytes);
  if (!drops_failed) return;
  Rewrite(kept, {});
  // The new job file has no entry of this file, so an interruption before this line changes nothing.
  if (errors_ != nullptr) errors_->Cut(0);
  has_head_[1] = false;
}

void BatchJob::Rewrite(const std::vector<Record>& records, const std::vector<JobEntry>& errors) {
  const int64_t generation = GenerationOf(header_) + 1;
  header_["generation"] = generation;
  const std::string path = output_->path();
  const std::string rewritten_path = RewrittenPath(path, generation);
  unlink(rewritten_path.c_str());  // an interrupted rewrite may have left it
  auto rewritten = std::make_unique<OutputFile>(rewritten_path);
  std::unique_ptr<JobFile> job = JobFile::Create(JobPath(path), header_);
  for (const Record& record : records) {
    rewritten->Append(ReadBytes(*output_, record.begin, record.entry.end));
    JobEntry entry = record.entry;
    entry.end = rewritten->size();
    job->Append(entry);
  }
  for (const JobEntry& entry : errors) job->Append(entry);
  rewritten->Sync();
  // From this rename on, the job file describes the rewritten output, and FinishRewrite does the second rename if this
  // process cannot.
  job->Rename();
  rewritten->RenameTo(path);
  output_ = std::move(rewritten);
  job_ = std::move(job);
  if (input_) SetInput(*input_);
}

void BatchJob::AppendHeads(std::string_view head, std::string_view errors_head) {
  JobEntry entry;
  entry.kind = JobEntry::Kind::kHead;
  if (!head.empty() && !has_head_[0]) AppendRecord(entry, head);
  entry.in_errors_file = true;
  if (!errors_head.empty() && errors_ != nullptr && !has_head_[1]) AppendRecord(entry, errors_head);
  has_head_ = {true, true};
}

void BatchJob::Append(JobEntry entry, std::string_view record) {
  entry.kind = JobEntry::Kind::kRow;
  entry.in_errors_file = entry.in_errors_file && errors_ != nullptr;
  AppendRecord(entry, record);
}

void BatchJob::AppendRecord(JobEntry entry, std::string_view record) {
  OutputFile& file = entry.in_errors_file ? *errors_ : *output_;
  file.Append(record);
  entry.time = static_cast<uint32_t>(std::time(nullptr));
  entry.end = file.size();
  entry.record_hash = RecordHash(record);
  job_->Append(entry);
}

void BatchJob::SetInput(const JobInput& input) {
  input_ = input;
  JobEntry entry;
  entry.kind = JobEntry::Kind::kInput;
  entry.index = input.num_rows;
  entry.digest = input.digest;
  entry.end = input.num_bytes;
  job_->Append(entry);
}

void BatchJob::End(bool sorts) {
  if (sorts) Sort();
  JobEntry entry;
  entry.kind = JobEntry::Kind::kEnd;
  entry.time = static_cast<uint32_t>(std::time(nullptr));
  job_->Append(entry);
  Flush();
}

void BatchJob::Sort() {
  // Rows of a job that was never interrupted are in order already.
  int64_t last_index = -1;
  bool is_sorted = true;
  int64_t size = 0;
  const std::string job_path = JobPath(output_->path());
  ReadJob(
      job_path,
      [&](const JobEntry& entry) {
        if (entry.kind != JobEntry::Kind::kRow || entry.in_errors_file) return;
        is_sorted = is_sorted && entry.index >= last_index;
        last_index = entry.index;
      },
      size);
  if (is_sorted) return;
  std::vector<Record> records;
  std::vector<JobEntry> errors;
  int64_t begin = 0;
  ReadJob(
      job_path,
      [&](const JobEntry& entry) {
        if (entry.kind == JobEntry::Kind::kInput || entry.kind == JobEntry::Kind::kEnd) return;
        if (entry.in_errors_file) {
          errors.push_back(entry);
        } else {
          records.push_back({begin, entry});
          begin = entry.end;
        }
      },
      size);
  std::stable_sort(records.begin(), records.end(), [](const Record& a, const Record& b) {
    if (a.entry.kind != b.entry.kind) return a.entry.kind == JobEntry::Kind::kHead;
    return a.entry.index < b.entry.index;
  });
  Rewrite(records, errors);
}

void BatchJob::Flush() {
  output_->Sync();
  if (errors_ != nullptr) errors_->Sync();
  job_->Sync();
}

void BatchJob::Update() {
  const auto now = std::chrono::steady_clock::now();
  if (options_.fsync == JobOptions::Fsync::kRow) Flush();
  if (now < flush_due_) return;
  flush_due_ = now + kFlushInterval;
  output_->CheckExists();
  if (errors_ != nullptr) errors_->CheckExists();
  job_->CheckExists();
  if (options_.fsync == JobOptions::Fsync::kSecond) Flush();
}

}  // namespace vllm::app
