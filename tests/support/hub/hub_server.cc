#include "tests/support/hub/hub_server.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

namespace vllm::testing_support {
namespace {

using Json = nlohmann::json;

// Returns the JSON text of `value`. Names of files may be invalid UTF-8.
std::string TextOf(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

int HexValue(char c) {
  const size_t value = std::string_view("0123456789abcdef").find(static_cast<char>(c | 0x20));
  return value == std::string_view::npos ? -1 : static_cast<int>(value);
}

std::string PercentDecoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && HexValue(text[i + 1]) >= 0 && HexValue(text[i + 2]) >= 0) {
      decoded += static_cast<char>(HexValue(text[i + 1]) * 16 + HexValue(text[i + 2]));
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

// Encodes everything except letters, digits, "-", ".", "_", "~" and "/".
std::string PercentEncoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || std::string_view("-._~/").find(c) != std::string_view::npos) {
      encoded += c;
    } else {
      encoded += {'%', "0123456789ABCDEF"[byte >> 4], "0123456789ABCDEF"[byte & 15]};
    }
  }
  return encoded;
}

std::vector<std::string> DecodedSegments(std::string_view path) {
  std::vector<std::string> segments;
  while (!path.empty()) {
    path.remove_prefix(1);
    const size_t slash = std::min(path.find('/'), path.size());
    segments.push_back(PercentDecoded(path.substr(0, slash)));
    path.remove_prefix(slash);
  }
  return segments;
}

std::string Joined(const std::vector<std::string>& segments, size_t begin) {
  std::string path;
  for (size_t i = begin; i < segments.size(); ++i) path += (path.empty() ? "" : "/") + segments[i];
  return path;
}

std::string QueryValue(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    if (pair.starts_with(name) && pair.substr(name.size()).starts_with('=')) {
      return PercentDecoded(pair.substr(name.size() + 1));
    }
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return "";
}

std::optional<uint64_t> NumberOf(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

HttpResponse JsonResponse(const Json& value) {
  HttpResponse response;
  response.headers = {{"Content-Type", "application/json; charset=utf-8"}};
  response.SetBody(TextOf(value));
  return response;
}

HttpResponse ErrorResponse(int status, const std::string& code, const std::string& message) {
  HttpResponse response = JsonResponse({{"error", message}});
  response.status = status;
  if (!code.empty()) response.headers.emplace_back("X-Error-Code", code);
  response.headers.emplace_back("X-Error-Message", message);
  return response;
}

HttpResponse Redirect(int status, const std::string& location) {
  HttpResponse response;
  response.status = status;
  response.headers = {{"Location", location}};
  return response;
}

// Fills the response with the file, or with the range of it that the request asks for.
void SetFile(const HttpRequest& request, const HubFile& file, HttpResponse& response) {
  const std::string etag = "\"" + file.etag() + "\"";
  response.headers.emplace_back("ETag", etag);
  response.headers.emplace_back("Accept-Ranges", "bytes");
  response.headers.emplace_back("Content-Type", "application/octet-stream");
  response.body = file.bytes;
  response.body_begin = 0;
  response.body_size = file.bytes->size();
  std::string_view range;
  const std::string header = request.Header("Range");
  if (header.starts_with("bytes=")) range = std::string_view(header).substr(6);
  const size_t dash = range.find('-');
  const std::string if_range = request.Header("If-Range");
  // Like other servers, send the whole file in answer to several ranges.
  if (dash == std::string_view::npos || range.find(',') != std::string_view::npos ||
      (!if_range.empty() && if_range != etag)) {
    return;
  }
  const uint64_t size = file.bytes->size();
  const std::optional<uint64_t> first = NumberOf(range.substr(0, dash));
  const std::optional<uint64_t> last = NumberOf(range.substr(dash + 1));
  const uint64_t begin = first.has_value() ? *first : size - std::min(size, last.value_or(0));
  const uint64_t end = first.has_value() && last.has_value() ? std::min(*last + 1, size) : size;
  if (begin >= end) {
    response.status = 416;
    response.headers.emplace_back("Content-Range", "bytes */" + std::to_string(size));
    response.body_size = 0;
    return;
  }
  response.status = 206;
  response.headers.emplace_back(
      "Content-Range", "bytes " + std::to_string(begin) + "-" + std::to_string(end - 1) + "/" + std::to_string(size));
  response.body_begin = begin;
  response.body_size = end - begin;
}

Json TreeEntry(const std::string& path, const HubFile& file) {
  Json entry = {{"type", "file"}, {"oid", file.blob_id}, {"size", file.bytes->size()}, {"path", path}};
  if (file.is_lfs) entry["lfs"] = {{"oid", file.sha256}, {"size", file.bytes->size()}, {"pointerSize", 134}};
  return entry;
}

}  // namespace

