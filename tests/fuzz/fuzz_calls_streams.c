/* Operations on streams, thread-local streams, encoders, devices and errors. */
#include "fuzz_calls.h"

#include <limits.h>
#include <string.h>

static const uint64_t untouched = UINT64_C(0x5a5a5a5a5a5a5a5a);

#define CHECK_OUT(status, bits, name) \
  FUZZ_CHECK((status) == RDM_OK || (bits) == untouched, "%s is %s and wrote its result", name, rdm_status_name(status))

static int32_t choose_index(fuzz_input *input) {
  uint8_t choice = fuzz_byte(input);
  if (choice < 240) return the_world.devices[choice % CALLS_DEVICES].index;
  static const int32_t wrong[] = {-1, CALLS_SIM_DEVICES, INT32_MAX, INT32_MIN};
  return wrong[choice % 4];
}

static void check_index(int32_t index, rdm_status status) {
  bool is_valid = index >= 0 && index < CALLS_SIM_DEVICES;
  FUZZ_CHECK((status == RDM_ERROR_INVALID_DEVICE) == !is_valid, "device index %d is %s", index,
             rdm_status_name(status));
}

static void create_stream(fuzz_input *input) {
  rdm_stream made = {untouched};
  int32_t index = choose_index(input);
  rdm_status status = CALL(CALLS_ANY, rdm_stream_create(index, &made));
  check_index(index, status);
  CHECK_OUT(status, made.bits, "rdm_stream_create");
  if (status == RDM_OK) calls_put(input, CALLS_STREAM, made.bits);
}

static void get_stream(fuzz_input *input) {
  rdm_stream found = {untouched};
  rdm_stream again = {untouched};
  int32_t index = choose_index(input);
  /* Few numbers, and far from those that rdm_stream_create gives out. */
  int32_t stream_index = INT32_MAX - fuzz_byte(input) % 4;
  rdm_status status = CALL(CALLS_ANY, rdm_stream_get(index, stream_index, &found));
  check_index(index, status);
  CHECK_OUT(status, found.bits, "rdm_stream_get");
  if (status != RDM_OK) return;
  if (CALL(CALLS_ANY, rdm_stream_get(index, stream_index, &again)) == RDM_OK) {
    FUZZ_CHECK(found.bits == again.bits, "one stream index gave two streams");
  }
  FUZZ_CHECK(CALL(CALLS_ANY, rdm_stream_release(found)) == RDM_ERROR_INVALID_ARGUMENT, "a registered one is released");
  rdm_stream_info info = {.struct_size = sizeof info};
  FUZZ_CHECK(CALL(CALLS_ANY, rdm_stream_get_info(found, &info)) == RDM_OK && info.device_index == index &&
                 info.stream_index == stream_index,
             "a registered stream has another index");
}

static void resolve(fuzz_input *input) {
  calls_expectation expected;
  rdm_thread_local_stream handle = {calls_choose(input, CALLS_THREAD, &expected)};
  rdm_stream stream = {untouched};
  rdm_status status = CALL(expected, rdm_thread_local_stream_resolve(handle, &stream));
  CHECK_OUT(status, stream.bits, "rdm_thread_local_stream_resolve");
  if (status != RDM_OK) return;
  rdm_encoder encoder = {untouched};
  status = CALL(CALLS_ANY, rdm_encoder_get(stream, &encoder));
  if (status == RDM_OK) calls_put(input, CALLS_ENCODER, encoder.bits);
}

static void create_thread_stream(fuzz_input *input) {
  rdm_thread_local_stream made = {untouched};
  int32_t index = choose_index(input);
  rdm_status status = CALL(CALLS_ANY, rdm_thread_local_stream_create(index, &made));
  check_index(index, status);
  CHECK_OUT(status, made.bits, "rdm_thread_local_stream_create");
  if (status == RDM_OK) calls_put(input, CALLS_THREAD, made.bits);
}

static void release(fuzz_input *input, calls_kind kind) {
  uint64_t bits = atomic_exchange(&the_world.slots[kind][fuzz_byte(input) % CALLS_SLOTS], 0);
  if (bits != 0) calls_release(kind, bits);
}

static void release_again(fuzz_input *input) {
  calls_expectation expected;
  uint64_t bits = atomic_load(&the_world.graves[CALLS_EVENT][fuzz_byte(input) % CALLS_GRAVES]);
  expected = bits == 0 ? CALLS_NULL : CALLS_STALE;
  CALL(expected, rdm_event_release((rdm_event){bits}));
  bits = atomic_load(&the_world.graves[CALLS_THREAD][fuzz_byte(input) % CALLS_GRAVES]);
  expected = bits == 0 ? CALLS_NULL : CALLS_STALE;
  CALL(expected, rdm_thread_local_stream_release((rdm_thread_local_stream){bits}));
}

static void get_encoder(fuzz_input *input) {
  calls_expectation expected;
  rdm_stream stream = {calls_choose(input, CALLS_STREAM, &expected)};
  rdm_encoder encoder = {untouched};
  rdm_status status = CALL(expected, rdm_encoder_get(stream, &encoder));
  CHECK_OUT(status, encoder.bits, "rdm_encoder_get");
  if (status == RDM_OK) calls_put(input, CALLS_ENCODER, encoder.bits);
}

