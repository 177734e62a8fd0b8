#include "app/chats/sqlite.h"

#include <sqlite3.h>

#include <cstdlib>
#include <memory>

#include "engine/config/escape.h"

namespace vllm::app {

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Statement::Statement(Database& database, std::string_view sql) : database_(database) {
  sqlite3_stmt* statement = nullptr;
  const int code =
      sqlite3_prepare_v2(database.connection_.get(), sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  statement_.reset(statement);
  Check(code);
}

void Statement::Check(int code) const {
  if (code != SQLITE_OK) database_.FailWithLastError();
}

Statement& Statement::Bind(int parameter, int64_t value) {
  Check(sqlite3_bind_int64(statement_.get(), parameter, value));
  return *this;
}

Statement& Statement::Bind(int parameter, std::string_view text) {
  // A null pointer would bind NULL.
  const char* data = text.data() == nullptr ? "" : text.data();
  Check(sqlite3_bind_text64(statement_.get(), parameter, data, text.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

Statement& Statement::BindBlob(int parameter, std::span<const std::byte> bytes) {
  const void* data = bytes.empty() ? "" : static_cast<const void*>(bytes.data());
  Check(sqlite3_bind_blob64(statement_.get(), parameter, data, bytes.size(), SQLITE_TRANSIENT));
  return *this;
}

bool Statement::Step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  try {
    database_.FailWithLastError();
  } catch (const StoreError&) {
    sqlite3_reset(statement_.get());
    throw;
  }
}

void Statement::Run() {
  while (Step()) {
  }
  Check(sqlite3_reset(statement_.get()));
}

void Statement::Reset() { Check(sqlite3_reset(statement_.get())); }

int64_t Statement::Int(int column) const { return sqlite3_column_int64(statement_.get(), column); }

std::string_view Statement::Text(int column) const {
  const unsigned char* text = sqlite3_column_text(statement_.get(), column);
  if (text == nullptr) return {};
  return {reinterpret_cast<const char*>(text), static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

std::span<const std::byte> Statement::Blob(int column) const {
  const void* data = sqlite3_column_blob(statement_.get(), column);
  if (data == nullptr) return {};
  return {static_cast<const std::byte*>(data), static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

void Database::Close::operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }

namespace {

// Returns `path` with the links in its directory resolved, because SQLite's NOFOLLOW rejects a link anywhere in a path.
std::string WithResolvedDirectory(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(directory.c_str(), nullptr), &std::free);
  if (real == nullptr) return path;
  return std::string(real.get()) + "/" + (slash == std::string::npos ? path : path.substr(slash + 1));
}

// Returns `path` for a URI.
std::string PercentEncoded(const std::string& path) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      const auto byte = static_cast<unsigned char>(c);
      encoded += {'%', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      encoded += c;
    }
  }
  return encoded;
}

}  // namespace

Database::Database(const std::string& path, Mode mode, int busy_timeout_ms) : path_(path) {
  sqlite3* connection = nullptr;
  int flags = (mode == Mode::kWrite ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_NOFOLLOW;
  std::string name = WithResolvedDirectory(path);
  if (mode == Mode::kImmutable) {
    flags |= SQLITE_OPEN_URI;
    name = "file:" + PercentEncoded(name) + "?immutable=1";
  }
  const int code = sqlite3_open_v2(name.c_str(), &connection, flags, nullptr);
  connection_.reset(connection);
  if (connection == nullptr) Fail("out of memory");
  if (code != SQLITE_OK) FailWithLastError();
  sqlite3_extended_result_codes(connection, 1);
  SetBusyTimeout(busy_timeout_ms);
}

void Database::SetBusyTimeout(int milliseconds) { sqlite3_busy_timeout(connection_.get(), milliseconds); }

void Database::Execute(const std::string& sql) {
  if (sqlite3_exec(connection_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) FailWithLastError();
}

int64_t Database::QueryInt(const std::string& sql) {
  Statement statement(*this, sql);
  return statement.Step() ? statement.Int(0) : 0;
}

std::string Database::QueryText(const std::string& sql) {
  Statement statement(*this, sql);
  return statement.Step() ? std::string(statement.Text(0)) : "";
}

int64_t Database::last_insert_id() const { return sqlite3_last_insert_rowid(connection_.get()); }

int64_t Database::num_changes() const { return sqlite3_changes64(connection_.get()); }

void Database::Fail(const std::string& why) const { throw StoreError(Escape(path_) + ": " + why); }

void Database::FailWithLastError() const {
  const int code = sqlite3_errcode(connection_.get()) & 0xFF;  // without the extended part
  if (code == SQLITE_BUSY || code == SQLITE_LOCKED) {
    throw StoreBusyError(Escape(path_) + ": locked by another process");
  }
  Fail(sqlite3_errmsg(connection_.get()));
}

Transaction::Transaction(Database& database) : database_(database) {
  // A transaction that begins by reading could get SQLITE_BUSY without waiting when it first writes.
  database_.Execute("BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
  if (!is_open_) return;
  try {
    database_.Execute("ROLLBACK");
  } catch (const StoreError&) {  // SQLite has rolled back already
  }
}

void Transaction::Commit() {
  database_.Execute("COMMIT");
  is_open_ = false;
}

}  // namespace vllm::app
