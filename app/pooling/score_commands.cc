#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/output/json_text.h"
#include "app/pooling/pooling_commands.h"
#include "app/pooling/pooling_model.h"
#include "app/pooling/pooling_runner.h"
#include "app/pooling/text_input.h"
#include "app/pooling/vector_writer.h"
#include "app/terminal/output_stream.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

struct TextPair {
  std::string first, second;
};

struct PairScore {
  std::vector<float> scores;  // one for each label of the classifier, or the similarity
  std::string error;
};

// Reads all items, waiting for input as needed.
std::vector<TextItem> ReadAll(TextInput& input) {
  std::vector<TextItem> items;
  TextItem item;
  while (true) {
    const TextInput::Status status = input.Next(item);
    if (status == TextInput::Status::kEnd) return items;
    if (status == TextInput::Status::kItem) items.push_back(std::move(item));
    if (status == TextInput::Status::kNeedInput) input.Fill();
  }
}

// Returns the scores of the pairs in their order. If the model has no classifier, each different text is embedded once.
std::vector<PairScore> ScorePairs(PoolingModel& model, const std::vector<TextPair>& pairs) {
  std::vector<PairScore> scores(pairs.size());
  std::vector<PoolingRequest> requests;
  if (model.prompts().scores_pairs()) {
    for (const TextPair& pair : pairs) requests.push_back(model.prompts().Score(pair.first, pair.second));
    std::vector<PooledResult> results = RunPooling(model, std::move(requests));
    for (size_t i = 0; i < pairs.size(); ++i) scores[i] = {std::move(results[i].values), std::move(results[i].error)};
    return scores;
  }
  std::vector<std::string> texts;
  for (const TextPair& pair : pairs) {
    texts.push_back(pair.first);
    texts.push_back(pair.second);
  }
  std::ranges::sort(texts);
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  for (const std::string& text : texts) requests.push_back(model.prompts().Embed(text));
  const std::vector<PooledResult> results = RunPooling(model, std::move(requests));
  const auto result_of = [&](const std::string& text) -> const PooledResult& {
    return results[static_cast<size_t>(std::ranges::lower_bound(texts, text) - texts.begin())];
  };
  for (size_t i = 0; i < pairs.size(); ++i) {
    const PooledResult& first = result_of(pairs[i].first);
    const PooledResult& second = result_of(pairs[i].second);
    scores[i].error = first.error.empty() ? second.error : first.error;
    if (scores[i].error.empty()) {
      scores[i].scores = {static_cast<float>(model.prompts().Similarity(first.values, second.values))};
    }
  }
  return scores;
}

// A model with several labels has several scores.
std::string ScoreJson(const std::vector<float>& scores) {
  const std::string list = VectorJson(scores);
  return scores.size() == 1 ? list.substr(1, list.size() - 2) : list;
}

// Reads a pair: ["a", "b"], or an object with text_1 and text_2, or with query and document.
TextPair PairOf(const Json& value, size_t line) {
  const auto fail = [&]() -> TextPair {
    throw ModelError("score: pair " + std::to_string(line) +
                     ": must be a list of two strings, or an object with the strings text_1 and text_2");
  };
  if (value.is_array()) {
    if (value.size() != 2 || !value[0].is_string() || !value[1].is_string()) return fail();
    return {value[0].get<std::string>(), value[1].get<std::string>()};
  }
  if (!value.is_object()) return fail();
  for (const auto& [first, second] : {std::pair("text_1", "text_2"), std::pair("query", "document")}) {
    if (value.contains(first) && value.contains(second) && value[first].is_string() && value[second].is_string()) {
      return {value[first].get<std::string>(), value[second].get<std::string>()};
    }
  }
  return fail();
}

}  // namespace

