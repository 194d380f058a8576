/* Choosing handles: live ones, released ones, and what never was one. */
#include "fuzz_calls.h"

static uint64_t live(calls_kind kind, unsigned slot) {
  if (kind == CALLS_DEVICE) return the_world.devices[slot % CALLS_DEVICES].handle.bits;
  return atomic_load(&the_world.slots[kind][slot % CALLS_SLOTS]);
}

uint64_t calls_choose(fuzz_input *input, calls_kind kind, calls_expectation *out_expected) {
  uint8_t choice = fuzz_byte(input);
  unsigned slot = choice >> 3;
  uint64_t bits = 0;
  *out_expected = CALLS_ANY;
  switch (choice & 7) {
    case 5:
      bits = atomic_load(&the_world.graves[kind][slot % CALLS_GRAVES]);
      *out_expected = CALLS_STALE;
      break;
    case 6:
      bits = live((calls_kind)((unsigned)(kind + 1 + slot % (CALLS_KINDS - 1)) % CALLS_KINDS), slot);
      *out_expected = CALLS_FOREIGN;
      break;
    case 7:
      /* A live one but for its generation, or anything at all. */
      bits = live(kind, slot);
      *out_expected = bits != 0 && (slot & 1) != 0 ? CALLS_BAD : CALLS_UNSURE;
      bits = *out_expected == CALLS_BAD ? bits ^ (UINT64_C(1) << 24) * (fuzz_byte(input) % 127 + UINT64_C(1))
                                        : fuzz_number(input, 8);
      break;
    default:
      bits = live(kind, slot);
  }
  if (bits == 0) *out_expected = CALLS_NULL;
  return bits;
}

calls_device *calls_choose_device(fuzz_input *input) {
  return &the_world.devices[fuzz_byte(input) % CALLS_DEVICES];
}

void calls_bury(calls_kind kind, uint64_t bits) {
  unsigned grave = atomic_fetch_add(&the_world.next_grave[kind], 1);
  atomic_store(&the_world.graves[kind][grave % CALLS_GRAVES], bits);
}

void calls_release(calls_kind kind, uint64_t bits) {
  rdm_status status = RDM_OK;
  if (kind == CALLS_STREAM) {
    status = CALL(CALLS_ANY, rdm_stream_release((rdm_stream){bits}));
    /* The default stream of a thread, or a call under way, may still hold one that is released here. */
    FUZZ_CHECK(status == RDM_OK, "a stream is not released: %s", rdm_last_error_message());
    return;
  }
  if (kind == CALLS_THREAD) status = CALL(CALLS_ANY, rdm_thread_local_stream_release((rdm_thread_local_stream){bits}));
  if (kind == CALLS_EVENT) status = CALL(CALLS_ANY, rdm_event_release((rdm_event){bits}));
  if (kind == CALLS_ENCODER) return;
  FUZZ_CHECK(status == RDM_OK, "a handle is not released: %s", rdm_last_error_message());
  calls_bury(kind, bits);
}

void calls_put(fuzz_input *input, calls_kind kind, uint64_t bits) {
  FUZZ_CHECK(bits != 0, "a call succeeded and gave the null handle");
  uint64_t previous = atomic_exchange(&the_world.slots[kind][fuzz_byte(input) % CALLS_SLOTS], bits);
  if (previous != 0) calls_release(kind, previous);
}
