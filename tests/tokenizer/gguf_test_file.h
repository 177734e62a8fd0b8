// Fills a GgufVocabulary from the key-value pairs of a GGUF file. Owned by one test; one thread.
//   file := "GGUF" version:u32 num_tensors:u64 num_kv:u64 kv* ...     kv := key:string type:u32 value
#pragma once

#include <cstring>
#include <map>

#include "tests/tokenizer/tokenizer_test_util.h"
#include "tokenizer/loaders/gguf_vocabulary.h"

namespace vllm::tokenizer {

class GgufTestFile {
 public:
  explicit GgufTestFile(const std::string& path) : bytes_(ReadTestFile(path)) {
    position_ = 16;
    for (uint64_t count = Read<uint64_t>(); count > 0; --count) ReadKeyValue();
  }

  GgufVocabulary vocabulary;  // its views point into bytes_

 private:
  template <typename T>
  T Read() {
    T value;
    std::memcpy(&value, bytes_.data() + position_, sizeof value);
    position_ += sizeof value;
    return value;
  }

  std::string_view ReadString() {
    const auto length = Read<uint64_t>();
    const std::string_view text(bytes_.data() + position_, length);
    position_ += length;
    return text;
  }

  static size_t SizeOf(uint32_t type) {
    constexpr size_t kSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return kSizes[type];
  }

  void ReadKeyValue() {
    const std::string key(ReadString());
    const auto type = Read<uint32_t>();
    if (type == 8) {
      const std::string_view text = ReadString();
      if (key == "tokenizer.ggml.model") vocabulary.model = text;
      if (key == "tokenizer.ggml.pre") vocabulary.pre = text;
    } else if (type == 9) {
      const auto element = Read<uint32_t>();
      for (uint64_t count = Read<uint64_t>(); count > 0; --count) {
        if (element == 8) {
          const std::string_view text = ReadString();
          if (key == "tokenizer.ggml.tokens") vocabulary.tokens.push_back(text);
          if (key == "tokenizer.ggml.merges") vocabulary.merges.push_back(text);
        } else if (key == "tokenizer.ggml.scores") {
          vocabulary.scores.push_back(Read<float>());
        } else if (key == "tokenizer.ggml.token_type") {
          vocabulary.token_types.push_back(Read<int32_t>());
        } else {
          position_ += SizeOf(element);
        }
      }
    } else if (type == 4) {
      const auto value = Read<uint32_t>();
      if (key == "tokenizer.ggml.bos_token_id") vocabulary.bos_id = value;
      if (key == "tokenizer.ggml.eos_token_id") vocabulary.eos_id = value;
      if (key == "tokenizer.ggml.unknown_token_id") vocabulary.unk_id = value;
    } else if (type == 7) {
      const bool value = Read<uint8_t>() != 0;
      if (key == "tokenizer.ggml.add_bos_token") vocabulary.add_bos = value;
      if (key == "tokenizer.ggml.add_eos_token") vocabulary.add_eos = value;
    } else {
      position_ += SizeOf(type);
    }
  }

  std::string bytes_;
  size_t position_ = 0;
};

}  // namespace vllm::tokenizer
