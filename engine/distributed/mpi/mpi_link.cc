#include "engine/distributed/mpi/mpi_link.h"

#include <dlfcn.h>

#include <array>
#include <filesystem>
#include <utility>

#include "engine/config/errors.h"

namespace vllm {
namespace {

namespace fs = std::filesystem;

// Returns the paths at which a module may be: in a build tree, where the program is build/<preset>/vllmcli or
// build/<preset>/tests/program_test, or in an installed tree, which can be moved, or where it was to be installed.
std::vector<fs::path> PathsOf(std::string_view library) {
  const fs::path file = fs::path("vllmcli") / ("libvllmcli_" + std::string(library) + ".so");
  std::vector<fs::path> paths;
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    const fs::path directory = self.parent_path();
    for (const char* build : {"", ".."}) {
      const fs::path root = (directory / build).lexically_normal();
      if (fs::exists(root / "CMakeCache.txt", error)) paths.push_back(root / "lib" / file);
    }
    paths.push_back((directory / VLLMCLI_LIBDIR_FROM_BINDIR / file).lexically_normal());
  }
  paths.push_back(fs::path(VLLMCLI_FULL_LIBDIR) / file);
  return paths;
}

// Returns the first module that can be loaded. The libraries stay loaded until the process ends.
const VllmcliMpiModule* Load(const LaunchInfo& launch) {
  std::string why;
  std::error_code error;
  for (const std::string_view library : launch.libraries) {
    for (const fs::path& path : PathsOf(library)) {
      if (!fs::exists(path, error)) continue;
      // Global, because the plugins of some MPI libraries expect to find the library's symbols.
      void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
      if (handle == nullptr) {
        why += (why.empty() ? "" : "; ") + std::string(dlerror());
        continue;
      }
      using GetModule = const VllmcliMpiModule* (*)();
      const auto get_module = reinterpret_cast<GetModule>(dlsym(handle, "vllmcli_mpi_module"));
      const VllmcliMpiModule* module = get_module == nullptr ? nullptr : get_module();
      if (module != nullptr && module->version == VLLMCLI_MPI_MODULE_VERSION) return module;
      why += (why.empty() ? "" : "; ") + path.string() + ": is from another version of vllmcli";
    }
  }
  if (why.empty()) why = "vllmcli was built without MPI";
  const bool wants_mpich = launch.libraries.front() == "mpich";
  throw ConfigError("cannot join the " + std::to_string(launch.size) + " processes that MPI has started: " + why,
                    wants_mpich ? "install libmpich12 to run, and libmpich-dev to build, or use mpirun.openmpi"
                                : "install libopenmpi3 to run, and libopenmpi-dev to build");
}

}  // namespace

MpiLink::MpiLink(const LaunchInfo& launch) : module_(Load(launch)) {
  int32_t rank = 0;
  int32_t size = 0;
  if (const int32_t error = module_->start(&rank, &size)) {
    throw ConfigError("cannot join the MPI job: " + Describe(error));
  }
  rank_ = rank;
  size_ = size;
  if (rank_ != launch.rank || size_ != launch.size) {
    // Without the launcher's library, MPI treats each process as a separate job.
    module_->finish();
    throw ConfigError("the MPI library does not work with the launcher: it says rank " + std::to_string(rank_) +
                          " of " + std::to_string(size_) + ", the launcher says rank " + std::to_string(launch.rank) +
                          " of " + std::to_string(launch.size),
                      "start vllmcli with the mpirun of the MPI library that it was built with");
  }
  peers_.resize(static_cast<size_t>(size_));
  module_events_.resize(2 * static_cast<size_t>(size_));
  for (int peer = 0; peer < size_; ++peer) {
    if (!IsPeer(peer)) continue;
    peers_[static_cast<size_t>(peer)].receive_buffer.resize(kMaxPacketBytes);
    Receive(peer);
  }
}

// Without MPI_Finalize, mpirun notices the end of the process only by its exit.
MpiLink::~MpiLink() {
  if (!is_broken_) module_->finish();
}

std::string MpiLink::Describe(int error) const {
  std::array<char, 512> text{};
  module_->describe(error, text.data(), text.size());
  return text.data();
}

void MpiLink::Fail(int rank, std::string cause) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  if (std::exchange(peer.has_failed, true)) return;
  peer.has_news = true;
  peer.cause = std::move(cause);
}

void MpiLink::Receive(int from) {
  Peer& peer = peers_[static_cast<size_t>(from)];
  if (const int32_t error = module_->receive(from, peer.receive_buffer.data(), peer.receive_buffer.size())) {
    Fail(from, Describe(error));
  } else {
    peer.is_receiving = true;
  }
}

void MpiLink::Send(int to, std::string_view packet) {
  Peer& peer = peers_[static_cast<size_t>(to)];
  if (peer.has_failed) return;
  peer.send_buffer = packet;
  if (const int32_t error = module_->send(to, peer.send_buffer.data(), peer.send_buffer.size())) {
    Fail(to, Describe(error));
  }
}

void MpiLink::Poll(std::vector<Event>& events) {
  events.clear();
  // The packets of the last call have been used.
  for (int rank = 0; rank < size_; ++rank) {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    if (IsPeer(rank) && !peer.is_receiving && !peer.has_failed) Receive(rank);
  }
  const int32_t count = module_->poll(module_events_.data(), static_cast<int32_t>(module_events_.size()));
  if (count < 0) throw ResourceError("MPI has failed");
  for (int32_t i = 0; i < count; ++i) {
    const VllmcliMpiEvent& event = module_events_[static_cast<size_t>(i)];
    Peer& peer = peers_[static_cast<size_t>(event.rank)];
    if (event.kind == kVllmcliMpiFailed) {
      Fail(event.rank, Describe(event.error));
    } else if (event.kind == kVllmcliMpiSent) {
      events.push_back({.kind = EventKind::kSent, .rank = event.rank, .packet = {}, .cause = {}});
    } else {
      peer.is_receiving = false;
      const std::string_view packet(peer.receive_buffer.data(), static_cast<size_t>(event.num_bytes));
      events.push_back({.kind = EventKind::kReceived, .rank = event.rank, .packet = packet, .cause = {}});
    }
  }
  for (int rank = 0; rank < size_; ++rank) {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    if (std::exchange(peer.has_news, false)) {
      events.push_back({.kind = EventKind::kFailed, .rank = rank, .packet = {}, .cause = peer.cause});
    }
  }
}

}  // namespace vllm
