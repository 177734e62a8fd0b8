#include "engine/model_loader/hf/safetensors_header.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm {
namespace {

using nlohmann::json;

// serde_json's recursion limit, so that this parser accepts the same unknown fields.
constexpr size_t kMaxDepth = 127;

struct DTypeSize {
  std::string_view name;
  uint64_t bits;
};
constexpr std::array<DTypeSize, 22> kDTypes = {{
    {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6},     {"F6_E3M2", 6},     {"U8", 8},      {"I8", 8},
    {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"F8_E8M0", 8}, {"I16", 16},
    {"U16", 16},    {"F16", 16},    {"BF16", 16},       {"I32", 32},        {"U32", 32},    {"F32", 32},
    {"C64", 64},    {"F64", 64},    {"I64", 64},        {"U64", 64},
}};

struct RawEntry {
  std::string name;
  const DTypeSize* dtype = nullptr;
  std::vector<uint64_t> shape;
  std::vector<uint64_t> offsets;
};

// Receives JSON parser events and builds entries directly, so that memory use is proportional to the header's size.
class HeaderReader {
 public:
  explicit HeaderReader(const std::string& what) : what_(what) {}

  std::vector<RawEntry> Take() { return std::move(entries_); }

  // "__metadata__": null means no metadata.
  bool null() { return (state_ == State::kRoot && in_metadata_value_) || Scalar("null"); }
  bool boolean(bool) { return Scalar("a boolean"); }
  bool number_integer(json::number_integer_t) { return OtherNumber(); }
  bool number_float(json::number_float_t, const std::string&) { return OtherNumber(); }
  bool binary(json::binary_t&) { return false; }

  bool number_unsigned(json::number_unsigned_t value) {
    if (state_ == State::kList) {
      list_->push_back(value);
      return true;
    }
    return Scalar("a number");
  }

  bool string(std::string& value) {
    if (state_ == State::kTensor && field_ == Field::kDType) {
      auto known = std::find_if(kDTypes.begin(), kDTypes.end(), [&](const DTypeSize& d) { return d.name == value; });
      if (known == kDTypes.end()) Fail("unknown dtype (" + Escape(value, 40) + ")");
      entries_.back().dtype = &*known;
      return true;
    }
    if (state_ == State::kMetadata) return true;
    return Scalar("a string");
  }

  bool start_object(size_t) {
    switch (state_) {
      case State::kStart:
        state_ = State::kRoot;
        return true;
      case State::kRoot:
        state_ = in_metadata_value_ ? State::kMetadata : State::kTensor;
        seen_ = {};
        if (state_ == State::kTensor) entries_.push_back({.name = key_, .dtype = nullptr, .shape = {}, .offsets = {}});
        return true;
      case State::kTensor:
        if (field_ == Field::kOther) return BeginSkipped();
        return Unexpected("an object");
      case State::kSkipped:
        return BeginSkipped();
      default:
        return Unexpected("an object");
    }
  }

  bool end_object() {
    if (state_ == State::kSkipped) return EndSkipped();
    if (state_ == State::kTensor) {
      for (size_t i = 0; i < kFieldNames.size(); ++i) {
        if (!seen_[i]) Fail("missing " + std::string(kFieldNames[i]));
      }
      if (entries_.back().offsets.size() != 2) {
        Fail("data_offsets needs 2 numbers (" + std::to_string(entries_.back().offsets.size()) + ")");
      }
    }
    state_ = state_ == State::kRoot ? State::kStart : State::kRoot;
    return true;
  }

  bool start_array(size_t) {
    if (state_ == State::kSkipped) return BeginSkipped();
    if (state_ != State::kTensor || field_ == Field::kDType) return Unexpected("an array");
    if (field_ == Field::kOther) return BeginSkipped();
    list_ = field_ == Field::kShape ? &entries_.back().shape : &entries_.back().offsets;
    state_ = State::kList;
    return true;
  }

  bool end_array() {
    if (state_ == State::kSkipped) return EndSkipped();
    state_ = State::kTensor;
    return true;
  }

  bool key(std::string& name) {
    switch (state_) {
      case State::kRoot:
        key_ = name;
        in_metadata_value_ = name == "__metadata__";
        if (in_metadata_value_ && std::exchange(metadata_seen_, true)) Fail("duplicate key");
        break;
      case State::kMetadata:
        if (!metadata_keys_.insert(name).second) Fail("duplicate key (" + Escape(name, 40) + ")");
        break;
      case State::kTensor: {
        auto known = std::find(kFieldNames.begin(), kFieldNames.end(), name);
        field_ = static_cast<Field>(known - kFieldNames.begin());
        if (field_ != Field::kOther && std::exchange(seen_[static_cast<size_t>(field_)], true)) {
          Fail("duplicate key (" + name + ")");
        }
        break;
      }
      default:
        break;
    }
    return true;
  }

  bool parse_error(size_t position, const std::string&, const json::exception&) {
    Fail("header is not valid JSON (byte " + std::to_string(position) + ")");
  }

 private:
  enum class State { kStart, kRoot, kMetadata, kTensor, kList, kSkipped };
  enum class Field { kDType, kShape, kOffsets, kOther };
  static constexpr std::array<std::string_view, 3> kFieldNames = {"dtype", "shape", "data_offsets"};

