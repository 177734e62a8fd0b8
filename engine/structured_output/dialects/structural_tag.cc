#include "engine/structured_output/dialects/structural_tag.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/structured_output/dialects/free_text.h"
#include "engine/structured_output/dialects/grammar_dialect.h"
#include "engine/structured_output/dialects/grammar_tree.h"
#include "engine/structured_output/patterns/pattern.h"

namespace vllm {
namespace {

using Json = nlohmann::ordered_json;
using NodeId = GrammarTree::NodeId;

constexpr size_t kMaxBytes = size_t{4} << 20;
constexpr int kMaxJsonDepth = 512;
constexpr int64_t kMaxRepeat = int64_t{1} << 20;

[[noreturn]] void Fail(const std::string& path, const std::string& why) {
  throw RequestError("structural tag: " + (path.empty() ? "" : path + ": ") + why);
}

Json Parse(std::string_view text) {
  if (text.size() > kMaxBytes) {
    Fail("", "too long (" + std::to_string(text.size()) + " bytes, limit " + std::to_string(kMaxBytes) + ")");
  }
  const auto check_depth = [](int depth, Json::parse_event_t, Json&) {
    if (depth > kMaxJsonDepth) Fail("", "nested too deeply (limit " + std::to_string(kMaxJsonDepth) + ")");
    return true;
  };
  try {
    return Json::parse(text, check_depth);
  } catch (const Json::exception&) {
    Fail("", "not valid JSON");
  }
}

// The ends of the tags around a format, which its free text does not contain.
struct Ends {
  std::vector<std::string> texts;
  NamedTokens tokens;
};

struct Tag {
  std::string begin;
  NodeId rest;  // the content and the end
  NodeId whole;
};

class StructuralTagReader {
 public:
  StructuralTagReader(GrammarBuilder& builder, const GrammarVocabulary& vocabulary, const JsonSchemaOptions& options)
      : builder_(builder), store_(builder.regexes()), vocabulary_(vocabulary), options_(options) {}

  SymbolId Read(const Json& root) {
    if (!root.is_object()) Fail("", "must be an object");
    if (root.contains("type") && root["type"] != "structural_tag") Fail("type", "must be structural_tag");
    NodeId node = 0;
    if (root.contains("structures")) {
      CheckKeys(root, "", {"structures", "triggers"});
      node = Structures(root);
    } else {
      CheckKeys(root, "", {"format"});
      node = Format(Member(root, "", "format"), "format", {}, 0);
    }
    return AddGrammarTree(builder_, tree_, node);
  }

 private:
  static std::string Child(const std::string& path, const std::string& key) {
    return path.empty() ? key : path + "." + key;
  }
  static std::string Child(const std::string& path, size_t index) { return path + "[" + std::to_string(index) + "]"; }

  static void CheckKeys(const Json& json, const std::string& path, std::initializer_list<std::string_view> keys) {
    for (const auto& [key, value] : json.items()) {
      if (key != "type" && std::ranges::find(keys, key) == keys.end()) {
        Fail(Child(path, Escape(key, 64)), "not supported");
      }
    }
  }
  static const Json& Member(const Json& json, const std::string& path, const std::string& key) {
    const auto it = json.find(key);
    if (it == json.end()) Fail(Child(path, key), "missing");
    return *it;
  }
  static const Json& ListMember(const Json& json, const std::string& path, const std::string& key) {
    const Json& list = Member(json, path, key);
    if (!list.is_array()) Fail(Child(path, key), "must be a list");
    return list;
  }
  static std::string TextMember(const Json& json, const std::string& path, const std::string& key) {
    const Json& text = Member(json, path, key);
    if (!text.is_string()) Fail(Child(path, key), "must be a string");
    return text.get<std::string>();
  }
  static bool SwitchMember(const Json& json, const std::string& path, const std::string& key, bool otherwise) {
    const auto it = json.find(key);
    if (it == json.end()) return otherwise;
    if (!it->is_boolean()) Fail(Child(path, key), "must be true or false");
    return it->get<bool>();
  }
  // Reads a list of strings, which must not be empty. A list that is missing is empty.
  static std::vector<std::string> Texts(const Json& json, const std::string& path, const std::string& key) {
    std::vector<std::string> texts;
    if (!json.contains(key)) return texts;
    const Json& list = ListMember(json, path, key);
    for (size_t i = 0; i < list.size(); ++i) {
      if (!list[i].is_string() || list[i] == "") Fail(Child(Child(path, key), i), "must be a text");
      texts.push_back(list[i].get<std::string>());
    }
    return texts;
  }

