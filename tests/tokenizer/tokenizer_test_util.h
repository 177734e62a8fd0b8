// Files and random texts for the tokenizer tests. Functions without state, any thread.
#pragma once

#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/support/temp_directory.h"
#include "tokenizer/loaders/load_tokenizer.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer {

inline std::string ReadTestFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<std::string> ReadLines(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// Returns the CPU time of this process. Unlike wall time, it does not grow while other processes use the CPU, so tests
// can put a limit on it.
inline double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

inline std::string DataPath(const std::string& name) { return std::string(VLLMCLI_TEST_DATA) + "/tokenizer/" + name; }
inline std::string RealPath(const std::string& name) { return std::string(VLLMCLI_REALDATA) + "/" + name; }

// Loads the tokenizer with this name from the reference data. Returns null if its files are missing.
inline std::unique_ptr<Tokenizer> LoadRealTokenizer(const std::string& name) {
  for (const std::string& directory : {"tokenizers/" + name, "models/" + name, "models/" + name + "/hf-f32"}) {
    const std::string path = RealPath(directory);
    if (std::filesystem::exists(path + "/tokenizer.json")) return LoadTokenizerJson(path + "/tokenizer.json");
    if (std::filesystem::exists(path + "/merges.txt")) {
      return LoadVocabAndMerges(path + "/vocab.json", path + "/merges.txt", path + "/tokenizer_config.json");
    }
  }
  return nullptr;
}

// Returns a random text, mostly of characters that tokenizers treat specially, such as whitespace, apostrophes, digits,
// marks and uppercase letters.
inline std::string RandomText(std::mt19937& random, size_t num_characters) {
  static const char32_t kInteresting[] = {
      ' ',    ' ',      ' ',    '\n',   '\r',   '\t',   '\'',   '\'',   's',     'S',     'T',    'r',    'e',
      'v',    'm',      'l',    'L',    'd',    'a',    'Z',    '0',    '7',     '.',     '!',    '-',    '_',
      '<',    '|',      '>',    0xA0,   0x3000, 0x85,   0x2028, 0x17F,  0xE9,    0x301,   0x345,  0x130,  0x3A3,
      0xBD,   0x661,    0x2160, 0x2581, 0x4E2D, 0x3042, 0xAC00, 0x11A8, 0x1F600, 0x1F1E6, 0x200D, 0xFE0F, 0xFEFF,
      0xFFFD, 0x10FFFF, 0x212A, 0xDF,   0x1E9E, 0xFB05, 0x0,    0x7F,   0x1C5};
  std::uniform_int_distribution<size_t> pick(0, std::size(kInteresting) - 1);
  std::uniform_int_distribution<uint32_t> any(1, 0x10FFFF);
  std::string text;
  for (size_t i = 0; i < num_characters; ++i) {
    char32_t c = kInteresting[pick(random)];
    // The other characters are from blocks without recent additions, because older releases of Oniguruma do not know
    // new characters.
    if (random() % 8 == 0) c = any(random) % 0x530;
    if (random() % 16 == 0) c = 0x4E00 + any(random) % 0x5000;
    AppendCodePoint(c, text);
  }
  return text;
}

}  // namespace vllm::tokenizer
