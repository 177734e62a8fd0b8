#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <initializer_list>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>

#include "app/bench/bench_command.h"
#include "app/chats/sqlite.h"
#include "app/cli/command_line.h"
#include "app/cli/config_file.h"
#include "app/cli/docs/help.h"
#include "app/commands/commands.h"
#include "app/commands/models/models_command.h"
#include "app/perplexity/perplexity_command.h"
#include "app/pooling/pooling_commands.h"
#include "app/terminal/color_policy.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/progress_line.h"
#include "app/terminal/signals.h"
#include "app/terminal/terminal_modes.h"
#include "engine/config/errors.h"
#include "kernels/threading/available_memory.h"
#include "tokenizer/formats/tokenizer_error.h"
#include "tokenizer/jinja/chat_template.h"
#include "tokenizer/tokenizer.h"

namespace vllm::app {
namespace {

enum ExitStatus : int { kOk = 0, kRequestFailed = 1, kUsage = 2, kUnusableModel = 3, kNoResource = 4 };

int Dispatch(const Settings& settings) {
  switch (settings.command) {
    case Command::kChat:
      return ChatCommand(settings);
    case Command::kChats:
      return ChatsCommand(settings);
    case Command::kPresets:
      return PresetsCommand(settings);
    case Command::kCache:
      return CacheCommand(settings);
    case Command::kRun:
    case Command::kComplete:
      return GenerateCommand(settings);
    case Command::kBatch:
      return BatchCommand(settings);
    case Command::kBench:
      return BenchCommand(settings);
    case Command::kEmbed:
      return EmbedCommand(settings);
    case Command::kScore:
      return ScoreCommand(settings);
    case Command::kRerank:
      return RerankCommand(settings);
    case Command::kPerplexity:
      return PerplexityCommand(settings);
    case Command::kTokenize:
      return TokenizeCommand(settings);
    case Command::kRender:
      return RenderCommand(settings);
    case Command::kTop:
      return TopCommand(settings);
    case Command::kModels:
      return ModelsCommand(settings);
    case Command::kPull:
      return PullCommand(settings);
    case Command::kShow:
      return ShowCommand(settings);
    case Command::kTrace:
      return TraceCommand(settings);
    case Command::kConfig:
      return ConfigCommand(settings);
    case Command::kCompletions:
      return CompletionsCommand(settings);
  }
  return kUsage;
}

int Run(std::vector<std::string> words) {
  const bool on_terminal = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
  CommandLine line = ParseCommandLine(std::move(words), on_terminal ? Command::kChat : Command::kRun);
  Settings& settings = line.settings;
  if (line.action == CommandLineAction::kVersion) {
    StandardOutput().Write(SafeText(VersionText()));
    return kOk;
  }
  if (line.action == CommandLineAction::kHelp || line.action == CommandLineAction::kHelpAll) {
    const HelpDetail detail = line.action == CommandLineAction::kHelp ? HelpDetail::kFirst : HelpDetail::kAll;
    constexpr int kMaxWidth = 100;
    const int width = isatty(STDOUT_FILENO) == 1 ? std::min(kMaxWidth, TerminalColumns(STDOUT_FILENO)) : kMaxWidth;
    const std::optional<Command> command = line.has_command ? std::optional(settings.command) : std::nullopt;
    StandardOutput().Write(SafeText(HelpText(command, detail, static_cast<size_t>(width))));
    return kOk;
  }
  // A broken configuration file must not break shell completion.
  if (settings.command != Command::kCompletions) {
    ReadConfigFile(settings.Text("config").value_or(""), settings);
    for (const auto& [flag, name] : {std::pair{"model", "VLLMCLI_MODEL"}, std::pair{"isa", "VLLMCLI_ISA"}}) {
      const char* value = std::getenv(name);
      if (value != nullptr && *value != '\0') {
        settings.Set(*FindFlag(flag), {value}, SettingSource::kEnvironment, name);
      }
    }
  }
  SetQuiet(settings.Switch("quiet"));
  const std::string color = settings.Text("color").value_or("auto");
  SetColorChoice(color == "always"  ? ColorChoice::kAlways
                 : color == "never" ? ColorChoice::kNever
                                    : ColorChoice::kAuto);
  return Dispatch(settings);
}

// Writes a line of plain text to standard error without allocating memory. Bytes outside ASCII become '?', because the
// text may contain anything.
void WriteLastLine(std::initializer_list<std::string_view> parts) {
  std::array<char, 512> line;
  size_t size = 0;
  for (const std::string_view part : parts) {
    for (const char c : part.substr(0, line.size() - 1 - size)) line[size++] = c >= ' ' && c <= '~' ? c : '?';
  }
  line[size++] = '\n';
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), size);
}

// The terminate handler. It also runs if an allocation fails in a destructor: the destructors of JSON values and of
// directory iterators allocate memory. std::current_exception is null if a destructor ends the program while an
// exception unwinds the stack, as that of a joinable std::thread does.
[[noreturn]] void OnTerminate() {
  RestoreTerminal();
  try {
    if (const std::exception_ptr current = std::current_exception()) std::rethrow_exception(current);
    WriteLastLine({"vllmcli: internal error: terminated without a handled exception",
                   std::uncaught_exceptions() > 0 ? ", while another exception was being thrown" : ""});
  } catch (const std::bad_alloc&) {
    WriteLastLine({"vllmcli: out of memory"});
    _exit(kNoResource);
  } catch (const std::exception& error) {
    WriteLastLine({"vllmcli: internal error: uncaught exception: ", error.what()});
  } catch (...) {
    WriteLastLine({"vllmcli: internal error: uncaught exception of unknown type"});
  }
  std::abort();
}

}  // namespace

int Main(int argc, char** argv) {
  std::set_terminate(OnTerminate);
  int status = kOk;
  // glibc reserves 64 MiB of address space for each malloc arena, and thread timing decides the number of arenas. Under
  // an address-space limit, timing would then decide whether a model loads and how large its KV cache is.
  if (kernels::AddressSpaceIsLimited()) mallopt(M_ARENA_MAX, 1);
  try {
    ReserveStandardDescriptors();
    SaveTerminal();
    InstallSignals();
    status = Run(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
  } catch (const OutputClosed&) {
    status = kOk;
  } catch (const Interrupted& interrupted) {
    status = 128 + interrupted.signal_number();
  } catch (const tokenizer::EncodingStopped&) {
    status = 128 + TakeSignal();
  } catch (const ConfigError& error) {
    PrintError(error.what(), error.hint());
    status = kUsage;
  } catch (const StoreError& error) {
    PrintError(error.what());
    status = kUnusableModel;
  } catch (const ModelError& error) {
    PrintError(error.what(), error.hint());
    status = kUnusableModel;
  } catch (const tokenizer::TokenizerError& error) {
    PrintError(error.what());
    status = kUnusableModel;
  } catch (const tokenizer::ChatTemplateError& error) {
    PrintError(error.what());
    status = kUnusableModel;
  } catch (const ResourceError& error) {
    PrintError(error.what());
    status = kNoResource;
  } catch (const std::bad_alloc&) {
    PrintError(std::string(kOutOfMemory) + "; the tightest limit is " + kernels::ReadAvailableMemory().bound);
    status = kNoResource;
  } catch (const std::system_error& error) {
    PrintError(error.what());
    status = kNoResource;
  } catch (const RequestError& error) {
    PrintError(error.what(), error.hint());
    status = kRequestFailed;
  } catch (const std::exception& error) {
    PrintError(error.what());
    status = kRequestFailed;
  }
  RestoreTerminal();
  return status;
}

}  // namespace vllm::app
