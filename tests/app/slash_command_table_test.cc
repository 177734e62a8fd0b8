#include "app/cli/slash_command_table.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "app/chat/commands/slash_commands.h"

namespace vllm::app {
namespace {

TEST(SlashCommandTableTest, EveryCommandHasAFunction) {
  for (const SlashCommandInfo& command : SlashCommandTable()) EXPECT_TRUE(HasHandler(command.name)) << command.name;
}

TEST(SlashCommandTableTest, NamesAndAliasesAreUnique) {
  std::set<std::string> names;
  for (const std::string& name : SlashCommandNames()) EXPECT_TRUE(names.insert(name).second) << name;
}

TEST(SlashCommandTableTest, NamesAndAliasesBeginWithASlash) {
  for (const std::string& name : SlashCommandNames()) EXPECT_TRUE(name.starts_with('/')) << name;
}

}  // namespace
}  // namespace vllm::app
