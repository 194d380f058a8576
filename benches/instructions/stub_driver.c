#include "stub_driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every entry point has its full list of parameters; a stub uses few of them. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

int rdm__stub_device_count = 1;
int rdm__stub_query_result = RDM_HIP_SUCCESS;

static _Thread_local int current_device;
static char code[64] = "code";
static char an_object;

#define X(field, hip_name, parameters)    \
  static int nothing_##field parameters { \
    return 0;                             \
  }
RDM__DRIVER_CALLS(X)
#undef X

static int get_device_count(int *count) {
  *count = rdm__stub_device_count;
  return 0;
}

static int get_device(int *device) {
  *device = current_device;
  return 0;
}

static int set_device(int device) {
  current_device = device;
  return 0;
}

static int get_device_properties(rdm__device_properties *properties, int device) {
  snprintf(properties->name, sizeof properties->name, "stub");
  snprintf(properties->architecture, sizeof properties->architecture, "stub");
  return 0;
}

/* Objects are told apart by nobody, so one address stands for all of them. */
static int make_object(void **object, unsigned flags) {
  *object = &an_object;
  return 0;
}

static int query(void *object) {
  return rdm__stub_query_result;
}

static int memory_allocate(void **pointer, size_t size) {
  *pointer = malloc(size);
  return *pointer == NULL ? RDM_HIP_OUT_OF_MEMORY : 0;
}

static int memory_free(void *pointer) {
  free(pointer);
  return 0;
}

static int module_load_data(void **module, const void *image, size_t size) {
  *module = &an_object;
  return 0;
}

static int module_get_function(void **function, void *module, const char *name) {
  *function = &an_object;
  return 0;
}

static int rtc_create_program(void **program, const char *source, const char *name) {
  *program = &an_object;
  return 0;
}

static int rtc_get_code_size(void *program, size_t *size) {
  *size = sizeof code;
  return 0;
}

static int rtc_get_code(void *program, char *out) {
  memcpy(out, code, sizeof code);
  return 0;
}

static const char *text(int error) {
  return "an error of the stub";
}

static const char *call_name(rdm__call call) {
  return "a call of the stub";
}

/* What the kernels here take is not asked for: -1 is for a driver that can not tell. */
static int argument_count(void *function) {
  return -1;
}

static int argument_size(void *function, unsigned index) {
  return -1;
}

static void fill(rdm__driver *driver) {
#define X(field, hip_name, parameters) driver->field = nothing_##field;
  RDM__DRIVER_CALLS(X)
#undef X
  driver->get_device_count = get_device_count;
  driver->get_device = get_device;
  driver->set_device = set_device;
  driver->get_device_properties = get_device_properties;
  driver->stream_create = make_object;
  driver->event_create = make_object;
  driver->event_query = query;
  driver->stream_query = query;
  driver->memory_allocate = memory_allocate;
  driver->memory_free = memory_free;
  driver->module_load_data = module_load_data;
  driver->module_get_function = module_get_function;
  driver->rtc_create_program = rtc_create_program;
  driver->rtc_get_code_size = rtc_get_code_size;
  driver->rtc_get_code = rtc_get_code;
  driver->error_name = text;
  driver->error_string = text;
  driver->rtc_error_string = text;
  driver->call_name = call_name;
  driver->kernel_argument_count = argument_count;
  driver->kernel_argument_size = argument_size;
  driver->name = "stub";
  driver->architecture_option = "--arch=";
}

const rdm__driver *rdm__stub_driver(void) {
  static rdm__driver driver;
  fill(&driver);
  return &driver;
}
