#include "tokenizer/processors/post_processor.h"

#include <algorithm>
#include <utility>

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

PostProcessor::PostProcessor(const std::vector<int32_t>& prefix, const std::vector<int32_t>& suffix,
                             const std::vector<int32_t>& between, bool has_types)
    : template_(prefix) {
  template_.push_back(kText);
  template_.insert(template_.end(), suffix.begin(), suffix.end());
  if (between.empty()) return;
  const int32_t type = has_types ? 1 : 0;
  for (const int32_t id : prefix) pair_.push_back({id, 0});
  pair_.push_back({kText, 0});
  for (const int32_t id : between) pair_.push_back({id, 0});
  pair_.push_back({kSecondText, type});
  for (const int32_t id : suffix) pair_.push_back({id, type});
}

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
    for (const PairItem& item : ReadTemplate(json, "single", where, id_limit)) {
      if (item.id == kSecondText) {
        throw TokenizerError("reading " + where + ": the template of a single text uses a sequence other than A");
      }
      outer.push_back(item.id);
    }
    Wrap(outer, where);
    if (json.contains("pair")) SetPair(ReadTemplate(json, "pair", where, id_limit));
  } else if (type == "RobertaProcessing" || type == "BertProcessing") {
    const int32_t cls = IdOfPair(json, "cls", where, id_limit), sep = IdOfPair(json, "sep", where, id_limit);
    Wrap({cls, kText, sep}, where);
    if (type == "BertProcessing") {
      SetPair({{cls, 0}, {kText, 0}, {sep, 0}, {kSecondText, 1}, {sep, 1}});
    } else {
      SetPair({{cls, 0}, {kText, 0}, {sep, 0}, {sep, 0}, {kSecondText, 0}, {sep, 0}});
    }
  } else if (type != "ByteLevel") {  // ByteLevel changes only offsets
    throw TokenizerError("reading " + where + ": not supported");
  }
}

std::vector<PostProcessor::PairItem> PostProcessor::ReadTemplate(const nlohmann::json& json, const char* name,
                                                                 const std::string& where, int32_t id_limit) {
  std::vector<PairItem> items;
  const nlohmann::json no_tokens = nlohmann::json::object();
  const nlohmann::json& special = json.contains("special_tokens") ? Field(json, "special_tokens", where) : no_tokens;
  for (const nlohmann::json& piece : ArrayField(json, name, where)) {
    const bool is_text = piece.is_object() && piece.contains("Sequence");
    const nlohmann::json& part = is_text ? piece["Sequence"] : Field(piece, "SpecialToken", where);
    const std::string id = StringField(part, "id", where);
    int32_t type_id = 0;
    if (part.contains("type_id") && part["type_id"].is_number_unsigned()) {
      type_id = static_cast<int32_t>(std::min<uint64_t>(part["type_id"].get<uint64_t>(), INT32_MAX));
    }
    if (is_text) {
      items.push_back({id == "A" ? kText : kSecondText, type_id});
      continue;
    }
    if (!special.is_object() || !special.contains(id)) {
      throw TokenizerError("reading " + where + ": the template uses " + QuoteForError(id) +
                           ", which is not in special_tokens");
    }
    for (const nlohmann::json& token : ArrayField(special[id], "ids", where)) {
      if (!token.is_number_integer() || !(token.get<int64_t>() >= 0 && token.get<int64_t>() < id_limit)) {
        throw TokenizerError("reading " + where + ": " + QuoteForError(id) + " has an id outside 0.." +
                             std::to_string(id_limit - 1));
      }
      items.push_back({token.get<int32_t>(), type_id});
    }
    if (items.size() > kMaxItems) {
      throw TokenizerError("reading " + where + ": the template is too long (limit " + std::to_string(kMaxItems) +
                           " items)");
    }
  }
  return items;
}

void PostProcessor::SetPair(std::vector<PairItem> items) {
  const auto has_one = [&](int32_t id) { return std::ranges::count(items, id, &PairItem::id) == 1; };
  const bool is_usable = !has_pair_ && has_one(kText) && has_one(kSecondText);
  has_pair_ = true;
  pair_.clear();
  if (is_usable) pair_ = std::move(items);
}

std::vector<int32_t> PostProcessor::ApplyToPair(const std::vector<int32_t>& first, const std::vector<int32_t>& second,
                                                std::vector<int32_t>& type_ids) const {
  std::vector<int32_t> ids;
  type_ids.clear();
  for (const PairItem& item : pair_) {
    if (item.id == kText || item.id == kSecondText) {
      const std::vector<int32_t>& text = item.id == kText ? first : second;
      ids.insert(ids.end(), text.begin(), text.end());
    } else {
      ids.push_back(item.id);
    }
    type_ids.resize(ids.size(), item.type_id);
  }
  return ids;
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

size_t PostProcessor::NumAdded() const {
  return template_.size() - static_cast<size_t>(std::ranges::count(template_, kText));
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
