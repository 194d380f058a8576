/*
 * Random calls on shared handles from many threads and from completion handlers, for a while. Handles go stale under
 * their users all the time; no other error may come of that, each handler runs exactly once, and in the end no two
 * streams share a stream of the driver.
 */
#include "calls.h"
#include "concurrency.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { DEVICES = 3, THREADS = 8, SLOTS = 24, FRESH_STREAMS = 300, MEMORY_BYTES = 1 << 20 };

static const uint64_t length_ns = 2 * TEST_SECOND;
static const uint64_t short_wait_ns = 2 * TEST_MILLISECOND;

/* The bits of handles, any of which may be stale, or null in the beginning. */
static _Atomic uint64_t streams[SLOTS];
static _Atomic uint64_t encoders[SLOTS];
static _Atomic uint64_t events[SLOTS];
static _Atomic uint64_t thread_streams[DEVICES];

static rdm_device devices[DEVICES];
static char *memories[DEVICES];
static atomic_bool stop;
static atomic_ulong handlers_added;
static atomic_ulong handlers_run;
static atomic_ulong successes;

typedef struct choice {
  uint64_t random;
  uint32_t slot;
  int32_t device;
  rdm_stream stream;
  rdm_encoder encoder;
  rdm_event event;
} choice;

static rdm_status put_stream(choice *chosen) {
  rdm_status status = rdm_stream_create(chosen->device, &chosen->stream);
  if (status != RDM_OK) return status;
  uint64_t before = atomic_exchange(&streams[chosen->slot], chosen->stream.bits);
  if (before != 0) rdm_stream_release((rdm_stream){before});
  return RDM_OK;
}

static rdm_status put_encoder(choice *chosen) {
  rdm_status status = rdm_encoder_get(chosen->stream, &chosen->encoder);
  if (status == RDM_OK) encoders[chosen->slot] = chosen->encoder.bits;
  return status;
}

static rdm_status put_event(choice *chosen) {
  uint32_t flags = test_random(&chosen->random) % 2 == 0 ? RDM_EVENT_DEFAULT : RDM_EVENT_TIMING;
  rdm_status status = rdm_event_create(devices[chosen->device], flags, &chosen->event);
  if (status != RDM_OK) return status;
  uint64_t before = atomic_exchange(&events[chosen->slot], chosen->event.bits);
  if (before != 0) rdm_event_release((rdm_event){before});
  return RDM_OK;
}

static rdm_status put_thread_stream(choice *chosen) {
  rdm_thread_local_stream made;
  rdm_status status = rdm_thread_local_stream_create(chosen->device, &made);
  if (status != RDM_OK) return status;
  uint64_t before = atomic_exchange(&thread_streams[chosen->device], made.bits);
  if (before != 0) rdm_thread_local_stream_release((rdm_thread_local_stream){before});
  return RDM_OK;
}

static rdm_status resolve(choice *chosen) {
  rdm_thread_local_stream handle = {thread_streams[chosen->device]};
  rdm_status status = rdm_thread_local_stream_resolve(handle, &chosen->stream);
  return status == RDM_OK ? put_encoder(chosen) : status;
}

/* Each fill has a byte of its own, since streams run at once. */
static rdm_status fill_on(int32_t device, rdm_encoder encoder) {
  static atomic_ulong next_byte;
  return rdm_encoder_fill(encoder, memories[device] + next_byte++ % MEMORY_BYTES, 1, 1);
}

/* Which device an encoder is of is not known here: the driver takes the memory of one and refuses the others'. */
static rdm_status fill(choice *chosen) {
  rdm_status status = RDM_OK;
  for (int i = 0; i < DEVICES; i++) {
    status = fill_on(i, chosen->encoder);
    if (status != RDM_ERROR_DRIVER) return status;
  }
  return status;
}

