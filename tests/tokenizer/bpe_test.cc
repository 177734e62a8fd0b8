#include "tokenizer/models/bpe.h"

#include <map>
#include <nlohmann/json.hpp>
#include <queue>
#include <set>
#include <unordered_map>

#include "tests/tokenizer/tokenizer_test_util.h"
#include "tokenizer/formats/tokenizer_error.h"
#include "tokenizer/unicode/byte_level.h"

namespace vllm::tokenizer {
namespace {

using Pair = std::pair<int32_t, int32_t>;

struct RandomModel {
  std::vector<std::string> tokens;
  std::map<Pair, std::pair<size_t, int32_t>> merges;
  std::unique_ptr<Bpe> bpe;
};

// Makes a model over a small alphabet. Each merge joins two random earlier tokens.
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

// The slow reference: repeatedly scans all pairs and merges the best pair.
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

// The reference for long words: one priority queue of (rank, position) over the whole word. find(left, right) returns
// {rank, id}, or {-1, -1} if there is no such merge.
template <typename Find>
std::vector<int32_t> QueueBpe(std::vector<int32_t> ids, Find find) {
  using Entry = std::pair<int64_t, size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  const size_t end = ids.size();
  std::vector<size_t> next(end), previous(end);
  std::vector<int64_t> ranks(end, -1);
  const auto push_pair = [&](size_t pos) {
    ranks[pos] = next[pos] == end ? -1 : find(ids[pos], ids[next[pos]]).first;
    if (ranks[pos] >= 0) queue.push({ranks[pos], pos});
  };
  for (size_t i = 0; i < end; ++i) {
    next[i] = i + 1;
    previous[i] = i - 1;
    push_pair(i);
  }
  while (!queue.empty()) {
    const auto [rank, pos] = queue.top();
    queue.pop();
    if (ranks[pos] != rank) continue;
    const size_t right = next[pos];
    ids[pos] = find(ids[pos], ids[right]).second;
    ids[right] = -1;
    ranks[right] = -1;
    next[pos] = next[right];
    if (next[pos] != end) previous[next[pos]] = pos;
    push_pair(pos);
    if (pos > 0) push_pair(previous[pos]);
  }
  std::erase(ids, -1);
  return ids;
}

TEST(BpeTest, MatchesTheNaiveReferenceOnRandomModels) {
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
      // If the word is a token, the second call may take it from the memo instead of merging.
      ids.clear();
      model.bpe->Encode(word, scratch, ids);
      ASSERT_EQ(ids, NaiveBpe(model, symbols)) << word;
    }
  }
}

// Training would not produce most of these random models: several merges produce the same token, and a merge may use a
// token that a merge of higher rank also produces.
TEST(BpeTest, LongWordsMatchThePriorityQueueReferenceOnRandomModels) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    const RandomModel model = MakeRandomModel(random, 1 + random() % 80, round % 2 == 0);
    const size_t num_letters = round % 2 == 0 ? 4 : 5;
    const auto find = [&](int32_t left, int32_t right) {
      const auto merge = model.merges.find({left, right});
      if (merge == model.merges.end()) return std::pair<int64_t, int32_t>(-1, -1);
      return std::pair(static_cast<int64_t>(merge->second.first), merge->second.second);
    };
    // Words of kind 0 repeat one letter, and words of kind 1 repeat `period`. The letters of words of kind 2 are drawn
    // from the first two letters of the alphabet, and those of words of kind 3 from the first three.
    std::vector<int32_t> period;
    for (size_t length = 1 + random() % 40; length > 0; --length) {
      period.push_back(static_cast<int32_t>(random() % (num_letters - 1)));
    }
    for (const int kind : {0, 1, 2, 3}) {
      std::string word;
      std::vector<int32_t> symbols;
      const size_t num_symbols = 1000 + random() % 12000;
      for (size_t i = 0; i < num_symbols; ++i) {
        int32_t id = 0;
        if (kind == 1) id = period[i % period.size()];
        if (kind == 2) id = static_cast<int32_t>(random() % 2);
        if (kind == 3) id = static_cast<int32_t>(random() % 3);
        symbols.push_back(id);
        word += model.tokens[static_cast<size_t>(id)];
      }
      ModelScratch scratch;
      std::vector<int32_t> ids;
      model.bpe->Encode(word, scratch, ids);
      ASSERT_EQ(ids, QueueBpe(symbols, find)) << "round " << round << " kind " << kind;
    }
  }
}

