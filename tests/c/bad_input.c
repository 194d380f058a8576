/* Each wrong input gives its own clear error, names the value, and changes nothing. */
#include "bad_input.h"

int main(int argc, char **argv) {
  static const test_case *const groups[] = {configuration_tests, handle_tests, argument_tests, NULL};
  return test_main(argc, argv, groups, NULL);
}
