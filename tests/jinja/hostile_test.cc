#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/jinja/real_templates.h"
#include "tokenizer/jinja/chat_template.h"

namespace vllm::tokenizer {
namespace {

constexpr const char* kContext = R"({"messages": [{"role": "user", "content": "hi"}], "big": "0123456789"})";

// Returns the rendered text, or the error message. Any other exception fails the test.
std::string Outcome(const std::string& source, const std::string& context = kContext) {
  try {
    return ChatTemplate::Parse(source)->RenderJson(context, {});
  } catch (const ChatTemplateError& error) {
    return std::string("error: ") + error.what();
  }
}

std::string Repeated(const std::string& text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

bool IsError(const std::string& outcome) { return outcome.starts_with("error: "); }

class EveryHostileTemplateTest : public testing::TestWithParam<std::string> {};

TEST_P(EveryHostileTemplateTest, IsRejectedWithAnError) {
  EXPECT_TRUE(IsError(Outcome(GetParam()))) << GetParam().substr(0, 200);
}

// Two nested loops with about 10^10 iterations in total. The parameter is the template text before the loops, a bar,
// and the body of the inner loop. The limit on operations must stop the loops before any other limit does. The cost of
// an operation grows with the number of bytes that it touches, so an expensive body only makes the loops stop after
// fewer iterations.
class EveryBombTest : public testing::TestWithParam<std::string> {};

TEST_P(EveryBombTest, IsStoppedByTheOperationBudget) {
  const std::string loop = "{% for a in range(99999) %}{% for b in range(99999) %}";
  const size_t bar = GetParam().find('|');
  const std::string source = GetParam().substr(0, bar) + loop + GetParam().substr(bar + 1) + "{% endfor %}{% endfor %}";
  const std::string outcome = Outcome(source);
  EXPECT_NE(outcome.find("too many operations (limit 4000000)"), std::string::npos) << outcome.substr(0, 200);
}

INSTANTIATE_TEST_SUITE_P(
    Bombs, EveryBombTest,
    testing::Values(
        "|", "|{% set y = b + 1 %}", "{% set x = 'x' * 1000000 %}|{% set y = x ~ 'x' %}",
        "{% set x = 'x' * 1000000 %}|{% set y = x + x %}", "|{% set y = 'x' * 1000000 %}", "|{% set y = [0] * 10000 %}",
        "{% set x = ' ' * 1000000 %}|{% set y = x | trim %}", "{% set x = ' ' * 1000000 %}|{% set y = x.strip() %}",
        "{% set x = 'ab' * 100000 %}|{% set y = x | replace('a', 'c') %}",
        "{% set x = 'ab' * 100000 %}|{% set y = x.replace('a', 'c') %}",
        "{% set x = ['a' * 10000] * 100 %}|{% set y = x | join(',') %}",
        "{% set x = ['a' * 10000] * 100 %}|{% set y = ','.join(x) %}",
        "{% set x = 'ab ' * 10000 %}|{% set y = x.split() %}", "{% set x = 'ab ' * 10000 %}|{% set y = x | title %}",
        "{% set x = 'é' * 100000 %}|{% set y = x.upper() %}", "{% set x = 'é' * 100000 %}|{% set y = x[-1] %}",
        "{% set x = 'é' * 100000 %}|{% set y = x[1:] %}", "{% set x = 'é' * 100000 %}|{% set y = x | tojson %}",
        "{% set x = 'é' * 100000 %}|{% set y = x.isidentifier() %}", "|{% set y = 'x'.ljust(100000) %}",
        "|{% set y = 'x'.zfill(100000) %}", "|{% set y = 'x' | center(100000) %}", "|{% set y = '%.400f' % 1.5e300 %}",
        "|{% set y = '{:.400f}'.format(1.5e300) %}",
        "{% set x = 'a' * 1000000 %}|{% set y = x | truncate(500000, true) %}",
        "{% set x = [3, 1, 2] * 300 %}|{% set y = x | batch(3) | list %}",
        "{% set x = [3, 1, 2] * 300 %}|{% set y = x | sort %}",
        "{% set x = [3, 1, 2] * 300 %}|{% set y = x | unique | list %}",
        "{% set x = 'a' * 100000 %}{% set z = 'a' * 100000 %}|{% set y = x == z %}"));

TEST(HostileTemplateTest, TheSumOfOutputAndValuesIsLimited) {
  // The output and the values are each below the limit; only their sum exceeds it.
  const std::string outcome = Outcome(
      "{% set z = ('z' * 1000) * 1000 %}{% set x = z * 12 %}{% set y = z * 12 %}"
      "{% for a in range(12) %}{{ z }}{% endfor %}");
  EXPECT_NE(outcome.find("rendering needs too much memory (limit 33554432 bytes)"), std::string::npos)
      << outcome.substr(0, 200);
}

std::vector<std::string> HostileTemplates() {
  const std::string loop = "{% for a in range(99999) %}";
  return {
      "{{ range(10 ** 9) }}",
      "{{ range(10 ** 18, -(10 ** 18), -1) }}",
      loop + loop + "x{% endfor %}{% endfor %}",
      loop + loop + "{% endfor %}{% endfor %}",
      loop + loop + loop + "{% if false %}x{% endif %}{% endfor %}{% endfor %}{% endfor %}",
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}",
      "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
      "{% macro m() %}{% call m() %}{% endcall %}{% endmacro %}{{ m() }}",
      "{% for x in [[1]] recursive %}{{ loop([x]) }}{% endfor %}",
      "{% set ns = namespace() %}{% set y = 1 %}{% for x in [1] recursive %}{{ y }}{% set ns.l = loop %}{% endfor %}"
      "{{ ns.l([2]) }}",
      "{{ 'x' * 10 ** 9 }}",
      "{{ ('x' * 10 ** 7) * 2 }}",
      "{{ [0] * 10 ** 9 }}",
      "{{ ([0] * 10 ** 5) * 10 ** 5 }}",
      "{{ 'a' | center(10 ** 9) }}",
      "{{ 'a\nb' | indent(10 ** 9) }}",
      "{{ 'a'.ljust(10 ** 12) }}",
      "{{ 'a'.zfill(10 ** 12) }}",
      "{{ '%1000000000d' % 1 }}",
      "{{ '%.1000000000f' % 1.0 }}",
      "{{ '%*d' % (10 ** 12, 1) }}",
      "{{ '{:1000000000}'.format(1) }}",
      "{{ '{:.1000000000f}'.format(1.0) }}",
      "{{ [1] | tojson(indent=10 ** 9) }}",
      "{{ [[[1]]] | tojson(indent='x' * 10 ** 7) }}",
      "{{ 10 ** 10 ** 10 }}",
      "{{ 9223372036854775807 + 1 }}",
      "{{ -9223372036854775807 - 2 }}",
      "{{ 99999999999999999999 }}",
      "{{ ('a' * 10 ** 6).replace('', 'b' * 100) }}",
      "{{ ('a' * 10 ** 4).replace('a', 'b' * 10 ** 4) }}",
      "{{ ('x' * 10 ** 4).join(range(10 ** 4) | map('string')) }}",
      "{{ range(10 ** 5) | join('x' * 1000) }}",
      "{{ range(3) | batch(10 ** 9, 0) | list }}",
      "{{ range(3) | slice(10 ** 9) | list }}",
      "{% set ns = namespace(x=[]) %}" + loop + "{% set ns.x = [ns.x] %}{% endfor %}",
      "{% set ns = namespace(x={}) %}" + loop + "{% set ns.x = {'a': ns.x} %}{% endfor %}",
      "{% set ns = namespace(s='x') %}{% for a in range(64) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
      "{% set ns = namespace(s=[1]) %}{% for a in range(64) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
      "{% set ns = namespace(s=[1]) %}{% for a in range(60) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s }}",
      "{% set ns = namespace(s=[1]) %}{% for a in range(60) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s | "
      "tojson }}",
      "{% set ns = namespace(s=[1], t=[1]) %}{% for a in range(60) %}{% set ns.s = [ns.s, ns.s] %}"
      "{% set ns.t = [ns.t, ns.t] %}{% endfor %}{{ ns.s == ns.t }}",
      "{% set x = 'x' * 10 ** 6 %}" + loop + "{{ x }}{% endfor %}",
      "{% set x = 'x' * 10 ** 7 %}{% set y = 'x' * 10 ** 7 %}" + loop + loop + "{{ x == y }}{% endfor %}{% endfor %}",
      "{% set x = 'a' * 10 ** 6 %}{% set y = 'a' * 10 ** 5 ~ 'b' %}" + loop +
          "{{ y in x }}{{ x.rfind(y) }}{% endfor %}",
      "{% set x = 'é' * 10 ** 6 %}" + loop + "{% if x[9 ** 6 % 99] %}{% endif %}{{ x | length }}{% endfor %}",
      "{% set x = 'ab ' * 10 ** 6 %}" + loop + "{% if x.split() %}{% endif %}{% endfor %}",
      "{% set x = range(10 ** 5) | list %}" + loop + "{% if x | sort(reverse=true) %}{% endif %}{% endfor %}",
      "{% set x = range(10 ** 5) | list %}" + loop + "{% if a in x %}{% endif %}{% endfor %}",
      "{% set x %}" + loop + "{{ big * 1000 }}{% endfor %}{% endset %}",
      "{% macro m(n) %}{{ big * 100000 }}{{ m(n - 1) if n }}{% endmacro %}{{ m(100) }}",
      "{{ strftime_now('%Y' * 10 ** 6) }}",
      "{{ dict(range(10 ** 5) | map('list')) }}",
      Repeated("{{ ", 1000),
      Repeated("{% if true %}", 1000) + Repeated("{% endif %}", 1000),
      Repeated("{% for x in [1] %}", 200) + "x" + Repeated("{% endfor %}", 200),
      "{{ " + Repeated("(", 5000) + "1" + Repeated(")", 5000) + " }}",
      "{{ " + Repeated("[", 5000) + Repeated("]", 5000) + " }}",
      "{{ " + Repeated("{1:", 5000) + "1" + Repeated("}", 5000) + " }}",
      "{{ " + Repeated("-", 5000) + "1 }}",
      "{{ " + Repeated("not ", 5000) + "1 }}",
      "{{ 1" + Repeated(" + 1", 5000) + " }}",
      "{{ 1" + Repeated(" ~ (1", 5000) + Repeated(")", 5000) + " }}",
      "{{ x" + Repeated(".a", 5000) + " }}",
      "{{ x" + Repeated("[0]", 5000) + " }}",
      "{{ x" + Repeated("()", 5000) + " }}",
      "{{ 1" + Repeated(" | abs", 5000) + " }}",
      "{{ 1" + Repeated(" if 1 else 1", 5000) + " }}",
      "{{ 1" + Repeated(" and 1", 5000) + " }}",
      "{% set " + Repeated("(", 5000) + "a" + Repeated(")", 5000) + " = 1 %}",
      "{{ " + Repeated("x is eq (", 5000) + "1" + Repeated(")", 5000) + " }}",
      std::string(2 << 20, 'x'),
      "{{ [" + Repeated("1,", 200000) + "] }}",
      "{{ '\xff' }}",
      std::string("{{ '\0' }", 9),
  };
}

INSTANTIATE_TEST_SUITE_P(Each, EveryHostileTemplateTest, testing::ValuesIn(HostileTemplates()));

// Recursive destructors would overflow the stack.
TEST(HostileTemplateTest, ALongChainOfNamespacesIsDestroyedWithoutRecursion) {
  EXPECT_EQ(Outcome("{% set ns = namespace(x=none) %}{% for a in range(50000) %}{% set ns.x = namespace(n=ns.x) %}"
                    "{% endfor %}ok"),
            "ok");
}

// LeakSanitizer reports a cycle that is not freed.
TEST(HostileTemplateTest, ACycleOfNamespacesAndMacrosIsFreed) {
  EXPECT_EQ(Outcome("{% set ns = namespace() %}{% set ns.me = ns %}{% macro m() %}{{ ns }}{% endmacro %}"
                    "{% set ns.m = m %}{% for a in range(1000) %}{% macro k() %}{{ a }}{% endmacro %}{% set ns.k = k %}"
                    "{% endfor %}{{ ns.k() }}ok"),
            "ok");
}

// Destroying a chain of so many loops would overflow the stack.
TEST(HostileTemplateTest, LoopsInANamespaceDoNotFormAChain) {
  EXPECT_EQ(Outcome("{% set ns = namespace(l=none) %}{% for a in range(50000) %}{% for b in [ns.l] %}"
                    "{% if loop.changed(ns.l) %}{% endif %}{% set ns.l = loop %}{% endfor %}{% endfor %}ok"),
            "ok");
}

TEST(HostileTemplateTest, MessageOfRaiseExceptionIsEscapedAndTruncated) {
  const std::string outcome = Outcome("{{ raise_exception('\x1b[2J\n' ~ 'x' * 100000) }}");
  EXPECT_TRUE(outcome.starts_with("error: chat template line 1: \\x1b[2J\\x0axxx")) << outcome;
  EXPECT_LT(outcome.size(), 400u);
}

TEST(HostileTemplateTest, AContextThatCannotBeReadAsAnObjectIsRejected) {
  for (const char* context :
       {"", "[]", "1", "{", "{\"a\": 1e}", "{\"a\": 99999999999999999999}", "{\"a\": \"\xff\"}"}) {
    EXPECT_TRUE(IsError(Outcome("x", context))) << context;
  }
  EXPECT_TRUE(IsError(Outcome("x", "{\"a\": " + Repeated("[", 100000) + Repeated("]", 100000) + "}")));
}

TEST(HostileTemplateTest, PrefixesOfTemplatesRenderOrAreRejected) {
  std::vector<std::string> sources = {
      "{%- for m in messages -%}{# c #}{{ '<|' ~ m.role ~ '|>' + m['content'] | trim }}{% raw %}{{}}{% endraw %}"
      "{%- endfor %}{% macro f(a, b=1.5) %}{{ [a, {'k': b}][0:1] is not none }}{% endmacro %}{{ f(*[1], **{}) }}"};
  if (HasRealTemplates()) {
    std::string last;
    for (const RealRendering& rendering : RealRenderings()) {
      if (rendering.template_name != last && rendering.source.size() < 5000) sources.push_back(rendering.source);
      last = rendering.template_name;
    }
  }
  // Only the first template must render. Real templates may reject a context without their special tokens.
  EXPECT_FALSE(IsError(Outcome(sources.front())));
  for (const std::string& source : sources) {
    // Parse every prefix. Thousands are valid, so render only those whose size is a multiple of 7.
    for (size_t size = 0; size <= source.size(); ++size) {
      try {
        const auto chat_template = ChatTemplate::Parse(source.substr(0, size));
        if (size % 7 == 0) chat_template->RenderJson(kContext, {});
      } catch (const ChatTemplateError&) {
      }
    }
  }
}

TEST(HostileTemplateTest, RandomMutationsRenderOrAreRejected) {
  const auto golden =
      nlohmann::ordered_json::parse(ReadText(std::string(VLLMCLI_TEST_DATA) + "/chat_template/golden.json"));
  const std::string context = golden.at("context").dump();
  std::vector<std::string> sources;
  for (const auto& golden_case : golden.at("cases")) sources.push_back(golden_case.at("template").get<std::string>());
  std::mt19937 random(7);
  const auto below = [&](size_t limit) { return limit == 0 ? size_t{0} : random() % limit; };
  for (int i = 0; i < 4000; ++i) {
    std::string source = sources[below(sources.size())];
    for (size_t edits = 1 + below(4); edits > 0; --edits) {
      const std::string& other = sources[below(sources.size())];
      const size_t offset = below(source.size() + 1);
      switch (below(4)) {
        case 0:
          source.erase(offset, 1 + below(6));
          break;
        case 1:
          source.insert(offset, other.substr(below(other.size()), 1 + below(12)));
          break;
        case 2:
          source.insert(offset, 1, static_cast<char>(random()));
          break;
        default:
          source += source.substr(offset, below(30));
      }
    }
    Outcome(source, context);
  }
}

}  // namespace
}  // namespace vllm::tokenizer
