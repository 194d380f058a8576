/* Handles that are null, of another kind, never given out, or released. */
#include "bad_input.h"
#include "calls.h"
#include "expect.h"
#include "work.h"

/* One live handle of each kind, and what the calls below need. */
typedef struct live {
  rdm_stream stream;
  rdm_thread_local_stream thread_local_stream;
  rdm_encoder encoder;
  rdm_event event;
  work_kernels kernels;
  void *memory;
} live;

static live make_live(void) {
  live all = {0};
  test_use_sim(2);
  CHECK_OK(work_load(0, &all.kernels));
  CHECK_OK(rdm_stream_create(0, &all.stream));
  CHECK_OK(rdm_thread_local_stream_create(0, &all.thread_local_stream));
  CHECK_OK(rdm_encoder_get(all.stream, &all.encoder));
  CHECK_OK(rdm_event_create(all.kernels.device, RDM_EVENT_TIMING, &all.event));
  CHECK_OK(rdm_memory_allocate(all.kernels.device, 1024, &all.memory));
  return all;
}

/* What it was made of still works, so the failed calls changed nothing. */
static void check_still_live(const live *all) {
  rdm_encoder encoder;
  CHECK_OK(rdm_encoder_get(all->stream, &encoder));
  CHECK(encoder.bits == all->encoder.bits);
  CHECK_OK(work_submit_step(all->encoder, &all->kernels, all->memory, 256));
  CHECK_OK(rdm_encoder_record_event(all->encoder, all->event));
  CHECK_OK(rdm_event_wait(all->event, RDM_WAIT_FOREVER));
  CHECK_OK(rdm_stream_synchronize(all->stream, RDM_WAIT_FOREVER));
  rdm_error error = {.struct_size = sizeof error};
  CHECK_OK(rdm_stream_take_error(all->stream, &error));
  CHECK_STATUS(error.status, RDM_OK);
  CHECK_OK(rdm_take_unattributed_error(&error));
  CHECK_STATUS(error.status, RDM_OK);
  CHECK_OK(rdm_memory_free(all->kernels.device, all->memory));
  CHECK_OK(rdm_event_release(all->event));
  CHECK_OK(rdm_thread_local_stream_release(all->thread_local_stream));
  CHECK_OK(rdm_stream_release(all->stream));
}

static void handler(rdm_status status, void *user_data) {
  (void)status;
  (void)user_data;
  test_fail(__FILE__, __LINE__, "the handler of a refused call ran");
}

static void refuse_device(uint64_t bits, rdm_status expected, const char *text) {
  rdm_device device = {bits};
  rdm_device_info info = {.struct_size = sizeof info, .device_index = 123};
  rdm_event event = {123};
  rdm_module module = {123};
  void *pointer = &info;
  EXPECT_ERROR(rdm_device_get_info(device, &info), expected, text);
  EXPECT_ERROR(rdm_device_make_current(device), expected, text);
  EXPECT_ERROR(rdm_device_synchronize(device, RDM_WAIT_FOREVER), expected, text);
  EXPECT_ERROR(rdm_event_create(device, 0, &event), expected, text);
  EXPECT_ERROR(rdm_memory_allocate(device, 16, &pointer), expected, text);
  EXPECT_ERROR(rdm_host_memory_allocate(device, 16, &pointer), expected, text);
  EXPECT_ERROR(rdm_memory_free(device, pointer), expected, text);
  EXPECT_ERROR(rdm_host_memory_free(device, pointer), expected, text);
  EXPECT_ERROR(rdm_module_get(device, &work_source, &module), expected, text);
  EXPECT_ERROR(rdm_module_load(device, "x", "x", 1, &module), expected, text);
  CHECK(info.device_index == 123 && event.bits == 123 && module.bits == 123 && pointer == &info);
}

