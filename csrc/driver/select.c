#include "select.h"

#include "log.h"
#include "status.h"

#include <stdio.h>
#include <string.h>

typedef struct choice {
  const char *name;
  bool real;
  rdm_status (*open)(int sim_device_count, const rdm__driver **out_driver);
  const rdm__driver *driver;
} choice;

#ifdef RDM_DRIVER_HIP
static rdm_status open_hip(int sim_device_count, const rdm__driver **out_driver) {
  (void)sim_device_count;
  return rdm__hip_open(out_driver);
}
#endif
#ifdef RDM_DRIVER_CUDA
static rdm_status open_cuda(int sim_device_count, const rdm__driver **out_driver) {
  (void)sim_device_count;
  return rdm__cuda_open(out_driver);
}
#endif

static choice choices[] = {
#ifdef RDM_DRIVER_HIP
    {.name = "hip", .real = true, .open = open_hip},
#endif
#ifdef RDM_DRIVER_CUDA
    {.name = "cuda", .real = true, .open = open_cuda},
#endif
    {.name = "sim", .real = false, .open = rdm__sim_open},
};
enum { CHOICE_COUNT = sizeof choices / sizeof choices[0] };

const char *rdm__driver_names(void) {
#if defined(RDM_DRIVER_HIP) && defined(RDM_DRIVER_CUDA)
  return "hip, cuda, sim";
#elif defined(RDM_DRIVER_HIP)
  return "hip, sim";
#elif defined(RDM_DRIVER_CUDA)
  return "cuda, sim";
#else
  return "sim";
#endif
}

static choice *find(const char *name) {
  for (int i = 0; i < CHOICE_COUNT; i++) {
    if (strcmp(choices[i].name, name) == 0) return &choices[i];
  }
  return NULL;
}

bool rdm__driver_is_known(const char *name) {
  return find(name) != NULL;
}

static rdm_status open_choice(choice *choice, int sim_device_count, int32_t *out_device_count) {
  if (choice->driver == NULL) {
    rdm_status status = choice->open(sim_device_count, &choice->driver);
    if (status != RDM_OK) return status;
  }
  const rdm__driver *driver = choice->driver;
  int count = 0;
  int error = driver->get_device_count(&count);
  if (error == RDM_HIP_NO_DEVICE) {
    driver->get_last_error();
    count = 0;
  } else if (error != RDM_HIP_SUCCESS) {
    driver->get_last_error();
    return rdm__fail_driver(RDM_ERROR_DRIVER, error, driver->error_name(error),
                            driver->call_name(RDM__CALL_get_device_count), -1,
                            "%s of the driver %s failed: %s (%d): %s", driver->call_name(RDM__CALL_get_device_count),
                            driver->name, driver->error_name(error), error, driver->error_string(error));
  }
  *out_device_count = count < 0 ? 0 : count;
  return RDM_OK;
}

rdm_status rdm__driver_select(const char *name, int sim_device_count, const rdm__driver **out_driver,
                              int32_t *out_device_count) {
  if (name != NULL) {
    choice *named = find(name);
    if (named == NULL) {
      return rdm__fail(RDM_ERROR_UNKNOWN_DRIVER, "there is no driver \"%s\"; this build has: %s", name,
                       rdm__driver_names());
    }
    rdm_status status = open_choice(named, sim_device_count, out_device_count);
    if (status == RDM_OK) *out_driver = named->driver;
    return status;
  }
  const rdm__driver *without_device = NULL;
  char tried[1800] = "";
  size_t length = 0;
  rdm_status first_failure = RDM_OK;
  for (int i = 0; i < CHOICE_COUNT; i++) {
    if (!choices[i].real) continue;
    int32_t count = 0;
    rdm_status status = open_choice(&choices[i], 0, &count);
    if (status != RDM_OK || count == 0) {
      rdm__log(RDM_LOG_DEBUG, "driver %s is not taken: %s", choices[i].name,
               status == RDM_OK ? "it has no device" : rdm_last_error_message());
    }
    if (status != RDM_OK) {
      if (first_failure == RDM_OK) first_failure = status;
      if (length < sizeof tried) {
        length += (size_t)snprintf(tried + length, sizeof tried - length, "%s%s: %.800s", length > 0 ? "; " : "",
                                   choices[i].name, rdm_last_error_message());
      }
    } else if (count > 0) {
      *out_driver = choices[i].driver;
      *out_device_count = count;
      return RDM_OK;
    } else if (without_device == NULL) {
      without_device = choices[i].driver;
    }
  }
  if (without_device != NULL) {
    *out_driver = without_device;
    *out_device_count = 0;
    return RDM_OK;
  }
  if (first_failure == RDM_OK) {
    return rdm__fail(RDM_ERROR_NO_DRIVER,
                     "this build has no real driver; build with the feature rocm or cuda, or ask for simulated GPUs "
                     "with RDM_DRIVER=sim");
  }
  return rdm__fail(first_failure, "no driver could be opened (%s); simulated GPUs are had with RDM_DRIVER=sim", tried);
}
