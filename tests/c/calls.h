/* Reading the simulated driver's call log. */
#ifndef TEST_CALLS_H
#define TEST_CALLS_H

#include "rocm_device_map.h"

#include <stdbool.h>

typedef struct call_list {
  rdm_sim_call *calls;
  size_t count;
} call_list;

/* The calls from number `first` on. Freed with calls_free. */
call_list calls_read(uint64_t first);
void calls_free(call_list *list);

/* How many calls were made to an entry point so far, null: to all. */
uint64_t calls_made(const char *entry_point);

bool call_is(const rdm_sim_call *call, const char *entry_point);

/* True for the calls that are about no device: initialization, versions, the count, the compiler, last errors. */
bool call_touches_no_device(const rdm_sim_call *call);

/*
 * Fails on a call that was made while another device than the one it names was current, or that ran from a host
 * callback. Calls that choose or describe a device name it themselves.
 */
void calls_check_current_device(const call_list *list);

/* Fails on a call that names another device than `device_index`, or that was made under another one. */
void calls_check_only_device(const call_list *list, int32_t device_index);

/* Waits until a thread is inside a call to the entry point; fails after `limit_ns`. */
void calls_wait_until_inside(const char *entry_point, uint64_t limit_ns);

/* Objects alive in the simulated driver. */
rdm_sim_objects calls_count_objects(void);

#endif