  // Reads the id or the text of a token.
  NamedTokens Token(const Json& json, const std::string& path) const {
    try {
      if (json.is_string()) return TokensOfName(vocabulary_, json.get<std::string>());
      if (json.is_number_unsigned() && json.get<uint64_t>() <= INT32_MAX) {
        const auto id = static_cast<int32_t>(json.get<uint64_t>());
        return TokensOfRange(vocabulary_, {id, id});
      }
    } catch (const UnknownTokenError& error) {
      Fail(path, error.what());
    }
    Fail(path, "must be the id or the text of a token");
  }
  NamedTokens Tokens(const Json& json, const std::string& path, const std::string& key) const {
    NamedTokens tokens;
    if (!json.contains(key)) return tokens;
    const Json& list = ListMember(json, path, key);
    for (size_t i = 0; i < list.size(); ++i) tokens.Append(Token(list[i], Child(Child(path, key), i)));
    return tokens;
  }

  NodeId Literal(std::string_view text) { return tree_.AddRegex(store_.Literal(text)); }
  NodeId Many(NodeId node) { return tree_.AddRepeat(node, 0, GrammarBuilder::kUnbounded); }
  NodeId Optional(NodeId node) { return tree_.AddRepeat(node, 0, 1); }

  NodeId Format(const Json& json, const std::string& path, const Ends& ends, int depth) {
    if (depth > GrammarTree::kMaxDepth) {
      Fail("", "nested too deeply (limit " + std::to_string(GrammarTree::kMaxDepth) + ")");
    }
    if (!json.is_object()) Fail(path, "must be an object");
    const std::string type = TextMember(json, path, "type");
    if (type == "sequence" || type == "or") return List(json, path, type, ends, depth);
    if (type == "optional" || type == "plus" || type == "star" || type == "repeat") {
      return Repetition(json, path, type, ends, depth);
    }
    if (type == "tag") return ReadTag(json, path, depth).whole;
    if (type == "triggered_tags") return TriggeredTags(json, path, ends, depth);
    if (type == "token_triggered_tags") return TokenTriggeredTags(json, path, ends, depth);
    if (type == "tags_with_separator") return TagsWithSeparator(json, path, depth);
    if (type == "dispatch" || type == "token_dispatch") return Dispatch(json, path, type, ends, depth);
    return Primitive(json, path, type, ends);
  }

  NodeId Primitive(const Json& json, const std::string& path, const std::string& type, const Ends& ends) {
    if (type == "const_string") {
      CheckKeys(json, path, {"value"});
      return Literal(TextMember(json, path, "value"));
    }
    if (type == "json_schema") return Schema(json, path);
    if (type == "grammar") {
      CheckKeys(json, path, {"grammar"});
      try {
        return tree_.AddSymbol(AddGrammarText(builder_, TextMember(json, path, "grammar"), vocabulary_, options_));
      } catch (const RequestError& error) {
        Fail(path, error.what());
      }
    }
    if (type == "regex") {
      CheckKeys(json, path, {"pattern"});
      try {
        return tree_.AddRegex(ParsePattern(store_, TextMember(json, path, "pattern"), PatternSyntax::kRe2,
                                           PatternMatch::kWhole, TextSpelling::kUtf8));
      } catch (const RequestError& error) {
        Fail(Child(path, "pattern"), error.what());
      }
    }
    if (type == "any_text") {
      CheckKeys(json, path, {"excludes"});
      return tree_.AddRegex(FreeText(Texts(json, path, "excludes"), ends));
    }
    if (type == "token") {
      CheckKeys(json, path, {"token"});
      return AddOneOfTokens(builder_, tree_, Token(Member(json, path, "token"), Child(path, "token")));
    }
    if (type == "any_tokens") {
      CheckKeys(json, path, {"exclude_tokens"});
      return AnyTokens(Tokens(json, path, "exclude_tokens"), ends, 0);
    }
    // One token may have any number of bytes, so text does not show where it ends.
    if (type == "exclude_token") Fail(path, "exclude_token is supported only in plus and star");
    Fail(Child(path, "type"), Escape(type, 64) + " is not supported");
  }

