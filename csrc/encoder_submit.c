/* What is done through an encoder: on its device, in the order of its lock, and with every failure kept for its stream.
 */
#include "clock.h"
#include "completion.h"
#include "encoder.h"
#include "event.h"
#include "graph.h"
#include "module.h"
#include "runtime.h"
#include "status.h"
#include "stream.h"
#include "visit.h"

#include <sched.h>

/* What a call through an encoder works on, between begin and end. */
typedef struct submission {
  rdm__queue *queue;
  rdm__device *device;
  rdm_stream stream;
} submission;

/* What the driver refused is the stream's error too; a bad argument changed nothing and is the caller's alone. */
static rdm_status end(const submission *submission, rdm_status status) {
  rdm__mutex_unlock(&submission->queue->lock);
  if (status != RDM_OK && rdm__thread_error()->driver_code != RDM_HIP_SUCCESS) {
    rdm__stream_record(submission->stream, rdm__thread_error());
  }
  return status;
}

/* Finds the encoder's queue and locks it, without a look at the device. */
static rdm_status begin(rdm_encoder handle, submission *out) {
  rdm__encoder *encoder = NULL;
  rdm_status status = rdm__encoder_find(handle, &encoder);
  if (status != RDM_OK) return status;
  rdm__queue *queue = atomic_load_explicit(&encoder->queue, memory_order_acquire);
  rdm__mutex_lock(&queue->lock);
  rdm_stream stream = {atomic_load_explicit(&encoder->stream, memory_order_acquire)};
  /* Closed since it was found: the queue may be serving another stream by now, or not have been this encoder's. */
  if (!rdm__object_is_named(&encoder->object, handle.bits)) {
    rdm__mutex_unlock(&queue->lock);
    return rdm__fail(RDM_ERROR_STALE_HANDLE, "the encoder was released with its stream, or cleared, by another thread");
  }
  *out = (submission){.queue = queue, .device = queue->device, .stream = stream};
  return RDM_OK;
}

/* The same, and makes the device current. */
static rdm_status begin_on_device(rdm_encoder handle, submission *out) {
  rdm_status status = begin(handle, out);
  if (status != RDM_OK) return status;
  status = rdm__device_bind(out->device);
  return status == RDM_OK ? RDM_OK : end(out, status);
}

/* The sizes came with the struct's first growth: an older caller's struct ends before them. */
static rdm_status check_argument_sizes(const rdm__kernel *kernel, const rdm_launch_config *config,
                                       uint32_t argument_count) {
  if (config->struct_size < sizeof *config || config->argument_sizes_bytes == NULL) return RDM_OK;
  for (uint32_t i = 0; i < argument_count && kernel->argument_sizes != NULL; i++) {
    int size = kernel->argument_sizes[i];
    if (size < 0 || (uint32_t)size == config->argument_sizes_bytes[i]) continue;
    return rdm__fail(RDM_ERROR_INVALID_ARGUMENT,
                     "kernel %.400s takes %d bytes as argument %u, counted from 0, and argument_sizes_bytes[%u] is %u",
                     kernel->name, size, i, i, config->argument_sizes_bytes[i]);
  }
  return RDM_OK;
}

static rdm_status check_launch(const rdm__device *device, const rdm__kernel *kernel, const rdm_launch_config *config,
                               void *const *arguments, uint32_t argument_count) {
  if (kernel->device != device) {
    return rdm__fail(RDM_ERROR_WRONG_DEVICE, "kernel %s is of device %d and the stream of device %d", kernel->name,
                     kernel->device->index, device->index);
  }
  if (arguments == NULL && argument_count > 0) {
    return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "arguments is null and argument_count is %u", argument_count);
  }
  if (kernel->argument_count >= 0 && (uint32_t)kernel->argument_count != argument_count) {
    return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "kernel %s takes %d arguments and argument_count is %u", kernel->name,
                     kernel->argument_count, argument_count);
  }
  rdm_status status = check_argument_sizes(kernel, config, argument_count);
  if (status != RDM_OK) return status;
  for (int i = 0; i < 3; i++) {
    if (config->grid[i] == 0 || config->block[i] == 0) {
      return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "launch of %s: %s[%d] is 0; it is 1 or more", kernel->name,
                       config->grid[i] == 0 ? "grid" : "block", i);
    }
    /* Runtimes fail oddly, or run a part, where a dimension's threads do not fit 32 bits. */
    if ((uint64_t)config->grid[i] * config->block[i] > UINT32_MAX) {
      return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "launch of %s: grid[%d] * block[%d] is %llu; at most %u",
                       kernel->name, i, i, (unsigned long long)config->grid[i] * config->block[i], UINT32_MAX);
    }
  }
  return RDM_OK;
}

