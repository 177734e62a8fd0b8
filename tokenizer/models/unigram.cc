#include "tokenizer/models/unigram.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <utility>

#include "tokenizer/formats/tokenizer_error.h"
#include "tokenizer/unicode/byte_level.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer {
namespace {

// Minimum number of bytes between two searches for a common position of all paths.
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
      throw TokenizerError("reading the model: the score of " + QuoteForError(*token) + " is NaN or infinite");
    }
    entries.push_back({*token, id});
  }
  trie_ = TokenTrie(std::move(entries));
}

template <typename Sum>
size_t Unigram::Step(std::string_view word, size_t start, size_t base, Paths& paths) const {
  const auto relax = [&](size_t end, double sum, int32_t id) {
    const auto score = static_cast<double>(static_cast<Sum>(sum));
    if (paths.size() <= end - base) paths.resize(end - base + 1, {0, -1, 0});
    ModelScratch::BestPath& path = paths[end - base];
    if (path.length != 0 && !(score > path.score)) return;
    path = {score, id, static_cast<uint32_t>(end - start)};
  };
  const double start_score = paths[start - base].score;
  const size_t next = start + CodePointAt(word, start).length;
  bool has_single = false;
  uint32_t node = TokenTrie::kRoot;
  for (size_t end = start; end < word.size();) {
    node = trie_.Next(node, static_cast<unsigned char>(word[end]));
    if (node == TokenTrie::kNoNode) break;
    ++end;
    const int32_t id = trie_.ValueOf(node);
    if (id < 0) continue;
    relax(end, scores_[static_cast<size_t>(id)] + start_score, id);
    has_single = has_single || end == next;
  }
  if (!has_single) {
    relax(next, static_cast<double>(static_cast<Sum>(config_.unk_score + start_score)), config_.unk_id);
  }
  return next;
}

size_t Unigram::LastCommonPosition(const Paths& paths, size_t start) {
  std::priority_queue<size_t> positions;
  for (size_t position = start; position < paths.size(); ++position) {
    if (paths[position].length != 0) positions.push(position);
  }
  while (true) {
    const size_t position = positions.top();
    while (!positions.empty() && positions.top() == position) positions.pop();
    if (positions.empty() || position == 0) return position;
    positions.push(position - paths[position].length);
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

void Unigram::AppendBestPath(std::string_view word, size_t base, size_t end, Paths& paths, size_t& unknown,
                             std::vector<int32_t>& out) const {
  // The path is linked from its end. Reverse the links in place, so that each node has the id and length of the token
  // that starts there.
  ModelScratch::BestPath path = paths[end];
  for (size_t position = end; position > 0;) {
    position -= path.length;
    path = std::exchange(paths[position], path);
  }
  for (size_t position = 0; position < end;) {
    const ModelScratch::BestPath& token = paths[position];
    if (token.id == config_.unk_id) {
      unknown += token.length;
    } else {
      if (unknown > 0) AppendUnknown(word.substr(base + position - unknown, unknown), out);
      unknown = 0;
      out.push_back(token.id);
    }
    position += token.length;
  }
}

void Unigram::Encode(std::string_view word, ModelScratch& scratch, std::vector<int32_t>& out) const {
  Paths& paths = scratch.best_paths;
  paths.assign(1, {0, -1, 0});
  size_t base = 0;
  size_t unknown = 0;  // bytes of the run of unknown characters before the next token
  // After each window, look for the last position that all paths have in common. The tokens before it are final, so
  // their part of `paths` can be dropped.
  const size_t window = std::max(kWindow, vocabulary_.MaxTokenBytes());
  size_t next_search = window;
  for (size_t start = 0; start < word.size();) {
    start = config_.single_precision ? Step<float>(word, start, base, paths) : Step<double>(word, start, base, paths);
    if (start < next_search || start == word.size()) continue;
    scratch.ThrowIfStopped();
    const size_t position = LastCommonPosition(paths, start - base);
    AppendBestPath(word, base, position, paths, unknown, out);
    paths.erase(paths.begin(), paths.begin() + static_cast<std::ptrdiff_t>(position));
    base += position;
    next_search = start + std::max(window, start - base);
  }
  AppendBestPath(word, base, word.size() - base, paths, unknown, out);
  if (unknown > 0) AppendUnknown(word.substr(word.size() - unknown), out);
}

}  // namespace vllm::tokenizer
