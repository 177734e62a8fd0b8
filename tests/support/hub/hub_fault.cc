#include "tests/support/hub/hub_fault.h"

#include <atomic>
#include <memory>

namespace vllm::testing_support {

ResponseChange CutAfter(size_t num_bytes) {
  return [=](const HttpRequest&, HttpResponse& response) { response.delivery.cut_after = num_bytes; };
}

ResponseChange StallAfter(size_t num_bytes) {
  return [=](const HttpRequest&, HttpResponse& response) { response.delivery.stall_after = num_bytes; };
}

ResponseChange NeverAnswer() {
  return [](const HttpRequest&, HttpResponse& response) { response.delivery.never_answers = true; };
}

ResponseChange DripHead(std::chrono::milliseconds interval) {
  return [=](const HttpRequest&, HttpResponse& response) { response.delivery.head_byte_interval = interval; };
}

ResponseChange DripBody(std::chrono::milliseconds interval) {
  return [=](const HttpRequest&, HttpResponse& response) { response.delivery.body_byte_interval = interval; };
}

ResponseChange FlipByte(size_t offset) {
  return [=](const HttpRequest&, HttpResponse& response) {
    if (response.body == nullptr || offset >= response.body->size()) return;
    std::string bytes = *response.body;
    bytes[offset] = static_cast<char>(~bytes[offset]);
    response.body = std::make_shared<const std::string>(std::move(bytes));
  };
}

ResponseChange EmptyBody() {
  return [](const HttpRequest&, HttpResponse& response) {
    if (response.status >= 300) return;
    response.status = 200;
    RemoveHeader(response.headers, "Content-Range");
    response.SetBody("");
  };
}

ResponseChange IgnoreRange() {
  return [](const HttpRequest&, HttpResponse& response) {
    if (response.status != 206) return;
    response.status = 200;
    RemoveHeader(response.headers, "Content-Range");
    response.body_begin = 0;
    response.body_size = response.body->size();
  };
}

ResponseChange ShiftRange() {
  return [](const HttpRequest&, HttpResponse& response) {
    if (response.status != 206) return;
    response.body_begin = 0;
    SetHeader(response.headers, "Content-Range",
              "bytes 0-" + std::to_string(response.body_size - 1) + "/" + std::to_string(response.body->size()));
  };
}

ResponseChange RangeNotSatisfiable() {
  return [](const HttpRequest&, HttpResponse& response) {
    const size_t size = response.body == nullptr ? 0 : response.body->size();
    response.status = 416;
    SetHeader(response.headers, "Content-Range", "bytes */" + std::to_string(size));
    response.SetBody("");
  };
}

ResponseChange AddToContentLength(int num_bytes) {
  return [=](const HttpRequest&, HttpResponse& response) {
    response.content_length = std::to_string(static_cast<int64_t>(response.body_size) + num_bytes);
  };
}

ResponseChange ChangeEtag() {
  const auto num_changes = std::make_shared<std::atomic<int>>(0);
  return [=](const HttpRequest&, HttpResponse& response) {
    const std::string etag = "\"" + std::string(63, 'e') + std::to_string((*num_changes)++ % 10) + "\"";
    for (const char* name : {"ETag", "X-Linked-Etag"}) {
      if (!HeaderValue(response.headers, name).empty()) SetHeader(response.headers, name, etag);
    }
  };
}

ResponseChange AnswerError(int status, const std::string& code, const std::string& message,
                           const HttpHeaders& headers) {
  return [=](const HttpRequest&, HttpResponse& response) {
    response = HttpResponse{};
    response.status = status;
    response.headers = headers;
    if (!code.empty()) response.headers.emplace_back("X-Error-Code", code);
    if (!message.empty()) response.headers.emplace_back("X-Error-Message", message);
    response.SetBody("{\"error\":\"" + message + "\"}");
  };
}

ResponseChange RedirectTo(const std::string& location) {
  return [=](const HttpRequest&, HttpResponse& response) {
    response.status = 302;
    SetHeader(response.headers, "Location", location);
    response.SetBody("");
  };
}

ResponseChange RedirectToServer(const std::string& endpoint) {
  return [=](const HttpRequest& request, HttpResponse& response) {
    RedirectTo(endpoint + request.target)(request, response);
  };
}

ResponseChange RedirectToItself() {
  return [](const HttpRequest& request, HttpResponse& response) {
    response.status = 307;
    SetHeader(response.headers, "Location", request.target);
    response.SetBody("");
  };
}

ResponseChange ReplaceBody(const std::string& text) {
  return [=](const HttpRequest&, HttpResponse& response) { response.SetBody(text); };
}

ResponseChange RepeatBody(const std::string& prefix, const std::string& repeated) {
  std::string text = prefix;
  while (text.size() < (1 << 20)) text += repeated;
  return [text = std::make_shared<const std::string>(std::move(text))](const HttpRequest&, HttpResponse& response) {
    response.body = text;
    response.body_begin = 0;
    response.body_size = text->size();
    response.delivery.repeats_body = true;
  };
}

ResponseChange AddHeaders(const HttpHeaders& headers) {
  return [=](const HttpRequest&, HttpResponse& response) {
    response.headers.insert(response.headers.end(), headers.begin(), headers.end());
  };
}

ResponseChange EndlessPages() {
  const auto num_pages = std::make_shared<std::atomic<int>>(0);
  return [=](const HttpRequest& request, HttpResponse& response) {
    const int page = (*num_pages)++;
    SetHeader(response.headers, "Link",
              "<http://" + request.Header("Host") + request.path + "?recursive=true&cursor=page" +
                  std::to_string(page) + ">; rel=\"next\"");
    response.SetBody(R"([{"type":"file","oid":"0000000000000000000000000000000000000000","size":1,"path":"file)" +
                     std::to_string(page) + R"(.json"}])");
  };
}

}  // namespace vllm::testing_support
