/* What is run while calls fail: everything that makes a driver call, given back whatever happens. */
#include "calls.h"
#include "injection.h"
#include "work.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* More than the pool keeps and a thread keeps besides. */
enum { DEVICES = 2, SURPLUS_EVENTS = 1024 + 64 };

/* Everything that a run owns: zero where it has none. */
typedef struct belongings {
  work_kernels kernels;
  rdm_device devices[DEVICES];
  rdm_stream streams[DEVICES + 1];
  rdm_event events[4];
  rdm_thread_local_stream thread_local_stream;
  void *memory[2];
  void *host;
} belongings;

typedef struct run {
  belongings own;
  scenario_failure failure;
  scenario_trace *trace;
  atomic_uint handlers_added;
  atomic_uint handlers_run;
} run;

/* What the log has so far; before the driver is loaded it has nothing, and asking would load it. */
static uint64_t calls_so_far(int number) {
  return number == 0 ? 0 : calls_made(NULL);
}

static bool note(run *this_run, const char *step, rdm_status status) {
  if (status == RDM_OK) return true;
  if (this_run->failure.number < 0) {
    this_run->failure.error.struct_size = sizeof this_run->failure.error;
    CHECK_OK(rdm_last_error(&this_run->failure.error));
    CHECK_THAT(this_run->failure.error.status == status, "%s returned %s and left %s", step, rdm_status_name(status),
               rdm_status_name(this_run->failure.error.status));
    this_run->failure.step = step;
    this_run->failure.number = this_run->trace != NULL ? this_run->trace->count : 0;
  }
  return false;
}

static void begin_step(run *this_run, const char *step) {
  scenario_trace *trace = this_run->trace;
  if (trace == NULL) return;
  CHECK(trace->count < (int)(sizeof trace->steps / sizeof trace->steps[0]));
  trace->begin[trace->count] = calls_so_far(trace->count);
  trace->steps[trace->count++] = step;
}

