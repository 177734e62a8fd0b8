// LineEditorTest: a fixture that types into LineEditor on a pseudo-terminal and compares what the terminal shows.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "app/editor/draft_layout.h"
#include "app/terminal/text_width.h"
#include "tests/program/program.h"

namespace vllm::app {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

inline const std::string kUp = "\x1b[A";
inline const std::string kDown = "\x1b[B";
inline const std::string kRight = "\x1b[C";
inline const std::string kLeft = "\x1b[D";
inline const std::string kFamily =
    "\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7\xE2\x80\x8D\xF0\x9F\x91\xA6";
inline const std::string kHebrew = "\xD7\xA9\xD7\x9C\xD7\x95\xD7\x9D";

inline std::string Pasted(const std::string& text) { return "\x1b[200~" + text + "\x1b[201~"; }

class LineEditorTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(testing::TempDir()) / ("vllmcli_editor_" + std::to_string(getpid()));
    fs::create_directories(directory_);
    results_ = directory_ / "results";
  }
  void TearDown() override {
    editor_.reset();
    fs::remove_all(directory_);
  }

  // Starts the program and waits for the prompt.
  PtyProgram& Start(int num_columns = 80, int num_rows = 24, const Lines& more_arguments = {}) {
    PtyOptions options;
    options.program = LINE_EDITOR_PROGRAM;
    options.environment = environment_;
    options.num_rows = num_rows;
    options.num_columns = num_columns;
    Lines arguments = {results_.string()};
    arguments.insert(arguments.end(), more_arguments.begin(), more_arguments.end());
    editor_ = std::make_unique<PtyProgram>(arguments, options);
    EXPECT_TRUE(editor_->WaitFor(">>> ")) << editor_->output();
    return *editor_;
  }
  // Makes this shell script the editor. Its path contains a blank.
  void SetEditor(const std::string& script) {
    const fs::path path = directory_ / "my editor";
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    fs::permissions(path, fs::perms::owner_all);
    environment_["EDITOR"] = "'" + path.string() + "'";
  }
  // Returns the messages that were sent, after waiting for `count` of them.
  nlohmann::json Results(size_t count) {
    nlohmann::json results = nlohmann::json::array();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < end) {
      // Reads what the program writes, so that it does not wait.
      editor_->WaitForScreen([](const TerminalEmulator&) { return false; }, std::chrono::milliseconds(1));
      results = nlohmann::json::array();
      std::ifstream file(results_);
      for (std::string line; std::getline(file, line) && !file.eof();) results.push_back(nlohmann::json::parse(line));
      if (results.size() >= count) break;
    }
    return results;
  }
  void ExpectScreen(const std::string& screen) {
    EXPECT_TRUE(editor_->WaitForScreen(screen, std::chrono::seconds(10))) << editor_->terminal().Screen();
  }
  // Waits until the terminal shows the layout of a draft around its cursor.
  void ExpectDraft(const std::string& text, size_t cursor) {
    const auto shows = [&](const TerminalEmulator& terminal) {
      const DraftLayout layout =
          LayOutDraft({text, cursor, ">>> ", "... "}, terminal.num_columns(), terminal.num_rows() - 1);
      const int top = terminal.cursor().row - layout.cursor_row;
      for (size_t i = 0; i < layout.rows.size(); ++i) {
        // The rows that are visible depend on where the cursor was, if not all are.
        if (layout.num_rows > layout.rows.size() && static_cast<int>(i) != layout.cursor_row) continue;
        if (top + static_cast<int>(i) < 0 || top + static_cast<int>(i) >= terminal.num_rows()) return false;
        std::string row(layout.rows[i].text.view());
        row.erase(row.find_last_not_of(' ') + 1);
        if (terminal.Row(top + static_cast<int>(i)) != row) return false;
      }
      return !HasSimpleWidth(layout.before_cursor.view()) || terminal.cursor().column == layout.cursor_column;
    };
    EXPECT_TRUE(editor_->WaitForScreen(shows, std::chrono::seconds(10)))
        << text << "\n"
        << editor_->terminal().Screen() << editor_->terminal().cursor().row << ", "
        << editor_->terminal().cursor().column;
  }
  // Terminals agree about the width of one code point with combining marks.
  static bool HasSimpleWidth(std::string_view text) {
    for (size_t i = 0; i < text.size();) {
      const TextCluster cluster = ClusterAt(text, i);
      if (cluster.num_bytes > 4) return false;
      i += cluster.num_bytes;
    }
    return true;
  }

  fs::path directory_;
  fs::path results_;
  std::map<std::string, std::string> environment_;
  std::unique_ptr<PtyProgram> editor_;
};

}  // namespace vllm::app
