#include "runtime.h"

#include "clock.h"
#include "driver/select.h"
#include "environment.h"
#include "lock.h"
#include "log.h"
#include "status.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SIM_DEVICES = 64, DEFAULT_SIM_DEVICES = 2 };

_Atomic int rdm__runtime_state = RDM__CONFIGURING;
/* A real driver's library was opened for a look, so a forked child must not use it either. */
static atomic_bool a_library_was_probed;

/* Guarded by runtime_lock until the state is `ready`; then they never change and are read without it. */
static rdm__mutex runtime_lock = RDM__MUTEX_INIT(RDM__RANK_RUNTIME);
static char configured_driver[16];
static int configured_sim_devices;
static const rdm__driver *the_driver;
static int32_t the_device_count;

static int current_state(void) {
  return atomic_load_explicit(&rdm__runtime_state, memory_order_acquire);
}

/* How many threads that count themselves are about to call the driver, or inside it. In a cache line of its own, which
 * the state, that each call reads, must not share. */
static struct in_driver { _Alignas(64) atomic_int threads; } in_driver;

/* Longer than any driver call that gets on, and short against what a user notices at exit. */
static const uint64_t longest_wait_at_exit_ns = 200 * RDM__NS_PER_MS;

bool rdm__runtime_thread_enters_driver(void) {
  /* Counted first, then looked: the exit handler does it the other way round, so one of the two sees the other. */
  atomic_fetch_add_explicit(&in_driver.threads, 1, memory_order_seq_cst);
  if (atomic_load_explicit(&rdm__runtime_state, memory_order_seq_cst) < RDM__SHUTTING_DOWN) return true;
  rdm__runtime_thread_left_driver();
  return false;
}

void rdm__runtime_thread_left_driver(void) {
  atomic_fetch_sub_explicit(&in_driver.threads, 1, memory_order_release);
}

/* The one thing of this library that runs at exit: no call begins after it, and the threads that count themselves have
 * left the driver, unless one stands still there. */
static void at_exit(void) {
  int before = current_state();
  while (before != RDM__FORKED &&
         !atomic_compare_exchange_weak_explicit(&rdm__runtime_state, &before, RDM__SHUTTING_DOWN, memory_order_seq_cst,
                                                memory_order_acquire)) {
  }
  if (before == RDM__FORKED) return;
  uint64_t end = rdm__now_ns() + longest_wait_at_exit_ns;
  while (atomic_load_explicit(&in_driver.threads, memory_order_seq_cst) > 0 && rdm__now_ns() < end) {
    nanosleep(&(struct timespec){.tv_nsec = 50 * (long)RDM__NS_PER_US}, NULL);
  }
}

/* Another thread may have held the lock as the process forked; nobody will release it in the child. */
static void in_forked_child(void) {
  if (current_state() == RDM__CONFIGURING && !atomic_load_explicit(&a_library_was_probed, memory_order_acquire)) {
    rdm__mutex_init(&runtime_lock, RDM__RANK_RUNTIME);
  } else {
    atomic_store_explicit(&rdm__runtime_state, RDM__FORKED, memory_order_release);
  }
}

void rdm__runtime_renew_exit_handler(void) {
  atexit(at_exit);
}

static void install_hooks(void) {
  atexit(at_exit);
  pthread_atfork(NULL, NULL, in_forked_child);
}

/* Before the lock is first taken, so that there is no moment at which a fork would leave it held unnoticed. */
static void hooks(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, install_hooks);
}

rdm_status rdm__runtime_check_over(void) {
  switch (current_state()) {
    case RDM__SHUTTING_DOWN:
      return rdm__fail(RDM_ERROR_SHUTTING_DOWN, "the process is exiting; no call enters the driver any more");
    case RDM__FORKED:
      return rdm__fail(RDM_ERROR_FORKED,
                       "this process was forked after its parent had loaded the GPU driver, which does not survive "
                       "that; fork before first use, or exec a new program");
    default:
      return RDM_OK;
  }
}

rdm_status rdm__runtime_release_check(void) {
  return current_state() == RDM__FORKED ? rdm__runtime_check() : RDM_OK;
}

rdm_status rdm__runtime_release_status(rdm_status status) {
  return status == RDM_ERROR_SHUTTING_DOWN ? RDM_OK : status;
}

