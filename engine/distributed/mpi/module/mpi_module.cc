// One MPI module; see mpi_module.h. Compiled once per MPI library.
//
// Every rank has one receive posted at a time. A receive from a single source, instead of from any, has two advantages:
// a sender that dies in the middle of a packet blocks no other, and an MPI with fault tolerance (ULFM) completes the
// receive with an error when its source dies.
#include "engine/distributed/mpi/mpi_module.h"

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace vllm {
namespace {

struct State {
  MPI_Comm comm = MPI_COMM_NULL;
  int size = 0;
  // [2 * size]: the send to each rank, then the receive from each rank.
  std::vector<MPI_Request> requests;
  std::vector<int> indices;
  std::vector<MPI_Status> statuses;
};

State& TheState() {
  static State state;
  return state;
}

// Sets an environment variable that the user has not set. The caller of start waits for it, so no other thread of the
// program reads the environment now.
void SetDefault(const char* name, const char* value) { setenv(name, value, /*overwrite=*/0); }

int32_t Start(int32_t* rank, int32_t* size) {
  State& state = TheState();
  // Packets between processes of one machine are copied through shared memory, never read from the memory of the
  // sender: that ends the reader (UCX) or prints errors (Open MPI) if the sender dies, and many containers forbid it.
  SetDefault("UCX_RNDV_THRESH", "inf");
  SetDefault("OMPI_MCA_btl_vader_single_copy_mechanism", "none");
  int provided = 0;
  int error = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  if (error != MPI_SUCCESS) return error;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  error = MPI_Comm_dup(MPI_COMM_WORLD, &state.comm);
  if (error != MPI_SUCCESS) return error;
  MPI_Comm_set_errhandler(state.comm, MPI_ERRORS_RETURN);
  int own_rank = 0;
  MPI_Comm_rank(state.comm, &own_rank);
  MPI_Comm_size(state.comm, &state.size);
  const auto num_requests = static_cast<size_t>(state.size) * 2;
  state.requests.assign(num_requests, MPI_REQUEST_NULL);
  state.indices.resize(num_requests);
  state.statuses.resize(num_requests);
  *rank = own_rank;
  *size = state.size;
  return 0;
}

int32_t Send(int32_t rank, const void* bytes, size_t num_bytes) {
  State& state = TheState();
  return MPI_Isend(bytes, static_cast<int>(num_bytes), MPI_BYTE, rank, 0, state.comm,
                   &state.requests[static_cast<size_t>(rank)]);
}

int32_t Receive(int32_t rank, void* bytes, size_t capacity) {
  State& state = TheState();
  return MPI_Irecv(bytes, static_cast<int>(capacity), MPI_BYTE, rank, 0, state.comm,
                   &state.requests[static_cast<size_t>(state.size) + static_cast<size_t>(rank)]);
}

int32_t Poll(VllmcliMpiEvent* events, int32_t capacity) {
  State& state = TheState();
  if (capacity < 2 * state.size) return -1;
  int count = 0;
  const int error =
      MPI_Testsome(2 * state.size, state.requests.data(), &count, state.indices.data(), state.statuses.data());
  if (error != MPI_SUCCESS && error != MPI_ERR_IN_STATUS) return -1;
  if (count == MPI_UNDEFINED) return 0;  // there are no requests
  for (int i = 0; i < count; ++i) {
    const int index = state.indices[static_cast<size_t>(i)];
    const MPI_Status& status = state.statuses[static_cast<size_t>(i)];
    VllmcliMpiEvent& event = events[i];
    event = {};
    event.rank = index % state.size;
    event.kind = index < state.size ? kVllmcliMpiSent : kVllmcliMpiReceived;
    if (error == MPI_ERR_IN_STATUS && status.MPI_ERROR != MPI_SUCCESS) {
      event.kind = kVllmcliMpiFailed;
      event.error = status.MPI_ERROR;
    } else if (event.kind == kVllmcliMpiReceived) {
      int num_bytes = 0;
      MPI_Get_count(&status, MPI_BYTE, &num_bytes);
      event.num_bytes = num_bytes;
    }
  }
  return count;
}

void Finish() {
  State& state = TheState();
  for (size_t i = 0; i < state.requests.size(); ++i) {
    MPI_Request& request = state.requests[i];
    if (request == MPI_REQUEST_NULL) continue;
    // Sends that have not ended are those to dead ranks. Canceling them is not possible everywhere.
    if (i >= static_cast<size_t>(state.size)) MPI_Cancel(&request);
    MPI_Request_free(&request);
  }
  MPI_Finalize();
}

void Describe(int32_t error, char* text, size_t capacity) {
  char buffer[MPI_MAX_ERROR_STRING + 1] = {};
  int length = 0;
  if (MPI_Error_string(error, buffer, &length) != MPI_SUCCESS) std::snprintf(buffer, sizeof(buffer), "error %d", error);
  std::snprintf(text, capacity, "%s", buffer);
}

const VllmcliMpiModule kModule = {VLLMCLI_MPI_MODULE_VERSION, Start, Send, Receive, Poll, Finish, Describe};

}  // namespace
}  // namespace vllm

const VllmcliMpiModule* vllmcli_mpi_module(void) { return &vllm::kModule; }
