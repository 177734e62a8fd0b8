#include "app/live/live_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

// A directory with more entries is not listed any further.
constexpr int kMaxEntries = 10000;
constexpr int kBacklog = 8;

// The candidates, the preferred one first.
std::vector<std::string> Candidates() {
  std::vector<std::string> paths;
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && runtime[0] == '/') paths.push_back(std::string(runtime) + "/vllmcli");
  paths.push_back("/tmp/vllmcli-" + std::to_string(geteuid()));
  return paths;
}

// lstat, not stat: in /tmp, another user might have placed a symbolic link.
bool IsPrivate(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
         (status.st_mode & 077) == 0;
}

// Returns nullopt if the path is too long for a socket.
std::optional<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{};
  if (path.size() >= sizeof(address.sun_path)) return std::nullopt;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

// Returns the process id in "PID.sock" or "PID-N.sock", or 0.
pid_t PidOf(std::string_view name) {
  constexpr std::string_view kSuffix = ".sock";
  if (!name.ends_with(kSuffix)) return 0;
  name.remove_suffix(kSuffix.size());
  if (const size_t dash = name.find('-'); dash != std::string_view::npos) {
    if (name.size() != dash + 2 || name.back() < '2' || name.back() > '9') return 0;
    name = name.substr(0, dash);
  }
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  return error == std::errc() && end == name.data() + name.size() && pid > 0 ? pid : 0;
}

std::string CommandLineOf(pid_t pid) {
  const tokenizer::UniqueFd fd(open(("/proc/" + std::to_string(pid) + "/cmdline").c_str(), O_RDONLY | O_CLOEXEC));
  std::string text(256, '\0');
  const ssize_t num_read = fd.valid() ? read(fd.get(), text.data(), text.size()) : -1;
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, num_read)));
  std::replace(text.begin(), text.end(), '\0', ' ');
  return text;
}

struct FoundSocket {
  LiveSocket socket;
  timespec modified;
};

std::vector<FoundSocket> SocketsIn(const std::string& directory) {
  std::vector<FoundSocket> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(directory.c_str()), closedir);
  if (dir == nullptr) return found;
  for (int i = 0; i < kMaxEntries; ++i) {
    const dirent* entry = readdir(dir.get());
    if (entry == nullptr) break;
    const pid_t pid = PidOf(entry->d_name);
    struct stat status {};
    const std::string path = directory + "/" + entry->d_name;
    if (pid == 0 || lstat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode) || status.st_uid != geteuid()) {
      continue;
    }
    found.push_back({{pid, path, CommandLineOf(pid)}, status.st_mtim});
  }
  return found;
}

}  // namespace

std::string MakeLiveDirectory() {
  for (const std::string& path : Candidates()) {
    // Room for "/.2147483647-2.sock".
    if (path.size() + 24 >= sizeof(sockaddr_un::sun_path)) continue;
    if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) continue;
    if (IsPrivate(path)) return path;
  }
  return "";
}

std::vector<LiveSocket> ListLiveSockets() {
  const std::string directory = MakeLiveDirectory();
  if (directory.empty()) return {};
  std::vector<FoundSocket> found = SocketsIn(directory);
  std::sort(found.begin(), found.end(), [](const FoundSocket& a, const FoundSocket& b) {
    return std::pair(a.modified.tv_sec, a.modified.tv_nsec) > std::pair(b.modified.tv_sec, b.modified.tv_nsec);
  });
  std::vector<LiveSocket> sockets;
  for (FoundSocket& socket : found) sockets.push_back(std::move(socket.socket));
  return sockets;
}

void RemoveStaleSockets(const std::string& directory) {
  for (const FoundSocket& found : SocketsIn(directory)) {
    const int fd = ConnectLiveSocket(found.socket.path);
    // Do not ask whether the process exists: it may run in another container that shares the directory.
    if (fd < 0 && errno == ECONNREFUSED) unlink(found.socket.path.c_str());
    if (fd >= 0) close(fd);
  }
}

int ConnectLiveSocket(const std::string& path) {
  const std::optional<sockaddr_un> address = AddressOf(path);
  if (!address) {
    errno = ENAMETOOLONG;
    return -1;
  }
  tokenizer::UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return -1;
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) != 0) {
    const int error = errno;
    fd = tokenizer::UniqueFd();
    errno = error;
    return -1;
  }
  if (!PeerIsSameUser(fd.get())) {
    errno = EACCES;
    return -1;
  }
  return fd.Release();
}

int ListenLiveSocket(const std::string& path) {
  if (const int other = ConnectLiveSocket(path); other >= 0) {
    close(other);
    errno = EADDRINUSE;
    return -1;
  }
  // The socket gets its name once it listens. If it had the name before, another process could take it for stale.
  const size_t slash = path.rfind('/');
  const std::string temporary = path.substr(0, slash + 1) + "." + path.substr(slash + 1);
  const std::optional<sockaddr_un> address = AddressOf(temporary);
  if (!address) {
    errno = ENAMETOOLONG;
    return -1;
  }
  unlink(temporary.c_str());
  tokenizer::UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return -1;
  // On Linux the file gets the mode of the socket.
  fchmod(fd.get(), 0600);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) != 0) return -1;
  if (chmod(temporary.c_str(), 0600) != 0 || listen(fd.get(), kBacklog) != 0 ||
      std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    unlink(temporary.c_str());
    errno = error;
    return -1;
  }
  return fd.Release();
}

bool PeerIsSameUser(int fd) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && size == sizeof(peer) && peer.uid == geteuid();
}

}  // namespace vllm::app
