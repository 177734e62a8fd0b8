#include "tokenizer/merge_reader.h"

#include "tokenizer/tokenizer_error.h"

namespace vllm {

void MergeReader::Add(std::string_view left, std::string_view right) {
  const int32_t left_id = IdOf(left);
  const int32_t right_id = IdOf(right);
  if (right.size() < prefix_.size()) Fail(right, "is shorter than continuing_subword_prefix");
  result_.assign(left);
  result_ += right.substr(prefix_.size());
  merges_.Add(left_id, right_id, rank_, IdOf(result_));
  ++rank_;
}

void MergeReader::AddLine(std::string_view line) {
  const size_t space = line.find(' ');
  if (space == line.npos || line.find(' ', space + 1) != line.npos) Fail(line, "is not two tokens and a space");
  Add(line.substr(0, space), line.substr(space + 1));
}

void MergeReader::Fail(std::string_view what, const std::string& why) const {
  throw TokenizerError("reading merge " + std::to_string(rank_) + " of " + name_ + ": " + QuoteForError(what) + " " +
                       why);
}

int32_t MergeReader::IdOf(std::string_view token) const {
  const int32_t id = vocabulary_.Find(token);
  if (id < 0) Fail(token, "is not in the vocabulary");
  return id;
}

}  // namespace vllm
