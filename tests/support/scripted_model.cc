#include "tests/support/scripted_model.h"

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tokenizer/unicode/utf8.h"

namespace vllm::testing_support {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint16_t kOne = 0x3F80;    // 1.0 in bfloat16
constexpr uint16_t kEight = 0x4100;  // 8.0
constexpr int kHeadDim = 64;
constexpr int kIntermediate = 64;
constexpr int kContext = 32768;

std::string ByteToken(unsigned char byte) {
  char name[8];
  std::snprintf(name, sizeof name, "<0x%02X>", byte);
  return name;
}

// Splits `text` into tokens of which no two are equal. A token_size of 0 stands for kCallTokens.
std::vector<std::string> Split(const std::string& text, size_t token_size) {
  std::vector<std::string> tokens;
  std::set<std::string> used;
  std::string token;
  size_t text_begin = 0;  // index of the first token after the last broken byte
  // Ends the current token. Joins it with those before it until no other token equals it.
  const auto end_text = [&] {
    while (!token.empty() && !used.insert(token).second) {
      if (tokens.size() == text_begin) throw std::logic_error("the text between two broken bytes occurs twice");
      used.erase(tokens.back());
      token.insert(0, tokens.back());
      tokens.pop_back();
    }
    if (!token.empty()) tokens.push_back(token);
    token.clear();
  };
  for (size_t i = 0; i < text.size();) {
    const tokenizer::Utf8Step step = tokenizer::DecodeUtf8(text, i);
    if (step.kind != tokenizer::Utf8Step::Kind::kValid) {
      end_text();
      tokens.push_back(ByteToken(static_cast<unsigned char>(text[i])));
      if (!used.insert(tokens.back()).second) throw std::logic_error("a broken byte occurs twice");
      text_begin = tokens.size();
      ++i;
      continue;
    }
    token.append(text, i, step.length);
    i += step.length;
    const bool may_end = token_size > 0 ? token.size() >= token_size
                                        : std::string_view(",:>\n").find(token.back()) != std::string_view::npos;
    if (!may_end || !used.insert(token).second) continue;
    tokens.push_back(token);
    token.clear();
  }
  end_text();
  return tokens;
}

struct Tensor {
  std::string name;
  std::vector<int> shape;
  std::vector<uint16_t> values;
};

Tensor Filled(const std::string& name, std::vector<int> shape, uint16_t value = 0) {
  size_t size = 1;
  for (const int length : shape) size *= static_cast<size_t>(length);
  return {name, std::move(shape), std::vector<uint16_t>(size, value)};
}

void WriteSafetensors(const std::string& path, const std::vector<Tensor>& tensors) {
  Json header = Json::object();
  size_t offset = 0;
  for (const Tensor& tensor : tensors) {
    const size_t end = offset + 2 * tensor.values.size();
    header[tensor.name] = {{"dtype", "BF16"}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  const std::string text = header.dump();
  const uint64_t size = text.size();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&size), sizeof size);
  file << text;
  for (const Tensor& tensor : tensors) {
    file.write(reinterpret_cast<const char*>(tensor.values.data()),
               static_cast<std::streamsize>(2 * tensor.values.size()));
  }
}

}  // namespace

