// Fuzzes the rendering of Markdown. The first bytes choose the size of the screen and of the pieces. The bytes for the
// terminal must contain only control sequences of the table, and pieces must give the same rows as the whole text.
#include <string>

#include "tests/fuzz/fuzz_target.h"
#include "tests/markdown/control_sequences.h"
#include "tests/markdown/rendered_screen.h"

namespace vllm {

void FuzzOne(std::string_view bytes) {
  if (bytes.size() < 4) return;
  app::ScreenSize size;
  size.num_rows = 4 + static_cast<unsigned char>(bytes[0]) % 30;
  size.num_columns = 12 + static_cast<unsigned char>(bytes[1]) % 100;
  const size_t piece = 1 + static_cast<unsigned char>(bytes[2]) % 20;
  const app::RenderOptions options = app::OptionsFor(size, (bytes[3] & 1) != 0, (bytes[3] & 2) != 0);
  bytes.remove_prefix(4);
  Require(app::UnknownSequences(app::StreamBytes(bytes, size, options, [&] { return piece; })).empty(),
          "only control sequences of the table");
  app::MarkdownRenderer renderer(options, size.num_rows - 2);
  std::string pieces;
  for (size_t i = 0; i < bytes.size(); i += piece) {
    renderer.Feed(bytes.substr(i, piece));
    pieces += app::TextOf(renderer.TakeFinished());
  }
  renderer.Finish();
  pieces += app::TextOf(renderer.TakeFinished());
  Require(pieces == app::TextOf(app::RenderWhole(bytes, size, options)), "pieces give the same rows as the whole text");
}

}  // namespace vllm
