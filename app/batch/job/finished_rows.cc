#include "app/batch/job/finished_rows.h"

#include <algorithm>
#include <tuple>

namespace vllm::app {
namespace {

bool IsBefore(const Hash128& a, const Hash128& b) { return std::tie(a.hi, a.lo) < std::tie(b.hi, b.lo); }

}  // namespace

uint64_t RowDigest(std::string_view record, uint64_t header_digest) {
  return Hash64(record) ^ MixBits(header_digest * kSplitMixGamma);
}

void FinishedRows::Add(const JobEntry& entry) {
  constexpr uint64_t kMaxIndex = (uint64_t{1} << 62) - 1;
  const auto index = std::min(static_cast<uint64_t>(entry.index), kMaxIndex);
  rows_.push_back({index, static_cast<uint64_t>(entry.was_openai ? 1 : 0), 0, entry.digest, entry.id});
  if (entry.status != RowStatus::kOk) ++num_failed_;
}

void FinishedRows::Sort() {
  std::sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) { return a.index < b.index; });
}

size_t FinishedRows::LowerBound(int64_t index) const {
  const auto at = std::lower_bound(rows_.begin(), rows_.end(), static_cast<uint64_t>(index),
                                   [](const Row& row, uint64_t value) { return row.index < value; });
  return static_cast<size_t>(at - rows_.begin());
}

bool FinishedRows::HasRow(int64_t index, uint64_t digest, bool& was_openai) const {
  const auto wanted = static_cast<uint64_t>(index);
  if (cursor_ >= rows_.size() || rows_[cursor_].index != wanted) cursor_ = LowerBound(index);
  // Rows that moved can have the index of another row.
  for (size_t i = cursor_; i < rows_.size() && rows_[i].index == wanted; ++i) {
    if (rows_[i].digest != digest) continue;
    rows_[i].is_found = 1;
    was_openai = rows_[i].was_openai == 1;
    cursor_ = i + 1;
    return true;
  }
  return false;
}

FinishedRows::Match FinishedRows::Find(int64_t index, uint64_t digest, std::optional<Hash128> id) const {
  if (!id) {
    const size_t at = LowerBound(index);
    const bool has_index = at < rows_.size() && rows_[at].index == static_cast<uint64_t>(index);
    // A row with an id at this index says nothing about a row without.
    return has_index && rows_[at].id == Hash128() && rows_[at].is_found == 0 ? Match::kChanged : Match::kNew;
  }
  if (by_id_.empty()) {
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i].id != Hash128()) by_id_.push_back(static_cast<uint32_t>(i));
    }
    std::sort(by_id_.begin(), by_id_.end(), [&](uint32_t a, uint32_t b) { return IsBefore(rows_[a].id, rows_[b].id); });
  }
  const auto at = std::lower_bound(by_id_.begin(), by_id_.end(), *id,
                                   [&](uint32_t row, const Hash128& value) { return IsBefore(rows_[row].id, value); });
  if (at == by_id_.end() || rows_[*at].id != *id || rows_[*at].is_found == 1) return Match::kNew;
  rows_[*at].is_found = 1;
  return rows_[*at].digest == digest ? Match::kFinished : Match::kChanged;
}

}  // namespace vllm::app
