#include "driver.h"

#include "driver/select.h"
#include "lock.h"
#include "races.h"
#include "scenario.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_OBJECTS = 64, MOST_WORK = 128 };

typedef enum object_kind { OBJECT_NONE, OBJECT_STREAM, OBJECT_EVENT, OBJECT_MODULE, OBJECT_PROGRAM } object_kind;

typedef struct driver_object {
  object_kind kind;
  int device;
  /* Of an event: pieces of work that record it and are not done. Of a stream: all its pieces. */
  int outstanding;
  int submissions;
} driver_object;

typedef struct work {
  driver_object *stream;
  driver_object *event;
  rdm__host_function function;
  void *user_data;
  /* What happened before it was submitted. */
  vector_clock submitted;
} work;

static driver_object objects[MOST_OBJECTS];
static int object_count;
static work works[MOST_WORK];
static int first_work;
static int end_of_work;
static bool has_gpu;
static int faults[DRIVER_DEVICES];
static int constructions[DRIVER_DEVICES];
static int flags_set[DRIVER_DEVICES];
static int succeeded[RDM__CALL_COUNT];
static struct {
  int times;
  int error;
} failures[RDM__CALL_COUNT];

/* 0 in a new thread, as HIP has it; so the scenarios use another, that somebody has to make current. */
static _Thread_local int current_device;
static _Thread_local int last_error;

static rdm__driver the_driver;

void driver_fail(rdm__call call, int times, int error) {
  failures[call].times = times;
  failures[call].error = error;
}

void driver_set_serial_compiler(void) {
  the_driver.compiles_one_at_a_time = true;
}

int driver_count(rdm__call call) {
  return succeeded[call];
}

int driver_constructions(int device) {
  return constructions[device];
}

void driver_leave_error(int error) {
  last_error = error;
}

int driver_left_error(void) {
  return last_error;
}

static const char *name_of(rdm__call call) {
  static const char *const names[] = {
#define X(field, hip_name, parameters) hip_name,
      RDM__DRIVER_CALLS(X)
#undef X
  };
  return names[call];
}

/* Every call begins here. Those that are the thread's own affair stand in no order to others' (the object is null). */
static int enter(rdm__call call) {
  bool is_own = call == RDM__CALL_get_device || call == RDM__CALL_stream_is_capturing ||
                call == RDM__CALL_thread_exchange_capture_mode ||
                (call == RDM__CALL_set_device && failures[call].error == 0);
  rdm__assert_no_leaf_held();
  schedule_driver_point(name_of(call), is_own ? NULL : objects);
  if (failures[call].times > 0) {
    failures[call].times--;
    last_error = failures[call].error;
    return last_error;
  }
  succeeded[call]++;
  return RDM_HIP_SUCCESS;
}

static int fail(int error) {
  last_error = error;
  return error;
}

static driver_object *make(object_kind kind) {
  if (object_count == MOST_OBJECTS) schedule_fail("the driver has no room for one more object");
  driver_object *object = &objects[object_count++];
  *object = (driver_object){.kind = kind, .device = current_device};
  return object;
}

static driver_object *check_object(void *handle, object_kind kind, const char *what) {
  driver_object *object = handle;
  if (object < objects || object >= objects + object_count || object->kind != kind) {
    schedule_fail("the driver is given what is no live %s", what);
  }
  return object;
}

/* ---- The GPU --------------------------------------------------------------------------------------------------- */

static void finish(work *done) {
  done->stream->outstanding--;
  if (done->event != NULL) done->event->outstanding--;
}

static void *gpu_main(void *argument) {
  for (;;) {
    while (first_work == end_of_work) {
      schedule_self->is_woken = false;
      schedule_point(POINT_IDLE, objects);
    }
    schedule_driver_point("the GPU does a piece of work", objects);
    work *next = &works[first_work++];
    races_acquire(&next->submitted);
    if (faults[next->stream->device] == 0 && next->function != NULL) next->function(next->user_data);
    finish(next);
  }
  return argument;
}

void schedule_start_gpu(void) {
  has_gpu = true;
  if (schedule_thread_start(gpu_main, NULL, true) != 0) schedule_fail("a thread can not be started");
}

