/* Device and host memory, copies and fills. */
#include "conformance.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { HOST_TO_HOST = 0, HOST_TO_DEVICE = 1, DEVICE_TO_HOST = 2, DEVICE_TO_DEVICE = 3, BY_POINTER = 4 };
enum { INVALID_DIRECTION = 21 };

static void device_memory(void) {
  void *pointer = NULL;
  check_error("malloc", driver->memory_allocate(&pointer, 1000), 0);
  check("malloc.pointer", pointer != NULL, "is null");
  check_error("free", driver->memory_free(pointer), 0);
  check_error("free.null", driver->memory_free(NULL), 0);
  check_error("malloc.null_result", driver->memory_allocate(NULL, 1000), RDM_HIP_INVALID_VALUE);
  (void)driver->get_last_error();
  pointer = &pointer;
  check_error("malloc.zero", driver->memory_allocate(&pointer, 0), 0);
  check("malloc.zero_gives_null", pointer == NULL, "is %p", pointer);
  check_error("malloc.too_much", driver->memory_allocate(&pointer, (size_t)1 << 52), RDM_HIP_OUT_OF_MEMORY);
  check_error("malloc.too_much_last_error", driver->get_last_error(), RDM_HIP_OUT_OF_MEMORY);
  check_error("malloc.after_too_much", driver->memory_allocate(&pointer, 1000), 0);
  check_error("free.after_too_much", driver->memory_free(pointer), 0);
}

static void free_errors(void) {
  int local = 0;
  void *pointer = make_device_memory(1000);
  check_error("free.foreign", driver->memory_free(&local), RDM_HIP_INVALID_VALUE);
  check_error("free.once", driver->memory_free(pointer), 0);
  check_error("free.twice", driver->memory_free(pointer), RDM_HIP_INVALID_VALUE);
  check_error("free.error_is_last", driver->get_last_error(), RDM_HIP_INVALID_VALUE);
  check_error("host_free.foreign", driver->host_memory_free(&local), RDM_HIP_INVALID_VALUE);
  pointer = make_host_memory(1000);
  check_error("host_free.once", driver->host_memory_free(pointer), 0);
  check_error("host_free.twice", driver->host_memory_free(pointer), RDM_HIP_INVALID_VALUE);
}

static void host_memory(void) {
  void *pointer = NULL;
  check_error("host_malloc", driver->host_memory_allocate(&pointer, 5000, 0), 0);
  check("host_malloc.pointer", pointer != NULL, "is null");
  memset(pointer, 7, 5000);
  check_error("host_free", driver->host_memory_free(pointer), 0);
  check_error("host_free.null", driver->host_memory_free(NULL), 0);
  check_error("host_malloc.null_result", driver->host_memory_allocate(NULL, 1000, 0), RDM_HIP_INVALID_VALUE);
  pointer = &pointer;
  check_error("host_malloc.zero", driver->host_memory_allocate(&pointer, 0, 0), 0);
  check("host_malloc.zero_gives_null", pointer == NULL, "is %p", pointer);
}

static void copies(void) {
  enum { SIZE = 10000 };
  void *stream = make_stream();
  unsigned char *from = make_host_memory(SIZE);
  unsigned char *to = make_host_memory(SIZE);
  unsigned char *pageable = malloc(SIZE);
  unsigned char *first = make_device_memory(SIZE);
  unsigned char *second = make_device_memory(SIZE);
  if (pageable == NULL) abort();
  for (int i = 0; i < SIZE; i++) from[i] = (unsigned char)(i * 7 + 3);
  memset(pageable, 0, SIZE);
  check_error("copy.to_device", driver->memory_copy_async(first, from, SIZE, HOST_TO_DEVICE, stream), 0);
  check_error("copy.device_to_device", driver->memory_copy_async(second, first, SIZE, DEVICE_TO_DEVICE, stream), 0);
  check_error("copy.to_host", driver->memory_copy_async(to, second, SIZE, DEVICE_TO_HOST, stream), 0);
  check_error("copy.synchronize", driver->stream_synchronize(stream), 0);
  check("copy.data", memcmp(from, to, SIZE) == 0, "it differs");
  check_error("copy.to_pageable", driver->memory_copy_async(pageable, second, SIZE, BY_POINTER, stream), 0);
  check_error("copy.pageable_synchronize", driver->stream_synchronize(stream), 0);
  check("copy.pageable_data", memcmp(from, pageable, SIZE) == 0, "it differs");
  memset(to, 0, SIZE);
  check_error("copy.inside", driver->memory_copy_async(to, first + 5000, 100, DEVICE_TO_HOST, stream), 0);
  need("stream_synchronize", driver->stream_synchronize(stream));
  check("copy.inside_data", memcmp(to, from + 5000, 100) == 0 && to[100] == 0, "it differs");
  free(pageable);
}

