#include "tests/support/hub/tls_certificate.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <cstdint>
#include <stdexcept>

namespace vllm::testing_support {
namespace {

void Require(bool success, const char* what) {
  if (!success) throw std::runtime_error(std::string("OpenSSL cannot ") + what);
}

struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using UniqueBio = std::unique_ptr<BIO, FreeBio>;

std::string TextOf(BIO* bio) {
  const char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<size_t>(size));
}

std::string PemOf(X509* certificate) {
  const UniqueBio bio(BIO_new(BIO_s_mem()));
  Require(PEM_write_bio_X509(bio.get(), certificate) == 1, "write a certificate");
  return TextOf(bio.get());
}

void AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  Require(extension != nullptr && X509_add_ext(certificate, extension, -1) == 1, "add an extension");
  X509_EXTENSION_free(extension);
}

// Returns a certificate with a random serial number that is not signed yet.
X509* NewCertificate(EVP_PKEY* key, const char* common_name, int valid_from, int valid_until) {
  X509* certificate = X509_new();
  X509_set_version(certificate, X509_VERSION_3);
  uint64_t serial = 0;
  Require(RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial)) == 1, "make a random number");
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1);
  X509_time_adj_ex(X509_getm_notBefore(certificate), valid_from, 0, nullptr);
  X509_time_adj_ex(X509_getm_notAfter(certificate), valid_until, 0, nullptr);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(common_name), -1, -1, 0);
  Require(X509_set_pubkey(certificate, key) == 1, "set a public key");
  return certificate;
}

}  // namespace

SSL_CTX* NewServerContext(const TlsCertificate& certificate) {
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  const UniqueBio certificate_bio(BIO_new_mem_buf(certificate.certificate_pem.data(), -1));
  const UniqueBio key_bio(BIO_new_mem_buf(certificate.key_pem.data(), -1));
  X509* x509 = PEM_read_bio_X509(certificate_bio.get(), nullptr, nullptr, nullptr);
  EVP_PKEY* key = PEM_read_bio_PrivateKey(key_bio.get(), nullptr, nullptr, nullptr);
  const bool is_usable = SSL_CTX_use_certificate(context, x509) == 1 && SSL_CTX_use_PrivateKey(context, key) == 1;
  X509_free(x509);
  EVP_PKEY_free(key);
  Require(is_usable, "use the server's certificate");
  return context;
}

TestAuthority::TestAuthority() : key_(EVP_EC_gen("P-256")) {
  certificate_.reset(NewCertificate(key_.get(), "vllmcli test authority", -1, 1));
  X509_set_issuer_name(certificate_.get(), X509_get_subject_name(certificate_.get()));
  AddExtension(certificate_.get(), certificate_.get(), NID_basic_constraints, "critical,CA:TRUE");
  AddExtension(certificate_.get(), certificate_.get(), NID_key_usage, "critical,keyCertSign,cRLSign");
  AddExtension(certificate_.get(), certificate_.get(), NID_subject_key_identifier, "hash");
  Require(X509_sign(certificate_.get(), key_.get(), EVP_sha256()) > 0, "sign a certificate");
}

std::string TestAuthority::certificate_pem() const { return PemOf(certificate_.get()); }

TlsCertificate TestAuthority::Issue(const CertificateOptions& options) const {
  const std::unique_ptr<EVP_PKEY, Free> key(EVP_EC_gen("P-256"));
  const std::unique_ptr<X509, Free> certificate(
      NewCertificate(key.get(), "vllmcli test server", options.valid_from, options.valid_until));
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(certificate_.get()));
  AddExtension(certificate.get(), certificate_.get(), NID_subject_alt_name, options.names);
  AddExtension(certificate.get(), certificate_.get(), NID_authority_key_identifier, "keyid");
  AddExtension(certificate.get(), certificate_.get(), NID_ext_key_usage, "serverAuth");
  Require(X509_sign(certificate.get(), key_.get(), EVP_sha256()) > 0, "sign a certificate");
  TlsCertificate result;
  result.certificate_pem = PemOf(certificate.get());
  const UniqueBio bio(BIO_new(BIO_s_mem()));
  Require(PEM_write_bio_PrivateKey(bio.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1, "write a key");
  result.key_pem = TextOf(bio.get());
  return result;
}

}  // namespace vllm::testing_support