// A parsed path.
struct HubServer::Target {
  enum class Kind { kUnknown, kInfo, kTree, kRefs, kResolve, kResolveCache };

  explicit Target(const std::string& encoded_path) {
    const std::vector<std::string> segments = DecodedSegments(encoded_path);
    const auto is_at = [&](size_t i, std::string_view word) { return i < segments.size() && segments[i] == word; };
    const bool is_api = is_at(0, "api");
    const bool is_cache = is_api && is_at(1, "resolve-cache") && is_at(2, "models");
    if (is_api && !is_cache && !is_at(1, "models")) return;
    const size_t id_begin = is_cache ? 3 : is_api ? 2 : 0;
    // Old repositories have an id without an owner.
    size_t verb = id_begin + 1;
    if (is_cache) {
      verb = verb < segments.size() && segments[verb].size() == 40 ? verb : verb + 1;
    } else if (!is_at(verb, "revision") && !is_at(verb, "tree") && !is_at(verb, "refs") && !is_at(verb, "resolve")) {
      ++verb;
    }
    if (id_begin >= segments.size()) return;
    repository = segments[id_begin];
    if (verb == id_begin + 2 && id_begin + 1 < segments.size()) repository += "/" + segments[id_begin + 1];
    rest = Joined(segments, verb);
    if (is_cache) {
      if (verb < segments.size()) revision = segments[verb];
      path = Joined(segments, verb + 1);
      kind = Kind::kResolveCache;
      return;
    }
    if (verb + 1 < segments.size()) revision = segments[verb + 1];
    path = Joined(segments, verb + 2);
    if (is_api) {
      if (verb >= segments.size() || is_at(verb, "revision")) kind = Kind::kInfo;
      if (is_at(verb, "tree")) kind = Kind::kTree;
      if (is_at(verb, "refs")) kind = Kind::kRefs;
    } else if (is_at(verb, "resolve")) {
      kind = Kind::kResolve;
    }
  }

  Kind kind = Kind::kUnknown;
  std::string repository;
  std::string rest;  // the path after the repository
  std::string revision = "main";
  std::string path;  // of a file or directory in the repository
};

HubServer::HubServer(const HubServerOptions& options) : options_(options) {
  HttpServerOptions cdn_options = options.http;
  cdn_options.port = 0;
  cdn_options.is_proxy = false;
  cdn_ = std::make_unique<HttpServer>([this](const HttpRequest& request) { return AnswerCdn(request); }, cdn_gate_,
                                      cdn_options);
  hub_ = std::make_unique<HttpServer>([this](const HttpRequest& request) { return AnswerHub(request); }, hub_gate_,
                                      options.http);
}

void HubServer::AddRepository(const HubRepository& repository) {
  auto copy = std::make_shared<const HubRepository>(repository);
  const std::lock_guard lock(mutex_);
  tokens_.insert(repository.readers.begin(), repository.readers.end());
  repositories_[repository.id] = std::move(copy);
}

void HubServer::Rename(const std::string& old_id, const std::string& new_id) {
  const std::lock_guard lock(mutex_);
  new_names_[old_id] = new_id;
}

void HubServer::AddToken(const std::string& token) {
  const std::lock_guard lock(mutex_);
  tokens_.insert(token);
}

void HubServer::AddFault(const HubFault& fault) {
  const std::lock_guard lock(mutex_);
  hub_faults_.push_back({fault});
}