static void copy_host_to_host(void) {
  enum { SIZE = 10000 };
  void *stream = make_stream();
  unsigned char *from = make_host_memory(SIZE);
  unsigned char *to = make_host_memory(SIZE);
  memset(from, 0x29, SIZE);
  check_error("copy.host_to_host", driver->memory_copy_async(to, from, SIZE, HOST_TO_HOST, stream), 0);
  need("stream_synchronize", driver->stream_synchronize(stream));
  check("copy.host_to_host_data", memcmp(from, to, SIZE) == 0, "it differs");
}

static void copy_errors(void) {
  enum { SIZE = 4 << 20 };
  void *stream = make_stream();
  unsigned char *host = make_host_memory(2 * SIZE);
  unsigned char *memory = make_device_memory(SIZE);
  check_error("copy.zero_bytes", driver->memory_copy_async(memory, host, 0, HOST_TO_DEVICE, stream), 0);
  check_error("copy.null_target", driver->memory_copy_async(NULL, host, 100, HOST_TO_DEVICE, stream),
              RDM_HIP_INVALID_VALUE);
  check_error("copy.null_source", driver->memory_copy_async(memory, NULL, 100, HOST_TO_DEVICE, stream),
              RDM_HIP_INVALID_VALUE);
  check_error("copy.unknown_kind", driver->memory_copy_async(memory, host, 100, 77, stream), INVALID_DIRECTION);
  check_error("copy.past_the_end", driver->memory_copy_async(memory, host, 2 * SIZE, HOST_TO_DEVICE, stream),
              RDM_HIP_INVALID_VALUE);
  check_error("copy.error_is_last", driver->get_last_error(), RDM_HIP_INVALID_VALUE);
  check_error("copy.stream_is_usable", driver->stream_synchronize(stream), 0);
}

static void fills(void) {
  enum { SIZE = 5000 };
  void *stream = make_stream();
  unsigned char *host = make_host_memory(SIZE);
  unsigned char *memory = make_device_memory(SIZE);
  check_error("memset", driver->memory_set_async(memory, 0x5a, SIZE, stream), 0);
  check_error("memset.low_byte_alone", driver->memory_set_async(memory + 10, 0x12345a5b, 5, stream), 0);
  need("copy", driver->memory_copy_async(host, memory, SIZE, DEVICE_TO_HOST, stream));
  need("stream_synchronize", driver->stream_synchronize(stream));
  bool right = true;
  for (int i = 0; i < SIZE; i++) right = right && host[i] == (i >= 10 && i < 15 ? 0x5b : 0x5a);
  check("memset.data", right, "it differs");
  check_error("memset.zero_bytes", driver->memory_set_async(memory, 1, 0, stream), 0);
  check_error("memset.null", driver->memory_set_async(NULL, 1, 100, stream), RDM_HIP_INVALID_VALUE);
  check_error("memset.past_the_end", driver->memory_set_async(memory, 1, (size_t)64 << 20, stream),
              RDM_HIP_INVALID_VALUE);
}

/* A copy's source is read when the copy runs, not when it is queued. */
static void late_source(void) {
  void *stream = make_stream();
  uint64_t *source = make_host_memory(sizeof *source);
  uint64_t *target = make_host_memory(sizeof *target);
  uint64_t *memory = make_device_memory(sizeof *memory);
  gate held;
  gate_make(&held);
  *source = 7;
  gate_hold(&held, stream);
  need("copy", driver->memory_copy_async(memory, source, sizeof *source, HOST_TO_DEVICE, stream));
  need("copy", driver->memory_copy_async(target, memory, sizeof *target, DEVICE_TO_HOST, stream));
  gate_wait_entered(&held);
  *(volatile uint64_t *)source = 9;
  gate_open(&held);
  need("stream_synchronize", driver->stream_synchronize(stream));
  check("copy.reads_when_it_runs", *target == 9, "is %llu", (unsigned long long)*target);
}

/* Memory of one device is usable under another as the current one. */
static void across_devices(void) {
  enum { SIZE = 4096 };
  unsigned char *host = make_host_memory(SIZE);
  memset(host, 0x33, SIZE);
  need("set_device", driver->set_device(0));
  unsigned char *memory = make_device_memory(SIZE);
  need("set_device", driver->set_device(1));
  void *stream = make_stream();
  unsigned char *other = make_device_memory(SIZE);
  check_error("across.copy_to_other", driver->memory_copy_async(memory, host, SIZE, HOST_TO_DEVICE, stream), 0);
  check_error("across.copy_between", driver->memory_copy_async(other, memory, SIZE, BY_POINTER, stream), 0);
  memset(host, 0, SIZE / 2);
  need("stream_synchronize", driver->stream_synchronize(stream));
  check_error("across.free_of_other", driver->memory_free(memory), 0);
}

const conformance_test memory_tests[] = {
    {"device_memory", device_memory, 1},
    {"free_errors", free_errors, 1},
    {"host_memory", host_memory, 1},
    {"copies", copies, 1},
    {"copy_host_to_host", copy_host_to_host, 1},
    {"copy_errors", copy_errors, 1},
    {"fills", fills, 1},
    {"late_source", late_source, 1},
    {"across_devices", across_devices, 2},
    {NULL, NULL, 0},
};
