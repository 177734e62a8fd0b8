#include "engine/spec_decode/match_finder.h"

#include <algorithm>
#include <bit>

namespace vllm {

MatchFinder::MatchFinder(int64_t max_tokens, int64_t max_sequences)
    : capacity_(std::bit_ceil(static_cast<uint32_t>(std::max(max_tokens, kBlockTokens)))),
      max_sequences_(static_cast<uint32_t>(max_sequences)),
      heads_(kBlock) {}

void MatchFinder::Reserve(int64_t num_tokens) {
  const int64_t num_blocks = (num_tokens + kBlock - 1) / kBlock;
  const auto size = static_cast<size_t>(std::min<int64_t>(next_block_ + num_blocks * kBlock, capacity_));
  tokens_.reserve(size);
  previous_.reserve(size);
  previous_blocks_.reserve(size / kBlock);
  next_blocks_.reserve(size / kBlock);
  sequence_numbers_.reserve(size / kBlock);
  while (heads_.size() < size) GrowHeads();
}

void MatchFinder::Append(Sequence& sequence, std::span<const int32_t> tokens) {
  if (tokens.empty()) return;
  if (sequence.number_ == 0) sequence.number_ = ++num_sequences_;
  int32_t(&last)[kMinMatch] = sequence.last_tokens_;
  for (const int32_t token : tokens) {
    if (sequence.num_in_block_ == kBlock || !IsPresent(sequence.last_block_)) AddBlock(sequence);
    const Position position = sequence.last_block_ + sequence.num_in_block_++;
    tokens_[Index(position)] = token;
    if (last[0] != kNoToken) {
      Position& head = heads_[Bucket(last[0], last[1])];
      previous_[Index(position)] = head;
      head = position;
    }
    last[0] = last[1];
    last[1] = token;
  }
}

void MatchFinder::AddBlock(Sequence& sequence) {
  const Position block = next_block_;
  const size_t begin = Index(block);
  if (begin + kBlock > tokens_.size()) {
    // tokens_ is last: if an allocation fails, the next call tries all of them again.
    while (heads_.size() < begin + kBlock) GrowHeads();
    sequence_numbers_.resize(begin / kBlock + 1);
    next_blocks_.resize(begin / kBlock + 1);
    previous_blocks_.resize(begin / kBlock + 1);
    previous_.resize(begin + kBlock);
    tokens_.resize(begin + kBlock);
  }
  next_block_ += kBlock;
  std::fill_n(tokens_.begin() + static_cast<std::ptrdiff_t>(begin), kBlock, kNoToken);
  const bool continues = IsPresent(sequence.last_block_);
  if (continues) next_blocks_[Index(sequence.last_block_) / kBlock] = block;
  previous_blocks_[begin / kBlock] = continues ? sequence.last_block_ : 0;
  next_blocks_[begin / kBlock] = 0;
  sequence_numbers_[begin / kBlock] = sequence.number_;
  sequence.last_block_ = block;
  sequence.num_in_block_ = 0;
}

size_t MatchFinder::Bucket(int32_t first, int32_t second) const {
  const uint64_t both = uint64_t{static_cast<uint32_t>(first)} << 32 | static_cast<uint32_t>(second);
  return static_cast<size_t>((both * 0x9E3779B97F4A7C15u) >> 32) & (heads_.size() - 1);
}

void MatchFinder::GrowHeads() {
  // The hash gets one more bit, so each chain becomes two, in the same order. No position in a chain has been replaced,
  // because the table has its full size before the first block is replaced.
  const size_t old_size = heads_.size();
  heads_.resize(2 * old_size);
  for (size_t bucket = 0; bucket < old_size; ++bucket) {
    Position* low = &heads_[bucket];
    Position* high = &heads_[bucket + old_size];
    for (Position position = *low; position != 0;) {
      const Position last = Previous(position);
      Position*& end = Bucket(token(Previous(last)), token(last)) == bucket ? low : high;
      *end = position;
      end = &previous_[Index(position)];
      position = *end;
    }
    *low = 0;
    *high = 0;
  }
}

MatchFinder::Position MatchFinder::Previous(Position position) const {
  if (position % kBlock != 0) return position - 1;
  const Position block = previous_blocks_[Index(position) / kBlock];
  return IsPresent(block) ? block + (kBlock - 1) : 0;
}

uint32_t MatchFinder::MatchLength(Position next, std::span<const int32_t> context) const {
  uint32_t length = 0;
  Position position = next;
  while (length < context.size()) {
    position = Previous(position);
    if (token(position) != context[context.size() - 1 - length]) break;
    ++length;
  }
  return length;
}

void MatchFinder::Find(std::span<const int32_t> context, std::vector<Match>& matches) const {
  matches.clear();
  if (context.size() < kMinMatch) return;
  Position next = heads_[Bucket(context[context.size() - 2], context.back())];
  for (size_t i = 0; i < kMaxCandidates && IsPresent(next); ++i, next = previous_[Index(next)]) {
    if (num_sequences_ - sequence_numbers_[Index(next) / kBlock] >= max_sequences_) continue;
    const uint32_t length = MatchLength(next, context);
    if (length < kMinMatch) continue;
    const auto shorter = [](uint32_t value, const Match& match) { return value > match.length; };
    matches.insert(std::upper_bound(matches.begin(), matches.end(), length, shorter), Match{next, length});
  }
}

size_t MatchFinder::memory_bytes() const {
  return sizeof(int32_t) * tokens_.capacity() + sizeof(Position) * (previous_.capacity() + heads_.capacity()) +
         sizeof(Position) * (previous_blocks_.capacity() + next_blocks_.capacity()) +
         sizeof(uint32_t) * sequence_numbers_.capacity();
}

}  // namespace vllm
