#include "app/presets/shipped_presets.h"

#include <array>

namespace vllm::app {
namespace {

// In a batch, rows share the KV cache of the text before {input}, so the instruction comes first.
constexpr std::array<ShippedPreset, 5> kPresets = {{
    {"commit-message",
     R"(# git diff --staged | vllmcli run --preset commit-message
description = "write a Git commit message for a diff"
prompt = """
Write a Git commit message for the diff below. The first line is a summary in the imperative mood, at most 72
characters long and without a period. After an empty line, say in one to three sentences why the change was made, as far
as the diff shows it. Print only the commit message.

{input}"""
temperature = 0.2
)"},
    {"explain", R"(# vllmcli chat --preset explain, or: vllmcli run --preset explain 'tar -xzf a.tgz'
description = "explain text, code, commands and error messages"
system = """
You explain things to {audience}. When you are given a text, code, a command or an error message, say first in one \
sentence what it is. Then explain its parts in the order in which they matter. Define each term that the reader may \
not know. Use short sentences. If something is not clear from what you were given, say so."""

[variables]
audience = "a curious reader without special knowledge"
)"},
    {"extract", R"(# vllmcli run --preset extract -p fields='name, date, amount' <letter.txt
description = "extract the given fields from text, as JSON"
prompt = """
Extract these fields from the text below: {fields}. Print one JSON object that has exactly these fields as keys. Copy the
values from the text. Use null for a field that the text does not contain. Print only the JSON object.

Text:
{input}"""
temperature = 0
)"},
    {"summarize",
     R"(# vllmcli run --preset summarize -p length='three bullet points' <report.txt
description = "summarize text"
prompt = """
Summarize the text below in {length}. Keep the most important facts, names and numbers. Add nothing that the text does
not say. Print only the summary.

Text:
{input}"""
temperature = 0.2

[variables]
length = "one short paragraph"
)"},
    {"translate", R"(# vllmcli batch texts.txt --preset translate -p language=French
description = "translate text"
prompt = """
Translate the text below into {language}. Keep its meaning, tone and formatting. Do not translate code or names. Print
only the translation.

Text:
{input}"""
temperature = 0.2

[variables]
language = "English"
)"},
}};

}  // namespace

std::span<const ShippedPreset> ShippedPresets() { return kPresets; }

}  // namespace vllm::app
