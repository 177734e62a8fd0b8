// Preset: a named system message, prompt and settings, read from one TOML file. A plain value and a pure function; any
// thread.
//
//   description = TEXT           one line for lists
//   system = TEXT                system message of a new conversation; may use variables
//   prompt = TEXT                the user message; {input} is the user's text, {NAME} a variable
//   model = TEXT                 as for -m
//   SAMPLING-FLAG = VALUE        the long name of a sampling flag that the configuration file may contain
//   [variables]
//   NAME = TEXT                  the default value of a variable
//
// {{ and }} are literal braces. The name of a variable consists of letters, digits, _ and -, begins with a letter or _,
// and has at most 64 characters. Unknown keys are errors. Example:
//     description = "translate text"
//     prompt = "Translate into {language}:\n\n{input}"
//     temperature = 0
//     [variables]
//     language = "English"
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/cli/flag.h"
#include "app/presets/prompt_template.h"

namespace vllm::app {

inline constexpr std::string_view kInputName = "input";  // the name of the user's text in a prompt

struct Preset {
  struct Setting {
    const Flag* flag;
    std::vector<std::string> values;
    std::string where;  // for messages: "summarize.toml:3:1: temperature"
  };

  std::string name;
  std::string path;  // of the user's file; empty: the preset ships with the program
  std::string text;  // the TOML
  std::string description;
  std::optional<PromptTemplate> system;
  std::optional<PromptTemplate> prompt;
  std::vector<std::pair<std::string, std::string>> defaults;  // of variables
  std::vector<Setting> settings;

  // Returns the names of the variables in the system message and the prompt, without "input".
  std::vector<std::string> Variables() const;
};

// Parses the text of a preset. `file` names it in messages. Throws ConfigError `<file>:<line>:<column>: <key>: <why>`.
Preset ParsePreset(const std::string& name, const std::string& text, const std::string& file);

}  // namespace vllm::app
