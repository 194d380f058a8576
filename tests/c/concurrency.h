/* The test groups of concurrency, and the processes that some of them start. */
#ifndef TEST_CONCURRENCY_H
#define TEST_CONCURRENCY_H

#include "test.h"

extern const test_case first_use_tests[];
extern const test_body first_use_bodies[];
extern const test_case current_device_tests[];
extern const test_case stream_tests[];
extern const test_case encoder_tests[];
extern const test_case event_tests[];
extern const test_case handler_tests[];
extern const test_case fault_tests[];
extern const test_body fault_bodies[];
extern const test_case exit_tests[];
extern const test_body exit_bodies[];
extern const test_case lifetime_tests[];
extern const test_case random_tests[];
extern const test_case bound_tests[];
extern const test_case failure_tests[];
extern const test_case closing_tests[];
extern const test_body closing_bodies[];
extern const test_case closing_call_tests[];
extern const test_body closing_call_bodies[];
extern const test_case abort_tests[];
extern const test_body abort_bodies[];
extern const test_case capture_tests[];
extern const test_case graph_tests[];
extern const test_case fork_tests[];
extern const test_body fork_bodies[];
extern const test_case many_tests[];
extern const test_case at_once_tests[];
extern const test_body at_once_bodies[];
extern const test_case pending_tests[];
extern const test_case memory_tests[];
extern const test_case late_exit_tests[];
extern const test_body late_exit_bodies[];
extern const test_case counter_tests[];
extern const test_case counter_thread_tests[];
extern const test_case log_tests[];
extern const test_body log_bodies[];

#endif
