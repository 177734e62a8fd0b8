// Checks that the program is built with the hardening options of the compiler and the linker.
#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

namespace vllm::app {
namespace {

// A 64-bit ELF file. All supported targets use this format.
class ElfFile {
 public:
  explicit ElfFile(const std::string& path) {
    bytes_.resize(std::filesystem::file_size(path));
    std::ifstream(path, std::ios::binary).read(bytes_.data(), static_cast<std::streamsize>(bytes_.size()));
    header_ = At<Elf64_Ehdr>(0);
  }

  const Elf64_Ehdr& header() const { return header_; }
  // Calls f for each program header.
  template <typename F>
  void ForEachSegment(F f) const {
    for (size_t i = 0; i < header_.e_phnum; ++i) f(At<Elf64_Phdr>(header_.e_phoff + i * sizeof(Elf64_Phdr)));
  }
  // Returns the value of the dynamic entry `tag`, or 0 if there is none.
  uint64_t Dynamic(int64_t tag) const {
    uint64_t found = 0;
    ForEachSegment([&](const Elf64_Phdr& segment) {
      if (segment.p_type != PT_DYNAMIC) return;
      for (uint64_t offset = 0; offset < segment.p_filesz; offset += sizeof(Elf64_Dyn)) {
        const auto entry = At<Elf64_Dyn>(segment.p_offset + offset);
        if (entry.d_tag == tag) found = entry.d_un.d_val;
      }
    });
    return found;
  }
  // Returns true if the file contains `text` between two NUL bytes, as a string table stores the name of a symbol.
  bool HasString(const std::string& text) const {
    return bytes_.find(std::string(1, '\0') + text + std::string(1, '\0')) != std::string::npos;
  }

 private:
  template <typename T>
  T At(size_t offset) const {
    T value{};
    if (offset + sizeof(T) <= bytes_.size()) std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }

  std::string bytes_;
  Elf64_Ehdr header_{};
};

TEST(HardeningTest, TheProgramIsPositionIndependent) {
  const ElfFile program(VLLMCLI_BINARY);
  EXPECT_EQ(program.header().e_type, ET_DYN);
  EXPECT_NE(program.Dynamic(DT_FLAGS_1) & DF_1_PIE, 0u);
}

TEST(HardeningTest, NoSegmentIsBothWritableAndExecutable) {
  bool has_stack_flags = false;
  ElfFile(VLLMCLI_BINARY).ForEachSegment([&](const Elf64_Phdr& segment) {
    if (segment.p_type == PT_GNU_STACK) has_stack_flags = true;
    if (segment.p_type != PT_LOAD && segment.p_type != PT_GNU_STACK) return;
    EXPECT_FALSE((segment.p_flags & PF_W) != 0 && (segment.p_flags & PF_X) != 0);
  });
  EXPECT_TRUE(has_stack_flags);
  EXPECT_EQ(ElfFile(VLLMCLI_BINARY).Dynamic(DT_TEXTREL), 0u);
}

// The tests below need a Release build without sanitizers, because only such builds define _FORTIFY_SOURCE. Sanitizer
// builds use none of the options below, and debug builds do not call the fortified functions.
#ifdef _FORTIFY_SOURCE
TEST(HardeningTest, RelocationsAreReadOnlyAfterStartup) {
  bool has_relro = false;
  const ElfFile program(VLLMCLI_BINARY);
  program.ForEachSegment([&](const Elf64_Phdr& segment) { has_relro |= segment.p_type == PT_GNU_RELRO; });
  EXPECT_TRUE(has_relro);
  EXPECT_NE(program.Dynamic(DT_FLAGS_1) & DF_1_NOW, 0u);
}

TEST(HardeningTest, StackProtectorAndFortifiedFunctionsAreUsed) {
  const ElfFile program(VLLMCLI_BINARY);
  EXPECT_TRUE(program.HasString("__stack_chk_fail"));
  EXPECT_TRUE(program.HasString("__memcpy_chk") || program.HasString("__snprintf_chk") ||
              program.HasString("__read_chk"));
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
  EXPECT_EQ(_FORTIFY_SOURCE, 3);
#endif
}

#if defined(__x86_64__)
TEST(HardeningTest, IndirectBranchesHaveLandingPads) {
  // g++ and clang define __CET__ with -fcf-protection; tests are compiled with the flags of the program. Bit 0 is for
  // branches, bit 1 for returns.
#ifdef __CET__
  EXPECT_EQ(__CET__, 3);
#else
  FAIL() << "compiled without -fcf-protection";
#endif
}
#endif
#endif

}  // namespace
}  // namespace vllm::app
