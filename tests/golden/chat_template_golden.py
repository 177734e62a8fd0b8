# Packages: jinja2 (requirements.txt).
"""Writes tests/data/chat_template/golden.json: a context, and templates with the text that Jinja2 renders from each.

    python tests/golden/chat_template_golden.py [--output DIRECTORY]

Jinja2's environment is configured as in transformers. A case is {template, text}, or {template, refused: true} if
Jinja2 rejects the template.
"""

import argparse
import datetime
import json
import pathlib

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "chat_template"
NOW = datetime.datetime(2024, 7, 26, 15, 4, 5)


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_support"), [], [], body).set_lineno(line)

    @jinja2.pass_eval_context
    def _support(self, context, caller):
        return caller()


def make_environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    class Namespace(jinja2.utils.Namespace):
        def __init__(*args, **kwargs):
            self, args = args[0], args[1:]
            attrs = dict(*args, **kwargs)
            for name in attrs:
                Namespace._check(name)
            jinja2.utils.Namespace.__init__(self, attrs)

        def __setitem__(self, name, value):
            Namespace._check(name)
            jinja2.utils.Namespace.__setitem__(self, name, value)

        @staticmethod
        def _check(name):
            if isinstance(name, str) and name.startswith("_"):
                raise jinja2.exceptions.SecurityError("underscore")

    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda format: NOW.strftime(format)
    env.globals["namespace"] = Namespace
    return env


CONTEXT = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hällo  Wörld\n"},
        {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1.5}}}]},
        {"role": "tool", "content": "<ok & 'fine'>"},
    ],
    "tools": None,
    "add_generation_prompt": True,
    "word": "Straße",
    "text": "  The quick brown fox\tjumps over\nthe lazy dog  ",
    "kana": "日本語テキスト🙂",
    "empty": "",
    "num": 42,
    "neg": -7,
    "real": 3.75,
    "flag": True,
    "nothing": None,
    "list": [3, 1, 2],
    "mixed": ["b", "A", "c", "B"],
    "nested": [[1, [2, {"k": (3)}]], []],
    "people": [
        {"name": "Ann", "age": 30, "tags": ["x", "y"], "at": {"city": "Oslo"}},
        {"name": "bob", "age": 25, "tags": [], "at": {"city": "Bergen"}},
        {"name": "Cid", "age": 30, "at": {"city": "Oslo"}},
    ],
    "map": {"b": 2, "a": 1, "C": 3},
    "schema": {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "The \"city\", e.g. Zürich"}, "n": {"type": "integer"}},
        "required": ["city"],
    },
}

