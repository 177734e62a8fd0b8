#include "tokenizer/loaders/tiktoken_loader.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "tokenizer/formats/base64.h"
#include "tokenizer/formats/tokenizer_error.h"
#include "tokenizer/loaders/added_tokens.h"
#include "tokenizer/models/bpe.h"
#include "tokenizer/models/merge_table.h"
#include "tokenizer/unicode/byte_level.h"

namespace vllm::tokenizer {
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

struct Line {
  std::string bytes;
  int32_t rank;
};

std::string_view TakeLine(std::string_view& rest) {
  const size_t end = std::min(rest.find('\n'), rest.size());
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// Returns the rank after line[space], or a negative number if there is no valid rank.
int32_t RankOf(std::string_view line, size_t space) {
  int32_t rank = -1;
  const char* end = line.data() + line.size();
  const auto result = std::from_chars(line.data() + space + 1, end, rank);
  return result.ec == std::errc() && result.ptr == end && rank <= Vocabulary::kMaxId ? rank : -1;
}

std::vector<Line> ReadLines(std::string_view bytes, const std::string& name) {
  std::vector<Line> lines;
  for (size_t number = 1; !bytes.empty(); ++number) {
    const std::string_view line = TakeLine(bytes);
    if (line.empty()) continue;
    const std::string where = "line " + std::to_string(number) + " of " + name;
    const size_t space = line.find(' ');
    const int32_t rank = space == line.npos ? -1 : RankOf(line, space);
    if (rank < 0) throw TokenizerError("reading " + where + ": expected a token, a space and a rank");
    std::string token = DecodeBase64(line.substr(0, space), where);
    // One published file has an empty token, which never matches.
    if (!token.empty()) lines.push_back({std::move(token), rank});
  }
  return lines;
}

std::unique_ptr<TiktokenEncoding> EncodingOf(size_t num_ranks, const std::string& name) {
  std::string known;
  for (const char* candidate : {"gpt2", "p50k_base", "cl100k_base", "o200k_base", "llama3", "qwen"}) {
    auto encoding = FindTiktokenEncoding(candidate);
    if (encoding->num_ranks == num_ranks) return encoding;
    known += (known.empty() ? "" : ", ") + std::string(candidate) + " " + std::to_string(encoding->num_ranks);
  }
  throw TokenizerError("reading " + name + ": " + std::to_string(num_ranks) +
                       " ranks match no known encoding (known: " + known + ")");
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

bool LooksLikeTiktoken(std::string_view bytes) {
  const std::string_view line = TakeLine(bytes);
  const size_t space = line.find(' ');
  if (line.size() > 1024 || space == line.npos || space == 0 || RankOf(line, space) < 0) return false;
  const std::string_view token = line.substr(0, space);
  return std::all_of(token.begin(), token.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/' ||
           c == '=';
  });
}

std::unique_ptr<TokenizerParts> MakeTiktokenParts(std::string_view bytes, const std::string& name,
                                                  const TokenizerConfig& settings, const TiktokenEncoding* encoding) {
  const std::vector<Line> lines = ReadLines(bytes, name);
  std::unique_ptr<TiktokenEncoding> found;
  if (encoding == nullptr) {
    found = EncodingOf(lines.size(), name);
    encoding = found.get();
  }
  std::vector<RankedToken> ranked;
  ranked.reserve(lines.size());
  for (const Line& line : lines) ranked.push_back({line.bytes, line.rank, static_cast<uint32_t>(line.rank)});
  MergeTable merges = MergesOfRanks(ranked, name);
  Vocabulary vocabulary(lines.size(), lines.size() * 8);
  std::string text;
  for (const Line& line : lines) {
    text.clear();
    AppendByteLevel(line.bytes, text);
    vocabulary.Add(text, line.rank);
  }
  vocabulary.Finish();
  BpeConfig config;
  config.byte_level = true;
  config.ignore_merges = true;
  auto parts = std::make_unique<TokenizerParts>();
  parts->pre_tokenizers = ByteLevelPreTokenizers({std::string(encoding->regex)});
  parts->model = std::make_unique<Bpe>(std::move(config), std::move(vocabulary), std::move(merges));
  parts->kind = "tiktoken";
  std::vector<AddedToken> added = encoding->special_tokens;
  for (const AddedToken& token : settings.added_tokens) {
    // A token in the model directory overrides the built-in token with the same id.
    std::erase_if(added, [&token](const AddedToken& known) { return known.id == token.id; });
    added.push_back(token);
  }
  AddTokens(std::move(added), *parts);
  if (encoding->bos_id >= 0 && settings.add_bos_token.value_or(true)) {
    parts->post_processor = PostProcessor({encoding->bos_id});
  }
  return parts;
}

}  // namespace vllm::tokenizer
