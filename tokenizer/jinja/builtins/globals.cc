#include "tokenizer/jinja/builtins/globals.h"

#include <algorithm>
#include <cstdio>

#include "tokenizer/jinja/builtins/strftime.h"
#include "tokenizer/jinja/values/operations.h"
#include "tokenizer/jinja/values/repr.h"
#include "tokenizer/jinja/values/text.h"

namespace vllm::tokenizer::jinja {
namespace {

constexpr int64_t kMaxRange = 100'000;  // jinja2.sandbox.MAX_RANGE

Value Range(Runtime& runtime, const Args& args) {
  const BoundArgs bound("range", args, {"start", "stop", "step"}, 1);
  if (!args.keywords.empty()) throw EvalError("range takes no keyword arguments");
  const int64_t first = bound.Int(0, 0);
  const int64_t start = bound[1] == nullptr ? 0 : first;
  const int64_t stop = bound[1] == nullptr ? first : bound.Int(1, 0);
  const int64_t step = bound.Int(2, 1);
  if (step == 0) throw EvalError("range: step must not be zero");
  constexpr int64_t kLimit = int64_t{1} << 62;  // keeps stop - start from overflowing
  if (std::max({std::abs(start / 2), std::abs(stop / 2), std::abs(step / 2)}) >= kLimit / 2) {
    throw EvalError("range: arguments must be between -2^62 and 2^62 (a range has at most " +
                    std::to_string(kMaxRange) + " items)");
  }
  Value range = MakeRange(&runtime.budget, start, stop, step);
  if (range.range().length() > kMaxRange) {
    throw EvalError("range is too big (limit " + std::to_string(kMaxRange) + ")");
  }
  return range;
}

// Implements dict(mapping or pairs, **more).
std::shared_ptr<DictObject> DictOf(Runtime& runtime, const Args& args) {
  if (args.positional.size() > 1) throw EvalError("dict takes at most 1 positional argument");
  auto dict = std::make_shared<DictObject>();
  if (!args.positional.empty()) {
    const Value& source = args.positional[0];
    if (source.is(Kind::kDict)) {
      runtime.budget.Spend(source.dict().items.size() * 4);
      runtime.budget.CheckMemory(source.dict().items.size() * 2 * sizeof(std::pair<Value, Value>));
      for (const auto& [key, value] : source.dict().items) dict->Set(key, value);
    } else {
      if (source.is_undefined()) throw EvalError(source.UndefinedMessage());
      for (const Value& item : ToVector(runtime.budget, source)) {
        std::vector<Value> pair = ToVector(runtime.budget, item);
        if (pair.size() != 2) throw EvalError("dict needs pairs");
        dict->Set(std::move(pair[0]), std::move(pair[1]));
      }
    }
  }
  for (const auto& [name, value] : args.keywords) dict->Set(MakeString(&runtime.budget, name), value);
  return dict;
}

Value Dict(Runtime& runtime, const Args& args) { return MakeDict(&runtime.budget, DictOf(runtime, args)); }

Value Namespace(Runtime& runtime, const Args& args) {
  const auto dict = DictOf(runtime, args);
  auto space = std::make_shared<NamespaceObject>();
  space->Charge(&runtime.budget, sizeof(NamespaceObject));
  space->depth = 1;
  for (const auto& [key, value] : dict->items) {
    if (!key.is_string()) throw EvalError("namespace attribute names must be strings");
    if (key.text().starts_with("_")) throw EvalError("namespace attributes must not start with an underscore");
    space->Set(runtime.budget, key.text(), value);
  }
  runtime.namespaces.push_back(space);
  return Value(Kind::kNamespace, std::move(space));
}

Value Cycler(Runtime& runtime, const Args& args) {
  if (args.positional.empty() || !args.keywords.empty())
    throw EvalError("cycler needs at least one item and takes no keyword arguments");
  auto cycler = std::make_shared<CyclerObject>();
  cycler->Charge(&runtime.budget, sizeof(CyclerObject) + args.positional.size() * sizeof(Value));
  // The cycler has the depth of a list of its items. Making the list checks the depth limit.
  cycler->depth = MakeSequence(&runtime.budget, Kind::kList, args.positional).depth();
  cycler->items = args.positional;
  return Value(Kind::kCycler, std::move(cycler));
}

Value Joiner(Runtime& runtime, const Args& args) {
  const BoundArgs bound("joiner", args, {"sep"});
  auto joiner = std::make_shared<JoinerObject>();
  joiner->separator = bound[0] == nullptr ? ", " : bound.Text(0);
  joiner->Charge(&runtime.budget, sizeof(JoinerObject) + joiner->separator.size());
  return Value(Kind::kJoiner, std::move(joiner));
}

Value RaiseException(Runtime& runtime, const Args& args) {
  const BoundArgs bound("raise_exception", args, {"message"}, 1);
  throw EvalError(EscapeForError(Str(runtime.budget, *bound[0])));
}

Value StrftimeNow(Runtime& runtime, const Args& args) {
  const BoundArgs bound("strftime_now", args, {"format"}, 1);
  if (bound.Text(0).size() > 4096) throw EvalError("strftime_now: format is too long (limit 4096 bytes)");
  return MakeString(&runtime.budget, Strftime(bound.Text(0), runtime.now));
}

using Function = Value (*)(Runtime& runtime, const Args& args);
struct NamedFunction {
  std::string_view name;
  Function function;
};

constexpr NamedFunction kFunctions[] = {
    {"range", Range},
    {"dict", Dict},
    {"namespace", Namespace},
    {"cycler", Cycler},
    {"joiner", Joiner},
    {"raise_exception", RaiseException},
    {"strftime_now", StrftimeNow},
};

}  // namespace

bool IsGlobalFunction(std::string_view name) {
  return std::any_of(std::begin(kFunctions), std::end(kFunctions),
                     [&](const NamedFunction& entry) { return entry.name == name; });
}

Value CallGlobalFunction(Runtime& runtime, std::string_view name, const Args& args) {
  for (const NamedFunction& entry : kFunctions) {
    if (entry.name == name) return entry.function(runtime, args);
  }
  throw EvalError("no such function");
}

std::string EscapeForError(std::string_view text) {
  constexpr size_t kMaxBytes = 300;
  std::string result;
  for (size_t i = 0; i < text.size();) {
    if (result.size() >= kMaxBytes) return result + "...";
    const size_t start = i;
    const char32_t c = NextCodePoint(text, i);
    if (IsPrintable(c) && c != 0xfffd) {
      result += text.substr(start, i - start);
      continue;
    }
    for (size_t byte = start; byte < i; ++byte) {
      char buffer[8];
      std::snprintf(buffer, sizeof buffer, "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(text[byte])));
      result += buffer;
    }
  }
  return result;
}

}  // namespace vllm::tokenizer::jinja
