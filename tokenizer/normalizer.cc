#include "tokenizer/normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "tokenizer/byte_level.h"
#include "tokenizer/json_fields.h"
#include "tokenizer/pattern_json.h"
#include "tokenizer/text_pattern.h"
#include "tokenizer/unicode.h"
#include "tokenizer/unicode_form.h"
#include "tokenizer/utf8.h"

namespace vllm {
namespace {

// Calls change(code_point, out) for every character of text.
template <typename Change>
void ForEachCharacter(std::string& text, Change change) {
  std::string out;
  out.reserve(text.size());
  for (size_t position = 0; position < text.size();) {
    const auto [code_point, length] = CodePointAt(text, position);
    change(code_point, out);
    position += length;
  }
  text = std::move(out);
}

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
    ForEachCharacter(text, [](char32_t c, std::string& out) {
      // The only character whose lower case is two.
      if (c == 0x130) {
        out += "i\xCC\x87";
      } else {
        AppendCodePoint(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))), out);
      }
    });
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

class ByteLevelNormalizer : public Normalizer {
 public:
  void Apply(std::string& text) const override {
    std::string out;
    out.reserve(text.size() * 2);
    AppendByteLevel(text, out);
    text = std::move(out);
  }
};

// What a file may ask for: texts must not grow without bound on their way through a chain of Replace.
struct Budget {
  int num_steps = 64;
  double growth = 256;

  void Spend(double factor, const std::string& where) {
    growth /= std::max(factor, 1.0);
    if (--num_steps < 0 || !(growth >= 1)) {
      throw TokenizerError("reading " + where + ": too many steps, or texts grow too much (limit 64 steps, 256 times)");
    }
  }
};

std::unique_ptr<Normalizer> Make(const nlohmann::json& json, Budget& budget) {
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
  if (type == "Prepend") {
    std::string prefix = StringField(json, "prepend", where);
    budget.Spend(static_cast<double>(prefix.size()), where);
    return std::make_unique<PrependNormalizer>(std::move(prefix));
  }
  budget.Spend(type == "ByteLevel" ? 2 : 1, where);
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
  Budget budget;
  return Make(json, budget);
}

}  // namespace vllm