rdm_status rdm_encoder_launch(rdm_encoder handle, rdm_kernel kernel_handle, const rdm_launch_config *config,
                              void *const *arguments, uint32_t argument_count) {
  if (config == NULL) return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "config is null");
  if (config->struct_size < offsetof(rdm_launch_config, argument_sizes_bytes)) {
    return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "config->struct_size is %u; set it to sizeof(rdm_launch_config), %zu",
                     config->struct_size, sizeof *config);
  }
  rdm__kernel *kernel = NULL;
  submission on = {0};
  rdm_status status = rdm__kernel_from_handle(kernel_handle, &kernel);
  if (status == RDM_OK) status = begin_on_device(handle, &on);
  if (status != RDM_OK) return status;
  status = check_launch(on.device, kernel, config, arguments, argument_count);
  if (status == RDM_OK) {
    const uint32_t *grid = config->grid;
    const uint32_t *block = config->block;
    int error = on.device->driver->launch_kernel(kernel->native, grid, block, config->shared_memory_bytes,
                                                 on.queue->native, (void **)(uintptr_t)arguments);
    if (error == RDM_HIP_SUCCESS) {
      rdm__count_alone(&on.queue->counts.launches, 1);
    } else {
      rdm__count(RDM__COUNT_LAUNCHES_REFUSED, 1);
      status = rdm__device_call_failed(on.device, RDM__CALL_launch_kernel, error,
                                       "launch of %s on stream %d, grid %ux%ux%u, block %ux%ux%u, %u bytes shared",
                                       kernel->name, on.queue->stream_index, grid[0], grid[1], grid[2], block[0],
                                       block[1], block[2], config->shared_memory_bytes);
    }
  }
  return end(&on, status);
}

rdm_status rdm_encoder_copy(rdm_encoder handle, void *destination, const void *source, size_t size_bytes,
                            rdm_copy_kind kind) {
  if (destination == NULL || source == NULL) {
    return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "%s is null", destination == NULL ? "destination" : "source");
  }
  if (kind < RDM_COPY_HOST_TO_DEVICE || kind > RDM_COPY_DEVICE_TO_DEVICE) {
    return rdm__fail(RDM_ERROR_INVALID_ARGUMENT,
                     "kind is %d; it is RDM_COPY_HOST_TO_DEVICE (1) to "
                     "RDM_COPY_DEVICE_TO_DEVICE (3)",
                     kind);
  }
  submission on = {0};
  rdm_status status = begin_on_device(handle, &on);
  if (status != RDM_OK || size_bytes == 0) return status != RDM_OK ? status : end(&on, RDM_OK);
  int error = on.device->driver->memory_copy_async(destination, source, size_bytes, (int)kind, on.queue->native);
  if (error == RDM_HIP_SUCCESS) {
    rdm__count_alone(&on.queue->counts.copies, 1);
    rdm__count_alone(&on.queue->counts.copied_bytes, size_bytes);
  } else {
    status = rdm__device_call_failed(on.device, RDM__CALL_memory_copy_async, error, "copy of %zu bytes on stream %d",
                                     size_bytes, on.queue->stream_index);
  }
  return end(&on, status);
}

