/*
 * Thread-local streams, and each thread's default stream.
 *
 * What a thread has is a record that only that thread reads and writes, so it needs no lock. When the thread ends, its
 * references go back; that makes no driver call, so it is safe as a thread-exit hook, also while the process exits.
 */
#include "device_map.h"
#include "handle.h"
#include "lock.h"
#include "resolutions.h"
#include "runtime.h"
#include "status.h"
#include "stream.h"
#include "thread_end.h"

#include <stdlib.h>

typedef struct thread_local_stream {
  rdm__object object;
  int32_t device_index;
} thread_local_stream;

static rdm__handle_table handles = RDM__HANDLE_TABLE(RDM__HANDLE_THREAD_LOCAL_STREAM, thread_local_stream, NULL);

/* How many handles have ended: a thread looks for what it resolved from such when there are more of them. */
static _Atomic uint64_t ended_handles;

typedef struct thread_record {
  rdm__thread_end_hook at_end;
  rdm_stream default_stream;
  rdm__resolutions resolutions;
  /* What ended_handles was as the thread last looked. */
  uint64_t ended_handles;
} thread_record;

static _Thread_local thread_record *this_thread;

static void at_thread_end(rdm__thread_end_hook *hook) {
  /* The hook is the record's first member. */
  thread_record *record = (thread_record *)hook;
  this_thread = NULL;
  rdm__stream_release(record->default_stream);
  for (uint32_t i = 0; i < record->resolutions.count; i++) rdm__stream_release(record->resolutions.items[i].stream);
  rdm__resolutions_free(&record->resolutions);
  free(record);
}

/* The thread's record, made by its first need of one. Null, with the last error set, where that fails. */
static thread_record *record_of_thread(void) {
  if (this_thread != NULL) return this_thread;
  thread_record *record = calloc(1, sizeof *record);
  if (record != NULL) record->at_end.run = at_thread_end;
  if (record == NULL || !rdm__thread_end_add(&record->at_end)) {
    free(record);
    rdm__fail(RDM_ERROR_RESOURCE, "no memory or no thread-specific key for this thread's streams");
    return NULL;
  }
  this_thread = record;
  return record;
}

static rdm_status pin(rdm_thread_local_stream handle, thread_local_stream **out_object) {
  rdm_status status = rdm__runtime_check();
  if (status != RDM_OK) return status;
  rdm__object *object = NULL;
  status = rdm__handle_pin(&handles, handle.bits, &object);
  if (status == RDM_OK) *out_object = (thread_local_stream *)object;
  return status;
}

static rdm_status create(int32_t device_index, rdm_thread_local_stream *out_stream) {
  thread_local_stream *stream = (thread_local_stream *)rdm__handle_allocate(&handles);
  if (stream == NULL) return RDM_ERROR_RESOURCE;
  stream->device_index = device_index;
  out_stream->bits = rdm__handle_open(&handles, &stream->object);
  return RDM_OK;
}

rdm_status rdm_thread_local_stream_create(int32_t device_index, rdm_thread_local_stream *out_stream) {
  if (out_stream == NULL) return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "out_stream is null");
  const rdm__driver *driver = NULL;
  rdm_status status = rdm__device_map_check_index(device_index, &driver);
  return status == RDM_OK ? create(device_index, out_stream) : status;
}

/* The process's one handle for each device. */
typedef struct shared_handle {
  int32_t device_index;
  rdm_thread_local_stream handle;
  struct shared_handle *next;
} shared_handle;

static rdm__mutex shared_lock = RDM__MUTEX_INIT(RDM__RANK_STREAM);
static shared_handle *shared_handles;

rdm_status rdm_thread_local_stream_get_shared(int32_t device_index, rdm_thread_local_stream *out_stream) {
  if (out_stream == NULL) return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "out_stream is null");
  const rdm__driver *driver = NULL;
  rdm_status status = rdm__device_map_check_index(device_index, &driver);
  if (status != RDM_OK) return status;
  rdm__mutex_lock(&shared_lock);
  shared_handle *shared = shared_handles;
  while (shared != NULL && shared->device_index != device_index) shared = shared->next;
  if (shared == NULL) {
    shared = calloc(1, sizeof *shared);
    status = shared == NULL ? rdm__fail(RDM_ERROR_OUT_OF_MEMORY, "no memory for a thread-local stream")
                            : create(device_index, &shared->handle);
    if (status == RDM_OK) {
      shared->device_index = device_index;
      shared->next = shared_handles;
      shared_handles = shared;
    } else {
      free(shared);
    }
  }
  if (status == RDM_OK) *out_stream = shared->handle;
  rdm__mutex_unlock(&shared_lock);
  return status;
}

