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

// RFC 3986.
std::string UriParts(bool with_scheme) {
  const std::string escape = "%[0-9a-fA-F]{2}";
  const std::string unreserved = "a-zA-Z0-9._~\\-";
  const std::string sub = "!$&'()*+,;=";
  const std::string pchar = "(?:[" + unreserved + sub + ":@]|" + escape + ")";
  const std::string no_colon = "(?:[" + unreserved + sub + "@]|" + escape + ")";
  const std::string user = "(?:(?:[" + unreserved + sub + ":]|" + escape + ")*@)?";
  const std::string host = "(?:\\[(?:" + Ipv6() + "|v[0-9a-fA-F]+\\.[" + unreserved + sub + ":]+)\\]|(?:[" +
                           unreserved + sub + "]|" + escape + ")*)";
  const std::string authority = "//" + user + host + "(?::\\d*)?";
  const std::string absolute = "/(?:" + pchar + "+(?:/" + pchar + "*)*)?";
  const std::string tail = "(?:\\?(?:" + pchar + "|[/?])*)?(?:#(?:" + pchar + "|[/?])*)?";
  const std::string rootless = pchar + "+(?:/" + pchar + "*)*";
  const std::string hier = "(?:" + authority + "(?:/" + pchar + "*)*|" + absolute + "|" + rootless + ")?";
  const std::string uri = "[a-zA-Z][a-zA-Z0-9+.-]*:" + hier + tail;
  if (with_scheme) return uri;
  const std::string relative =
      "(?:" + authority + "(?:/" + pchar + "*)*|" + absolute + "|" + no_colon + "+(?:/" + pchar + "*)*)?";
  return "(?:" + uri + "|" + relative + tail + ")";
}

RegexId Whole(RegexStore& store, const std::string& pattern) {
  return ParsePattern(store, pattern, PatternSyntax::kEcma, PatternMatch::kWhole, TextSpelling::kJsonString);
}

// A leap second is the last one of a day in UTC.
RegexId LeapSeconds(RegexStore& store) {
  std::vector<RegexId> times = {Whole(store, "23:59:60(?:\\.\\d+)?[zZ]")};
  const RegexId seconds = Whole(store, ":60(?:\\.\\d+)?");
  const auto text = [&](const char* format, int minutes) {
    std::array<char, 16> buffer{};
    std::snprintf(buffer.data(), buffer.size(), format, minutes / 60, minutes % 60);
    return Whole(store, buffer.data());
  };
  constexpr int kDay = 24 * 60;
  for (int local = 0; local < kDay; ++local) {
    // The local time is 23:59 plus the offset.
    const int ahead = (local + 1) % kDay;
    const int behind = (kDay - ahead) % kDay;
    const RegexId offset = store.Or({store.Concat(store.Literal("+"), text("%02d:%02d", ahead)),
                                     store.Concat(store.Literal("-"), text("%02d:%02d", behind))});
    const std::array<RegexId, 3> parts = {text("%02d:%02d", local), seconds, offset};
    times.push_back(store.Concat(parts));
  }
  return store.Or(std::move(times));
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
  for (const std::string_view known : {"date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6",
                                       "uri", "uri-reference", "uuid", "json-pointer", "relative-json-pointer"}) {
    if (name == known) return FormatKind::kEnforced;
  }
  for (const std::string_view known : {"idn-email", "idn-hostname", "iri", "iri-reference", "uri-template", "regex"}) {
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
  if (name == "uri") return Whole(store, UriParts(/*with_scheme=*/true));
  if (name == "uri-reference") return Whole(store, UriParts(/*with_scheme=*/false));
  if (name == "uuid") return Whole(store, kUuid);
  if (name == "json-pointer") return Whole(store, kJsonPointer);
  return Whole(store, std::string("(?:0|[1-9]\\d*)(?:#|") + kJsonPointer + ")");
}

}  // namespace vllm
