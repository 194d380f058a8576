/* Processes that end with things of the library still owned, each by other code than the one that made them. */
#ifndef TEST_EXIT_PROCESS_H
#define TEST_EXIT_PROCESS_H

#include "rocm_device_map.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A stream with submitted work, an event, memory of both kinds, and a thread-local stream. */
typedef struct exit_belongings {
  rdm_device device;
  rdm_stream stream;
  rdm_event event;
  rdm_thread_local_stream thread_local_stream;
  void *memory;
  void *host_memory;
} exit_belongings;

/* Ends the process as a failed one where anything fails. */
void exit_acquire(exit_belongings *own);

/* Gives everything back. Each release has to be RDM_OK, whatever the process is at: else the process ends with 98. */
void exit_give_back(exit_belongings *own);

/* Run last of all: ends the process with 99 where the driver was called since the library's exit handler ran. */
void exit_verdict(void);

/* The body of C++ statics and thread-locals. */
int exit_of_cxx_objects(void);

#ifdef __cplusplus
}
#endif

#endif
