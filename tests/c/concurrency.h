/* The test groups of concurrency, and the processes that some of them start. */
#ifndef TEST_CONCURRENCY_H
#define TEST_CONCURRENCY_H

#include "test.h"

extern const test_case first_use_tests[];
extern const test_case current_device_tests[];
extern const test_case stream_tests[];
extern const test_case encoder_tests[];
extern const test_case event_tests[];
extern const test_case handler_tests[];
extern const test_case fault_tests[];
extern const test_case exit_tests[];
extern const test_body exit_bodies[];
extern const test_case fork_tests[];
extern const test_body fork_bodies[];

#endif
