#include "app/chats/chat_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>

#include "app/chats/chat_schema.h"
#include "app/cli/xdg.h"
#include "engine/config/escape.h"
#include "tokenizer/unicode/ascii.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::app {
namespace {

constexpr int kBusyTimeoutMs = 5000;
constexpr int kShortBusyTimeoutMs = 100;

// trusted_schema and cell_size_check protect against a crafted file.
constexpr char kProtection[] = "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA foreign_keys = ON";

// statfs() types of file systems on which several machines, or a user-space server, may hold the file. WAL needs shared
// memory between all users of the file.
constexpr std::array<uint32_t, 11> kRemoteFileSystems = {{
    0x6969,      // NFS
    0x517B,      // SMB
    0xFF534D42,  // CIFS
    0xFE534D42,  // SMB 2
    0x65735546,  // FUSE
    0x0BD00BD0,  // Lustre
    0x47504653,  // GPFS
    0x01021997,  // 9P
    0x00C36400,  // Ceph
    0x5346414F,  // AFS
    0x7461636F,  // OCFS2
}};

constexpr char kSummaryColumns[] =
    "SELECT id, CASE WHEN title != '' THEN title ELSE coalesce((SELECT substr(text, 1, 80) FROM messages "
    "WHERE chat = chats.id AND role = 1 ORDER BY id LIMIT 1), '') END AS shown, created_ms, updated_ms, "
    "(SELECT count(*) FROM messages WHERE chat = chats.id AND role != 0), "
    "coalesce((SELECT model FROM messages WHERE chat = chats.id AND role = 2 ORDER BY id DESC LIMIT 1), '') "
    "FROM chats ";

// The title of a row of chats, as ChatSummary shows it.
constexpr char kTitleColumn[] =
    "CASE WHEN chats.title != '' THEN chats.title ELSE coalesce((SELECT substr(text, 1, 80) FROM messages AS first "
    "WHERE first.chat = chats.id AND first.role = 1 ORDER BY first.id LIMIT 1), '') END";

// Returns false if the file system does not support WAL. Waits for the locks of other processes itself, because SQLite
// does not while it changes the mode, to avoid a deadlock.
bool EnterWal(Database& database, int busy_timeout_ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(busy_timeout_ms);
  while (true) {
    try {
      return database.QueryText("PRAGMA journal_mode = WAL") == "wal";
    } catch (const StoreBusyError&) {
      if (std::chrono::steady_clock::now() >= end) throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void EnsureFile(const std::string& directory, const std::string& path) {
  const auto fail = [&](const std::string& why) { throw StoreError(Escape(path) + ": " + why); };
  if (!MakePrivateDirectory(directory)) fail(std::string("cannot create its directory: ") + std::strerror(errno));
  // SQLite would create the file with the umask's mode, and follow a link.
  tokenizer::UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600));
  struct stat status {};
  if (!fd.valid() || fstat(fd.get(), &status) != 0) fail(std::strerror(errno));
  if (!S_ISREG(status.st_mode)) fail("not a regular file (" + tokenizer::FileTypeName(status.st_mode) + ")");
  if (status.st_uid != geteuid()) fail("belongs to another user (uid " + std::to_string(status.st_uid) + ")");
  if ((status.st_mode & 07777u) != 0600 && fchmod(fd.get(), 0600) != 0) fail(std::strerror(errno));
}

std::vector<std::byte> BytesOf(const std::vector<int32_t>& ids) {
  std::vector<std::byte> bytes;
  bytes.reserve(ids.size() * 4);
  for (const int32_t id : ids) {
    const auto value = static_cast<uint32_t>(id);
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<std::byte>(value >> shift));
  }
  return bytes;
}

std::vector<int32_t> IdsOf(std::span<const std::byte> bytes) {
  std::vector<int32_t> ids(bytes.size() / 4);
  for (size_t i = 0; i < ids.size(); ++i) {
    uint32_t value = 0;
    for (size_t k = 0; k < 4; ++k) value |= static_cast<uint32_t>(bytes[4 * i + k]) << (8 * k);
    ids[i] = static_cast<int32_t>(value);
  }
  return ids;
}

// Returns `text` as a LIKE pattern that matches it anywhere, with \ as the escape character.
std::string LikePattern(const std::string& text) {
  std::string pattern = "%";
  for (const char c : text) {
    if (c == '%' || c == '_' || c == '\\') pattern += '\\';
    pattern += c;
  }
  return pattern + "%";
}

// Returns an FTS5 query that matches the beginnings of all words of `text`. Quoted, no word is an FTS5 operator.
std::string WordQuery(const std::string& text) {
  std::string query;
  std::string word;
  const auto add = [&] {
    if (!word.empty()) query += (query.empty() ? "\"" : " \"") + word + "\"*";
    word.clear();
  };
  for (const char c : text) {
    if (c == ' ' || c == '\t' || c == '\n') {
      add();
    } else {
      if (c == '"') word += '"';
      word += c;
    }
  }
  add();
  return query;
}

// Returns true if the text has a character of a script that is written without spaces between words.
bool HasUnspacedScript(const std::string& text) {
  // In UTF-8, U+2E80 to U+9FFF (CJK, kana), U+AC00 to U+D7AF (Hangul; its words have spaces, but particles are
  // attached) and U+F900 to U+FAFF begin with the bytes E2 BA to ED and EF A4. U+0E00 to U+0EFF (Thai, Lao) begins with
  // E0 B8.
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(text[i + 1]);
    if ((lead >= 0xE3 && lead <= 0xED) || lead == 0xF0 || (lead == 0xE2 && next >= 0xBA) ||
        (lead == 0xEF && next >= 0xA4 && next <= 0xAB) || (lead == 0xE0 && next >= 0xB8 && next <= 0xBB)) {
      return true;
    }
  }
  return false;
}

