#include "poll.h"

#include "clock.h"
#include "driver_call.h"
#include "library_thread.h"
#include "runtime.h"
#include "status.h"
#include "visit.h"

#include <stdlib.h>

static const uint64_t check_interval_ns = 100 * RDM__NS_PER_MS;

/* On the stack of the thread that asks, which stays there until it is answered or out of the list again. */
typedef struct poll_request {
  rdm__poll_kind kind;
  void *native;
  const char *doing;
  /* Guarded by the poller's lock. */
  enum { LISTED, TAKEN, ANSWERED } progress;
  rdm_status status;
  rdm_error error;
  struct poll_request *next;
} poll_request;

struct rdm__poller {
  rdm__device *device;
  rdm__mutex lock;
  rdm__condition wake;
  rdm__condition answered;
  poll_request *first;
};

bool rdm__poll_finds_pending_error(const rdm__device *device) {
  return device->driver->peek_at_last_error() != RDM_HIP_SUCCESS;
}

rdm_status rdm__poll_here(rdm__device *device, rdm__poll_kind kind, void *native, const char *doing) {
  const rdm__driver *driver = device->driver;
  if (kind == RDM__POLL_STREAM) {
    /* To ask a captured stream whether it is done would end its capture; and it is not done before that ends. */
    if (rdm__stream_is_capturing(device, native)) return RDM_NOT_READY;
    rdm_status status = rdm__runtime_check();
    if (status != RDM_OK) return status;
  }
  int error = kind == RDM__POLL_EVENT ? driver->event_query(native) : driver->stream_query(native);
  if (error == RDM_HIP_SUCCESS) return RDM_OK;
  if (error == RDM_HIP_NOT_READY) return RDM_NOT_READY;
  return rdm__device_call_failed(device, kind == RDM__POLL_EVENT ? RDM__CALL_event_query : RDM__CALL_stream_query,
                                 error, "%s", doing);
}

/* One poll by a thread whose slot was clean. */
static rdm_status poll_and_clear(rdm__device *device, rdm__poll_kind kind, void *native, const char *doing) {
  rdm__capture_guard guard = {0};
  rdm_status status = rdm__device_bind(device);
  if (status == RDM_OK) status = rdm__capture_relax(device, &guard);
  if (status == RDM_OK) status = rdm__poll_here(device, kind, native, doing);
  if (status == RDM_NOT_READY) rdm__driver_forget_error(device->driver);
  rdm__capture_restore(device, &guard);
  return status;
}

static void *poller_main(void *argument) {
  rdm__poller *poller = argument;
  rdm__mutex_lock(&poller->lock);
  for (;;) {
    while (poller->first == NULL) rdm__condition_wait(&poller->wake, &poller->lock, UINT64_MAX);
    poll_request *request = poller->first;
    poller->first = request->next;
    request->progress = TAKEN;
    rdm__mutex_unlock(&poller->lock);
    rdm_status status = RDM_ERROR_SHUTTING_DOWN;
    if (rdm__runtime_thread_enters_driver()) {
      status = poll_and_clear(poller->device, request->kind, request->native, request->doing);
      rdm__runtime_thread_left_driver();
    } else {
      rdm__runtime_check();
    }
    rdm__mutex_lock(&poller->lock);
    request->status = status;
    if (status != RDM_OK && status != RDM_NOT_READY) request->error = *rdm__thread_error();
    request->progress = ANSWERED;
    rdm__condition_broadcast(&poller->answered);
  }
  return NULL;
}

static rdm_status start(rdm__device *device, rdm__poller **out_poller) {
  rdm__poller *poller = calloc(1, sizeof *poller);
  if (poller == NULL) return rdm__fail(RDM_ERROR_OUT_OF_MEMORY, "no memory for a thread of device %d", device->index);
  poller->device = device;
  rdm__mutex_init(&poller->lock, RDM__RANK_LEAF);
  rdm__condition_init(&poller->wake);
  rdm__condition_init(&poller->answered);
  int result = rdm__library_thread_start(poller_main, poller);
  if (result == 0) {
    *out_poller = poller;
    return RDM_OK;
  }
  free(poller);
  return rdm__fail(RDM_ERROR_RESOURCE, "the thread that polls for device %d can not be started: error %d",
                   device->index, result);
}

static rdm_status poller_of(rdm__device *device, rdm__poller **out_poller) {
  *out_poller = atomic_load_explicit(&device->poller, memory_order_acquire);
  if (*out_poller != NULL) return RDM_OK;
  rdm_status status = RDM_OK;
  rdm__mutex_lock(&device->threads_lock);
  *out_poller = atomic_load_explicit(&device->poller, memory_order_acquire);
  if (*out_poller == NULL) {
    status = start(device, out_poller);
    if (status == RDM_OK) atomic_store_explicit(&device->poller, *out_poller, memory_order_release);
  }
  rdm__mutex_unlock(&device->threads_lock);
  return status;
}

/* With the poller's lock held: takes back a request that nobody has begun on. */
static bool withdraw(rdm__poller *poller, poll_request *request) {
  if (request->progress != LISTED) return false;
  poll_request **place = &poller->first;
  while (*place != request) place = &(*place)->next;
  *place = request->next;
  return true;
}

rdm_status rdm__poll_elsewhere(rdm__device *device, rdm__poll_kind kind, void *native, const char *doing) {
  rdm__poller *poller = NULL;
  rdm_status status = rdm__device_check(device);
  if (status == RDM_OK) status = poller_of(device, &poller);
  if (status != RDM_OK) return status;
  poll_request request = {.kind = kind, .native = native, .doing = doing, .progress = LISTED};
  rdm__mutex_lock(&poller->lock);
  poll_request **end = &poller->first;
  while (*end != NULL) end = &(*end)->next;
  *end = &request;
  rdm__condition_broadcast(&poller->wake);
  while (status == RDM_OK && request.progress != ANSWERED) {
    rdm__condition_wait(&poller->answered, &poller->lock, rdm__now_ns() + check_interval_ns);
    /* A driver call that stands still is waited for, as the caller's own would be. */
    if (rdm__runtime_is_over() && withdraw(poller, &request)) status = RDM_ERROR_SHUTTING_DOWN;
  }
  rdm__mutex_unlock(&poller->lock);
  if (status != RDM_OK) return rdm__runtime_check();
  if (request.status == RDM_OK || request.status == RDM_NOT_READY) return request.status;
  return rdm__fail_with(&request.error);
}

rdm_status rdm__poll(rdm__device *device, rdm__poll_kind kind, void *native, const char *doing) {
  rdm_status status = rdm__runtime_check();
  if (status == RDM_OK) status = rdm__device_check(device);
  if (status != RDM_OK) return status;
  return rdm__poll_finds_pending_error(device) ? rdm__poll_elsewhere(device, kind, native, doing)
                                               : poll_and_clear(device, kind, native, doing);
}
