#include "app/markdown/code_lexer.h"

#include <algorithm>
#include <array>
#include <string>

#include "tokenizer/unicode/ascii.h"

namespace vllm::app {

struct CodeLanguage {
  std::string_view names;          // separated by spaces
  std::string_view line_comments;  // separated by spaces
  std::string_view block_begin;    // empty: no block comments
  std::string_view block_end;
  std::string_view quotes;       // separated by spaces; one of three characters, or a backquote, may span lines
  std::string_view word_extras;  // characters of words besides letters, digits and '_'
  bool ignores_case;
  bool is_diff;
  std::string_view keywords;  // separated by spaces, in lower case if the language ignores case
};

namespace {

constexpr std::string_view kCKeywords =
    "alignas alignof auto bool break case catch char class co_await co_return co_yield concept const const_cast "
    "consteval constexpr constinit continue decltype default delete do double dynamic_cast else enum explicit export "
    "extern false final float for friend goto if inline int int16_t int32_t int64_t int8_t long mutable namespace new "
    "noexcept nullptr operator override private protected public register reinterpret_cast requires return short "
    "signed size_t sizeof static static_assert static_cast struct switch template this throw true try typedef typeid "
    "typename uint16_t uint32_t uint64_t uint8_t union unsigned using virtual void volatile while NULL #define #elif "
    "#else #endif #if #ifdef #ifndef #include #pragma #undef";
constexpr std::string_view kScriptKeywords =
    "abstract any as async await bigint boolean break case catch class const constructor continue debugger declare "
    "default delete do else enum export extends false finally for from function get if implements import in infer "
    "instanceof interface keyof let namespace never new null number of private protected public readonly return set "
    "static string super switch symbol this throw true try type typeof undefined unknown var void while with yield";
constexpr std::string_view kShellKeywords =
    "alias break case cd continue declare do done echo elif else esac eval exec exit export fi for function if in "
    "local printf read readonly return select set shift source test then trap unset until while";

constexpr std::array kLanguages = {
    CodeLanguage{"c c++ cpp cc cxx h hpp cuda objc arduino", "//", "/*", "*/", "\" '", "#", false, false, kCKeywords},
    CodeLanguage{"python py python3 py3 pycon ipython", "#", "", "", "\"\"\" ''' \" '", "", false, false,
                 "False None True and as assert async await break case class continue def del elif else except finally "
                 "for from global if import in is lambda match nonlocal not or pass raise return self try while with "
                 "yield"},
    CodeLanguage{"javascript js jsx typescript ts tsx mjs node", "//", "/*", "*/", "` \" '", "$", false, false,
                 kScriptKeywords},
    CodeLanguage{"java", "//", "/*", "*/", "\"\"\" \" '", "", false, false,
                 "abstract assert boolean break byte case catch char class const continue default do double else enum "
                 "extends false final finally float for if implements import instanceof int interface long native new "
                 "null package private protected public record return sealed short static super switch synchronized "
                 "this throw throws transient true try var void volatile while yield"},
    CodeLanguage{"csharp cs c#", "//", "/*", "*/", "\"\"\" \" '", "", false, false,
                 "abstract as async await base bool break byte case catch char class const continue decimal default "
                 "delegate do double else enum event explicit extern false finally float for foreach get goto if "
                 "implicit in int interface internal is lock long namespace new null object operator out override "
                 "params private protected public readonly record ref return sbyte sealed set short sizeof static "
                 "string struct switch this throw true try typeof uint ulong using var virtual void volatile while "
                 "yield"},
    CodeLanguage{"go golang", "//", "/*", "*/", "` \" '", "", false, false,
                 "any bool break byte case chan const continue default defer else error fallthrough false float32 "
                 "float64 for func go goto if import int int32 int64 interface map nil package range return rune "
                 "select string struct switch true type uint uint64 var"},
    CodeLanguage{
        "rust rs", "//", "/*", "*/", "\"", "", false, false,
        "as async await bool box break char const continue crate dyn else enum extern f32 f64 false fn for i16 "
        "i32 i64 i8 if impl in isize let loop match mod move mut pub ref return self Self static str String "
        "struct super trait true type u16 u32 u64 u8 unsafe use usize where while"},
    CodeLanguage{"swift kotlin kt scala groovy dart", "//", "/*", "*/", "\"\"\" \" '", "", false, false,
                 "abstract actor as async await break by case catch class companion const continue data def default "
                 "defer do else enum extends extension false final finally for fun func guard if implicit import in "
                 "init inout interface internal is it lateinit lazy let match mutating nil null object open operator "
                 "override package private protected protocol public return sealed self Self static struct super "
                 "suspend switch this throw throws trait true try type typealias val var void when where while with "
                 "yield"},
    CodeLanguage{"bash sh shell zsh console shell-session", "#", "", "", "\" '", "-", false, false, kShellKeywords},
    CodeLanguage{"powershell ps1 pwsh", "#", "<#", "#>", "\" '", "-", true, false,
                 "begin break catch class continue do else elseif end exit filter finally for foreach function if in "
                 "param process return switch throw trap try until while"},
    CodeLanguage{"sql mysql postgresql postgres sqlite plsql", "--", "/*", "*/", "' \"", "", true, false,
                 "add all alter and any as asc begin between bigint boolean by case check column commit constraint "
                 "count create cross database date default delete desc distinct drop else end exists foreign from full "
                 "group having if in index inner insert int integer into is join key left like limit not null numeric "
                 "offset on or order outer primary references returning right rollback select set sum table text then "
                 "timestamp union unique update using values varchar view when where with"},
    CodeLanguage{"json json5 jsonc jsonl", "//", "", "", "\"", "", false, false, "false null true"},
    CodeLanguage{"yaml yml", "#", "", "", "\" '", "-", false, false, "false no null off on true yes"},
    CodeLanguage{"toml ini cfg conf properties dosini", "# ;", "", "", "\"\"\" \" '", "-", false, false,
                 "false off on true"},
    CodeLanguage{"dockerfile docker", "#", "", "", "\" '", "", false, false,
                 "ADD ARG AS CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL RUN SHELL USER VOLUME WORKDIR"},
    CodeLanguage{"makefile make mk", "#", "", "", "\" '", "-.", false, false,
                 ".PHONY define else endef endif export ifdef ifeq ifndef ifneq include override"},
    CodeLanguage{"cmake", "#", "", "", "\"", "", true, false,
                 "add_compile_options add_executable add_library add_subdirectory cmake_minimum_required else elseif "
                 "endforeach endfunction endif find_package foreach function if include install message option project "
                 "return set target_include_directories target_link_libraries"},
    CodeLanguage{"html xml svg xhtml vue", "", "<!--", "-->", "\"", "-:", true, false,
                 "a article aside body button canvas div dl form h1 h2 h3 h4 h5 h6 head header html iframe img input "
                 "label li link main meta nav ol option p path script section select span style svg table tbody td "
                 "template textarea th thead title tr ul"},
    CodeLanguage{"css scss less", "//", "/*", "*/", "\" '", "-@#.", false, false,
                 "@import @keyframes @media @supports absolute auto block center fixed flex grid hidden important "
                 "inherit initial inline none relative solid"},
    CodeLanguage{
        "php", "// #", "/*", "*/", "\" '", "$", false, false,
        "abstract and array as break case catch class clone const continue declare default do echo else elseif "
        "endforeach endif extends false final finally fn for foreach function global if implements include "
        "instanceof interface isset match namespace new null or print private protected public readonly "
        "require require_once return self static string switch this throw trait true try unset use var void "
        "while yield"},
    CodeLanguage{"ruby rb", "#", "=begin", "=end", "\" ' `", "?!", false, false,
                 "alias and attr_accessor attr_reader begin break case class def do else elsif end ensure extend false "
                 "for if in include lambda module next nil not or private proc puts raise redo require rescue retry "
                 "return self super then true undef unless until when while yield"},
    CodeLanguage{"lua", "--", "--[[", "]]", "\" '", "", false, false,
                 "and break do else elseif end false for function goto if in local nil not or repeat return then true "
                 "until while"},
    CodeLanguage{"perl pl", "#", "=pod", "=cut", "\" '", "$@%", false, false,
                 "die do else elsif eval for foreach if last local my next our package print printf push redo require "
                 "return shift sub unless until use while"},
    CodeLanguage{"r julia jl", "#", "#=", "=#", "\"\"\" \" '", ".", false, false,
                 "FALSE NA NULL TRUE abstract begin break const do else elseif end export false for function if import "
                 "in let library local macro missing module mutable next nothing quote repeat return struct true try "
                 "using where while"},
    CodeLanguage{"haskell hs elm", "--", "{-", "-}", "\"", "'", false, false,
                 "case class data deriving do else if import in infix instance let module newtype of then type where"},
    CodeLanguage{
        "lisp scheme clojure clj elisp racket", ";", "#|", "|#", "\"", "-?!*", false, false,
        "cond def defmacro defn defun define do else false fn if lambda let let* loop nil ns progn quote recur "
        "require set! setq true unless when"},
    CodeLanguage{"tex latex", "%", "", "", "", "\\", false, false,
                 "\\begin \\end \\section \\subsection \\documentclass \\usepackage \\newcommand \\item \\label \\ref "
                 "\\frac \\sum \\int"},
    CodeLanguage{"diff patch", "", "", "", "", "", false, true, ""},
};

bool IsWordCharacter(char c, const CodeLanguage& language) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80 || language.word_extras.find(c) != std::string_view::npos;
}

// Calls `f` with each word of `list` and its index until it returns true. Returns whether it did.
template <typename F>
bool AnyWord(std::string_view list, F f) {
  size_t index = 0;
  for (size_t begin = 0; begin < list.size(); ++index) {
    const size_t end = std::min(list.find(' ', begin), list.size());
    if (f(list.substr(begin, end - begin), index)) return true;
    begin = end + 1;
  }
  return false;
}

bool IsKeyword(const CodeLanguage& language, std::string_view word) {
  constexpr size_t kMaxKeywordBytes = 32;
  if (word.size() > kMaxKeywordBytes) return false;
  const std::string lower = language.ignores_case ? tokenizer::LowerAscii(word) : std::string(word);
  return AnyWord(language.keywords, [&](std::string_view keyword, size_t) { return keyword == lower; });
}

// A string of this quote may continue on the next line.
bool SpansLines(std::string_view quote) { return quote.size() == 3 || quote == "`"; }

std::string_view QuoteAt(const CodeLanguage& language, size_t index) {
  std::string_view found;
  AnyWord(language.quotes, [&](std::string_view quote, size_t i) {
    found = quote;
    return i == index;
  });
  return found;
}

// Returns the end of the string whose first quote ends at `i`. Sets `ends` if the line has its last quote.
size_t EndOfString(std::string_view line, size_t i, std::string_view quote, bool& ends) {
  while (i < line.size()) {
    if (line[i] == '\\') {
      i = std::min(i + 2, line.size());
    } else if (line.substr(i).starts_with(quote)) {
      ends = true;
      return i + quote.size();
    } else {
      ++i;
    }
  }
  ends = false;
  return line.size();
}

CodeTokenKind DiffKind(std::string_view line) {
  if (line.starts_with("+")) return CodeTokenKind::kAdded;
  if (line.starts_with("-")) return CodeTokenKind::kRemoved;
  if (line.starts_with("@@") || line.starts_with("diff ")) return CodeTokenKind::kKeyword;
  return CodeTokenKind::kPlain;
}

}  // namespace