# Templates of one line each.
LINES = r"""
{{ 1 + 2 }} {{ 7 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 6 / 2 }}
{{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 7.5 % -2 }} {{ 0.1 + 0.2 }} {{ 1e16 }} {{ 1e-5 }} {{ 123456789012345678 }} {{ 1.0 }} {{ 1e22 }} {{ 5e-324 }}
{{ 1_000 + 0x1f + 0o17 + 0b101 }} {{ 1_0.5_0 }} {{ 2e3 }}
{{ -num }} {{ +num }} {{ -real }} {{ - -num }} {{ -2 ** 2 }} {{ 2 ** 3 ** 2 }} {{ 2 * 3 + 4 * 5 - 6 }}
{{ true + true }} {{ true * 3 }} {{ 1 == 1.0 }} {{ true == 1 }} {{ "1" == 1 }} {{ none == false }}
{{ 1 / 0 }}
{{ 1 // 0 }}
{{ 1 % 0 }}
{{ 0 ** -1 }}
{{ "a" + 1 }}
{{ [1] + (2,) }}
{{ "a" * 3 }} {{ 3 * "ab" }} {{ [1, 2] * 2 }} {{ (1,) * 2 }} {{ "x" * -1 }}|
{{ "a" ~ 1 ~ none ~ true ~ 1.5 ~ [1, "b"] }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 < 2 == true }} {{ "a" < "b" }} {{ [1, 2] < [1, 3] }} {{ (1, 2) < (1, 2, 3) }} {{ "é" > "z" }}
{{ 1 < "a" }}
{{ none < 1 }}
{{ undefinedthing < 1 }}
{{ 1 in list }} {{ 9 in list }} {{ 9 not in list }} {{ "a" in map }} {{ "ell" in "hello" }} {{ "" in "" }} {{ 2 in (1, 2) }} {{ 1.0 in [1] }}
{{ 1 in "abc" }}
{{ 1 in 5 }}
{{ "x" in undefinedthing }}
{{ not true }} {{ not "" }} {{ not not 1 }} {{ 1 and 2 }} {{ 0 and 2 }} {{ 0 or "x" }} {{ "" or none }} {{ not 1 in list }}
{{ 1 if flag else 2 }} {{ 1 if empty else 2 }} {{ 1 if empty }}| {{ (1 if empty) is undefined }} {{ 1 if false else 2 if false else 3 }}
{{ undefinedthing }}|{{ undefinedthing.a }}
{{ none.foo }}|{{ (5).foo }}|{{ map.zzz }}|{{ list[9] }}|{{ list["x"] }}|{{ num[0] }}|
{{ none.foo.bar }}
{{ map.zzz.yyy }}
{{ undefinedthing[0] }}
{{ undefinedthing() }}
{{ num() }}
{{ "abc"() }}
{{ undefinedthing + 1 }}
{{ undefinedthing ~ "x" }}|{{ undefinedthing | upper }}|{{ undefinedthing | length }}|{{ undefinedthing | list }}|{{ undefinedthing == undefinedother }}
{{ undefinedthing | int }}
{{ undefinedthing | tojson }}
{{ undefinedthing | indent }}
{% for x in undefinedthing %}x{% else %}none{% endfor %}
{% for x in nothing %}x{% endfor %}
{% for x in 5 %}x{% endfor %}
{{ [1, 2.0, "a'b", 'a"b', 'a\'"b', none, true, (1,), (), {}, {"k": [1]}] }}
{{ "tab\t nl\n bs\\ nul\x00 e\u00e9 emoji\U0001f600 bell\a zw\u200b" | list }}
{{ ["\u00a0", "\u00ad", "é", "\x7f", "\u2028", "\ue000"] }}
{{ {"a": 1, "b": {"c": none}, 1: 2, none: 3, true: 4} }}
{{ {"a": 1, "a": 2} }} {{ {1: "i", 1.0: "f", true: "b"} }}
{{ {[1]: 2} }}
{{ (1, 2)[0] }} {{ (1)[0] }}| {{ (1,)[0] }} {{ () }} {{ (1,) }} {{ 1, 2 }}
{{ 'a' 'b' "c" }} {{ "\x41\u0042\103" }} {{ '\q\é' }} {{ "\'" }} {{ '\"' }} {{ "\0" | length }}
{{ "a\
b" }}
{{ text[2:5] }}|{{ text[-5:] }}|{{ text[::-1] }}|{{ kana[1:3] }}|{{ kana[-1] }}|{{ kana[::2] }}|{{ kana | length }}|{{ kana[10] }}|{{ kana[5:1:-2] }}
{{ list[1:] }} {{ list[:-1] }} {{ list[::-1] }} {{ list[5:] }} {{ list[-100:100] }} {{ list[2:0:-1] }} {{ list[true] }} {{ (1,2,3)[1:] }}
{{ list[::0] }}
{{ list["a":] }}|
{{ list[1.0] }}|{{ map[1:2] }}|
{{ map["b"] }} {{ map.b }} {{ map.get("zz") }} {{ map.get("zz", 5) }} {{ map.items() }} {{ map.keys() }} {{ map.values() }} {{ map.items() | list }}
{{ {"items": 1}.items is callable }}
{{ {"items": 1}["items"] }} {{ {"keys": 5}["keys"] }} {{ {}["items"] is defined }} {{ {"x": 1}.items()|first }}
{{ list.append }}|{{ map.update }}|{{ map.pop }}|{{ "".__class__ }}|{{ [].__class__ }}
{{ list.append(4) }}
{{ map.update({}) }}
{{ "".__class__.__mro__ }}
{{ map.pop("a") }}
{{ list.index(2) }} {{ list.count(3) }} {{ (1, 1).count(1) }} {{ list.copy() }}
{{ list.index(99) }}
{{ word.upper() }} {{ word.lower() }} {{ word | upper }} {{ "ÀÉÎ Ωμέγα ДОМ" | lower }} {{ "àéî ωμέγας дом ÿ" | upper }} {{ "ΟΔΟΣ ΟΔΟΣ." | lower }} {{ "ı" | upper }}
{{ "hello wORLD it's o'neil-x" | title }} {{ "hello wORLD it's 3rd" | capitalize }} {{ "hello wORLD it's".title() }} {{ "aBc".swapcase() }} {{ "ab(cd [ef <gh {ij" | title }}
{{ text.strip() }}|{{ text.lstrip() }}|{{ text.rstrip() }}|{{ "xxaxx".strip("x") }}|{{ "abcba".strip("ab") }}|{{ "\u3000\xa0a\u2003".strip() }}|{{ text | trim }}|{{ "--a-" | trim("-") }}|{{ "éaé".strip("é") }}
{{ text.split() }} {{ text.split(" ") }} {{ text.split(none, 2) }} {{ "a,b,,c".split(",") }} {{ "a,b,c".split(",", 1) }} {{ "".split() }} {{ "".split(",") }} {{ " a ".split(" ", 1) }}
{{ text.rsplit(none, 2) }} {{ "a,b,c".rsplit(",", 1) }} {{ "aXXbXXc".rsplit("XX") }} {{ "aaa".rsplit("aa") }} {{ " a b ".rsplit(maxsplit=1) }} {{ "a  b".split(" ", maxsplit=1) }}
{{ "a".split("") }}
{{ "a\nb\r\nc\x0bd\u2028e\n".splitlines() }} {{ "a\nb\n".splitlines(true) }} {{ "".splitlines() }}
{{ "a-b-c".partition("-") }} {{ "a-b-c".rpartition("-") }} {{ "abc".partition("-") }} {{ "abc".rpartition("-") }}
{{ "hello".replace("l", "L") }} {{ "hello".replace("l", "L", 1) }} {{ "abc".replace("", "-") }} {{ "abc".replace("", "-", 2) }} {{ "aaa".replace("aa", "b") }} {{ "hello" | replace("l", "") }} {{ 1123 | replace(1, 2) }}
{{ "hello".startswith("he") }} {{ "hello".endswith("lo") }} {{ "hello".startswith(("x", "h")) }} {{ "hello".startswith("l", 2) }} {{ "hello".endswith("l", 0, 4) }} {{ "".startswith("") }}
{{ "hello".startswith(1) }}
{{ "hello".find("l") }} {{ "hello".rfind("l") }} {{ "hello".find("z") }} {{ "héllo".find("l") }} {{ "héllo".find("l", 3) }} {{ "hello".count("l") }} {{ "aaaa".count("aa") }} {{ "abc".count("") }} {{ "hello".index("o") }} {{ "abc".find("") }} {{ "abc".rfind("") }} {{ "abc".find("", 9) }}
{{ "hello".index("z") }}
{{ ",".join(["a", "b"]) }} {{ "".join("abc") }} {{ ", ".join(map) }}
{{ ",".join([1]) }}
{{ "abc".isalpha() }} {{ "a1".isalnum() }} {{ "12".isdigit() }} {{ " ".isspace() }} {{ "".isspace() }} {{ "Ab".isupper() }} {{ "AB1".isupper() }} {{ "ab1".islower() }} {{ "Ab Cd".istitle() }} {{ "12".isnumeric() }} {{ "a_1".isidentifier() }} {{ "é".isascii() }} {{ "é".isalpha() }} {{ "日".isalpha() }}
{{ "5".zfill(3) }} {{ "-5".zfill(4) }} {{ "a".ljust(3) }}|{{ "a".rjust(3, "*") }}|{{ "ab".center(5) }}|{{ "abc".center(6, "-") }}|{{ "abc".center(8) }}|{{ "ab" | center(5) }}|
{{ "prefix-x".removeprefix("prefix-") }} {{ "x.py".removesuffix(".py") }} {{ "abc".removesuffix("") }} {{ "a\tbc\td".expandtabs(4) }} {{ "ß".casefold() is string }}
{{ "%s is %d and %.2f %5s|%-5s|%05d|%x|%X|%o|%e|%g|%%|%c|%r" % ("a", 42, 3.14159, "r", "l", 42, 255, 255, 8, 12345.678, 0.0001, "z", "q") }}
{{ "%s" % "x" }} {{ "%s" % [1, 2] }} {{ "%(a)s-%(b)d" % {"a": 1, "b": 2} }} {{ "%+d % d %+.1f" % (1, 2, 3.0) }} {{ "%#x %#o" % (255, 8) }} {{ "%*d|%-*d|" % (5, 42, 5, 42) }} {{ "%.3s|" % "abcdef" }} {{ "%d" % 3.9 }} {{ "%i" % true }} {{ "%s %s" | format("a", "b") }} {{ "%(x)s" | format(x=1) }}
{{ "%d" % "x" }}
{{ "%s %s" % "x" }}
{{ "%s" % (1, 2) }}
{{ "%q" % 1 }}
{{ "%" % 1 }}
{{ "{} {}".format(1, "a") }} {{ "{1} {0}".format(1, 2) }} {{ "{a} {b!r}".format(a=1, b="x") }} {{ "{{}} {:>5}|{:<5}|{:^5}|{:*^7}|".format("a", "b", "c", "d") }} {{ "{:05d} {:,} {:.2f} {:x} {:#x} {:b} {:e} {:%} {:+d} {:g}".format(42, 1234567, 3.14159, 255, 255, 5, 12345.6789, 0.25, 7, 1e10) }}
{{ "{0[0]} {0[1]}".format(list) }} {{ "{m[b]}".format(m=map) }} {{ "{:{}}|".format("a", 5) }} {{ "{!s:>6}|".format(none) }} {{ "{:6.2f}|{:<8.3e}|{:^9}|".format(2.5, 2.5, 2.5) }} {{ "{:_}".format(1234567) }} {{ "{:>+6d}|{:=+6d}|{:06.1f}".format(5, 5, -2.5) }}
{{ "{:08,}|{:08,}|{:012,.2f}|{:>12,}|{:0=12,}".format(1234, 1234.5, 1234.5, 12345, -1234567) }} {{ "{:_x}|{:#012_x}|{:_b}|{:010_}".format(1048575, 1048575, 255, 123456) }} {{ "{:,x}".format(255) }}
{{ "{:5}|{:<5}|{:d}|{:05}".format(true, true, true, false) }} {{ "{:n}|{:.3n}".format(1.5, 1234.5) }} {{ "{:s}".format(true) }}
{{ "{}".format() }}
{{ "{0.__class__}".format(1) }}
{{ "{:d}".format("x") }}
{{ "{" .format(1) }}
{{ map | tojson }} {{ schema | tojson }} {{ [1, 2.0, 1e20, none, true, "é<>&'\"\\\n\x01\x7f"] | tojson }} {{ "日本" | tojson }} {{ () | tojson }} {{ {} | tojson }} {{ (1, (2,)) | tojson }} {{ {1: 1, none: 2, true: 3, 1.5: 4} | tojson }}
{{ map | tojson(indent=2) }}
{{ nested | tojson(indent=4) }}
{{ {"a": [], "b": {}, "c": [1, {"d": none}]} | tojson(indent=1) }}
{{ map | tojson(sort_keys=true) }} {{ map | tojson(separators=(",", ":")) }} {{ map | tojson(indent=2, separators=(",", ": ")) }} {{ "é🙂" | tojson(ensure_ascii=true) }} {{ [1] | tojson(indent="\t") }} {{ [1] | tojson(indent=0) }} {{ [1, 2] | tojson(true) }} {{ list | tojson(none, 2) }} {{ list | tojson(indent=true) }}
{{ list | map("string") | tojson }}
{{ range(3) | tojson }}
{{ {(1, 2): 3} | tojson }}
{{ {"a": 1, 2: 3} | tojson(sort_keys=true) }}
{{ 1e400 | tojson }} {{ -1e400 | tojson }} {{ 1e400 }} {{ 1e400 - 1e400 }}
{{ list | sort }} {{ list | sort(reverse=true) }} {{ mixed | sort }} {{ mixed | sort(case_sensitive=true) }} {{ mixed | sort(reverse=true) }} {{ people | sort(attribute="age") | map(attribute="name") | list }} {{ people | sort(attribute="age,name", reverse=true) | map(attribute="name") | list }} {{ people | sort(attribute="at.city") | map(attribute="name") | join(",") }} {{ map | sort }}
{{ [1, "a"] | sort }}
{{ map | dictsort }} {{ map | dictsort(true) }} {{ map | dictsort(by="value", reverse=true) }} {{ map | dictsort(false, "value") }}
{{ list | dictsort }}
{{ mixed | unique | list }} {{ [1, 1.0, true, 2] | unique | list }} {{ mixed | unique(case_sensitive=true) | list }} {{ people | unique(attribute="age") | map(attribute="name") | list }}
{{ list | min }} {{ list | max }} {{ mixed | min }} {{ mixed | max(case_sensitive=true) }} {{ people | max(attribute="age") }} {{ [] | min }}|{{ ["b", "B"] | min }}
{{ list | sum }} {{ [] | sum }} {{ [0.5, 1] | sum }} {{ people | sum(attribute="age") }} {{ [[1], [2]] | sum(start=[]) }} {{ list | sum(start=10) }}
{{ ["a"] | sum }}
{{ list | first }} {{ list | last }} {{ [] | first }}|{{ [] | last }}|{{ "abc" | first }} {{ "日本" | last }} {{ map | first }} {{ range(5) | last }} {{ map | last }}
{{ list | join }} {{ list | join(", ") }} {{ people | join(", ", attribute="name") }} {{ "abc" | join("-") }} {{ map | join(",") }} {{ [1, none, true, "x"] | join("|") }} {{ list | join(1) }}
{{ list | length }} {{ "日本" | count }} {{ map | length }} {{ range(7) | length }} {{ map.items() | length }}
{{ 5 | length }}
{{ list | map("string") | length }}
{{ "abc" | list }} {{ map | list }} {{ range(3) | list }} {{ (1, 2) | list }} {{ map.items() | list }} {{ "" | list }}
{{ list | reverse | list }} {{ "abc" | reverse }} {{ "日本" | reverse }} {{ map | reverse | list }} {{ range(3) | reverse | list }}
{{ 5 | reverse }}
{{ list | map("string") | list }} {{ mixed | map("upper") | join }} {{ people | map(attribute="at.city") | list }} {{ people | map(attribute="tags", default=[]) | list }} {{ people | map(attribute="zz") | list }} {{ nested | map(attribute=0) | list }} {{ nested | map(attribute="0", default="d") | list }} {{ ["a,b"] | map("replace", ",", ";") | list }} {{ [" a "] | map("trim") | list }} {{ [[3, 1], [2]] | map("sort", reverse=true) | list }} {{ nothing | map("upper") | list }}
{{ list | map("nosuchfilter") | list }}
{{ list | map | list }}
{{ list | nosuchfilter }}
{{ 5 is nosuchtest }}
{% if false %}{{ list | nosuchfilter }}{% endif %}ok
{% if true %}{{ list | nosuchfilter }}{% endif %}ok
{{ 1 if true else (2 | nosuchfilter) }}
{% macro never() %}{{ 1 | nosuchfilter }}{% endmacro %}ok
{% if false %}{% for x in list %}{{ x | nosuchfilter }}{% endfor %}{% endif %}ok
{{ list | select("odd") | list }} {{ list | reject("odd") | list }} {{ [0, 1, "", "a"] | select | list }} {{ [0, 1, none] | reject | list }} {{ list | select("gt", 1) | list }} {{ list | select(">", 1) | list }} {{ list | select("in", [1, 2]) | list }} {{ [1, none, 2] | select("none") | list }}
{{ people | selectattr("age", "equalto", 30) | map(attribute="name") | list }} {{ people | rejectattr("tags", "defined") | map(attribute="name") | list }} {{ people | selectattr("tags") | map(attribute="name") | list }} {{ people | selectattr("at.city", "==", "Oslo") | list | length }} {{ messages | selectattr("role", "in", ["user", "tool"]) | map(attribute="role") | list }} {{ people | selectattr("age", "lt", 30) | first }}
{{ people | groupby("age") }}
{% for g in people | groupby("at.city") %}{{ g.grouper }}: {{ g.list | map(attribute="name") | join(",") }};{% endfor %}{% for k, v in mixed | groupby("0") %}{{ k }}{{ v }}{% endfor %}
{{ people | groupby("tags") }}
{{ range(7) | batch(3) | list }} {{ range(7) | batch(3, "x") | list }} {{ range(7) | slice(3) | list }} {{ range(7) | slice(3, "x") | list }} {{ [] | batch(2) | list }}
{{ map | items | list }} {% for k, v in map | items %}{{ k }}={{ v }};{% endfor %} {{ undefinedthing | items | list }}
{{ list | items | list }}
{{ "x" | default("d") }} {{ undefinedthing | default("d") }} {{ undefinedthing | default }}| {{ "" | default("d") }}| {{ "" | default("d", true) }} {{ none | default("d") }} {{ none | d("d", boolean=true) }} {{ map.zz | default("q") }}
{{ undefinedthing.x | default("d") }}
{{ "42" | int }} {{ "4x" | int }} {{ "4x" | int(7) }} {{ "3.9" | int }} {{ 3.9 | int }} {{ -3.9 | int }} {{ "ff" | int(base=16) }} {{ "0x1f" | int(0, 16) }} {{ none | int }} {{ true | int }} {{ " 5 " | int }} {{ "1_000" | int }} {{ "" | int(default=-1) }} {{ "1e3" | int }} {{ [] | int }}
{{ "1.5" | float }} {{ "x" | float }} {{ "x" | float(2.5) }} {{ 3 | float }} {{ "1e3" | float }} {{ "inf" | float }} {{ "nan" | float }} {{ " 1.5 " | float }} {{ "1_0.5" | float }} {{ "1_e5" | float }} {{ "1e_5" | float }} {{ "1e1_0" | float }} {{ ".5" | float }} {{ "5." | float }} {{ none | float }}
{{ {9.1e18: "a"}[9100000000000000000] }} {{ {9007199254740993: "a"}[9007199254740992.0] is defined }}
{{ 1e400 | int }}
{{ -5 | abs }} {{ (-5) | abs }} {{ -2.5 | abs }} {{ true | abs }}
{{ 42.55 | round }} {{ 42.55 | round(1) }} {{ 42.45 | round(1, "floor") }} {{ 42.41 | round(1, "ceil") }} {{ 42 | round }} {{ 2.5 | round }} {{ 3.5 | round }} {{ -2.5 | round }} {{ 1234.5 | round(-2) }} {{ 1250 | round(-2) }} {{ 2.675 | round(2) }} {{ 42 | round(method="ceil") }} {{ 1e300 | round(2) }} {{ 5 | round(2) }} {{ 1.005 | round(2) }}
{{ 1 | round(method="x") }}
{{ "a\nb\n\nc" | indent }}|{{ "a\nb" | indent(2) }}|{{ "a\n\nb" | indent(2, true, true) }}|{{ "a\nb" | indent("> ") }}|{{ "a\nb" | indent(width=2, first=true) }}|{{ "a\n" | indent(2) }}|{{ "" | indent }}|{{ "a\r\nb" | indent(1) }}
{{ "foo bar baz qux" | truncate(9) }} {{ "foo bar baz qux" | truncate(9, true) }} {{ "foo bar baz qux" | truncate(11) }} {{ "foo bar baz qux" | truncate(9, leeway=0, end="") }} {{ "foobarbazquxquux" | truncate(9, leeway=0) }}
{{ "<a href='x'>&\"" | e }} {{ "<" | escape | e }} {{ "<" | forceescape }} {{ "<b>" | safe }} {{ ("<b>" | safe) + "<i>" }} {{ "<i>" + ("<b>" | safe) }} {{ ("<b>" | safe) ~ "<i>" }} {{ "a" | safe is escaped }} {{ ("<" | e) | length }} {{ ["<" | e] }}
{{ "hello world foo-bar a_b" | wordcount }} {{ "" | wordcount }}
{{ "a b/c?d=é&" | urlencode }} {{ {"a": 1, "b c": "d&e"} | urlencode }}
{{ 1 | filesizeformat }} {{ 999 | filesizeformat }} {{ 1000 | filesizeformat }} {{ 1536 | filesizeformat(true) }} {{ 123456789 | filesizeformat }}
{{ map | attr("items") is defined }} {{ map | attr("b") }}| {{ "x" | attr("upper") is callable }} {{ map | attr("zz") is defined }}
{{ num is odd }} {{ num is even }} {{ num is divisibleby 7 }} {{ num is divisibleby(5) }} {{ num is number }} {{ flag is number }} {{ flag is integer }} {{ num is integer }} {{ real is float }} {{ real is integer }} {{ flag is boolean }} {{ flag is true }} {{ 1 is true }} {{ false is false }} {{ nothing is none }} {{ "a" is string }} {{ map is mapping }} {{ list is mapping }}
{{ list is sequence }} {{ "a" is sequence }} {{ map is sequence }} {{ 5 is sequence }} {{ undefinedthing is sequence }} {{ range(2) is sequence }} {{ map.items() is sequence }} {{ list is iterable }} {{ 5 is iterable }} {{ none is iterable }} {{ undefinedthing is iterable }} {{ "a" is iterable }} {{ list | map("string") is iterable }}
{{ num is defined }} {{ undefinedthing is defined }} {{ undefinedthing is undefined }} {{ map.a is defined }} {{ map.z is defined }} {{ map.z is not defined }} {{ none is defined }} {{ not undefinedthing is defined }} {{ list[0] is defined and list[5] is not defined }}
{{ "abc" is lower }} {{ "ABC" is upper }} {{ "Abc" is lower }} {{ "1" is lower }} {{ 1 is eq 1 }} {{ 1 is equalto(2) }} {{ 2 is gt 1 }} {{ 2 is ge(2) }} {{ 1 is ne 2 }} {{ 1 is in [1] }} {{ 3 is in list }} {{ "a" is in "abc" }} {{ range is callable }} {{ "x" is callable }} {{ undefinedthing is callable }} {{ none is sameas none }} {{ true is sameas true }} {{ 1 is sameas true }} {{ "upper" is filter }} {{ "x" is filter }} {{ "odd" is test }}
{{ "a" is odd }}
{{ 1 is eq 1 is eq 1 }}
{{ [1, 2] is not string and 1 }} {{ 5 is not none }} {{ x is defined and x }} {{ 5 is number == true }} {{ 2 is odd or 1 is odd }} {{ "ab" is string ~ "x" }}
{% if num is divisibleby 7 and flag %}yes{% endif %} {{ num is divisibleby 3 + 4 }}
{{ range(5) }} {{ range(1, 5) | list }} {{ range(5, 1, -2) | list }} {{ range(0) | list }} {{ range(10)[2:5] }} {{ range(10)[::-3] | list }} {{ range(3)[-1] }} {{ 3 in range(5) }} {{ 5 in range(5) }} {{ range(0, 10, 3) }} {{ range(3) == range(0, 3) }} {{ range(10)[5:2] }}
{{ range(1000000) }}
{{ range(1.5) }}
{{ range(1, 2, 0) }}
{{ range() }}
{{ dict(a=1, b=2) }} {{ dict({"x": 1}, y=2) }} {{ dict([("a", 1), ["b", 2]]) }} {{ dict() }} {{ dict(map, b=9) }} {{ dict([("a", 1)])["a"] }}
{{ dict([1]) }}
{% set ns = namespace(a=1) %}{% set ns.b = 2 %}{{ ns.a + ns.b }} {{ ns }} {{ ns.zz }}|{{ ns["a"] }}|{{ ns.a is defined }}
{% set ns = namespace({"a": 1}, b=2) %}{{ ns.a }}{{ ns.b }}{% set ns.c = ns %}{{ ns }}
{% set ns = namespace() %}{% set ns._x = 1 %}
{{ namespace(_a=1) }}
{% set map.b = 5 %}
{% set undefinedthing.b = 5 %}
{% set ns = namespace(n=0) %}{% for i in list %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}
{% set ns = namespace(f=false) %}{% for i in list if not ns.f %}{{ i }}{% set ns.f = true %}{% endfor %}
{% set a, b = 1, 2 %}{{ a }}{{ b }} {% set (c, d) = [3, 4] %}{{ c }}{{ d }} {% set (e, (f, g)) = (1, (2, 3)) %}{{ e }}{{ f }}{{ g }}{% set i = 1, 2 %}{{ i }}
{% set h, = [9] %}{{ h }}
{% set a, b = 1 %}
{% set a, b = [1, 2, 3] %}
{% set a = b = 1 %}
{% set 5 = 1 %}
{% set a.b.c = 1 %}
{% set a[0] = 1 %}
{% set true = 1 %}
{% set ns = namespace() %}{% set ns.a, b = 1, 2 %}{{ ns.a }}{{ b }}
{% set x %}a{{ num }}b{% endset %}[{{ x }}]{% set y | upper | replace("A", "z") %}abc{% endset %}{{ y }} {{ x is string }} {{ x is escaped }}
{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = x + 1 %}{{ x }};{% endfor %}{{ x }}
{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}{% if false %}{% set x = 3 %}{% endif %}{{ x }}
{% if false %}{% set num = 1 %}{% endif %}{{ num }}
{% if true %}{% set num = 1 %}{% else %}{% set num = 2 %}{% endif %}{{ num }}
{% if false %}{% set q = 1 %}{% elif false %}{% set q = 2 %}{% endif %}{{ q is defined }}
{% for i in list %}{{ num }}{% endfor %}{% set num = 1 %}{{ num }}
{{ num }}{% set num = 1 %}{{ num }}
{% for i in [1, 2] %}{% if i == 2 %}{% set num = 7 %}{% endif %}{{ num }} {% endfor %}{{ num }}
{% for i in [1, 2] %}{{ q is defined }}{% set q = i %}{{ q }} {% endfor %}{{ q is defined }}
{% for num in list %}{{ num }}{% endfor %}{{ num }}
{% for i in list %}{% for j in list %}{% set z = i * j %}{{ z }} {% endfor %}{{ z is defined }}{% endfor %}
{% with a = 1, b = num %}{{ a }}{{ b }}{% set num = 5 %}{{ num }}{% endwith %}{{ num }}{{ a is defined }}
{% with num = num + 1, other = num %}{{ num }} {{ other }}{% endwith %}
{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q is defined }}
{% with a, b = 1, 2 %}{{ a }}{% endwith %}
{% with (a, b) = (1, 2) %}{{ a }}{{ b }}{% endwith %}
{% for x in list %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}
{% for x in list %}{{ loop.cycle("a", "b") }}{{ loop.changed(x > 1) }}{% endfor %}{% for x in list %}{{ loop["index"] }}{{ loop.zz }}{{ loop.zz is defined }}{% endfor %}
{% for x in list if x > 1 %}{{ x }}{{ loop.index }}/{{ loop.length }}{{ loop.last }} {% endfor %}{% for x in list if x > 5 %}{{ x }}{% else %}none{% endfor %}
{% set ns = namespace() %}{% for x in [1, 5, 7, 2] if x > 4 %}{% set ns.l = loop %}{% endfor %}{{ ns.l.length }}
{% for x in list | map("string") %}{{ x }}{{ loop.last }}{{ loop.length }}{% endfor %}{% for k in map %}{{ k }}{% endfor %}{% for k, v in map.items() %}{{ k }}{{ v }}{% endfor %}{% for c in kana %}{{ c }}.{% endfor %}{% for a, b in [(1, 2), [3, 4], "xy"] %}{{ a }}{{ b }}{% endfor %}
{% for a, b in [1] %}{% endfor %}
{% for a, b in [(1, 2, 3)] %}{% endfor %}
{% for x in list %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}{% for x in list %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}{% for x in [1] %}{% break %}{% else %}E{% endfor %}{% for x in [1] %}{% continue %}{% else %}E{% endfor %}{% for x in [1, 2] %}{% if x == 2 %}{% continue %}{% endif %}{% else %}E{% endfor %}
{% break %}
{% for x in list %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}
{% for x in list %}{% else %}{% break %}{% endfor %}
{% for y in [1, 2] %}{{ y }}{% for x in [] %}{% else %}{% break %}{% endfor %}z{% endfor %}
{% for x in [1, [2, [3]], 4] recursive %}{% if x is iterable %}({{ loop(x) }}){% else %}{{ x }}d{{ loop.depth }}{% endif %}{% endfor %}
{% for x in [1, [2, 3], 4] recursive %}{% if x is iterable %}({{ loop(x) }}{{ x }}{{ loop.index }}){% else %}{{ x }}{% endif %}{% else %}empty{% endfor %}
{% for x in [1] %}{{ loop([2]) }}{% endfor %}
{% for x in list %}{% set loop = 1 %}{% endfor %}
{% for loop in list %}{% endfor %}
{% for x in list %}{{ loop.index }}{% for y in [1, 2] %}{{ loop.index }}{% endfor %}{{ loop.index }} {% endfor %}{% for x in list %}{% for y in [loop.index] %}{{ y }}{% endfor %}{% endfor %}
{% for x in list if loop %}{{ x }}{% endfor %}
{{ loop is defined }}{% set l = namespace() %}{% for x in list %}{% set l.l = loop %}{% endfor %}{{ l.l.index }}{{ l.l.length }}
{% macro m(a, b=2, *c) %}{% endmacro %}
{% macro m(a, b=2) %}[{{ a }},{{ b }}]{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(b=5, a=4) }}{{ m() }}{{ m(*[7, 8]) }}{{ m(**{"a": 9}) }} {{ m.name }} {{ m.arguments }} {{ m is callable }}
{% macro m(a, b=a) %}[{{ a }},{{ b }}]{% endmacro %}{{ m(1) }}{{ m(1, 2) }}{% macro n(a=b, b=1) %}{{ a }}{% endmacro %}{{ n() }}|
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(z=2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, a=2) }}
{% macro m(a=1, b) %}{% endmacro %}
{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, x=4) }}{{ m() }}{{ m.catch_kwargs }}{{ m.catch_varargs }}
{% macro m() %}{{ num }}{{ later }}{% endmacro %}{% set later = 5 %}{{ m() }}{% set later = 6 %}{{ m() }}
{% macro m() %}{% set num = 1 %}{{ num }}{% endmacro %}{{ m() }}{{ num }}
{% macro fact(n) %}{{ 1 if n <= 1 else n * (fact(n - 1) | int) }}{% endmacro %}{{ fact(5) }}
{% macro outer() %}{% macro inner(x) %}<{{ x }}>{% endmacro %}{{ inner(1) }}{% endmacro %}{{ outer() }}{{ inner is defined }}
{% macro wrap() %}<{{ caller() }}>{% endmacro %}{% call wrap() %}in {{ num }}{% endcall %} {% macro each(xs) %}{% for x in xs %}{{ caller(x, loop.index) }}{% endfor %}{% endmacro %}{% call(x, i) each(list) %}{{ i }}:{{ x }} {% endcall %}
{% macro wrap() %}<{{ caller() }}>{% endmacro %}{{ wrap() }}
{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}{% call m() %}x{% endcall %}
{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}
{% call 5 %}{% endcall %}
{% macro a() %}A{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}
{{ m() }}{% macro m() %}x{% endmacro %}
{% for x in list %}{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% endfor %}
{% macro m(x) %}{% if x %}{{ x[0] }}{{ m(x[1:]) }}{% endif %}{% endmacro %}{{ m("abc") }}
{% filter upper %}abc{{ num }}{% endfilter %}{% filter replace("a", "b") | indent(2, true) %}aa{% endfilter %}
{% filter nosuch %}{% endfilter %}
{% generation %}abc{{ num }}{% endgeneration %}{% generation %}{% set q = 1 %}{% endgeneration %}{{ q is defined }}
{% block a %}x{{ num }}{% endblock %}{% block b %}{% set num = 3 %}{{ num }}{% endblock b %}{{ num }}
{% set v = 1 %}{% block a %}{{ v }}{% endblock %}{% for v in [5] %}{% block c %}{{ v }}{% endblock %}{% endfor %}
{% block a %}{% endblock %}{% block a %}{% endblock %}
{% include "x" %}
{% if false %}{% include "x" %}{% import "y" as z %}{% from "q" import a, b as c with context %}{% endif %}ok
{% extends "x" %}
{% do list %}
{% nosuchtag %}
{% endfor %}
{% if true %}
{% for x in list %}
{% if %}x{% endif %}
{% for in list %}{% endfor %}
{{ }}
{{ 1 2 }}
{{ 1 + }}
{{ (1 }}
{{ [1, 2 }}
{{ 1) }}
{{ {1} }}
{{ "abc }}
{{ 'a
b' }}
{{ a..b }}
{{ a.1 }} {{ list.0 }} {{ nested.0.1 }}
{{ 1.5.x }}|{{ 5 . x }}|
{{ list[] }}
{{ f(a=1, 2) }}
{{ f(**{}, *[]) }}
{{ f(a=1, a=2) }}
{{ dict(a=1, **{"a": 2}) }}
{{ raise_exception("no " ~ num) }}
{{ raise_exception() }}
{{ strftime_now("%d %b %Y") }} {{ strftime_now("%Y-%m-%d %H:%M:%S %A %a %B %j %U %W %w %y %I %p %e %-d %-m %% %x %X %c %D %F %T %R %V %G %u") }}
{%- set j = joiner("|") %}{{ j() }}a{{ j() }}b{% set c = cycler("x", "y") %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.next() }}
{% print num, "x", [1] %}
{% for x in list: %}{{ x }}{% endfor %}{% if true: %}a{% else: %}b{% endif %}
{{ "a" if "b" if true else "c" else "d" }}
{{ [1, 2,] }} {{ {"a": 1,} }} {{ dict(a=1,) }} {{ (1, 2,) }}
{{ 5|string|length }} {{ -5|abs }} {{ (2 + 3)|string ~ "x" }} {{ 2 + 3|string|int }} {{ "a"|upper + "b"|upper }}
{{ messages[0].content }} {{ messages[0]["content"] }} {{ messages[-1].role }} {{ messages | length }} {{ messages[1:] | map(attribute="role") | join(",") }} {{ messages[2].tool_calls[0].function.arguments | tojson }}
{{ messages[0].content.strip().upper()[:2] }} {{ (messages | last).content | e }} {{ messages[2].content is none }} {{ messages[2].content is string }} {{ messages[3].tool_calls is defined }}
{{ true }} {{ True }} {{ none }} {{ None }} {{ false }} {{ False }} {{ null }}| {{ TRUE }}|
{{ list == [3, 1, 2] }} {{ (1, 2) == [1, 2] }} {{ {"a": 1} == {"a": 1.0} }} {{ [] == () }} {{ "a" != "b" }} {{ none != undefinedthing }} {{ map.items() == map.items() }}
{{ cycler is defined }}{{ range is defined }}{{ dict is defined }}{{ namespace is defined }}
{{ (num|string) in "42" }} {{ num in list + [42] }} {{ "a" not in "b" and 1 }} {{ not "a" in "b" }}
{{ [[1, 2], [3]] | map("length") | list }} {{ [1, 2, 3] | map("string") | join("+") }} {{ ("a", "b") | join }}
{{ 3.0 | int }} {{ 3.0 | string }} {{ 1e3 | string }} {{ 100000000000000000000.0 }} {{ 0.00001 }} {{ 123456.789e3 }} {{ -0.0 }}
{{ "%.2f%%" % 12.345 }} {{ "%5.1f|" % 2.25 }} {{ "%s" % none }} {{ "%s" % true }} {{ "%r" % "it's" }} {{ "%-10s|" % "é" }}
{{ "a".__len__() }}
{{ ().__class__ }}|{{ map.__init__ }}|{{ range.__call__ }}|{{ messages.__getitem__ }}
{{ messages | tojson }}
{{ 10 | string | list | map("int") | sum }} {{ "10" * 2 }} {{ "a,b;c".split(",")[1].split(";")[0] }}
{{ kana.find("語") }} {{ kana.split("語") }} {{ kana.replace("🙂", ":)") }} {{ kana.startswith("日本") }} {{ "日" in kana }} {{ kana | list }} {{ kana | reverse }} {{ kana.center(12, "・") }}
{{ "ab" < "abc" }} {{ "Z" < "a" }} {{ max is defined }} {{ [3, 1] | max }} {{ 3 if 3 > 1 else 1 }} {{ [1, 2] > [1] }} {{ true > false }}
{{ (list | sort)[0] }} {{ list | sort | first }} {{ list|sort|join(',') }} {{ (list)[0] }} {{ [list][0][0] }} {{ {"a": list}.a[1] }} {{ list.0 }}
{% if messages and messages[0].role == 'system' %}S{% elif messages %}M{% else %}N{% endif %}
{{ "aé".encode() }} {{ "aé'\"\n\\\t\x7f".encode("utf-8") }} {{ "aé".encode("latin-1") }} {{ "aé".encode("ascii", "ignore") }} {{ "aé".encode("ASCII", errors="replace") }} {{ "it's".encode() }} {{ kana.encode().decode() }} {{ kana.encode().hex() }} {{ "é".encode("latin1").decode("utf_8", "replace") }}
{{ "é".encode("ascii") }}
{{ kana.encode()[:5].decode("utf-8", "replace") }} {{ kana.encode()[1:5].decode("utf-8", "ignore") }} {{ kana.encode()[-2:].decode(errors="replace") }} {{ "é".encode().decode("latin-1") }} {{ "é".encode().decode("ascii", "replace") }}
{{ "é".encode("latin1").decode() }}
{{ "aé".encode()[0] }} {{ "aé".encode()[1:] }} {{ "abc".encode()[::-1] }} {{ "aé".encode() | length }} {{ "ab".encode() | list }} {{ "a".encode() == "a" }} {{ "a".encode() == "a".encode() }} {{ "a".encode() + "b".encode() }} {{ 97 in "a".encode() }} {{ "a".encode() in "ba".encode() }} {{ "a".encode() is string }} {{ "a".encode() is iterable }} {{ "".encode() or "empty" }} {{ "a".encode() < "b".encode() }} {{ {"a".encode(): 1} }} {{ "a".encode() ~ "b" }}
{{ "a".encode() + "b" }}
{{ "a" in "a".encode() }}
{{ "a".encode() | tojson }}
{{ range(5).count(3) }} {{ range(5).count(9) }} {{ range(2, 20, 3).index(8) }} {{ range(10, 0, -3).index(4) }} {{ range(5).start }} {{ range(2, 20, 3).stop }} {{ range(2, 20, 3).step }} {{ range(5)["start"] }} {{ range(5).count("x") }} {{ range(5).zzz }}|
{{ range(5).index(7) }}
{{ range(5).count() }}
{{ [("a b", "c/d"), ("é", 1)] | urlencode }} {{ {"a/": "b c", 1: none} | urlencode }} {{ "a b/c&é~" | urlencode }} {{ ["ab", "cd"] | urlencode }} {{ [] | urlencode }}| {{ {} | urlencode }}| {{ missing | urlencode }}| {{ 1.5 | urlencode }} {{ none | urlencode }} {{ map.items() | urlencode }} {{ "é/".encode() | list | length }}
{{ [1] | urlencode }}
{{ ["abc"] | urlencode }}
{{ map | pprint }} {{ "a'b" | pprint }} {{ 1.5 | pprint }} {{ none | pprint }} {{ () | pprint }} {{ (1,) | pprint }} {{ {} | pprint }} {{ [] | pprint }} {{ "" | pprint }} {{ missing | pprint }} {{ {2: 1, 1: {"z": 1, "a": 2}} | pprint }} {{ {"a": 1, 1: 2, none: 3, (1, 2): 4} | pprint }} {{ "x" | safe | pprint }} {{ range(3) | pprint }}
{{ people | pprint }}
{{ messages | pprint }}
{{ schema | pprint }} {{ (schema, [schema]) | pprint }}
{{ ("word " * 30) | pprint }} {{ [("word " * 30)] | pprint }} {{ {"key": "word " * 30, "other": ["word\n" * 12, "x" * 100]} | pprint }}
{{ ("x" * 100) | pprint }} {{ ("x" * 78) | pprint }} {{ ("x" * 79) | pprint }} {{ ("a b\n" * 30) | pprint }} {{ ("a" * 70 ~ " " ~ "b" * 90) | pprint }} {{ (("a" * 60, "b" * 60),) | pprint }}
{{ ("word" * 30).encode() | pprint }} {{ [("word" * 30).encode(), "ab".encode()] | pprint }} {{ range(100) | list | pprint }} {{ (("é" * 50, "日本" * 20),) | pprint }}
{{ "The quick brown fox jumps over the lazy dog" | wordwrap(10) }} {{ "aaaaaaaaaaaaaaa bbb" | wordwrap(6) }} {{ "aaaaaaaaaaaaaaa bbb" | wordwrap(6, false) }} {{ "a b c d" | wordwrap(3, wrapstring="|") }}
{{ "well-known e-mail mother-in-law x--y foo---bar --opt a-1 1-a -- - a- b-c" | wordwrap(7) }} {{ "well-known e-mail mother-in-law" | wordwrap(7, true, none, false) }} {{ "a-b-c-d-e-f" | wordwrap(3) }} {{ "aa-bb-cc" | wordwrap(3) }} {{ "------------" | wordwrap(5) }} {{ "word,--next (x)--y" | wordwrap(5) }}
{{ "a\n\n  b  c\n" | wordwrap(4) }}| {{ "  lead  trail  " | wordwrap(6) }}| {{ "abc  defghijkl" | wordwrap(5) }}| {{ "日本語テキスト の 例" | wordwrap(3) }} {{ "" | wordwrap }}| {{ "x" | wordwrap(1) }} {{ text | wordwrap(9, wrapstring="\n\n") }}
{{ "x" | wordwrap(0) }}
{{ 5 | wordwrap }}
{{ "<b>a</b> <!-- c > d --> &lt;x&gt;  y\n" | striptags }} {{ "a < b" | striptags }} {{ "<a<b>c>" | striptags }} {{ "<!-->x-->y<!-- z" | striptags }} {{ 5 | striptags }} {{ none | striptags }} {{ missing | striptags }}| {{ "<i>&amp;&eacute;&#233;&#xe9;&copy &notit; &nosuch; &#0; &#128; &#x110000; &</i>" | striptags }} {{ "<p>" | safe | striptags }}|
{{ {"class": "a", "id": none, "x": 1, "q": "<'\">", "u": missing} | xmlattr }}| {{ {"a": 1} | xmlattr(false) }}| {{ {} | xmlattr }}| {{ {"a": "<" | safe} | xmlattr }}| {{ {"a b": none} | xmlattr }}|
{{ {"a b": 1} | xmlattr }}
{{ {"a>": 1} | xmlattr }}
{{ {1: 1} | xmlattr }}
{{ list | xmlattr }}
{{ missing | xmlattr }}
{{ 1 | filesizeformat }} {{ 999 | filesizeformat }} {{ 1000 | filesizeformat }} {{ 1024 | filesizeformat(true) }} {{ 1e6 | filesizeformat }} {{ 123456789 | filesizeformat(binary=true) }} {{ "1500" | filesizeformat }} {{ 0 | filesizeformat }} {{ -5 | filesizeformat }} {{ 1e25 | filesizeformat }} {{ 1e30 | filesizeformat }}
{% block a %}A{{ num }}{% endblock %}{{ self.a() }}{{ self.a()|length }}{{ self["a"]() }}{{ self.nosuch is defined }}{{ self }}
{{ self.b() }}{% block b %}[{{ x }}]{% endblock %}{% set x = 1 %}{{ self.b() }}{% for i in [1, 2] %}{{ self.b() }}{% endfor %}
{% macro m() %}{{ self.c() }}{% endmacro %}{% if false %}{% block c %}C{{ self.d() }}{% endblock %}{% endif %}{% block d %}D{% endblock %}{{ m() }}
{{ self.nosuch() }}
{% block a %}{% endblock %}{{ self.a(1) }}
{% block a %}{{ self.a() }}{% endblock %}
{% set self = 5 %}{{ self }}{% block a %}{{ self }}{% endblock %}
{% block a %}{% set self = 5 %}{{ self }}{% endblock %}{{ self.a is callable }} {{ self.__class__ }}|
""".strip("\n").split("\n")

