// TestAuthority: a certificate authority that exists only in the memory of a test, and the certificates that it issues
// for the tests' servers. Not thread-safe; certificates are values.
#pragma once

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace vllm::testing_support {

struct TlsCertificate {
  std::string certificate_pem;
  std::string key_pem;
};

struct CertificateOptions {
  // A list in OpenSSL's syntax of subject alternative names.
  std::string names = "IP:127.0.0.1,DNS:localhost";
  // Days from now.
  int valid_from = -1;
  int valid_until = 1;
};

// Returns the settings of a server with this certificate. The caller owns them. Throws std::runtime_error if OpenSSL
// rejects the certificate.
SSL_CTX* NewServerContext(const TlsCertificate& certificate);

class TestAuthority {
 public:
  TestAuthority();

  // Returns the authority's own certificate, which a client must trust.
  std::string certificate_pem() const;
  TlsCertificate Issue(const CertificateOptions& options = {}) const;

 private:
  struct Free {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const { X509_free(certificate); }
  };

  std::unique_ptr<EVP_PKEY, Free> key_;
  std::unique_ptr<X509, Free> certificate_;
};

}  // namespace vllm::testing_support
