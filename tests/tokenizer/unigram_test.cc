#include "tokenizer/models/unigram.h"

#include <map>

#include "tests/tokenizer/tokenizer_test_util.h"

namespace vllm::tokenizer {
namespace {

// The slow reference: keeps the best path to every position of the word until the end. A run of "x", which is not in
// the vocabulary, becomes one unknown token.
std::vector<int32_t> PlainViterbi(const std::map<std::string, int32_t>& ids, const std::vector<double>& scores,
                                  double unk_score, const std::string& word) {
  struct Path {
    double score = -1e300;
    int32_t id = -1;
    size_t length = 0;
  };
  std::vector<Path> paths(word.size() + 1);
  paths[0].score = 0;
  for (size_t start = 0; start < word.size(); ++start) {
    const auto relax = [&](size_t length, double score, int32_t id) {
      if (score > paths[start + length].score) paths[start + length] = {score, id, length};
    };
    for (size_t length = 1; length <= 12 && start + length <= word.size(); ++length) {
      const auto found = ids.find(word.substr(start, length));
      if (found == ids.end()) continue;
      relax(length, scores[static_cast<size_t>(found->second)] + paths[start].score, found->second);
    }
    if (!ids.contains(word.substr(start, 1))) relax(1, unk_score + paths[start].score, 0);
  }
  std::vector<int32_t> tokens;
  for (size_t end = word.size(); end > 0; end -= paths[end].length) {
    if (paths[end].id != 0 || tokens.empty() || tokens.back() != 0) tokens.push_back(paths[end].id);
  }
  return {tokens.rbegin(), tokens.rend()};
}

TEST(UnigramTest, LongWordsAgreeWithAPlainViterbiSearch) {
  std::mt19937 random(29);
  for (int round = 0; round < 12; ++round) {
    std::map<std::string, int32_t> ids = {{"<unk>", 0}};
    for (const char* letter : {"a", "b", "c"}) ids.try_emplace(letter, static_cast<int32_t>(ids.size()));
    for (size_t i = random() % 40; i > 0; --i) {
      std::string token;
      for (size_t length = 2 + random() % 11; length > 0; --length) token += static_cast<char>('a' + random() % 3);
      ids.try_emplace(token, static_cast<int32_t>(ids.size()));
    }
    std::vector<double> scores;
    for (size_t i = 0; i < ids.size(); ++i) scores.push_back(-static_cast<double>(random() % 1000) / 64);
    Vocabulary vocabulary;
    for (const auto& [token, id] : ids) vocabulary.Add(token, id);
    vocabulary.Finish();
    UnigramConfig config;
    config.unk_id = 0;
    config.unk_score = -40;
    std::vector<double> model_scores = scores;
    model_scores[0] = Unigram::kNotUsed;
    const Unigram unigram(config, std::move(vocabulary), model_scores);
    std::string word;
    const size_t num_letters = 150000 + random() % 150000;
    while (word.size() < num_letters) word += round % 3 == 0 ? 'a' : "abcabcabcx"[random() % (round % 3 == 1 ? 9 : 10)];
    ModelScratch scratch;
    std::vector<int32_t> tokens;
    unigram.Encode(word, scratch, tokens);
    ASSERT_EQ(tokens, PlainViterbi(ids, scores, config.unk_score, word)) << "round " << round;
  }
}

}  // namespace
}  // namespace vllm::tokenizer