# Templates that test whitespace control, and templates of several lines.
BLOCKS = [
    "a\n{% if true %}\nb\n{% endif %}\nc\n",
    "  {% if true %}  \n  b  \n  {% endif %}  \nc",
    "a {%- if true -%} \n b \n {%- endif -%} c",
    "a {%+ if true %}\n b {%+ endif +%}\n c",
    "  {%+ if true %}x{% endif %}\n",
    "a{{ 1 }}\nb{{- 2 -}} \n c",
    "a  {{- '' }}  b  {{ '' -}}  c",
    "{# c #}\na\n  {# c #}\nb {#- c -#} \n d {#+ c +#}\ne",
    "{#\n{{ x }} {% if %}\n#}\nx",
    "{# #}{##}{#-#}{#--#}x",
    "{#}#}x",
    "{# unterminated",
    "{#- a -#}\n\n\nx",
    "{% raw %}{{ x }}{% if %}{# #}{% endraw %}y",
    "a\n  {% raw %}\n  b {{ }}\n  {% endraw %}\nc",
    "a {%- raw -%} b {%- endraw -%} c",
    "a {% raw -%}  b  {% endraw %}  c",
    "{% raw %}x",
    "{% raw %}{% endraw %}{% endraw %}",
    "a\r\nb\rc\n{{ 'x\r\ny' }}\r\n",
    "trailing newline\n",
    "two trailing newlines\n\n",
    "\n\n{% set x = 1 %}\n\n{{ x }}\n\n",
    "{% set x = 1 %}\n{% set y = 2 %}\n{{ x }}{{ y }}\n",
    "{{ '{{' }} {{ '}}' }} {{ '%}' }} {{ {'a': {'b': 1}}['a']['b'] }} {{ {'a': {}} }}",
    "{ {% if true %} } {% endif %} { { } } %} }} #}",
    "{{'a'}}{{\"b\"}}{{1}}{{[1]}}",
    "{{-1}} {{- 1}} {{+1}}",
    "{{ - 1 }} {{ 1 -}} {{ 1-1 }}",
    "{%if true%}a{%endif%}{%-if true-%}  b  {%-endif-%}",
    "{%\n  if true\n%}\n a{% endif\n%}\n",
    "{{\n  1\n  +\n  2\n}}\n",
    "   {{ 1 }}   \n   {% set x = 1 %}   \n   {{ 2 }}",
    "\t{% if true %}\n\tx\n\t{% endif %}\n",
    "\xa0{% if true %}x{% endif %}",
    "a\u2028  {% if true %}x{% endif %}",
    "x  {% if true %}y{% endif %}",
    "{{ 1 }}  {% if true %}y{% endif %}",
    "{{ '\n' }}  {% if true %}y{% endif %}",
    "{% if true %}{% endif %}  {% if true %}y{% endif %}",
    "{% if true %}\n  {% if true %}\n    {{ 1 }}\n  {% endif %}\n{% endif %}\n",
    "{%- for m in messages %}\n    {%- if m.role == 'user' %}\n        {{- '<u>' + m.content + '</u>' }}\n    {%- endif %}\n{%- endfor %}\n",
    "{% for x in list %}\n  {{ x }},\n{% else %}\n  none\n{% endfor %}\nend\n",
    "{% for x in list -%}\n  {{ x }},\n{%- endfor %}\nend",
    "{% macro m(a) -%}\n  {{ a }}\n{%- endmacro %}\n[{{ m(1) }}]\n",
    "{% macro m(a) %}\n  {{ a }}\n{% endmacro %}\n[{{ m(1) }}]\n",
    "{% set x %}\n  a\n{% endset %}\n[{{ x }}]",
    "{% filter trim %}\n  a\n{% endfilter %}|",
    "{% for x in list %}{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}\n",
    "{% if 1 %}a{% elif 2 %}b{% else %}c{% endif %}{% if 0 %}a{% elif 2 %}b{% else %}c{% endif %}{% if 0 %}a{% elif 0 %}b{% else %}c{% endif %}",
    "{% if a %}{% else %}{% elif b %}{% endif %}",
    "{% if a %}{% else %}{% else %}{% endif %}",
    "{% for x in list %}{% endif %}",
    "{% macro %}{% endmacro %}",
    "{% macro f %}{% endmacro %}",
    "{{ 1 }}{",
    "{{ 1 }}{{",
    "{% ",
    "{%",
    "{{ x",
    "{",
    "",
    "\n",
    "{{ 007 }}",
    "{{ 00 }} {{ 0 }} {{ 0_0 }}",
    "{{ 10_ }}",
    "{{ 1__0 }}",
    "{{ 0xg }}",
    "{{ 1.e5 }}",
    "{{ 1e }}",
    "{{ 1.5e+3 }} {{ 1E-2 }} {{ 1e5 }}",
    "{{ $ }}",
    "{{ a ! b }}",
    "{{ a & b }}",
    "{{ a; b }}",
    "{{ naïve }}{{ 日本 }}|",
    "{{ 'a' 5 }}",
    "{% set naïve = 1 %}{{ naïve }}",
    "{% set x = 1 -%}\n\n  y",
    "{% set x = namespace(a=[]) %}{% set x.a = x.a + [1] %}{% set x.a = x.a + [2] %}{{ x.a }}",
    "{%- macro render(v, d=0) -%}{%- if v is mapping -%}{{ '{' }}{%- for k, w in v | items -%}{{ k }}:{{ render(w, d + 1) }}{%- if not loop.last -%},{%- endif -%}{%- endfor -%}{{ '}' }}{%- elif v is iterable and v is not string -%}[{%- for w in v -%}{{ render(w, d + 1) }};{%- endfor -%}]{%- else -%}{{ v }}@{{ d }}{%- endif -%}{%- endmacro -%}{{ render(schema) }}",
    "{% for m in messages %}{% if loop.first and m.role == 'system' %}{% continue %}{% endif %}{% if m.content is string %}{% set c = m.content %}{% else %}{% set c = m.content | default('', true) | string %}{% endif %}<|{{ m.role }}|>{{ c | trim }}{% if loop.previtem is defined and loop.previtem.role == m.role %}!{% endif %}{% endfor %}",
    "{% set ns = namespace(out='') %}{% for m in messages | reverse %}{% set ns.out = m.role ~ (';' if ns.out else '') ~ ns.out %}{% endfor %}{{ ns.out }}",
    "{%- for message in messages %}\n{%- set content = message.content if message.content is not none else '' %}\n{{- '<|im_start|>' ~ message.role ~ '\\n' ~ content ~ '<|im_end|>\\n' }}\n{%- if message.tool_calls %}\n{%- for tc in message.tool_calls %}\n{%- set tc = tc.function if tc.function is defined else tc %}\n{{- '<tool>' ~ tc.name ~ (tc.arguments | tojson) ~ '</tool>' }}\n{%- endfor %}\n{%- endif %}\n{%- endfor %}\n{%- if add_generation_prompt %}\n{{- '<|im_start|>assistant\\n' }}\n{%- endif %}\n",
]


def render(env, template):
    case = {"template": template}
    try:
        case["text"] = env.from_string(template).render(**json.loads(json.dumps(CONTEXT)))
    except Exception:  # the kind of error does not matter
        case["refused"] = True
    return case


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=OUT, metavar="DIRECTORY")
    directory = parser.parse_args().output
    env = make_environment()
    cases = []
    for template in LINES + BLOCKS:
        cases.append(render(env, template))
        # If Jinja2 rejects a line of several expressions, also test each expression separately.
        if "refused" in cases[-1] and "}} {{" in template and "{%" not in template:
            parts = template.strip("{}").split("}} {{")
            cases += [render(env, "{{" + part + "}}") for part in parts]
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / "golden.json", "w", encoding="utf-8") as file:
        lines = ",\n".join(json.dumps(case, ensure_ascii=True) for case in cases)
        file.write('{"context": %s,\n"cases": [\n%s\n]}\n' % (json.dumps(CONTEXT), lines))
    print(len(cases), "cases,", sum("refused" in case for case in cases), "rejected")


if __name__ == "__main__":
    main()
