#include "app/pooling/text_input.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "app/batch/input/record_reader.h"
#include "app/batch/input/text_files.h"
#include "app/output/json_text.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm::app {

TextInput::TextInput(std::vector<std::string> paths, Form form) : paths_(std::move(paths)), form_(form) {
  if (paths_.empty()) paths_ = {"-"};
  if (form_ == Form::kWholeFiles) {
    source_ = std::make_unique<TextFiles>(paths_);
    next_path_ = paths_.size();
    return;
  }
  for (const std::string& path : paths_) {
    if (path != "-" && access(path.c_str(), R_OK) != 0) {
      throw ModelError("texts " + Escape(path) + ": " + std::strerror(errno));
    }
  }
  OpenNext();
}

bool TextInput::OpenNext() {
  if (next_path_ == paths_.size()) return false;
  const std::string& path = paths_[next_path_++];
  if (path == "-") {
    source_ = std::make_unique<RecordReader>(STDIN_FILENO, "standard input", '\0');
    return true;
  }
  file_ = tokenizer::UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (file_.get() < 0) throw ModelError("texts " + Escape(path) + ": " + std::strerror(errno));
  source_ = std::make_unique<RecordReader>(file_.get(), Escape(path), '\0');
  return true;
}

std::string TextInput::Where() const {
  const std::string& path = paths_[next_path_ - 1];
  return "texts " + (path == "-" ? "standard input" : Escape(path)) + ": line " + std::to_string(source_->line());
}

TextInput::Status TextInput::Next(TextItem& item) {
  std::string_view record;
  while (true) {
    switch (source_->Next(record)) {
      case RecordSource::Status::kNeedInput:
        return Status::kNeedInput;
      case RecordSource::Status::kEnd:
        if (!OpenNext()) return Status::kEnd;
        continue;
      case RecordSource::Status::kTooLong:
        throw ModelError((form_ == Form::kWholeFiles ? "texts " + Escape(source_->name()) : Where()) +
                         ": is too long (limit 64 MiB)");
      case RecordSource::Status::kUnreadable:
        throw ModelError("texts " + Escape(source_->name()) + ": cannot be read");
      case RecordSource::Status::kRecord:
        break;
    }
    item = {};
    if (form_ != Form::kJsonLines) {
      item.value = std::string(record);
      if (form_ == Form::kWholeFiles) item.id = source_->name();
      return Status::kItem;
    }
    if (record.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (const std::string error = ParseJsonText(record, item.value); !error.empty()) {
      throw ModelError(Where() + ": " + error);
    }
    if (item.value.is_object() && item.value.contains("id")) item.id = item.value["id"];
    return Status::kItem;
  }
}

void TextInput::Fill() { source_->Fill(); }

int TextInput::fd() const { return source_->fd(); }

}  // namespace vllm::app
