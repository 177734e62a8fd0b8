// Database, Statement and Transaction: a connection to an SQLite database file, a prepared statement and a write
// transaction. All failures throw StoreError `<name>: <why>`. Owned by ChatStore; used on the main thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace vllm::app {

// The chats database cannot be opened, read or written (exit status 3 if a command needs it).
class StoreError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Another process holds a lock of the database, so the same call may succeed later.
class StoreBusyError : public StoreError {
 public:
  using StoreError::StoreError;
};

class Database;

// Parameters and columns are numbered from 1 and from 0, as in SQLite. Borrowed from the Database.
class Statement {
 public:
  Statement(Database& database, std::string_view sql);

  Statement& Bind(int parameter, int64_t value);
  Statement& Bind(int parameter, std::string_view text);
  Statement& BindBlob(int parameter, std::span<const std::byte> bytes);
  // Returns true if a row was read, false at the end.
  bool Step();
  // Runs a statement that returns no rows, and makes it ready for the next parameters.
  void Run();
  // Makes the statement ready for the next parameters after Step has returned a row.
  void Reset();

  // NULL reads as 0 or as an empty value. Views are valid until the next Step.
  int64_t Int(int column) const;
  std::string_view Text(int column) const;
  std::span<const std::byte> Blob(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  void Check(int code) const;

  Database& database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class Database {
 public:
  // kImmutable: read-only, without locks and without a look at the write-ahead log. The file must not change.
  enum class Mode : uint8_t { kWrite, kRead, kImmutable };

  // Opens an existing file, but not a symbolic link. Every call waits up to `busy_timeout_ms` for the locks of other
  // processes, and then throws StoreBusyError.
  Database(const std::string& path, Mode mode, int busy_timeout_ms);

  void SetBusyTimeout(int milliseconds);

  void Execute(const std::string& sql);
  // Returns the integer in the first column of the first row, or 0 without rows.
  int64_t QueryInt(const std::string& sql);
  std::string QueryText(const std::string& sql);
  int64_t last_insert_id() const;
  // Returns the number of rows that the last statement changed.
  int64_t num_changes() const;
  const std::string& path() const { return path_; }
  [[noreturn]] void Fail(const std::string& why) const;

 private:
  friend class Statement;
  // Throws the last error of the connection.
  [[noreturn]] void FailWithLastError() const;
  struct Close {
    void operator()(sqlite3* connection) const;
  };

  std::string path_;
  std::unique_ptr<sqlite3, Close> connection_;
};

// Begins a write transaction, and rolls it back unless Commit is called.
class Transaction {
 public:
  explicit Transaction(Database& database);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void Commit();

 private:
  Database& database_;
  bool is_open_ = true;
};

}  // namespace vllm::app