rdm_status rdm_encoder_fill(rdm_encoder handle, void *destination, uint8_t value, size_t size_bytes) {
  if (destination == NULL) return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "destination is null");
  submission on = {0};
  rdm_status status = begin_on_device(handle, &on);
  if (status != RDM_OK || size_bytes == 0) return status != RDM_OK ? status : end(&on, RDM_OK);
  int error = on.device->driver->memory_set_async(destination, value, size_bytes, on.queue->native);
  if (error == RDM_HIP_SUCCESS) {
    rdm__count_alone(&on.queue->counts.fills, 1);
  } else {
    status = rdm__device_call_failed(on.device, RDM__CALL_memory_set_async, error, "fill of %zu bytes on stream %d",
                                     size_bytes, on.queue->stream_index);
  }
  return end(&on, status);
}

/* As begin, with the device's completion thread running. */
static rdm_status begin_with_worker(rdm_encoder handle, submission *on) {
  rdm_status status = begin(handle, on);
  if (status != RDM_OK || rdm__completion_worker_runs(on->device)) return status;
  /* A thread is started with no lock held. */
  end(on, RDM_OK);
  status = rdm__device_check(on->device);
  if (status == RDM_OK) status = rdm__completion_worker_start(on->device);
  return status == RDM_OK ? begin(handle, on) : status;
}

rdm_status rdm_encoder_add_completion_handler(rdm_encoder handle, rdm_completion_handler handler, void *user_data) {
  if (handler == NULL) return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "handler is null");
  submission on = {0};
  rdm_status status = begin_with_worker(handle, &on);
  if (status != RDM_OK) return status;
  status = rdm__device_check(on.device);
  if (status == RDM_OK) status = rdm__completions_add(on.queue, handle.bits, handler, user_data);
  rdm__mutex_unlock(&on.queue->lock);
  return status;
}

rdm_status rdm_encoder_commit(rdm_encoder handle) {
  submission on = {0};
  rdm_status status = begin(handle, &on);
  if (status != RDM_OK) return status;
  /* First, so that the handlers of a device that has faulted meanwhile still learn of it. */
  rdm__completions_commit_own(on.queue, handle.bits, true);
  rdm__mutex_unlock(&on.queue->lock);
  return rdm__device_check(on.device);
}

static rdm_status check_same_device(const submission *on, const rdm__event *event) {
  if (event->device == on->device) return RDM_OK;
  return rdm__fail(RDM_ERROR_WRONG_DEVICE,
                   "the event is of device %d and stream %d of device %d; an event is recorded "
                   "on its own device",
                   event->device->index, on->queue->stream_index, on->device->index);
}

static rdm_status record_event(const submission *on, rdm__event *event) {
  int error = on->device->driver->event_record(event->native, on->queue->native);
  atomic_store_explicit(&event->state, error == RDM_HIP_SUCCESS ? RDM__EVENT_RECORDED : RDM__EVENT_RECORD_FAILED,
                        memory_order_release);
  if (error == RDM_HIP_SUCCESS) {
    rdm__count_alone(&on->queue->counts.event_records, 1);
    return RDM_OK;
  }
  return rdm__device_call_failed(on->device, RDM__CALL_event_record, error, "recording an event on stream %d",
                                 on->queue->stream_index);
}

rdm_status rdm_encoder_record_event(rdm_encoder handle, rdm_event event_handle) {
  rdm__event *event = NULL;
  rdm_status status = rdm__event_pin(event_handle, &event);
  if (status != RDM_OK) return status;
  submission on = {0};
  status = begin_on_device(handle, &on);
  if (status == RDM_OK) {
    status = check_same_device(&on, event);
    if (status == RDM_OK) status = record_event(&on, event);
    status = end(&on, status);
  }
  rdm__event_unpin(event);
  return status;
}

static rdm_status wait_event(const submission *on, rdm__event *event) {
  rdm_status status = rdm__device_check(event->device);
  if (status == RDM_OK) status = rdm__event_check_recorded(event);
  if (status != RDM_OK) return status;
  int error = on->device->driver->stream_wait_event(on->queue->native, event->native, 0);
  if (error == RDM_HIP_SUCCESS) {
    rdm__count_alone(&on->queue->counts.event_waits, 1);
    return RDM_OK;
  }
  /* What is at fault may be the device that the event is of. */
  rdm__device *faulted = rdm__driver_error_is_fault(error) ? event->device : on->device;
  return rdm__device_call_failed(faulted, RDM__CALL_stream_wait_event, error,
                                 "making stream %d wait for an event of device %d", on->queue->stream_index,
                                 event->device->index);
}

