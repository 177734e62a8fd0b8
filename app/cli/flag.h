// The table of command-line flags. The parser, the configuration keys, --help, the man page and the completions are
// derived from it. Immutable; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "app/cli/command.h"

namespace vllm::app {

enum class ValueKind : uint8_t {
  kSwitch,     // --json
  kNegatable,  // --[no-]enable-prefix-caching
  kInteger,
  kUnsigned,
  kNumber,
  kSize,  // bytes: 512M, 2Gi
  kText,
  kOptionalText,  // --resume or --resume TEXT; without a value, the text is empty
  kPath,
  kChoice,  // one of `choices`
  kIds,     // token ids, "1,2,3"
  kBias,    // a token id and its logit bias, "ID=V"
};

enum class FlagGroup : uint8_t {
  kModel,
  kSampling,
  kPrompt,
  kOutput,
  kBatchRun,
  kBenchRun,
  kPerplexityRun,
  kPoolingRun,
  kEngine,
  kGeneral
};

struct Flag {
  std::string_view name;  // without the leading dashes; also the configuration key
  char short_name;        // 0: none
  ValueKind kind;
  std::string_view value_name;
  std::string_view choices;        // separated by '|'
  std::string_view default_value;  // shown in --help; empty: none; "true": the switch is on by default
  FlagGroup group;
  uint32_t commands;  // the commands that have this flag: Command values combined with |
  bool repeats;       // true: all values are kept if the flag is given more than once; false: the last one wins
  bool in_config;     // allowed in the configuration file
  std::string_view help;

  bool takes_value() const { return kind != ValueKind::kSwitch && kind != ValueKind::kNegatable; }
  bool belongs_to(Command command) const { return (commands & static_cast<uint32_t>(command)) != 0; }
};

std::span<const Flag> FlagTable();
// Returns the flag called `name` (without leading dashes), or null. An underscore in `name` matches a dash.
const Flag* FindFlag(std::string_view name);
std::string_view TitleOf(FlagGroup group);
inline constexpr FlagGroup kFlagGroups[] = {
    FlagGroup::kModel,    FlagGroup::kPrompt,        FlagGroup::kSampling,   FlagGroup::kOutput, FlagGroup::kBatchRun,
    FlagGroup::kBenchRun, FlagGroup::kPerplexityRun, FlagGroup::kPoolingRun, FlagGroup::kEngine, FlagGroup::kGeneral};

}  // namespace vllm::app
