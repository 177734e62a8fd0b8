#include "engine/models/registry.h"

#include <algorithm>
#include <map>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/models/architecture_specs.h"
#include "engine/models/decoder/decoder.h"
#include "engine/models/nearest_architecture.h"

namespace vllm {

namespace {

struct Architecture {
  ArchitectureInfo info;
  DecoderSpec (*make_spec)(const ModelConfig& config);
};

// To add an architecture, see docs/DEVELOPING.md.
constexpr Architecture kArchitectures[] = {
    // Llama's decoder. Its biases, windows, NoPE layers and multipliers come from the config.
    {{"LlamaForCausalLM", "Llama 2 and 3, SmolLM2", "meta-llama/Llama-3.2-1B-Instruct"}, BaseDecoderSpec},
    {{"MistralForCausalLM", "Mistral", "mistralai/Mistral-7B-v0.1"}, BaseDecoderSpec},
    {{"Ministral3ForCausalLM", "Ministral 3", "mistralai/Ministral-3-3B-Instruct-2512"}, BaseDecoderSpec},
    {{"GraniteForCausalLM", "Granite 3", "ibm-granite/granite-3.1-2b-instruct"}, BaseDecoderSpec},
    {{"SmolLM3ForCausalLM", "SmolLM3", "HuggingFaceTB/SmolLM3-3B"}, BaseDecoderSpec},

    {{"ArceeForCausalLM", "Arcee AFM", "arcee-ai/AFM-4.5B"}, ArceeSpec},
    {{"BailingMoeForCausalLM", "Ling-lite", "inclusionAI/Ling-lite-1.5"}, BailingMoeSpec},
    {{"BailingMoeV2ForCausalLM", "Ling 2.0, Ring 2.0", "inclusionAI/Ling-mini-2.0"}, BailingMoeSpec},
    {{"DeepseekV2ForCausalLM", "DeepSeek-V2", "deepseek-ai/DeepSeek-V2-Lite-Chat"}, DeepseekSpec},
    {{"DeepseekV3ForCausalLM", "DeepSeek-V3, Moonlight", "moonshotai/Moonlight-16B-A3B-Instruct"}, DeepseekSpec},
    {{"Exaone4ForCausalLM", "EXAONE 4", "LGAI-EXAONE/EXAONE-4.0-1.2B"}, Exaone4Spec},
    {{"FalconForCausalLM", "Falcon without ALiBi", "tiiuae/falcon-7b"}, FalconSpec},
    {{"FalconH1ForCausalLM", "Falcon-H1", "tiiuae/Falcon-H1-0.5B-Instruct"}, FalconH1Spec},
    {{"GPTNeoXForCausalLM", "GPT-NeoX, Pythia", "EleutherAI/pythia-160m"}, GptNeoxSpec},
    {{"GPT2LMHeadModel", "GPT-2", "openai-community/gpt2"}, Gpt2Spec},
    {{"Gemma2ForCausalLM", "Gemma 2", "google/gemma-2-2b-it"}, Gemma2Spec},
    {{"Gemma3ForCausalLM", "Gemma 3", "google/gemma-3-1b-it"}, Gemma3Spec},
    {{"Gemma3nForCausalLM", "Gemma 3n", "google/gemma-3n-E2B-it"}, Gemma3nSpec},
    {{"Gemma4ForCausalLM", "Gemma 4", "google/gemma-4-E2B"}, Gemma4Spec},
    {{"GemmaForCausalLM", "Gemma", "google/gemma-2b-it"}, GemmaSpec},
    {{"Lfm2ForCausalLM", "LFM2, LFM2.5", "LiquidAI/LFM2-1.2B"}, Lfm2Spec},
    {{"Lfm2MoeForCausalLM", "LFM2-MoE", "LiquidAI/LFM2-8B-A1B"}, Lfm2Spec},
    {{"Glm4ForCausalLM", "GLM-4-0414", "zai-org/GLM-4-9B-0414"}, Glm4Spec},
    {{"Glm4MoeForCausalLM", "GLM-4.5", "zai-org/GLM-4.5-Air"}, Glm4MoeSpec},
    {{"Glm4MoeLiteForCausalLM", "GLM-4.7-Flash", "zai-org/GLM-4.7-Flash"}, DeepseekSpec},
    {{"GlmForCausalLM", "GLM-4", "zai-org/glm-4-9b-chat-hf"}, GlmSpec},
    {{"GptOssForCausalLM", "gpt-oss", "openai/gpt-oss-20b"}, GptOssSpec},
    {{"OlmoeForCausalLM", "OLMoE", "allenai/OLMoE-1B-7B-0924-Instruct"}, OlmoeSpec},
    {{"Olmo3ForCausalLM", "OLMo 3", "allenai/Olmo-3-7B-Instruct"}, Olmo2Spec},
    {{"SeedOssForCausalLM", "Seed-OSS", "ByteDance-Seed/Seed-OSS-36B-Instruct"}, SeedOssSpec},
    {{"Starcoder2ForCausalLM", "StarCoder2", "bigcode/starcoder2-3b"}, Starcoder2Spec},
    {{"Ernie4_5ForCausalLM", "ERNIE 4.5", "baidu/ERNIE-4.5-0.3B-PT"}, Ernie45Spec},
    {{"HunYuanDenseV1ForCausalLM", "Hunyuan, dense", "tencent/Hunyuan-1.8B-Instruct"}, HunYuanDenseSpec},
    {{"HeliumForCausalLM", "Helium 1", "kyutai/helium-1-2b"}, HeliumSpec},
    {{"NemotronForCausalLM", "Nemotron-4, Minitron", "nvidia/Nemotron-Mini-4B-Instruct"}, NemotronSpec},
    {{"NemotronHForCausalLM", "Nemotron-H, Nemotron 3", "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"}, NemotronHSpec},
    {{"Ernie4_5_MoeForCausalLM", "ERNIE 4.5 MoE", "baidu/ERNIE-4.5-21B-A3B-PT"}, Ernie45MoeSpec},
    {{"GraniteMoeForCausalLM", "Granite 3 MoE", "ibm-granite/granite-3.1-1b-a400m-instruct"}, GraniteMoeSpec},
    {{"GraniteMoeHybridForCausalLM", "Granite 4", "ibm-granite/granite-4.0-h-tiny"}, GraniteMoeSpec},
    {{"GraniteMoeSharedForCausalLM", "Granite MoE with a shared expert",
      "ibm-research/moe-7b-1b-active-shared-experts"},
     GraniteMoeSpec},
    {{"Mamba2ForCausalLM", "Mamba-2", "mistralai/Mamba-Codestral-7B-v0.1"}, Mamba2DecoderSpec},
    {{"MixtralForCausalLM", "Mixtral", "mistralai/Mixtral-8x7B-Instruct-v0.1"}, MixtralSpec},
    {{"OPTForCausalLM", "OPT", "facebook/opt-125m"}, OptSpec},
    {{"Olmo2ForCausalLM", "OLMo-2", "allenai/OLMo-2-0425-1B-Instruct"}, Olmo2Spec},
    {{"Phi3ForCausalLM", "Phi-3, Phi-4-mini", "microsoft/Phi-4-mini-instruct"}, Phi3Spec},
    {{"PhimoeForCausalLM", "Phi-3.5-MoE", "microsoft/Phi-3.5-MoE-instruct"}, PhimoeSpec},
    {{"PhiMoEForCausalLM", "Phi-3.5-MoE", "microsoft/Phi-3.5-MoE-instruct"},
     PhimoeSpec},  // the name in the published config.json
    {{"Qwen2ForCausalLM", "Qwen2, Qwen2.5", "Qwen/Qwen2.5-1.5B-Instruct"}, Qwen2Spec},
    {{"Qwen2MoeForCausalLM", "Qwen2-MoE", "Qwen/Qwen1.5-MoE-A2.7B-Chat"}, Qwen2MoeSpec},
    {{"Qwen3ForCausalLM", "Qwen3", "Qwen/Qwen3-0.6B"}, Qwen3Spec},
    {{"Qwen3MoeForCausalLM", "Qwen3-MoE", "Qwen/Qwen3-30B-A3B"}, Qwen3Spec},
    {{"Qwen3NextForCausalLM", "Qwen3-Next", "Qwen/Qwen3-Next-80B-A3B-Instruct"}, Qwen3NextSpec},
    {{"Qwen3_5ForCausalLM", "Qwen3.5, dense", "Qwen/Qwen3.5-4B"}, Qwen3NextSpec},
    {{"Qwen3_5MoeForCausalLM", "Qwen3.5 MoE", "Qwen/Qwen3.5-35B-A3B"}, Qwen3NextSpec},
    {{"StableLmForCausalLM", "StableLM", "stabilityai/stablelm-2-1_6b-chat"}, StableLmSpec},

    // Encoders.
    {{"BertModel", "BERT", "sentence-transformers/all-MiniLM-L6-v2"}, BertSpec},
    {{"BertForMaskedLM", "BERT", ""}, BertSpec},
    {{"BertForSequenceClassification", "BERT", "cross-encoder/ms-marco-MiniLM-L6-v2"}, BertSpec},
    {{"CamembertModel", "CamemBERT", "dangvantuan/sentence-camembert-base"}, BertSpec},
    {{"RobertaModel", "RoBERTa", ""}, BertSpec},
    {{"RobertaForMaskedLM", "RoBERTa", "sentence-transformers/all-distilroberta-v1"}, BertSpec},
    {{"RobertaForSequenceClassification", "RoBERTa", ""}, BertSpec},
    {{"XLMRobertaModel", "XLM-RoBERTa", "intfloat/multilingual-e5-base"}, BertSpec},
    {{"XLMRobertaForMaskedLM", "XLM-RoBERTa", ""}, BertSpec},
    {{"XLMRobertaForSequenceClassification", "XLM-RoBERTa", "BAAI/bge-reranker-v2-m3"}, BertSpec},
    {{"DistilBertModel", "DistilBERT", "sentence-transformers/msmarco-distilbert-base-tas-b"}, DistilBertSpec},
    {{"DistilBertForMaskedLM", "DistilBERT", ""}, DistilBertSpec},
    {{"DistilBertForSequenceClassification", "DistilBERT", ""}, DistilBertSpec},
    {{"ElectraModel", "ELECTRA", ""}, BertSpec},
    {{"ElectraForPreTraining", "ELECTRA", "google/electra-base-discriminator"}, BertSpec},
    {{"ElectraForSequenceClassification", "ELECTRA", "cross-encoder/ms-marco-electra-base"}, BertSpec},
    {{"EuroBertModel", "EuroBERT", ""}, BaseDecoderSpec},
    {{"EuroBertForMaskedLM", "EuroBERT", "EuroBERT/EuroBERT-210m"}, BaseDecoderSpec},
    {{"GteModel", "GTE", ""}, GteSpec},
    {{"NewModel", "GTE", "Alibaba-NLP/gte-multilingual-base"}, GteSpec},  // the name in the published config.json
    {{"GteForSequenceClassification", "GTE", ""}, GteSpec},
    {{"NewForSequenceClassification", "GTE", "Alibaba-NLP/gte-multilingual-reranker-base"}, GteSpec},
    {{"JinaBertModel", "JinaBERT", ""}, JinaBertSpec},
    {{"JinaBertForMaskedLM", "JinaBERT", "jinaai/jina-embeddings-v2-base-en"}, JinaBertSpec},
    {{"JinaBertForSequenceClassification", "JinaBERT", "jinaai/jina-reranker-v1-turbo-en"}, JinaBertSpec},
    {{"MPNetModel", "MPNet", ""}, MPNetSpec},
    {{"MPNetForMaskedLM", "MPNet", "sentence-transformers/all-mpnet-base-v2"}, MPNetSpec},
    {{"MPNetForSequenceClassification", "MPNet", ""}, MPNetSpec},
    {{"ModernBertModel", "ModernBERT", "Alibaba-NLP/gte-modernbert-base"}, ModernBertSpec},
    {{"ModernBertForMaskedLM", "ModernBERT", ""}, ModernBertSpec},
    {{"ModernBertForSequenceClassification", "ModernBERT", "Alibaba-NLP/gte-reranker-modernbert-base"}, ModernBertSpec},
    {{"NomicBertModel", "NomicBERT", "nomic-ai/nomic-embed-text-v1.5"}, NomicBertSpec},

    // Decoders without an output projection, and decoders with a classifier.
    {{"Gemma3TextModel", "EmbeddingGemma", "google/embeddinggemma-300m"}, Gemma3Spec},
    {{"GemmaForSequenceClassification", "Gemma with a classifier", ""}, GemmaSpec},
    {{"LlamaModel", "Llama without an output projection", ""}, BaseDecoderSpec},
    {{"LlamaForSequenceClassification", "Llama with a classifier", ""}, BaseDecoderSpec},
    {{"MistralModel", "Mistral without an output projection", "intfloat/e5-mistral-7b-instruct"}, BaseDecoderSpec},
    {{"MistralForSequenceClassification", "Mistral with a classifier", ""}, BaseDecoderSpec},
    {{"Qwen2Model", "Qwen2 without an output projection", ""}, Qwen2Spec},
    {{"Qwen2ForSequenceClassification", "Qwen2 with a classifier", ""}, Qwen2Spec},
    {{"Qwen3Model", "Qwen3 without an output projection", ""}, Qwen3Spec},
    {{"Qwen3ForSequenceClassification", "Qwen3 with a classifier", ""}, Qwen3Spec},

    // Vision-language models; only their text model runs.
    {{"Gemma3ForConditionalGeneration", "Gemma 3, text part", "google/gemma-3-4b-it"}, VisionLanguageSpec},
    {{"Gemma3nForConditionalGeneration", "Gemma 3n, text part", "google/gemma-3n-E4B-it"}, VisionLanguageSpec},
    {{"Gemma4ForConditionalGeneration", "Gemma 4, text part", "google/gemma-4-26B-A4B-it"}, VisionLanguageSpec},
    {{"InternVLForConditionalGeneration", "InternVL, text part", "OpenGVLab/InternVL3-1B-hf"}, VisionLanguageSpec},
    {{"LlavaForConditionalGeneration", "Llava, text part", "llava-hf/llava-1.5-7b-hf"}, VisionLanguageSpec},
    {{"LlavaNextForConditionalGeneration", "LlavaNext, text part", "llava-hf/llava-v1.6-mistral-7b-hf"},
     VisionLanguageSpec},
    {{"LlavaOnevisionForConditionalGeneration", "LlavaOnevision, text part",
      "llava-hf/llava-onevision-qwen2-0.5b-ov-hf"},
     VisionLanguageSpec},
    {{"Mistral3ForConditionalGeneration", "Mistral 3, text part", "mistralai/Ministral-3-3B-Instruct-2512"},
     VisionLanguageSpec},
    {{"Qwen2VLForConditionalGeneration", "Qwen2-VL, text part", "Qwen/Qwen2-VL-2B-Instruct"}, VisionLanguageSpec},
    {{"Qwen2_5_VLForConditionalGeneration", "Qwen2.5-VL, text part", "Qwen/Qwen2.5-VL-3B-Instruct"},
     VisionLanguageSpec},
    {{"Qwen3VLForConditionalGeneration", "Qwen3-VL, text part", "Qwen/Qwen3-VL-2B-Instruct"}, VisionLanguageSpec},
    {{"Qwen3VLMoeForConditionalGeneration", "Qwen3-VL MoE, text part", "Qwen/Qwen3-VL-30B-A3B-Instruct"},
     VisionLanguageSpec},
    {{"Qwen3_5ForConditionalGeneration", "Qwen3.5, text part", "Qwen/Qwen3.5-4B"}, VisionLanguageSpec},
    {{"Qwen3_5MoeForConditionalGeneration", "Qwen3.5 MoE, text part", "Qwen/Qwen3.5-35B-A3B"}, VisionLanguageSpec},
};

const Architecture* Find(std::string_view name) {
  const auto* found =
      std::ranges::find(kArchitectures, name, [](const Architecture& architecture) { return architecture.info.name; });
  return found == std::end(kArchitectures) ? nullptr : found;
}

std::map<std::string, ModelFactory, std::less<>>& Registered() {
  static std::map<std::string, ModelFactory, std::less<>> registered;
  return registered;
}

}  // namespace

std::vector<ArchitectureInfo> ArchitectureTable() {
  std::vector<ArchitectureInfo> table;
  for (const Architecture& architecture : kArchitectures) table.push_back(architecture.info);
  return table;
}

bool IsKnownArchitecture(std::string_view architecture) {
  return Find(architecture) != nullptr || Registered().contains(architecture);
}

void CheckArchitecture(const ModelConfig& config) {
  if (IsKnownArchitecture(config.architecture)) return;
  throw ModelError(
      "cannot load model " + Escape(config.model) + ": unknown architecture (" + Escape(config.architecture, 60) + ")",
      NearestHint(config.architecture));
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