// Returns the `size` bytes at `at` and up to 60 bytes on each side of them, cut between characters.
std::string SnippetAround(std::string_view text, size_t at, size_t size) {
  constexpr size_t kRadius = 60;
  const auto is_inside = [&](size_t i) { return i < text.size() && tokenizer::IsUtf8Continuation(text[i]); };
  size_t begin = at > kRadius ? at - kRadius : 0;
  while (is_inside(begin)) ++begin;
  size_t end = std::min(at + size + kRadius, text.size());
  while (is_inside(end)) ++end;
  return (begin > 0 ? "…" : "") + std::string(text.substr(begin, end - begin)) + (end < text.size() ? "…" : "");
}

// A crafted file may have other values.
ChatRole RoleOf(int64_t value) {
  return value == 0 ? ChatRole::kSystem : value == 2 ? ChatRole::kAssistant : ChatRole::kUser;
}

int64_t NumberOf(ChatRole role) { return static_cast<int64_t>(role == ChatRole::kTool ? ChatRole::kUser : role); }

StoredMessage MessageOf(const Statement& row) {
  StoredMessage message;
  message.id = row.Int(0);
  message.parent = row.Int(1);
  message.role = RoleOf(row.Int(2));
  message.text = row.Text(3);
  message.ids_begin = row.Int(4);
  message.token_ids = IdsOf(row.Blob(5));
  message.context_first = row.Int(6);
  message.model = row.Text(7);
  message.model_digest = static_cast<uint64_t>(row.Int(8));
  message.sampling_params = row.Text(9);
  message.finish_reason = row.Text(10);
  message.created_ms = row.Int(11);
  message.finished_ms = row.Int(12);
  message.thinking = row.Text(13);
  message.num_thinking_ids = row.Int(14);
  message.thinking_ms = row.Int(15);
  message.template_variables = row.Text(16);
  message.tool_calls = row.Text(17);
  message.tool_call_id = row.Text(18);
  message.tool_name = row.Text(19);
  if (message.role == ChatRole::kUser && !message.tool_call_id.empty()) message.role = ChatRole::kTool;
  return message;
}

}  // namespace

int64_t NowMs() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since_1970).count();
}

ChatStore::ChatStore(const std::string& directory, Access access)
    : directory_(directory), busy_timeout_ms_(access == Access::kRead ? kBusyTimeoutMs : kShortBusyTimeoutMs) {
  if (access == Access::kRead) {
    OpenForReading();
    return;
  }
  try {
    OpenForWriting();
  } catch (const StoreBusyError&) {  // database() tries again
  }
  SetWaiting(true);
}

std::unique_ptr<Database> ChatStore::Connect(Database::Mode mode) const {
  auto database = std::make_unique<Database>(path(), mode, busy_timeout_ms_);
  database->Execute(kProtection);
  return database;
}

