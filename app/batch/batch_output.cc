#include "app/batch/batch_output.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/config/errors.h"

namespace vllm::app {

bool IsJobOutput(const std::string& path, int input_fd) {
  if (path.empty()) return false;
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return true;
  struct stat input {};
  if (S_ISREG(status.st_mode) && fstat(input_fd, &input) == 0 && input.st_dev == status.st_dev &&
      input.st_ino == status.st_ino) {
    throw ConfigError("batch output " + path + ": is the input file");
  }
  if (S_ISDIR(status.st_mode)) throw ConfigError("batch output " + path + ": is a directory");
  return S_ISREG(status.st_mode);
}

BatchOutput::BatchOutput(const std::string& path, std::unique_ptr<OutputFile> errors, bool ordered)
    : errors_(std::move(errors)), ordered_(ordered) {
  if (path.empty()) return;
  fd_ = tokenizer::UniqueFd(open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd_.valid()) throw ResourceError("batch output " + path + ": " + std::strerror(errno));
  stream_ = std::make_unique<OutputStream>(fd_.get(), path);
}

void BatchOutput::PutHeads(const std::string& head, const std::string& errors_head) {
  const std::string line = head.empty() ? "" : head + '\n';
  const std::string errors_line = errors_head.empty() ? "" : errors_head + '\n';
  if (job_ != nullptr) {
    job_->AppendHeads(line, errors_line);
    return;
  }
  if (!head.empty()) (stream_ == nullptr ? StandardOutput() : *stream_).WriteLine(SafeText(head));
  if (errors_ != nullptr && !errors_line.empty()) errors_->Append(errors_line);
}

void BatchOutput::Put(int64_t order, const JobEntry& entry, std::string record) {
  if (entry.in_errors_file) {
    WriteRecord(entry, std::move(record));
    Skip(order);
    return;
  }
  if (!ordered_) {
    WriteRecord(entry, std::move(record));
    return;
  }
  held_bytes_ += static_cast<int64_t>(record.size());
  held_.emplace(order, Held{entry, std::move(record)});
  WriteHeld();
}

void BatchOutput::Skip(int64_t order) {
  if (!ordered_) return;
  held_.emplace(order, std::nullopt);
  WriteHeld();
}

void BatchOutput::WriteHeld() {
  while (!held_.empty() && held_.begin()->first == next_order_) {
    if (std::optional<Held>& held = held_.begin()->second) {
      held_bytes_ -= static_cast<int64_t>(held->record.size());
      WriteRecord(held->entry, std::move(held->record));
    }
    held_.erase(held_.begin());
    ++next_order_;
  }
}

void BatchOutput::WriteRecord(const JobEntry& entry, std::string record) {
  if (job_ != nullptr) {
    job_->Append(entry, record += '\n');
  } else if (entry.in_errors_file) {
    errors_->Append(record += '\n');
  } else {
    (stream_ == nullptr ? StandardOutput() : *stream_).WriteLine(SafeText(record));
  }
}

}  // namespace vllm::app
