#include "engine/models/nearest_architecture.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>
#include <vector>

#include "engine/model_loader/gguf/architecture.h"
#include "engine/models/registry.h"

namespace vllm {

namespace {

// Families whose names do not begin with the word of a family that runs, by the beginning of the name in lower case
// without "_", "-" and ".". The longest match counts.
constexpr std::pair<std::string_view, std::string_view> kRelatives[] = {
    {"albert", "BertModel"},
    {"apertus", "ArceeForCausalLM"},
    {"baichuan", "LlamaForCausalLM"},
    {"bamba", "GraniteMoeHybridForCausalLM"},
    {"bigbird", "RobertaModel"},
    {"bitnet", "LlamaForCausalLM"},
    {"bloom", "OPTForCausalLM"},
    {"chatglm", "GlmForCausalLM"},
    {"codegen", "GPT2LMHeadModel"},
    {"codellama", "LlamaForCausalLM"},
    {"cohere", "LlamaForCausalLM"},
    {"commandr", "LlamaForCausalLM"},
    {"dbrx", "MixtralForCausalLM"},
    {"deberta", "RobertaModel"},
    {"decilm", "LlamaForCausalLM"},
    {"dots1", "DeepseekV3ForCausalLM"},
    {"falconmamba", "Mamba2ForCausalLM"},
    {"gptbigcode", "Starcoder2ForCausalLM"},
    {"gptj", "GPT2LMHeadModel"},
    {"idefics", "LlavaForConditionalGeneration"},
    {"internlm", "LlamaForCausalLM"},
    {"internvl", "InternVLForConditionalGeneration"},
    {"jais", "GPT2LMHeadModel"},
    {"jamba", "GraniteMoeHybridForCausalLM"},
    {"jina", "JinaBertModel"},
    {"kimik2", "DeepseekV3ForCausalLM"},
    {"kimilinear", "Qwen3NextForCausalLM"},
    {"kimivl", "DeepseekV3ForCausalLM"},
    {"longformer", "RobertaModel"},
    {"minicpm", "LlamaForCausalLM"},
    {"minimax", "MixtralForCausalLM"},
    {"mpt", "FalconForCausalLM"},
    {"openelm", "LlamaForCausalLM"},
    {"orion", "LlamaForCausalLM"},
    {"paligemma", "GemmaForCausalLM"},
    {"persimmon", "FalconForCausalLM"},
    {"pixtral", "Mistral3ForConditionalGeneration"},
    {"plamo", "LlamaForCausalLM"},
    {"qwenlmhead", "Qwen2ForCausalLM"},
    {"rwkv", "Mamba2ForCausalLM"},
    {"skywork", "LlamaForCausalLM"},
    {"smolvlm", "LlavaForConditionalGeneration"},
    {"solar", "LlamaForCausalLM"},
    {"t5gemma", "Gemma2ForCausalLM"},
    {"xglm", "OPTForCausalLM"},
    {"xlmwithlmhead", "XLMRobertaModel"},
    {"xverse", "LlamaForCausalLM"},
    {"yi", "LlamaForCausalLM"},
    {"zamba", "FalconH1ForCausalLM"},
};

bool IsLower(char c) { return std::islower(static_cast<unsigned char>(c)) != 0; }
bool IsUpper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }

std::string Simplified(std::string_view name) {
  std::string simple;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      simple += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return simple;
}

// Returns the first word of a name, in lower case: "Qwen" of "Qwen2VLForConditionalGeneration", "GPT" of
// "GPT2LMHeadModel", "qwen" of "qwen3vl".
std::string FirstWord(std::string_view name) {
  size_t end = 0;
  while (end < name.size() && IsUpper(name[end])) ++end;
  const bool next_word_follows = end > 1 && end < name.size() && IsLower(name[end]);
  if (next_word_follows) {
    --end;
  } else if (end <= 1) {
    while (end < name.size() && IsLower(name[end])) ++end;
  }
  return Simplified(name.substr(0, end));
}

// The end of a class name, after the name of the family.
std::string_view Task(std::string_view name) {
  for (const std::string_view task :
       {"ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "ForMaskedLM",
        "ForConditionalGeneration", "ForCausalLM", "LMHeadModel", "Model"}) {
    if (name.ends_with(task)) return task;
  }
  return "";
}

bool GeneratesText(std::string_view task) {
  return task == "ForCausalLM" || task == "LMHeadModel" || task == "ForConditionalGeneration";
}

size_t CommonPrefix(std::string_view a, std::string_view b) {
  const auto [end, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<size_t>(end - a.begin());
}

struct Candidate {
  std::string_view compared;      // a class name or a GGUF name
  std::string_view architecture;  // in the registry
};

// Returns the candidate with the same first word that shares the longest beginning with `name`. Of these, one that
// also generates text, or also does not, and then the shortest name wins.
std::string_view ByFirstWord(std::string_view name, const std::vector<Candidate>& candidates) {
  const std::string word = FirstWord(name);
  const std::string_view task = Task(name);
  if (word.empty()) return "";
  std::string_view best;
  std::array<size_t, 3> best_rank{};
  for (const Candidate& candidate : candidates) {
    if (FirstWord(candidate.compared) != word) continue;
    const std::string_view other = Task(candidate.compared);
    const std::string stem = Simplified(candidate.compared.substr(0, candidate.compared.size() - other.size()));
    const size_t common = CommonPrefix(stem, Simplified(name.substr(0, name.size() - task.size())));
    const std::array<size_t, 3> rank = {common, GeneratesText(other) == GeneratesText(task) ? size_t{1} : size_t{0},
                                        100 - std::min<size_t>(candidate.compared.size(), 100)};
    if (best.empty() || rank > best_rank) {
      best = candidate.architecture;
      best_rank = rank;
    }
  }
  return best;
}

// Returns the entry of the registry's table, or null.
const ArchitectureInfo* FindIn(const std::vector<ArchitectureInfo>& table, std::string_view name) {
  const auto found = std::ranges::find(table, name, &ArchitectureInfo::name);
  return found == table.end() ? nullptr : &*found;
}

}  // namespace

std::string_view NearestArchitecture(std::string_view architecture) {
  const std::vector<ArchitectureInfo> table = ArchitectureTable();
  if (const ArchitectureInfo* known = FindIn(table, architecture)) return known->name;
  const std::string simple = Simplified(architecture);
  std::pair<std::string_view, std::string_view> longest;
  for (const auto& relative : kRelatives) {
    if (simple.starts_with(relative.first) && relative.first.size() > longest.first.size()) longest = relative;
  }
  if (!longest.second.empty()) return longest.second;
  const bool is_class = !architecture.empty() && IsUpper(architecture.front());
  std::vector<Candidate> candidates;
  if (is_class) {
    for (const ArchitectureInfo& info : table) candidates.push_back({info.name, info.name});
  } else {
    for (const GgufArchitecture& gguf : GgufArchitectures()) candidates.push_back({gguf.name, gguf.hf_architecture});
  }
  return ByFirstWord(architecture, candidates);
}

std::string NearestHint(std::string_view architecture) {
  const std::string_view nearest = NearestArchitecture(architecture);
  const std::vector<ArchitectureInfo> table = ArchitectureTable();
  const ArchitectureInfo* const info = FindIn(table, nearest);
  std::string hint(kNearestPrefix);
  if (info == nullptr) return hint + "a model of another family; vllmcli pull --list names some";
  hint += std::string(info->name) + " (" + std::string(info->family) + ")";
  if (!info->example.empty()) hint += ", such as " + std::string(info->example);
  return hint;
}

}  // namespace vllm
