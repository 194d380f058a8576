#include "stream_error.h"

#include "count.h"
#include "lock.h"
#include "runtime.h"
#include "status.h"

#include <stdbool.h>
#include <stdlib.h>

/* Leaked on purpose, like every piece of process-wide state. */
static rdm__error_slot unattributed;

/* Held by whoever reads or frees a recorded error. Recording takes no lock: it only ever fills an empty slot. */
static rdm__mutex reading_lock = RDM__MUTEX_INIT(RDM__RANK_LEAF);

/* For an error when there is no memory left to keep it. */
static rdm_error undescribed = {.struct_size = sizeof(rdm_error),
                                .status = RDM_ERROR_OUT_OF_MEMORY,
                                .device_index = -1,
                                .message = "an error was recorded, and there was no memory to keep its description"};

rdm__error_slot *rdm__unattributed_errors(void) {
  return &unattributed;
}

static rdm_error *load(rdm__error_slot *slot) {
  return atomic_load_explicit(&slot->first, memory_order_acquire);
}

static void discard(rdm_error *error) {
  if (error != &undescribed) free(error);
}

/* False where the slot has one already. */
static bool keep(rdm__error_slot *slot, const rdm_error *error) {
  if (load(slot) != NULL) return false;
  rdm_error *kept = malloc(sizeof *kept);
  if (kept != NULL) {
    *kept = *error;
  } else {
    kept = &undescribed;
  }
  rdm_error *expected = NULL;
  if (!atomic_compare_exchange_strong_explicit(&slot->first, &expected, kept, memory_order_acq_rel,
                                               memory_order_acquire)) {
    discard(kept);
    return false;
  }
  return true;
}

void rdm__error_slot_record(rdm__error_slot *slot, const rdm_error *error) {
  if (keep(slot, error)) rdm__count(RDM__COUNT_STREAM_ERRORS, 1);
}

rdm_status rdm__error_slot_report(rdm__error_slot *slot) {
  if (load(slot) == NULL) return RDM_OK;
  rdm__mutex_lock(&reading_lock);
  rdm_error *error = load(slot);
  rdm_status status = error == NULL ? RDM_OK : rdm__fail_with(error);
  rdm__mutex_unlock(&reading_lock);
  return status;
}

rdm_status rdm__error_slot_take(rdm__error_slot *slot, rdm_error *out) {
  static const rdm_error none = {.struct_size = sizeof(rdm_error), .device_index = -1};
  rdm__mutex_lock(&reading_lock);
  rdm_error *error = load(slot);
  rdm_status status = rdm__error_copy_out(error != NULL ? error : &none, out);
  if (status == RDM_OK && error != NULL) {
    atomic_store_explicit(&slot->first, NULL, memory_order_release);
    discard(error);
  }
  rdm__mutex_unlock(&reading_lock);
  return status;
}

void rdm__error_slot_abandon(rdm__error_slot *slot) {
  rdm_error *error = atomic_exchange_explicit(&slot->first, NULL, memory_order_acq_rel);
  if (error == NULL) return;
  /* It was counted as it was recorded. */
  keep(&unattributed, error);
  discard(error);
}

rdm_status rdm_take_unattributed_error(rdm_error *out_error) {
  rdm_status status = rdm__runtime_check();
  return status == RDM_OK ? rdm__error_slot_take(&unattributed, out_error) : status;
}
