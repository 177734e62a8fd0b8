// BackgroundProgram: the real program with pipes as its standard streams, which a test observes and signals while it
// runs. Owned by a test and used on one thread. The destructor kills the program.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "tests/program/program.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {

class BackgroundProgram {
 public:
  // Starts vllmcli with an empty standard input.
  BackgroundProgram(const std::vector<std::string>& arguments, const std::map<std::string, std::string>& environment);
  ~BackgroundProgram();
  BackgroundProgram(const BackgroundProgram&) = delete;
  BackgroundProgram& operator=(const BackgroundProgram&) = delete;

  void Signal(int signal_number) const;
  // Reads until standard error contains `text`. Returns false if the program ends first or writes nothing for a minute.
  bool WaitForError(const std::string& text);
  // Reads the output until the program ends. Kills it if it writes nothing for a minute. Call once.
  ProgramResult Wait();

 private:
  // Returns false at the end of both streams, or after a minute without output.
  bool ReadSome();

  pid_t pid_ = -1;
  tokenizer::UniqueFd out_;
  tokenizer::UniqueFd err_;
  ProgramResult result_;
};

}  // namespace vllm::app