int ScoreCommand(const Settings& settings) {
  std::vector<TextPair> pairs;
  if (settings.Switch("jsonl")) {
    TextInput input(settings.arguments, TextInput::Form::kJsonLines);
    for (const TextItem& item : ReadAll(input)) pairs.push_back(PairOf(item.value, pairs.size() + 1));
  } else {
    if (settings.arguments.size() < 2) {
      throw ConfigError("score: needs a text and the texts to compare it with (" +
                            std::to_string(settings.arguments.size()) + " given)",
                        "vllmcli score TEXT_1 TEXT_2..., or --jsonl for pairs from standard input");
    }
    for (size_t i = 1; i < settings.arguments.size(); ++i) {
      pairs.push_back({settings.arguments[0], settings.arguments[i]});
    }
  }
  PoolingModel model(settings, /*scores_pairs=*/true);
  PrintStatus("score: " + model.prompts().Describe());
  int status = 0;
  const std::vector<PairScore> scores = ScorePairs(model, pairs);
  for (size_t i = 0; i < scores.size(); ++i) {
    std::string line = "{\"index\":" + std::to_string(i) + ",";
    if (scores[i].error.empty()) {
      line += "\"score\":" + ScoreJson(scores[i].scores) + "}";
    } else {
      PrintError("pair " + std::to_string(i + 1) + ": " + scores[i].error);
      line += "\"error\":" + DumpJson(Json(scores[i].error)) + "}";
      status = 1;
    }
    StandardOutput().WriteLine(SafeJson(line));
  }
  model.prompts().WarnOfCutTexts();
  return status;
}

int RerankCommand(const Settings& settings) {
  if (settings.arguments.empty()) {
    throw ConfigError("rerank: needs a query", "vllmcli rerank QUERY FILE, or - for standard input");
  }
  const std::string& query = settings.arguments[0];
  const auto top_n = settings.Integer("top-n");
  if (top_n && *top_n < 1) throw ConfigError("--top-n: must be at least 1 (" + std::to_string(*top_n) + ")");
  TextInput input({settings.arguments.begin() + 1, settings.arguments.end()},
                  settings.Switch("jsonl") ? TextInput::Form::kJsonLines : TextInput::Form::kLines);
  const std::vector<TextItem> items = ReadAll(input);
  std::vector<TextPair> pairs;
  for (const TextItem& item : items) {
    const Json& value = item.value;
    const bool has_text = value.is_object() && value.contains("text") && value["text"].is_string();
    if (!value.is_string() && !has_text) {
      throw ModelError("rerank: document " + std::to_string(pairs.size() + 1) +
                       ": must be a string, or an object with a string \"text\"");
    }
    pairs.push_back({query, has_text ? value["text"].get<std::string>() : value.get<std::string>()});
  }
  PoolingModel model(settings, /*scores_pairs=*/true);
  if (model.prompts().scores_pairs() && model.prompts().pooler().classifier->num_labels != 1) {
    throw ConfigError("rerank: the model's classifier has " +
                      std::to_string(model.prompts().pooler().classifier->num_labels) +
                      " labels, and a ranking needs one");
  }
  PrintStatus("rerank: " + model.prompts().Describe());
  const std::vector<PairScore> scores = ScorePairs(model, pairs);
  std::vector<size_t> order;
  int status = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i].error.empty()) {
      order.push_back(i);
      continue;
    }
    PrintError("document " + std::to_string(i + 1) + ": " + scores[i].error);
    status = 1;
  }
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return scores[a].scores[0] > scores[b].scores[0]; });
  if (top_n && order.size() > static_cast<size_t>(*top_n)) order.resize(static_cast<size_t>(*top_n));
  for (const size_t i : order) {
    std::string line = "{\"index\":" + std::to_string(i);
    if (!items[i].id.is_null()) line += ",\"id\":" + DumpJson(items[i].id);
    line += ",\"relevance_score\":" + ScoreJson(scores[i].scores) +
            ",\"document\":{\"text\":" + DumpJson(Json(pairs[i].second)) + "}}";
    StandardOutput().WriteLine(SafeJson(line));
  }
  model.prompts().WarnOfCutTexts();
  return status;
}

}  // namespace vllm::app