  NodeId Schema(const Json& json, const std::string& path) {
    CheckKeys(json, path, {"json_schema", "style", "any_order"});
    if (json.contains("style") && json["style"] != "json") Fail(Child(path, "style"), "only json is supported");
    JsonSchemaOptions options = options_;
    options.any_order = SwitchMember(json, path, "any_order", options.any_order);
    return SchemaOf(Member(json, path, "json_schema"), Child(path, "json_schema"), options);
  }
  NodeId SchemaOf(const Json& schema, const std::string& path, const JsonSchemaOptions& options) {
    try {
      return tree_.AddSymbol(AddJsonSchema(builder_, schema.dump(), options));
    } catch (const RequestError& error) {
      Fail(path, error.what());
    }
  }

  // Text without any of the strings and without the ends.
  RegexId FreeText(std::vector<std::string> excluded, const Ends& ends) {
    excluded.insert(excluded.end(), ends.texts.begin(), ends.texts.end());
    return TextWithout(store_, excluded);
  }
  NodeId AnyTokens(NamedTokens excluded, const Ends& ends, uint32_t min) {
    excluded.Append(ends.tokens);
    excluded.texts.insert(excluded.texts.end(), ends.texts.begin(), ends.texts.end());
    return AddAnyTokens(builder_, tree_, vocabulary_, excluded, min);
  }

  NodeId List(const Json& json, const std::string& path, const std::string& type, const Ends& ends, int depth) {
    CheckKeys(json, path, {"elements"});
    const Json& elements = ListMember(json, path, "elements");
    const std::string list_path = Child(path, "elements");
    if (elements.empty()) Fail(list_path, "must not be empty");
    std::vector<NodeId> parts;
    for (size_t i = 0; i < elements.size(); ++i) {
      // In a sequence, only the last part is before the end of the tag.
      const bool is_before_end = type == "or" || i + 1 == elements.size();
      parts.push_back(Format(elements[i], Child(list_path, i), is_before_end ? ends : Ends(), depth + 1));
    }
    return type == "or" ? tree_.AddAlternatives(std::move(parts)) : tree_.AddSequence(std::move(parts));
  }

  NodeId Repetition(const Json& json, const std::string& path, const std::string& type, const Ends& ends, int depth) {
    int64_t min = type == "plus" ? 1 : 0;
    int64_t max = type == "optional" ? 1 : -1;
    if (type == "repeat") {
      CheckKeys(json, path, {"content", "min", "max"});
      for (const auto& [key, value] : {std::pair("min", &min), std::pair("max", &max)}) {
        const Json& number = Member(json, path, key);
        if (!number.is_number_integer()) Fail(Child(path, key), "must be an integer");
        *value = number.is_number_unsigned() && number.get<uint64_t>() > INT64_MAX ? INT64_MAX : number.get<int64_t>();
        if (*value > kMaxRepeat) Fail(Child(path, key), "too large (limit " + std::to_string(kMaxRepeat) + ")");
      }
      if (min < 0 || max < -1 || (max != -1 && max < min)) Fail(path, "min and max are not a range");
    } else {
      CheckKeys(json, path, {"content"});
    }
    const Json& content = Member(json, path, "content");
    const std::string content_path = Child(path, "content");
    if (content.is_object() && content.value("type", Json()) == "exclude_token" && min <= 1 && max == -1) {
      CheckKeys(content, content_path, {"exclude_tokens"});
      return AnyTokens(Tokens(content, content_path, "exclude_tokens"), ends, static_cast<uint32_t>(min));
    }
    return tree_.AddRepeat(Format(content, content_path, ends, depth + 1), static_cast<uint32_t>(min),
                           max == -1 ? GrammarBuilder::kUnbounded : static_cast<uint32_t>(max));
  }