rdm_status rdm_encoder_wait_event(rdm_encoder handle, rdm_event event_handle) {
  rdm__event *event = NULL;
  rdm_status status = rdm__event_pin(event_handle, &event);
  if (status != RDM_OK) return status;
  submission on = {0};
  status = begin_on_device(handle, &on);
  if (status == RDM_OK) status = end(&on, wait_event(&on, event));
  rdm__event_unpin(event);
  return status;
}

rdm_status rdm_encoder_get_native_stream(rdm_encoder handle, void **out_native_stream) {
  if (out_native_stream == NULL) return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "out_native_stream is null");
  rdm__encoder *encoder = NULL;
  rdm_status status = rdm__encoder_find(handle, &encoder);
  if (status != RDM_OK) return status;
  const rdm__queue *queue = atomic_load_explicit(&encoder->queue, memory_order_acquire);
  /* Another thread may have closed it meanwhile, and the queue be that of the memory's next encoder. */
  if (!rdm__object_is_named(&encoder->object, handle.bits)) return rdm__encoder_find(handle, &encoder);
  *out_native_stream = queue->native;
  return RDM_OK;
}

/* ---- Captures and graphs --------------------------------------------------------------------------------------- */

static const uint64_t polls_last_ns = UINT64_C(1000000000);

/* Until no thread asks the driver for the stream any more, which takes none of them long. */
static rdm_status wait_for_polls(const rdm__queue *queue) {
  uint64_t end_ns = rdm__now_ns() + polls_last_ns;
  while (atomic_load(&queue->polls) > 0) {
    rdm_status status = rdm__device_check(queue->device);
    if (status == RDM_OK) status = rdm__runtime_check();
    if (status != RDM_OK) return status;
    if (rdm__now_ns() > end_ns) {
      return rdm__fail(RDM_ERROR_TIMEOUT,
                       "capturing stream %d: another thread has been asking the driver for it for 1 s",
                       queue->stream_index);
    }
    sched_yield();
  }
  return RDM_OK;
}

/* With the queue's lock held, in a visit. */
static rdm_status begin_capture(const submission *on) {
  rdm__queue *queue = on->queue;
  if (atomic_load(&queue->is_captured) || rdm__stream_is_capturing(on->device, queue->native)) {
    return rdm__fail(RDM_ERROR_CAPTURING, "stream %d of device %d is being captured already; end that capture first",
                     queue->stream_index, on->device->index);
  }
  atomic_store(&queue->is_captured, true);
  rdm_status status = wait_for_polls(queue);
  if (status == RDM_OK) {
    /* Relaxed: it holds up nobody else, and any thread may end it. */
    int error = on->device->driver->stream_begin_capture(queue->native, RDM_HIP_CAPTURE_MODE_RELAXED);
    if (error == RDM_HIP_SUCCESS) return RDM_OK;
    status = rdm__device_call_failed(on->device, RDM__CALL_stream_begin_capture, error, "capturing stream %d",
                                     queue->stream_index);
  }
  atomic_store(&queue->is_captured, false);
  return status;
}

rdm_status rdm_encoder_begin_capture(rdm_encoder handle) {
  submission on = {0};
  rdm__capture_guard guard;
  /* The thread sees to the capture where its stream ends meanwhile. */
  rdm_status status = begin_with_worker(handle, &on);
  if (status != RDM_OK) return status;
  status = rdm__visit_begin(on.device, &guard);
  if (status == RDM_OK) {
    status = begin_capture(&on);
    rdm__visit_end(on.device, &guard);
  }
  return end(&on, status);
}

