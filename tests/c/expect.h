/* Checks that a call fails with its own clear error and changes nothing. */
#ifndef TEST_EXPECT_H
#define TEST_EXPECT_H

#include "test.h"

/* Forgets how many calls the simulated driver has seen; the next EXPECT_ERROR compares from then on. */
void expect_watch_driver_calls(void);

void expect_error(const char *file, int line, const char *call, rdm_status status, rdm_status expected,
                  const char *fragment);

/*
 * Fails unless the call returns the status, the thread's last error is that status with a message that has `fragment`
 * in it, and, once driver calls are watched, the call made none.
 */
#define EXPECT_ERROR(call, expected, fragment) expect_error(__FILE__, __LINE__, #call, (call), (expected), (fragment))

/* A handle's bits as messages show them. Lasts until the thread's fourth call from here. */
const char *expect_bits(uint64_t bits);

#endif
