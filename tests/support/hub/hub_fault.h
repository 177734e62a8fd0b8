// Faults of the tests' hub: functions that change a correct response into one that a broken network, a broken server or
// an attacker would send. HubServer applies them to the requests that a test chooses. Functions without state, unless
// noted; called on the servers' threads.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <limits>
#include <string>

#include "tests/support/hub/http_message.h"

namespace vllm::testing_support {

using ResponseChange = std::function<void(const HttpRequest&, HttpResponse&)>;

struct HubFault {
  // The requests that have this method and this text in their path, which is percent-encoded. Empty: all.
  std::string method = {};
  std::string path = {};
  ResponseChange change = {};
  // Leave the first `num_correct` of these requests alone, change the next `num_faulty`, and no more.
  int num_correct = 0;
  int num_faulty = std::numeric_limits<int>::max();
};

// Faults of delivery.
ResponseChange CutAfter(size_t num_bytes);
ResponseChange StallAfter(size_t num_bytes);
ResponseChange NeverAnswer();
ResponseChange DripHead(std::chrono::milliseconds interval);
ResponseChange DripBody(std::chrono::milliseconds interval);

// Faults of a file's content and of ranges.
ResponseChange FlipByte(size_t offset);  // offset in the file; responses without this byte stay correct
ResponseChange EmptyBody();              // status 200 and no bytes
ResponseChange IgnoreRange();            // status 200 and the whole file
ResponseChange ShiftRange();  // the right number of bytes from the beginning of the file, and a false Content-Range
ResponseChange RangeNotSatisfiable();
ResponseChange AddToContentLength(int num_bytes);
ResponseChange ChangeEtag();  // a new ETag for each response, which counts in the returned function's state

// Errors and redirects. `code` is the value of X-Error-Code.
ResponseChange AnswerError(int status, const std::string& code = "", const std::string& message = "",
                           const HttpHeaders& headers = {});
ResponseChange RedirectTo(const std::string& location);
ResponseChange RedirectToServer(const std::string& endpoint);  // to the same path there
ResponseChange RedirectToItself();

// Hostile bodies and headers.
ResponseChange ReplaceBody(const std::string& text);
ResponseChange RepeatBody(const std::string& prefix, const std::string& repeated);  // without end
ResponseChange AddHeaders(const HttpHeaders& headers);
// Each page of a tree links to another page.
ResponseChange EndlessPages();

}  // namespace vllm::testing_support
