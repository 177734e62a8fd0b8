#include "tokenizer/jinja/values/json_text.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "tokenizer/jinja/values/operations.h"
#include "tokenizer/jinja/values/repr.h"
#include "tokenizer/jinja/values/text.h"

namespace vllm::tokenizer::jinja {
namespace {

class Writer {
 public:
  Writer(Budget& budget, const JsonStyle& style) : budget_(budget), style_(style) {}

  std::string Run(const Value& value) {
    Write(value, 0);
    Budget::CheckText(out_.size());
    return std::move(out_);
  }

 private:
  void Write(const Value& value, size_t level) {
    budget_.Spend(1);
    Budget::CheckText(out_.size());
    switch (value.kind()) {
      case Kind::kNone:
        out_ += "null";
        break;
      case Kind::kBool:
        out_ += value.boolean() ? "true" : "false";
        break;
      case Kind::kInt:
        out_ += std::to_string(value.integer());
        break;
      case Kind::kFloat:
        out_ += Real(value.real());
        break;
      case Kind::kString:
        Text(value.text());
        break;
      case Kind::kList:
      case Kind::kTuple:
        List(value.items(), level);
        break;
      case Kind::kDict:
        Dict(value.dict(), level);
        break;
      default:
        throw EvalError(std::string("object of type ") + TypeName(value.kind()) + " is not JSON serializable");
    }
  }

  static std::string Real(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return FloatRepr(value);
  }

  void NewLine(size_t level) {
    if (!style_.multiline) return;
    if (style_.indent.size() > Budget::kMaxTextBytes / (level + 1)) Budget::CheckText(Budget::kMaxTextBytes + 1);
    Budget::CheckText(out_.size() + style_.indent.size() * level);
    budget_.SpendBytes(style_.indent.size() * level);
    out_ += '\n';
    for (size_t i = 0; i < level; ++i) out_ += style_.indent;
  }

  void List(const std::vector<Value>& items, size_t level) {
    if (items.empty()) {
      out_ += "[]";
      return;
    }
    out_ += '[';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      NewLine(level + 1);
      Write(items[i], level + 1);
    }
    NewLine(level);
    out_ += ']';
  }

  void Key(const Value& key) {
    switch (key.kind()) {
      case Kind::kString:
        return Text(key.text());
      case Kind::kBool:
        return Text(key.boolean() ? "true" : "false");
      case Kind::kNone:
        return Text("null");
      case Kind::kInt:
        return Text(std::to_string(key.integer()));
      case Kind::kFloat:
        return Text(Real(key.real()));
      default:
        throw EvalError(std::string("JSON keys must be str, int, float, bool or None, not ") + TypeName(key.kind()));
    }
  }

  void Dict(const DictObject& dict, size_t level) {
    if (dict.items.empty()) {
      out_ += "{}";
      return;
    }
    std::vector<const std::pair<Value, Value>*> items;
    for (const auto& item : dict.items) items.push_back(&item);
    if (style_.sort_keys) {
      std::stable_sort(items.begin(), items.end(),
                       [&](const auto* a, const auto* b) { return Less(budget_, a->first, b->first); });
    }
    out_ += '{';
    bool first = true;
    for (const auto* item : items) {
      if (!first) out_ += style_.item_separator;
      first = false;
      NewLine(level + 1);
      Key(item->first);
      out_ += style_.key_separator;
      Write(item->second, level + 1);
    }
    NewLine(level);
    out_ += '}';
  }

  void Text(std::string_view text) {
    budget_.SpendBytes(text.size() * 16);
    out_ += '"';
    for (size_t i = 0; i < text.size();) {
      const auto byte = static_cast<unsigned char>(text[i]);
      if (byte >= 0x80 && style_.ensure_ascii) {
        Unicode(NextCodePoint(text, i));
        continue;
      }
      ++i;
      static constexpr std::string_view kFrom = "\"\\\n\r\t\f\b";
      static constexpr std::string_view kTo = "\"\\nrtfb";
      if (const size_t found = kFrom.find(static_cast<char>(byte)); found != kFrom.npos) {
        out_ += '\\';
        out_ += kTo[found];
      } else if (byte < 0x20) {
        Unicode(byte);
      } else {
        out_ += static_cast<char>(byte);
      }
    }
    out_ += '"';
  }

