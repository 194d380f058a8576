#include "other_code.h"

#include "runtime.h"
#include "test.h"

static const rdm__driver *the_driver(void) {
  const rdm__driver *driver = NULL;
  CHECK_OK(rdm__runtime_enter(&driver));
  return driver;
}

int other_code_sets_device(int device) {
  return the_driver()->set_device(device);
}

int other_code_gets_device(void) {
  int device = -1;
  CHECK(the_driver()->get_device(&device) == 0);
  return device;
}

int other_code_peeks_at_last_error(void) {
  return the_driver()->peek_at_last_error();
}