/* False, and the failure noted, where the call fails. Asking for the log after a failed load would load again. */
#define STEP(call)                                    \
  do {                                                \
    begin_step(this_run, #call);                      \
    if (!note(this_run, #call, (call))) return false; \
  } while (0)

static void count_handler(rdm_status status, void *user_data) {
  run *this_run = user_data;
  CHECK_THAT(status == RDM_OK || status == RDM_ERROR_DEVICE_FAULT, "a handler got %s", rdm_status_name(status));
  this_run->handlers_run++;
}

/* ---- The work ---------------------------------------------------------------------------------------------------- */

static bool first_uses(run *this_run) {
  belongings *own = &this_run->own;
  rdm_driver_info info = {.struct_size = sizeof info};
  int32_t count = 0;
  STEP(rdm_device_count(&count));
  STEP(rdm_get_driver_info(&info));
  for (int32_t i = 0; i < DEVICES; i++) STEP(rdm_device_get(i, &own->devices[i]));
  STEP(work_load(0, &own->kernels));
  for (int i = 0; i < 2; i++) STEP(rdm_memory_allocate(own->devices[0], 256, &own->memory[i]));
  STEP(rdm_host_memory_allocate(own->devices[0], 256, &own->host));
  STEP(rdm_thread_local_stream_create(0, &own->thread_local_stream));
  for (int i = 0; i < 3; i++) {
    STEP(rdm_event_create(own->devices[0], i < 2 ? RDM_EVENT_TIMING : RDM_EVENT_DEFAULT, &own->events[i]));
  }
  STEP(rdm_event_create(own->devices[1], RDM_EVENT_DEFAULT, &own->events[3]));
  return true;
}

static bool add_handler(run *this_run, rdm_encoder encoder) {
  STEP(rdm_encoder_add_completion_handler(encoder, count_handler, this_run));
  this_run->handlers_added++;
  return true;
}

static rdm_status query_until_ready(rdm_event event) {
  rdm_status status;
  while ((status = rdm_event_query(event)) == RDM_NOT_READY) test_sleep_ns(TEST_MILLISECOND / 10);
  return status;
}

static rdm_status elapsed_once_ready(rdm_event start, rdm_event end) {
  rdm_status status;
  float milliseconds = -1;
  while ((status = rdm_event_elapsed(start, end, &milliseconds)) == RDM_NOT_READY) test_sleep_ns(TEST_MILLISECOND / 10);
  CHECK(status != RDM_OK || milliseconds >= 0);
  return status;
}

static bool work_on_two_devices(run *this_run) {
  belongings *own = &this_run->own;
  rdm_encoder encoders[DEVICES];
  rdm_stream resolved;
  for (int32_t i = 0; i < DEVICES; i++) {
    STEP(rdm_stream_create(i, &own->streams[i]));
    STEP(rdm_encoder_get(own->streams[i], &encoders[i]));
  }
  STEP(rdm_encoder_record_event(encoders[0], own->events[0]));
  STEP(rdm_encoder_fill(encoders[0], own->memory[0], 0, 256));
  STEP(work_submit_step(encoders[0], &own->kernels, own->memory[0], 64));
  STEP(rdm_encoder_copy(encoders[0], own->memory[1], own->memory[0], 256, RDM_COPY_DEVICE_TO_DEVICE));
  STEP(rdm_encoder_copy(encoders[0], own->host, own->memory[1], 256, RDM_COPY_DEVICE_TO_HOST));
  if (!add_handler(this_run, encoders[0])) return false;
  STEP(rdm_encoder_commit(encoders[0]));
  STEP(rdm_encoder_record_event(encoders[0], own->events[1]));
  STEP(rdm_encoder_record_event(encoders[0], own->events[2]));
  STEP(rdm_encoder_wait_event(encoders[1], own->events[2]));
  STEP(rdm_encoder_record_event(encoders[1], own->events[3]));
  if (!add_handler(this_run, encoders[1])) return false;
  STEP(rdm_event_wait(own->events[3], RDM_WAIT_FOREVER));
  STEP(query_until_ready(own->events[1]));
  STEP(elapsed_once_ready(own->events[0], own->events[1]));
  STEP(rdm_stream_synchronize(own->streams[0], RDM_WAIT_FOREVER));
  STEP(rdm_stream_synchronize(own->streams[1], RDM_WAIT_FOREVER));
  for (int i = 0; i < 64; i++) CHECK(((float *)own->host)[i] == 1.0f);
  STEP(rdm_thread_local_stream_resolve(own->thread_local_stream, &resolved));
  STEP(rdm_encoder_get(resolved, &encoders[0]));
  STEP(rdm_encoder_fill(encoders[0], own->memory[0], 0, 256));
  STEP(rdm_device_make_current(own->devices[1]));
  STEP(rdm_device_synchronize(own->devices[0], RDM_WAIT_FOREVER));
  STEP(rdm_stream_release(own->streams[0]));
  own->streams[0].bits = 0;
  /* The queue of the stream that has ended is taken over. */
  STEP(rdm_stream_create(0, &own->streams[2]));
  STEP(rdm_encoder_get(own->streams[2], &encoders[0]));
  STEP(rdm_encoder_fill(encoders[0], own->memory[0], 0, 256));
  STEP(rdm_stream_synchronize(own->streams[2], RDM_WAIT_FOREVER));
  return true;
}

/* ---- Giving back ------------------------------------------------------------------------------------------------- */

/* What fails to be freed is still there, and is freed by the next try, unless its device is lost. */
static void free_memory(run *this_run, rdm_status (*release)(rdm_device device, void *pointer), void *pointer) {
  begin_step(this_run, "free");
  if (!note(this_run, "free", release(this_run->own.devices[0], pointer))) {
    CHECK_OK(release(this_run->own.devices[0], pointer));
  }
}

static void give_back(run *this_run) {
  belongings *own = &this_run->own;
  for (size_t i = 0; i < sizeof own->events / sizeof own->events[0]; i++) {
    if (own->events[i].bits != 0) CHECK_OK(rdm_event_release(own->events[i]));
  }
  for (size_t i = 0; i < sizeof own->streams / sizeof own->streams[0]; i++) {
    if (own->streams[i].bits != 0) CHECK_OK(rdm_stream_release(own->streams[i]));
  }
  if (own->thread_local_stream.bits != 0) CHECK_OK(rdm_thread_local_stream_release(own->thread_local_stream));
  for (int i = 0; i < 2; i++) {
    if (own->memory[i] != NULL) free_memory(this_run, rdm_memory_free, own->memory[i]);
  }
  if (own->host != NULL) free_memory(this_run, rdm_host_memory_free, own->host);
  for (int i = 0; i < 10000 && this_run->handlers_run < this_run->handlers_added; i++) test_sleep_ns(TEST_MILLISECOND);
  CHECK_THAT(this_run->handlers_run == this_run->handlers_added, "%u of %u handlers ran", this_run->handlers_run,
             this_run->handlers_added);
}

/* ---- The other scenarios ----------------------------------------------------------------------------------------- */

static rdm_event surplus[SURPLUS_EVENTS];

static void release_surplus(void) {
  for (int i = 0; i < SURPLUS_EVENTS; i++) {
    if (surplus[i].bits != 0) CHECK_OK(rdm_event_release(surplus[i]));
    surplus[i].bits = 0;
  }
}

static rdm_status create_surplus(rdm_device device) {
  for (int i = 0; i < SURPLUS_EVENTS; i++) {
    rdm_status status = rdm_event_create(device, RDM_EVENT_DEFAULT, &surplus[i]);
    if (status != RDM_OK) return status;
  }
  return RDM_OK;
}

static bool overfill_the_pool(run *this_run) {
  belongings *own = &this_run->own;
  STEP(rdm_device_get(0, &own->devices[0]));
  STEP(create_surplus(own->devices[0]));
  release_surplus();
  for (int i = 0; i < 2; i++) STEP(rdm_event_create(own->devices[0], RDM_EVENT_DEFAULT, &own->events[i]));
  return true;
}

const char scenario_bad_source[] = "a source that does not compile";

static bool compile(run *this_run) {
  rdm_module module;
  belongings *own = &this_run->own;
  rdm_driver_info info = {.struct_size = sizeof info};
  const rdm_module_source bad = {.struct_size = sizeof bad, .name = "bad", .source = "this is no source\n"};
  const rdm_module_source good = {
      .struct_size = sizeof good, .name = "good", .source = "extern \"C\" __global__ void nothing(int *out) {}\n"};
  STEP(rdm_get_driver_info(&info));
  STEP(rdm_device_get(0, &own->devices[0]));
  STEP(rdm_module_get(own->devices[0], &good, &module));
  begin_step(this_run, scenario_bad_source);
  CHECK_STATUS(rdm_module_get(own->devices[0], &bad, &module), RDM_ERROR_COMPILE);
  rdm_error error = {.struct_size = sizeof error};
  CHECK_OK(rdm_last_error(&error));
  CHECK(strstr(error.message, "bad") != NULL);
  return true;
}

scenario_failure scenario_run(injection_scenario scenario, scenario_trace *trace) {
  /* A handler may come late, so what it counts in must outlive this function. */
  run *this_run = calloc(1, sizeof *this_run);
  CHECK(this_run != NULL);
  this_run->failure.number = -1;
  this_run->trace = trace;
  switch (scenario) {
    case SCENARIO_WORK:
      (void)(first_uses(this_run) && work_on_two_devices(this_run));
      break;
    case SCENARIO_SURPLUS_EVENTS:
      (void)overfill_the_pool(this_run);
      release_surplus();
      break;
    case SCENARIO_COMPILE:
      (void)compile(this_run);
      break;
  }
  give_back(this_run);
  scenario_failure failure = this_run->failure;
  free(this_run);
  return failure;
}
