/*
 * Which device the driver `cuda` takes a thread for, and when it says that a device's context is gone: on a model of
 * what NVIDIA's libraries do, since a host with two GPUs is rare and one whose contexts come and go is rarer.
 */
#include "test.h"

/* The product has one, too. */
#define rdm__cuda_open rdm__cuda_open_of_the_test
#include "../../csrc/driver/cuda.c"

enum { DEVICES = 2 };

typedef struct context {
  unsigned long long id;
  int device;
} context;

/* Addresses are given again, as the driver's are. */
static context primary[DEVICES];
static context beside;
static unsigned long long last_id;
static context *current;
/* The runtime's current device, where there is no context. */
static int runtime_device;

static int set_device(int device) {
  if (device < 0 || device >= DEVICES) return RDM_HIP_INVALID_DEVICE;
  if (primary[device].id == 0) primary[device] = (context){.id = ++last_id, .device = device};
  current = &primary[device];
  runtime_device = device;
  return RDM_HIP_SUCCESS;
}

static int get_device(int *device) {
  *device = current != NULL ? current->device : runtime_device;
  return RDM_HIP_SUCCESS;
}

static int get_current(void **out) {
  *out = current;
  return RDM_HIP_SUCCESS;
}

static int get_id(void *which, unsigned long long *out) {
  *out = ((context *)which)->id;
  return *out == 0 ? RDM_HIP_INVALID_CONTEXT : RDM_HIP_SUCCESS;
}

static void use_model(void) {
  static cuda_state model;
  model.library.cudaSetDevice = set_device;
  model.library.cudaGetDevice = get_device;
  model.library.cuCtxGetCurrent = get_current;
  model.library.cuCtxGetId = get_id;
  state = &model;
}

static void destroy_primary(int device) {
  primary[device].id = 0;
  if (current == &primary[device]) current = NULL;
}

/* What rdm__device_bind does: asks, and sets where the answer is another device. */
static int bind_device(int device) {
  int found = 0;
  int error = cuda_get_device(&found);
  if (error == RDM_HIP_SUCCESS && found != device) error = cuda_set_device(device);
  if (error == RDM_HIP_SUCCESS) CHECK(current == &primary[device]);
  return error;
}

static void a_destroyed_context_is_told_of_its_own_device(void) {
  use_model();
  CHECK(cuda_set_device(0) == RDM_HIP_SUCCESS && cuda_set_device(1) == RDM_HIP_SUCCESS);
  CHECK(bind_device(0) == RDM_HIP_SUCCESS);
  /* While the thread is on it, and with the next one made by other code and current. */
  destroy_primary(0);
  (void)set_device(0);
  CHECK(bind_device(1) == RDM_HIP_SUCCESS);
  CHECK(bind_device(0) == RDM_HIP_CONTEXT_IS_DESTROYED);
  CHECK(bind_device(1) == RDM_HIP_SUCCESS);
  /* And on a thread without a context. */
  destroy_primary(0);
  current = NULL;
  runtime_device = 0;
  CHECK(bind_device(1) == RDM_HIP_SUCCESS);
  CHECK(bind_device(0) == RDM_HIP_CONTEXT_IS_DESTROYED);
}

static void a_device_that_the_library_has_not_used_may_be_reset(void) {
  use_model();
  CHECK(cuda_set_device(1) == RDM_HIP_SUCCESS);
  (void)set_device(0);
  CHECK(bind_device(1) == RDM_HIP_SUCCESS);
  destroy_primary(0);
  CHECK(cuda_set_device(0) == RDM_HIP_SUCCESS);
}

static void a_context_of_other_code_is_no_loss(void) {
  use_model();
  CHECK(cuda_set_device(0) == RDM_HIP_SUCCESS);
  beside = (context){.id = ++last_id, .device = 0};
  current = &beside;
  CHECK(bind_device(0) == RDM_HIP_SUCCESS);
  current = &beside;
  CHECK(cuda_set_device(1) == RDM_HIP_SUCCESS);
  current = &beside;
  CHECK(bind_device(1) == RDM_HIP_SUCCESS);
}

static void an_address_may_be_another_devices_context_later(void) {
  use_model();
  CHECK(cuda_set_device(0) == RDM_HIP_SUCCESS && cuda_set_device(1) == RDM_HIP_SUCCESS);
  beside = (context){.id = ++last_id, .device = 0};
  current = &beside;
  int found = 0;
  CHECK(cuda_get_device(&found) == RDM_HIP_SUCCESS && found == -1);
  beside = (context){.id = ++last_id, .device = 1};
  CHECK(bind_device(0) == RDM_HIP_SUCCESS && bind_device(1) == RDM_HIP_SUCCESS);
}

static void a_new_thread_is_on_the_runtimes_device(void) {
  use_model();
  int found = -2;
  CHECK(cuda_get_device(NULL) == RDM_HIP_INVALID_VALUE);
  CHECK(cuda_get_device(&found) == RDM_HIP_SUCCESS && found == 0 && current == NULL);
  CHECK(cuda_set_device(0) == RDM_HIP_SUCCESS);
  current = NULL;
  CHECK(cuda_get_device(&found) == RDM_HIP_SUCCESS && found == 0 && current == &primary[0]);
}

static const test_case tests[] = {
    {.name = "a_destroyed_context_is_told_of_its_own_device",
     .function = a_destroyed_context_is_told_of_its_own_device},
    {.name = "a_device_that_the_library_has_not_used_may_be_reset",
     .function = a_device_that_the_library_has_not_used_may_be_reset},
    {.name = "a_context_of_other_code_is_no_loss", .function = a_context_of_other_code_is_no_loss},
    {.name = "an_address_may_be_another_devices_context_later",
     .function = an_address_may_be_another_devices_context_later},
    {.name = "a_new_thread_is_on_the_runtimes_device", .function = a_new_thread_is_on_the_runtimes_device},
    {.name = NULL},
};

int main(int argc, char **argv) {
  const test_case *const groups[] = {tests, NULL};
  return test_main(argc, argv, groups, NULL);
}
