#include "tokenizer/normalizers/normalizer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tokenizer/formats/base64.h"
#include "tokenizer/formats/json_fields.h"
#include "tokenizer/normalizers/bert_normalizer.h"
#include "tokenizer/normalizers/charsmap.h"
#include "tokenizer/patterns/pattern_json.h"
#include "tokenizer/patterns/text_pattern.h"
#include "tokenizer/unicode/byte_level.h"
#include "tokenizer/unicode/unicode.h"
#include "tokenizer/unicode/unicode_text.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer {
namespace {

class SequenceNormalizer : public Normalizer {
 public:
  explicit SequenceNormalizer(std::vector<std::unique_ptr<Normalizer>> steps) : steps_(std::move(steps)) {}
  void Apply(std::string& text) const override {
    for (const auto& step : steps_) step->Apply(text);
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> steps_;
};

class UnicodeNormalizer : public Normalizer {
 public:
  explicit UnicodeNormalizer(UnicodeForm form) : form_(form) {}
  void Apply(std::string& text) const override { NormalizeUnicode(form_, text); }

 private:
  UnicodeForm form_;
};

class PrependNormalizer : public Normalizer {
 public:
  explicit PrependNormalizer(std::string prefix) : prefix_(std::move(prefix)) {}
  void Apply(std::string& text) const override {
    if (!text.empty()) text.insert(0, prefix_);
  }

 private:
  std::string prefix_;
};

class ReplaceNormalizer : public Normalizer {
 public:
  ReplaceNormalizer(std::unique_ptr<TextPattern> pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  void Apply(std::string& text) const override { text = ReplaceMatches(*pattern_, text, content_); }

 private:
  std::unique_ptr<TextPattern> pattern_;
  std::string content_;
};

class LowercaseNormalizer : public Normalizer {
 public:
  void Apply(std::string& text) const override {
    ForEachCharacter(text, [](char32_t c, std::string& out) { AppendLowercase(c, out); });
  }
};

class StripNormalizer : public Normalizer {
 public:
  StripNormalizer(bool left, bool right) : left_(left), right_(right) {}
  void Apply(std::string& text) const override {
    const UnicodeTable& table = UnicodeTable::Get();
    size_t begin = 0;
    size_t end = text.size();
    while (left_ && begin < end && table.Is(CodePointAt(text, begin).value, kSpace)) {
      begin += CodePointAt(text, begin).length;
    }
    while (right_ && end > begin && table.Is(CodePointAt(text, PreviousCodePoint(text, end)).value, kSpace)) {
      end = PreviousCodePoint(text, end);
    }
    text = text.substr(begin, end - begin);
  }

 private:
  bool left_;
  bool right_;
};

class StripAccentsNormalizer : public Normalizer {
 public:
  void Apply(std::string& text) const override {
    const UnicodeTable& table = UnicodeTable::Get();
    ForEachCharacter(text, [&table](char32_t c, std::string& out) {
      if (!table.Is(c, kMark)) AppendCodePoint(c, out);
    });
  }
};

class NmtNormalizer : public Normalizer {
 public:
  void Apply(std::string& text) const override {
    ForEachCharacter(text, [](char32_t c, std::string& out) {
      const bool removed =
          (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
      const bool space = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
                         (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF ||
                         c == 0xFFFD;
      if (!removed) AppendCodePoint(space ? U' ' : c, out);
    });
  }
};

// Like Hugging Face `tokenizers`, looks up a grapheme of at most kLongestGrapheme bytes as a whole. If the grapheme is
// longer or has no rule, looks up each of its characters. A lookup finds the rule for the shortest prefix and
// replaces the whole grapheme or character.
class PrecompiledNormalizer : public Normalizer {
 public:
  explicit PrecompiledNormalizer(Charsmap charsmap) : charsmap_(std::move(charsmap)) {}

  void Apply(std::string& text) const override {
    constexpr size_t kLongestGrapheme = 5;
    std::string out;
    out.reserve(text.size());
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = GraphemeEnd(text, begin);
      const std::string_view grapheme = std::string_view(text).substr(begin, end - begin);
      if (grapheme.size() > kLongestGrapheme || !AppendRule(grapheme, out)) {
        for (size_t i = 0; i < grapheme.size();) {
          const std::string_view character = grapheme.substr(i, CodePointAt(grapheme, i).length);
          if (!AppendRule(character, out)) out += character;
          i += character.size();
        }
      }
      begin = end;
    }
    text = std::move(out);
  }

 private:
  bool AppendRule(std::string_view key, std::string& out) const {
    const Charsmap::Rule rule = charsmap_.Shortest(key);
    if (rule.length == 0) return false;
    out += rule.replacement;
    return true;
  }

  Charsmap charsmap_;
};

class ByteLevelNormalizer : public Normalizer {
 public:
  void Apply(std::string& text) const override {
    std::string out;
    out.reserve(text.size() * 2);
    AppendByteLevel(text, out);
    text = std::move(out);
  }
};

// Limits what a file may request: a chain of Replace steps must not lengthen a text without bound.
struct OutputBudget {
  int num_steps = 64;
  double growth = 256;

