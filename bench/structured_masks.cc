// Measures the masks of structured output: bench/structured_masks TOKENIZER_DIRECTORY [WORKLOAD]. For grammars like
// those of JSON Schemas, it reads random texts token by token, with a new automaton for each text, and prints the time
// per mask (all masks, and those that were computed because no earlier position had them), the time to make an
// automaton, and its memory.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/structured_output/matcher/grammar_automaton.h"
#include "tests/structured_output/json_like_grammar.h"
#include "tokenizer/loaders/load_tokenizer.h"
#include "tokenizer/token_bytes.h"

namespace vllm {
namespace {

// The processor time of this thread: on a busy machine, a few masks would be interrupted for longer than all others
// take.
struct Clock {
  using duration = std::chrono::nanoseconds;
  using time_point = std::chrono::nanoseconds;
  static time_point now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }
};
using testing_support::JsonLikeBuilder;

constexpr size_t kNumTexts = 20;

double Microseconds(Clock::duration duration) { return std::chrono::duration<double, std::micro>(duration).count(); }

struct Workload {
  const char* name;
  std::function<SymbolId(JsonLikeBuilder&)> grammar;
  std::function<std::string(std::mt19937&)> text;
};

std::string Words(std::mt19937& random, size_t count) {
  static constexpr const char* kWords[] = {"the",   "engine", "Paris",  "of", "structured", "output",
                                           "é",     "日本",   "answer", "42", "a",          "question",
                                           "token", "mask",   "in",     "😀"};
  std::string text;
  for (size_t i = 0; i < count; ++i) text += (i == 0 ? "" : " ") + std::string(kWords[random() % std::size(kWords)]);
  return text;
}

std::string Enumerated(size_t i) { return "value_" + std::to_string(i * 7919 % 10'000) + "_of_many"; }

std::string Name(size_t i) {
  static constexpr const char* kNames[] = {"name",  "description", "identifier", "tags",   "created_at",
                                           "email", "address",     "quantity",   "status", "notes"};
  return kNames[i];
}

std::vector<Workload> Workloads() {
  const auto quoted = [](const std::string& text) { return "\"" + text + "\""; };
  const auto list = [](std::mt19937& random, size_t count, auto item) {
    std::string text = "[";
    for (size_t i = 0; i < count; ++i) text += (i == 0 ? "" : ",") + item(random);
    return text + "]";
  };
  const auto string_list = [=](std::mt19937& random) {
    return list(random, 20, [&](std::mt19937& r) { return quoted(Words(r, 1 + r() % 15)); });
  };
  return {
      {"any value", [](JsonLikeBuilder& json) { return json.Value(); },
       [=](std::mt19937& random) {
         return list(random, 20, [&](std::mt19937& r) {
           return "{" + quoted(Words(r, 2)) + ":" + quoted(Words(r, 8)) + "," + quoted(Words(r, 1)) + ":[12.5,true]}";
         });
       }},
      {"object of 10 names and others",
       [](JsonLikeBuilder& json) {
         const SymbolId string = json.builder.AddTerminal(json.AnyString());
         const SymbolId number = json.builder.AddTerminal(json.Number());
         std::vector<std::pair<std::string, SymbolId>> properties;
         for (size_t i = 0; i < 10; ++i) properties.emplace_back(Name(i), i % 2 == 0 ? string : number);
         return json.Array(json.Object(properties, json.Value()));
       },
       [=](std::mt19937& random) {
         return list(random, 5, [&](std::mt19937& r) {
           std::string text = "{";
           for (size_t i = 0; i < 10; ++i) {
             text += quoted(Name(i)) + ":" + (i % 2 == 0 ? quoted(Words(r, 6)) : std::to_string(r() % 100'000)) + ",";
           }
           return text + quoted(Words(r, 1)) + ":" + quoted(Words(r, 3)) + ",\"names\":[null]}";
         });
       }},
      {"enum of 10,000",
       [](JsonLikeBuilder& json) {
         std::vector<std::string> texts;
         for (size_t i = 0; i < 10'000; ++i) texts.push_back("\"" + Enumerated(i) + "\"");
         return json.Array(json.builder.AddTerminal(json.regexes().Literals(std::move(texts))));
       },
       [=](std::mt19937& random) {
         return list(random, 50, [&](std::mt19937& r) { return quoted(Enumerated(r() % 10'000)); });
       }},
      {"numbers", [](JsonLikeBuilder& json) { return json.Array(json.builder.AddTerminal(json.Number())); },
       [=](std::mt19937& random) {
         return list(random, 50, [](std::mt19937& r) { return std::to_string(r() % 100'000) + ".5"; });
       }},
      {"strings of at most 100",
       [](JsonLikeBuilder& json) { return json.Array(json.builder.AddTerminal(json.Quoted(json.Characters(0, 100)))); },
       string_list},
      {"strings that contain a word",
       [](JsonLikeBuilder& json) {
         const RegexId any = AnyText(json.regexes(), TextSpelling::kJsonString);
         return json.Array(json.builder.AddTerminal(
             json.Quoted(json.regexes().Concat(std::vector<RegexId>{any, json.regexes().Literal("question"), any}))));
       },
       [=](std::mt19937& random) {
         return list(random, 20, [&](std::mt19937& r) { return quoted(Words(r, 1 + r() % 15) + "question"); });
       }},
      {"strings of small letters",
       [](JsonLikeBuilder& json) {
         return json.Array(json.builder.AddTerminal(
             json.Quoted(json.regexes().Repeat(json.Range('a', 'z'), 1, RegexStore::kUnbounded))));
       },
       [=](std::mt19937& random) {
         return list(random, 50, [&](std::mt19937& r) { return quoted(r() % 2 == 0 ? "structured" : "tokenmask"); });
       }},
  };
}

// Returns the id of the longest token that the mask allows and that `text` begins with.
int32_t NextToken(const VocabTrie& trie, const TokenBitmask& mask, std::string_view text) {
  const TokenTrie* tries[] = {&trie.slices().plain(), &trie.slices().rest()};
  int32_t best = -1;
  size_t best_size = 0;
  for (const TokenTrie* tokens : tries) {
    const auto nodes = tokens->nodes();
    size_t depth = 0;
    for (size_t i = 0; i < nodes.size() && depth < text.size();) {
      if (nodes[i].depth <= depth) break;
      if (nodes[i].byte != static_cast<uint8_t>(text[depth])) {
        i += nodes[i].subtree_size;
        continue;
      }
      ++depth;
      for (const int32_t id : tokens->TokensOf(i)) {
        if (depth > best_size && (mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1) != 0) {
          best = id;
          best_size = depth;
        }
      }
      ++i;
    }
  }
  return best;
}

void Print(const char* label, std::vector<double> times) {
  if (times.empty()) return;
  std::sort(times.begin(), times.end());
  std::printf("  %-9s %6zu masks  median %7.1f us  p99 %8.1f us  max %8.1f us\n", label, times.size(),
              times[times.size() / 2], times[times.size() * 99 / 100], times.back());
}

void Measure(const Workload& workload, const std::shared_ptr<const VocabTrie>& trie) {
  std::vector<double> all, computed;
  double make_us = 0;
  size_t memory_bytes = 0;
  std::mt19937 random(1);
  for (size_t i = 0; i < kNumTexts; ++i) {
    const std::string text = workload.text(random);
    const Clock::time_point begin = Clock::now();
    JsonLikeBuilder json;
    const SymbolId start = workload.grammar(json);
    GrammarAutomaton automaton(json.builder.Finish(start), trie);
    make_us += Microseconds(Clock::now() - begin);
    GrammarAutomaton::Position position;
    TokenBitmask mask;
    while (position.text.size() < text.size()) {
      const bool is_known = automaton.HasAllowedTokens(position);
      const Clock::time_point mask_begin = Clock::now();
      automaton.FindAllowedTokens(position, mask);
      const double mask_us = Microseconds(Clock::now() - mask_begin);
      all.push_back(mask_us);
      if (!is_known) computed.push_back(mask_us);
      const int32_t id = NextToken(*trie, mask, std::string_view(text).substr(position.text.size()));
      if (id < 0 || !automaton.AdvanceToken(position, id)) {
        std::fprintf(stderr, "no token continues: %s\n", position.text.c_str());
        return;
      }
    }
    memory_bytes = std::max(memory_bytes, automaton.memory_bytes());
  }
  std::printf("%s: made in %.0f us, %zu kB\n", workload.name, make_us / kNumTexts, memory_bytes / 1024);
  Print("all", all);
  Print("computed", computed);
}

}  // namespace
}  // namespace vllm

int main(int argc, char** argv) {
  using namespace vllm;
  if (argc < 2) {
    std::fprintf(stderr, "usage: structured_masks TOKENIZER_DIRECTORY [WORKLOAD]\n");
    return 2;
  }
  const auto tokenizer = tokenizer::LoadTokenizer(argv[1]);
  const Clock::time_point begin = Clock::now();
  const auto trie = std::make_shared<const VocabTrie>(*tokenizer::TokenBytes(*tokenizer), tokenizer->VocabSize());
  const TokenSlices& slices = trie->slices();
  size_t num_suffix_nodes = 0;
  for (size_t i = 0; i <= TokenSlices::kMaxCharacters; ++i) num_suffix_nodes += slices.Suffixes(i).nodes().size();
  std::printf(
      "%lld tokens sorted in %.0f ms: %zu plain in %zu nodes, %zu others in %zu nodes or %zu of suffixes, %zu long\n",
      static_cast<long long>(trie->vocab_size()), Microseconds(Clock::now() - begin) / 1000,
      slices.plain().tokens().size(), slices.plain().nodes().size(), slices.rest().tokens().size(),
      slices.rest().nodes().size(), num_suffix_nodes, slices.long_tokens().tokens().size());
  for (const Workload& workload : Workloads()) {
    if (argc < 3 || workload.name == std::string(argv[2])) Measure(workload, trie);
  }
  return 0;
}
