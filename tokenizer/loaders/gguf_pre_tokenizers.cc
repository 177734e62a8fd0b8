#include "tokenizer/loaders/gguf_pre_tokenizers.h"

#include <algorithm>

namespace vllm::tokenizer {
namespace {

constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDeepSeekV3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// DeepSeek LLM's regex for runs of cased letters.
constexpr std::string_view kDeepSeekLlmLetters =
    R"(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF})"
    R"(\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1})"
    R"(\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5})"
    R"(\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A})"
    R"(\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B})"
    R"(\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC})"
    R"(\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107})"
    R"(\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134})"
    R"(\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4})"
    R"(\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787})"
    R"(\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A})"
    R"(\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2})"
    R"(\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)";
constexpr std::string_view kEastAsian = "[一-龥ࠀ-一가-퟿]+";
constexpr std::string_view kHanKana = "[一-龥぀-ゟ゠-ヿ]+";
constexpr std::string_view kBloom = R"( ?[^(\s|[.,!?…。，、।۔،])]+)";
constexpr std::string_view kNumber1 = R"(\p{N})";
constexpr std::string_view kNumber3 = R"(\p{N}{1,3})";
constexpr std::string_view kThreeDigits = "[0-9][0-9][0-9]";

constexpr std::string_view kSeedCoder =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kMiniCpm5 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kExaoneMoe =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)";

struct NamedPreTokenizer {
  std::string_view names;  // separated by spaces
  GgufPreTokenizer pre_tokenizer;
};

constexpr NamedPreTokenizer kPreTokenizers[] = {
    {"default", {{R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, R"(\p{N}+)", kThreeDigits}}},
    {"gpt-2 phi-2 mpt olmo jais jina-es jina-de jina-v2-es jina-v2-de gigachat a.x-4.0 mellum modern-bert jina-v1-en "
     "jina-v2-code roberta-bpe exaone4 trillion granite-docling",
     {{kGpt2}}},
    {"llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
     {{kLlama3}, /*ignore_merges=*/true, /*add_bos=*/true}},
    {"dbrx smaug-bpe glm4 chatglm-bpe", {{kLlama3}}},
    {"qwen2 deepseek-r1-qwen stablelm2 megrez hunyuan solar-open grok-2 kormo f2llmv2 bailingmoe bailingmoe2 llada-moe",
     {{kQwen2}}},
    {"qwen35", {{kQwen35}}},
    {"deepseek-llm",
     {{"[\\r\\n]", kDeepSeekLlmLetters, "\\s?[!-/:-~！-／：-～‘-‟　-。]+", "\\s+$", kEastAsian, R"(\p{N}+)"}}},
    {"deepseek-coder", {{"[\\r\\n]", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kEastAsian, kNumber1}}},
    {"deepseek-v3 hunyuan-dense joyai-llm hy_v4", {{kNumber3, kHanKana, kDeepSeekV3}}},
    {"falcon", {{R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2, kThreeDigits}}},
    {"starcoder refact command-r smollm codeshell exaone minerva-7b mellum2", {{kNumber1, kGpt2}}},
    {"tekken", {{kTekken}, /*ignore_merges=*/true, /*add_bos=*/true}},
    {"gpt-4o llama4 kanana2 talkie minimax-m2", {{kGpt4o}}},
    {"granite-embed-multi-97m", {{kGpt4o}, /*ignore_merges=*/true}},
    {"tiny_aya cohere2moe", {{R"(\d{1,3}(?=(?:\d{3})*\b))", kGpt4o}}},
    {"bloom poro-chat gpt3-finnish", {{kBloom}}},
    {"viking", {{kBloom, kNumber1}}},
    {"seed-coder", {{kSeedCoder}}},
    {"minicpm5", {{kNumber3, kMiniCpm5}, /*ignore_merges=*/true}},
    {"exaone-moe", {{kExaoneMoe}}},
    {"superbpe", {{R"(\p{N}+)", R"((?=(\d{3})+(?!\d)))"}}},
};

}  // namespace

const GgufPreTokenizer* FindGgufPreTokenizer(std::string_view name) {
  if (name.empty()) name = "default";
  for (const NamedPreTokenizer& entry : kPreTokenizers) {
    for (std::string_view rest = entry.names; !rest.empty();) {
      const size_t end = std::min(rest.find(' '), rest.size());
      if (rest.substr(0, end) == name) return &entry.pre_tokenizer;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return nullptr;
}

}  // namespace vllm::tokenizer
