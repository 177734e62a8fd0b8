#include "engine/structured_output/json_schema/string_format.h"

#include <array>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "engine/structured_output/patterns/pattern.h"

namespace vllm {
namespace {

// RFC 3339. Month lengths; the 29th of February in leap years.
constexpr char kDate[] =
    "(?:\\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|1\\d|2["
    "0-8]))"
    "|(?:\\d\\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)";
constexpr char kOffset[] = "(?:[zZ]|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)";
constexpr char kTime[] = "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d+)?";
// RFC 3339, appendix A.
constexpr char kDuration[] =
    "P(?:\\d+W|(?:\\d+D|\\d+M(?:\\d+D)?|\\d+Y(?:\\d+M(?:\\d+D)?)?)(?:T(?:\\d+H(?:\\d+M(?:\\d+S)?)?|\\d+M(?:\\d+S)?|\\d+"
    "S))?"
    "|T(?:\\d+H(?:\\d+M(?:\\d+S)?)?|\\d+M(?:\\d+S)?|\\d+S))";
constexpr char kIpv4[] = "(?:(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)\\.){3}(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
// RFC 1123. The whole is at most 253 characters long. A label does not have hyphens as its third and fourth characters:
// that is reserved for IDNA, and whether such a label is valid is not regular.
constexpr char kLabel[] =
    "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,2}[a-zA-Z0-9]"
    "|[a-zA-Z0-9-](?:[a-zA-Z0-9][a-zA-Z0-9-]|-[a-zA-Z0-9])[a-zA-Z0-9-]{0,58}[a-zA-Z0-9])?";
constexpr char kUuid[] = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}";
// RFC 5321, without folding white space.
constexpr char kEmailLocal[] =
    "(?:[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]+(?:\\.[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]+)*"
    "|\"(?:[ !#-\\[\\]-~]|\\\\[ -~])*\")";
constexpr char kJsonPointer[] = "(?:/(?:[^~/]|~[01])*)*";

// RFC 4291: eight groups, of which one run may be "::", and the last two may be an IPv4 address.
std::string Ipv6() {
  const std::string group = "[0-9a-fA-F]{1,4}";
  const std::string last = "(?:" + group + ":" + group + "|" + kIpv4 + ")";
  std::string out = "(?:(?:" + group + ":){6}" + last;
  for (int before = 0; before <= 7; ++before) {
    // `before` groups, "::", and up to 7 - before groups after it.
    std::string prefix = before == 0 ? "" : group + "(?::" + group + "){" + std::to_string(before - 1) + "}";
    const int max_after = 7 - before;
    std::vector<std::string> after = {""};
    if (max_after >= 1) {
      after.push_back("(?:" + group + ":){0," + std::to_string(max_after - 1) + "}" + group);
    }
    if (max_after >= 2) {
      after.push_back("(?:" + group + ":){0," + std::to_string(max_after - 2) + "}" + std::string(kIpv4));
    }
    std::string rest;
    for (const std::string& option : after) rest += (rest.empty() && option.empty() ? "" : "|") + option;
    out += "|" + prefix + "::(?:" + rest + ")";
  }
  return out + ")";
}

// RFC 3987: the characters outside ASCII that an IRI may have, and those that its query may have as well.
constexpr char kUcs[] =
    "\\u00A0-\\uD7FF\\uF900-\\uFDCF\\uFDF0-\\uFFEF\\u{10000}-\\u{1FFFD}\\u{20000}-\\u{2FFFD}\\u{30000}-\\u{3FFFD}"
    "\\u{40000}-\\u{4FFFD}\\u{50000}-\\u{5FFFD}\\u{60000}-\\u{6FFFD}\\u{70000}-\\u{7FFFD}\\u{80000}-\\u{8FFFD}"
    "\\u{90000}-\\u{9FFFD}\\u{A0000}-\\u{AFFFD}\\u{B0000}-\\u{BFFFD}\\u{C0000}-\\u{CFFFD}\\u{D0000}-\\u{DFFFD}"
    "\\u{E1000}-\\u{EFFFD}";
constexpr char kPrivateUse[] = "\\uE000-\\uF8FF\\u{F0000}-\\u{FFFFD}\\u{100000}-\\u{10FFFD}";

// RFC 3986, or RFC 3987 for IRIs.
std::string UriParts(bool with_scheme, bool is_iri) {
  const std::string escape = "%[0-9a-fA-F]{2}";
  const std::string ascii = "a-zA-Z0-9._~\\-";
  const std::string unreserved = ascii + (is_iri ? kUcs : "");
  const std::string private_use = is_iri ? kPrivateUse : "";
  const std::string sub = "!$&'()*+,;=";
  const std::string pchar = "(?:[" + unreserved + sub + ":@]|" + escape + ")";
  const std::string no_colon = "(?:[" + unreserved + sub + "@]|" + escape + ")";
  const std::string user = "(?:(?:[" + unreserved + sub + ":]|" + escape + ")*@)?";
  const std::string host = "(?:\\[(?:" + Ipv6() + "|[vV][0-9a-fA-F]+\\.[" + ascii + sub + ":]+)\\]|(?:[" + unreserved +
                           sub + "]|" + escape + ")*)";
  const std::string authority = "//" + user + host + "(?::\\d*)?";
  const std::string absolute = "/(?:" + pchar + "+(?:/" + pchar + "*)*)?";
  const std::string tail = "(?:\\?(?:" + pchar + "|[/?" + private_use + "])*)?(?:#(?:" + pchar + "|[/?])*)?";
  const std::string rootless = pchar + "+(?:/" + pchar + "*)*";
  const std::string hier = "(?:" + authority + "(?:/" + pchar + "*)*|" + absolute + "|" + rootless + ")?";
  const std::string uri = "[a-zA-Z][a-zA-Z0-9+.-]*:" + hier + tail;
  if (with_scheme) return uri;
  const std::string relative =
      "(?:" + authority + "(?:/" + pchar + "*)*|" + absolute + "|" + no_colon + "+(?:/" + pchar + "*)*)?";
  return "(?:" + uri + "|" + relative + tail + ")";
}

// RFC 6570.
std::string UriTemplate() {
  const std::string escape = "%[0-9a-fA-F]{2}";
  const std::string literal = std::string("(?:[!#$&-;=?-\\[\\]_a-z~") + kUcs + kPrivateUse + "]|" + escape + ")";
  const std::string character = "(?:[a-zA-Z0-9_]|" + escape + ")";
  const std::string variable = character + "(?:\\.?" + character + ")*(?::[1-9]\\d{0,3}|\\*)?";
  return "(?:" + literal + "|\\{[+#./;?&=,!@|]?" + variable + "(?:," + variable + ")*\\})*";
}

RegexId Whole(RegexStore& store, const std::string& pattern) {
  return ParsePattern(store, pattern, PatternSyntax::kEcma, PatternMatch::kWhole, TextSpelling::kJsonString);
}

// A leap second is the last one of a day in UTC: the local time is 23:59 plus the offset. The minutes are stored as a
// tree of their digits.
RegexId LeapSeconds(RegexStore& store) {
  constexpr int kDay = 24 * 60;
  const RegexId seconds = Whole(store, ":60(?:\\.\\d+)?");
  const auto digit = [&](int value) { return store.Literal(std::to_string(value)); };
  const auto time = [&](const char* sign, int minutes) {
    std::array<char, 16> buffer{};
    std::snprintf(buffer.data(), buffer.size(), "%s%02d:%02d", sign, minutes / 60, minutes % 60);
    return store.Literal(buffer.data());
  };
  const auto choice = [&](int num_choices, const auto& after) {
    std::vector<RegexId> choices;
    for (int i = 0; i < num_choices; ++i) choices.push_back(store.Concat(digit(i), after(i)));
    return store.Or(std::move(choices));
  };
  const auto offset = [&](int local) {
    const int ahead = (local + 1) % kDay;
    return store.Concat(seconds, store.Or({time("+", ahead), time("-", (kDay - ahead) % kDay)}));
  };
  const RegexId times = choice(3, [&](int tens) {
    return choice(tens == 2 ? 4 : 10, [&](int ones) {
      const int hour = 10 * tens + ones;
      return store.Concat(
          store.Literal(":"), choice(6, [&](int minute_tens) {
            return choice(10, [&](int minute_ones) { return offset(60 * hour + 10 * minute_tens + minute_ones); });
          }));
    });
  });
  return store.Or({Whole(store, "23:59:60(?:\\.\\d+)?[zZ]"), times});
}

RegexId Time(RegexStore& store) { return store.Or({Whole(store, std::string(kTime) + kOffset), LeapSeconds(store)}); }

RegexId Hostname(RegexStore& store) {
  const std::string label = kLabel;
  return store.And({Whole(store, label + "(?:\\." + label + ")*"), Whole(store, ".{1,253}")});
}

RegexId Email(RegexStore& store) {
  const RegexId literal = Whole(store, std::string("\\[(?:") + kIpv4 + "|IPv6:" + Ipv6() + ")\\]");
  const std::array<RegexId, 3> parts = {Whole(store, kEmailLocal), store.Literal("@"),
                                        store.Or({Hostname(store), literal})};
  return store.Concat(parts);
}

}  // namespace

