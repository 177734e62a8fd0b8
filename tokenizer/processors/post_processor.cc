#include "tokenizer/processors/post_processor.h"

#include "tokenizer/formats/json_fields.h"

namespace vllm::tokenizer {
namespace {

// Reads the field "sep" or "cls" of BertProcessing and RobertaProcessing, for example ["</s>", 2]. Returns the id.
int32_t IdOfPair(const nlohmann::json& json, const char* key, const std::string& where, int32_t id_limit) {
  const nlohmann::json& pair = ArrayField(json, key, where);
  if (pair.size() != 2 || !pair[0].is_string() || !pair[1].is_number_integer() ||
      !(pair[1].get<int64_t>() >= 0 && pair[1].get<int64_t>() < id_limit)) {
    throw TokenizerError("reading " + where + ": field " + key + " is not a pair of a token and an id in 0.." +
                         std::to_string(id_limit - 1));
  }
  return pair[1].get<int32_t>();
}

}  // namespace

PostProcessor::PostProcessor(const nlohmann::json& json, int32_t id_limit) : template_{kText} {
  if (!json.is_null()) AddProcessor(json, id_limit);
}

void PostProcessor::AddProcessor(const nlohmann::json& json, int32_t id_limit) {
  const std::string type = StringField(json, "type", "the post-processor");
  const std::string where = "the post-processor " + QuoteForError(type);
  if (type == "Sequence") {
    for (const nlohmann::json& step : ArrayField(json, "processors", where)) AddProcessor(step, id_limit);
  } else if (type == "TemplateProcessing") {
    std::vector<int32_t> outer;
    const nlohmann::json no_tokens = nlohmann::json::object();
    const nlohmann::json& special = json.contains("special_tokens") ? Field(json, "special_tokens", where) : no_tokens;
    for (const nlohmann::json& piece : ArrayField(json, "single", where)) {
      if (piece.is_object() && piece.contains("Sequence")) {
        if (StringField(piece["Sequence"], "id", where) != "A") {
          throw TokenizerError("reading " + where + ": the template of a single text uses a sequence other than A");
        }
        outer.push_back(kText);
        continue;
      }
      const std::string name = StringField(Field(piece, "SpecialToken", where), "id", where);
      if (!special.is_object() || !special.contains(name)) {
        throw TokenizerError("reading " + where + ": the template uses " + QuoteForError(name) +
                             ", which is not in special_tokens");
      }
      for (const nlohmann::json& id : ArrayField(special[name], "ids", where)) {
        if (!id.is_number_integer() || !(id.get<int64_t>() >= 0 && id.get<int64_t>() < id_limit)) {
          throw TokenizerError("reading " + where + ": " + QuoteForError(name) + " has an id outside 0.." +
                               std::to_string(id_limit - 1));
        }
        outer.push_back(id.get<int32_t>());
      }
    }
    Wrap(outer, where);
  } else if (type == "RobertaProcessing" || type == "BertProcessing") {
    Wrap({IdOfPair(json, "cls", where, id_limit), kText, IdOfPair(json, "sep", where, id_limit)}, where);
  } else if (type != "ByteLevel") {  // ByteLevel changes only offsets
    throw TokenizerError("reading " + where + ": not supported");
  }
}

void PostProcessor::Wrap(const std::vector<int32_t>& outer, const std::string& where) {
  std::vector<int32_t> result;
  for (const int32_t item : outer) {
    if (item == kText) {
      result.insert(result.end(), template_.begin(), template_.end());
    } else {
      result.push_back(item);
    }
    if (result.size() > kMaxItems) {
      throw TokenizerError("reading " + where + ": the template is too long (limit " + std::to_string(kMaxItems) +
                           " items)");
    }
  }
  template_ = std::move(result);
}

void PostProcessor::Apply(std::vector<int32_t>& ids) const {
  if (template_.size() == 1 && template_[0] == kText) return;
  std::vector<int32_t> result;
  result.reserve(ids.size() + template_.size());
  for (const int32_t item : template_) {
    if (item == kText) {
      result.insert(result.end(), ids.begin(), ids.end());
    } else {
      result.push_back(item);
    }
  }
  ids = std::move(result);
}

}  // namespace vllm::tokenizer
