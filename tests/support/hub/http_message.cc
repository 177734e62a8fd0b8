#include "tests/support/hub/http_message.h"

#include <strings.h>

#include <algorithm>

namespace vllm::testing_support {
namespace {

bool IsName(const std::pair<std::string, std::string>& header, std::string_view name) {
  return header.first.size() == name.size() && strncasecmp(header.first.data(), name.data(), name.size()) == 0;
}

}  // namespace

std::string HeaderValue(const HttpHeaders& headers, std::string_view name) {
  for (const auto& header : headers) {
    if (IsName(header, name)) return header.second;
  }
  return "";
}

void SetHeader(HttpHeaders& headers, std::string_view name, std::string value) {
  RemoveHeader(headers, name);
  headers.emplace_back(name, std::move(value));
}

void RemoveHeader(HttpHeaders& headers, std::string_view name) {
  std::erase_if(headers, [&](const auto& header) { return IsName(header, name); });
}

void HttpResponse::SetBody(std::string text) {
  body = std::make_shared<const std::string>(std::move(text));
  body_begin = 0;
  body_size = body->size();
}

}  // namespace vllm::testing_support
