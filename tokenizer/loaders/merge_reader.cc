#include "tokenizer/loaders/merge_reader.h"

#include <algorithm>

#include "tokenizer/formats/tokenizer_error.h"

namespace vllm::tokenizer {

void MergeReader::Add(std::string_view left, std::string_view right) {
  Pending& pending = pending_[num_added_ % kDistance];
  if (num_added_ >= kDistance) LookUp(pending);
  pending.text.assign(left);
  pending.text += right;
  pending.left_bytes = left.size();
  pending.left_hash = Vocabulary::HashOf(left);
  pending.right_hash = Vocabulary::HashOf(right);
  vocabulary_.PrefetchSlot(pending.left_hash);
  vocabulary_.PrefetchSlot(pending.right_hash);
  ++num_added_;
  // The slots of the merge halfway through the ring should be in the cache by now.
  const Pending& halfway = pending_[(num_added_ + kDistance / 2) % kDistance];
  vocabulary_.PrefetchEntry(halfway.left_hash);
  vocabulary_.PrefetchEntry(halfway.right_hash);
}

void MergeReader::LookUp(const Pending& pending) {
  const std::string_view left = std::string_view(pending.text).substr(0, pending.left_bytes);
  const std::string_view right = std::string_view(pending.text).substr(pending.left_bytes);
  const int32_t left_id = IdOf(left, pending.left_hash);
  const int32_t right_id = IdOf(right, pending.right_hash);
  if (right.size() < prefix_.size()) Fail(merges_.size(), right, "is shorter than continuing_subword_prefix");
  merges_.push_back({left_id, right_id, ResultOf(left, right.substr(prefix_.size()))});
}

MergeTable MergeReader::Take() {
  for (size_t i = num_added_ - std::min(num_added_, kDistance); i < num_added_; ++i) LookUp(pending_[i % kDistance]);
  num_added_ = 0;
  MergeTable table(merges_.size());
  for (size_t i = 0; i < merges_.size(); ++i) {
    const Merge& ahead = merges_[std::min(i + kDistance, merges_.size() - 1)];
    table.Prefetch(ahead.left, ahead.right);
    table.Add(merges_[i].left, merges_[i].right, static_cast<uint32_t>(i), merges_[i].result);
  }
  return table;
}

// Returns the id of the merged token. Most vocabularies list the results in the order of the merges, so this tries the
// next id first.
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
    Fail(num_added_, line, "is not two tokens separated by a space");
  Add(line.substr(0, space), line.substr(space + 1));
}

void MergeReader::Fail(size_t rank, std::string_view text, const std::string& why) const {
  throw TokenizerError("reading merge " + std::to_string(rank) + " of " + name_ + ": " + QuoteForError(text) + " " +
                       why);
}

int32_t MergeReader::IdOf(std::string_view token, uint64_t hash) const {
  const int32_t id = vocabulary_.Find(token, hash);
  if (id < 0) Fail(merges_.size(), token, "is not in the vocabulary");
  return id;
}

}  // namespace vllm::tokenizer
