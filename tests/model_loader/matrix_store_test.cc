// Tests that loading from the packed-weight cache gives the same results as packing, bit for bit, for every test
// model, and that damaged, untrusted or unwritable cache files do not change the results.
#include "engine/model_loader/packed_cache/matrix_store.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/config/errors.h"
#include "engine/model_loader/gguf/config.h"
#include "engine/model_loader/hf/hf_config.h"
#include "engine/model_loader/packed_cache/packed_key.h"
#include "kernels/isa.h"
#include "tests/support/one_request.h"
#include "tests/support/temp_directory.h"
#include "tests/support/test_models.h"

namespace vllm {
namespace {

namespace fs = std::filesystem;
using testing_support::OneRequest;
using testing_support::TestModels;

class MatrixStoreTest : public testing::Test {
 protected:
  VllmConfig Config(const std::string& path, int64_t ranks = 1, int64_t threads = 2) const {
    VllmConfig config;
    config.model = path.ends_with(".gguf") ? LoadGgufConfig(path) : LoadModelConfig(path);
    config.model.dtype = config.model.checkpoint_dtype;
    config.model.max_model_len = 64;
    config.parallel.tensor_parallel_size = ranks;
    config.parallel.threads_per_rank = threads;
    config.load.packed_cache_directory = Directory();
    config.load.packed_cache_bytes = int64_t{1} << 30;
    config.load.packed_cache_min_bytes = 0;
    return config;
  }
  VllmConfig Llama() const { return Config(std::string(VLLMCLI_TEST_DATA) + "/models/llama"); }
  std::string Directory() const { return temp_.path() + "/packed"; }
  std::vector<fs::path> Files() const {
    std::vector<fs::path> files;
    if (!fs::exists(Directory())) return files;
    for (const auto& entry : fs::directory_iterator(Directory())) files.push_back(entry.path());
    return files;
  }

  struct Result {
    std::vector<int32_t> tokens;
    std::vector<float> logprobs;
    LoadReport report;
    bool operator==(const Result& other) const { return tokens == other.tokens && logprobs == other.logprobs; }
  };
  static Result Run(const VllmConfig& config) {
    OneRequest engine(config);
    Result result;
    result.tokens = engine.Greedy({1, 5, 9, 2, 33, 7}, 8, 4, 5, 5);
    result.logprobs.assign(engine.output_logprobs.logprobs.begin(), engine.output_logprobs.logprobs.end());
    result.logprobs.insert(result.logprobs.end(), engine.prompt_output.logprobs.begin(),
                           engine.prompt_output.logprobs.end());
    result.report = engine.load_report();
    return result;
  }

