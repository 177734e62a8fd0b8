// TextInput: the texts of a command that gives vectors or scores, from standard input or from files: one per line, one
// JSON value per line, or one per file. Reads as data arrives. Owned by the command; main thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/batch/input/record_source.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {

struct TextItem {
  nlohmann::ordered_json id;     // of the JSON object, or the path of the file; null: none
  nlohmann::ordered_json value;  // the JSON value of the line, or the text
};

class TextInput {
 public:
  enum class Form : uint8_t { kLines, kJsonLines, kWholeFiles };

  // `paths` are files; "-" is standard input, which is also read if there are none. Throws ModelError if a file cannot
  // be opened.
  TextInput(std::vector<std::string> paths, Form form);

  enum class Status : uint8_t { kItem, kNeedInput, kEnd };
  // Gets the next text. Empty lines of JSON are skipped. Throws ModelError that names the file and the line.
  Status Next(TextItem& item);
  // Reads once, which blocks unless fd() is readable.
  void Fill();
  // Returns the descriptor to poll before Fill, or -1.
  int fd() const;

 private:
  bool OpenNext();
  std::string Where() const;

  std::vector<std::string> paths_;
  Form form_;
  size_t next_path_ = 0;
  tokenizer::UniqueFd file_;
  std::unique_ptr<RecordSource> source_;  // of the current file
};

}  // namespace vllm::app
