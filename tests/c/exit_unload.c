/*
 * Unloading the shared library while it is in use: exit_unload LIBRARY. It is never unloaded, so dlclose is safe at any
 * moment, and what was taken from the library goes on working. Exit code 10.
 */
#include "rocm_device_map.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define X_FUNCTIONS(X)                  \
  X(rdm_configure)                      \
  X(rdm_device_get)                     \
  X(rdm_stream_create)                  \
  X(rdm_stream_release)                 \
  X(rdm_stream_synchronize)             \
  X(rdm_encoder_get)                    \
  X(rdm_encoder_add_completion_handler) \
  X(rdm_encoder_commit)                 \
  X(rdm_encoder_record_event)           \
  X(rdm_event_create)                   \
  X(rdm_event_wait)                     \
  X(rdm_sim_hold)

#define X(name) static __typeof__(&name) the_##name;
X_FUNCTIONS(X)
#undef X

static int handlers_run;
static rdm_stream stream;

#define NEED(call)                                         \
  do {                                                     \
    int status_ = (call);                                  \
    if (status_ != RDM_OK) {                               \
      fprintf(stderr, "%s returned %d\n", #call, status_); \
      exit(1);                                             \
    }                                                      \
  } while (0)

static void find(void *library, const char *name, void *out_function) {
  void *function = dlsym(library, name);
  if (function == NULL) {
    fprintf(stderr, "%s is not there\n", name);
    exit(2);
  }
  *(void **)out_function = function;
}

static void count(rdm_status status, void *user_data) {
  (void)user_data;
  if (status == RDM_OK) __atomic_add_fetch(&handlers_run, 1, __ATOMIC_SEQ_CST);
}

static void *wait_inside(void *argument) {
  (void)argument;
  NEED(the_rdm_stream_synchronize(stream, RDM_WAIT_FOREVER));
  return NULL;
}

int main(int argc, char **argv) {
  void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (library == NULL) {
    fprintf(stderr, "no library: %s\n", argc == 2 ? dlerror() : "usage: exit_unload LIBRARY");
    return 2;
  }
#define X(name) find(library, #name, &the_##name);
  X_FUNCTIONS(X)
#undef X
  rdm_config config = {.struct_size = sizeof config, .driver = "sim", .sim_device_count = 1};
  rdm_device device;
  rdm_event event;
  rdm_encoder encoder;
  pthread_t waiter;
  NEED(the_rdm_configure(&config));
  NEED(the_rdm_device_get(0, &device));
  NEED(the_rdm_stream_create(0, &stream));
  NEED(the_rdm_encoder_get(stream, &encoder));
  NEED(the_rdm_event_create(device, RDM_EVENT_DEFAULT, &event));
  NEED(the_rdm_sim_hold(0, 1));
  NEED(the_rdm_encoder_record_event(encoder, event));
  NEED(the_rdm_encoder_add_completion_handler(encoder, count, NULL));
  NEED(the_rdm_encoder_commit(encoder));
  NEED(pthread_create(&waiter, NULL, wait_inside, NULL));
  nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
  /* A thread of the program, the completion thread and the device's threads are inside it now. */
  NEED(dlclose(library));
  if (dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) == NULL) {
    fprintf(stderr, "the library was unloaded\n");
    return 3;
  }
  NEED(the_rdm_sim_hold(0, 0));
  NEED(the_rdm_event_wait(event, RDM_WAIT_FOREVER));
  NEED(pthread_join(waiter, NULL));
  if (__atomic_load_n(&handlers_run, __ATOMIC_SEQ_CST) != 1) return 4;
  NEED(the_rdm_stream_release(stream));
  return 10;
}
