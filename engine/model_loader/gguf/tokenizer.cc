#include "engine/model_loader/gguf/tokenizer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace vllm {
namespace {

constexpr std::string_view kModel = "tokenizer.ggml.model";
constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kTypes = "tokenizer.ggml.token_type";
constexpr std::string_view kTemplate = "tokenizer.chat_template";
constexpr int64_t kMaxId = std::numeric_limits<uint32_t>::max();

// Tokens that llama.cpp treats as end-of-generation (EOG) tokens. In some files, one of these ends a turn although the
// metadata names only a different token.
constexpr std::array<std::string_view, 15> kTurnEnds = {
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>",    "<|endoftext|>",   "<|eom_id|>",         "<EOT>",
    "_<EOT>",     "[EOT]",      "<turn|>", "<|tool_response>", "<|end_of_text|>", "<end_of_utterance>", "<|return|>",
    "<|call|>"};

// Converters write -1, or its uint32 form, for an absent id.
std::optional<int64_t> Id(const GgufMetadata& metadata, std::string_view key) {
  const std::optional<int64_t> id = metadata.Int(key, -1, kMaxId);
  return id == -1 || id == kMaxId ? std::nullopt : id;
}

std::optional<int32_t> IdWithin(const GgufMetadata& metadata, std::string_view key, int64_t vocab_size) {
  const std::optional<int64_t> id = Id(metadata, key);
  if (id && *id >= vocab_size) {
    metadata.Fail(key, "outside 0 to " + std::to_string(vocab_size - 1) + " (" + std::to_string(*id) + ")");
  }
  return id ? std::optional<int32_t>(static_cast<int32_t>(*id)) : std::nullopt;
}

void CheckCount(const GgufMetadata& metadata, std::string_view key, size_t count, size_t num_tokens) {
  if (count == 0 || count == num_tokens) return;
  metadata.Fail(key,
                "must have " + std::to_string(num_tokens) + " entries, one per token (" + std::to_string(count) + ")");
}

std::string TokenText(const GgufMetadata& metadata, std::string_view key, const std::vector<std::string_view>& tokens) {
  const std::optional<int64_t> id = Id(metadata, key);
  return id && *id < static_cast<int64_t>(tokens.size()) ? std::string(tokens[static_cast<size_t>(*id)]) : "";
}

}  // namespace

bool HasGgufTokenizer(const GgufMetadata& metadata) {
  return metadata.Has(kModel) && metadata.String(kModel) != "no_vocab" && metadata.Has(kTokens);
}

tokenizer::GgufVocabulary ReadGgufVocabulary(const GgufMetadata& metadata) {
  tokenizer::GgufVocabulary vocabulary;
  const std::optional<std::string_view> model = metadata.String(kModel);
  if (!model) metadata.Fail(kModel, "missing");
  vocabulary.model = *model;
  vocabulary.pre = metadata.String("tokenizer.ggml.pre").value_or("");
  vocabulary.tokens = metadata.Strings(kTokens);
  if (vocabulary.tokens.empty()) metadata.Fail(kTokens, "missing");
  const size_t num_tokens = vocabulary.tokens.size();
  vocabulary.scores = metadata.Floats("tokenizer.ggml.scores");
  CheckCount(metadata, "tokenizer.ggml.scores", vocabulary.scores.size(), num_tokens);
  vocabulary.token_types = metadata.Ints(kTypes);
  CheckCount(metadata, kTypes, vocabulary.token_types.size(), num_tokens);
  vocabulary.merges = metadata.Strings("tokenizer.ggml.merges");
  vocabulary.bos_id = Id(metadata, "tokenizer.ggml.bos_token_id");
  vocabulary.eos_id = Id(metadata, "tokenizer.ggml.eos_token_id");
  vocabulary.eot_id = Id(metadata, "tokenizer.ggml.eot_token_id");
  vocabulary.unk_id = Id(metadata, "tokenizer.ggml.unknown_token_id");
  vocabulary.pad_id = Id(metadata, "tokenizer.ggml.padding_token_id");
  vocabulary.sep_id = Id(metadata, "tokenizer.ggml.seperator_token_id");
  vocabulary.cls_id = Id(metadata, "tokenizer.ggml.cls_token_id");
  vocabulary.mask_id = Id(metadata, "tokenizer.ggml.mask_token_id");
  vocabulary.add_bos = metadata.Bool("tokenizer.ggml.add_bos_token");
  vocabulary.add_eos = metadata.Bool("tokenizer.ggml.add_eos_token");
  vocabulary.add_sep = metadata.Bool("tokenizer.ggml.add_sep_token");
  vocabulary.add_space_prefix = metadata.Bool("tokenizer.ggml.add_space_prefix");
  vocabulary.remove_extra_whitespaces = metadata.Bool("tokenizer.ggml.remove_extra_whitespaces");
  vocabulary.lowercase = metadata.Bool("tokenizer.ggml.normalizer.lowercase");
  vocabulary.strip_accents = metadata.Bool("tokenizer.ggml.normalizer.strip_accents");
  vocabulary.precompiled_charsmap = metadata.Bytes("tokenizer.ggml.precompiled_charsmap");
  vocabulary.chat_template = metadata.String(kTemplate).value_or("");
  return vocabulary;
}

