#include "app/hub/choose_gguf.h"

#include <algorithm>
#include <optional>
#include <set>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/model_loader/gguf/format/file.h"

namespace vllm::app {
namespace {

constexpr std::string_view kExtension = ".gguf";
constexpr size_t kMaxTagsInError = 40;

std::string Lowered(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsAlphanumeric(char c) { return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::string_view FileName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Returns the path of the first part of a split model, or the path itself.
std::string FirstPart(const std::string& path) { return GgufFile::PartsOf(path).front(); }

// Returns the models in alphabetical order.
std::vector<std::string> ModelsOf(const std::vector<std::string>& paths) {
  std::set<std::string> models;
  for (const std::string& path : paths) {
    if (IsGgufModel(path)) models.insert(path);
  }
  return {models.begin(), models.end()};
}

// Returns true for the names of llama.cpp's file types, in lower case: q4_k_m, iq2_xxs, tq1_0, f16, bf16, mxfp4_moe.
bool IsQuantization(std::string_view name) {
  for (const std::string_view type : {"f16", "f32", "bf16"}) {
    if (name == type) return true;
  }
  if (name.starts_with("mxfp4") || name.starts_with("nvfp4")) return true;
  if (name.starts_with("iq") || name.starts_with("tq")) name.remove_prefix(1);
  return name.size() >= 4 && name[0] == 'q' && IsDigit(name[1]) && name[2] == '_';
}

// Returns how well a path matches a lower-case tag: 0 if its quantization is the tag, 1 if the path has the tag as a
// word, 2 if it contains the tag before '.' or '-', which is llama.cpp's rule, else nullopt.
std::optional<int> RankOf(const std::string& path, const std::string& tag) {
  if (Lowered(GgufTagOf(path)) == tag) return 0;
  const std::string lower = Lowered(path);
  std::optional<int> rank;
  for (size_t begin = lower.find(tag); begin != std::string::npos; begin = lower.find(tag, begin + 1)) {
    const size_t end = begin + tag.size();
    if (end >= lower.size() || (lower[end] != '.' && lower[end] != '-')) continue;
    if (begin == 0 || !IsAlphanumeric(lower[begin - 1])) return 1;
    rank = 2;
  }
  return rank;
}

std::optional<std::string> FindByTag(const std::vector<std::string>& models, const std::string& tag) {
  std::optional<std::string> best;
  int best_rank = 3;
  for (const std::string& path : models) {
    const std::optional<int> rank = RankOf(path, Lowered(tag));
    if (!rank || *rank >= best_rank) continue;
    best = path;
    best_rank = *rank;
  }
  return best;
}

// Finds a file by its path, or by its name if only one directory has it. `paths` may contain any files.
std::optional<std::string> FindByPath(const std::vector<std::string>& paths, const std::string& wanted) {
  std::optional<std::string> found;
  for (const std::string& path : paths) {
    if (path == wanted) return path;
    if (FileName(path) != wanted) continue;
    if (found) return std::nullopt;
    found = path;
  }
  return found;
}

std::string TagList(const std::vector<std::string>& paths) {
  const std::vector<std::string> tags = GgufTags(paths);
  std::string text;
  for (size_t i = 0; i < tags.size() && i < kMaxTagsInError; ++i) {
    text += (text.empty() ? "" : ", ") + Escape(tags[i], 100);
  }
  return tags.size() > kMaxTagsInError ? text + ", ..." : text;
}

}  // namespace

bool IsGgufModel(const std::string& path) {
  const std::string name = Lowered(FileName(path));
  if (!name.ends_with(kExtension) || FirstPart(path) != path) return false;
  // The names that llama.cpp excludes.
  for (const std::string_view part : {"mmproj", "imatrix"}) {
    if (name.find(part) != std::string::npos) return false;
  }
  for (const std::string_view prefix : {"mtp-", "eagle3-", "dflash-", "dspark-"}) {
    if (name.starts_with(prefix)) return false;
  }
  return true;
}

std::string GgufTagOf(std::string_view path) {
  std::string_view name = FileName(path);
  name = name.substr(0, name.size() - std::min(name.size(), kExtension.size()));
  // From the end, because the model's own name comes first: gemma-3-q4_0-it-Q8_0.
  while (!name.empty()) {
    const size_t separator = name.find_last_of("-.");
    const size_t begin = separator == std::string_view::npos ? 0 : separator + 1;
    if (IsQuantization(Lowered(name.substr(begin)))) {
      const bool is_dynamic =
          begin >= 3 && Lowered(name.substr(begin - 3, 3)) == "ud-" && (begin == 3 || !IsAlphanumeric(name[begin - 4]));
      return std::string(name.substr(is_dynamic ? begin - 3 : begin));
    }
    name = name.substr(0, separator == std::string_view::npos ? 0 : separator);
  }
  return "";
}

std::vector<std::string> GgufTags(const std::vector<std::string>& paths) {
  std::set<std::string> tags;
  for (const std::string& path : ModelsOf(paths)) {
    const std::string tag = GgufTagOf(path);
    tags.insert(tag.empty() ? path : tag);
  }
  return {tags.begin(), tags.end()};
}

std::vector<std::string> ChooseGguf(const std::vector<std::string>& paths, const ModelReference& reference) {
  const std::vector<std::string> models = ModelsOf(paths);
  const std::string& tag = reference.tag;
  std::optional<std::string> chosen;
  if (Lowered(tag).ends_with(kExtension)) {
    chosen = FindByPath(paths, tag);
  } else if (!tag.empty()) {
    chosen = FindByTag(models, tag);
  }
  if (tag.empty() || (!chosen && Lowered(tag) == "latest")) {
    chosen = FindByTag(models, "Q4_K_M");
    if (!chosen) chosen = FindByTag(models, "Q8_0");
    if (!chosen && !models.empty()) chosen = models.front();
  }
  const std::string model = "model " + Escape(ToString(reference));
  if (!chosen) {
    if (models.empty()) throw ModelError(model + ": the repository has no .gguf file with a language model");
    throw ModelError(model + ": no .gguf file of the repository has this tag", "tags: " + TagList(paths));
  }
  std::vector<std::string> parts = GgufFile::PartsOf(*chosen);
  for (const std::string& part : parts) {
    if (std::find(paths.begin(), paths.end(), part) == paths.end()) {
      throw ModelError(model + ": the repository lacks a part of the model (" + Escape(part) + ")");
    }
  }
  return parts;
}

}  // namespace vllm::app
