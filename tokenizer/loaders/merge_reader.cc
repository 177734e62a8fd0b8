#include "tokenizer/loaders/merge_reader.h"

#include <algorithm>

#include "tokenizer/formats/tokenizer_error.h"

namespace vllm {

void MergeReader::Add(std::string_view left, std::string_view right) {
  Waiting& waiting = waiting_[num_added_ % kDistance];
  if (num_added_ >= kDistance) LookUp(waiting);
  waiting.text.assign(left);
  waiting.text += right;
  waiting.left_bytes = left.size();
  waiting.left_hash = Vocabulary::HashOf(left);
  waiting.right_hash = Vocabulary::HashOf(right);
  vocabulary_.PrefetchSlot(waiting.left_hash);
  vocabulary_.PrefetchSlot(waiting.right_hash);
  ++num_added_;
  // What is half-way has its slots by now.
  const Waiting& half_way = waiting_[(num_added_ + kDistance / 2) % kDistance];
  vocabulary_.PrefetchEntry(half_way.left_hash);
  vocabulary_.PrefetchEntry(half_way.right_hash);
}

void MergeReader::LookUp(const Waiting& waiting) {
  const std::string_view left = std::string_view(waiting.text).substr(0, waiting.left_bytes);
  const std::string_view right = std::string_view(waiting.text).substr(waiting.left_bytes);
  const int32_t left_id = IdOf(left, waiting.left_hash);
  const int32_t right_id = IdOf(right, waiting.right_hash);
  if (right.size() < prefix_.size()) Fail(merges_.size(), right, "is shorter than continuing_subword_prefix");
  merges_.push_back({left_id, right_id, ResultOf(left, right.substr(prefix_.size()))});
}

MergeTable MergeReader::Take() {
  for (size_t i = num_added_ - std::min(num_added_, kDistance); i < num_added_; ++i) LookUp(waiting_[i % kDistance]);
  num_added_ = 0;
  MergeTable table(merges_.size());
  for (size_t i = 0; i < merges_.size(); ++i) {
    const Merge& ahead = merges_[std::min(i + kDistance, merges_.size() - 1)];
    table.Prefetch(ahead.left, ahead.right);
    table.Add(merges_[i].left, merges_[i].right, static_cast<uint32_t>(i), merges_[i].result);
  }
  return table;
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
  last_result_ = IdOf(result_, Vocabulary::HashOf(result_));
  return last_result_;
}

void MergeReader::AddLine(std::string_view line) {
  const size_t space = line.find(' ');
  if (space == line.npos || line.find(' ', space + 1) != line.npos)
    Fail(num_added_, line, "is not two tokens and a space");
  Add(line.substr(0, space), line.substr(space + 1));
}

void MergeReader::Fail(size_t rank, std::string_view what, const std::string& why) const {
  throw TokenizerError("reading merge " + std::to_string(rank) + " of " + name_ + ": " + QuoteForError(what) + " " +
                       why);
}

int32_t MergeReader::IdOf(std::string_view token, uint64_t hash) const {
  const int32_t id = vocabulary_.Find(token, hash);
  if (id < 0) Fail(merges_.size(), token, "is not in the vocabulary");
  return id;
}

}  // namespace vllm