/* In a handler: everything but what waits. */
static void call_back_in(rdm_status status, void *user_data) {
  uint64_t random = (uintptr_t)user_data;
  CHECK_STATUS(status, RDM_OK);
  handlers_run++;
  rdm_stream stream = {streams[test_random(&random) % SLOTS]};
  rdm_encoder encoder = {encoders[test_random(&random) % SLOTS]};
  switch (test_random(&random) % 7) {
    case 0:
      rdm_stream_release(stream);
      break;
    case 1:
      rdm_encoder_commit(encoder);
      break;
    case 2:
      rdm_event_release((rdm_event){events[test_random(&random) % SLOTS]});
      break;
    case 3:
      CHECK_STATUS(rdm_stream_synchronize(stream, 0), RDM_ERROR_IN_CALLBACK);
      break;
    case 4:
      CHECK_OK(rdm_clear_encoders());
      break;
    case 5:
      fill_on(0, encoder);
      break;
    default:
      rdm_stream_finalize(stream);
      break;
  }
}

static rdm_status add_handler(choice *chosen) {
  void *random = (void *)(uintptr_t)test_random(&chosen->random);
  rdm_status status = rdm_encoder_add_completion_handler(chosen->encoder, call_back_in, random);
  if (status == RDM_OK) handlers_added++;
  return status;
}

static rdm_status retain_and_release(choice *chosen) {
  rdm_status status = rdm_stream_retain(chosen->stream);
  return status == RDM_OK ? rdm_stream_release(chosen->stream) : status;
}

static rdm_status record_and_take_error(choice *chosen) {
  rdm_error error = {.struct_size = sizeof error};
  rdm_stream_record_error(chosen->stream, RDM_ERROR_DRIVER, "recorded by the test");
  return rdm_stream_take_error(chosen->stream, &error);
}

/* The more often it is called, the more cases lead to it. */
static rdm_status call(uint32_t operation, choice *chosen) {
  switch (operation) {
    case 0:
    case 1:
      return put_stream(chosen);
    case 2:
    case 3:
    case 4:
      return put_encoder(chosen);
    case 5:
    case 6:
      return fill(chosen);
    case 7:
    case 8:
      return add_handler(chosen);
    case 9:
    case 10:
      return rdm_encoder_commit(chosen->encoder);
    case 11:
      return put_event(chosen);
    case 12:
      return rdm_encoder_record_event(chosen->encoder, chosen->event);
    case 13:
      return rdm_encoder_wait_event(chosen->encoder, chosen->event);
    case 14:
      return rdm_event_query(chosen->event);
    case 15:
      return rdm_event_wait(chosen->event, short_wait_ns);
    case 16:
      return rdm_stream_synchronize(chosen->stream, short_wait_ns);
    case 17:
      return test_random(&chosen->random) % 8 == 0 ? rdm_clear_encoders() : RDM_OK;
    case 18:
      return rdm_stream_release(chosen->stream);
    case 19:
      return retain_and_release(chosen);
    case 20:
      return rdm_default_stream_set(chosen->stream);
    case 21:
      return put_thread_stream(chosen);
    case 22:
      return resolve(chosen);
    case 23:
      return rdm_event_release(chosen->event);
    case 24:
      return test_random(&chosen->random) % 16 == 0
                 ? rdm_device_synchronize(devices[chosen->device], 10 * short_wait_ns)
                 : RDM_OK;
    case 25:
      return rdm_stream_finalize(chosen->stream);
    default:
      return record_and_take_error(chosen);
  }
}

enum { OPERATIONS = 27 };

/* Handles that are stale or null and waits that are short are the test's own doing, and so are a stream's recorded
 * error and memory or an event of another device. */
static bool is_expected(rdm_status status) {
  switch (status) {
    case RDM_OK:
    case RDM_NOT_READY:
    case RDM_ERROR_NULL_HANDLE:
    case RDM_ERROR_STALE_HANDLE:
    case RDM_ERROR_NOT_RECORDED:
    case RDM_ERROR_TIMEOUT:
    case RDM_ERROR_WRONG_DEVICE:
    case RDM_ERROR_DRIVER:
      return true;
    default:
      return false;
  }
}

