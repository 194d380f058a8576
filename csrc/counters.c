/*
 * rdm_get_counters: adds up what the parts of the library have counted, and what their state tells.
 *
 * Nothing stands still meanwhile. Where one number is the difference of two that only grow, the one taken away is read
 * first, so that the difference is never below zero.
 */
#include "count.h"
#include "device_map.h"
#include "encoder.h"
#include "event_pool.h"
#include "graph.h"
#include "module.h"
#include "queue.h"
#include "runtime.h"
#include "status.h"
#include "stream.h"

/* Queues are never destroyed, so what each counted is there for ever. No lock is taken: a thread that stands still in
 * the driver may hold a queue's. */
static void add_queue(const rdm__queue *queue, rdm_counters *counters) {
  uint64_t finished = atomic_load_explicit(&queue->completions.batches_finished, memory_order_acquire);
  uint64_t committed = rdm__counted_alone(&queue->counts.batches);
  counters->driver_streams++;
  counters->launches += rdm__counted_alone(&queue->counts.launches);
  counters->copies += rdm__counted_alone(&queue->counts.copies);
  counters->copied_bytes += rdm__counted_alone(&queue->counts.copied_bytes);
  counters->fills += rdm__counted_alone(&queue->counts.fills);
  counters->graph_launches += rdm__counted_alone(&queue->counts.graph_launches);
  counters->event_records += rdm__counted_alone(&queue->counts.event_records);
  counters->event_waits += rdm__counted_alone(&queue->counts.event_waits);
  counters->batches_committed += committed;
  counters->batches_pending += committed - finished;
}

static void add_device(rdm__device *device, void *context) {
  rdm_counters *counters = context;
  const rdm__queue *queue = atomic_load_explicit(&device->queues, memory_order_acquire);
  for (; queue != NULL; queue = queue->next_made) add_queue(queue, counters);
  for (int i = 0; i < RDM__EVENT_KINDS; i++) {
    counters->event_pool_visits += rdm__counted_alone(&device->event_pools[i].visits);
  }
}

static void count_lookups(rdm_counters *counters) {
  counters->device_hits = rdm__device_map_hits();
  counters->device_lookups = counters->device_hits + rdm__counted(RDM__COUNT_DEVICE_MISSES);
  counters->device_constructions = rdm__device_map_constructions();
  counters->encoder_hits = rdm__encoder_hits();
  counters->encoder_lookups = counters->encoder_hits + rdm__counted(RDM__COUNT_ENCODER_MISSES);
  counters->module_hits = rdm__module_hits();
  counters->module_lookups = counters->module_hits + rdm__counted(RDM__COUNT_MODULE_MISSES);
}

static void count_objects(rdm_counters *counters) {
  rdm__handle_totals totals;
  rdm__encoders_count(&totals);
  counters->encoders_created = totals.created;
  counters->encoders_alive = totals.created - totals.ended;
  rdm__streams_count(&totals);
  counters->streams_created = totals.created;
  counters->streams_alive = totals.created - totals.ended;
  rdm__graphs_count(&totals);
  counters->graphs_created = totals.created;
  counters->graphs_alive = totals.created - totals.ended;
  rdm__modules_count(&totals);
  counters->modules_loaded = totals.created;
  uint64_t driver_events_ended = rdm__counted(RDM__COUNT_DRIVER_EVENTS_ENDED);
  rdm__handle_count(&rdm__events, &totals);
  counters->events_created = totals.created;
  counters->events_released = totals.ended;
  counters->events_alive = totals.created - totals.ended;
  counters->driver_events = rdm__counted(RDM__COUNT_DRIVER_EVENTS_MADE) - driver_events_ended;
  /* The two are of different moments, so while other threads go on one may have overtaken the other. */
  if (counters->driver_events > counters->events_alive) {
    counters->events_pooled = counters->driver_events - counters->events_alive;
  }
}

static void count_the_rest(rdm_counters *counters) {
  uint64_t ended = rdm__counted(RDM__COUNT_WAITS_ENDED);
  counters->waits = rdm__counted(RDM__COUNT_WAITS);
  counters->waits_running = counters->waits - ended;
  counters->wait_time_ns = rdm__counted(RDM__COUNT_WAIT_TIME_NS);
  counters->wait_timeouts = rdm__counted(RDM__COUNT_WAIT_TIMEOUTS);
  counters->wait_watchdogs = rdm__counted(RDM__COUNT_WAIT_WATCHDOGS);
  ended = rdm__counted(RDM__COUNT_COMPILES_ENDED);
  counters->compiles = rdm__counted(RDM__COUNT_COMPILES);
  counters->compiles_running = counters->compiles - ended;
  counters->compile_failures = rdm__counted(RDM__COUNT_COMPILE_FAILURES);
  counters->compile_time_ns = rdm__counted(RDM__COUNT_COMPILE_TIME_NS);
  counters->disk_cache_hits = rdm__counted(RDM__COUNT_DISK_HITS);
  counters->disk_cache_misses = rdm__counted(RDM__COUNT_DISK_MISSES);
  counters->device_allocations = rdm__counted(RDM__COUNT_DEVICE_ALLOCATIONS);
  counters->device_frees = rdm__counted(RDM__COUNT_DEVICE_FREES);
  counters->host_allocations = rdm__counted(RDM__COUNT_HOST_ALLOCATIONS);
  counters->host_frees = rdm__counted(RDM__COUNT_HOST_FREES);
  counters->launches_refused = rdm__counted(RDM__COUNT_LAUNCHES_REFUSED);
  counters->faults = rdm__counted(RDM__COUNT_FAULTS);
  counters->driver_errors = rdm__counted(RDM__COUNT_DRIVER_ERRORS);
  counters->stream_errors = rdm__counted(RDM__COUNT_STREAM_ERRORS);
  counters->log_errors = rdm__counted(RDM__COUNT_LOG_ERRORS);
  counters->log_warnings = rdm__counted(RDM__COUNT_LOG_WARNINGS);
}

rdm_status rdm_get_counters(rdm_counters *out_counters) {
  rdm_status status = rdm__runtime_check();
  if (status != RDM_OK) return status;
  rdm_counters counters = {.struct_size = sizeof counters};
  count_lookups(&counters);
  count_objects(&counters);
  count_the_rest(&counters);
  rdm__device_map_each(add_device, &counters);
  return rdm__struct_copy_out("out_counters", &counters, sizeof counters, offsetof(rdm_counters, device_hits),
                              out_counters);
}
