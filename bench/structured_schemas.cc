// Measures structured output on JSON Schemas and texts that they allow: structured_schemas TOKENIZER_DIRECTORY FILE.
// bench/structured.py makes FILE, compares the result with other libraries, and says what the figures mean. Each line
// of FILE has "schema" and "tokens", the texts as lists of token ids. Prints a line of JSON for each: "error", or
// "first_mask_us", "mask_us" of all masks, "allowed" (whether each text is allowed) and "memory_bytes". The last line
// has "rss_bytes", how much the process has grown while it kept all grammars.
#include <malloc.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/config/errors.h"
#include "engine/structured_output/json_schema/schema_compiler.h"
#include "engine/structured_output/matcher/grammar_automaton.h"
#include "tokenizer/loaders/load_tokenizer.h"
#include "tokenizer/token_bytes.h"

namespace vllm {
namespace {

using Json = nlohmann::ordered_json;

// The processor time of this thread, in microseconds: on a busy machine, a few masks would be interrupted for longer
// than all others take.
double Now() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

int64_t RssBytes() {
  malloc_trim(0);
  std::ifstream file("/proc/self/statm");
  int64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

Json Measure(const Json& row, const std::shared_ptr<const VocabTrie>& trie,
             std::vector<std::unique_ptr<GrammarAutomaton>>& kept) {
  Json result;
  const std::string schema = row["schema"].dump();
  const double begin = Now();
  std::unique_ptr<GrammarAutomaton> automaton;
  GrammarAutomaton::Position start;
  try {
    automaton = std::make_unique<GrammarAutomaton>(CompileJsonSchema(schema), trie);
    automaton->AllowedTokens(start);
  } catch (const std::runtime_error& error) {
    result["error"] = error.what();
    return result;
  }
  result["first_mask_us"] = Now() - begin;
  result["mask_us"] = Json::array();
  result["allowed"] = Json::array();
  TokenBitmask mask;  // a copy, because the peers fill a buffer of the caller, too
  for (const Json& tokens : row["tokens"]) {
    GrammarAutomaton::Position position;
    bool is_allowed = true;
    for (const Json& id : tokens) {
      const double mask_begin = Now();
      automaton->FindAllowedTokens(position, mask);
      result["mask_us"].push_back(Now() - mask_begin);
      is_allowed = automaton->AdvanceToken(position, id.get<int32_t>());
      if (!is_allowed) break;
    }
    result["allowed"].push_back(is_allowed && automaton->MayEnd(position));
  }
  result["memory_bytes"] = automaton->memory_bytes();
  kept.push_back(std::move(automaton));
  return result;
}

int Main(const char* tokenizer_directory, const char* path) {
  const auto tokenizer = tokenizer::LoadTokenizer(tokenizer_directory);
  const auto trie = std::make_shared<const VocabTrie>(*tokenizer::TokenBytes(*tokenizer), tokenizer->VocabSize());
  std::vector<Json> rows;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) rows.push_back(Json::parse(line));
  std::vector<std::unique_ptr<GrammarAutomaton>> kept;
  const int64_t rss_bytes = RssBytes();
  for (const Json& row : rows) std::puts(Measure(row, trie, kept).dump().c_str());
  std::puts(Json({{"rss_bytes", RssBytes() - rss_bytes}}).dump().c_str());
  return 0;
}

}  // namespace
}  // namespace vllm

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: structured_schemas TOKENIZER_DIRECTORY FILE\n");
    return 2;
  }
  return vllm::Main(argv[1], argv[2]);
}
