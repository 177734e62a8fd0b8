#include "tokenizer/bpe.h"

#include <map>
#include <set>

#include "tests/tokenizer/tokenizer_test_util.h"
#include "tokenizer/tokenizer_error.h"

namespace vllm {
namespace {

using Pair = std::pair<int32_t, int32_t>;

struct RandomModel {
  std::vector<std::string> tokens;
  std::map<Pair, std::pair<size_t, int32_t>> merges;
  std::unique_ptr<Bpe> bpe;
};

// A model over a small alphabet, whose merges are pairs of tokens made before.
RandomModel MakeRandomModel(std::mt19937& random, size_t num_merges, bool byte_level) {
  RandomModel model;
  std::map<std::string, int32_t> ids;
  for (const char* c : {"a", "b", "c", "\xC3\xA9", "\xE2\x96\x81"}) {
    ids.try_emplace(c, static_cast<int32_t>(ids.size()));
    model.tokens.push_back(c);
  }
  if (byte_level) {
    model.tokens.pop_back();
    ids.erase("\xE2\x96\x81");
  }
  while (model.merges.size() < num_merges) {
    const auto left = static_cast<int32_t>(random() % model.tokens.size());
    const auto right = static_cast<int32_t>(random() % model.tokens.size());
    const std::string joined = model.tokens[static_cast<size_t>(left)] + model.tokens[static_cast<size_t>(right)];
    if (joined.size() > 24) continue;
    const auto [it, is_new] = ids.try_emplace(joined, static_cast<int32_t>(model.tokens.size()));
    if (is_new) model.tokens.push_back(joined);
    model.merges.try_emplace(Pair(left, right), model.merges.size(), it->second);
  }
  Vocabulary vocabulary;
  for (const auto& [token, id] : ids) vocabulary.Add(token, id);
  vocabulary.Finish();
  MergeTable table(model.merges.size());
  for (const auto& [pair, merge] : model.merges) {
    table.Add(pair.first, pair.second, static_cast<uint32_t>(merge.first), merge.second);
  }
  BpeConfig config;
  config.byte_level = byte_level;
  model.bpe = std::make_unique<Bpe>(config, std::move(vocabulary), std::move(table));
  return model;
}

// The slow twin: look at all pairs, merge the best, begin again.
std::vector<int32_t> NaiveBpe(const RandomModel& model, std::vector<int32_t> ids) {
  while (true) {
    size_t best = ids.size();
    std::pair<size_t, int32_t> best_merge{SIZE_MAX, -1};
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto merge = model.merges.find({ids[i], ids[i + 1]});
      if (merge == model.merges.end() || merge->second.first >= best_merge.first) continue;
      best = i;
      best_merge = merge->second;
    }
    if (best == ids.size()) return ids;
    ids[best] = best_merge.second;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(Bpe, AgreesWithTheNaiveTwinOnRandomModelsAndWords) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const RandomModel model = MakeRandomModel(random, 1 + random() % 60, false);
    ModelScratch scratch;
    for (int i = 0; i < 40; ++i) {
      std::string word;
      std::vector<int32_t> symbols;
      for (size_t length = 1 + random() % (i % 4 == 0 ? 200 : 30); length > 0; --length) {
        symbols.push_back(static_cast<int32_t>(random() % 5));
        word += model.tokens[static_cast<size_t>(symbols.back())];
      }
      std::vector<int32_t> ids;
      model.bpe->Encode(word, scratch, ids);
      ASSERT_EQ(ids, NaiveBpe(model, symbols)) << word;
      // The second time the whole word may come from the memo.
      ids.clear();
      model.bpe->Encode(word, scratch, ids);
      ASSERT_EQ(ids, NaiveBpe(model, symbols)) << word;
    }
  }
}

TEST(Bpe, AMegabyteWithoutASpaceTakesAboutLinearTime) {
  std::mt19937 random(5);
  const RandomModel model = MakeRandomModel(random, 50, false);
  for (const char* unit : {"a", "ab", "\xC3\xA9", "\xE2\x96\x81", "a\xE2\x96\x81"}) {
    std::string word;
    while (word.size() < (1 << 20)) word += unit;
    ModelScratch scratch;
    std::vector<int32_t> ids;
    const double start = CpuSeconds();
    model.bpe->Encode(word, scratch, ids);
    EXPECT_LT(CpuSeconds() - start, 10.0) << unit;
    std::string joined;
    for (const int32_t id : ids) joined += model.tokens[static_cast<size_t>(id)];
    EXPECT_EQ(joined, word);
  }
}

TEST(Bpe, CharactersOutsideTheVocabularyAreDroppedWithoutAnUnknownToken) {
  std::mt19937 random(5);
  const RandomModel model = MakeRandomModel(random, 1, true);
  ModelScratch scratch;
  std::vector<int32_t> ids;
  model.bpe->Encode("xyz", scratch, ids);
  EXPECT_TRUE(ids.empty());
}

TEST(Vocabulary, IdsOutOfRangeAreRefused) {
  Vocabulary vocabulary;
  EXPECT_THROW(vocabulary.Add("a", -1), TokenizerError);
  EXPECT_THROW(vocabulary.Add("a", Vocabulary::kMaxId + 1), TokenizerError);
  vocabulary.Add("a", Vocabulary::kMaxId);
  EXPECT_THROW(vocabulary.Finish(), TokenizerError);
}

TEST(Vocabulary, FindsWhatWasAddedAndNothingElse) {
  Vocabulary vocabulary;
  for (int32_t i = 0; i < 5000; ++i) vocabulary.Add("token" + std::to_string(i), i * 2);
  vocabulary.Add("token7", 9999);
  vocabulary.Finish();
  EXPECT_EQ(vocabulary.size(), 5000u);
  EXPECT_EQ(vocabulary.IdLimit(), 10000);
  EXPECT_EQ(vocabulary.Find("token7"), 9999);
  EXPECT_EQ(vocabulary.Find("token4999"), 9998);
  EXPECT_EQ(vocabulary.Find("token5000"), -1);
  EXPECT_EQ(vocabulary.Find(""), -1);
  EXPECT_EQ(vocabulary.TokenOf(4).value(), "token2");
  EXPECT_FALSE(vocabulary.TokenOf(3));
  EXPECT_FALSE(vocabulary.TokenOf(-1));
  EXPECT_FALSE(vocabulary.TokenOf(1 << 30));
}

}  // namespace
}  // namespace vllm