  [[noreturn]] void Fail(const std::string& why) {
    std::string tensor = key_.empty() ? "" : "tensor " + Escape(key_) + ": ";
    throw ModelError(what_ + ": " + tensor + why);
  }
  bool Unexpected(const char* value) { Fail(std::string("header has ") + value + " in the wrong place"); }
  bool InField() const { return state_ == State::kSkipped || (state_ == State::kTensor && field_ == Field::kOther); }
  bool Scalar(const char* value) { return InField() || Unexpected(value); }
  bool OtherNumber() {
    if (state_ == State::kList) Fail("shape and data_offsets must contain integers from 0 to 2^64 - 1");
    return Scalar("a number");
  }
  bool BeginSkipped() {
    if (skipped_.size() + 3 > kMaxDepth) Fail("header is nested too deeply (limit " + std::to_string(kMaxDepth) + ")");
    skipped_.push_back(state_);
    state_ = State::kSkipped;
    return true;
  }
  bool EndSkipped() {
    state_ = skipped_.back();
    skipped_.pop_back();
    return true;
  }

  const std::string& what_;
  State state_ = State::kStart;
  Field field_ = Field::kOther;
  std::array<bool, 3> seen_ = {};
  std::string key_;
  bool in_metadata_value_ = false;
  bool metadata_seen_ = false;
  std::set<std::string> metadata_keys_;
  std::vector<uint64_t>* list_ = nullptr;
  std::vector<State> skipped_;
  std::vector<RawEntry> entries_;
};

// Returns the tensor's size in bytes. Like the reference reader, multiplies from left to right and checks each product
// for overflow.
uint64_t CheckedBytes(const RawEntry& entry, const std::string& what) {
  uint64_t product = 1;
  bool overflow = false;
  for (uint64_t dim : entry.shape) overflow |= __builtin_mul_overflow(product, dim, &product);
  overflow |= __builtin_mul_overflow(product, entry.dtype->bits, &product);
  if (overflow)
    throw ModelError(what + ": tensor " + Escape(entry.name) + ": shape is too large (limit 2^64 - 1 bits)");
  if (product % 8 != 0) {
    throw ModelError(what + ": tensor " + Escape(entry.name) + ": size is not a whole number of bytes (" +
                     std::to_string(product) + " bits)");
  }
  return product / 8;
}

}  // namespace

std::vector<SafetensorsEntry> ParseSafetensors(std::span<const std::byte> file, const std::string& path) {
  std::string what = "tensor file " + Escape(path);
  auto fail = [&](const std::string& why) { throw ModelError(what + ": " + why); };
  if (file.size() < 8) fail("too short for a safetensors header (" + std::to_string(file.size()) + " bytes)");
  uint64_t length = 0;
  for (size_t i = 8; i-- > 0;) length = length << 8 | static_cast<uint64_t>(file[i]);
  if (length > kMaxSafetensorsHeaderBytes) {
    fail("header is too large (" + std::to_string(length) + " bytes, limit " +
         std::to_string(kMaxSafetensorsHeaderBytes) + ")");
  }
  if (length > file.size() - 8) {
    fail("header extends past the end of the file (" + std::to_string(length) + " bytes, " +
         std::to_string(file.size() - 8) + " remain)");
  }
  std::string_view text(reinterpret_cast<const char*>(file.data()) + 8, static_cast<size_t>(length));
  std::span<const std::byte> data = file.subspan(8 + static_cast<size_t>(length));
  if (text.empty() || text[0] != '{') fail("header does not begin with '{'");
  // The parser would treat a zero byte as the end of its input.
  if (text.find('\0') != std::string_view::npos) fail("header is not valid JSON (zero byte)");

  HeaderReader reader(what);
  json::sax_parse(text.begin(), text.end(), &reader);
  std::vector<RawEntry> raw = reader.Take();

  std::sort(raw.begin(), raw.end(), [](const RawEntry& a, const RawEntry& b) { return a.offsets < b.offsets; });
  uint64_t end = 0;
  std::vector<SafetensorsEntry> entries;
  entries.reserve(raw.size());
  for (RawEntry& entry : raw) {
    std::string tensor = "tensor " + Escape(entry.name) + ": ";
    uint64_t begin = entry.offsets[0];
    if (begin != end || entry.offsets[1] < begin) {
      fail(tensor + "data_offsets leave a gap, overlap the previous tensor or decrease (" + std::to_string(begin) +
           " to " + std::to_string(entry.offsets[1]) + ", must begin at " + std::to_string(end) + ")");
    }
    end = entry.offsets[1];
    uint64_t bytes = CheckedBytes(entry, what);
    if (end - begin != bytes) {
      fail(tensor + "data_offsets do not match shape and dtype (" + std::to_string(end - begin) + " bytes, not " +
           std::to_string(bytes) + ")");
    }
    if (end > data.size()) {
      fail(tensor + "extends past the end of the file (ends at " + std::to_string(end) + ", but there are " +
           std::to_string(data.size()) + " data bytes)");
    }
    entries.push_back({.name = std::move(entry.name),
                       .dtype = entry.dtype->name,
                       .shape = std::move(entry.shape),
                       .data = data.subspan(static_cast<size_t>(begin), static_cast<size_t>(bytes))});
  }
  if (end != data.size()) {
    fail("tensors do not reach the end of the file (" + std::to_string(end) + " of " + std::to_string(data.size()) +
         " data bytes)");
  }
  std::sort(entries.begin(), entries.end(),
            [](const SafetensorsEntry& a, const SafetensorsEntry& b) { return a.name < b.name; });
  for (size_t i = 1; i < entries.size(); ++i) {
    if (entries[i].name == entries[i - 1].name) fail("tensor " + Escape(entries[i].name) + ": duplicate key");
  }
  return entries;
}

}  // namespace vllm