void HubServer::AddCdnFault(const HubFault& fault) {
  const std::lock_guard lock(mutex_);
  cdn_faults_.push_back({fault});
}

void HubServer::RemoveFaults() {
  const std::lock_guard lock(mutex_);
  hub_faults_.clear();
  cdn_faults_.clear();
}

void HubServer::ExpireLinks() {
  const std::lock_guard lock(mutex_);
  first_valid_link_ = num_links_;
}

std::vector<std::string> HubServer::Requests() const {
  std::vector<std::string> requests;
  for (const HttpExchange& exchange : hub_->Exchanges()) {
    requests.push_back(exchange.request.method + " " + exchange.request.path);
  }
  for (const HttpExchange& exchange : cdn_->Exchanges()) {
    const HttpRequest& request = exchange.request;
    const std::string range = request.Header("Range");
    requests.push_back(request.method + " cdn:" + Joined(DecodedSegments(request.path), 2) +
                       (range.empty() ? "" : " " + range));
  }
  return requests;
}

void HubServer::ForgetRequests() {
  hub_->ForgetExchanges();
  cdn_->ForgetExchanges();
}

void HubServer::ApplyFaults(std::vector<ArmedFault>& faults, const HttpRequest& request, HttpResponse& response) {
  std::vector<ResponseChange> changes;
  {
    const std::lock_guard lock(mutex_);
    for (ArmedFault& armed : faults) {
      const HubFault& fault = armed.fault;
      if (!fault.method.empty() && fault.method != request.method) continue;
      if (request.path.find(fault.path) == std::string::npos) continue;
      const int index = armed.num_matches++;
      if (index >= fault.num_correct && index - fault.num_correct < fault.num_faulty) changes.push_back(fault.change);
    }
  }
  for (const ResponseChange& change : changes) change(request, response);
}

HttpResponse HubServer::AnswerHub(const HttpRequest& request) {
  // A proxy's client asks it for the CDN's files, too.
  if (!request.authority.empty() && request.path.starts_with("/cdn/")) return AnswerCdn(request);
  HttpResponse response = Route(request);
  ApplyFaults(hub_faults_, request, response);
  return response;
}

// The path is /cdn/SHA256/FILE?Signature=NUMBER.
HttpResponse HubServer::AnswerCdn(const HttpRequest& request) {
  HttpResponse response;
  const std::vector<std::string> segments = DecodedSegments(request.path);
  HubFile file;
  bool is_valid = false;
  {
    const std::lock_guard lock(mutex_);
    const auto found = segments.size() < 2 ? linked_files_.end() : linked_files_.find(segments[1]);
    if (found != linked_files_.end()) file = found->second;
    const std::optional<uint64_t> link = NumberOf(QueryValue(request.query, "Signature"));
    is_valid = link.has_value() && *link >= static_cast<uint64_t>(first_valid_link_) &&
               *link < static_cast<uint64_t>(num_links_);
  }
  if (file.bytes == nullptr || !is_valid) {
    response.status = 403;
    response.headers = {{"Content-Type", "application/xml"}};
    response.SetBody("<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>");
  } else {
    SetFile(request, file, response);
  }
  ApplyFaults(cdn_faults_, request, response);
  return response;
}

HttpResponse HubServer::Route(const HttpRequest& request) {
  if (request.method != "GET" && request.method != "HEAD") return ErrorResponse(405, "", "Method not allowed");
  const Target target(request.path);
  if (target.kind == Target::Kind::kUnknown) return ErrorResponse(404, "", "Sorry, we can't find the page");
  std::shared_ptr<const HubRepository> repository;
  {
    const std::lock_guard lock(mutex_);
    if (const auto renamed = new_names_.find(target.repository); renamed != new_names_.end()) {
      const bool is_file = target.kind == Target::Kind::kResolve;
      return Redirect(307, (is_file ? "/" : "/api/models/") + PercentEncoded(renamed->second) +
                               (target.rest.empty() ? "" : "/" + PercentEncoded(target.rest)) +
                               (request.query.empty() ? "" : "?" + request.query));
    }
    const auto found = repositories_.find(target.repository);
    if (found != repositories_.end()) repository = found->second;
  }
  // A repository that does not exist is denied as a private one is.
  HubRepository missing;
  missing.access = HubAccess::kPrivate;
  const bool is_file = target.kind == Target::Kind::kResolve || target.kind == Target::Kind::kResolveCache;
  HttpResponse denial;
  if (IsDenied(request, repository == nullptr ? missing : *repository, is_file, denial)) return denial;
  return is_file ? AnswerFile(request, target, *repository) : AnswerApi(request, target, *repository);
}

