#include "tokenizer/tokenizer.h"

#include <algorithm>

#include "tokenizer/tokenizer_parts.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer {
namespace {

// The state of one call of Encode.
class Encoding {
 public:
  Encoding(const TokenizerParts& parts, bool parse_special, const std::atomic<bool>* stop)
      : parts_(parts), parse_special_(parse_special), lists_(parts.pre_tokenizers.steps.size()) {
    scratch_.stop = stop;
  }

  std::vector<int32_t> Run(std::string_view text) {
    ids_.reserve(text.size() / 3 + 8);
    std::vector<Segment> segments;
    parts_.added.Split(text, /*normalized=*/false, parse_special_, segments);
    for (const Segment& segment : segments) {
      if (segment.id >= 0) {
        ids_.push_back(segment.id);
      } else {
        EncodeRaw(text.substr(segment.begin, segment.end - segment.begin), segment.begin == 0);
      }
    }
    return std::move(ids_);
  }

 private:
  void EncodeRaw(std::string_view text, bool at_start) {
    scratch_.ThrowIfStopped();
    std::string normalized;
    if (parts_.normalizer) {
      normalized = text;
      parts_.normalizer->Apply(normalized);
      text = normalized;
    }
    parts_.added.Split(text, /*normalized=*/true, parse_special_, segments_);
    for (const Segment& segment : segments_) {
      if (segment.id >= 0) {
        ids_.push_back(segment.id);
      } else {
        Split(0, {text.substr(segment.begin, segment.end - segment.begin), at_start && segment.begin == 0});
      }
    }
  }

  // Runs pre-tokenizer number `step` and those after it on a word, and encodes the resulting words. Finishes each batch
  // before it splits the next one, so most pre-tokenizers never hold all words of a long text in memory. The number of
  // pre-tokenizers limits the recursion.
  void Split(size_t step, const Word& word) {
    if (step == lists_.size()) {
      EncodeWord(word.text);
      return;
    }
    WordList& list = lists_[step];
    for (size_t position = 0; position < word.text.size();) {
      scratch_.ThrowIfStopped();
      position = parts_.pre_tokenizers.steps[step]->Apply(word, position, list);
      for (const Word& part : list.words) Split(step + 1, part);
    }
  }

  // Splits words that are too long for the models, which store lengths in 31 bits.
  void EncodeWord(std::string_view word) {
    constexpr size_t kLongestWord = size_t{1} << 30;
    while (word.size() > kLongestWord) {
      const size_t cut = PreviousCodePoint(word, kLongestWord);
      parts_.model->Encode(word.substr(0, cut), scratch_, ids_);
      word.remove_prefix(cut);
    }
    parts_.model->Encode(word, scratch_, ids_);
  }

  const TokenizerParts& parts_;
  bool parse_special_;
  std::vector<int32_t> ids_;
  std::vector<Segment> segments_;
  std::vector<WordList> lists_;  // one per pre-tokenizer
  ModelScratch scratch_;
};

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<const TokenizerParts> parts) : parts_(std::move(parts)) {}
Tokenizer::~Tokenizer() = default;

std::vector<int32_t> Tokenizer::Encode(std::string_view text, bool add_special_tokens, bool parse_special) const {
  std::vector<int32_t> ids = IdsOf(text, parse_special, stop_);
  if (add_special_tokens) parts_->post_processor.Apply(ids);
  return ids;
}

BoundedEncoding Tokenizer::EncodeBounded(std::string_view text, size_t max_tokens) const {
  BoundedEncoding encoding;
  encoding.ids = IdsOf(text, /*parse_special=*/true, stop_);
  const size_t room = max_tokens - std::min(max_tokens, parts_->post_processor.NumAdded());
  encoding.was_cut = encoding.ids.size() > room;
  encoding.ids.resize(std::min(encoding.ids.size(), room));
  parts_->post_processor.Apply(encoding.ids);
  return encoding;
}

BoundedEncoding Tokenizer::EncodePair(std::string_view first, std::string_view second, size_t max_tokens) const {
  const PostProcessor& processor = parts_->post_processor;
  if (!processor.JoinsPairs()) throw TokenizerError("tokenizer: does not say how two texts are joined");
  std::vector<int32_t> a = IdsOf(first, /*parse_special=*/true, stop_);
  std::vector<int32_t> b = IdsOf(second, /*parse_special=*/true, stop_);
  const size_t room = max_tokens - std::min(max_tokens, processor.NumAddedToPair());
  BoundedEncoding encoding;
  encoding.was_cut = a.size() + b.size() > room;
  if (encoding.was_cut) {
    std::vector<int32_t>& shorter = a.size() <= b.size() ? a : b;
    std::vector<int32_t>& longer = a.size() <= b.size() ? b : a;
    size_t num_short = shorter.size();
    size_t num_long = num_short > room ? num_short : std::max(num_short, room - num_short);
    if (num_short + num_long > room) {
      num_short = room / 2;
      num_long = room - num_short;
    }
    shorter.resize(std::min(shorter.size(), num_short));
    longer.resize(std::min(longer.size(), num_long));
  }
  encoding.ids = processor.ApplyToPair(a, b, encoding.type_ids);
  return encoding;
}

std::vector<int32_t> Tokenizer::EncodeOrdinary(std::string_view text) const {
  return IdsOf(text, /*parse_special=*/false, /*stop=*/nullptr);
}

std::vector<int32_t> Tokenizer::IdsOf(std::string_view text, bool parse_special, const std::atomic<bool>* stop) const {
  std::string repaired;
  if (!IsValidUtf8(text)) {
    repaired = ReplaceInvalidUtf8(text);
    text = repaired;
  }
  return Encoding(*parts_, parse_special, stop).Run(text);
}

std::string Tokenizer::Decode(std::span<const int32_t> ids, bool skip_special_tokens) const {
  std::string text;
  DecoderRun run(parts_->decoder);
  for (const int32_t id : ids) {
    if (const auto token = TokenForDecoding(id, skip_special_tokens)) run.Feed(*token, text);
  }
  run.Finish(text);
  return text;
}

int32_t Tokenizer::VocabSize() const { return parts_->vocab_size; }

std::optional<int32_t> Tokenizer::TokenToId(std::string_view token) const {
  if (const AddedToken* added = parts_->added.FindContent(token)) return added->id;
  const int32_t id = parts_->model->vocabulary().Find(token);
  return id < 0 ? std::nullopt : std::optional(id);
}

std::optional<std::string_view> Tokenizer::IdToToken(int32_t id) const {
  if (const AddedToken* added = parts_->added.FindId(id)) return added->content;
  return parts_->model->vocabulary().TokenOf(id);
}

bool Tokenizer::IsSpecial(int32_t id) const {
  const AddedToken* added = parts_->added.FindId(id);
  return added != nullptr && added->special;
}

std::string_view Tokenizer::Kind() const { return parts_->kind; }

// Hugging Face `tokenizers` passes the normalized form of an added token to the decoder. To skip special tokens, it
// looks up that form among the contents of the special tokens, so it does not skip a special token that normalization
// changes.
std::optional<std::string_view> Tokenizer::TokenForDecoding(int32_t id, bool skip_special_tokens) const {
  const AddedToken* added = parts_->added.FindId(id);
  if (added == nullptr) return parts_->model->vocabulary().TokenOf(id);
  const std::string_view token = added->normalized ? added->normalized_content : added->content;
  if (skip_special_tokens && parts_->added.IsSpecialText(token)) return std::nullopt;
  return token;
}

const TokenDecoder& Tokenizer::decoder() const { return parts_->decoder; }

}  // namespace vllm::tokenizer
