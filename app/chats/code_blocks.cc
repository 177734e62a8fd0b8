#include "app/chats/code_blocks.h"

#include <md4c.h>

#include <new>
#include <utility>

namespace vllm::app {
namespace {

struct Finder {
  std::vector<CodeBlock> blocks;
  bool is_inside = false;
};

// Exceptions must not pass through md4c, which is C: returns -1 if `action` throws, which ends the parse.
template <typename Action>
int Guarded(const Action& action) {
  try {
    action();
    return 0;
  } catch (const std::bad_alloc&) {
    return -1;
  }
}

int EnterBlock(MD_BLOCKTYPE type, void* detail, void* user) {
  if (type != MD_BLOCK_CODE) return 0;
  return Guarded([&] {
    auto& finder = *static_cast<Finder*>(user);
    finder.is_inside = true;
    const MD_ATTRIBUTE& language = static_cast<const MD_BLOCK_CODE_DETAIL*>(detail)->lang;
    finder.blocks.emplace_back();
    if (language.text != nullptr) finder.blocks.back().language.assign(language.text, language.size);
  });
}

int LeaveBlock(MD_BLOCKTYPE type, void*, void* user) {
  if (type == MD_BLOCK_CODE) static_cast<Finder*>(user)->is_inside = false;
  return 0;
}

int Ignore(MD_SPANTYPE, void*, void*) { return 0; }

int TakeText(MD_TEXTTYPE, const MD_CHAR* text, MD_SIZE size, void* user) {
  auto& finder = *static_cast<Finder*>(user);
  if (!finder.is_inside) return 0;
  return Guarded([&] { finder.blocks.back().text.append(text, size); });
}

}  // namespace

std::vector<CodeBlock> FindCodeBlocks(std::string_view markdown) {
  Finder finder;
  MD_PARSER parser{};
  // Without indented code blocks: in the answers of models these are mostly paragraphs of lists.
  parser.flags = MD_FLAG_NOINDENTEDCODEBLOCKS | MD_FLAG_NOHTML;
  parser.enter_block = EnterBlock;
  parser.leave_block = LeaveBlock;
  parser.enter_span = Ignore;
  parser.leave_span = Ignore;
  parser.text = TakeText;
  // As CommonMark requires. md4c 0.4.8 reports NUL twice.
  std::string text;
  for (const char c : markdown) c == '\0' ? text.append("\uFFFD") : text.append(1, c);
  if (md_parse(text.data(), static_cast<MD_SIZE>(text.size()), &parser, &finder) != 0) finder.blocks.clear();
  return std::move(finder.blocks);
}

}  // namespace vllm::app