rdm_status rdm__runtime_enter_driver(void) {
  return rdm__runtime_thread_enters_driver() ? RDM_OK : rdm__runtime_check();
}

/* The driver to open, from rdm_configure, else from the environment. Called with the lock held. */
static rdm_status choose(const char **out_name, int *out_sim_devices) {
  *out_name = configured_driver[0] != '\0' ? configured_driver : rdm__environment_text("RDM_DRIVER");
  if (*out_name != NULL && !rdm__driver_is_known(*out_name)) {
    return rdm__fail(RDM_ERROR_UNKNOWN_DRIVER, "RDM_DRIVER is \"%s\"; this build has: %s", *out_name,
                     rdm__driver_names());
  }
  *out_sim_devices = configured_sim_devices;
  if (configured_sim_devices != 0) return RDM_OK;
  *out_sim_devices = DEFAULT_SIM_DEVICES;
  const char *text = rdm__environment_text("RDM_SIM_DEVICES");
  if (text == NULL || *out_name == NULL || strcmp(*out_name, "sim") != 0) return RDM_OK;
  uint64_t value = 0;
  if (!rdm__parse_whole_number(text, &value) || value > MAX_SIM_DEVICES) {
    return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "RDM_SIM_DEVICES is \"%s\"; it is a whole number from 0 to %d", text,
                     MAX_SIM_DEVICES);
  }
  *out_sim_devices = (int)value;
  return RDM_OK;
}

/* Called with the lock held, in the state `loading`. */
static rdm_status open_driver(void) {
  const char *name = NULL;
  int sim_devices = 0;
  rdm_status status = choose(&name, &sim_devices);
  if (status != RDM_OK) return status;
  return rdm__driver_select(name, sim_devices, &the_driver, &the_device_count);
}

/* With the driver loaded, which the calling thread did. */
static void log_choice(void) {
  const char *why = "the first of this build that has a device";
  if (configured_driver[0] != '\0') {
    why = "named by rdm_configure";
  } else if (rdm__environment_text("RDM_DRIVER") != NULL) {
    why = "named by RDM_DRIVER";
  } else if (the_device_count == 0) {
    why = "the first of this build that can be opened";
  }
  rdm__log(RDM_LOG_DEBUG, "driver %s: %d devices; %s%s%s", the_driver->name, the_device_count, why,
           the_driver->runtime_path[0] != '\0' ? "; from " : "", the_driver->runtime_path);
}

static rdm_status load(void) {
  bool loaded = false;
  hooks();
  rdm__mutex_lock(&runtime_lock);
  int expected = RDM__CONFIGURING;
  rdm_status status = RDM_OK;
  if (atomic_compare_exchange_strong_explicit(&rdm__runtime_state, &expected, RDM__LOADING, memory_order_acq_rel,
                                              memory_order_acquire)) {
    status = rdm__runtime_enter_driver();
    if (status == RDM_OK) {
      status = open_driver();
      rdm__runtime_thread_left_driver();
    }
    rdm__runtime_renew_exit_handler();
    loaded = status == RDM_OK;
    expected = RDM__LOADING;
    atomic_compare_exchange_strong_explicit(&rdm__runtime_state, &expected,
                                            status == RDM_OK ? RDM__READY : RDM__CONFIGURING, memory_order_acq_rel,
                                            memory_order_acquire);
  }
  rdm__mutex_unlock(&runtime_lock);
  if (loaded) log_choice();
  return status == RDM_OK ? rdm__runtime_check() : status;
}

rdm_status rdm__runtime_enter(const rdm__driver **out_driver) {
  if (current_state() != RDM__READY) {
    rdm_status status = rdm__runtime_check();
    if (status == RDM_OK) status = load();
    if (status != RDM_OK) return status;
  }
  *out_driver = the_driver;
  return RDM_OK;
}

int32_t rdm__runtime_device_count(void) {
  return current_state() == RDM__READY ? the_device_count : 0;
}

uint32_t rdm_version(void) {
  return RDM_VERSION;
}

#define TEXT_OF(value) #value
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *rdm_version_string(void) {
  return VERSION_TEXT(RDM_VERSION_MAJOR, RDM_VERSION_MINOR, RDM_VERSION_PATCH);
}