FormatKind KindOfFormat(std::string_view name) {
  for (const std::string_view known :
       {"date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uri-reference", "iri",
        "iri-reference", "uri-template", "uuid", "json-pointer", "relative-json-pointer"}) {
    if (name == known) return FormatKind::kEnforced;
  }
  for (const std::string_view known : {"idn-email", "idn-hostname", "regex"}) {
    if (name == known) return FormatKind::kNotSupported;
  }
  return FormatKind::kUnknown;
}

RegexId StringsOfFormat(RegexStore& store, std::string_view name) {
  if (name == "date") return Whole(store, kDate);
  if (name == "time") return Time(store);
  if (name == "date-time") {
    const std::array<RegexId, 3> parts = {Whole(store, kDate), Whole(store, "[tT]"), Time(store)};
    return store.Concat(parts);
  }
  if (name == "duration") return Whole(store, kDuration);
  if (name == "email") return Email(store);
  if (name == "hostname") return Hostname(store);
  if (name == "ipv4") return Whole(store, kIpv4);
  if (name == "ipv6") return Whole(store, Ipv6());
  if (name == "uri") return Whole(store, UriParts(/*with_scheme=*/true, /*is_iri=*/false));
  if (name == "uri-reference") return Whole(store, UriParts(/*with_scheme=*/false, /*is_iri=*/false));
  if (name == "iri") return Whole(store, UriParts(/*with_scheme=*/true, /*is_iri=*/true));
  if (name == "iri-reference") return Whole(store, UriParts(/*with_scheme=*/false, /*is_iri=*/true));
  if (name == "uri-template") return Whole(store, UriTemplate());
  if (name == "uuid") return Whole(store, kUuid);
  if (name == "json-pointer") return Whole(store, kJsonPointer);
  return Whole(store, std::string("(?:0|[1-9]\\d*)(?:#|") + kJsonPointer + ")");
}

}  // namespace vllm
