// The functions of the MPI modules: shared libraries with the calls of one MPI library each, because the ABIs of Open
// MPI and MPICH differ and because vllmcli must start without MPI. MpiLink loads a module with dlopen. A plain C
// interface. All calls on one thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

extern "C" {

// Changes with every change of this file.
#define VLLMCLI_MPI_MODULE_VERSION 1

enum VllmcliMpiEventKind { kVllmcliMpiSent = 0, kVllmcliMpiReceived = 1, kVllmcliMpiFailed = 2 };

struct VllmcliMpiEvent {
  int32_t kind;
  int32_t rank;
  int64_t num_bytes;  // kVllmcliMpiReceived
  int32_t error;      // kVllmcliMpiFailed: code for Describe
};

// Functions that can fail return 0 or an error code for describe.
struct VllmcliMpiModule {
  int32_t version;
  // Joins the job. At most once per process.
  int32_t (*start)(int32_t* rank, int32_t* size);
  // Starts to send to a rank or to receive from it. The bytes must stay valid until poll reports the end. At most one
  // of each kind per rank at a time.
  int32_t (*send)(int32_t rank, const void* bytes, size_t num_bytes);
  int32_t (*receive)(int32_t rank, void* bytes, size_t capacity);
  // Writes up to `capacity` events and returns their number, or a negative number if MPI fails. Never waits.
  int32_t (*poll)(VllmcliMpiEvent* events, int32_t capacity);
  // Cancels what has not ended, and leaves the job. Waits until the other processes leave it too.
  void (*finish)(void);
  // Writes the text for an error code, ended by a zero byte.
  void (*describe)(int32_t error, char* text, size_t capacity);
};

// The only symbol of a module.
__attribute__((visibility("default"))) const VllmcliMpiModule* vllmcli_mpi_module(void);

}  // extern "C"