static void refuse_stream(uint64_t bits, rdm_status expected, const char *text) {
  rdm_stream stream = {bits};
  rdm_stream_info info = {.struct_size = sizeof info, .stream_index = 123};
  rdm_encoder encoder = {123};
  rdm_error error = {.struct_size = sizeof error, .status = 123};
  EXPECT_ERROR(rdm_stream_retain(stream), expected, text);
  EXPECT_ERROR(rdm_stream_release(stream), expected, text);
  EXPECT_ERROR(rdm_stream_get_info(stream, &info), expected, text);
  EXPECT_ERROR(rdm_stream_finalize(stream), expected, text);
  EXPECT_ERROR(rdm_stream_synchronize(stream, 1000), expected, text);
  EXPECT_ERROR(rdm_stream_take_error(stream, &error), expected, text);
  EXPECT_ERROR(rdm_encoder_get(stream, &encoder), expected, text);
  if (bits != 0) EXPECT_ERROR(rdm_default_stream_set(stream), expected, text);
  CHECK(info.stream_index == 123 && encoder.bits == 123 && error.status == 123);
}

static void refuse_thread_local_stream(uint64_t bits, rdm_status expected, const char *text) {
  rdm_thread_local_stream stream = {bits};
  rdm_stream resolved = {123};
  int32_t index = 123;
  EXPECT_ERROR(rdm_thread_local_stream_resolve(stream, &resolved), expected, text);
  EXPECT_ERROR(rdm_thread_local_stream_get_device_index(stream, &index), expected, text);
  EXPECT_ERROR(rdm_thread_local_stream_release(stream), expected, text);
  CHECK(resolved.bits == 123 && index == 123);
}

static void refuse_encoder(uint64_t bits, const live *all, rdm_status expected, const char *text) {
  rdm_encoder encoder = {bits};
  void *native = &encoder;
  EXPECT_ERROR(work_submit_step(encoder, &all->kernels, all->memory, 256), expected, text);
  EXPECT_ERROR(rdm_encoder_copy(encoder, all->memory, all->memory, 4, RDM_COPY_DEVICE_TO_DEVICE), expected, text);
  EXPECT_ERROR(rdm_encoder_fill(encoder, all->memory, 1, 4), expected, text);
  EXPECT_ERROR(rdm_encoder_add_completion_handler(encoder, handler, NULL), expected, text);
  EXPECT_ERROR(rdm_encoder_commit(encoder), expected, text);
  EXPECT_ERROR(rdm_encoder_record_event(encoder, all->event), expected, text);
  EXPECT_ERROR(rdm_encoder_wait_event(encoder, all->event), expected, text);
  EXPECT_ERROR(rdm_encoder_get_native_stream(encoder, &native), expected, text);
  CHECK(native == &encoder);
}

static void refuse_event(uint64_t bits, const live *all, rdm_status expected, const char *text) {
  rdm_event event = {bits};
  float milliseconds = 123;
  void *native = &event;
  EXPECT_ERROR(rdm_event_query(event), expected, text);
  EXPECT_ERROR(rdm_event_wait(event, 1000), expected, text);
  EXPECT_ERROR(rdm_event_release(event), expected, text);
  EXPECT_ERROR(rdm_event_elapsed(event, all->event, &milliseconds), expected, text);
  EXPECT_ERROR(rdm_event_elapsed(all->event, event, &milliseconds), expected, text);
  EXPECT_ERROR(rdm_event_get_native(event, &native), expected, text);
  EXPECT_ERROR(rdm_encoder_record_event(all->encoder, event), expected, text);
  EXPECT_ERROR(rdm_encoder_wait_event(all->encoder, event), expected, text);
  CHECK(milliseconds == 123 && native == &event);
}

static void refuse_module(uint64_t bits, rdm_status expected, const char *text) {
  rdm_kernel kernel = {123};
  EXPECT_ERROR(rdm_module_get_kernel((rdm_module){bits}, "arange", &kernel), expected, text);
  CHECK(kernel.bits == 123);
}

