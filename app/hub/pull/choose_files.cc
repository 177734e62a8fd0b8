#include "app/hub/pull/choose_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "app/hub/choose_gguf.h"
#include "app/hub/pull/glob.h"
#include "app/output/json_text.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm::app {
namespace {

constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr std::string_view kWeights = ".safetensors";
constexpr std::string_view kAdapterWeights = "adapter_model.safetensors";

bool HasSuffix(std::string_view path, std::initializer_list<std::string_view> suffixes) {
  return std::any_of(suffixes.begin(), suffixes.end(), [&](std::string_view suffix) { return path.ends_with(suffix); });
}

bool IsInRoot(std::string_view path) { return path.find('/') == std::string_view::npos; }

// Returns true for 1_Pooling/config.json and other files of the modules of sentence-transformers.
bool IsInModuleDirectory(std::string_view path) {
  return path.size() > 2 && path[0] >= '0' && path[0] <= '9' && path[1] == '_' && path.find('/') == path.rfind('/') &&
         path.find('/') != std::string_view::npos;
}

// Returns true for configuration, tokenizer and template files.
bool IsSupportFile(std::string_view path) {
  if (path.ends_with(".index.json")) return path == kIndex;
  if (IsInRoot(path)) return HasSuffix(path, {".json", ".jinja", ".txt", ".model", ".tiktoken"});
  if (IsInModuleDirectory(path)) return HasSuffix(path, {".json", kWeights});
  return path.starts_with("additional_chat_templates/") && path.ends_with(".jinja");
}

const HubFile* FindFile(const std::vector<HubFile>& listing, std::string_view path) {
  const auto found =
      std::find_if(listing.begin(), listing.end(), [&](const HubFile& file) { return file.path == path; });
  return found == listing.end() ? nullptr : &*found;
}

// Returns the values of "weight_map".
std::set<std::string> ListedWeights(const std::string& index, const std::string& model) {
  nlohmann::ordered_json json;
  const std::string why = ParseJsonText(index, json);
  if (!why.empty()) throw ModelError(model + ": cannot read " + std::string(kIndex) + ": " + why);
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (!json.is_object() || map == json.end() || !map->is_object()) {
    throw ModelError(model + ": cannot read " + std::string(kIndex) + ": weight_map is not an object");
  }
  std::set<std::string> paths;
  for (const auto& [tensor, path] : map->items()) {
    if (!path.is_string()) {
      throw ModelError(model + ": cannot read " + std::string(kIndex) + ": the file of a tensor is not a string");
    }
    paths.insert(path.get<std::string>());
  }
  return paths;
}

std::set<std::string> WeightsOf(const std::vector<HubFile>& listing, const std::string& model, const FileReader& read) {
  if (const HubFile* index = FindFile(listing, kIndex)) {
    std::set<std::string> paths = ListedWeights(read(*index), model);
    for (const std::string& path : paths) {
      if (FindFile(listing, path) != nullptr && path.ends_with(kWeights)) continue;
      throw ModelError(model + ": " + std::string(kIndex) + " lists a file that the repository does not have as " +
                       "safetensors (" + Escape(path) + ")");
    }
    return paths;
  }
  if (FindFile(listing, "model.safetensors") != nullptr) return {"model.safetensors"};
  std::set<std::string> paths;
  for (const HubFile& file : listing) {
    if (IsInRoot(file.path) && file.path.ends_with(kWeights)) paths.insert(file.path);
  }
  return paths;
}

ChosenFiles ChooseSafetensors(const std::vector<HubFile>& listing, const std::string& model, const FileReader& read) {
  const std::set<std::string> weights = WeightsOf(listing, model, read);
  ChosenFiles chosen;
  for (const HubFile& file : listing) {
    if (weights.contains(file.path) || IsSupportFile(file.path)) chosen.files.push_back(file);
  }
  return chosen;
}

ChosenFiles ChooseGgufFiles(const std::vector<HubFile>& listing, const ModelReference& reference) {
  std::vector<std::string> paths;
  for (const HubFile& file : listing) paths.push_back(file.path);
  ChosenFiles chosen;
  for (const std::string& path : ChooseGguf(paths, reference)) chosen.files.push_back(*FindFile(listing, path));
  chosen.gguf_path = chosen.files.front().path;
  if (!reference.tag.empty()) return chosen;
  const std::vector<std::string> tags = GgufTags(paths);
  const std::string tag = GgufTagOf(chosen.gguf_path);
  std::copy_if(tags.begin(), tags.end(), std::back_inserter(chosen.other_tags),
               [&](const std::string& other) { return other != tag && other != chosen.gguf_path; });
  return chosen;
}

ChosenFiles ChooseByPatterns(const std::vector<HubFile>& listing, const std::vector<std::string>& patterns) {
  ChosenFiles chosen;
  for (const HubFile& file : listing) {
    const bool matches = std::any_of(patterns.begin(), patterns.end(),
                                     [&](const std::string& pattern) { return GlobMatches(pattern, file.path); });
    if (matches) chosen.files.push_back(file);
  }
  return chosen;
}

ChosenFiles ChooseByDefault(const std::vector<HubFile>& listing, const ModelReference& reference,
                            const std::string& model, const FileReader& read) {
  const bool has_weights = std::any_of(listing.begin(), listing.end(), [](const HubFile& file) {
    return IsInRoot(file.path) && file.path.ends_with(kWeights);
  });
  if (reference.tag.empty() && has_weights && FindFile(listing, "config.json") != nullptr) {
    return ChooseSafetensors(listing, model, read);
  }
  if (reference.tag.empty() && FindFile(listing, kAdapterWeights) != nullptr &&
      FindFile(listing, "adapter_config.json") != nullptr) {
    ChosenFiles chosen;
    for (const HubFile& file : listing) {
      if (file.path == kAdapterWeights || (IsInRoot(file.path) && IsSupportFile(file.path))) {
        chosen.files.push_back(file);
      }
    }
    return chosen;
  }
  const bool has_gguf =
      std::any_of(listing.begin(), listing.end(), [](const HubFile& file) { return file.path.ends_with(".gguf"); });
  if (has_gguf || !reference.tag.empty()) return ChooseGgufFiles(listing, reference);
  const bool has_pickles =
      std::any_of(listing.begin(), listing.end(), [](const HubFile& file) { return IsPickle(file.path); });
  throw ModelError(
      model + ": the repository has neither a GGUF file nor config.json or adapter_config.json with safetensors files",
      has_pickles ? "its weights are pickles, which can run code and are not downloaded; look for a "
                    "conversion to safetensors or GGUF"
                  : "look for a conversion to safetensors or GGUF");
}

}  // namespace

bool IsPickle(std::string_view path) {
  std::string lower(path);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return HasSuffix(lower, {".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib", ".dill"});
}

ChosenFiles ChooseFiles(const std::vector<HubFile>& listing, const PullRequest& request, const FileReader& read) {
  const std::string model = "model " + Escape(ToString(request.model));
  if (!request.include.empty() && !request.model.tag.empty()) {
    throw ConfigError(model + ": --include cannot be combined with a tag");
  }
  ChosenFiles chosen = request.include.empty() ? ChooseByDefault(listing, request.model, model, read)
                                               : ChooseByPatterns(listing, request.include);
  std::erase_if(chosen.files, [&](const HubFile& file) {
    return IsPickle(file.path) ||
           std::any_of(request.exclude.begin(), request.exclude.end(),
                       [&](const std::string& pattern) { return GlobMatches(pattern, file.path); });
  });
  if (chosen.files.empty()) throw ModelError(model + ": no file of the repository matches --include and --exclude");
  if (!chosen.gguf_path.empty() && chosen.files.front().path != chosen.gguf_path) chosen.gguf_path.clear();
  return chosen;
}

}  // namespace vllm::app
