// Runs MaskBench: bench/maskbench [--any-order] [--flexible] TOKENIZER_DIRECTORY DATA_DIRECTORY [STEP [FIRST]].
// DATA_DIRECTORY is the directory maskbench/data of https://github.com/guidance-ai/jsonschemabench, whose files have a
// schema and instances that it allows or not. Compiles each STEP-th schema, and reads its instances token by token,
// with the mask before each token. Prints the schemas that are rejected and why, instances with a wrong verdict, and
// the processor time of compilation and of masks.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
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

constexpr double kSlowCompileMs = 1000;
constexpr double kSlowMaskMs = 10;

// The processor time of this thread, in milliseconds.
double Now() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

// Removes what differs between schemas from an error, so that equal reasons can be counted.
std::string ReasonOf(std::string error) {
  if (const size_t at = error.find(": #"); at != error.npos) error.erase(0, error.find(": ", at + 2) + 2);
  if (const size_t at = error.find('('); at != error.npos && error.find("limit", at) == error.npos) error.erase(at);
  return error;
}

class MaskBench {
 public:
  MaskBench(const std::string& tokenizer_directory, const JsonSchemaOptions& options)
      : options_(options),
        tokenizer_(tokenizer::LoadTokenizer(tokenizer_directory)),
        trie_(std::make_shared<const VocabTrie>(*tokenizer::TokenBytes(*tokenizer_), tokenizer_->VocabSize())) {}

  void Run(const std::filesystem::path& path) {
    std::ifstream file(path);
    const Json item = Json::parse(file);
    name_ = path.filename().string();
    ++num_schemas_;
    const double begin = Now();
    std::unique_ptr<GrammarAutomaton> automaton;
    std::string error;
    try {
      automaton = std::make_unique<GrammarAutomaton>(CompileJsonSchema(item["schema"].dump(), options_), trie_);
    } catch (const std::exception& e) {
      error = e.what();
    }
    const double compile_ms = Now() - begin;
    compile_ms_.push_back(compile_ms);
    if (compile_ms > kSlowCompileMs) std::printf("compile %s: %.0f ms\n", name_.c_str(), compile_ms);
    if (automaton == nullptr) {
      ++reasons_[ReasonOf(error)];
      std::printf("rejected %s: %s\n", name_.c_str(), error.c_str());
      return;
    }
    ++num_accepted_;
    bool is_clean = true;
    for (const Json& test : item["tests"]) {
      const std::string text = test["data"].dump(options_.flexible_whitespace ? 2 : -1);
      is_clean = RunText(*automaton, text, test["valid"].get<bool>()) && is_clean;
    }
    num_clean_ += is_clean ? 1 : 0;
  }

  void Print() {
    std::printf("%zu schemas, %zu accepted, %zu without a wrong verdict\n", num_schemas_, num_accepted_, num_clean_);
    std::printf("%zu valid instances, %zu refused; %zu invalid, %zu accepted; %zu exceed limits\n", num_valid_,
                num_refused_, num_invalid_, num_wrongly_accepted_, num_limits_);
    PrintTimes("compile", compile_ms_);
    PrintTimes("mask", mask_ms_);
    std::vector<std::pair<size_t, std::string>> reasons;
    for (const auto& [reason, count] : reasons_) reasons.emplace_back(count, reason);
    std::sort(reasons.rbegin(), reasons.rend());
    for (const auto& [count, reason] : reasons) std::printf("%6zu %s\n", count, reason.c_str());
  }

 private:
  static void PrintTimes(const char* label, std::vector<double> times) {
    if (times.empty()) return;
    std::sort(times.begin(), times.end());
    const auto at = [&](double part) {
      return times[static_cast<size_t>(static_cast<double>(times.size() - 1) * part)];
    };
    std::printf("%-8s %zu: median %.3f ms, p99 %.3f ms, p99.9 %.3f ms, max %.1f ms\n", label, times.size(), at(0.5),
                at(0.99), at(0.999), at(1));
  }

  bool RunText(GrammarAutomaton& automaton, const std::string& text, bool is_valid) {
    ++(is_valid ? num_valid_ : num_invalid_);
    GrammarAutomaton::Position position;
    bool is_allowed = true;
    try {
      for (const int32_t id : tokenizer_->Encode(text, /*add_special_tokens=*/false, /*parse_special=*/false)) {
        const double begin = Now();
        const TokenBitmask mask = automaton.AllowedTokens(position);
        mask_ms_.push_back(Now() - begin);
        if (mask_ms_.back() > kSlowMaskMs) {
          std::printf("mask %s: %.1f ms after %s\n", name_.c_str(), mask_ms_.back(),
                      TailOf(position.text, position.text.size()).c_str());
        }
        is_allowed = ((mask)[static_cast<size_t>(id) / 32] >> (id % 32) & 1) != 0;
        if (!is_allowed || !automaton.AdvanceToken(position, id)) break;
      }
      if (is_allowed) {
        is_allowed = automaton.MayEnd(position);
      }
    } catch (const GrammarLimitError& error) {
      ++num_limits_;
      std::printf("limit %s: %s\n", name_.c_str(), error.what());
      return false;
    }
    if (is_allowed == is_valid) return true;
    ++(is_valid ? num_refused_ : num_wrongly_accepted_);
    std::printf("%s %s: after %s\n", is_valid ? "refused" : "accepted", name_.c_str(),
                TailOf(text, position.text.size()).c_str());
    return false;
  }

  // The text around the byte `end`.
  static std::string TailOf(const std::string& text, size_t end) {
    const size_t begin = end < 60 ? 0 : end - 60;
    return Json(text.substr(begin, end - begin) + " | " + text.substr(end, 20))
        .dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  const JsonSchemaOptions options_;
  const std::unique_ptr<const tokenizer::Tokenizer> tokenizer_;
  const std::shared_ptr<const VocabTrie> trie_;
  std::string name_;
  size_t num_schemas_ = 0, num_accepted_ = 0, num_clean_ = 0;
  size_t num_valid_ = 0, num_refused_ = 0, num_invalid_ = 0, num_wrongly_accepted_ = 0, num_limits_ = 0;
  std::vector<double> compile_ms_, mask_ms_;
  std::map<std::string, size_t> reasons_;
};

}  // namespace
}  // namespace vllm

int main(int argc, char** argv) {
  vllm::JsonSchemaOptions options;
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--any-order") {
      options.any_order = true;
    } else if (argument == "--flexible") {
      options.flexible_whitespace = true;
    } else {
      arguments.emplace_back(argument);
    }
  }
  if (arguments.size() < 2) {
    std::fprintf(stderr,
                 "usage: maskbench [--any-order] [--flexible] TOKENIZER_DIRECTORY DATA_DIRECTORY [STEP [FIRST]]\n");
    return 2;
  }
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(arguments[1])) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  const size_t step = arguments.size() > 2 ? std::max(1, std::atoi(arguments[2].c_str())) : 1;
  const size_t first = arguments.size() > 3 ? std::atoi(arguments[3].c_str()) : 0;
  vllm::MaskBench bench(arguments[0], options);
  for (size_t i = first; i < paths.size(); i += step) {
    bench.Run(paths[i]);
    std::fflush(stdout);
  }
  bench.Print();
  return 0;
}