  // Returns the begin of a tag as a node. `text` is its text, or "" if it is a token.
  NodeId Begin(const Json& json, const std::string& path, std::string& text) {
    const Json& begin = Member(json, path, "begin");
    if (begin.is_object()) return TokenOf(begin, Child(path, "begin"), nullptr);
    text = TextMember(json, path, "begin");
    return Literal(text);
  }
  NodeId TokenOf(const Json& json, const std::string& path, NamedTokens* tokens) {
    CheckKeys(json, path, {"token"});
    if (json.contains("type") && json["type"] != "token") Fail(Child(path, "type"), "must be token");
    const NamedTokens token = Token(Member(json, path, "token"), Child(path, "token"));
    if (tokens != nullptr) *tokens = token;
    return AddOneOfTokens(builder_, tree_, token);
  }

  Tag ReadTag(const Json& json, const std::string& path, int depth) {
    if (!json.is_object()) Fail(path, "must be an object");
    if (json.contains("type") && json["type"] != "tag") Fail(Child(path, "type"), "must be tag");
    CheckKeys(json, path, {"begin", "content", "end"});
    Tag tag;
    const NodeId begin = Begin(json, path, tag.begin);
    Ends ends;
    NodeId end_node = 0;
    const Json& end = Member(json, path, "end");
    if (end.is_object()) {
      end_node = TokenOf(end, Child(path, "end"), &ends.tokens);
    } else if (end.is_array()) {
      ends.texts = Texts(json, path, "end");
      if (ends.texts.empty()) Fail(Child(path, "end"), "must not be empty");
      end_node = tree_.AddRegex(store_.Literals(ends.texts));
    } else {
      const std::string text = TextMember(json, path, "end");
      if (!text.empty()) ends.texts.push_back(text);
      end_node = Literal(text);
    }
    const NodeId content = Format(Member(json, path, "content"), Child(path, "content"), ends, depth + 1);
    tag.rest = tree_.AddSequence({content, end_node});
    tag.whole = tree_.AddSequence({begin, tag.rest});
    return tag;
  }

  std::vector<Tag> Tags(const Json& json, const std::string& path, int depth) {
    const Json& list = ListMember(json, path, "tags");
    if (list.empty()) Fail(Child(path, "tags"), "must not be empty");
    std::vector<Tag> tags;
    for (size_t i = 0; i < list.size(); ++i) tags.push_back(ReadTag(list[i], Child(Child(path, "tags"), i), depth + 1));
    return tags;
  }
  NodeId OneOf(const std::vector<Tag>& tags) {
    std::vector<NodeId> nodes;
    for (const Tag& tag : tags) nodes.push_back(tag.whole);
    return tree_.AddAlternatives(std::move(nodes));
  }

  struct Counts {
    bool at_least_one, stop_after_first;
  };
  static Counts CountsOf(const Json& json, const std::string& path) {
    return {SwitchMember(json, path, "at_least_one", false), SwitchMember(json, path, "stop_after_first", false)};
  }

  // Free text, and parts that free text leads to. As in xgrammar, no text is before the first part that must be there.
  NodeId Mixed(NodeId first, NodeId later, NodeId text, const Counts& counts) {
    if (counts.stop_after_first) return counts.at_least_one ? first : tree_.AddAlternatives({text, later});
    const NodeId rest = tree_.AddSequence({Many(later), text});
    return counts.at_least_one ? tree_.AddSequence({first, rest}) : rest;
  }

  // Text up to the first trigger, which is `trigger`, and with it.
  NodeId Head(const std::vector<std::string>& triggers, const std::string& trigger,
              const std::vector<std::string>& excluded, const Ends& ends) {
    const RegexId text = FreeText(excluded, ends);
    const RegexId any = TextWithout(store_, {});
    const RegexId first = ShortestTexts(store_, store_.Concat(any, store_.Literals(triggers)));
    return tree_.AddRegex(store_.And({text, first, store_.Concat(any, store_.Literal(trigger))}));
  }

