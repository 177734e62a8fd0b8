// The encodings in use: their special tokens are not in their files.
#include "tokenizer/loaders/tiktoken_loader.h"

namespace vllm {
namespace {

constexpr std::string_view kGpt2Regex = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kCl100kRegex =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|(?>\p{N}{1,3})| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)";
constexpr std::string_view kO200kRegex =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3Regex =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwenRegex =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

AddedToken Special(std::string content, int32_t id) {
  AddedToken token;
  token.content = std::move(content);
  token.id = id;
  token.special = true;
  token.normalized = false;
  return token;
}

std::vector<AddedToken> Llama3Tokens() {
  constexpr int32_t kFirst = 128000;
  std::vector<AddedToken> tokens;
  const auto add = [&tokens](std::string content) {
    tokens.push_back(Special(std::move(content), kFirst + static_cast<int32_t>(tokens.size())));
  };
  const auto reserve = [&add](int number) { add("<|reserved_special_token_" + std::to_string(number) + "|>"); };
  add("<|begin_of_text|>");
  add("<|end_of_text|>");
  reserve(0);
  reserve(1);
  add("<|finetune_right_pad_id|>");
  reserve(2);
  add("<|start_header_id|>");
  add("<|end_header_id|>");
  add("<|eom_id|>");
  add("<|eot_id|>");
  add("<|python_tag|>");
  for (int number = 3; tokens.size() < 256; ++number) reserve(number);
  return tokens;
}

std::vector<AddedToken> QwenTokens() {
  constexpr int32_t kFirst = 151643;
  std::vector<AddedToken> tokens = {Special("<|endoftext|>", kFirst), Special("<|im_start|>", kFirst + 1),
                                    Special("<|im_end|>", kFirst + 2)};
  for (int32_t number = 0; number < 205; ++number) {
    tokens.push_back(Special("<|extra_" + std::to_string(number) + "|>", kFirst + 3 + number));
  }
  return tokens;
}

}  // namespace

std::unique_ptr<TiktokenEncoding> FindTiktokenEncoding(std::string_view name) {
  TiktokenEncoding encoding;
  if (name == "gpt2") {
    encoding = {"gpt2", 50256, kGpt2Regex, {Special("<|endoftext|>", 50256)}};
  } else if (name == "p50k_base") {
    encoding = {"p50k_base", 50280, kGpt2Regex, {Special("<|endoftext|>", 50256)}};
  } else if (name == "cl100k_base") {
    encoding = {"cl100k_base",
                100256,
                kCl100kRegex,
                {Special("<|endoftext|>", 100257), Special("<|fim_prefix|>", 100258), Special("<|fim_middle|>", 100259),
                 Special("<|fim_suffix|>", 100260), Special("<|endofprompt|>", 100276)}};
  } else if (name == "o200k_base") {
    encoding = {
        "o200k_base", 199998, kO200kRegex, {Special("<|endoftext|>", 199999), Special("<|endofprompt|>", 200018)}};
  } else if (name == "llama3") {
    encoding = {"llama3", 128000, kLlama3Regex, Llama3Tokens(), 128000};
  } else if (name == "qwen") {
    encoding = {"qwen", 151643, kQwenRegex, QwenTokens()};
  } else {
    return nullptr;
  }
  return std::make_unique<TiktokenEncoding>(std::move(encoding));
}

}  // namespace vllm