bool HubServer::IsDenied(const HttpRequest& request, const HubRepository& repository, bool is_download,
                         HttpResponse& denial) const {
  const std::string header = request.Header("Authorization");
  const std::string token = header.starts_with("Bearer ") ? header.substr(7) : header;
  {
    const std::lock_guard lock(mutex_);
    if (!token.empty() && !tokens_.contains(token)) {
      denial = ErrorResponse(401, "", "Invalid credentials in Authorization header");
      return true;
    }
  }
  if (repository.access == HubAccess::kDisabled) {
    denial = ErrorResponse(403, "", "Access to this resource is disabled.");
    return true;
  }
  if (repository.access == HubAccess::kPublic || repository.readers.contains(token)) return false;
  if (repository.access == HubAccess::kPrivate) {
    denial = token.empty() ? ErrorResponse(401, "RepoNotFound", "Invalid username or password.")
                           : ErrorResponse(404, "RepoNotFound", "Repository not found");
    return true;
  }
  if (!is_download) return false;
  const std::string restricted = "Access to model " + repository.id + " is restricted";
  denial = token.empty() ? ErrorResponse(401, "GatedRepo",
                                         restricted +
                                             ". You must have access to it and be authenticated to access "
                                             "it. Please log in.")
                         : ErrorResponse(403, "GatedRepo",
                                         restricted + " and you are not in the authorized list. Visit " +
                                             BaseUrl(request) + "/" + repository.id + " to ask for access.");
  return true;
}

std::string HubServer::BaseUrl(const HttpRequest& request) const {
  const std::string host = request.authority.empty() ? request.Header("Host") : request.authority;
  return (request.is_encrypted ? "https://" : "http://") + host;
}

HttpResponse HubServer::AnswerApi(const HttpRequest& request, const Target& target,
                                  const HubRepository& repository) const {
  if (target.kind == Target::Kind::kRefs) {
    Json refs = {{"branches", Json::array()}, {"tags", Json::array()}, {"converts", Json::array()}};
    for (const auto& [name, commit] : repository.branches) {
      refs["branches"].push_back({{"name", name}, {"ref", "refs/heads/" + name}, {"targetCommit", commit}});
    }
    for (const auto& [name, commit] : repository.tags) {
      refs["tags"].push_back({{"name", name}, {"ref", "refs/tags/" + name}, {"targetCommit", commit}});
    }
    return JsonResponse(refs);
  }
  const std::string commit = repository.CommitOf(target.revision);
  if (commit.empty()) return ErrorResponse(404, "RevisionNotFound", "Invalid rev id: " + target.revision);
  const HubFiles& files = repository.commits.at(commit);
  if (target.kind == Target::Kind::kTree) return Tree(request, target, files);
  Json info = {{"_id", commit.substr(0, 24)},
               {"id", repository.id},
               {"modelId", repository.id},
               {"sha", commit},
               {"private", repository.access == HubAccess::kPrivate},
               {"gated", false},
               {"disabled", false},
               {"tags", Json::array()},
               {"siblings", Json::array()}};
  if (repository.access == HubAccess::kGated) info["gated"] = "manual";
  const bool has_sizes = QueryValue(request.query, "blobs") == "true";
  for (const auto& [path, file] : files) {
    Json sibling = {{"rfilename", path}};
    if (has_sizes) {
      sibling["size"] = file.bytes->size();
      sibling["blobId"] = file.blob_id;
      if (file.is_lfs) sibling["lfs"] = {{"sha256", file.sha256}, {"size", file.bytes->size()}, {"pointerSize", 134}};
    }
    info["siblings"].push_back(std::move(sibling));
  }
  return JsonResponse(info);
}