void ChatStore::OpenForWriting() {
  EnsureFile(directory_, path());
  std::unique_ptr<Database> database = Connect(Database::Mode::kWrite);
  HasChatsSchema(*database);  // throws before anything in the file is changed
  database->Execute("PRAGMA secure_delete = ON; PRAGMA synchronous = FULL");
  ChooseJournal(database);
  PrepareChatsSchema(*database);
  struct stat status {};
  if (stat(path().c_str(), &status) != 0) database->Fail(std::strerror(errno));
  device_ = status.st_dev;
  inode_ = status.st_ino;
  database_ = std::move(database);
}

void ChatStore::OpenForReading() {
  std::unique_ptr<Database> database;
  const auto open = [&](Database::Mode mode) {
    database = Connect(mode);
    return HasChatsSchema(*database);
  };
  bool is_current = false;
  try {
    is_current = open(Database::Mode::kRead);
  } catch (const StoreBusyError&) {
    throw;
  } catch (const StoreError&) {
    // A database in WAL mode needs a -shm file, which SQLite cannot create in a directory that is not writable. Without
    // a log, the file itself has everything, and no process can be writing it.
    if (access(path().c_str(), R_OK) != 0 || access(directory_.c_str(), W_OK) == 0) throw;
    struct stat log {};
    if (stat((path() + "-wal").c_str(), &log) == 0 && log.st_size > 0) {
      throw StoreError(Escape(path()) + ": has a write-ahead log, which can be read only in a writable directory; " +
                       "copy chats.db and chats.db-wal to one");
    }
    is_current = open(Database::Mode::kImmutable);
  }
  if (is_current) {
    database_ = std::move(database);
    return;
  }
  database.reset();
  OpenForWriting();
}

Database& ChatStore::database() {
  if (database_ == nullptr) OpenForWriting();
  return *database_;
}

void ChatStore::Reopen() {
  UnlockChat();
  lock_fd_ = tokenizer::UniqueFd();
  database_.reset();
  OpenForWriting();
}

void ChatStore::SetWaiting(bool waits) {
  busy_timeout_ms_ = waits ? kBusyTimeoutMs : kShortBusyTimeoutMs;
  if (database_ != nullptr) database_->SetBusyTimeout(busy_timeout_ms_);
}

void ChatStore::ChooseJournal(std::unique_ptr<Database>& database) const {
  struct statfs status {};
  const bool is_known = statfs(directory_.c_str(), &status) == 0;
  const auto type = static_cast<uint32_t>(status.f_type);
  const bool is_remote =
      !is_known || std::find(kRemoteFileSystems.begin(), kRemoteFileSystems.end(), type) != kRemoteFileSystems.end();
  if (!is_remote) {
    try {
      if (EnterWal(*database, busy_timeout_ms_)) {
        // Some file systems accept WAL and then fail at the first write. This one changes nothing. The transaction
        // keeps another process from migrating the file between the read and the write.
        Transaction trial(*database);
        const int64_t version = database->QueryInt("PRAGMA user_version");
        database->Execute("PRAGMA user_version = " + std::to_string(version));
        trial.Commit();
        return;
      }
    } catch (const StoreBusyError&) {
      throw;
    } catch (const StoreError&) {
      database = Connect(Database::Mode::kWrite);
      database->Execute("PRAGMA secure_delete = ON");
    }
  }
  if (database->QueryText("PRAGMA journal_mode = DELETE") != "delete") {
    database->Fail("cannot use a rollback journal (another process may have the file open)");
  }
  // In this mode, EXTRA also syncs the directory after the journal is deleted.
  database->Execute("PRAGMA synchronous = EXTRA");
}

void ChatStore::CheckFile() {
  if (database_ == nullptr) return OpenForWriting();
  struct stat status {};
  if (stat(path().c_str(), &status) != 0 || status.st_dev != device_ || status.st_ino != inode_) {
    throw StoreReplacedError(Escape(path()) + ": was deleted or replaced while this program used it");
  }
}

int64_t ChatStore::CreateChat(const std::string& title) {
  CheckFile();
  const int64_t now = NowMs();
  Statement insert(*database_, "INSERT INTO chats(title, created_ms, updated_ms) VALUES (?, ?, ?)");
  insert.Bind(1, title).Bind(2, now).Bind(3, now).Run();
  return database_->last_insert_id();
}

