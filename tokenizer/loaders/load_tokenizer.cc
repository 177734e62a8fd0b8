#include "tokenizer/loaders/load_tokenizer.h"

#include <algorithm>
#include <filesystem>

#include "tokenizer/formats/regular_file.h"
#include "tokenizer/loaders/added_tokens.h"
#include "tokenizer/loaders/merge_reader.h"
#include "tokenizer/loaders/model_json.h"
#include "tokenizer/loaders/sentence_piece_loader.h"
#include "tokenizer/loaders/tiktoken_loader.h"
#include "tokenizer/loaders/tokenizer_config.h"
#include "tokenizer/models/bpe.h"
#include "tokenizer/tokenizer_parts.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer {
namespace {

namespace fs = std::filesystem;

struct DirectoryFiles {
  std::string tokenizer_json;
  std::string tokenizer_model;  // a SentencePiece model or tiktoken ranks
  std::string vocab_json;
  std::string merges_txt;
};

DirectoryFiles FindFiles(const std::string& directory) {
  const auto path_if_exists = [&directory](const char* name) {
    std::error_code ignored;
    const fs::path path = fs::path(directory) / name;
    // A path that exists but is not a regular file is rejected when it is read.
    return fs::exists(path, ignored) ? path.string() : std::string();
  };
  DirectoryFiles files;
  files.tokenizer_json = path_if_exists("tokenizer.json");
  files.tokenizer_model = path_if_exists("tokenizer.model");
  if (files.tokenizer_model.empty()) files.tokenizer_model = path_if_exists("tiktoken.model");
  if (files.tokenizer_model.empty()) {
    for (const std::string& name : NamesInDirectory(directory)) {
      if (!name.ends_with(".tiktoken")) continue;
      files.tokenizer_model = (fs::path(directory) / name).string();
      break;
    }
  }
  files.vocab_json = path_if_exists("vocab.json");
  files.merges_txt = path_if_exists("merges.txt");
  return files;
}

std::unique_ptr<TokenizerParts> MakeVocabAndMergesParts(const std::string& vocab_path, const std::string& merges_path,
                                                        const TokenizerConfig& settings) {
  const std::string vocab = ReadTokenizerFile(vocab_path);
  const std::string merges = ReadTokenizerFile(merges_path);
  const std::string name = QuoteForError(vocab_path);
  if (!IsValidUtf8(vocab) || !IsValidUtf8(merges))
    throw TokenizerError("reading " + name + ": the vocabulary or its merges are not valid UTF-8");
  BpeConfig config;
  config.byte_level = true;
  Vocabulary vocabulary = ReadVocabulary(vocab, name);
  const std::string merges_name = QuoteForError(merges_path);
  MergeReader reader(vocabulary, config.continuing_subword_prefix, merges.size() / 8, merges_name);
  for (std::string_view rest = merges; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && !line.starts_with("#version")) reader.AddLine(line);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  auto parts = std::make_unique<TokenizerParts>();
  parts->pre_tokenizers = Gpt2PreTokenizers(settings.add_prefix_space);
  MergeTable table = reader.Take();
  parts->model = std::make_unique<Bpe>(std::move(config), std::move(vocabulary), std::move(table));
  parts->kind = "byte-level BPE";
  const std::string end_of_text = "<|endoftext|>";
  const std::string bos = settings.bos_token.value_or(end_of_text);
  std::vector<AddedToken> tokens;
  for (const std::string& content : {bos, settings.eos_token.value_or(end_of_text),
                                     settings.unk_token.value_or(end_of_text), settings.pad_token.value_or("")}) {
    if (parts->model->vocabulary().Find(content) < 0) continue;
    AddedToken token;
    token.content = content;
    token.special = true;
    token.normalized = false;
    tokens.push_back(std::move(token));
  }
  tokens.insert(tokens.end(), settings.added_tokens.begin(), settings.added_tokens.end());
  AddTokens(std::move(tokens), *parts);
  const AddedToken* added_bos = parts->added.FindContent(bos);
  if (added_bos != nullptr && settings.add_bos_token.value_or(false)) {
    parts->post_processor = PostProcessor({added_bos->id});
  }
  return parts;
}

}  // namespace

bool HasTokenizer(const std::string& directory) {
  const DirectoryFiles files = FindFiles(directory);
  return !files.tokenizer_json.empty() || !files.tokenizer_model.empty() ||
         (!files.vocab_json.empty() && !files.merges_txt.empty());
}

std::string FallbackTokenizerFile(const std::string& directory) {
  const DirectoryFiles files = FindFiles(directory);
  if (!files.tokenizer_json.empty()) return "";
  if (!files.tokenizer_model.empty()) return fs::path(files.tokenizer_model).filename().string();
  return files.vocab_json.empty() || files.merges_txt.empty() ? "" : "vocab.json with merges.txt";
}

std::unique_ptr<Tokenizer> LoadTokenizer(const std::string& directory) {
  const DirectoryFiles files = FindFiles(directory);
  if (!files.tokenizer_json.empty()) return LoadTokenizerJson(files.tokenizer_json);
  const TokenizerConfig settings =
      ReadTokenizerConfig(directory + "/tokenizer_config.json", directory + "/added_tokens.json");
  if (!files.tokenizer_model.empty()) {
    const std::string bytes = ReadTokenizerFile(files.tokenizer_model);
    const std::string name = QuoteForError(files.tokenizer_model);
    return std::make_unique<Tokenizer>(LooksLikeTiktoken(bytes) ? MakeTiktokenParts(bytes, name, settings)
                                                                : MakeSentencePieceParts(bytes, name, settings));
  }
  if (files.vocab_json.empty() || files.merges_txt.empty()) {
    throw TokenizerError("opening the tokenizer of " + QuoteForError(directory) +
                         ": found no tokenizer.json, tokenizer.model, tiktoken.model or *.tiktoken, and no vocab.json "
                         "with merges.txt");
  }
  return std::make_unique<Tokenizer>(MakeVocabAndMergesParts(files.vocab_json, files.merges_txt, settings));
}

std::unique_ptr<Tokenizer> LoadVocabAndMerges(const std::string& vocab_path, const std::string& merges_path,
                                              const std::string& tokenizer_config_path) {
  return std::make_unique<Tokenizer>(
      MakeVocabAndMergesParts(vocab_path, merges_path, ReadTokenizerConfig(tokenizer_config_path, "")));
}

}  // namespace vllm::tokenizer
