#include "engine/models/registry.h"

#include <algorithm>
#include <map>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/models/architecture_specs.h"
#include "engine/models/decoder/decoder.h"

namespace vllm {

namespace {

struct Architecture {
  std::string_view name;
  DecoderSpec (*make_spec)(const ModelConfig& config);
};

// To add an architecture, see docs/DEVELOPING.md.
constexpr Architecture kArchitectures[] = {
    // Llama's decoder. Its biases, windows, NoPE layers and multipliers come from the config.
    {"LlamaForCausalLM", BaseDecoderSpec},
    {"MistralForCausalLM", BaseDecoderSpec},
    {"Ministral3ForCausalLM", BaseDecoderSpec},
    {"GraniteForCausalLM", BaseDecoderSpec},
    {"SmolLM3ForCausalLM", BaseDecoderSpec},

    {"ArceeForCausalLM", ArceeSpec},
    {"BailingMoeForCausalLM", BailingMoeSpec},
    {"BailingMoeV2ForCausalLM", BailingMoeSpec},
    {"DeepseekV2ForCausalLM", DeepseekSpec},
    {"DeepseekV3ForCausalLM", DeepseekSpec},
    {"Exaone4ForCausalLM", Exaone4Spec},
    {"FalconForCausalLM", FalconSpec},
    {"FalconH1ForCausalLM", FalconH1Spec},
    {"GPT2LMHeadModel", Gpt2Spec},
    {"Gemma2ForCausalLM", Gemma2Spec},
    {"Gemma3ForCausalLM", Gemma3Spec},
    {"Gemma3nForCausalLM", Gemma3nSpec},
    {"Gemma4ForCausalLM", Gemma4Spec},
    {"GemmaForCausalLM", GemmaSpec},
    {"Lfm2ForCausalLM", Lfm2Spec},
    {"Lfm2MoeForCausalLM", Lfm2Spec},
    {"Glm4ForCausalLM", Glm4Spec},
    {"Glm4MoeForCausalLM", Glm4MoeSpec},
    {"Glm4MoeLiteForCausalLM", DeepseekSpec},
    {"GlmForCausalLM", GlmSpec},
    {"GptOssForCausalLM", GptOssSpec},
    {"OlmoeForCausalLM", OlmoeSpec},
    {"Olmo3ForCausalLM", Olmo2Spec},
    {"SeedOssForCausalLM", SeedOssSpec},
    {"Starcoder2ForCausalLM", Starcoder2Spec},
    {"Ernie4_5ForCausalLM", Ernie45Spec},
    {"HunYuanDenseV1ForCausalLM", HunYuanDenseSpec},
    {"HeliumForCausalLM", HeliumSpec},
    {"NemotronForCausalLM", NemotronSpec},
    {"NemotronHForCausalLM", NemotronHSpec},
    {"Ernie4_5_MoeForCausalLM", Ernie45MoeSpec},
    {"GraniteMoeForCausalLM", GraniteMoeSpec},
    {"GraniteMoeHybridForCausalLM", GraniteMoeSpec},
    {"GraniteMoeSharedForCausalLM", GraniteMoeSpec},
    {"Mamba2ForCausalLM", Mamba2DecoderSpec},
    {"MixtralForCausalLM", MixtralSpec},
    {"OPTForCausalLM", OptSpec},
    {"Olmo2ForCausalLM", Olmo2Spec},
    {"Phi3ForCausalLM", Phi3Spec},
    {"PhimoeForCausalLM", PhimoeSpec},
    {"PhiMoEForCausalLM", PhimoeSpec},  // the name in the published config.json
    {"Qwen2ForCausalLM", Qwen2Spec},
    {"Qwen2MoeForCausalLM", Qwen2MoeSpec},
    {"Qwen3ForCausalLM", Qwen3Spec},
    {"Qwen3MoeForCausalLM", Qwen3Spec},
    {"Qwen3NextForCausalLM", Qwen3NextSpec},
    {"Qwen3_5ForCausalLM", Qwen3NextSpec},
    {"Qwen3_5MoeForCausalLM", Qwen3NextSpec},
    {"StableLmForCausalLM", StableLmSpec},

    // Encoders.
    {"BertModel", BertSpec},
    {"BertForMaskedLM", BertSpec},
    {"BertForSequenceClassification", BertSpec},
    {"CamembertModel", BertSpec},
    {"RobertaModel", BertSpec},
    {"RobertaForMaskedLM", BertSpec},
    {"RobertaForSequenceClassification", BertSpec},
    {"XLMRobertaModel", BertSpec},
    {"XLMRobertaForMaskedLM", BertSpec},
    {"XLMRobertaForSequenceClassification", BertSpec},
    {"DistilBertModel", DistilBertSpec},
    {"DistilBertForMaskedLM", DistilBertSpec},
    {"DistilBertForSequenceClassification", DistilBertSpec},
    {"EuroBertModel", BaseDecoderSpec},
    {"EuroBertForMaskedLM", BaseDecoderSpec},
    {"GteModel", GteSpec},
    {"NewModel", GteSpec},  // the name in the published config.json
    {"GteForSequenceClassification", GteSpec},
    {"NewForSequenceClassification", GteSpec},
    {"ModernBertModel", ModernBertSpec},
    {"ModernBertForMaskedLM", ModernBertSpec},
    {"ModernBertForSequenceClassification", ModernBertSpec},
    {"NomicBertModel", NomicBertSpec},

    // Decoders without an output projection, and decoders with a classifier.
    {"Gemma3TextModel", Gemma3Spec},
    {"GemmaForSequenceClassification", GemmaSpec},
    {"LlamaModel", BaseDecoderSpec},
    {"LlamaForSequenceClassification", BaseDecoderSpec},
    {"MistralModel", BaseDecoderSpec},
    {"MistralForSequenceClassification", BaseDecoderSpec},
    {"Qwen2Model", Qwen2Spec},
    {"Qwen2ForSequenceClassification", Qwen2Spec},
    {"Qwen3Model", Qwen3Spec},
    {"Qwen3ForSequenceClassification", Qwen3Spec},

    // Vision-language models; only their text model runs.
    {"Gemma3ForConditionalGeneration", VisionLanguageSpec},
    {"Gemma3nForConditionalGeneration", VisionLanguageSpec},
    {"Gemma4ForConditionalGeneration", VisionLanguageSpec},
    {"InternVLForConditionalGeneration", VisionLanguageSpec},
    {"LlavaForConditionalGeneration", VisionLanguageSpec},
    {"LlavaNextForConditionalGeneration", VisionLanguageSpec},
    {"LlavaOnevisionForConditionalGeneration", VisionLanguageSpec},
    {"Mistral3ForConditionalGeneration", VisionLanguageSpec},
    {"Qwen3_5ForConditionalGeneration", VisionLanguageSpec},
    {"Qwen3_5MoeForConditionalGeneration", VisionLanguageSpec},
};

const Architecture* Find(std::string_view name) {
  const auto* found = std::ranges::find(kArchitectures, name, &Architecture::name);
  return found == std::end(kArchitectures) ? nullptr : found;
}

std::map<std::string, ModelFactory, std::less<>>& Registered() {
  static std::map<std::string, ModelFactory, std::less<>> registered;
  return registered;
}

}  // namespace

std::vector<std::string> KnownArchitectures() {
  std::vector<std::string> names;
  for (const Architecture& architecture : kArchitectures) names.emplace_back(architecture.name);
  for (const auto& [name, factory] : Registered()) names.push_back(name);
  std::ranges::sort(names);
  return names;
}

bool IsKnownArchitecture(std::string_view architecture) {
  return Find(architecture) != nullptr || Registered().contains(architecture);
}

void CheckArchitecture(const ModelConfig& config) {
  if (IsKnownArchitecture(config.architecture)) return;
  std::string known;
  for (const std::string& name : KnownArchitectures()) known += (known.empty() ? "" : ", ") + name;
  throw ModelError("cannot load model " + Escape(config.model) + ": unknown architecture (" +
                   Escape(config.architecture, 60) + "; known: " + known + ")");
}

std::unique_ptr<Model> BuildModel(const LoadContext& load) {
  CheckArchitecture(load.config.model);
  return BuildArchitecture(load.config.model.architecture, load);
}

std::unique_ptr<Model> BuildArchitecture(std::string_view architecture, const LoadContext& load) {
  const auto registered = Registered().find(architecture);
  if (registered != Registered().end()) return registered->second(load);
  return std::make_unique<DecoderModel>(load, MakeDecoderSpec(architecture, load.config.model));
}

DecoderSpec MakeDecoderSpec(std::string_view architecture, const ModelConfig& config) {
  return Find(architecture)->make_spec(config);
}

bool RegisterModel(std::string_view architecture, ModelFactory factory) {
  return Find(architecture) == nullptr && Registered().emplace(architecture, factory).second;
}

}  // namespace vllm
