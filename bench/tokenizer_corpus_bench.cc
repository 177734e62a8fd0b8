// Loads a tokenizer and encodes text files with it on one thread. bench/tokenizer_corpus_hf.py does the same with
// Hugging Face `tokenizers`, with the same arguments and output.
//   tokenizer_corpus_bench DIRECTORY TEXT...
// Each file is encoded line by line, as corpora are, and as a whole. The best of several rounds counts. Each round uses
// a new tokenizer, because both programs cache words.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/loaders/load_tokenizer.h"
#include "tokenizer/tokenizer.h"

namespace vllm {
namespace {

constexpr int kRounds = 5;

// CPU time, because both programs use one thread and other processes may be running.
double Seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

template <typename Prepare, typename Work>
double BestOf(Prepare prepare, Work work) {
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    prepare();
    const double start = Seconds();
    work();
    best = std::min(best, Seconds() - start);
  }
  return best;
}

void Run(const std::string& directory, const std::vector<std::string>& paths) {
  std::unique_ptr<tokenizer::Tokenizer> tokenizer;
  const auto load_tokenizer = [&] { tokenizer = tokenizer::LoadTokenizer(directory); };
  const double load = BestOf([] {}, load_tokenizer);
  std::printf("load %.1f ms\n", load * 1e3);
  for (const std::string& path : paths) {
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    std::vector<std::string_view> lines;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
      lines.push_back(std::string_view(text).substr(begin, end - begin));
      begin = end;
    }
    size_t num_ids = 0;
    const double by_line = BestOf(load_tokenizer, [&] {
      num_ids = 0;
      for (const std::string_view line : lines) num_ids += tokenizer->Encode(line, false).size();
    });
    const double whole = BestOf(load_tokenizer, [&] { tokenizer->Encode(text, false); });
    const double megabytes = static_cast<double>(text.size()) / 1e6;
    std::printf("%s: %zu ids, lines %.2f MB/s, whole %.2f MB/s\n", path.c_str(), num_ids, megabytes / by_line,
                megabytes / whole);
  }
}

}  // namespace
}  // namespace vllm

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s DIRECTORY TEXT...\n", argv[0]);
    return 2;
  }
  vllm::Run(argv[1], std::vector<std::string>(argv + 2, argv + argc));
}