  TempDirectory temp_;
};

TEST_F(MatrixStoreTest, CacheHitsAndMissesGiveBitIdenticalLogprobsForEveryTestModel) {
  const std::vector<std::string> models = TestModels();
  EXPECT_GT(models.size(), 100u);
  for (const std::string& path : models) {
    VllmConfig config = Config(path);
    const Result first = Run(config);
    EXPECT_GT(first.report.written_bytes, 0) << path << first.report.failure;
    EXPECT_EQ(first.report.mapped_bytes, 0) << path;
    const Result second = Run(config);
    EXPECT_EQ(second.report.mapped_bytes, first.report.written_bytes) << path << second.report.rejection;
    EXPECT_EQ(second.report.written_bytes, 0) << path;
    EXPECT_EQ(first, second) << path;
    config.load.packed_cache_bytes = 0;
    EXPECT_EQ(Run(config), second) << path;
  }
}

TEST_F(MatrixStoreTest, EachQuantizationDTypeAndInstructionSetHasItsOwnFile) {
  size_t num_files = 0;
  for (const QuantizationMethod method :
       {QuantizationMethod::kNone, QuantizationMethod::kInt8, QuantizationMethod::kInt4}) {
    for (const kernels::DType dtype : {kernels::DType::kFloat32, kernels::DType::kBFloat16}) {
      for (const kernels::Isa isa : {kernels::Isa::kGeneric, kernels::BestIsa()}) {
        VllmConfig config = Config(std::string(VLLMCLI_TEST_DATA) + "/models/llama", 1, 1);
        config.model.dtype = dtype;
        config.model.quantization.method = method;
        config.isa = isa;
        const Result first = Run(config);
        EXPECT_EQ(Files().size(), ++num_files);
        const Result second = Run(config);
        EXPECT_EQ(second.report.mapped_bytes, first.report.written_bytes);
        EXPECT_EQ(first, second);
        EXPECT_EQ(Files().size(), num_files);
        if (kernels::BestIsa() == kernels::Isa::kGeneric) break;
      }
    }
  }
}

TEST_F(MatrixStoreTest, EveryNumberOfRanksUsesTheSameFile) {
  // All sizes of the bundled model are multiples of 16, so every rank has whole panels.
  for (const QuantizationMethod method :
       {QuantizationMethod::kNone, QuantizationMethod::kInt8, QuantizationMethod::kInt4}) {
    for (const int64_t first_ranks : {1, 2}) {
      fs::remove_all(Directory());
      VllmConfig config = Config(std::string(VLLMCLI_SOURCE_DIR) + "/app/guide_model", first_ranks, 1);
      config.model.quantization.method = method;
      const Result first = Run(config);
      EXPECT_GT(first.report.written_bytes, 0);
      for (const int64_t ranks : {1, 2, 4}) {
        config.parallel.tensor_parallel_size = ranks;
        const Result second = Run(config);
        EXPECT_EQ(second.report.mapped_bytes, first.report.written_bytes) << ranks << second.report.rejection;
        EXPECT_EQ(second.report.written_bytes, 0) << ranks;
        EXPECT_EQ(second, first) << ranks;
      }
      EXPECT_EQ(Files().size(), 1u);
    }
  }
}

TEST_F(MatrixStoreTest, AnotherNumberOfRanksPacksOnlyWhatThatNumberSplitsInAnotherWay) {
  for (const std::string& path : TestModels()) {
    fs::remove_all(Directory());
    VllmConfig config = Config(path, 1, 1);
    const Result first = Run(config);
    config.parallel.tensor_parallel_size = 2;
    try {
      config.Finalize();
    } catch (const ConfigError&) {
      continue;
    }
    const Result second = Run(config);
    EXPECT_EQ(second, first) << path;
    EXPECT_EQ(second.report.rejection, "") << path;
    // What was written is in a second file, which the next start uses.
    const Result third = Run(config);
    EXPECT_EQ(third, first) << path;
    EXPECT_EQ(third.report.written_bytes, 0) << path;
    EXPECT_EQ(third.report.mapped_bytes, second.report.mapped_bytes + second.report.written_bytes) << path;
    EXPECT_EQ(Files().size(), second.report.written_bytes > 0 ? 2u : 1u) << path;
  }
}

TEST_F(MatrixStoreTest, DamagedFileIsRejectedAndReplaced) {
  const VllmConfig config = Llama();
  const Result first = Run(config);
  const std::string path = Files().at(0);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);
  file.put('?');
  file.close();
  const Result second = Run(config);
  EXPECT_NE(second.report.rejection.find("rejected: weight checksum mismatch"), std::string::npos)
      << second.report.rejection;
  EXPECT_EQ(second.report.written_bytes, first.report.written_bytes);
  EXPECT_EQ(second, first);
  const Result third = Run(config);
  EXPECT_EQ(third.report.mapped_bytes, first.report.written_bytes);
  EXPECT_EQ(third, first);
}

// Weights are looked up by name, so the order of the matrices in a file does not matter.
TEST_F(MatrixStoreTest, OnlyWeightsMissingFromAFileArePackedAndAddedToIt) {
  const VllmConfig config = Llama();
  const Result first = Run(config);
  const std::string path = Files().at(0);
  std::string description;
  std::vector<std::vector<std::byte>> data;
  std::vector<PackedEntry> entries;
  const ForEach sequentially = [](int64_t count, const std::function<void(int64_t i)>& f) {
    for (int64_t i = 0; i < count; ++i) f(i);
  };
  {
    std::ifstream file(path, std::ios::binary);
    const std::string contents{std::istreambuf_iterator<char>(file), {}};
    description =
        contents.substr(40, static_cast<unsigned char>(contents[12]) + 256u * static_cast<unsigned char>(contents[13]));
    const PackedFile packed(path, description, sequentially);
    for (const PackedEntry& entry : packed.entries()) {
      data.emplace_back(entry.data.begin(), entry.data.end());
      entries.push_back({entry.name_hash, data.back()});
    }
    for (size_t i = 0; i < entries.size(); ++i) entries[i].data = data[i];
  }
  const PackedCache cache(Directory(), int64_t{1} << 30);
  const auto write = [&] {
    cache.Put(HexDigest(description), PackedFileBytes(description, entries),
              [&](int fd, const std::string& to) { WritePackedFile(fd, to, description, entries, sequentially); });
  };
  std::swap(entries.front(), entries.back());
  write();
  const Result swapped = Run(config);
  EXPECT_EQ(swapped.report.rejection, "");
  EXPECT_EQ(swapped.report.mapped_bytes, PackedFileBytes(description, entries));
  EXPECT_EQ(swapped.report.written_bytes, 0);
  EXPECT_EQ(swapped, first);

  // Remove one entry and change the size of another.
  entries.erase(entries.begin() + 1);
  entries.back().data = entries.back().data.first(entries.back().data.size() / 2);
  write();
  const Result repaired = Run(config);
  EXPECT_NE(repaired.report.rejection.find("parts are missing and were packed again"), std::string::npos);
  EXPECT_GT(repaired.report.mapped_bytes, 0);
  EXPECT_EQ(repaired.report.written_bytes, first.report.written_bytes);
  EXPECT_EQ(repaired, first);
  const Result after = Run(config);
  EXPECT_EQ(after.report.rejection, "");
  EXPECT_EQ(after.report.mapped_bytes, first.report.written_bytes);
  EXPECT_EQ(after, first);
}

TEST_F(MatrixStoreTest, DirectoryThatCannotBeCreatedIsReportedAndDoesNotPreventLoading) {
  VllmConfig config = Llama();
  temp_.Write("file", "");
  config.load.packed_cache_directory = temp_.path() + "/file/packed";
  const Result result = Run(config);
  EXPECT_NE(result.report.failure.find("cannot be created"), std::string::npos) << result.report.failure;
  EXPECT_EQ(result, Run(Llama()));
}

TEST_F(MatrixStoreTest, DirectoryWritableByOthersIsNotUsedAndTheReasonIsReported) {
  const VllmConfig config = Llama();
  const Result first = Run(config);
  ASSERT_EQ(chmod(Directory().c_str(), 0777), 0);
  const Result second = Run(config);
  EXPECT_NE(second.report.failure.find("writable by group or others (mode 0777)"), std::string::npos);
  EXPECT_EQ(second.report.mapped_bytes, 0);
  EXPECT_EQ(second.report.written_bytes, 0);
  EXPECT_EQ(second, first);
}

TEST_F(MatrixStoreTest, SymbolicLinkToTheDirectoryIsNotFollowed) {
  const VllmConfig config = Llama();
  const Result first = Run(config);
  fs::rename(Directory(), Directory() + ".real");
  fs::create_symlink(Directory() + ".real", Directory());
  const Result second = Run(config);
  EXPECT_NE(second.report.failure.find("not a directory (a symbolic link)"), std::string::npos)
      << second.report.failure;
  EXPECT_EQ(second.report.mapped_bytes, 0);
  EXPECT_EQ(second, first);
}

// The store replaces a file that it does not trust, so that the next start is fast again.
TEST_F(MatrixStoreTest, UntrustedFileIsReplacedAndNotUsed) {
  const VllmConfig config = Llama();
  const Result first = Run(config);
  const std::string path = Files().at(0);
  const std::string elsewhere = temp_.path() + "/elsewhere";
  const std::vector<std::pair<std::string, std::function<void()>>> cases = {
      {"writable by group or others (mode 0666)", [&] { ASSERT_EQ(chmod(path.c_str(), 0666), 0); }},
      {"not a regular file (a symbolic link)",
       [&] {
         fs::copy_file(path, elsewhere);
         fs::remove(path);
         fs::create_symlink(elsewhere, path);
       }},
      {"not a regular file (a FIFO)",
       [&] {
         fs::remove(path);
         ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
       }},
  };
  for (const auto& [why, prepare] : cases) {
    prepare();
    const Result second = Run(config);
    EXPECT_NE(second.report.failure.find(why), std::string::npos) << second.report.failure;
    EXPECT_EQ(second.report.mapped_bytes, 0) << why;
    EXPECT_EQ(second.report.written_bytes, first.report.written_bytes) << why;
    EXPECT_EQ(second, first) << why;
    const Result third = Run(config);
    EXPECT_EQ(third.report.mapped_bytes, first.report.written_bytes) << why;
    EXPECT_EQ(third.report.failure, "") << why;
    EXPECT_EQ(third, first) << why;
  }
}

TEST_F(MatrixStoreTest, FileThatCannotBeWrittenIsReportedAndDoesNotPreventLoading) {
  const Result expected = Run(Llama());
  fs::remove_all(Directory());
  rlimit saved{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &saved), 0);
  const rlimit limited{4096, saved.rlim_max};
  const auto old_handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limited), 0);
  const Result result = Run(Llama());
  setrlimit(RLIMIT_FSIZE, &saved);
  signal(SIGXFSZ, old_handler);
  EXPECT_NE(result.report.failure.find(Directory()), std::string::npos) << result.report.failure;
  EXPECT_NE(result.report.failure.find("cannot be written: File too large"), std::string::npos)
      << result.report.failure;
  EXPECT_EQ(result.report.written_bytes, 0);
  EXPECT_EQ(result, expected);
  EXPECT_TRUE(Files().empty());
}

TEST_F(MatrixStoreTest, NothingIsCachedForDummySmallOrTooLargeWeightsOrWithoutADirectory) {
  VllmConfig config = Llama();
  config.load.packed_cache_min_bytes = int64_t{16} << 20;
  Run(config);
  config = Llama();
  config.load.packed_cache_bytes = 0;
  Run(config);
  config = Llama();
  config.load.packed_cache_bytes = 5000;
  EXPECT_EQ(Run(config).report.failure, "");
  config = Llama();
  config.load.packed_cache_directory = "";
  Run(config);
  config = Llama();
  config.load.load_format = LoadFormat::kDummy;
  Run(config);
  EXPECT_TRUE(Files().empty());
}

TEST_F(MatrixStoreTest, ConcurrentStartsDoNotInterfere) {
  const Result expected = Run(Llama());
  fs::remove_all(Directory());
  std::atomic<int> num_equal{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 3; ++round)
        num_equal += Run(Config(Llama().model.directory, 1, 1)) == expected ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_equal, 18);
  EXPECT_EQ(Files().size(), 1u);
}

}  // namespace
}  // namespace vllm
