#include "tokenizer/pre_tokenizers/pre_tokenizer.h"

#include <algorithm>
#include <utility>

#include "tokenizer/formats/json_fields.h"
#include "tokenizer/patterns/pattern_json.h"
#include "tokenizer/patterns/word_scanner.h"
#include "tokenizer/unicode/byte_level.h"
#include "tokenizer/unicode/metaspace.h"
#include "tokenizer/unicode/unicode.h"
#include "tokenizer/unicode/unicode_script.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer {
namespace {

// How a split treats the matches ("behavior" in tokenizer.json). "the-final--countdown" split at "-":
//   Removed             the|final|countdown
//   Isolated            the|-|final|-|-|countdown
//   MergedWithPrevious  the-|final-|-|countdown
//   MergedWithNext      the|-final|-|-countdown
//   Contiguous          the|-|final|--|countdown
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// Throws TokenizerError for an unknown name. `where` names the pre-tokenizer in error messages.
SplitBehavior ParseSplitBehavior(std::string_view name, const std::string& where) {
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  throw TokenizerError("reading " + where + ": unknown behavior " + QuoteForError(name));
}

// Turns the matches of a text into pieces. The caller drops pieces that still have is_match set.
void ApplyBehavior(SplitBehavior behavior, std::vector<Match>& matches) {
  if (behavior == SplitBehavior::kRemoved) return;
  size_t count = 0;
  bool previous_is_match = false;
  const bool backwards = behavior == SplitBehavior::kMergedWithNext;
  if (backwards) std::reverse(matches.begin(), matches.end());
  for (const Match match : matches) {
    bool merge = false;
    if (behavior == SplitBehavior::kContiguous) merge = match.is_match == previous_is_match;
    if (behavior == SplitBehavior::kMergedWithPrevious || backwards) merge = match.is_match && !previous_is_match;
    previous_is_match = match.is_match;
    if (!merge || count == 0) {
      matches[count++] = {match.begin, match.end, false};
    } else if (backwards) {
      matches[count - 1].begin = match.begin;
    } else {
      matches[count - 1].end = match.end;
    }
  }
  matches.resize(count);
  if (backwards) std::reverse(matches.begin(), matches.end());
}

// Splits a text where its script changes, for the pre-tokenizer UnicodeScripts. Han, Hiragana and Katakana count as one
// script. Spaces and characters without a script belong to the piece before them, or are dropped at the start of a
// text.
class ScriptPattern : public TextPattern {
 public:
  ScriptPattern() { ScriptTable::Get(); }
  // A match is a piece of one script.
  size_t FindMatches(std::string_view text, size_t from, std::vector<Match>& matches) const override {
    const ScriptTable& table = ScriptTable::Get();
    uint8_t last = ScriptTable::kNoScript;
    const size_t first = matches.size();
    for (size_t position = from; position < text.size();) {
      const auto [code_point, length] = CodePointAt(text, position);
      const uint8_t script = table.ScriptOf(code_point);
      if (script != ScriptTable::kNoScript && script != last) {
        if (matches.size() > first) {
          matches.back().end = position;
          if (matches.size() - first >= kBatch) return position;
        } else if (position > from) {
          matches.push_back({from, position, false});
        }
        matches.push_back({position, text.size(), true});
        last = script;
      }
      position += length;
    }
    if (matches.size() == first && !text.empty()) matches.push_back({from, text.size(), false});
    return text.size();
  }
};

class SplitStep : public PreTokenizer {
 public:
  SplitStep(std::unique_ptr<TextPattern> pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  size_t Apply(const Word& word, size_t position, WordList& list) const override {
    list.words.clear();
    list.matches.clear();
    // The other behaviors join adjacent pieces, which may be in different batches.
    const bool in_batches = behavior_ == SplitBehavior::kIsolated || behavior_ == SplitBehavior::kRemoved;
    do {
      position = pattern_->FindMatches(word.text, position, list.matches);
    } while (position < word.text.size() && !in_batches);
    if (invert_) {
      for (Match& match : list.matches) match.is_match = !match.is_match;
    }
    ApplyBehavior(behavior_, list.matches);
    for (const Match& piece : list.matches) {
      if (piece.is_match || piece.begin == piece.end) continue;
      list.words.push_back({word.text.substr(piece.begin, piece.end - piece.begin), word.at_start && piece.begin == 0});
    }
    return position;
  }

 private:
  std::unique_ptr<TextPattern> pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

// A step that rewrites a word without splitting it.
class RewriteStep : public PreTokenizer {
 public:
  size_t Apply(const Word& word, size_t, WordList& list) const override {
    list.owned = Rewrite(word);
    list.words.assign(1, {list.owned, word.at_start});
    return word.text.size();
  }

 private:
  virtual std::string Rewrite(const Word& word) const = 0;
};

class PrefixSpaceStep : public RewriteStep {
 public:
  int Growth() const override { return 2; }

 private:
  std::string Rewrite(const Word& word) const override {
    std::string text;
    text.reserve(word.text.size() + 1);
    if (!word.text.starts_with(' ')) text += ' ';
    text += word.text;
    return text;
  }
};

class ByteLevelStep : public RewriteStep {
 public:
  int Growth() const override { return 2; }

 private:
  std::string Rewrite(const Word& word) const override {
    std::string text;
    AppendByteLevel(word.text, text);
    return text;
  }
};

// Replaces each space with `replacement`, normally U+2581. Depending on `prepend`, also puts it in front of a word that
// starts with neither a space nor `replacement`.
class MetaspaceStep : public RewriteStep {
 public:
  enum class Prepend { kAlways, kFirst, kNever };
  MetaspaceStep(std::string replacement, Prepend prepend) : replacement_(std::move(replacement)), prepend_(prepend) {}
  int Growth() const override { return 4; }

 private:
  std::string Rewrite(const Word& word) const override {
    const bool prepends = prepend_ == Prepend::kAlways || (prepend_ == Prepend::kFirst && word.at_start);
    const bool has_prefix = word.text.starts_with(' ') || word.text.starts_with(replacement_);
    std::string text;
    text.reserve(word.text.size() + word.text.size() / 2 + replacement_.size());
    if (prepends && !has_prefix) text += replacement_;
    for (const char c : word.text) {
      if (c == ' ') {
        text += replacement_;
      } else {
        text += c;
      }
    }
    return text;
  }

  std::string replacement_;
  Prepend prepend_;
};

using Steps = std::vector<std::unique_ptr<PreTokenizer>>;

void AddSplit(Steps& steps, std::unique_ptr<TextPattern> pattern, SplitBehavior behavior, bool invert = false) {
  steps.push_back(std::make_unique<SplitStep>(std::move(pattern), behavior, invert));
}

void AddClassSplit(Steps& steps, uint16_t classes, SplitBehavior behavior) {
  // For kContiguous, match whole runs of the class, so that no pieces need to be joined.
  const bool whole_runs = behavior == SplitBehavior::kContiguous;
  AddSplit(steps, std::make_unique<ClassPattern>(classes, whole_runs, false),
           whole_runs ? SplitBehavior::kIsolated : behavior);
}

void AddByteLevel(Steps& steps, bool add_prefix_space, bool use_regex) {
  if (add_prefix_space) steps.push_back(std::make_unique<PrefixSpaceStep>());
  if (use_regex) {
    AddSplit(steps, std::make_unique<ScannerPattern>(Gpt2WordScanner()), SplitBehavior::kIsolated);
  }
  steps.push_back(std::make_unique<ByteLevelStep>());
}

void AddMetaspace(Steps& steps, const nlohmann::json& json, const std::string& where) {
  const std::string replacement = StringField(json, "replacement", where);
  if (CountCodePoints(replacement) != 1) {
    throw TokenizerError("reading " + where + ": replacement " + QuoteForError(replacement) + " is not one character");
  }
  using Prepend = MetaspaceStep::Prepend;
  const bool has_scheme = json.contains("prepend_scheme");
  const std::string scheme = has_scheme ? StringField(json, "prepend_scheme", where) : "always";
  Prepend prepend = Prepend::kAlways;
  if (scheme == "first") {
    prepend = Prepend::kFirst;
  } else if (scheme == "never") {
    prepend = Prepend::kNever;
  } else if (scheme != "always") {
    throw TokenizerError("reading " + where + ": unknown prepend_scheme " + QuoteForError(scheme));
  }
  if (!BoolField(json, "add_prefix_space", where, true)) {
    if (has_scheme && prepend != Prepend::kNever) {
      throw TokenizerError("reading " + where + ": add_prefix_space is false, but prepend_scheme is " +
                           QuoteForError(scheme));
    }
    prepend = Prepend::kNever;
  }
  steps.push_back(std::make_unique<MetaspaceStep>(replacement, prepend));
  if (BoolField(json, "split", where, true)) {
    AddSplit(steps, std::make_unique<LiteralStartPattern>(replacement), SplitBehavior::kIsolated);
  }
}

void AddSteps(Steps& steps, const nlohmann::json& json) {
  if (json.is_null()) return;
  const std::string type = StringField(json, "type", "the pre-tokenizer");
  const std::string where = "the pre-tokenizer " + QuoteForError(type);
  if (type == "Sequence") {
    for (const nlohmann::json& step : ArrayField(json, "pretokenizers", where)) AddSteps(steps, step);
  } else if (type == "ByteLevel") {
    AddByteLevel(steps, BoolField(json, "add_prefix_space", where), BoolField(json, "use_regex", where, true));
  } else if (type == "Split") {
    AddSplit(steps, MakePattern(Field(json, "pattern", where), where),
             ParseSplitBehavior(StringField(json, "behavior", where), where), BoolField(json, "invert", where));
  } else if (type == "Metaspace") {
    AddMetaspace(steps, json, where);
  } else if (type == "Digits") {
    AddClassSplit(steps, kNumber,
                  BoolField(json, "individual_digits", where) ? SplitBehavior::kIsolated : SplitBehavior::kContiguous);
  } else if (type == "Whitespace") {
    AddSplit(steps, std::make_unique<WordOrSymbolsPattern>(), SplitBehavior::kRemoved, true);
  } else if (type == "WhitespaceSplit") {
    AddClassSplit(steps, kSpace, SplitBehavior::kRemoved);
  } else if (type == "Punctuation") {
    AddClassSplit(steps, kPunctuation,
                  json.contains("behavior") ? ParseSplitBehavior(StringField(json, "behavior", where), where)
                                            : SplitBehavior::kIsolated);
  } else if (type == "CharDelimiterSplit") {
    const std::string delimiter = StringField(json, "delimiter", where);
    if (CountCodePoints(delimiter) != 1) {
      throw TokenizerError("reading " + where + ": delimiter " + QuoteForError(delimiter) + " is not one character");
    }
    AddSplit(steps, MakeLiteralPattern(delimiter), SplitBehavior::kRemoved);
  } else if (type == "FixedLength") {
    const int64_t length = json.contains("length") ? IntegerField(json, "length", where, int64_t{1} << 40) : 5;
    if (length == 0) throw TokenizerError("reading " + where + ": field length is 0 (must be at least 1)");
    AddSplit(steps, std::make_unique<FixedLengthPattern>(static_cast<size_t>(length)), SplitBehavior::kIsolated);
  } else if (type == "UnicodeScripts") {
    AddSplit(steps, std::make_unique<ScriptPattern>(), SplitBehavior::kRemoved, true);
  } else if (type == "BertPreTokenizer") {
    AddClassSplit(steps, kSpace, SplitBehavior::kRemoved);
    AddClassSplit(steps, kPunctuation, SplitBehavior::kIsolated);
  } else {
    throw TokenizerError("reading " + where + ": not supported");
  }
  constexpr size_t kMaxSteps = 16;
  constexpr double kMaxGrowth = 256;
  double growth = 1;
  for (const auto& step : steps) growth *= step->Growth();
  if (steps.size() > kMaxSteps || !(growth <= kMaxGrowth)) {
    throw TokenizerError("reading " + where + ": too many steps (limit 16), or words grow too much (limit 256-fold)");
  }
}

PreTokenizers Finish(Steps steps, bool leave_bytes) {
  PreTokenizers result{std::move(steps), false};
  if (result.steps.empty() || dynamic_cast<ByteLevelStep*>(result.steps.back().get()) == nullptr) return result;
  result.byte_level = true;
  if (leave_bytes) result.steps.pop_back();
  return result;
}

}  // namespace

PreTokenizers MakePreTokenizers(const nlohmann::json& json, bool leave_bytes) {
  Steps steps;
  AddSteps(steps, json);
  return Finish(std::move(steps), leave_bytes);
}

PreTokenizers ByteLevelPreTokenizers(const std::vector<std::string>& regexes) {
  Steps steps;
  for (const std::string& regex : regexes) AddSplit(steps, MakeRegexPattern(regex), SplitBehavior::kIsolated);
  return {std::move(steps), /*byte_level=*/true};
}

PreTokenizers LinePreTokenizers() {
  Steps steps;
  AddSplit(steps, MakeRegexPattern("[^\\n]+|\\n+"), SplitBehavior::kIsolated);
  return {std::move(steps), /*byte_level=*/false};
}

PreTokenizers MarkedBertPreTokenizers() {
  Steps steps;
  AddClassSplit(steps, kSpace, SplitBehavior::kRemoved);
  AddClassSplit(steps, kPunctuation, SplitBehavior::kIsolated);
  steps.push_back(std::make_unique<MetaspaceStep>(std::string(kMetaspace), MetaspaceStep::Prepend::kAlways));
  return {std::move(steps), /*byte_level=*/false};
}

PreTokenizers Gpt2PreTokenizers(bool add_prefix_space) {
  Steps steps;
  AddByteLevel(steps, add_prefix_space, true);
  return Finish(std::move(steps), true);
}

}  // namespace vllm::tokenizer
