#include "engine/model_loader/json_file.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "tokenizer/formats/python_json.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm {
namespace {

using nlohmann::json;

// Numbers that replace NaN and Infinity in the text passed to the parser. Real files do not spell numbers like this. If
// the text contains kReserved, nothing is replaced, and NaN and Infinity are syntax errors.
constexpr const char* kNan = "1.5e-000000000000301";
constexpr const char* kInfinity = "1.5e-000000000000302";
constexpr const char* kReserved = "e-0000000000003";

// Builds the value during parsing, so that the depth is limited early and an error can name the last key.
class Builder {
 public:
  Builder(const std::string& what, bool has_python_numbers) : what_(what), has_python_numbers_(has_python_numbers) {}

  json Take() { return std::move(root_); }

  bool null() { return Add(nullptr); }
  bool boolean(bool value) { return Add(value); }
  bool number_integer(json::number_integer_t value) { return Add(value); }
  bool number_unsigned(json::number_unsigned_t value) { return Add(value); }
  bool number_float(json::number_float_t value, const std::string& text) {
    if (!has_python_numbers_ || text.find(kReserved) == std::string::npos) return Add(value);
    if (text == kNan) return Add(std::numeric_limits<double>::quiet_NaN());
    const double infinity = std::numeric_limits<double>::infinity();
    return Add(text.front() == '-' ? -infinity : infinity);
  }
  bool string(std::string& value) { return Add(std::move(value)); }
  bool binary(json::binary_t&) { return false; }
  bool start_object(size_t) { return Open(json::object()); }
  bool start_array(size_t) { return Open(json::array()); }
  bool end_object() { return Close(); }
  bool end_array() { return Close(); }
  bool key(std::string& name) {
    key_ = name;
    slot_ = &(*open_.back())[name];
    return true;
  }
  bool parse_error(size_t position, const std::string& last_token, const json::exception&) {
    std::string where = key_.empty() ? "" : Escape(key_, 60) + ": ";
    throw ModelError(what_ + ": " + where + "not valid JSON at byte " + std::to_string(position) + " (" +
                     Escape(last_token.size() > 40 ? last_token.substr(last_token.size() - 40) : last_token) + ")");
  }

 private:
  json* Place(json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    *slot_ = std::move(value);
    return slot_;
  }
  bool Add(json value) {
    Place(std::move(value));
    return true;
  }
  bool Open(json value) {
    if (open_.size() >= static_cast<size_t>(kMaxJsonDepth)) {
      throw ModelError(what_ + ": " + Escape(key_, 60) + ": nested too deeply (limit " + std::to_string(kMaxJsonDepth) +
                       ")");
    }
    open_.push_back(Place(std::move(value)));
    return true;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }

  const std::string& what_;
  bool has_python_numbers_;
  json root_;
  // Containers being filled, outermost first. An ancestor does not grow while its child is open, so the pointers stay
  // valid.
  std::vector<json*> open_;
  json* slot_ = nullptr;
  std::string key_;
};

}  // namespace

std::string ReadTextFile(const std::string& path, size_t max_bytes, const std::string& what) {
  std::string text;
  const tokenizer::RegularFile file = tokenizer::ReadRegularFile(path, max_bytes, text);
  if (file.is_out_of_resources()) throw ResourceError(what + ": " + file.error);
  if (!file.ok()) throw ModelError(what + ": " + file.error);
  return text;
}

json ParseJson(std::string_view text, const std::string& what) {
  // The parser would treat a zero byte as the end of its input.
  if (size_t position = text.find('\0'); position != std::string_view::npos) {
    throw ModelError(what + ": not valid JSON at byte " + std::to_string(position) + " (zero byte)");
  }
  const bool is_reserved = text.find(kReserved) != std::string_view::npos;
  Builder builder(what, !is_reserved);
  const std::string replaced = is_reserved ? std::string(text) : tokenizer::ReplacePythonNumbers(text, kNan, kInfinity);
  json::sax_parse(replaced.begin(), replaced.end(), &builder);
  return builder.Take();
}

}  // namespace vllm
