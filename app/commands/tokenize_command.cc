#include <unistd.h>

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/batch/input/record_reader.h"
#include "app/cli/parse_value.h"
#include "app/commands/commands.h"
#include "app/commands/prompt_input.h"
#include "app/model/model_files.h"
#include "app/output/json_text.h"
#include "app/terminal/output_stream.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

std::vector<int32_t> IdsOf(const Json& json) {
  std::vector<int32_t> ids;
  if (!json.is_array()) throw ModelError("must be a JSON array of token ids");
  for (const Json& element : json) {
    if (!element.is_number_integer() ||
        !(element.get<int64_t>() >= 0 && element.get<int64_t>() <= std::numeric_limits<int32_t>::max())) {
      throw ModelError("must be a JSON array of token ids");
    }
    ids.push_back(element.get<int32_t>());
  }
  return ids;
}

class Converter {
 public:
  Converter(const Settings& settings, const tokenizer::Tokenizer& tokenizer)
      : tokenizer_(tokenizer),
        decode_(settings.Switch("decode")),
        count_(settings.Switch("count")),
        add_special_tokens_(settings.Switch("add-special-tokens")),
        // The default keeps special tokens: the user wants to see the text of every id.
        skip_special_tokens_(settings.Has("skip-special-tokens") && settings.Switch("skip-special-tokens")) {}

  bool decodes() const { return decode_; }

  Json Encode(std::string_view text) const {
    const std::vector<int32_t> ids = tokenizer_.Encode(text, add_special_tokens_);
    return count_ ? Json(ids.size()) : Json(ids);
  }
  std::string Decode(const std::vector<int32_t>& ids) const { return tokenizer_.Decode(ids, skip_special_tokens_); }

  // Parses `line` as JSON and encodes the string in it or, with --decode, decodes the token ids. With --count, returns
  // only the number of tokens. Throws ModelError.
  Json Convert(std::string_view line) const {
    const Json json = Json::parse(line.begin(), line.end(), nullptr, false);
    if (json.is_discarded()) throw ModelError("not valid JSON");
    if (decode_) return count_ ? Json(IdsOf(json).size()) : Json(Decode(IdsOf(json)));
    if (!json.is_string()) throw ModelError("must be a JSON string");
    return Encode(json.get<std::string>());
  }

 private:
  const tokenizer::Tokenizer& tokenizer_;
  bool decode_;
  bool count_;
  bool add_special_tokens_;
  bool skip_special_tokens_;
};

int ConvertLines(const Converter& converter) {
  RecordReader reader(STDIN_FILENO, "standard input", '\0');
  std::string_view record;
  std::string lines;
  while (true) {
    const RecordReader::Status status = reader.Next(record);
    if (status == RecordReader::Status::kEnd) break;
    if (status == RecordReader::Status::kNeedInput) {
      reader.Fill();
      continue;
    }
    if (status == RecordReader::Status::kTooLong) throw ModelError("tokenize: a line is too long (limit 64 MiB)");
    if (record.empty()) continue;
    try {
      StandardOutput().WriteLine(SafeJson(DumpJson(converter.Convert(record))));
    } catch (const ModelError& error) {
      throw ModelError("tokenize: line " + std::to_string(reader.line()) + ": " + error.what());
    }
  }
  return 0;
}

}  // namespace

int TokenizeCommand(const Settings& settings) {
  const ModelLocation location = LocateModel(settings);
  const std::shared_ptr<const tokenizer::Tokenizer> tokenizer = LoadModelTokenizer(location);
  if (const std::string warning = TokenizerWarning(location); !warning.empty()) PrintWarning(warning);
  const Converter converter(settings, *tokenizer);
  if (settings.Switch("jsonl")) return ConvertLines(converter);

  std::string text;
  for (const std::string& argument : settings.arguments) text += (text.empty() ? "" : " ") + argument;
  // Standard input is encoded unchanged, including a line break at its end.
  if (settings.arguments.empty() || settings.arguments == std::vector<std::string>{"-"}) {
    text = ReadFileOrStdin("-", 256 << 20);
  }
  if (!converter.decodes()) {
    StandardOutput().WriteLine(SafeJson(DumpJson(converter.Encode(text))));
    return 0;
  }
  std::vector<int32_t> ids;
  std::string separated = text;
  for (char& c : separated) {
    if (c == '\n' || c == '\t' || c == '\r') c = ' ';
  }
  const size_t first = separated.find_first_not_of(' ');
  if (first != std::string::npos && separated[first] != '[' && separated.find(',') == std::string::npos) {
    // The ids are separated by whitespace: "1 2 3".
    size_t pos = first;
    while (pos != std::string::npos) {
      const size_t end = separated.find(' ', pos);
      ParseIds(std::string_view(separated).substr(pos, end - pos), ids);
      pos = separated.find_first_not_of(' ', end);
    }
  } else if (first != std::string::npos) {
    ParseIds(separated, ids);
  }
  if (settings.Switch("count")) {
    StandardOutput().WriteLine(SafeText(std::to_string(ids.size())));
  } else if (settings.Switch("json")) {
    StandardOutput().WriteLine(SafeJson(DumpJson(converter.Decode(ids))));
  } else {
    StandardOutput().WriteLine(SafeText(converter.Decode(ids)));
  }
  return 0;
}

}  // namespace vllm::app
