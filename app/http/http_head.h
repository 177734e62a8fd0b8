// HttpHead: the status and the headers of a response, and the parsers of the headers that the program uses. Values from
// a server: every parser accepts any text. Plain values; any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vllm::app {

class HttpHead {
 public:
  static constexpr size_t kMaxBytes = size_t{64} << 10;

  explicit HttpHead(int status_code = 0) : status_(status_code) {}

  // Adds one line "Name: value". Ignores a line without a colon. Returns false if the headers exceed kMaxBytes.
  bool AddLine(std::string_view line);

  int status() const { return status_; }
  bool is_redirect() const;
  // Returns true for a status after which the same request may succeed later: 408, 429 and 5xx.
  bool is_temporary_failure() const;
  // Returns the first header with this name in any letter case, without surrounding spaces, or null.
  const std::string* Find(std::string_view name) const;
  std::string Value(std::string_view name) const;  // "" if absent

 private:
  int status_;
  size_t num_bytes_ = 0;
  std::vector<std::pair<std::string, std::string>> headers_;  // names in lower case
};

// Returns the status code of a line "HTTP/1.1 206 Partial Content", or nullopt.
std::optional<int> ParseStatusLine(std::string_view line);

// Returns a decimal number of at most 18 digits without a sign, or nullopt.
std::optional<int64_t> ParseDecimal(std::string_view text);

// Returns the target of rel="next" in a Link header, or "".
std::string NextLink(std::string_view link);

// Returns an entity tag without W/ and quotes.
std::string BareEtag(std::string_view etag);

// A Content-Range header: "bytes 0-99/1234".
struct ContentRange {
  int64_t begin = 0;
  int64_t end = 0;    // exclusive
  int64_t size = -1;  // of the whole file; -1: unknown
  friend bool operator==(const ContentRange&, const ContentRange&) = default;
};
std::optional<ContentRange> ParseContentRange(std::string_view text);

// Returns how long the server asks to wait: Retry-After in seconds or as a date, else the time until the reset of a
// RateLimit header (`"resolvers";r=0;t=42`, or the older RateLimit-Reset), else nullopt. `now` is used for dates.
std::optional<std::chrono::seconds> RequestedWait(const HttpHead& head, std::chrono::system_clock::time_point now);

}  // namespace vllm::app
