// VectorWriter: writes vectors in one of the output formats of `vllmcli embed`. Owned by the command; main thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace vllm::app {

struct VectorRow {
  int64_t index = 0;
  const nlohmann::ordered_json* id = nullptr;  // null in JSON: the text has none
  std::string_view text;
  std::span<const float> vector;  // empty: the text failed
  int64_t num_tokens = 0;
  std::string_view error;
};

class VectorWriter {
 public:
  virtual ~VectorWriter() = default;
  // Rows come in the order of their indices. Throws ResourceError or StoreError if writing fails.
  virtual void Write(const VectorRow& row) = 0;
  // Completes the output. Without it, the file of an .npy output does not appear.
  virtual void Finish() {}
};

enum class VectorFormat : uint8_t { kJsonLines, kNpy, kSqlite };
enum class FloatFormat : uint8_t { kFloat, kBase64 };

// kJsonLines writes {"index", "id" if there is one, "embedding", "num_tokens"} to `path`, or to standard output if it
// is empty. kNpy writes a NumPy file with an array [number of texts, size] of float32; a failed text is a row of NaN.
// kSqlite adds rows to the table embeddings(id, text, embedding, model), where the vector is little-endian float32; a
// row with the same id is replaced. Throws ConfigError if the file exists and `overwrite` is false (not kSqlite), or if
// a format needs a file.
std::unique_ptr<VectorWriter> MakeVectorWriter(VectorFormat format, const std::string& path, bool overwrite,
                                               FloatFormat floats, int64_t vector_size, const std::string& model);

// Returns a vector as a JSON array with the shortest decimal numbers that give the same floats.
std::string VectorJson(std::span<const float> vector);
// Returns the vector's little-endian bytes in base64.
std::string VectorBase64(std::span<const float> vector);

}  // namespace vllm::app