static int submit(rdm__call call, void *stream_handle, driver_object *event, rdm__host_function function,
                  void *user_data) {
  driver_object *stream = check_object(stream_handle, OBJECT_STREAM, "stream");
  int error = enter(call);
  if (error != RDM_HIP_SUCCESS) return error;
  if (faults[stream->device] != 0) return fail(faults[stream->device]);
  if (current_device != stream->device) {
    schedule_fail("%s on a stream of device %d with device %d current", name_of(call), stream->device, current_device);
  }
  if (event != NULL && event->device != stream->device && call == RDM__CALL_event_record) {
    schedule_fail("an event of device %d is recorded on a stream of device %d", event->device, stream->device);
  }
  stream->submissions++;
  if (!has_gpu) return RDM_HIP_SUCCESS;
  if (end_of_work == MOST_WORK) schedule_fail("the GPU has no room for one more piece of work");
  work *added = &works[end_of_work++];
  *added = (work){.stream = stream, .event = event, .function = function, .user_data = user_data};
  stream->outstanding++;
  if (event != NULL) event->outstanding++;
  races_release(&added->submitted);
  schedule_wake(objects);
  return RDM_HIP_SUCCESS;
}

int driver_submissions(void *native_stream) {
  return check_object(native_stream, OBJECT_STREAM, "stream")->submissions;
}

void driver_fault(int device, int error) {
  faults[device] = error;
}

/* ---- Entry points ---------------------------------------------------------------------------------------------- */

static int call_init(unsigned flags) {
  (void)flags;
  return enter(RDM__CALL_init);
}

static int call_driver_get_version(int *version) {
  *version = 1;
  return enter(RDM__CALL_driver_get_version);
}

static int call_runtime_get_version(int *version) {
  *version = 1;
  return enter(RDM__CALL_runtime_get_version);
}

static int call_get_device_count(int *count) {
  *count = DRIVER_DEVICES;
  return enter(RDM__CALL_get_device_count);
}

static int call_get_device(int *device) {
  int error = enter(RDM__CALL_get_device);
  *device = current_device;
  return error;
}

static int call_set_device(int device) {
  int error = enter(RDM__CALL_set_device);
  if (error != RDM_HIP_SUCCESS) return error;
  if (faults[device] != 0) return fail(faults[device]);
  current_device = device;
  return RDM_HIP_SUCCESS;
}

static int call_set_device_flags(unsigned flags) {
  (void)flags;
  int error = enter(RDM__CALL_set_device_flags);
  if (error != RDM_HIP_SUCCESS) return error;
  if (flags_set[current_device]++ > 0) schedule_fail("the flags of device %d are set twice", current_device);
  return RDM_HIP_SUCCESS;
}

static int call_get_device_properties(rdm__device_properties *properties, int device) {
  int error = enter(RDM__CALL_get_device_properties);
  if (error != RDM_HIP_SUCCESS) return error;
  if (constructions[device]++ > 0) schedule_fail("device %d is constructed twice", device);
  snprintf(properties->name, sizeof properties->name, "device %d", device);
  snprintf(properties->architecture, sizeof properties->architecture, "arch");
  return RDM_HIP_SUCCESS;
}

static int call_device_synchronize(void) {
  schedule_fail("the library enters a driver call that waits");
}

static int call_memory_allocate(void **pointer, size_t size) {
  int error = enter(RDM__CALL_memory_allocate);
  if (error == RDM_HIP_SUCCESS) *pointer = malloc(size);
  return error;
}

static int call_memory_free(void *pointer) {
  (void)pointer;
  return enter(RDM__CALL_memory_free);
}

static int call_host_memory_allocate(void **pointer, size_t size, unsigned flags) {
  (void)flags;
  return call_memory_allocate(pointer, size);
}

static int call_host_memory_free(void *pointer) {
  return call_memory_free(pointer);
}

static int call_memory_copy_async(void *to, const void *from, size_t size, int kind, void *stream) {
  (void)to, (void)from, (void)size, (void)kind;
  return submit(RDM__CALL_memory_copy_async, stream, NULL, NULL, NULL);
}

static int call_memory_set_async(void *to, int value, size_t size, void *stream) {
  (void)to, (void)value, (void)size;
  return submit(RDM__CALL_memory_set_async, stream, NULL, NULL, NULL);
}