HttpResponse HubServer::Tree(const HttpRequest& request, const Target& target, const HubFiles& files) const {
  const std::string prefix = target.path.empty() ? "" : target.path + "/";
  const bool is_recursive = QueryValue(request.query, "recursive") == "true";
  Json entries = Json::array();
  std::set<std::string> directories;
  for (const auto& [path, file] : files) {
    if (!path.starts_with(prefix)) continue;
    bool is_listed = true;
    for (size_t slash = prefix.size(); (slash = path.find('/', slash)) != std::string::npos; ++slash) {
      is_listed = is_listed && is_recursive;
      if (!is_recursive && path.find('/', prefix.size()) != slash) continue;
      if (slash > 0 && directories.insert(path.substr(0, slash)).second) {
        entries.push_back(
            {{"type", "directory"}, {"oid", GitBlobId(path)}, {"size", 0}, {"path", path.substr(0, slash)}});
      }
    }
    if (is_listed) entries.push_back(TreeEntry(path, file));
  }
  if (entries.empty() && !prefix.empty()) {
    return ErrorResponse(404, "EntryNotFound", target.path + " does not exist on \"" + target.revision + "\"");
  }
  const size_t begin = std::min<size_t>(NumberOf(QueryValue(request.query, "cursor")).value_or(0), entries.size());
  const size_t limit = NumberOf(QueryValue(request.query, "limit")).value_or(options_.tree_page_size);
  const size_t end = std::min(begin + std::min(limit, options_.tree_page_size), entries.size());
  Json page = Json::array();
  for (size_t i = begin; i < end; ++i) page.push_back(std::move(entries[i]));
  HttpResponse response = JsonResponse(page);
  if (end < entries.size()) {
    response.headers.emplace_back(
        "Link", "<" + BaseUrl(request) + request.path + "?recursive=" + (is_recursive ? "true" : "false") +
                    "&limit=" + std::to_string(end - begin) + "&cursor=" + std::to_string(end) + ">; rel=\"next\"");
  }
  return response;
}

HttpResponse HubServer::AnswerFile(const HttpRequest& request, const Target& target, const HubRepository& repository) {
  const std::string commit = repository.CommitOf(target.revision);
  if (commit.empty()) return ErrorResponse(404, "RevisionNotFound", "Invalid rev id: " + target.revision);
  const HubFiles& files = repository.commits.at(commit);
  const auto found = files.find(target.path);
  if (found == files.end()) {
    HttpResponse missing = ErrorResponse(404, "EntryNotFound", "Entry not found");
    missing.headers.emplace_back("X-Repo-Commit", commit);
    return missing;
  }
  const HubFile& file = found->second;
  HttpResponse response;
  if (target.kind == Target::Kind::kResolveCache) {
    response.headers = {{"X-Repo-Commit", commit}};
    SetFile(request, file, response);
    return response;
  }
  if (!file.is_lfs) {
    response = Redirect(307, "/api/resolve-cache/models/" + PercentEncoded(repository.id) + "/" + commit + "/" +
                                 PercentEncoded(target.path));
    response.headers.emplace_back("X-Repo-Commit", commit);
    return response;
  }
  int link = 0;
  {
    const std::lock_guard lock(mutex_);
    linked_files_[file.sha256] = file;
    link = num_links_++;
  }
  response = Redirect(302, cdn_->Url(options_.cdn_host) + "/cdn/" + file.sha256 + "/" + PercentEncoded(target.path) +
                               "?Signature=" + std::to_string(link));
  response.headers.emplace_back("X-Repo-Commit", commit);
  response.headers.emplace_back("X-Linked-Etag", "\"" + file.sha256 + "\"");
  response.headers.emplace_back("X-Linked-Size", std::to_string(file.bytes->size()));
  response.headers.emplace_back("Accept-Ranges", "bytes");
  return response;
}

}  // namespace vllm::testing_support