// A token of 131072 letters does not fit into a window of the usual size, so the model must merge more symbols at once.
TEST(BpeTest, ATokenLongerThanTheUsualWindowIsFound) {
  constexpr int kDoublings = 17;
  Vocabulary vocabulary;
  MergeTable table(kDoublings);
  std::string token = "a";
  vocabulary.Add(token, 0);
  for (int32_t i = 0; i < kDoublings; ++i) {
    token += token;
    vocabulary.Add(token, i + 1);
    table.Add(i, i, static_cast<uint32_t>(i), i + 1);
  }
  vocabulary.Finish();
  const Bpe bpe(BpeConfig(), std::move(vocabulary), std::move(table));
  ModelScratch scratch;
  std::vector<int32_t> ids;
  bpe.Encode(token + token + token.substr(1), scratch, ids);
  std::vector<int32_t> expected = {kDoublings, kDoublings};
  for (int32_t i = kDoublings - 1; i >= 0; --i) expected.push_back(i);
  EXPECT_EQ(ids, expected);
}

// As in training, each merge joins two adjacent symbols of a text, but the pair is chosen at random. So there are
// tokens of one character, of several characters, and of parts of characters.
TEST(BpeTest, ByteLevelWordsOfManyScriptsMatchThePriorityQueueReference) {
  const std::vector<std::string> characters = {"\xE3\x81\xAE",
                                               "\xE3\x81\xAF",
                                               "\xE3\x82\x92",
                                               "\xE6\x97\xA5",
                                               "\xE4\xB8\xAD",
                                               "\xC3\xA9",
                                               "\xD1\x8F",
                                               "a",
                                               "b",
                                               "\xF0\x9F\x98\x80"};
  std::mt19937 random(23);
  const auto random_word = [&](size_t num_characters) {
    std::string word;
    for (size_t i = 0; i < num_characters; ++i) word += characters[random() % characters.size()];
    return word;
  };
  const auto bytes_of = [](const std::string& word) {
    std::vector<int32_t> ids;
    for (const char c : word) ids.push_back(static_cast<unsigned char>(c));
    return ids;
  };
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> tokens;  // in the byte-level alphabet
    for (int byte = 0; byte < 256; ++byte) {
      AppendByteLevel(std::string(1, static_cast<char>(byte)), tokens.emplace_back());
    }
    std::map<std::string, int32_t> ids_of;
    for (int32_t id = 0; id < 256; ++id) ids_of[tokens[static_cast<size_t>(id)]] = id;
    std::map<Pair, std::pair<int64_t, int32_t>> merges;
    const auto find = [&](int32_t left, int32_t right) {
      const auto merge = merges.find({left, right});
      return merge == merges.end() ? std::pair<int64_t, int32_t>(-1, -1) : merge->second;
    };
    for (size_t num_merges = random() % 80; num_merges > 0; --num_merges) {
      const std::vector<int32_t> symbols = QueueBpe(bytes_of(random_word(6)), find);
      if (symbols.size() < 2) continue;
      const size_t pos = random() % (symbols.size() - 1);
      const std::string joined =
          tokens[static_cast<size_t>(symbols[pos])] + tokens[static_cast<size_t>(symbols[pos + 1])];
      const auto [it, is_new] = ids_of.try_emplace(joined, static_cast<int32_t>(tokens.size()));
      if (is_new) tokens.push_back(joined);
      merges.try_emplace(Pair(symbols[pos], symbols[pos + 1]), static_cast<int64_t>(merges.size()), it->second);
    }
    Vocabulary vocabulary;
    for (size_t id = 0; id < tokens.size(); ++id) vocabulary.Add(tokens[id], static_cast<int64_t>(id));
    vocabulary.Finish();
    MergeTable table(merges.size());
    for (const auto& [pair, merge] : merges) {
      table.Add(pair.first, pair.second, static_cast<uint32_t>(merge.first), merge.second);
    }
    BpeConfig config;
    config.byte_level = true;
    const Bpe bpe(config, std::move(vocabulary), std::move(table));
    ModelScratch scratch;
    for (int i = 0; i < 100; ++i) {
      const std::string word = random_word(1 + random() % (i % 10 == 0 ? 1000 : 20));
      std::vector<int32_t> ids;
      bpe.Encode(word, scratch, ids);
      ASSERT_EQ(ids, QueueBpe(bytes_of(word), find)) << "round " << round << " " << word;
    }
  }
}

