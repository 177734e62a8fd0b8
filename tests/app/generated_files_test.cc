// Checks that the committed manual page and completion scripts are what the program generates from its tables of
// commands and flags, and that they and the help contain every flag. If VLLMCLI_WRITE_GENERATED is set, writes the
// files instead of comparing them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "app/cli/docs/completions.h"
#include "app/cli/docs/help.h"
#include "app/cli/docs/man_page.h"
#include "app/cli/flag.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

void ExpectCurrent(const std::string& name, const std::string& text) {
  const std::string path = std::string(VLLMCLI_SOURCE_DIR) + "/" + name;
  if (std::getenv("VLLMCLI_WRITE_GENERATED") != nullptr) {
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  std::ifstream file(path, std::ios::binary);
  const std::string committed((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_TRUE(committed == text) << name << " is out of date; run app_test with VLLMCLI_WRITE_GENERATED=1";
}

TEST(GeneratedFilesTest, TheManualPageIsCurrent) { ExpectCurrent("man/vllmcli.1", ManPage()); }

TEST(GeneratedFilesTest, TheCompletionsAreCurrent) {
  ExpectCurrent("completions/vllmcli.bash", CompletionScript("bash"));
  ExpectCurrent("completions/_vllmcli", CompletionScript("zsh"));
  ExpectCurrent("completions/vllmcli.fish", CompletionScript("fish"));
  EXPECT_THROW(CompletionScript("csh"), ConfigError);
}

// Returns the flag of this name that the command has, or null.
const Flag* FlagOf(const std::string& name, Command command) {
  for (const Flag& flag : FlagTable()) {
    if (flag.name == name && flag.belongs_to(command)) return &flag;
  }
  return nullptr;
}

TEST(GeneratedFilesTest, EveryFlagIsInHelpManualPageAndCompletions) {
  const std::string bash = CompletionScript("bash");
  const std::string zsh = CompletionScript("zsh");
  const std::string fish = CompletionScript("fish");
  const std::string man = ManPage();
  for (const Flag& flag : FlagTable()) {
    const std::string name(flag.name);
    EXPECT_NE(bash.find("--" + name), std::string::npos) << name;
    EXPECT_NE(zsh.find("--" + name), std::string::npos) << name;
    EXPECT_NE(fish.find(" -l " + name), std::string::npos) << name;
    std::string escaped;
    for (const char c : name) escaped += c == '-' ? std::string("\\-") : std::string(1, c);
    EXPECT_NE(man.find(escaped), std::string::npos) << name;
    for (const CommandInfo& info : CommandTable()) {
      // Another flag of the command may have this name.
      if (const Flag* own = FlagOf(name, info.command); own != nullptr && own != &flag) continue;
      EXPECT_EQ(HelpText(info.command, HelpDetail::kAll).find(FlagUsage(flag) + (flag.takes_value() ? "" : " ")) !=
                        std::string::npos ||
                    HelpText(info.command, HelpDetail::kAll).find(FlagUsage(flag) + "\n") != std::string::npos,
                FlagOf(name, info.command) != nullptr)
          << info.name << " " << name;
    }
  }
}

}  // namespace
}  // namespace vllm::app