static void refuse_kernel(uint64_t bits, const live *all, rdm_status expected, const char *text) {
  work_kernels kernels = all->kernels;
  kernels.step.bits = bits;
  EXPECT_ERROR(work_submit_step(all->encoder, &kernels, all->memory, 256), expected, text);
}

static void refuse_all(const live *all, uint64_t bits, rdm_status expected, const char *text) {
  refuse_device(bits, expected, text);
  refuse_stream(bits, expected, text);
  refuse_thread_local_stream(bits, expected, text);
  refuse_encoder(bits, all, expected, text);
  refuse_event(bits, all, expected, text);
  refuse_module(bits, expected, text);
  refuse_kernel(bits, all, expected, text);
}

static void null_handle(void) {
  live all = make_live();
  expect_watch_driver_calls();
  refuse_all(&all, 0, RDM_ERROR_NULL_HANDLE, "null");
  EXPECT_ERROR(rdm_stream_record_error((rdm_stream){0}, RDM_ERROR_DRIVER, "x"), RDM_ERROR_NULL_HANDLE, "null");
  check_still_live(&all);
}

static void random_bits(void) {
  live all = make_live();
  expect_watch_driver_calls();
  uint64_t state = 7;
  for (int i = 0; i < 200; i++) {
    /* A generation so late is never reached, so these are no stale handles by chance. */
    uint64_t bits = (uint64_t)test_random(&state) << 33 ^ (uint64_t)test_random(&state) << 8 ^ test_random(&state);
    bits |= UINT64_C(0x80000000);
    refuse_all(&all, bits, RDM_ERROR_FOREIGN_HANDLE, expect_bits(bits));
  }
  refuse_all(&all, 1, RDM_ERROR_FOREIGN_HANDLE, "0x1");
  refuse_all(&all, UINT64_MAX, RDM_ERROR_FOREIGN_HANDLE, "0xffffffffffffffff");
  check_still_live(&all);
}

static void handle_of_another_kind(void) {
  live all = make_live();
  const uint64_t bits[] = {all.kernels.device.bits, all.stream.bits, all.thread_local_stream.bits,
                           all.encoder.bits,        all.event.bits,  all.kernels.module.bits,
                           all.kernels.step.bits};
  expect_watch_driver_calls();
  for (int i = 0; i < 7; i++) {
    const char *text = expect_bits(bits[i]);
    if (i != 0) refuse_device(bits[i], RDM_ERROR_FOREIGN_HANDLE, text);
    if (i != 1) refuse_stream(bits[i], RDM_ERROR_FOREIGN_HANDLE, text);
    if (i != 2) refuse_thread_local_stream(bits[i], RDM_ERROR_FOREIGN_HANDLE, text);
    if (i != 3) refuse_encoder(bits[i], &all, RDM_ERROR_FOREIGN_HANDLE, text);
    if (i != 4) refuse_event(bits[i], &all, RDM_ERROR_FOREIGN_HANDLE, text);
    if (i != 5) refuse_module(bits[i], RDM_ERROR_FOREIGN_HANDLE, text);
    if (i != 6) refuse_kernel(bits[i], &all, RDM_ERROR_FOREIGN_HANDLE, text);
  }
  check_still_live(&all);
}

