#include "tokenizer/merge_reader.h"

#include "tokenizer/tokenizer_error.h"

namespace vllm {

void MergeReader::Add(std::string_view left, std::string_view right) {
  const int32_t left_id = IdOf(left);
  const int32_t right_id = IdOf(right);
  if (right.size() < prefix_.size()) Fail(right, "is shorter than continuing_subword_prefix");
  merges_.Add(left_id, right_id, rank_, ResultOf(left, right.substr(prefix_.size())));
  ++rank_;
}

// Most vocabularies list what merges make in the order of the merges, so the next id is tried first.
int32_t MergeReader::ResultOf(std::string_view left, std::string_view right) {
  const std::string_view guess = vocabulary_.TokenOf(last_result_ + 1).value_or("");
  if (guess.size() == left.size() + right.size() && guess.starts_with(left) && guess.ends_with(right) &&
      !guess.empty() && !vocabulary_.HasRepeatedTokens()) {
    return ++last_result_;
  }
  result_.assign(left);
  result_ += right;
  last_result_ = IdOf(result_);
  return last_result_;
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
