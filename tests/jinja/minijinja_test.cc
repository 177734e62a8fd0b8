#include <gtest/gtest.h>

#include <string>

#include "tests/jinja/real_templates.h"
#include "tokenizer/jinja/chat_template.h"

namespace vllm::tokenizer {
namespace {

struct Vector {
  std::string context, source, expected;
};

std::string WithoutLastNewlines(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

// The file inputs/NAME has the context, a line "---" and the template. The file snapshots/NAME.snap has a header
// between two lines "---", and then the output.
Vector Load(const std::string& name) {
  const std::string directory = RealData("jinja-vectors/minijinja/");
  const std::string input = ReadText(directory + "inputs/" + name);
  const std::string snapshot = ReadText(directory + "snapshots/" + name + ".snap");
  const size_t middle = input.find("\n---\n");
  const size_t output = snapshot.find("\n---\n");
  if (middle == std::string::npos || output == std::string::npos) return {};
  return {input.substr(0, middle), input.substr(middle + 5), WithoutLastNewlines(snapshot.substr(output + 5))};
}

class MiniJinjaTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    vector_ = Load(GetParam());
    if (vector_.context.empty()) GTEST_SKIP() << "reference data not found: " << RealData("jinja-vectors");
  }
  Vector vector_;
};

using SameOutputTest = MiniJinjaTest;
TEST_P(SameOutputTest, RendersAsMiniJinjaDoes) {
  EXPECT_EQ(WithoutLastNewlines(ChatTemplate::Parse(vector_.source)->RenderJson(vector_.context, {})),
            vector_.expected);
}

// Removes spaces and newlines, because trim_blocks and lstrip_blocks remove some that MiniJinja keeps by default.
std::string WithoutSpaces(std::string text) {
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
  return text;
}

using SameExceptSpacesTest = MiniJinjaTest;
TEST_P(SameExceptSpacesTest, RendersAsMiniJinjaDoes) {
  EXPECT_EQ(WithoutSpaces(ChatTemplate::Parse(vector_.source)->RenderJson(vector_.context, {})),
            WithoutSpaces(vector_.expected));
}

using BothRejectTest = MiniJinjaTest;
TEST_P(BothRejectTest, IsRejectedAsByMiniJinja) {
  EXPECT_THROW(ChatTemplate::Parse(vector_.source)->RenderJson(vector_.context, {}), ChatTemplateError);
}

// Test vectors on which MiniJinja and Jinja2 with trim_blocks and lstrip_blocks agree. In SameExceptSpacesTest, they
// agree except for whitespace.
INSTANTIATE_TEST_SUITE_P(Vectors, SameOutputTest,
                         testing::Values("adding.txt", "block.txt", "escape.txt", "filter_block.txt", "getattr.txt",
                                         "getitem.txt", "ifexpr.txt", "indexing.txt", "inexpr.txt", "kwarg_ifexpr.txt",
                                         "loop_controls.txt", "macro_recursive.txt", "map.txt", "math.txt",
                                         "slicing.txt", "undefined.txt"));
INSTANTIATE_TEST_SUITE_P(Vectors, SameExceptSpacesTest,
                         testing::Values("block_scope.txt", "cmp.txt", "if_cond.txt", "loop_else2.txt", "loop_var.txt",
                                         "macro_closure_behavior.txt", "macro_hoisting.txt", "set.txt"));
INSTANTIATE_TEST_SUITE_P(
    Vectors, BothRejectTest,
    testing::Values("err_bad_addition.txt", "err_bad_args_unpack.txt", "err_bad_call.txt",
                    "err_bad_dotted_assign_macro.txt", "err_bad_filter.txt", "err_bad_kwargs_unpack.txt",
                    "err_bad_recursion.txt", "err_bad_test.txt", "err_bad_unary.txt", "err_no_super_block.txt",
                    "err_repeat_iterator_with_object.txt", "err_repeat_iterator_with_string.txt",
                    "err_repeat_string_too_large.txt", "err_self_include.txt", "err_self_macro_call.txt",
                    "err_too_large_integer.txt", "err_too_many_macro_kwargs.txt", "err_toplevel_continue.txt",
                    "err_trailing_underscore_eol.txt", "err_undefined_attr.txt", "err_unterminated_string.txt",
                    "loop_bad_unpacking.txt", "loop_bad_unpacking_wrong_len.txt", "namespace_bad.txt"));

}  // namespace
}  // namespace vllm::tokenizer
