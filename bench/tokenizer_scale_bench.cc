// Encodes long runs of one class of characters, which many tokenizers treat as a single word.
//   tokenizer_scale_bench TOKENIZER MEGABYTES...
// TOKENIZER is a directory or a tokenizer.json. For every class, prints the CPU time in seconds for each size. For the
// last size, also prints the number of ids and the increase of the process's peak memory, including the returned ids,
// in bytes per byte of text.
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/loaders/load_tokenizer.h"
#include "tokenizer/tokenizer.h"

namespace vllm {
namespace {

struct TextClass {
  const char* name;
  std::vector<std::string_view> units;  // drawn at random
};

const std::vector<TextClass>& Classes() {
  static const std::vector<TextClass> classes = {
      {"a", {"a"}},
      {"spaces", {" "}},
      {"newlines", {"\n"}},
      {"digits", {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}},
      {"punctuation", {"!", ".", ",", "?", "-", "(", ")", "=", "#", "'"}},
      {"letters",
       {"e", "t", "a", "o", "i", "n", "s", "r", "h", "l", "d", "u", "c", "m", "E", "T", "A", "th", "in", "er"}},
      {"CJK",
       {"的", "一", "是", "不", "了", "人", "我", "在", "有", "他", "日", "本", "語", "の", "に", "は", "を", "た"}},
      {"one CJK", {"中"}},
      {"emoji", {"😀", "😂", "🚀", "👍", "🎉", "❤", "👩‍💻"}},
      {"accents", {"é", "ü", "ñ", "я", "ж", "ó", "e\xCC\x81"}},
  };
  return classes;
}

double Seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Returns a field of /proc/self/status in bytes, or 0 if it is missing.
size_t StatusBytes(std::string_view name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name)) return std::strtoull(line.c_str() + name.size() + 1, nullptr, 10) * 1024;
  }
  return 0;
}

void ResetPeak() { std::ofstream("/proc/self/clear_refs") << "5"; }

std::string MakeText(const TextClass& text_class, size_t num_bytes) {
  std::mt19937 random(1);
  std::string text;
  text.reserve(num_bytes + 16);
  while (text.size() < num_bytes) text += text_class.units[random() % text_class.units.size()];
  return text;
}

void Run(const tokenizer::Tokenizer& tokenizer, const std::vector<size_t>& megabytes) {
  for (const TextClass& text_class : Classes()) {
    std::printf("%-12s", text_class.name);
    double bytes_per_byte = 0;
    size_t num_ids = 0;
    for (const size_t size : megabytes) {
      const std::string text = MakeText(text_class, size * 1000000);
      malloc_trim(0);  // returns freed memory to the OS, so that it is not counted
      ResetPeak();
      const size_t before = StatusBytes("VmRSS:");
      const double start = Seconds();
      num_ids = tokenizer.Encode(text, false).size();
      std::printf(" %8.2f", Seconds() - start);
      std::fflush(stdout);
      // The maximum keeps the difference from being negative if VmHWM is missing or lags behind VmRSS.
      const size_t peak = std::max(StatusBytes("VmHWM:"), before);
      bytes_per_byte = static_cast<double>(peak - before) / static_cast<double>(text.size());
    }
    std::printf(" %6.1f B/B %11zu ids\n", bytes_per_byte, num_ids);
  }
}

}  // namespace
}  // namespace vllm

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s TOKENIZER MEGABYTES...\n", argv[0]);
    return 2;
  }
  std::vector<size_t> megabytes;
  for (int i = 2; i < argc; ++i) megabytes.push_back(std::strtoull(argv[i], nullptr, 10));
  const auto tokenizer = std::filesystem::is_directory(argv[1]) ? vllm::tokenizer::LoadTokenizer(argv[1])
                                                                : vllm::tokenizer::LoadTokenizerJson(argv[1]);
  vllm::Run(*tokenizer, megabytes);
}