namespace {

constexpr char kToolTemplate[] =
    "{% if tools %}<|system|>Call tools like this: <tool_call>{\"name\": NAME, \"arguments\": {}}</tool_call>. "
    "{{ tools | tojson }}</s>{% endif %}"
    "{% for m in messages %}{% if m.role == 'assistant' %}{{ m.content }}"
    "{% for c in m.tool_calls %}<tool_call>{\"name\": \"{{ c.function.name }}\", \"arguments\": "
    "{{ c.function.arguments | tojson }}}</tool_call>{% endfor %}</s>"
    "{% elif m.role == 'tool' %}<|user|>{{ m.content }}<|answer_to_tool|>"
    "{% elif m.role == 'system' %}<|system|>{{ m.content }}</s>"
    "{% else %}<|user|>{{ m.content }}<|answer|>{% endif %}{% endfor %}";

std::string WriteModel(const std::string& directory, const std::string& answer, size_t token_size,
                       const std::string& answer_to_tool) {
  std::filesystem::create_directories(directory);

  std::map<std::string, int> vocab;
  Json added = Json::array();
  const auto add = [&](const std::string& token, bool is_special) {
    const int id = static_cast<int>(vocab.size());
    vocab[token] = id;
    if (is_special) {
      added.push_back({{"id", id},
                       {"content", token},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", true}});
    }
    return id;
  };
  add("<unk>", true);
  const int eos = add("</s>", true);
  add("<|user|>", true);
  add("<|system|>", true);
  for (int byte = 0; byte < 256; ++byte) add(ByteToken(static_cast<unsigned char>(byte)), false);

  // The successor of each token of the answer. A message ends with the token that leads to the first one.
  constexpr const char* kStart = "<|answer|>";
  std::map<int, int> next;
  int previous = add(kStart, true);
  for (const std::string& token : Split(answer, token_size)) {
    const int id = vocab.contains(token) ? vocab[token] : add(token, false);
    next[previous] = id;
    previous = id;
  }
  next[previous] = eos;
  if (!answer_to_tool.empty()) {
    previous = add("<|answer_to_tool|>", true);
    for (const std::string& token : Split(answer_to_tool, token_size)) {
      if (vocab.contains(token)) throw std::logic_error("a token occurs in both answers");
      const int id = add(token, false);
      next[previous] = id;
      previous = id;
    }
    next[previous] = eos;
  }

  const int vocab_size = static_cast<int>(vocab.size());
  const int hidden = (static_cast<int>(next.size()) + 1 + 63) / 64 * 64;
  Tensor embeddings = Filled("model.embed_tokens.weight", {vocab_size, hidden});
  Tensor head = Filled("lm_head.weight", {vocab_size, hidden});
  const auto at = [hidden](Tensor& matrix, int row, int column) -> uint16_t& {
    return matrix.values[static_cast<size_t>(row) * static_cast<size_t>(hidden) + static_cast<size_t>(column)];
  };
  int state = 0;
  for (int id = 0; id < vocab_size; ++id) {
    const auto successor = next.find(id);
    if (successor == next.end()) {
      at(embeddings, id, hidden - 1) = kOne;  // a token of the prompt
      continue;
    }
    at(embeddings, id, state) = kOne;
    at(head, successor->second, state) = kEight;
    ++state;
  }
  const std::string layer = "model.layers.0.";
  WriteSafetensors(directory + "/model.safetensors", {embeddings, head, Filled("model.norm.weight", {hidden}, kOne),
                                                      Filled(layer + "input_layernorm.weight", {hidden}, kOne),
                                                      Filled(layer + "post_attention_layernorm.weight", {hidden}, kOne),
                                                      Filled(layer + "self_attn.q_proj.weight", {kHeadDim, hidden}),
                                                      Filled(layer + "self_attn.k_proj.weight", {kHeadDim, hidden}),
                                                      Filled(layer + "self_attn.v_proj.weight", {kHeadDim, hidden}),
                                                      Filled(layer + "self_attn.o_proj.weight", {hidden, kHeadDim}),
                                                      Filled(layer + "mlp.gate_proj.weight", {kIntermediate, hidden}),
                                                      Filled(layer + "mlp.up_proj.weight", {kIntermediate, hidden}),
                                                      Filled(layer + "mlp.down_proj.weight", {hidden, kIntermediate})});

  const Json config = {{"architectures", {"LlamaForCausalLM"}},
                       {"model_type", "llama"},
                       {"torch_dtype", "bfloat16"},
                       {"vocab_size", vocab_size},
                       {"hidden_size", hidden},
                       {"intermediate_size", kIntermediate},
                       {"num_hidden_layers", 1},
                       {"num_attention_heads", 1},
                       {"num_key_value_heads", 1},
                       {"head_dim", kHeadDim},
                       {"hidden_act", "silu"},
                       {"rms_norm_eps", 1e-6},
                       {"rope_theta", 10000.0},
                       {"max_position_embeddings", kContext},
                       {"eos_token_id", eos},
                       {"tie_word_embeddings", false}};
  std::ofstream(directory + "/config.json") << config.dump();
  const Json tokenizer = {
      {"version", "1.0"},
      {"added_tokens", added},
      {"normalizer", nullptr},
      {"pre_tokenizer", nullptr},
      {"post_processor", nullptr},
      {"decoder",
       {{"type", "Sequence"}, {"decoders", Json::array({Json{{"type", "ByteFallback"}}, Json{{"type", "Fuse"}}})}}},
      {"model",
       {{"type", "BPE"},
        {"unk_token", "<unk>"},
        {"byte_fallback", true},
        {"vocab", vocab},
        {"merges", Json::array()}}}};
  std::ofstream(directory + "/tokenizer.json") << tokenizer.dump();
  const Json tokenizer_config = {
      {"tokenizer_class", "PreTrainedTokenizerFast"},
      {"eos_token", "</s>"},
      {"unk_token", "<unk>"},
      {"clean_up_tokenization_spaces", false},
      {"model_max_length", kContext},
      {"chat_template",
       !answer_to_tool.empty()
           ? std::string(kToolTemplate)
           : std::string(
                 "{% for m in messages %}{% if m.role == 'assistant' %}{{ m.content }}</s>"
                 "{% elif m.role == 'system' %}<|system|>{{ m.content }}</s>{% else %}<|user|>{{ m.content }}") +
                 kStart + "{% endif %}{% endfor %}"}};
  std::ofstream(directory + "/tokenizer_config.json") << tokenizer_config.dump();
  return directory;
}

}  // namespace

std::string WriteScriptedModel(const std::string& directory, const std::string& answer, size_t token_size) {
  return WriteModel(directory, answer, token_size, "");
}

std::string WriteScriptedToolModel(const std::string& directory, const std::string& answer,
                                   const std::string& answer_to_tool) {
  return WriteModel(directory, answer, kCallTokens, answer_to_tool);
}

}  // namespace vllm::testing_support