std::string GgufTokenizerKind(const GgufMetadata& metadata) {
  const std::string_view model = metadata.String(kModel).value_or("");
  const std::string pre(metadata.String("tokenizer.ggml.pre").value_or("default"));
  if (model == "llama") return "SentencePiece BPE";
  if (model == "gpt2") return "byte-level BPE (" + pre + ")";
  if (model == "gemma4") return "BPE";
  if (model == "t5") return "Unigram";
  if (model == "bert") return "WordPiece";
  return std::string(model);
}

std::unique_ptr<tokenizer::Tokenizer> LoadGgufTokenizer(const GgufFile& file) {
  return tokenizer::MakeGgufTokenizer(ReadGgufVocabulary(file.metadata()), file.path());
}

std::vector<int32_t> GgufStopIds(const GgufMetadata& metadata, int64_t vocab_size) {
  std::vector<int32_t> ids;
  const auto add = [&](int32_t id) {
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  };
  for (const char* key :
       {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    if (const std::optional<int32_t> id = IdWithin(metadata, key, vocab_size)) add(*id);
  }
  if (!metadata.Has(kTypes) || metadata.Count(kTypes) != metadata.Count(kTokens)) return ids;
  const std::vector<std::string_view> tokens = metadata.Strings(kTokens);
  const std::vector<int32_t> types = metadata.Ints(kTypes);
  const size_t count = std::min<size_t>(tokens.size(), static_cast<size_t>(vocab_size));
  for (size_t i = 0; i < count; ++i) {
    if (types[i] != tokenizer::kGgufControl && types[i] != tokenizer::kGgufUserDefined) continue;
    if (std::find(kTurnEnds.begin(), kTurnEnds.end(), tokens[i]) != kTurnEnds.end()) add(static_cast<int32_t>(i));
  }
  // In gpt-oss's format, <|end|> ends a message, and the answer follows the message with the reasoning. As in
  // llama.cpp, it is no stop id if both tokens that end a turn exist.
  const auto is = [&](int32_t id, std::string_view token) {
    return static_cast<size_t>(id) < tokens.size() && tokens[static_cast<size_t>(id)] == token;
  };
  const auto has = [&](std::string_view token) {
    return std::any_of(ids.begin(), ids.end(), [&](int32_t id) { return is(id, token); });
  };
  if (has("<|return|>") && has("<|call|>")) std::erase_if(ids, [&](int32_t id) { return is(id, "<|end|>"); });
  return ids;
}

std::optional<int32_t> GgufBosId(const GgufMetadata& metadata, int64_t vocab_size) {
  return IdWithin(metadata, "tokenizer.ggml.bos_token_id", vocab_size);
}

std::optional<tokenizer::ChatTemplateSource> GgufChatTemplate(const GgufMetadata& metadata) {
  std::string key(kTemplate);
  if (!metadata.Has(key)) {
    const std::vector<std::string_view> names = metadata.Strings("tokenizer.chat_templates");
    const bool has_default = std::find(names.begin(), names.end(), "default") != names.end();
    if (!has_default && names.size() != 1) return std::nullopt;
    key += "." + std::string(has_default ? "default" : names[0]);
  }
  const std::optional<std::string_view> text = metadata.String(key);
  if (!text) return std::nullopt;
  const std::vector<std::string_view> tokens = metadata.Strings(kTokens);
  tokenizer::ChatTemplateSource source;
  source.text = *text;
  source.bos_token = TokenText(metadata, "tokenizer.ggml.bos_token_id", tokens);
  source.eos_token = TokenText(metadata, "tokenizer.ggml.eos_token_id", tokens);
  source.tool_use_text = metadata.String("tokenizer.chat_template.tool_use").value_or("");
  source.origin = key;
  return source;
}

}  // namespace vllm
