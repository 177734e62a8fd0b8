// The directory with the sockets of the user's processes that run an engine: $XDG_RUNTIME_DIR/vllmcli, or
// /tmp/vllmcli-UID if that cannot be used. A directory is used only if it belongs to the user and nobody else has
// access. A socket is called PID.sock, or PID-2.sock and so on if a process has several. Functions without state; any
// thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace vllm::app {

// Creates the directory if needed and returns its path. Returns an empty string if there is no usable directory.
std::string MakeLiveDirectory();

// A process with a socket. Whether it still runs is not known.
struct LiveSocket {
  pid_t pid = 0;
  std::string path = {};
  std::string command_line = {};  // untrusted; empty if unknown
};

// Returns the sockets in MakeLiveDirectory(), the newest first. A process that was started with another
// XDG_RUNTIME_DIR has its socket elsewhere and is not found.
std::vector<LiveSocket> ListLiveSockets();

// Removes the sockets in `directory` to which no process listens any more.
void RemoveStaleSockets(const std::string& directory);

// Connects to the socket at `path` without waiting. Returns a non-blocking descriptor, or -1 with errno. EACCES: the
// process belongs to another user.
int ConnectLiveSocket(const std::string& path);

// Returns a non-blocking socket that listens at `path`, which has mode 0600 before a process can connect, or -1 with
// errno. EADDRINUSE: another process listens there.
int ListenLiveSocket(const std::string& path);

// Returns true if the process at the other end of a Unix socket belongs to the same user.
bool PeerIsSameUser(int fd);

}  // namespace vllm::app
