#include "app/chats/chat_export.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/config/errors.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

// A question with two answers, of which the second is the current one and begins with a thought.
StoredChat Chat() {
  StoredChat chat;
  chat.id = 7;
  chat.title = "Fish & <chips>";
  const auto add = [&](int64_t parent, ChatRole role, const std::string& text) -> StoredMessage& {
    StoredMessage message;
    message.id = static_cast<int64_t>(chat.messages.size()) + 1;
    message.parent = parent;
    message.role = role;
    message.text = text;
    chat.current_message = message.id;
    chat.messages.push_back(message);
    return chat.messages.back();
  };
  add(0, ChatRole::kUser, "Is 1 < 2?");
  add(1, ChatRole::kAssistant, "No.");
  add(1, ChatRole::kAssistant, "Yes.").thinking = "Both are <b>numbers</b>.\n\nSo compare.";
  return chat;
}

TEST(ChatExportTest, MarkdownHasTheCurrentBranchWithItsThoughts) {
  EXPECT_EQ(MarkdownOf(Chat()),
            "# Fish & <chips>\n\n## User\n\nIs 1 < 2?\n\n## Assistant\n\n"
            "<details>\n<summary>Thought</summary>\n\nBoth are <b>numbers</b>.\n\nSo compare.\n\n</details>\n\n"
            "Yes.\n");
}

TEST(ChatExportTest, HtmlEscapesTextsAndThoughts) {
  const std::string html = HtmlOf(Chat());
  const size_t heading = html.find("<h1>Fish &amp; &lt;chips&gt;</h1>\n");
  ASSERT_NE(heading, std::string::npos) << html;
  EXPECT_EQ(html.substr(html.find('\n', heading) + 1),
            "<h2>User</h2>\n<div class=\"text\">Is 1 &lt; 2?</div>\n<h2>Assistant</h2>\n"
            "<details>\n<summary>Thought</summary>\n"
            "<div class=\"text\">Both are &lt;b&gt;numbers&lt;/b&gt;.\n\nSo compare.</div>\n</details>\n"
            "<div class=\"text\">Yes.</div>\n</body>\n</html>\n");
}

TEST(ChatExportTest, AnswersWithoutAThoughtHaveNoDetails) {
  StoredChat chat = Chat();
  chat.current_message = 2;
  EXPECT_EQ(MarkdownOf(chat), "# Fish & <chips>\n\n## User\n\nIs 1 < 2?\n\n## Assistant\n\nNo.\n");
  EXPECT_EQ(HtmlOf(chat).find("<details>"), std::string::npos);
}

TEST(ChatExportTest, FormatFollowsTheNameOfTheFile) {
  EXPECT_EQ(ExportText(Chat(), "a.md"), MarkdownOf(Chat()));
  EXPECT_EQ(ExportText(Chat(), "a.html"), HtmlOf(Chat()));
  EXPECT_EQ(MessageOf<ConfigError>([] { ExportText(Chat(), "a.pdf"); }),
            "cannot export to a.pdf: the name must end with .md, .html or .json");
}

}  // namespace
}  // namespace vllm::app