static void released_stream(void) {
  live all = make_live();
  rdm_stream stream;
  rdm_encoder encoder;
  CHECK_OK(rdm_stream_create(1, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  CHECK_OK(rdm_stream_retain(stream));
  CHECK_OK(rdm_stream_release(stream));
  CHECK_OK(rdm_encoder_commit(encoder));
  CHECK_OK(rdm_stream_release(stream));
  expect_watch_driver_calls();
  refuse_stream(stream.bits, RDM_ERROR_STALE_HANDLE, expect_bits(stream.bits));
  refuse_encoder(encoder.bits, &all, RDM_ERROR_STALE_HANDLE, expect_bits(encoder.bits));
  check_still_live(&all);
  expect_watch_driver_calls();
  refuse_stream(all.stream.bits, RDM_ERROR_STALE_HANDLE, expect_bits(all.stream.bits));
}

static void released_thread_local_stream(void) {
  live all = make_live();
  rdm_thread_local_stream stream;
  rdm_stream resolved;
  CHECK_OK(rdm_thread_local_stream_create(1, &stream));
  CHECK_OK(rdm_thread_local_stream_resolve(stream, &resolved));
  CHECK_OK(rdm_thread_local_stream_release(stream));
  expect_watch_driver_calls();
  refuse_thread_local_stream(stream.bits, RDM_ERROR_STALE_HANDLE, expect_bits(stream.bits));
  check_still_live(&all);
}

static void released_event(void) {
  live all = make_live();
  rdm_event event;
  CHECK_OK(rdm_event_create(all.kernels.device, RDM_EVENT_DEFAULT, &event));
  CHECK_OK(rdm_event_release(event));
  rdm_event next;
  CHECK_OK(rdm_event_create(all.kernels.device, RDM_EVENT_DEFAULT, &next));
  CHECK(next.bits != event.bits);
  expect_watch_driver_calls();
  refuse_event(event.bits, &all, RDM_ERROR_STALE_HANDLE, expect_bits(event.bits));
  CHECK_OK(rdm_event_release(next));
  check_still_live(&all);
}

/* So a slot's generations last, and a stale handle stays one for as long as can be. */
static void a_slot_is_used_again_last(void) {
  enum { STREAMS = 3 };
  rdm_stream first[STREAMS];
  rdm_stream second[STREAMS];
  test_use_sim(1);
  for (int i = 0; i < STREAMS; i++) CHECK_OK(rdm_stream_create(0, &first[i]));
  for (int i = 0; i < STREAMS; i++) CHECK_OK(rdm_stream_release(first[i]));
  for (int i = 0; i < STREAMS; i++) CHECK_OK(rdm_stream_create(0, &second[i]));
  for (int i = 0; i < STREAMS; i++) CHECK(first[i].bits >> 32 == second[i].bits >> 32);
}

static void encoder_cleared(void) {
  live all = make_live();
  CHECK_OK(rdm_clear_encoders());
  expect_watch_driver_calls();
  refuse_encoder(all.encoder.bits, &all, RDM_ERROR_STALE_HANDLE, expect_bits(all.encoder.bits));
  CHECK_OK(rdm_encoder_get(all.stream, &all.encoder));
  check_still_live(&all);
}

static void error_of_a_stale_stream_is_kept_apart(void) {
  live all = make_live();
  rdm_stream stream;
  CHECK_OK(rdm_stream_create(0, &stream));
  CHECK_OK(rdm_stream_release(stream));
  rdm_error error = {.struct_size = sizeof error};
  CHECK_OK(rdm_stream_record_error(stream, RDM_ERROR_LAUNCH, "first"));
  CHECK_OK(rdm_stream_record_error(stream, RDM_ERROR_DRIVER, "second"));
  CHECK_OK(rdm_take_unattributed_error(&error));
  CHECK_STATUS(error.status, RDM_ERROR_LAUNCH);
  CHECK(error.message[0] != '\0');
  CHECK_OK(rdm_take_unattributed_error(&error));
  CHECK_STATUS(error.status, RDM_OK);
  check_still_live(&all);
}

/* A success leaves the thread's last error as it is, whatever the handle was. */
static void recording_for_a_stale_stream_leaves_the_last_error(void) {
  live all = make_live();
  rdm_stream stream;
  CHECK_OK(rdm_stream_create(0, &stream));
  CHECK_OK(rdm_stream_release(stream));
  CHECK_STATUS(rdm_event_query((rdm_event){0}), RDM_ERROR_NULL_HANDLE);
  CHECK_OK(rdm_stream_record_error(stream, RDM_ERROR_LAUNCH, "recorded by the test"));
  rdm_error error = {.struct_size = sizeof error};
  CHECK_OK(rdm_last_error(&error));
  CHECK_STATUS(error.status, RDM_ERROR_NULL_HANDLE);
  CHECK_OK(rdm_take_unattributed_error(&error));
  CHECK_STATUS(error.status, RDM_ERROR_LAUNCH);
  check_still_live(&all);
}

/* Whoever meets the error is told something, also where its recorder gave no text. */
static void error_recorded_without_a_message_has_one(void) {
  live all = make_live();
  static const char *const texts[] = {NULL, ""};
  for (int i = 0; i < 2; i++) {
    CHECK_OK(rdm_stream_record_error(all.stream, RDM_ERROR_LAUNCH, texts[i]));
    EXPECT_ERROR(rdm_stream_synchronize(all.stream, RDM_WAIT_FOREVER), RDM_ERROR_LAUNCH, "refused a launch");
    rdm_error error = {.struct_size = sizeof error};
    CHECK_OK(rdm_stream_take_error(all.stream, &error));
  }
  check_still_live(&all);
}

static void events_of_two_devices_have_no_time_between_them(void) {
  rdm_device devices[2];
  rdm_event events[2];
  test_use_sim(2);
  for (int32_t i = 0; i < 2; i++) {
    CHECK_OK(rdm_device_get(i, &devices[i]));
    CHECK_OK(rdm_event_create(devices[i], RDM_EVENT_TIMING, &events[i]));
  }
  float milliseconds = -1;
  EXPECT_ERROR(rdm_event_elapsed(events[0], events[1], &milliseconds), RDM_ERROR_WRONG_DEVICE, "device 1");
  CHECK(milliseconds == -1);
  void *natives[2] = {NULL, NULL};
  for (int i = 0; i < 2; i++) CHECK_OK(rdm_event_get_native(events[i], &natives[i]));
  CHECK(natives[0] != NULL && natives[1] != NULL && natives[0] != natives[1]);
  for (int i = 0; i < 2; i++) CHECK_OK(rdm_event_release(events[i]));
}

static void the_shared_thread_local_stream_is_not_released(void) {
  rdm_thread_local_stream shared;
  rdm_thread_local_stream again;
  int32_t index = -1;
  test_use_sim(2);
  CHECK_OK(rdm_thread_local_stream_get_shared(1, &shared));
  CHECK_OK(rdm_thread_local_stream_get_device_index(shared, &index));
  CHECK(index == 1);
  EXPECT_ERROR(rdm_thread_local_stream_release(shared), RDM_ERROR_INVALID_ARGUMENT, "borrowed");
  CHECK_OK(rdm_thread_local_stream_get_shared(1, &again));
  CHECK(again.bits == shared.bits);
}

const test_case handle_tests[] = {
    {.name = "recording_for_a_stale_stream_leaves_the_last_error",
     .function = recording_for_a_stale_stream_leaves_the_last_error},
    {.name = "error_recorded_without_a_message_has_one", .function = error_recorded_without_a_message_has_one},
    {.name = "null_handle", .function = null_handle},
    {.name = "random_bits", .function = random_bits},
    {.name = "handle_of_another_kind", .function = handle_of_another_kind},
    {.name = "released_stream", .function = released_stream},
    {.name = "released_thread_local_stream", .function = released_thread_local_stream},
    {.name = "released_event", .function = released_event},
    {.name = "a_slot_is_used_again_last", .function = a_slot_is_used_again_last},
    {.name = "encoder_cleared", .function = encoder_cleared},
    {.name = "error_of_a_stale_stream_is_kept_apart", .function = error_of_a_stale_stream_is_kept_apart},
    {.name = "events_of_two_devices_have_no_time_between_them",
     .function = events_of_two_devices_have_no_time_between_them},
    {.name = "the_shared_thread_local_stream_is_not_released",
     .function = the_shared_thread_local_stream_is_not_released},
    {0},
};
