#include "app/pooling/vector_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/chats/sqlite.h"
#include "app/output/json_text.h"
#include "app/terminal/output_stream.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "tokenizer/formats/base64.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

static_assert(std::endian::native == std::endian::little, "the formats store little-endian floats");

std::string_view BytesOf(std::span<const float> vector) {
  return {reinterpret_cast<const char*>(vector.data()), vector.size_bytes()};
}

[[noreturn]] void FailToWrite(const std::string& path) {
  throw ResourceError("writing " + Escape(path) + ": " + std::strerror(errno));
}

tokenizer::UniqueFd Create(const std::string& path, bool overwrite, bool is_new_file) {
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | (overwrite || is_new_file ? O_TRUNC : O_EXCL);
  tokenizer::UniqueFd fd(open(path.c_str(), flags, 0666));
  if (fd.get() >= 0) return fd;
  if (errno == EEXIST) {
    throw ConfigError("--output: " + Escape(path) + " exists", "--overwrite replaces it");
  }
  FailToWrite(path);
}

class JsonLinesWriter final : public VectorWriter {
 public:
  JsonLinesWriter(const std::string& path, bool overwrite, FloatFormat floats) : floats_(floats) {
    if (path.empty()) return;
    file_ = Create(path, overwrite, false);
    stream_.emplace(file_.get(), Escape(path));
  }

  void Write(const VectorRow& row) override {
    std::string line = "{\"index\":" + std::to_string(row.index);
    if (!row.id->is_null()) line += ",\"id\":" + DumpJson(*row.id);
    if (row.error.empty()) {
      line += ",\"embedding\":" +
              (floats_ == FloatFormat::kBase64 ? "\"" + VectorBase64(row.vector) + "\"" : VectorJson(row.vector));
      line += ",\"num_tokens\":" + std::to_string(row.num_tokens) + "}";
    } else {
      line += ",\"error\":" + DumpJson(nlohmann::ordered_json(row.error)) + "}";
    }
    (stream_ ? *stream_ : StandardOutput()).WriteLine(SafeJson(line));
  }

 private:
  FloatFormat floats_;
  tokenizer::UniqueFd file_;
  std::optional<OutputStream> stream_;
};

// The number of rows is known only at the end, so the header is written last.
class NpyWriter final : public VectorWriter {
 public:
  NpyWriter(std::string path, bool overwrite, int64_t size)
      : path_(std::move(path)), partial_(path_ + ".partial"), size_(size) {
    if (!overwrite && access(path_.c_str(), F_OK) == 0) {
      throw ConfigError("--output: " + Escape(path_) + " exists", "--overwrite replaces it");
    }
    file_ = Create(partial_, true, true);
    WriteBytes(std::string(kHeaderBytes, ' '));
  }
  ~NpyWriter() override {
    if (!is_finished_) unlink(partial_.c_str());
  }

  void Write(const VectorRow& row) override {
    if (row.error.empty()) {
      WriteBytes(BytesOf(row.vector));
    } else {
      const std::vector<float> nan(static_cast<size_t>(size_), std::numeric_limits<float>::quiet_NaN());
      WriteBytes(BytesOf(nan));
    }
    ++num_rows_;
  }

  void Finish() override {
    Flush();
    const std::string header = Header();
    if (pwrite(file_.get(), header.data(), header.size(), 0) != static_cast<ssize_t>(header.size()) ||
        fsync(file_.get()) != 0 || rename(partial_.c_str(), path_.c_str()) != 0) {
      FailToWrite(path_);
    }
    is_finished_ = true;
  }

 private:
  static constexpr size_t kHeaderBytes = 128;

  // Format 1.0: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
  std::string Header() const {
    std::string header("\x93NUMPY\x01\x00", 8);
    const auto length = static_cast<uint16_t>(kHeaderBytes - 10);
    header += static_cast<char>(length & 255);
    header += static_cast<char>(length >> 8);
    header += "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(num_rows_) + ", " +
              std::to_string(size_) + "), }";
    header.resize(kHeaderBytes - 1, ' ');
    return header + '\n';
  }