  void Spend(double factor, const std::string& where) {
    growth /= std::max(factor, 1.0);
    if (--num_steps < 0 || !(growth >= 1)) {
      throw TokenizerError("reading " + where + ": too many steps (limit 64), or texts grow too much (limit 256-fold)");
    }
  }
};

std::unique_ptr<Normalizer> Make(const nlohmann::json& json, OutputBudget& budget) {
  if (json.is_null()) return nullptr;
  const std::string type = StringField(json, "type", "the normalizer");
  const std::string where = "the normalizer " + QuoteForError(type);
  if (type == "Sequence") {
    std::vector<std::unique_ptr<Normalizer>> steps;
    for (const nlohmann::json& step : ArrayField(json, "normalizers", where)) {
      if (auto normalizer = Make(step, budget)) steps.push_back(std::move(normalizer));
    }
    return std::make_unique<SequenceNormalizer>(std::move(steps));
  }
  if (type == "Replace") {
    const nlohmann::json& pattern = Field(json, "pattern", where);
    std::string content = StringField(json, "content", where);
    budget.Spend(ReplaceGrowth(pattern, content), where);
    return std::make_unique<ReplaceNormalizer>(MakePattern(pattern, where), std::move(content));
  }
  if (type == "Precompiled") {
    const nlohmann::json& map = Field(json, "precompiled_charsmap", where);
    Charsmap charsmap(map.is_null() ? "" : DecodeBase64(StringField(json, "precompiled_charsmap", where), where),
                      where);
    budget.Spend(static_cast<double>(charsmap.LongestReplacement()), where);
    return std::make_unique<PrecompiledNormalizer>(std::move(charsmap));
  }
  if (type == "Prepend") {
    std::string prefix = StringField(json, "prepend", where);
    budget.Spend(static_cast<double>(prefix.size()), where);
    return std::make_unique<PrependNormalizer>(std::move(prefix));
  }
  budget.Spend(type == "ByteLevel" ? 2 : 1, where);
  if (type == "BertNormalizer") {
    BertNormalizerConfig config;
    config.clean_text = BoolField(json, "clean_text", where, true);
    config.handle_chinese_chars = BoolField(json, "handle_chinese_chars", where, true);
    config.lowercase = BoolField(json, "lowercase", where, true);
    config.strip_accents = BoolField(json, "strip_accents", where, config.lowercase);
    return std::make_unique<BertNormalizer>(config);
  }
  if (type == "Nmt") return std::make_unique<NmtNormalizer>();
  if (type == "NFC") return std::make_unique<UnicodeNormalizer>(UnicodeForm::kNfc);
  if (type == "NFD") return std::make_unique<UnicodeNormalizer>(UnicodeForm::kNfd);
  if (type == "NFKC") return std::make_unique<UnicodeNormalizer>(UnicodeForm::kNfkc);
  if (type == "NFKD") return std::make_unique<UnicodeNormalizer>(UnicodeForm::kNfkd);
  if (type == "Lowercase") return std::make_unique<LowercaseNormalizer>();
  if (type == "Strip") {
    return std::make_unique<StripNormalizer>(BoolField(json, "strip_left", where),
                                             BoolField(json, "strip_right", where));
  }
  if (type == "StripAccents") return std::make_unique<StripAccentsNormalizer>();
  if (type == "ByteLevel") return std::make_unique<ByteLevelNormalizer>();
  throw TokenizerError("reading " + where + ": not supported");
}

}  // namespace

std::unique_ptr<Normalizer> MakeNormalizer(const nlohmann::json& json) {
  OutputBudget budget;
  return Make(json, budget);
}

}  // namespace vllm::tokenizer
