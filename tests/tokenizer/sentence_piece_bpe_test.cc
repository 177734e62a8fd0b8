#include "tokenizer/models/sentence_piece_bpe.h"

#include <map>
#include <queue>

#include "tests/tokenizer/tokenizer_test_util.h"

namespace vllm::tokenizer {
namespace {

struct RandomPieces {
  std::map<std::string, int32_t> ids;
  std::vector<float> scores;
  std::vector<PieceType> types;
  std::unique_ptr<SentencePieceBpe> bpe;

  void Add(const std::string& piece, float score, PieceType type) {
    if (!ids.try_emplace(piece, static_cast<int32_t>(ids.size())).second) return;
    scores.push_back(score);
    types.push_back(type);
  }
};

constexpr std::string_view kLetters[] = {"a", "b", "c", "\xC3\xA9", "\xE2\x96\x81", "x"};

// Makes random pieces over a small alphabet whose last letter is not a piece. Scores are random, so a piece may score
// higher than its parts, and several pieces may have the same score.
RandomPieces MakeRandomPieces(std::mt19937& random, size_t num_pieces) {
  RandomPieces pieces;
  pieces.Add("<unk>", 0, PieceType::kUnknown);
  for (const std::string_view letter : kLetters) {
    if (letter != "x") pieces.Add(std::string(letter), 0, PieceType::kNormal);
  }
  std::vector<std::string> texts(std::begin(kLetters), std::end(kLetters) - 1);
  while (texts.size() < num_pieces) {
    const std::string piece = texts[random() % texts.size()] + texts[random() % texts.size()];
    if (piece.size() > 24) continue;
    const PieceType type = random() % 12 == 0   ? PieceType::kUserDefined
                           : random() % 12 == 0 ? PieceType::kControl
                                                : PieceType::kNormal;
    pieces.Add(piece, -static_cast<float>(random() % (num_pieces * 2)), type);
    texts.push_back(piece);
  }
  Vocabulary vocabulary;
  for (const auto& [piece, id] : pieces.ids) vocabulary.Add(piece, id);
  vocabulary.Finish();
  SentencePieceBpeConfig config;
  config.unk_id = 0;
  pieces.bpe = std::make_unique<SentencePieceBpe>(config, std::move(vocabulary), pieces.scores, pieces.types);
  return pieces;
}

// The slow reference: one priority queue of (score, position) over the whole word, with symbols as strings.
std::vector<int32_t> QueuePieces(const RandomPieces& pieces, const std::string& word) {
  struct Symbol {
    std::string text;
    bool frozen;
    size_t previous, next;
  };
  std::vector<Symbol> symbols;
  for (size_t pos = 0; pos < word.size();) {
    size_t length = 0;
    for (const auto& [piece, id] : pieces.ids) {
      const bool is_user_defined = pieces.types[static_cast<size_t>(id)] == PieceType::kUserDefined;
      if (is_user_defined && word.compare(pos, piece.size(), piece) == 0) length = std::max(length, piece.size());
    }
    const bool frozen = length > 0;
    if (!frozen) length = CodePointAt(word, pos).length;
    symbols.push_back({word.substr(pos, length), frozen, symbols.size() - 1, symbols.size() + 1});
    pos += length;
  }
  const auto find = [&](size_t pos) {
    const size_t next = symbols[pos].next;
    if (next >= symbols.size() || symbols[pos].frozen || symbols[next].frozen) return -1;
    const auto found = pieces.ids.find(symbols[pos].text + symbols[next].text);
    if (found == pieces.ids.end()) return -1;
    const PieceType type = pieces.types[static_cast<size_t>(found->second)];
    return type == PieceType::kNormal || type == PieceType::kUserDefined ? found->second : -1;
  };
  struct Entry {
    float score;
    size_t pos;
    size_t bytes;
    bool operator<(const Entry& other) const { return score != other.score ? score < other.score : pos > other.pos; }
  };
  std::priority_queue<Entry> queue;
  const auto push_pair = [&](size_t pos) {
    if (const int32_t id = find(pos); id >= 0) {
      const size_t bytes = symbols[pos].text.size() + symbols[symbols[pos].next].text.size();
      queue.push({pieces.scores[static_cast<size_t>(id)], pos, bytes});
    }
  };
  for (size_t i = 0; i < symbols.size(); ++i) push_pair(i);
  while (!queue.empty()) {
    const Entry top = queue.top();
    queue.pop();
    Symbol& left = symbols[top.pos];
    if (left.text.empty() || left.next >= symbols.size()) continue;
    Symbol& right = symbols[left.next];
    if (left.text.size() + right.text.size() != top.bytes) continue;
    left.text += right.text;
    right.text.clear();
    left.next = right.next;
    if (left.next < symbols.size()) symbols[left.next].previous = top.pos;
    push_pair(top.pos);
    if (left.previous < symbols.size()) push_pair(left.previous);
  }
  std::vector<int32_t> ids;
  bool after_unknown = false;
  for (const Symbol& symbol : symbols) {
    if (symbol.text.empty()) continue;
    const auto found = pieces.ids.find(symbol.text);
    if (found != pieces.ids.end()) ids.push_back(found->second);
    if (found == pieces.ids.end() && !after_unknown) ids.push_back(0);
    after_unknown = found == pieces.ids.end();
  }
  return ids;
}

TEST(SentencePieceBpeTest, LongWordsMatchThePriorityQueueReferenceOnRandomPieces) {
  std::mt19937 random(17);
  for (int round = 0; round < 200; ++round) {
    const RandomPieces pieces = MakeRandomPieces(random, 6 + random() % 60);
    std::string period;
    for (size_t length = 1 + random() % 40; length > 0; --length) period += kLetters[random() % 6];
    for (const int kind : {0, 1, 2, 3}) {
      std::string word;
      const size_t num_bytes = 3000 + random() % 20000;
      while (word.size() < num_bytes) {
        if (kind == 0) word += 'a';
        if (kind == 1) word += period;
        if (kind == 2) word += kLetters[random() % 2];
        if (kind == 3) word += kLetters[random() % 6];
      }
      ModelScratch scratch;
      std::vector<int32_t> ids;
      pieces.bpe->Encode(word, scratch, ids);
      ASSERT_EQ(ids, QueuePieces(pieces, word)) << "round " << round << " kind " << kind;
    }
  }
}

}  // namespace
}  // namespace vllm::tokenizer
