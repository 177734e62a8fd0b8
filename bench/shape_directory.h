// ShapeDirectory: a temporary directory with the config.json of a model in the shape of Qwen2.5-0.5B or Qwen2.5-7B, for
// benchmarks with random weights (LoadFormat::kDummy). Main thread.
#pragma once

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace vllm {

class ShapeDirectory {
 public:
  enum class Shape : unsigned char { k05B, k7B };

  explicit ShapeDirectory(Shape shape = Shape::k05B) {
    std::string name = (std::filesystem::temp_directory_path() / "vllmcli-bench-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = name;
    std::ofstream(path_ / "config.json") << ConfigJson(shape);
  }
  ~ShapeDirectory() { std::filesystem::remove_all(path_); }
  ShapeDirectory(const ShapeDirectory&) = delete;
  ShapeDirectory& operator=(const ShapeDirectory&) = delete;

  std::string path() const { return path_.string(); }

 private:
  static std::string ConfigJson(Shape shape) {
    const auto pick = [shape](const char* small_value, const char* large_value) {
      return std::string(shape == Shape::k7B ? large_value : small_value);
    };
    return R"({"architectures":["Qwen2ForCausalLM"],"model_type":"qwen2","vocab_size":151936,"rms_norm_eps":1e-6,)"
           R"("max_position_embeddings":32768,"rope_theta":1000000.0,"torch_dtype":"bfloat16","hidden_act":"silu",)"
           R"("eos_token_id":151645,"hidden_size":)" +
           pick("896", "3584") + R"(,"intermediate_size":)" + pick("4864", "18944") + R"(,"num_hidden_layers":)" +
           pick("24", "28") + R"(,"num_attention_heads":)" + pick("14", "28") + R"(,"num_key_value_heads":)" +
           pick("2", "4") + R"(,"tie_word_embeddings":)" + pick("true", "false") + "}";
  }

  std::filesystem::path path_;
};

}  // namespace vllm