/* Alone, a thread knows that every encoder is gone now. */
static void clear_encoders(void) {
  FUZZ_CHECK(CALL(CALLS_ANY, rdm_clear_encoders()) == RDM_OK, "%s", rdm_last_error_message());
  if (the_world.thread_count > 1) return;
  for (int i = 0; i < CALLS_SLOTS; i++) {
    uint64_t bits = atomic_exchange(&the_world.slots[CALLS_ENCODER][i], 0);
    if (bits != 0) calls_bury(CALLS_ENCODER, bits);
  }
}

static void record_and_take_error(fuzz_input *input) {
  calls_expectation expected;
  rdm_stream stream = {calls_choose(input, CALLS_STREAM, &expected)};
  uint8_t choice = fuzz_byte(input);
  rdm_status recorded = choice % (RDM_ERROR_RESOURCE + 1);
  /* Who waits for the stream gets it, so it is one that a call may come to. */
  if (!calls_is_possible(recorded)) recorded = RDM_ERROR_LAUNCH;
  /* One that is stale is taken, for the process's own slot. */
  if (expected != CALLS_NULL && expected != CALLS_FOREIGN) expected = CALLS_ANY;
  if (recorded == RDM_OK || recorded == RDM_NOT_READY) expected = CALLS_ANY;
  const char *message = (choice & 0x80) != 0 ? "recorded by the fuzzer" : NULL;
  rdm_status status = CALL(expected, rdm_stream_record_error(stream, recorded, message));
  bool is_error = recorded != RDM_OK && recorded != RDM_NOT_READY;
  FUZZ_CHECK(status != RDM_OK || is_error, "%s was recorded as an error", rdm_status_name(recorded));
  if ((choice & 0x40) != 0) return;
  rdm_error error = {.struct_size = fuzz_byte(input) < 240 ? sizeof error : 3};
  CALL(CALLS_ANY, rdm_stream_take_error(stream, &error));
}

static void set_default(fuzz_input *input) {
  calls_expectation expected;
  rdm_stream stream = {calls_choose(input, CALLS_STREAM, &expected)};
  if (stream.bits == 0) expected = CALLS_ANY;
  rdm_status status = CALL(expected, rdm_default_stream_set(stream));
  rdm_stream found = {untouched};
  FUZZ_CHECK(CALL(CALLS_ANY, rdm_default_stream_get(&found)) == RDM_OK, "%s", rdm_last_error_message());
  FUZZ_CHECK(status != RDM_OK || found.bits == stream.bits, "the default stream is not the one that was set");
}

/* A lookup gives the same device for ever, and counts one construction. */
static void look_up(fuzz_input *input) {
  int32_t index = choose_index(input);
  rdm_device found = {untouched};
  rdm_status status = CALL(CALLS_ANY, rdm_device_get(index, &found));
  check_index(index, status);
  CHECK_OUT(status, found.bits, "rdm_device_get");
  if (status != RDM_OK) return;
  for (int i = 0; i < CALLS_DEVICES; i++) {
    FUZZ_CHECK((the_world.devices[i].index == index) == (the_world.devices[i].handle.bits == found.bits),
               "device %d is another one now", index);
  }
  uint64_t constructions = 0;
  FUZZ_CHECK(CALL(CALLS_ANY, rdm_device_construction_count(index, &constructions)) == RDM_OK && constructions == 1,
             "device %d was constructed %llu times", index, (unsigned long long)constructions);
}

static void use_device(fuzz_input *input) {
  calls_expectation expected;
  rdm_device device = {calls_choose(input, CALLS_DEVICE, &expected)};
  uint8_t choice = fuzz_byte(input);
  rdm_device_info info = {.struct_size = choice < 240 ? sizeof info : choice - 240U};
  if (choice >= 240) expected = CALLS_UNSURE;
  if (choice % 3 == 0) CALL(expected, rdm_device_make_current(device));
  if (choice % 3 == 1) CALL(expected, rdm_device_synchronize(device, choice * UINT64_C(1000)));
  if (choice % 3 == 2) CALL(expected, rdm_device_get_info(device, &info));
}

static void use_stream(fuzz_input *input) {
  calls_expectation expected;
  rdm_stream stream = {calls_choose(input, CALLS_STREAM, &expected)};
  uint8_t choice = fuzz_byte(input);
  rdm_stream_info info = {.struct_size = choice < 240 ? sizeof info : choice - 240U};
  if (choice >= 240) expected = CALLS_UNSURE;
  if (choice % 4 == 0) CALL(expected, rdm_stream_finalize(stream));
  if (choice % 4 == 1) CALL(expected, rdm_stream_synchronize(stream, choice * UINT64_C(2000)));
  if (choice % 4 == 2) CALL(expected, rdm_stream_get_info(stream, &info));
  if (choice % 4 != 3 || CALL(expected, rdm_stream_retain(stream)) != RDM_OK) return;
  CALL(CALLS_ANY, rdm_stream_release(stream));
}

void calls_stream_operation(fuzz_input *input, uint8_t which) {
  static void (*const operations[])(fuzz_input *) = {
      create_stream, create_stream, get_stream, resolve,    create_thread_stream, release_again, get_encoder,
      get_encoder,   set_default,   look_up,    use_device, use_stream,           use_stream,    record_and_take_error,
  };
  enum { COUNT = sizeof operations / sizeof operations[0] };
  which %= COUNT + 4;
  if (which < COUNT) operations[which](input);
  if (which == COUNT) release(input, CALLS_STREAM);
  if (which == COUNT + 1) release(input, CALLS_THREAD);
  if (which == COUNT + 2) release(input, CALLS_EVENT);
  if (which == COUNT + 3) clear_encoders();
}
