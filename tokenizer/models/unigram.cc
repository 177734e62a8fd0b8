#include "tokenizer/models/unigram.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <utility>

#include "tokenizer/formats/tokenizer_error.h"
#include "tokenizer/unicode/byte_level.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm {
namespace {

constexpr size_t kWindow = size_t{1} << 16;

}  // namespace

Unigram::Unigram(UnigramConfig config, Vocabulary vocabulary, std::vector<double> scores)
    : TokenModel(std::move(vocabulary)),
      config_(config),
      scores_(std::move(scores)),
      fallback_ids_(ByteFallbackIds(vocabulary_)) {
  if (!(config_.unk_id >= -1 && config_.unk_id < vocabulary_.IdLimit())) {
    throw TokenizerError("reading the model: unk_id " + std::to_string(config_.unk_id) +
                         " is not in the vocabulary (limit " + std::to_string(vocabulary_.IdLimit() - 1) + ")");
  }
  scores_.resize(static_cast<size_t>(vocabulary_.IdLimit()), kNotUsed);
  std::vector<TokenTrie::Entry> entries;
  entries.reserve(vocabulary_.size());
  for (int32_t id = 0; id < vocabulary_.IdLimit(); ++id) {
    const double score = scores_[static_cast<size_t>(id)];
    const auto token = vocabulary_.TokenOf(id);
    if (score == kNotUsed || !token) continue;
    if (!std::isfinite(score)) {
      throw TokenizerError("reading the model: the score of " + QuoteForError(*token) + " is not a number");
    }
    entries.push_back({*token, id});
  }
  trie_ = TokenTrie(std::move(entries));
}

template <typename Sum>
size_t Unigram::Step(std::string_view word, size_t start, size_t base, Paths& paths) const {
  const auto offer = [&](size_t end, double sum, int32_t id) {
    const auto score = static_cast<double>(static_cast<Sum>(sum));
    if (paths.size() <= end - base) paths.resize(end - base + 1, {0, -1, 0});
    ModelScratch::BestPath& path = paths[end - base];
    if (path.length != 0 && !(score > path.score)) return;
    path = {score, id, static_cast<uint32_t>(end - start)};
  };
  const double so_far = paths[start - base].score;
  const size_t next = start + CodePointAt(word, start).length;
  bool has_single = false;
  uint32_t node = TokenTrie::kRoot;
  for (size_t end = start; end < word.size();) {
    node = trie_.Next(node, static_cast<unsigned char>(word[end]));
    if (node == TokenTrie::kNoNode) break;
    ++end;
    const int32_t id = trie_.ValueOf(node);
    if (id < 0) continue;
    offer(end, scores_[static_cast<size_t>(id)] + so_far, id);
    has_single = has_single || end == next;
  }
  if (!has_single) {
    offer(next, static_cast<double>(static_cast<Sum>(config_.unk_score + so_far)), config_.unk_id);
  }
  return next;
}

size_t Unigram::MeetingPlace(const Paths& paths, size_t start) {
  std::priority_queue<size_t> places;
  for (size_t place = start; place < paths.size(); ++place) {
    if (paths[place].length != 0) places.push(place);
  }
  while (true) {
    const size_t place = places.top();
    while (!places.empty() && places.top() == place) places.pop();
    if (places.empty() || place == 0) return place;
    places.push(place - paths[place].length);
  }
}

void Unigram::AppendUnknown(std::string_view run, std::vector<int32_t>& out) const {
  if (config_.look_up_unknown_runs) {
    if (const int32_t id = vocabulary_.Find(run); id >= 0) {
      out.push_back(id);
      return;
    }
  }
  if (config_.byte_fallback) {
    const auto fallback = [this](char c) { return fallback_ids_[static_cast<unsigned char>(c)]; };
    if (std::all_of(run.begin(), run.end(), [&](char c) { return fallback(c) >= 0; })) {
      for (const char c : run) out.push_back(fallback(c));
      return;
    }
  }
  if (config_.unk_id >= 0) out.push_back(config_.unk_id);
}

// Appends the tokens of the best way to place `end` of the paths, the first of which stands for byte `base` of the
// word.
void Unigram::AppendWay(std::string_view word, size_t base, size_t end, Paths& paths, size_t& unknown,
                        std::vector<int32_t>& out) const {
  // The way is known from its end; turned round in place, each node tells the length and id of the token it starts.
  ModelScratch::BestPath path = paths[end];
  for (size_t place = end; place > 0;) {
    place -= path.length;
    path = std::exchange(paths[place], path);
  }
  for (size_t place = 0; place < end;) {
    const ModelScratch::BestPath& token = paths[place];
    if (token.id == config_.unk_id) {
      unknown += token.length;
    } else {
      if (unknown > 0) AppendUnknown(word.substr(base + place - unknown, unknown), out);
      unknown = 0;
      out.push_back(token.id);
    }
    place += token.length;
  }
}

void Unigram::Encode(std::string_view word, ModelScratch& scratch, std::vector<int32_t>& out) const {
  Paths& paths = scratch.best_paths;
  paths.assign(1, {0, -1, 0});
  size_t base = 0;
  size_t unknown = 0;  // bytes of the run of unknown characters before the token that comes next
  // So many bytes are looked at between two searches for a place where all ways so far meet. What lies before that
  // place is decided, and need not be kept.
  const size_t window = std::max(kWindow, vocabulary_.MaxTokenBytes());
  size_t next_search = window;
  for (size_t start = 0; start < word.size();) {
    start = config_.single_precision ? Step<float>(word, start, base, paths) : Step<double>(word, start, base, paths);
    if (start < next_search || start == word.size()) continue;
    scratch.ThrowIfStopped();
    const size_t place = MeetingPlace(paths, start - base);
    AppendWay(word, base, place, paths, unknown, out);
    paths.erase(paths.begin(), paths.begin() + static_cast<std::ptrdiff_t>(place));
    base += place;
    next_search = start + std::max(window, start - base);
  }
  AppendWay(word, base, word.size() - base, paths, unknown, out);
  if (unknown > 0) AppendUnknown(word.substr(word.size() - unknown), out);
}

}  // namespace vllm