  void WriteBytes(std::string_view bytes) {
    constexpr size_t kFlushBytes = size_t{1} << 20;
    buffer_ += bytes;
    if (buffer_.size() >= kFlushBytes) Flush();
  }
  void Flush() {
    std::string_view rest = buffer_;
    while (!rest.empty()) {
      const ssize_t count = write(file_.get(), rest.data(), rest.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) FailToWrite(partial_);
      rest.remove_prefix(static_cast<size_t>(count));
    }
    buffer_.clear();
  }

  std::string path_, partial_;
  int64_t size_;
  tokenizer::UniqueFd file_;
  std::string buffer_;
  int64_t num_rows_ = 0;
  bool is_finished_ = false;
};

class SqliteWriter final : public VectorWriter {
 public:
  SqliteWriter(const std::string& path, std::string model) : model_(std::move(model)) {
    constexpr int kBusyTimeoutMs = 10'000;
    const tokenizer::UniqueFd created(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666));
    if (created.get() < 0) FailToWrite(path);
    database_.emplace(path, Database::Mode::kWrite, kBusyTimeoutMs);
    database_->Execute(
        "CREATE TABLE IF NOT EXISTS embeddings (id TEXT PRIMARY KEY, text TEXT NOT NULL, embedding BLOB NOT NULL, "
        "model TEXT NOT NULL)");
    insert_.emplace(*database_, "INSERT OR REPLACE INTO embeddings (id, text, embedding, model) VALUES (?, ?, ?, ?)");
    transaction_.emplace(*database_);
  }

  void Write(const VectorRow& row) override {
    if (!row.error.empty()) return;
    std::string id = std::to_string(row.index);
    if (row.id->is_string()) {
      id = row.id->get<std::string>();
    } else if (!row.id->is_null()) {
      id = DumpJson(*row.id);
    }
    const std::span<const std::byte> bytes = std::as_bytes(row.vector);
    insert_->Bind(1, std::string_view(id)).Bind(2, row.text).BindBlob(3, bytes).Bind(4, std::string_view(model_)).Run();
    // An interrupt loses only the last rows.
    constexpr int64_t kRowsPerTransaction = 256;
    if (++num_rows_ % kRowsPerTransaction != 0) return;
    Finish();
    transaction_.emplace(*database_);
  }

  void Finish() override {
    transaction_->Commit();
    transaction_.reset();
  }

 private:
  std::string model_;
  std::optional<Database> database_;
  std::optional<Statement> insert_;
  std::optional<Transaction> transaction_;
  int64_t num_rows_ = 0;
};

}  // namespace

std::string VectorJson(std::span<const float> vector) {
  std::string text = "[";
  std::array<char, 32> number{};
  for (size_t i = 0; i < vector.size(); ++i) {
    if (i > 0) text += ',';
    const auto result = std::to_chars(number.data(), number.data() + number.size(), vector[i]);
    text.append(number.data(), result.ptr);
  }
  return text + "]";
}

std::string VectorBase64(std::span<const float> vector) { return tokenizer::EncodeBase64(BytesOf(vector)); }

std::unique_ptr<VectorWriter> MakeVectorWriter(VectorFormat format, const std::string& path, bool overwrite,
                                               FloatFormat floats, int64_t vector_size, const std::string& model) {
  if (format == VectorFormat::kJsonLines) return std::make_unique<JsonLinesWriter>(path, overwrite, floats);
  if (path.empty()) throw ConfigError("--vector-format: npy and sqlite need a file", "-o FILE");
  if (format == VectorFormat::kNpy) return std::make_unique<NpyWriter>(path, overwrite, vector_size);
  return std::make_unique<SqliteWriter>(path, model);
}

}  // namespace vllm::app
