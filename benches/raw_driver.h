/*
 * The driver called directly, with nothing of this library in between: what a baseline that stands for hand-written
 * code calls. For `hip` and `cuda` these are the entry points of the very libraries that the process has loaded. For
 * `sim` they are the simulated driver's, whose costs are the simulation's and no GPU's.
 */
#ifndef RDM_BENCH_RAW_DRIVER_H
#define RDM_BENCH_RAW_DRIVER_H

#include "bench.h"

#include <stdbool.h>

enum { RDM__RAW_SUCCESS = 0, RDM__RAW_NOT_READY = 600 };
enum { RDM__RAW_CAPTURE_MODE_RELAXED = 2 };
enum { RDM__RAW_STREAM_NON_BLOCKING = 1, RDM__RAW_EVENT_DISABLE_TIMING = 2, RDM__RAW_DEVICE_TO_HOST = 2 };

typedef struct rdm__bench_raw {
  int (*set_device)(int device);
  int (*stream_create)(void **stream, unsigned flags);
  int (*stream_destroy)(void *stream);
  int (*stream_synchronize)(void *stream);
  int (*event_create)(void **event, unsigned flags);
  int (*event_destroy)(void *event);
  int (*event_record)(void *event, void *stream);
  int (*event_query)(void *event);
  int (*memory_allocate)(void **pointer, size_t size);
  int (*memory_free)(void *pointer);
  int (*host_memory_allocate)(void **pointer, size_t size, unsigned flags);
  int (*host_memory_free)(void *pointer);
  int (*memory_copy_async)(void *to, const void *from, size_t size, int kind, void *stream);
  int (*module_load)(void **module, const void *image);
  int (*module_get_function)(void **function, void *module, const char *name);
  int (*launch_kernel)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                       unsigned block_y, unsigned block_z, unsigned shared_memory, void *stream, void **arguments,
                       void **extra);
  int (*stream_begin_capture)(void *stream, int mode);
  int (*stream_end_capture)(void *stream, void **graph);
  int (*graph_instantiate)(void **executable, void *graph, unsigned long long flags);
  int (*graph_launch)(void *executable, void *stream);
  int (*graph_destroy)(void *graph);
  int (*graph_exec_destroy)(void *executable);
  bool is_simulated;
} rdm__bench_raw;

/* The driver's calls, found by the first call; null with the state's error set. Makes the device current. */
const rdm__bench_raw *rdm__bench_raw_begin(rdm__bench_state *state);

/* A kernel of a source, compiled and loaded once for each device: the driver's own function. Null with an error set. */
void *rdm__bench_raw_kernel(rdm__bench_state *state, const char *source, const char *kernel);

#endif
