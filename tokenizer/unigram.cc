#include "tokenizer/unigram.h"

#include <algorithm>
#include <cmath>

#include "tokenizer/byte_level.h"
#include "tokenizer/tokenizer_error.h"
#include "tokenizer/utf8.h"

namespace vllm {

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
void Unigram::Search(std::string_view word, std::vector<ModelScratch::BestPath>& paths) const {
  paths.assign(word.size() + 1, {0, -1, 0});
  const auto offer = [](ModelScratch::BestPath& path, double sum, int32_t id, size_t length) {
    const auto score = static_cast<double>(static_cast<Sum>(sum));
    if (path.length != 0 && !(score > path.score)) return;
    path = {score, id, static_cast<uint32_t>(length)};
  };
  for (size_t start = 0; start < word.size();) {
    const double so_far = paths[start].score;
    const size_t character = CodePointAt(word, start).length;
    bool has_single = false;
    uint32_t node = TokenTrie::kRoot;
    for (size_t end = start; end < word.size();) {
      node = trie_.Next(node, static_cast<unsigned char>(word[end]));
      if (node == TokenTrie::kNoNode) break;
      ++end;
      const int32_t id = trie_.ValueOf(node);
      if (id < 0) continue;
      offer(paths[end], scores_[static_cast<size_t>(id)] + so_far, id, end - start);
      has_single = has_single || end - start == character;
    }
    if (!has_single) {
      offer(paths[start + character], static_cast<double>(static_cast<Sum>(config_.unk_score + so_far)), config_.unk_id,
            character);
    }
    start += character;
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

void Unigram::Encode(std::string_view word, ModelScratch& scratch, std::vector<int32_t>& out) const {
  if (word.empty()) return;
  std::vector<ModelScratch::BestPath>& paths = scratch.best_paths;
  if (config_.single_precision) {
    Search<float>(word, paths);
  } else {
    Search<double>(word, paths);
  }
  // The way is known from its end; turned round in place, each node tells the length and id of the token it starts.
  size_t end = word.size();
  ModelScratch::BestPath path = paths[end];
  while (end > 0) {
    const size_t start = end - path.length;
    const ModelScratch::BestPath before = paths[start];
    paths[start] = path;
    path = before;
    end = start;
  }
  size_t unknown = 0;  // bytes of the run of unknown characters before `start`
  for (size_t start = 0; start < word.size();) {
    const ModelScratch::BestPath& token = paths[start];
    if (token.id == config_.unk_id) {
      unknown += token.length;
    } else {
      if (unknown > 0) AppendUnknown(word.substr(start - unknown, unknown), out);
      unknown = 0;
      out.push_back(token.id);
    }
    start += token.length;
  }
  if (unknown > 0) AppendUnknown(word.substr(word.size() - unknown), out);
}

}  // namespace vllm