TEST(BpeTest, WordsOfTwoMegabytesMatchThePriorityQueueReferenceWithGpt2Merges) {
  const std::string directory = RealPath("tokenizers/gpt2/");
  if (!std::filesystem::exists(directory + "merges.txt"))
    GTEST_SKIP() << "reference data not found: " << directory << "merges.txt";
  const auto json = nlohmann::json::parse(ReadTestFile(directory + "vocab.json"));
  std::map<std::string, int32_t> ids_of;
  Vocabulary vocabulary;
  for (const auto& [token, id] : json.items()) {
    ids_of[token] = id.get<int32_t>();
    vocabulary.Add(token, id.get<int32_t>());
  }
  vocabulary.Finish();
  std::unordered_map<int64_t, std::pair<int64_t, int32_t>> merges;
  MergeTable table(60000);
  for (const std::string& line : ReadLines(directory + "merges.txt")) {
    const size_t space = line.find(' ');
    if (line.starts_with("#version") || space == line.npos) continue;
    const int32_t left = ids_of.at(line.substr(0, space));
    const int32_t right = ids_of.at(line.substr(space + 1));
    const int32_t result = ids_of.at(line.substr(0, space) + line.substr(space + 1));
    const auto rank = static_cast<uint32_t>(merges.size());
    merges[int64_t{left} << 32 | right] = {rank, result};
    table.Add(left, right, rank, result);
  }
  const auto find = [&](int32_t left, int32_t right) {
    const auto merge = merges.find(int64_t{left} << 32 | right);
    return merge == merges.end() ? std::pair<int64_t, int32_t>(-1, -1) : merge->second;
  };
  int32_t byte_ids[256];
  for (int byte = 0; byte < 256; ++byte) {
    std::string letter;
    AppendByteLevel(std::string(1, static_cast<char>(byte)), letter);
    byte_ids[byte] = ids_of.at(letter);
  }
  BpeConfig config;
  config.byte_level = true;
  const Bpe bpe(config, std::move(vocabulary), std::move(table));
  const std::vector<std::vector<std::string>> classes = {{"a"},
                                                         {" "},
                                                         {"\n"},
                                                         {"0", "1", "2", "7", "9"},
                                                         {"!", ".", "-", "=", "(", "#"},
                                                         {"e", "t", "a", "o", "in", "th", "er", "S", "X"},
                                                         {"中", "の", "日"},
                                                         {"😀", "🚀", "❤"},
                                                         {"é", "я", "e\u0301"}};
  std::mt19937 random(3);
  for (const std::vector<std::string>& units : classes) {
    std::string word;
    while (word.size() < 2000000) word += units[random() % units.size()];
    std::vector<int32_t> symbols;
    for (const char c : word) symbols.push_back(byte_ids[static_cast<unsigned char>(c)]);
    ModelScratch scratch;
    std::vector<int32_t> ids;
    bpe.Encode(word, scratch, ids);
    ASSERT_EQ(ids, QueueBpe(std::move(symbols), find)) << units[0];
  }
}

TEST(BpeTest, AWordOfOneMegabyteDoesNotTakeQuadraticTime) {
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

TEST(BpeTest, CharactersOutsideTheVocabularyAreDroppedIfThereIsNoUnknownToken) {
  std::mt19937 random(5);
  const RandomModel model = MakeRandomModel(random, 1, true);
  ModelScratch scratch;
  std::vector<int32_t> ids;
  model.bpe->Encode("xyz", scratch, ids);
  EXPECT_TRUE(ids.empty());
}

TEST(VocabularyTest, NegativeAndTooLargeIdsAreRejected) {
  Vocabulary vocabulary;
  EXPECT_THROW(vocabulary.Add("a", -1), TokenizerError);
  EXPECT_THROW(vocabulary.Add("a", Vocabulary::kMaxId + 1), TokenizerError);
  vocabulary.Add("a", Vocabulary::kMaxId);
  EXPECT_THROW(vocabulary.Finish(), TokenizerError);
}

TEST(VocabularyTest, FindsExactlyTheAddedTokens) {
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
}  // namespace vllm::tokenizer