rdm_status rdm_configure(const rdm_config *config) {
  rdm_status status = rdm__runtime_check();
  if (status != RDM_OK) return status;
  const char *driver = NULL;
  int sim_devices = 0;
  if (config != NULL) {
    if (config->struct_size < offsetof(rdm_config, sim_device_count) + sizeof config->sim_device_count) {
      return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "config->struct_size is %u; set it to sizeof(rdm_config), %zu",
                       config->struct_size, sizeof *config);
    }
    driver = config->driver;
    sim_devices = config->sim_device_count;
  }
  if (driver != NULL && !rdm__driver_is_known(driver)) {
    return rdm__fail(RDM_ERROR_UNKNOWN_DRIVER, "config->driver is \"%s\"; this build has: %s", driver,
                     rdm__driver_names());
  }
  if (sim_devices < 0 || sim_devices > MAX_SIM_DEVICES) {
    return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "config->sim_device_count is %d; it is 0 (default) to %d", sim_devices,
                     MAX_SIM_DEVICES);
  }
  hooks();
  rdm__mutex_lock(&runtime_lock);
  if (current_state() == RDM__CONFIGURING) {
    snprintf(configured_driver, sizeof configured_driver, "%s", driver != NULL ? driver : "");
    configured_sim_devices = sim_devices;
  } else if ((status = rdm__runtime_check()) == RDM_OK) {
    status = rdm__fail(RDM_ERROR_ALREADY_CONFIGURED,
                       "the process uses the driver %s already; configure before first use", the_driver->name);
  }
  rdm__mutex_unlock(&runtime_lock);
  return status;
}

rdm_status rdm_probe_driver(const char *driver, int32_t *out_count) {
  rdm_status status = rdm__runtime_check();
  if (status != RDM_OK) return status;
  if (driver == NULL || out_count == NULL) {
    return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "%s is null", driver == NULL ? "driver" : "out_count");
  }
  const rdm__driver *probed = NULL;
  int32_t count = 0;
  hooks();
  rdm__mutex_lock(&runtime_lock);
  /* Opening `sim` would fix its device count, which rdm_configure may still change; it needs no look. */
  if (strcmp(driver, "sim") == 0) {
    const char *name = NULL;
    int sim_devices = 0;
    status = choose(&name, &sim_devices);
    count = sim_devices;
  } else {
    atomic_store_explicit(&a_library_was_probed, true, memory_order_release);
    status = rdm__runtime_enter_driver();
    if (status == RDM_OK) {
      status = rdm__driver_select(driver, 0, &probed, &count);
      rdm__runtime_thread_left_driver();
    }
    rdm__runtime_renew_exit_handler();
  }
  rdm__mutex_unlock(&runtime_lock);
  if (status == RDM_OK) *out_count = count;
  return status;
}

rdm_status rdm_get_driver_info(rdm_driver_info *out_info) {
  const rdm__driver *driver = NULL;
  rdm_status status = rdm__runtime_enter(&driver);
  if (status != RDM_OK) return status;
  rdm_driver_info info = {.struct_size = sizeof info};
  int major = 0, minor = 0;
  status = rdm__runtime_enter_driver();
  if (status != RDM_OK) return status;
  /* A version that the driver does not tell stays 0; that is no failure, and leaves nothing pending for others. */
  if (driver->driver_get_version(&info.driver_version) != RDM_HIP_SUCCESS) info.driver_version = 0;
  if (driver->runtime_get_version(&info.runtime_version) != RDM_HIP_SUCCESS) info.runtime_version = 0;
  if (driver->rtc_version(&major, &minor) == RDM_RTC_SUCCESS) info.compiler_version = major * 1000 + minor;
  if (info.driver_version == 0 || info.runtime_version == 0) driver->get_last_error();
  rdm__runtime_thread_left_driver();
  snprintf(info.name, sizeof info.name, "%s", driver->name);
  snprintf(info.runtime_path, sizeof info.runtime_path, "%s", driver->runtime_path);
  snprintf(info.compiler_path, sizeof info.compiler_path, "%s", driver->compiler_path);
  return rdm__struct_copy_out("out_info", &info, sizeof info, offsetof(rdm_driver_info, runtime_path), out_info);
}

rdm_status rdm_device_count(int32_t *out_count) {
  const rdm__driver *driver = NULL;
  rdm_status status = rdm__runtime_enter(&driver);
  if (status != RDM_OK) return status;
  if (out_count == NULL) return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "out_count is null");
  *out_count = the_device_count;
  return RDM_OK;
}
