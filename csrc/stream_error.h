/*
 * Recorded errors: for each stream the first one, kept until it is taken; and one slot for those that belong to no
 * live stream. Recording binds no device, takes no lock and makes no driver call.
 */
#ifndef RDM_STREAM_ERROR_H
#define RDM_STREAM_ERROR_H

#include "rocm_device_map.h"

#include <stdatomic.h>

typedef struct rdm__error_slot {
  _Atomic(rdm_error *) first;
} rdm__error_slot;

/* Keeps a copy of `error` unless the slot has one. */
void rdm__error_slot_record(rdm__error_slot *slot, const rdm_error *error);

/* RDM_OK, or the recorded error as the thread's last error, left in the slot. */
rdm_status rdm__error_slot_report(rdm__error_slot *slot);

/* Takes the error into `out`; status RDM_OK and empty texts where there is none. */
rdm_status rdm__error_slot_take(rdm__error_slot *slot, rdm_error *out);

/* Takes the error of a stream that ends to the process's own slot. */
void rdm__error_slot_abandon(rdm__error_slot *slot);

/* The process's slot, for errors that belong to no live stream. */
rdm__error_slot *rdm__unattributed_errors(void);

#endif
