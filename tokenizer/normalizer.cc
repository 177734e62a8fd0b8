#include "tokenizer/normalizer.h"

#include <utf8proc.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "tokenizer/byte_level.h"
#include "tokenizer/json_fields.h"
#include "tokenizer/pattern_json.h"
#include "tokenizer/text_pattern.h"
#include "tokenizer/unicode.h"
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

class UnicodeForm : public Normalizer {
 public:
  explicit UnicodeForm(int options) : options_(options) {}

  void Apply(std::string& text) const override {
    if (IsAscii(text) || ((options_ & UTF8PROC_COMPAT) == 0 && (options_ & UTF8PROC_COMPOSE) && IsNfc(text))) return;
    utf8proc_uint8_t* normalized = nullptr;
    const utf8proc_ssize_t size =
        utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                     &normalized, static_cast<utf8proc_option_t>(options_));
    if (size < 0) return;  // Out of memory: valid UTF-8 has no other way to fail.
    text.assign(reinterpret_cast<const char*>(normalized), static_cast<size_t>(size));
    std::free(normalized);
  }

 private:
  static bool IsNfc(std::string_view text) {
    const UnicodeTable& table = UnicodeTable::Get();
    for (size_t position = 0; position < text.size();) {
      const auto [code_point, length] = CodePointAt(text, position);
      if (table.Is(code_point, kNfcUnstable)) return false;
      position += length;
    }
    return true;
  }

  int options_;
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

}  // namespace

std::unique_ptr<Normalizer> MakeNormalizer(const nlohmann::json& json) {
  if (json.is_null()) return nullptr;
  const std::string type = StringField(json, "type", "the normalizer");
  const std::string where = "the normalizer " + QuoteForError(type);
  if (type == "Sequence") {
    std::vector<std::unique_ptr<Normalizer>> steps;
    for (const nlohmann::json& step : ArrayField(json, "normalizers", where)) {
      if (auto normalizer = MakeNormalizer(step)) steps.push_back(std::move(normalizer));
    }
    return std::make_unique<SequenceNormalizer>(std::move(steps));
  }
  if (type == "NFC") return std::make_unique<UnicodeForm>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  if (type == "NFD") return std::make_unique<UnicodeForm>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
  if (type == "NFKC") return std::make_unique<UnicodeForm>(UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
  if (type == "NFKD") return std::make_unique<UnicodeForm>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
  if (type == "Prepend") return std::make_unique<PrependNormalizer>(StringField(json, "prepend", where));
  if (type == "Replace") {
    return std::make_unique<ReplaceNormalizer>(MakePattern(Field(json, "pattern", where), where),
                                               StringField(json, "content", where));
  }
  if (type == "Lowercase") return std::make_unique<LowercaseNormalizer>();
  if (type == "Strip") {
    return std::make_unique<StripNormalizer>(BoolField(json, "strip_left", where),
                                             BoolField(json, "strip_right", where));
  }
  if (type == "StripAccents") return std::make_unique<StripAccentsNormalizer>();
  if (type == "ByteLevel") return std::make_unique<ByteLevelNormalizer>();
  throw TokenizerError("reading " + where + ": not supported");
}

}  // namespace vllm
