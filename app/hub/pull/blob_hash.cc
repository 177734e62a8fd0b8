#include "app/hub/pull/blob_hash.h"

#include <openssl/evp.h>

#include <array>

#include "engine/config/errors.h"

namespace vllm::app {
namespace {

constexpr size_t kSha256Digits = 64;

EVP_MD_CTX* ContextOf(void* context) { return static_cast<EVP_MD_CTX*>(context); }

void Update(void* context, std::string_view bytes) {
  if (EVP_DigestUpdate(ContextOf(context), bytes.data(), bytes.size()) != 1) {
    throw ResourceError("hash of a file: libcrypto failed");
  }
}

}  // namespace

void BlobHash::FreeContext::operator()(void* context) const { EVP_MD_CTX_free(ContextOf(context)); }

BlobHash::BlobHash(const std::string& etag, int64_t size) : context_(EVP_MD_CTX_new()) {
  const bool is_sha256 = etag.size() == kSha256Digits;
  if (context_ == nullptr ||
      EVP_DigestInit_ex(ContextOf(context_.get()), is_sha256 ? EVP_sha256() : EVP_sha1(), nullptr) != 1) {
    throw ResourceError(std::string("hash of a file: libcrypto has no ") + (is_sha256 ? "SHA-256" : "SHA-1"));
  }
  if (is_sha256) return;
  std::string header = "blob " + std::to_string(size);
  header += '\0';
  Update(context_.get(), header);
}

void BlobHash::Add(std::string_view bytes) {
  Update(context_.get(), bytes);
  num_bytes_ += static_cast<int64_t>(bytes.size());
}

std::string BlobHash::Finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (EVP_DigestFinal_ex(ContextOf(context_.get()), digest.data(), &size) != 1) {
    throw ResourceError("hash of a file: libcrypto failed");
  }
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  std::string text;
  for (unsigned i = 0; i < size; ++i) {
    text += kHexDigits[digest[i] >> 4];
    text += kHexDigits[digest[i] & 15];
  }
  return text;
}

}  // namespace vllm::app