  NodeId Triggered(const std::vector<std::string>& triggers, const std::vector<Tag>& tags, const std::string& path,
                   std::vector<std::string> excluded, const Ends& ends, const Counts& counts) {
    std::vector<std::vector<NodeId>> rests(triggers.size());
    for (size_t i = 0; i < tags.size(); ++i) {
      bool has_trigger = false;
      for (size_t t = 0; t < triggers.size(); ++t) {
        if (!tags[i].begin.starts_with(triggers[t])) continue;
        has_trigger = true;
        rests[t].push_back(
            tree_.AddSequence({Literal(std::string_view(tags[i].begin).substr(triggers[t].size())), tags[i].rest}));
      }
      if (!has_trigger) Fail(Child(path, i), "no trigger is at the start of begin");
    }
    std::vector<NodeId> ways;
    for (size_t t = 0; t < triggers.size(); ++t) {
      if (rests[t].empty()) continue;
      const NodeId head = Head(triggers, triggers[t], excluded, ends);
      ways.push_back(tree_.AddSequence({head, tree_.AddAlternatives(std::move(rests[t]))}));
    }
    excluded.insert(excluded.end(), triggers.begin(), triggers.end());
    const NodeId text = tree_.AddRegex(FreeText(std::move(excluded), ends));
    return Mixed(OneOf(tags), tree_.AddAlternatives(std::move(ways)), text, counts);
  }

  NodeId TriggeredTags(const Json& json, const std::string& path, const Ends& ends, int depth) {
    CheckKeys(json, path, {"triggers", "tags", "at_least_one", "stop_after_first", "excludes"});
    const std::vector<std::string> triggers = TriggersOf(json, path);
    return Triggered(triggers, Tags(json, path, depth), Child(path, "tags"), Texts(json, path, "excludes"), ends,
                     CountsOf(json, path));
  }
  static std::vector<std::string> TriggersOf(const Json& json, const std::string& path) {
    std::vector<std::string> triggers = Texts(json, path, "triggers");
    if (triggers.empty()) Fail(Child(path, "triggers"), "must not be empty");
    std::ranges::sort(triggers);
    triggers.erase(std::unique(triggers.begin(), triggers.end()), triggers.end());
    return triggers;
  }

  // The older form.
  NodeId Structures(const Json& root) {
    const std::vector<std::string> triggers = TriggersOf(root, "");
    const Json& list = ListMember(root, "", "structures");
    if (list.empty()) Fail("structures", "must not be empty");
    std::vector<Tag> tags;
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string path = Child("structures", i);
      if (!list[i].is_object()) Fail(path, "must be an object");
      CheckKeys(list[i], path, {"begin", "schema", "end"});
      Tag tag;
      const NodeId begin = Literal(tag.begin = TextMember(list[i], path, "begin"));
      const NodeId schema = SchemaOf(Member(list[i], path, "schema"), Child(path, "schema"), options_);
      tag.rest = tree_.AddSequence({schema, Literal(TextMember(list[i], path, "end"))});
      tag.whole = tree_.AddSequence({begin, tag.rest});
      tags.push_back(std::move(tag));
    }
    return Triggered(triggers, tags, "structures", {}, {}, {false, false});
  }

  NodeId TokenTriggeredTags(const Json& json, const std::string& path, const Ends& ends, int depth) {
    CheckKeys(json, path, {"trigger_tokens", "tags", "at_least_one", "stop_after_first", "exclude_tokens"});
    NamedTokens excluded = Tokens(json, path, "trigger_tokens");
    if (excluded.ranges.empty() && excluded.texts.empty()) Fail(Child(path, "trigger_tokens"), "must not be empty");
    excluded.Append(Tokens(json, path, "exclude_tokens"));
    const std::vector<Tag> tags = Tags(json, path, depth);
    for (size_t i = 0; i < tags.size(); ++i) {
      // Begins that are not triggers would be free text.
      const Json& begin = json["tags"][i]["begin"];
      const Json& triggers = json["trigger_tokens"];
      const bool is_trigger = begin.is_object() && std::ranges::find(triggers, begin["token"]) != triggers.end();
      if (!is_trigger) Fail(Child(Child(path, "tags"), i), "begin is not one of trigger_tokens");
    }
    const NodeId text = AnyTokens(std::move(excluded), ends, 0);
    const NodeId tag = OneOf(tags);
    return Mixed(tag, tree_.AddSequence({text, tag}), text, CountsOf(json, path));
  }