static bool is_shared(rdm_thread_local_stream handle) {
  rdm__mutex_lock(&shared_lock);
  const shared_handle *shared = shared_handles;
  while (shared != NULL && shared->handle.bits != handle.bits) shared = shared->next;
  rdm__mutex_unlock(&shared_lock);
  return shared != NULL;
}

rdm_status rdm_thread_local_stream_release(rdm_thread_local_stream handle) {
  if (rdm__runtime_is_over()) return rdm__runtime_release_check();
  thread_local_stream *stream = NULL;
  rdm_status status = pin(handle, &stream);
  if (status != RDM_OK) return rdm__runtime_release_status(status);
  if (is_shared(handle)) {
    status = rdm__fail(RDM_ERROR_INVALID_ARGUMENT,
                       "the handle is the process's shared one of device %d, which is borrowed", stream->device_index);
  } else if (!rdm__object_close(&handles, &stream->object)) {
    status = rdm__fail(RDM_ERROR_STALE_HANDLE, "the thread-local stream handle %#llx was released by another thread",
                       (unsigned long long)handle.bits);
  } else {
    atomic_fetch_add_explicit(&ended_handles, 1, memory_order_release);
  }
  rdm__object_unpin(&handles, &stream->object);
  return status;
}

rdm_status rdm_thread_local_stream_get_device_index(rdm_thread_local_stream handle, int32_t *out_index) {
  if (out_index == NULL) return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "out_index is null");
  thread_local_stream *stream = NULL;
  rdm_status status = pin(handle, &stream);
  if (status != RDM_OK) return status;
  *out_index = stream->device_index;
  rdm__object_unpin(&handles, &stream->object);
  return RDM_OK;
}

/* Releases the stream of a resolution whose handle has ended. */
static bool release_if_ended(const rdm__resolution *item) {
  if (rdm__object_is_named(item->object, item->handle.bits)) return false;
  rdm__stream_release(item->stream);
  return true;
}

static void release_ended(thread_record *record) {
  uint64_t ended = atomic_load_explicit(&ended_handles, memory_order_acquire);
  if (ended == record->ended_handles) return;
  record->ended_handles = ended;
  rdm__resolutions_drop(&record->resolutions, release_if_ended);
}

static rdm_status resolve_anew(thread_record *record, rdm_thread_local_stream handle,
                               const thread_local_stream *handle_object, rdm_stream *out_stream) {
  release_ended(record);
  if (!rdm__resolutions_reserve(&record->resolutions)) {
    return rdm__fail(RDM_ERROR_OUT_OF_MEMORY, "no memory for one more thread-local stream");
  }
  rdm__resolution item = {.handle = handle, .object = &handle_object->object};
  rdm_status status = rdm_stream_create(handle_object->device_index, &item.stream);
  if (status != RDM_OK) return status;
  rdm__resolutions_add(&record->resolutions, &item);
  *out_stream = item.stream;
  return RDM_OK;
}

/* What the thread resolved the handle to before; null where it did not, or the handle has ended. */
static const rdm_stream *recall(rdm_thread_local_stream handle) {
  if (this_thread == NULL || !rdm__runtime_is_ready()) return NULL;
  const rdm__resolution *item = rdm__resolutions_find(&this_thread->resolutions, handle);
  return item != NULL && rdm__object_is_named(item->object, handle.bits) ? &item->stream : NULL;
}

rdm_status rdm_thread_local_stream_resolve(rdm_thread_local_stream handle, rdm_stream *out_stream) {
  if (out_stream == NULL) return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "out_stream is null");
  const rdm_stream *known = recall(handle);
  if (known != NULL) {
    *out_stream = *known;
    return RDM_OK;
  }
  thread_local_stream *stream = NULL;
  rdm_status status = pin(handle, &stream);
  if (status != RDM_OK) return status;
  thread_record *record = record_of_thread();
  status = record == NULL ? RDM_ERROR_RESOURCE : resolve_anew(record, handle, stream, out_stream);
  rdm__object_unpin(&handles, &stream->object);
  return status;
}

rdm_status rdm_default_stream_set(rdm_stream stream) {
  rdm_status status = rdm__runtime_check();
  if (status != RDM_OK) return status;
  thread_record *record = record_of_thread();
  if (record == NULL) return RDM_ERROR_RESOURCE;
  if (stream.bits != 0) status = rdm__stream_retain(stream);
  if (status != RDM_OK) return status;
  rdm_stream previous = record->default_stream;
  record->default_stream = stream;
  rdm__stream_release(previous);
  return RDM_OK;
}

rdm_status rdm_default_stream_get(rdm_stream *out_stream) {
  rdm_status status = rdm__runtime_check();
  if (status != RDM_OK) return status;
  if (out_stream == NULL) return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "out_stream is null");
  out_stream->bits = this_thread == NULL ? 0 : this_thread->default_stream.bits;
  return RDM_OK;
}
