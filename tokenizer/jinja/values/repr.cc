#include "tokenizer/jinja/values/repr.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <vector>

#include "tokenizer/jinja/values/string_operations.h"
#include "tokenizer/jinja/values/text.h"

namespace vllm::tokenizer::jinja {
namespace {

void AppendQuoted(std::string_view text, std::string& out) {
  const char quote = text.find('\'') != text.npos && text.find('"') == text.npos ? '"' : '\'';
  out += quote;
  for (size_t i = 0; i < text.size();) {
    const size_t start = i;
    const char32_t c = NextCodePoint(text, i);
    if (c == static_cast<unsigned char>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (IsPrintable(c)) {
      out += text.substr(start, i - start);
    } else {
      AppendEscape(c, out);
    }
  }
  out += quote;
}

// Appends the repr() of bytes: b'...'.
void AppendQuotedBytes(std::string_view bytes, std::string& out) {
  const char quote = bytes.find('\'') != bytes.npos && bytes.find('"') == bytes.npos ? '"' : '\'';
  out += 'b';
  out += quote;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == quote || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      char buffer[8];
      std::snprintf(buffer, sizeof buffer, "\\x%02x", static_cast<unsigned>(byte));
      out += buffer;
    }
  }
  out += quote;
}

class Printer {
 public:
  Printer(Budget& budget, std::string& out) : budget_(budget), out_(out) {}

  void Print(const Value& value) {
    budget_.Spend(1);
    Budget::CheckText(out_.size());
    switch (value.kind()) {
      case Kind::kMissing:
      case Kind::kUndefined:
        out_ += "Undefined";
        break;
      case Kind::kNone:
        out_ += "None";
        break;
      case Kind::kBool:
        out_ += value.boolean() ? "True" : "False";
        break;
      case Kind::kInt:
        out_ += std::to_string(value.integer());
        break;
      case Kind::kFloat:
        out_ += FloatRepr(value.real());
        break;
      case Kind::kString:
        budget_.SpendBytes(value.text().size() * 4);
        if (value.is_markup()) out_ += "Markup(";
        AppendQuoted(value.text(), out_);
        if (value.is_markup()) out_ += ")";
        break;
      case Kind::kBytes:
        budget_.SpendBytes(value.text().size() * 4);
        AppendQuotedBytes(value.text(), out_);
        break;
      case Kind::kList:
        Items(value.items(), "[", "]");
        break;
      case Kind::kTuple:
        Items(value.items(), "(", value.items().size() == 1 ? ",)" : ")");
        break;
      case Kind::kDictView:
        out_ += value.as<SequenceObject>().label;
        Items(value.items(), "([", "])");
        break;
      case Kind::kDict:
        Dict(value.dict());
        break;
      case Kind::kRange:
        Range(value.range());
        break;
      case Kind::kBlocks:
        out_ += "<TemplateReference None>";
        break;
      case Kind::kNamespace:
        Namespace(value.as<NamespaceObject>());
        break;
      default:
        out_ += std::string("<") + TypeName(value.kind()) + " object>";
    }
  }

 private:
  void Items(const std::vector<Value>& items, const char* open, const char* close) {
    out_ += open;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += ", ";
      Print(items[i]);
    }
    out_ += close;
  }

  void Dict(const DictObject& dict) {
    out_ += "{";
    bool first = true;
    for (const auto& [key, value] : dict.items) {
      if (!first) out_ += ", ";
      first = false;
      Print(key);
      out_ += ": ";
      Print(value);
    }
    out_ += "}";
  }

  void Range(const RangeObject& range) {
    out_ += "range(" + std::to_string(range.start) + ", " + std::to_string(range.stop);
    if (range.step != 1) out_ += ", " + std::to_string(range.step);
    out_ += ")";
  }

  void Namespace(const NamespaceObject& space) {
    if (std::find(open_.begin(), open_.end(), &space) != open_.end()) {
      out_ += "<Namespace {...}>";
      return;
    }
    if (open_.size() >= 16) throw EvalError("namespaces are nested too deeply to print (limit 16)");
    open_.push_back(&space);
    out_ += "<Namespace {";
    bool first = true;
    for (const auto& [key, value] : space.attributes) {
      if (!first) out_ += ", ";
      first = false;
      AppendQuoted(key, out_);
      out_ += ": ";
      Print(value);
    }
    out_ += "}>";
    open_.pop_back();
  }

  Budget& budget_;
  std::string& out_;
  std::vector<const NamespaceObject*> open_;
};

}  // namespace

std::string FloatRepr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const double magnitude = std::fabs(value);
  const bool fixed = magnitude == 0 || (magnitude >= 1e-4 && magnitude < 1e16);
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value,
                                          fixed ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(buffer, error == std::errc() ? end : buffer);
  if (fixed && text.find('.') == text.npos) text += ".0";
  return text;
}

std::string Repr(Budget& budget, const Value& value) {
  std::string out;
  Printer(budget, out).Print(value);
  Budget::CheckText(out.size());
  return out;
}

void AppendStr(Budget& budget, const Value& value, std::string& out) {
  if (value.is_string()) {
    Budget::CheckText(out.size() + value.text().size());
    budget.SpendBytes(value.text().size());
    out += value.text();
  } else if (!value.is_undefined() && !value.is(Kind::kMissing)) {
    Printer(budget, out).Print(value);
    Budget::CheckText(out.size());
  }
}

std::string Str(Budget& budget, const Value& value) {
  std::string out;
  AppendStr(budget, value, out);
  return out;
}

}  // namespace vllm::tokenizer::jinja
