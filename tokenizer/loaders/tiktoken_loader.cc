#include "tokenizer/loaders/tiktoken_loader.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "tokenizer/formats/base64.h"
#include "tokenizer/formats/tokenizer_error.h"
#include "tokenizer/loaders/added_tokens.h"
#include "tokenizer/models/bpe.h"
#include "tokenizer/models/rank_merges.h"
#include "tokenizer/unicode/byte_level.h"

namespace vllm {
namespace {

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

// -1 when the line is not base64, a space and a rank.
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
    if (rank < 0) throw TokenizerError("reading " + where + ": not a token and its rank");
    std::string token = DecodeBase64(line.substr(0, space), where);
    // One file in use has an empty token, which matches nothing.
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
                       " ranks are of no known encoding (known: " + known + ")");
}

}  // namespace

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
    // The directory knows better what an id is called.
    std::erase_if(added, [&token](const AddedToken& known) { return known.id == token.id; });
    added.push_back(token);
  }
  AddTokens(std::move(added), *parts);
  if (encoding->bos_id >= 0 && settings.add_bos_token.value_or(true)) {
    parts->post_processor = PostProcessor({encoding->bos_id});
  }
  return parts;
}

}  // namespace vllm