  NodeId TagsWithSeparator(const Json& json, const std::string& path, int depth) {
    CheckKeys(json, path, {"tags", "separator", "at_least_one", "stop_after_first"});
    const NodeId tag = OneOf(Tags(json, path, depth));
    const NodeId separator = Literal(TextMember(json, path, "separator"));
    const Counts counts = CountsOf(json, path);
    const NodeId tags =
        counts.stop_after_first ? tag : tree_.AddSequence({tag, Many(tree_.AddSequence({separator, tag}))});
    return counts.at_least_one ? tags : Optional(tags);
  }

  NodeId Dispatch(const Json& json, const std::string& path, const std::string& type, const Ends& ends, int depth) {
    const bool has_tokens = type == "token_dispatch";
    CheckKeys(json, path, {"rules", "loop", has_tokens ? "exclude_tokens" : "excludes"});
    const Json& rules = ListMember(json, path, "rules");
    const std::string rules_path = Child(path, "rules");
    if (rules.empty()) Fail(rules_path, "must not be empty");
    std::vector<std::string> excluded;
    NamedTokens excluded_tokens;
    if (has_tokens) {
      excluded_tokens = Tokens(json, path, "exclude_tokens");
    } else {
      excluded = Texts(json, path, "excludes");
    }
    std::vector<std::string> triggers;
    std::vector<NodeId> tokens;
    for (size_t i = 0; i < rules.size(); ++i) {
      const std::string rule_path = Child(rules_path, i);
      if (!rules[i].is_array() || rules[i].size() != 2) Fail(rule_path, "must be a list of a pattern and a format");
      if (has_tokens) {
        const NamedTokens token = Token(rules[i][0], Child(rule_path, 0));
        excluded_tokens.Append(token);
        tokens.push_back(AddOneOfTokens(builder_, tree_, token));
      } else {
        if (!rules[i][0].is_string() || rules[i][0] == "") Fail(Child(rule_path, 0), "must be a text");
        triggers.push_back(rules[i][0].get<std::string>());
      }
    }
    const NodeId text = has_tokens ? AnyTokens(excluded_tokens, ends, 0) : FreeTextOf(excluded, triggers, ends);
    std::vector<NodeId> ways;
    for (size_t i = 0; i < rules.size(); ++i) {
      const NodeId format = Format(rules[i][1], Child(Child(rules_path, i), 1), ends, depth + 1);
      ways.push_back(has_tokens ? tree_.AddSequence({text, tokens[i], format})
                                : tree_.AddSequence({Head(triggers, triggers[i], excluded, ends), format}));
    }
    const NodeId part = tree_.AddAlternatives(std::move(ways));
    return Mixed(part, part, text, {false, !SwitchMember(json, path, "loop", true)});
  }
  NodeId FreeTextOf(std::vector<std::string> excluded, const std::vector<std::string>& triggers, const Ends& ends) {
    excluded.insert(excluded.end(), triggers.begin(), triggers.end());
    return tree_.AddRegex(FreeText(std::move(excluded), ends));
  }

  GrammarBuilder& builder_;
  RegexStore& store_;
  const GrammarVocabulary& vocabulary_;
  const JsonSchemaOptions& options_;
  GrammarTree tree_;
};

}  // namespace

SymbolId AddStructuralTag(GrammarBuilder& builder, std::string_view text, const GrammarVocabulary& vocabulary,
                          const JsonSchemaOptions& options) {
  return StructuralTagReader(builder, vocabulary, options).Read(Parse(text));
}

}  // namespace vllm
