#include "app/installed/model_type.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/hub/choose_gguf.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/model_loader/json_file.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

constexpr size_t kMaxHeaderBytes = size_t{64} << 10;
constexpr size_t kMaxConfigBytes = size_t{1} << 20;
constexpr size_t kMaxNameBytes = 30;

// llama.cpp's file types (general.file_type) that are not in the name of the file.
constexpr std::pair<uint32_t, std::string_view> kFileTypes[] = {
    {0, "F32"},     {1, "F16"},     {2, "Q4_0"},     {3, "Q4_1"},    {7, "Q8_0"},    {8, "Q5_0"},    {9, "Q5_1"},
    {10, "Q2_K"},   {11, "Q3_K_S"}, {12, "Q3_K_M"},  {13, "Q3_K_L"}, {14, "Q4_K_S"}, {15, "Q4_K_M"}, {16, "Q5_K_S"},
    {17, "Q5_K_M"}, {18, "Q6_K"},   {19, "IQ2_XXS"}, {20, "IQ2_XS"}, {21, "Q2_K_S"}, {22, "IQ3_XS"}, {23, "IQ3_XXS"},
    {24, "IQ1_S"},  {25, "IQ4_NL"}, {26, "IQ3_S"},   {27, "IQ3_M"},  {28, "IQ2_S"},  {29, "IQ2_M"},  {30, "IQ4_XS"},
    {31, "IQ1_M"},  {32, "BF16"},   {36, "TQ1_0"},   {37, "TQ2_0"},  {38, "MXFP4"},  {39, "NVFP4"},
};

// Reads little-endian values from the beginning of a file. After a read beyond the end, `ok` is false.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  T Number() {
    T value{};
    const std::string_view raw = Take(sizeof(T));
    if (ok_) std::memcpy(&value, raw.data(), sizeof(T));
    return value;
  }
  std::string_view Take(uint64_t count) {
    ok_ = ok_ && count <= bytes_.size();
    if (!ok_) return {};
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  std::string_view String() { return Take(Number<uint64_t>()); }
  bool ok() const { return ok_; }

 private:
  static_assert(std::endian::native == std::endian::little);
  std::string_view bytes_;
  bool ok_ = true;
};

// Returns the size of a number's GGUF type, or 0 for strings, arrays and unknown types.
uint64_t NumberBytes(uint32_t type) {
  constexpr std::array<uint64_t, 13> kBytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return type < kBytes.size() ? kBytes[type] : 0;
}

// Returns general.file_type if it is among the pairs before the vocabulary, whose arrays end the search.
std::optional<uint32_t> FileTypeIn(std::string_view header) {
  constexpr uint32_t kUint32 = 4;
  constexpr uint32_t kString = 8;
  Cursor cursor(header);
  if (cursor.Take(4) != "GGUF") return std::nullopt;
  if (const auto version = cursor.Number<uint32_t>(); version < 2 || version > 3) return std::nullopt;
  cursor.Number<uint64_t>();
  for (uint64_t num_pairs = cursor.Number<uint64_t>(); num_pairs > 0 && cursor.ok(); --num_pairs) {
    const std::string_view key = cursor.String();
    const auto type = cursor.Number<uint32_t>();
    if (key == "general.file_type" && type == kUint32) {
      const auto file_type = cursor.Number<uint32_t>();
      return cursor.ok() ? std::optional(file_type) : std::nullopt;
    }
    if (type == kString) {
      cursor.String();
    } else if (const uint64_t bytes = NumberBytes(type); bytes > 0) {
      cursor.Take(bytes);
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

std::string ReadBeginning(const std::string& path) {
  const tokenizer::RegularFile file = tokenizer::OpenRegularFile(path);
  if (!file.ok()) return "";
  std::string bytes(kMaxHeaderBytes, '\0');
  const ssize_t num_read = pread(file.fd.get(), bytes.data(), bytes.size(), 0);
  bytes.resize(num_read < 0 ? 0 : static_cast<size_t>(num_read));
  return bytes;
}

std::string GgufType(const std::string& path) {
  if (const std::string tag = GgufTagOf(path); !tag.empty()) {
    std::string upper = tag;
    std::transform(tag.begin(), tag.end(), upper.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
    return "GGUF " + upper;
  }
  const std::optional<uint32_t> type = FileTypeIn(ReadBeginning(path));
  for (const auto& [number, name] : kFileTypes) {
    if (type == number) return "GGUF " + std::string(name);
  }
  return "GGUF";
}

// Returns a member of an object if it is a string, else "".
std::string StringIn(const nlohmann::json& json, const char* name) {
  if (!json.is_object()) return "";
  const auto member = json.find(name);
  return member != json.end() && member->is_string() ? Escape(member->get<std::string>(), kMaxNameBytes) : "";
}

// Returns the type of the weights that config.json names, or "".
std::string ConfiguredType(const std::string& directory) {
  std::string text;
  const std::string path = directory + "/config.json";
  if (!tokenizer::ReadRegularFile(path, kMaxConfigBytes, text).ok()) return "";
  try {
    const nlohmann::json config = ParseJson(text, path);
    if (!config.is_object()) return "";
    if (const auto quantization = config.find("quantization_config"); quantization != config.end()) {
      if (std::string method = StringIn(*quantization, "quant_method"); !method.empty()) return method;
    }
    // Multimodal models name the type in the configuration of their text part.
    const auto text_config = config.find("text_config");
    for (const char* name : {"dtype", "torch_dtype"}) {
      if (std::string type = StringIn(config, name); !type.empty()) return type;
      if (text_config == config.end()) continue;
      if (std::string type = StringIn(*text_config, name); !type.empty()) return type;
    }
  } catch (const ModelError&) {
    // Loading the model reports the error.
  }
  return "";
}

}  // namespace

std::string ModelType(const ModelLocation& location) {
  if (location.is_gguf()) return GgufType(location.gguf_file);
  const std::vector<std::string> names = tokenizer::NamesInDirectory(location.directory);
  const bool has_weights =
      std::any_of(names.begin(), names.end(), [](const auto& name) { return name.ends_with(".safetensors"); });
  if (!has_weights) return "no weights";
  const auto has = [&](const char* name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  if (has("adapter_config.json") && !has("config.json")) return "LoRA adapter";
  const std::string type = ConfiguredType(location.directory);
  return type.empty() ? "safetensors" : "safetensors " + type;
}

}  // namespace vllm::app
