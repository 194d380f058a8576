#include "driver/sim/transfer.h"

#include "driver/sim/device.h"
#include "driver/sim/kernel_guard.h"
#include "driver/sim/memory.h"

#include <stdlib.h>
#include <string.h>

enum { COPY_HOST_TO_HOST = 0, COPY_DEFAULT = 4, INVALID_MEMCPY_DIRECTION = 21 };

typedef struct transfer_work {
  rdm__sim_work work;
  char *to;
  /* NULL for a fill. */
  const char *from;
  size_t size;
  int value;
} transfer_work;

static void transfer(void *argument) {
  const transfer_work *work = argument;
  if (work->from == NULL) {
    memset(work->to, work->value, work->size);
  } else {
    memmove(work->to, work->from, work->size);
  }
}

/* Host memory that is not there, or memory that another device freed meanwhile, faults as it would on a GPU. */
static int run_transfer(rdm__sim_work *work, rdm__sim_stream *stream) {
  (void)stream;
  return rdm__sim_kernel_guard_run(transfer, work);
}

static void finish_transfer(rdm__sim_work *work, int fault) {
  (void)fault;
  free(work);
}

static int submit_transfer(rdm__sim_stream *stream, void *to, const void *from, size_t size, int value) {
  transfer_work *work = calloc(1, sizeof *work);
  if (work == NULL) return RDM_HIP_OUT_OF_MEMORY;
  work->work.run = run_transfer;
  work->work.finish = finish_transfer;
  work->work.repeats = true;
  work->to = to;
  work->from = from;
  work->size = size;
  work->value = value;
  return rdm__sim_stream_submit(stream, &work->work);
}

/* The range must lie in one live allocation, of any device, that works. */
static int check_device_range(const void *address, size_t size) {
  int device;
  if (!rdm__sim_memory_find(address, size, &device)) return RDM_HIP_INVALID_VALUE;
  return rdm__sim_device_fault(rdm__sim_device_at(device));
}

/* The same for an address that may also be plain host memory. */
static int check_any_range(const void *address, size_t size) {
  int device;
  return rdm__sim_memory_find(address, 1, &device) ? check_device_range(address, size) : RDM_HIP_SUCCESS;
}

int rdm__sim_transfer_copy(void *to, const void *from, size_t size, int kind, rdm__sim_stream *stream) {
  if (kind < COPY_HOST_TO_HOST || kind > COPY_DEFAULT) return INVALID_MEMCPY_DIRECTION;
  if (kind == COPY_HOST_TO_HOST) return RDM_HIP_NOT_SUPPORTED;
  if (size == 0) return RDM_HIP_SUCCESS;
  if (to == NULL || from == NULL) return RDM_HIP_INVALID_VALUE;
  bool to_device = kind == RDM_COPY_HOST_TO_DEVICE || kind == RDM_COPY_DEVICE_TO_DEVICE;
  bool from_device = kind == RDM_COPY_DEVICE_TO_HOST || kind == RDM_COPY_DEVICE_TO_DEVICE;
  int result = to_device ? check_device_range(to, size) : check_any_range(to, size);
  if (result != RDM_HIP_SUCCESS) return result;
  result = from_device ? check_device_range(from, size) : check_any_range(from, size);
  if (result != RDM_HIP_SUCCESS) return result;
  return submit_transfer(stream, to, from, size, 0);
}

int rdm__sim_transfer_fill(void *to, int value, size_t size, rdm__sim_stream *stream) {
  if (size == 0) return RDM_HIP_SUCCESS;
  if (to == NULL) return RDM_HIP_INVALID_VALUE;
  int result = check_device_range(to, size);
  return result != RDM_HIP_SUCCESS ? result : submit_transfer(stream, to, NULL, size, value);
}
