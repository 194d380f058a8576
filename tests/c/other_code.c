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

void *other_code_creates_stream(void) {
  void *stream = NULL;
  CHECK(the_driver()->stream_create(&stream, RDM_HIP_STREAM_NON_BLOCKING) == 0);
  return stream;
}

int other_code_begins_capture(void *stream, int mode) {
  return the_driver()->stream_begin_capture(stream, mode);
}

int other_code_ends_capture(void *stream) {
  void *graph = NULL;
  int error = the_driver()->stream_end_capture(stream, &graph);
  if (graph != NULL) CHECK(the_driver()->graph_destroy(graph) == 0);
  if (error != 0) the_driver()->get_last_error();
  return error;
}

int other_code_asks_for_capture(void *stream) {
  int status = -1;
  CHECK(the_driver()->stream_is_capturing(stream, &status) == 0);
  return status;
}

int other_code_gets_capture_mode(void) {
  int mode = RDM_HIP_CAPTURE_MODE_GLOBAL;
  CHECK(the_driver()->thread_exchange_capture_mode(&mode) == 0);
  int found = mode;
  CHECK(the_driver()->thread_exchange_capture_mode(&mode) == 0);
  return found;
}

int other_code_allocates(void) {
  void *pointer = NULL;
  int error = the_driver()->memory_allocate(&pointer, 64);
  if (error == 0) return the_driver()->memory_free(pointer);
  the_driver()->get_last_error();
  return error;
}

int other_code_destroys_stream(void *native_stream) {
  return the_driver()->stream_destroy(native_stream);
}