static int call_stream_create(void **stream, unsigned flags) {
  (void)flags;
  int error = enter(RDM__CALL_stream_create);
  if (error == RDM_HIP_SUCCESS) *stream = make(OBJECT_STREAM);
  return error;
}

static int call_stream_destroy(void *stream) {
  (void)stream;
  schedule_fail("the library destroys a stream");
}

static int query(rdm__call call, driver_object *object) {
  int error = enter(call);
  if (error != RDM_HIP_SUCCESS) return error;
  if (faults[object->device] != 0) return fail(faults[object->device]);
  return object->outstanding > 0 ? fail(RDM_HIP_NOT_READY) : RDM_HIP_SUCCESS;
}

static int call_stream_query(void *stream) {
  return query(RDM__CALL_stream_query, check_object(stream, OBJECT_STREAM, "stream"));
}

static int call_stream_synchronize(void *stream) {
  (void)stream;
  return call_device_synchronize();
}

static int call_stream_wait_event(void *stream, void *event, unsigned flags) {
  (void)flags;
  check_object(event, OBJECT_EVENT, "event");
  return submit(RDM__CALL_stream_wait_event, stream, NULL, NULL, NULL);
}

static int call_launch_host_function(void *stream, rdm__host_function function, void *user_data) {
  if (!has_gpu) schedule_fail("a host function is enqueued in a scenario without a GPU");
  return submit(RDM__CALL_launch_host_function, stream, NULL, function, user_data);
}

static int call_event_create(void **event, unsigned flags) {
  (void)flags;
  int error = enter(RDM__CALL_event_create);
  if (error == RDM_HIP_SUCCESS) *event = make(OBJECT_EVENT);
  return error;
}

static int call_event_destroy(void *event) {
  driver_object *object = check_object(event, OBJECT_EVENT, "event");
  int error = enter(RDM__CALL_event_destroy);
  if (error == RDM_HIP_SUCCESS) object->kind = OBJECT_NONE;
  return error;
}

static int call_event_record(void *event, void *stream) {
  return submit(RDM__CALL_event_record, stream, check_object(event, OBJECT_EVENT, "event"), NULL, NULL);
}

static int call_event_query(void *event) {
  return query(RDM__CALL_event_query, check_object(event, OBJECT_EVENT, "event"));
}

static int call_event_synchronize(void *event) {
  (void)event;
  return call_device_synchronize();
}

static int call_event_elapsed_time(float *milliseconds, void *start, void *end) {
  (void)start, (void)end;
  *milliseconds = 1;
  return enter(RDM__CALL_event_elapsed_time);
}

static int call_module_load_data(void **module, const void *image, size_t image_size) {
  (void)image, (void)image_size;
  int error = enter(RDM__CALL_module_load_data);
  if (error == RDM_HIP_SUCCESS) *module = make(OBJECT_MODULE);
  return error;
}

static int call_module_unload(void *module) {
  (void)module;
  schedule_fail("the library unloads a module");
}

static int call_module_get_function(void **function, void *module, const char *name) {
  (void)name;
  int error = enter(RDM__CALL_module_get_function);
  if (error == RDM_HIP_SUCCESS) *function = check_object(module, OBJECT_MODULE, "module");
  return error;
}

static int call_launch_kernel(void *function, const unsigned grid[3], const unsigned block[3], unsigned shared_memory,
                              void *stream, void **arguments) {
  (void)function, (void)grid, (void)block, (void)shared_memory, (void)arguments;
  return submit(RDM__CALL_launch_kernel, stream, NULL, NULL, NULL);
}

/* The slot is the thread's own. */
static int call_peek_at_last_error(void) {
  schedule_driver_point(name_of(RDM__CALL_peek_at_last_error), NULL);
  return last_error;
}

static int call_get_last_error(void) {
  schedule_driver_point(name_of(RDM__CALL_get_last_error), NULL);
  int error = last_error;
  last_error = RDM_HIP_SUCCESS;
  return error;
}

/* Nobody captures here; each thread's mode is its own. */
static int call_stream_is_capturing(void *stream, int *status) {
  check_object(stream, OBJECT_STREAM, "stream");
  *status = RDM_HIP_CAPTURE_NONE;
  return enter(RDM__CALL_stream_is_capturing);
}