/* The same. */
static rdm_status end_capture(const submission *on, rdm__graph *graph) {
  const rdm__driver *driver = on->device->driver;
  rdm__queue *queue = on->queue;
  void *captured = NULL;
  int error = driver->stream_end_capture(queue->native, &captured);
  bool goes_on = error != RDM_HIP_SUCCESS && rdm__stream_is_capturing(on->device, queue->native);
  atomic_store(&queue->is_captured, goes_on);
  if (error != RDM_HIP_SUCCESS) {
    return rdm__device_call_failed(on->device, RDM__CALL_stream_end_capture, error,
                                   "ending the capture of stream %d, which %s", queue->stream_index,
                                   goes_on ? "goes on" : "is lost");
  }
  rdm_status status = RDM_OK;
  error = driver->graph_instantiate(&graph->native, captured, 0);
  if (error != RDM_HIP_SUCCESS) {
    status = rdm__device_call_failed(on->device, RDM__CALL_graph_instantiate, error,
                                     "making a graph of what stream %d was given", queue->stream_index);
  }
  error = driver->graph_destroy(captured);
  if (error != RDM_HIP_SUCCESS) {
    rdm__device_note_failure(on->device, RDM__CALL_graph_destroy, error, "ending a capture");
  }
  graph->queue = queue;
  graph->stream = on->stream;
  return status;
}

static rdm_status end_capture_of(rdm_encoder handle, rdm__graph *graph, rdm__device **out_device) {
  submission on = {0};
  rdm__capture_guard guard;
  rdm_status status = begin(handle, &on);
  if (status != RDM_OK) return status;
  *out_device = on.device;
  if (!atomic_load(&on.queue->is_captured)) {
    status = rdm__fail(RDM_ERROR_INVALID_ARGUMENT,
                       "stream %d of device %d is not being captured; rdm_encoder_begin_capture comes first",
                       on.queue->stream_index, on.device->index);
  }
  if (status == RDM_OK) status = rdm__visit_begin(on.device, &guard);
  if (status == RDM_OK) {
    status = end_capture(&on, graph);
    rdm__visit_end(on.device, &guard);
  }
  return end(&on, status);
}

rdm_status rdm_encoder_end_capture(rdm_encoder handle, rdm_graph *out_graph) {
  if (out_graph == NULL) return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "out_graph is null");
  rdm_status status = rdm__runtime_check();
  rdm__graph *graph = status == RDM_OK ? rdm__graph_allocate() : NULL;
  if (graph == NULL) return status != RDM_OK ? status : RDM_ERROR_RESOURCE;
  rdm__device *device = NULL;
  status = end_capture_of(handle, graph, &device);
  if (status == RDM_OK) {
    *out_graph = rdm__graph_open(graph);
  } else {
    rdm__graph_discard(graph);
  }
  if (device != NULL) rdm__graphs_destroy_released(device);
  return status;
}

static rdm_status launch_graph(const submission *on, const rdm__graph *graph) {
  if (graph->stream.bits != on->stream.bits) {
    return rdm__fail(RDM_ERROR_INVALID_ARGUMENT,
                     "the graph was captured on another stream than stream %d of device %d; it is launched on its own",
                     on->queue->stream_index, on->device->index);
  }
  int error = on->device->driver->graph_launch(graph->native, on->queue->native);
  if (error == RDM_HIP_SUCCESS) {
    rdm__count_alone(&on->queue->counts.graph_launches, 1);
    return RDM_OK;
  }
  rdm__count(RDM__COUNT_LAUNCHES_REFUSED, 1);
  return rdm__device_call_failed(on->device, RDM__CALL_graph_launch, error, "launching a graph on stream %d",
                                 on->queue->stream_index);
}

rdm_status rdm_encoder_launch_graph(rdm_encoder handle, rdm_graph graph_handle) {
  rdm__graph *graph = NULL;
  rdm_status status = rdm__graph_pin(graph_handle, &graph);
  if (status != RDM_OK) return status;
  submission on = {0};
  status = begin_on_device(handle, &on);
  if (status == RDM_OK) status = end(&on, launch_graph(&on, graph));
  rdm__graph_unpin(graph);
  return status;
}