  void Unicode(char32_t c) {
    if (c >= 0x10000) {
      Unicode(0xd800 + ((c - 0x10000) >> 10));
      c = 0xdc00 + ((c - 0x10000) & 0x3ff);
    }
    char buffer[8];
    std::snprintf(buffer, sizeof buffer, "\\u%04x", static_cast<unsigned>(c));
    out_ += buffer;
  }

  Budget& budget_;
  const JsonStyle& style_;
  std::string out_;
};

// Builds values from the parser's events, without an intermediate tree and without recursion.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(Budget& budget) : budget_(budget) {}

  bool null() override { return Add(Value::None()); }
  bool boolean(bool value) override { return Add(Value::Bool(value)); }
  bool number_integer(number_integer_t value) override { return Add(Value::Int(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return Fail("integer is out of range (64 bits)");
    return Add(Value::Int(static_cast<int64_t>(value)));
  }
  bool number_float(number_float_t value, const string_t& text) override {
    if (text.find_first_of(".eE") == text.npos) return Fail("integer is out of range (64 bits)");
    return Add(Value::Float(value));
  }
  bool string(string_t& text) override { return Add(MakeString(&budget_, std::move(text))); }
  bool binary(binary_t&) override { return Fail("binary value"); }

  bool start_object(size_t) override { return Open(true); }
  bool key(string_t& text) override {
    open_.back().key = MakeString(&budget_, std::move(text));
    return true;
  }
  bool end_object() override {
    auto dict = std::move(open_.back().dict);
    open_.pop_back();
    return Add(MakeDict(&budget_, std::move(dict)));
  }
  bool start_array(size_t) override { return Open(false); }
  bool end_array() override {
    std::vector<Value> items = std::move(open_.back().items);
    open_.pop_back();
    return Add(MakeSequence(&budget_, Kind::kList, std::move(items)));
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    if (error.empty()) error = "not valid JSON, or a number is too large (at byte " + std::to_string(position) + ")";
    return false;
  }

  std::string error;
  Value result;

 private:
  struct Level {
    std::shared_ptr<DictObject> dict;  // null for an array
    Value key;
    std::vector<Value> items;
  };

  bool Fail(const char* why) {
    error = why;
    return false;
  }

  bool Open(bool is_object) {
    if (open_.size() >= static_cast<size_t>(Budget::kMaxValueDepth) - 1) return Fail("nested too deeply (limit 127)");
    open_.emplace_back();
    if (is_object) open_.back().dict = std::make_shared<DictObject>();
    return true;
  }

  bool Add(Value value) {
    if (open_.empty()) {
      result = std::move(value);
    } else if (open_.back().dict) {
      budget_.CheckMemory(open_.back().dict->items.size() * 2 * sizeof(std::pair<Value, Value>));
      open_.back().dict->Set(std::move(open_.back().key), std::move(value));
    } else {
      budget_.CheckMemory(open_.back().items.size() * sizeof(Value));
      open_.back().items.push_back(std::move(value));
    }
    return true;
  }

  Budget& budget_;
  std::vector<Level> open_;
};

}  // namespace

std::string ToJson(Budget& budget, const Value& value, const JsonStyle& style) {
  return Writer(budget, style).Run(value);
}

Value ParseJson(Budget& budget, std::string_view text, const char* what) {
  Builder builder(budget);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) {
    throw EvalError(std::string(what) + ": " + builder.error);
  }
  return std::move(builder.result);
}

}  // namespace vllm::tokenizer::jinja