const CodeLanguage* FindCodeLanguage(std::string_view info) {
  const size_t begin = info.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return nullptr;
  info = info.substr(begin, info.find_first_of(" \t,{:", begin) - begin);
  constexpr size_t kMaxNameBytes = 20;
  if (info.empty() || info.size() > kMaxNameBytes) return nullptr;
  const std::string name = tokenizer::LowerAscii(info);
  for (const CodeLanguage& language : kLanguages) {
    if (AnyWord(language.names, [&](std::string_view known, size_t) { return known == name; })) return &language;
  }
  return nullptr;
}

std::vector<CodeToken> LexCodeLine(const CodeLanguage* language, std::string_view line, CodeState& state) {
  std::vector<CodeToken> tokens;
  const auto add = [&tokens](size_t begin, size_t end, CodeTokenKind kind) {
    if (begin == end) return;
    if (!tokens.empty() && tokens.back().kind == kind) {
      tokens.back().end = end;
    } else {
      tokens.push_back({begin, end, kind});
    }
  };
  if (language == nullptr) {
    add(0, line.size(), CodeTokenKind::kPlain);
    return tokens;
  }
  if (language->is_diff) {
    add(0, line.size(), DiffKind(line));
    return tokens;
  }
  size_t i = 0;
  const auto lex_block_comment = [&](size_t begin, size_t from) {
    const size_t end = line.find(language->block_end, from);
    state = end == std::string_view::npos ? 1 : 0;
    i = state == 1 ? line.size() : end + language->block_end.size();
    add(begin, i, CodeTokenKind::kComment);
  };
  const auto lex_string = [&](size_t begin, size_t from, std::string_view quote, size_t index) {
    bool ends = false;
    i = EndOfString(line, from, quote, ends);
    state = !ends && SpansLines(quote) ? static_cast<CodeState>(2 + index) : CodeState{0};
    add(begin, i, CodeTokenKind::kString);
  };
  if (state == 1) {
    lex_block_comment(0, 0);
  } else if (state > 1) {
    lex_string(0, 0, QuoteAt(*language, state - 2u), state - 2u);
  }
  while (i < line.size()) {
    const std::string_view rest = line.substr(i);
    const bool after_word = i > 0 && IsWordCharacter(line[i - 1], *language);
    if (!language->block_begin.empty() && rest.starts_with(language->block_begin)) {
      lex_block_comment(i, i + language->block_begin.size());
      continue;
    }
    const bool is_comment = AnyWord(language->line_comments, [&](std::string_view begin, size_t) {
      // "$#" and "a#b" are no comments in shells, nor is "://" in a URL.
      const bool inside_word = begin == "#" ? i > 0 && line[i - 1] != ' ' && line[i - 1] != '\t' && line[i - 1] != ')'
                                            : i > 0 && line[i - 1] == ':';
      return rest.starts_with(begin) && !inside_word;
    });
    if (is_comment) {
      add(i, line.size(), CodeTokenKind::kComment);
      break;
    }
    const size_t begin = i;
    const bool is_string = AnyWord(language->quotes, [&](std::string_view quote, size_t index) {
      if (!rest.starts_with(quote)) return false;
      // An apostrophe inside a word or a number, such as 1'000, begins no string, except after a prefix in Python.
      if (quote == "'" && after_word && language->quotes.find("'''") == std::string_view::npos) return false;
      lex_string(begin, begin + quote.size(), quote, index);
      return true;
    });
    if (is_string) continue;
    if (IsWordCharacter(line[i], *language)) {
      while (i < line.size() && IsWordCharacter(line[i], *language)) ++i;
      const std::string_view word = line.substr(begin, i - begin);
      const bool is_number = word[0] >= '0' && word[0] <= '9';
      if (is_number) {
        while (i < line.size() && (line[i] == '.' || IsWordCharacter(line[i], *language))) ++i;
      }
      add(begin, i,
          is_number                    ? CodeTokenKind::kNumber
          : IsKeyword(*language, word) ? CodeTokenKind::kKeyword
                                       : CodeTokenKind::kPlain);
      continue;
    }
    add(begin, ++i, CodeTokenKind::kPlain);
  }
  return tokens;
}

}  // namespace vllm::app
