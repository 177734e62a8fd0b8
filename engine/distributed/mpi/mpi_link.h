// MpiLink: a PacketLink over MPI. Loads the MPI module that fits the launcher (mpi_module.h). Owned by a Transport, on
// its thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/distributed/launcher.h"
#include "engine/distributed/mpi/mpi_module.h"
#include "engine/distributed/packet_link.h"

namespace vllm {

class MpiLink final : public PacketLink {
 public:
  // Loads a module and joins the job. Throws ConfigError if there is no module that can be loaded, or if MPI does not
  // agree with the launcher about the rank of this process. At most once per process.
  explicit MpiLink(const LaunchInfo& launch);
  ~MpiLink() override;
  MpiLink(const MpiLink&) = delete;
  MpiLink& operator=(const MpiLink&) = delete;

  void SetBroken() override { is_broken_ = true; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void Send(int to, std::string_view packet) override;
  void Poll(std::vector<Event>& events) override;

 private:
  struct Peer {
    std::string send_buffer;
    std::string receive_buffer;
    bool is_receiving = false;
    bool has_failed = false;
    bool has_news = false;  // has_failed has not been reported yet
    std::string cause;
  };

  std::string Describe(int error) const;
  void Receive(int from);
  void Fail(int rank, std::string cause);
  // True for the ranks with which this one exchanges packets.
  bool IsPeer(int rank) const { return rank != rank_ && (rank_ == 0 || rank == 0); }

  const VllmcliMpiModule* module_;
  int rank_ = 0;
  int size_ = 0;
  bool is_broken_ = false;
  std::vector<Peer> peers_;  // [size]
  std::vector<VllmcliMpiEvent> module_events_;
};

}  // namespace vllm
