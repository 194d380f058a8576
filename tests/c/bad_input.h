/* The test groups of bad_input. */
#ifndef TEST_BAD_INPUT_H
#define TEST_BAD_INPUT_H

#include "test.h"

extern const test_case configuration_tests[];
extern const test_case handle_tests[];
extern const test_case argument_tests[];

#endif