static int call_thread_exchange_capture_mode(int *mode) {
  static _Thread_local int current_mode;
  int before = current_mode;
  int error = enter(RDM__CALL_thread_exchange_capture_mode);
  if (error != RDM_HIP_SUCCESS) return error;
  current_mode = *mode;
  *mode = before;
  return RDM_HIP_SUCCESS;
}

/* What no scenario does. */
#define NEVER(field, parameters)                \
  static int call_##field parameters {          \
    schedule_fail("the library calls " #field); \
  }
NEVER(stream_begin_capture, (void *stream __attribute__((unused)), int mode __attribute__((unused))))
NEVER(stream_end_capture, (void *stream __attribute__((unused)), void **graph __attribute__((unused))))
NEVER(graph_destroy, (void *graph __attribute__((unused))))
NEVER(graph_instantiate, (void **executable __attribute__((unused)), void *graph __attribute__((unused)),
                          unsigned long long flags __attribute__((unused))))
NEVER(graph_launch, (void *executable __attribute__((unused)), void *stream __attribute__((unused))))
NEVER(graph_exec_destroy, (void *executable __attribute__((unused))))

/* ---- The compiler ----------------------------------------------------------------------------------------------- */

static int programs_in_compiler;

static int call_rtc_version(int *major, int *minor) {
  *major = 1;
  *minor = 0;
  return enter(RDM__CALL_rtc_version);
}

static int call_rtc_create_program(void **program, const char *source, const char *name) {
  (void)source, (void)name;
  int error = enter(RDM__CALL_rtc_create_program);
  if (error != RDM_RTC_SUCCESS) return error;
  if (++programs_in_compiler > 1 && the_driver.compiles_one_at_a_time) {
    schedule_fail("two compiles at a time in a compiler that takes one");
  }
  *program = &programs_in_compiler;
  return RDM_RTC_SUCCESS;
}

static int call_rtc_compile_program(void *program, int option_count, const char *const *options) {
  (void)program, (void)option_count, (void)options;
  return enter(RDM__CALL_rtc_compile_program);
}

static int call_rtc_get_log_size(void *program, size_t *size) {
  (void)program;
  *size = 8;
  return enter(RDM__CALL_rtc_get_log_size);
}

static int call_rtc_get_log(void *program, char *log) {
  (void)program;
  snprintf(log, 8, "refused");
  return enter(RDM__CALL_rtc_get_log);
}

static int call_rtc_get_code_size(void *program, size_t *size) {
  (void)program;
  *size = 4;
  return enter(RDM__CALL_rtc_get_code_size);
}

static int call_rtc_get_code(void *program, char *code) {
  (void)program;
  snprintf(code, 4, "abc");
  return enter(RDM__CALL_rtc_get_code);
}

static int call_rtc_destroy_program(void **program) {
  int error = enter(RDM__CALL_rtc_destroy_program);
  programs_in_compiler--;
  *program = NULL;
  return error;
}

/* ---- The table ------------------------------------------------------------------------------------------------- */

static const char *error_text(int error) {
  return error == RDM_HIP_SUCCESS ? "success" : "an error";
}

static int no_count(void *function) {
  (void)function;
  return -1;
}

static int no_size(void *function, unsigned index) {
  (void)function, (void)index;
  return -1;
}

static rdm__driver the_driver = {
#define X(field, hip_name, parameters) .field = call_##field,
    RDM__DRIVER_CALLS(X)
#undef X
        .error_name = error_text,
    .error_string = error_text,
    .rtc_error_string = error_text,
    .call_name = name_of,
    .kernel_argument_count = no_count,
    .kernel_argument_size = no_size,
    .name = "schedule",
    .architecture_option = "--arch=",
};

bool rdm__driver_is_known(const char *name) {
  return strcmp(name, "sim") == 0;
}

const char *rdm__driver_names(void) {
  return "sim";
}

rdm_status rdm__driver_select(const char *name, int sim_device_count, const rdm__driver **out_driver,
                              int32_t *out_device_count) {
  (void)name, (void)sim_device_count;
  int count = 0;
  if (the_driver.get_device_count(&count) != RDM_HIP_SUCCESS) return RDM_ERROR_DRIVER;
  *out_driver = &the_driver;
  *out_device_count = count;
  return RDM_OK;
}