static void call_at_random(unsigned number) {
  choice chosen = {.random = number * 7919 + 1};
  while (!stop) {
    uint32_t operation = test_random(&chosen.random) % OPERATIONS;
    chosen.slot = test_random(&chosen.random) % SLOTS;
    chosen.device = (int32_t)(test_random(&chosen.random) % DEVICES);
    chosen.stream.bits = streams[test_random(&chosen.random) % SLOTS];
    chosen.encoder.bits = encoders[test_random(&chosen.random) % SLOTS];
    chosen.event.bits = events[test_random(&chosen.random) % SLOTS];
    rdm_status status = call(operation, &chosen);
    CHECK_THAT(is_expected(status), "operation %u: %s: %s", operation, rdm_status_name(status),
               rdm_last_error_message());
    if (status == RDM_OK) successes++;
  }
}

static void call_or_stop(unsigned number) {
  if (number < THREADS) {
    call_at_random(number);
  } else {
    test_sleep_ns(length_ns);
    stop = true;
  }
}

static void wait_for_every_handler(void) {
  for (int i = 0; i < SLOTS; i++) {
    while (streams[i] != 0 && rdm_stream_release((rdm_stream){streams[i]}) == RDM_OK) continue;
  }
  CHECK_OK(rdm_clear_encoders());
  for (int i = 0; i < DEVICES; i++) {
    rdm_status status = rdm_device_synchronize(devices[i], 10 * TEST_SECOND);
    /* An error that a stream has kept is reported here, and is nobody's that still asks. */
    CHECK_THAT(status == RDM_OK || status == RDM_ERROR_DRIVER, "device %d: %s", i, rdm_last_error_message());
  }
  for (int i = 0; i < 5000 && handlers_run < handlers_added; i++) test_sleep_ns(TEST_MILLISECOND);
  test_sleep_ns(20 * TEST_MILLISECOND);
  CHECK_THAT(handlers_run == handlers_added, "%lu handlers were added and %lu ran", (unsigned long)handlers_added,
             (unsigned long)handlers_run);
}

static void check_driver_streams_are_distinct(int32_t device_index) {
  static void *natives[FRESH_STREAMS];
  for (int i = 0; i < FRESH_STREAMS; i++) {
    rdm_stream stream;
    rdm_encoder encoder;
    CHECK_OK(rdm_stream_create(device_index, &stream));
    CHECK_OK(rdm_encoder_get(stream, &encoder));
    CHECK_OK(rdm_encoder_get_native_stream(encoder, &natives[i]));
    for (int k = 0; k < i; k++) CHECK_THAT(natives[k] != natives[i], "streams %d and %d share a driver stream", k, i);
  }
}

static void random_calls_on_shared_handles_lose_no_handler_and_share_no_driver_stream(void) {
  test_use_sim(DEVICES);
  for (int32_t i = 0; i < DEVICES; i++) {
    CHECK_OK(rdm_device_get(i, &devices[i]));
    void *memory = NULL;
    CHECK_OK(rdm_memory_allocate(devices[i], MEMORY_BYTES, &memory));
    memories[i] = memory;
  }
  test_run_threads(THREADS + 1, call_or_stop);
  wait_for_every_handler();
  CHECK_THAT(successes > 1000 && handlers_added > 100, "%lu calls succeeded and %lu handlers were added",
             (unsigned long)successes, (unsigned long)handlers_added);
  for (int32_t i = 0; i < DEVICES; i++) check_driver_streams_are_distinct(i);
}

const test_case random_tests[] = {
    {.name = "random_calls_on_shared_handles_lose_no_handler_and_share_no_driver_stream",
     .function = random_calls_on_shared_handles_lose_no_handler_and_share_no_driver_stream},
    {0},
};