void ChatStore::IndexText(int64_t message, std::string_view text) {
  Statement insert(*database_, "INSERT INTO message_words(rowid, text) VALUES (?, ?)");
  insert.Bind(1, message).Bind(2, text).Run();
}

void ChatStore::UnindexText(int64_t message, std::string_view text) {
  Statement remove(*database_, "INSERT INTO message_words(message_words, rowid, text) VALUES ('delete', ?, ?)");
  remove.Bind(1, message).Bind(2, text).Run();
}

int64_t ChatStore::InsertMessage(int64_t chat, const StoredMessage& message) {
  Statement insert(*database_,
                   "INSERT INTO messages(chat, parent, role, text, ids_begin, context_first, model, "
                   "model_digest, sampling_params, finish_reason, created_ms, finished_ms, thinking, "
                   "num_thinking_ids, thinking_ms, template_variables, tool_calls, tool_call_id, tool_name) "
                   "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  insert.Bind(1, chat)
      .Bind(2, message.parent)
      .Bind(3, NumberOf(message.role))
      .Bind(4, message.text)
      .Bind(5, message.ids_begin)
      .Bind(6, message.context_first)
      .Bind(7, message.model)
      .Bind(8, static_cast<int64_t>(message.model_digest))
      .Bind(9, message.sampling_params)
      .Bind(10, message.finish_reason)
      .Bind(11, message.created_ms)
      .Bind(12, message.finished_ms)
      .Bind(13, message.thinking)
      .Bind(14, message.num_thinking_ids)
      .Bind(15, message.thinking_ms)
      .Bind(16, message.template_variables)
      .Bind(17, message.tool_calls)
      .Bind(18, message.tool_call_id)
      .Bind(19, message.tool_name)
      .Run();
  const int64_t id = database_->last_insert_id();
  Statement tokens(*database_, "INSERT INTO message_tokens(message, token_ids) VALUES (?, ?)");
  tokens.Bind(1, id).BindBlob(2, BytesOf(message.token_ids)).Run();
  IndexText(id, message.text);
  return id;
}

int64_t ChatStore::AddMessage(int64_t chat, const StoredMessage& message) {
  CheckFile();
  Transaction transaction(*database_);
  const int64_t id = InsertMessage(chat, message);
  SetCurrentMessage(chat, id);
  transaction.Commit();
  return id;
}

int64_t ChatStore::AddChat(const StoredChat& chat) {
  CheckFile();
  Transaction transaction(*database_);
  const auto time_or_now = [](int64_t ms) { return ms == 0 ? NowMs() : ms; };
  Statement insert(*database_, "INSERT INTO chats(title, created_ms, updated_ms) VALUES (?, ?, ?)");
  insert.Bind(1, chat.title).Bind(2, time_or_now(chat.created_ms)).Bind(3, time_or_now(chat.updated_ms)).Run();
  const int64_t chat_id = database_->last_insert_id();
  std::map<int64_t, int64_t> new_ids = {{0, 0}};
  for (StoredMessage message : chat.messages) {
    const int64_t old_id = message.id;
    message.parent = new_ids[message.parent];
    message.context_first = new_ids[message.context_first];
    message.created_ms = time_or_now(message.created_ms);
    new_ids[old_id] = InsertMessage(chat_id, message);
  }
  Statement update(*database_, "UPDATE chats SET current_message = ? WHERE id = ?");
  update.Bind(1, new_ids[chat.current_message]).Bind(2, chat_id).Run();
  transaction.Commit();
  return chat_id;
}

void ChatStore::UpdateMessage(int64_t chat, const StoredMessage& message) {
  CheckFile();
  Transaction transaction(*database_);
  Statement old(*database_, "SELECT text FROM messages WHERE id = ? AND chat = ?");
  old.Bind(1, message.id).Bind(2, chat);
  if (!old.Step()) database_->Fail("message " + std::to_string(message.id) + " was deleted");
  UnindexText(message.id, old.Text(0));
  IndexText(message.id, message.text);
  Statement update(*database_,
                   "UPDATE messages SET text = ?, finish_reason = ?, finished_ms = ?, sampling_params = ?, "
                   "thinking = ?, num_thinking_ids = ?, thinking_ms = ?, tool_calls = ?, ids_begin = ?, "
                   "context_first = ?, model = ?, model_digest = ?, template_variables = ? WHERE id = ? AND chat = ?");
  update.Bind(1, message.text)
      .Bind(2, message.finish_reason)
      .Bind(3, message.finished_ms)
      .Bind(4, message.sampling_params)
      .Bind(5, message.thinking)
      .Bind(6, message.num_thinking_ids)
      .Bind(7, message.thinking_ms)
      .Bind(8, message.tool_calls)
      .Bind(9, message.ids_begin)
      .Bind(10, message.context_first)
      .Bind(11, message.model)
      .Bind(12, static_cast<int64_t>(message.model_digest))
      .Bind(13, message.template_variables)
      .Bind(14, message.id)
      .Bind(15, chat)
      .Run();
  Statement tokens(*database_, "UPDATE message_tokens SET token_ids = ? WHERE message = ?");
  tokens.BindBlob(1, BytesOf(message.token_ids)).Bind(2, message.id).Run();
  Statement touch(*database_, "UPDATE chats SET updated_ms = ? WHERE id = ?");
  touch.Bind(1, NowMs()).Bind(2, chat).Run();
  transaction.Commit();
}

void ChatStore::SetCurrentMessage(int64_t chat, int64_t message) {
  CheckFile();
  Statement update(*database_, "UPDATE chats SET current_message = ?, updated_ms = ? WHERE id = ?");
  update.Bind(1, message).Bind(2, NowMs()).Bind(3, chat).Run();
}

void ChatStore::SetTitle(int64_t chat, const std::string& title) {
  CheckFile();
  Statement update(*database_, "UPDATE chats SET title = ? WHERE id = ?");
  update.Bind(1, title).Bind(2, chat).Run();
}

void ChatStore::SetDraft(int64_t chat, const std::string& draft) {
  CheckFile();
  Statement update(*database_, "UPDATE chats SET draft = ? WHERE id = ?");
  update.Bind(1, draft).Bind(2, chat).Run();
}

bool ChatStore::DeleteChat(int64_t chat) {
  CheckFile();
  {
    Transaction transaction(*database_);
    Statement texts(*database_, "SELECT id, text FROM messages WHERE chat = ?");
    texts.Bind(1, chat);
    while (texts.Step()) UnindexText(texts.Int(0), texts.Text(1));
    Statement messages(*database_, "DELETE FROM messages WHERE chat = ?");
    messages.Bind(1, chat).Run();
    Statement row(*database_, "DELETE FROM chats WHERE id = ?");
    row.Bind(1, chat).Run();
    if (database_->num_changes() == 0) return false;
    // Merges the index, so that no old segment contains words of the deleted text.
    database_->Execute("INSERT INTO message_words(message_words) VALUES ('optimize')");
    transaction.Commit();
  }
  return true;
}

bool ChatStore::EraseDeleted() {
  // secure_delete has overwritten freed pages with zeros in the new versions of the pages. The old versions stay in the
  // write-ahead log until it is written back and truncated, which other processes that read the file can prevent.
  Statement checkpoint(database(), "PRAGMA wal_checkpoint(TRUNCATE)");
  return !checkpoint.Step() || checkpoint.Int(0) == 0;
}

std::vector<ChatSummary> ChatStore::Summaries(Statement& statement) {
  std::vector<ChatSummary> summaries;
  while (statement.Step()) {
    summaries.push_back({statement.Int(0), std::string(statement.Text(1)), statement.Int(2), statement.Int(3),
                         statement.Int(4), std::string(statement.Text(5))});
  }
  return summaries;
}

std::vector<ChatSummary> ChatStore::List(int64_t limit) {
  Statement statement(database(), std::string(kSummaryColumns) + "ORDER BY updated_ms DESC, id DESC LIMIT ?");
  statement.Bind(1, limit);
  return Summaries(statement);
}

std::vector<ChatSummary> ChatStore::FindByTitle(const std::string& text, int64_t limit) {
  Statement statement(database(), std::string(kSummaryColumns) +
                                      "WHERE shown LIKE ? ESCAPE '\\' ORDER BY updated_ms DESC, id DESC LIMIT ?");
  statement.Bind(1, LikePattern(text)).Bind(2, limit);
  return Summaries(statement);
}

std::optional<StoredChat> ChatStore::Load(int64_t chat) {
  Statement row(database(), "SELECT title, current_message, created_ms, updated_ms, draft FROM chats WHERE id = ?");
  row.Bind(1, chat);
  if (!row.Step()) return std::nullopt;
  StoredChat result;
  result.id = chat;
  result.title = row.Text(0);
  result.current_message = row.Int(1);
  result.created_ms = row.Int(2);
  result.updated_ms = row.Int(3);
  result.draft = row.Text(4);
  Statement messages(*database_,
                     "SELECT id, parent, role, text, ids_begin, token_ids, context_first, model, model_digest, "
                     "sampling_params, finish_reason, created_ms, finished_ms, thinking, num_thinking_ids, "
                     "thinking_ms, template_variables, tool_calls, tool_call_id, tool_name FROM messages "
                     "JOIN message_tokens ON message = id WHERE chat = ? ORDER BY id");
  messages.Bind(1, chat);
  while (messages.Step()) result.messages.push_back(MessageOf(messages));
  return result;
}

std::vector<SearchHit> ChatStore::Search(const std::string& query, int64_t limit) {
  std::vector<SearchHit> hits;
  const std::string words = WordQuery(query);
  if (words.empty()) return hits;
  if (!HasUnspacedScript(query)) {
    Statement statement(database(), std::string("SELECT messages.chat, messages.id, ") + kTitleColumn +
                                        ", messages.role, snippet(message_words, 0, '', '', '…', 16) "
                                        "FROM message_words JOIN messages ON messages.id = message_words.rowid "
                                        "JOIN chats ON chats.id = messages.chat "
                                        "WHERE message_words MATCH ? ORDER BY message_words.rank LIMIT ?");
    statement.Bind(1, words).Bind(2, limit);
    while (statement.Step()) {
      hits.push_back({statement.Int(0), statement.Int(1), std::string(statement.Text(2)), RoleOf(statement.Int(3)),
                      std::string(statement.Text(4))});
    }
    if (!hits.empty()) return hits;
  }
  return SearchSubstring(query, limit);
}

std::vector<SearchHit> ChatStore::SearchSubstring(const std::string& query, int64_t limit) {
  std::vector<SearchHit> hits;
  Statement scan(database(), "SELECT id, text FROM messages ORDER BY id DESC");
  Statement details(*database_, std::string("SELECT messages.chat, ") + kTitleColumn +
                                    ", messages.role FROM messages JOIN chats ON chats.id = messages.chat "
                                    "WHERE messages.id = ?");
  while (static_cast<int64_t>(hits.size()) < limit && scan.Step()) {
    const std::string_view text = scan.Text(1);
    const size_t found = tokenizer::FindIgnoringCase(text, query);
    if (found == std::string_view::npos) continue;
    details.Bind(1, scan.Int(0));
    if (details.Step()) {
      hits.push_back({details.Int(0), scan.Int(0), std::string(details.Text(1)), RoleOf(details.Int(2)),
                      SnippetAround(text, found, query.size())});
    }
    details.Reset();
  }
  return hits;
}

bool ChatStore::LockChat(int64_t chat) {
  if (locked_chat_ == chat) return true;
  if (!lock_fd_.valid()) {
    const std::string path = directory_ + "/chats.lock";
    lock_fd_ = tokenizer::UniqueFd(open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!lock_fd_.valid()) throw StoreError(Escape(path) + ": " + std::strerror(errno));
  }
  if (!SetLock(chat, F_WRLCK)) return false;
  UnlockChat();
  locked_chat_ = chat;
  return true;
}

void ChatStore::UnlockChat() {
  if (locked_chat_ != 0) SetLock(locked_chat_, F_UNLCK);
  locked_chat_ = 0;
}

bool ChatStore::SetLock(int64_t chat, int16_t type) {
  // One byte of the lock file for each conversation. The lock belongs to the descriptor and ends with the process.
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = chat;
  lock.l_len = 1;
  if (fcntl(lock_fd_.get(), F_OFD_SETLK, &lock) == 0) return true;
  if (errno == EAGAIN || errno == EACCES) return false;
  throw StoreError(Escape(directory_ + "/chats.lock") + ": " + std::strerror(errno));
}

}  // namespace vllm::app
