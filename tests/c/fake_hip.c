/*
 * A stand-in for AMD's libraries, to test how they are found. Built with
 *   FAKE_VERSION     what hipRuntimeGetVersion says
 *   FAKE_INIT        what hipInit returns (0 unless given)
 *   FAKE_COMPILER    the entry points of hiprtc, and nothing else
 *   FAKE_WITH_COMPILER  both in one, as in HIP 5
 *   FAKE_LACKS_EVENT, FAKE_OLD_CALLBACK, FAKE_OLD_PROPERTIES   entry points that are left out
 *   FAKE_UNDEFINED   a call of a function that is nowhere
 *   FAKE_EXIT        exit handlers of its own, registered as it is loaded and as it is first used; each calls
 *                    fake_at_teardown, where that is set
 * It counts its calls in fake_calls, and notes in fake_first whether hipInit came first.
 */
#include "driver/hip_layout.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#ifndef FAKE_INIT
#define FAKE_INIT 0
#endif

atomic_int fake_calls;
int fake_first;

#ifdef FAKE_UNDEFINED
int in_no_library(void);
#endif

static int enter(void) {
#ifdef FAKE_UNDEFINED
  fake_calls += in_no_library();
#endif
  fake_calls++;
  return 0;
}

#ifndef FAKE_COMPILER
int hipInit(unsigned flags) {
  (void)flags;
  if (fake_calls == 0) fake_first = 1;
  (void)enter();
  return FAKE_INIT;
}

int hipRuntimeGetVersion(int *version) {
  *version = FAKE_VERSION;
  return enter();
}

int hipDriverGetVersion(int *version) {
  *version = FAKE_VERSION;
  return enter();
}

int hipGetDeviceCount(int *count) {
  *count = 1;
  return enter();
}

#ifndef FAKE_OLD_PROPERTIES
int hipGetDevicePropertiesR0600(rdm__hip_properties_r0600 *properties, int device) {
  memset(properties, 0x7f, sizeof *properties);
  strcpy(properties->name, "fake of the newer layout");
  strcpy(properties->gcn_arch_name, "gfx90a:sramecc+:xnack-");
  properties->total_global_memory = 6000000000u;
  properties->warp_size = 64;
  properties->max_threads_per_block = 1024;
  properties->multiprocessor_count = 104;
  return device == 0 ? enter() : 101;
}
#endif

int hipGetDeviceProperties(rdm__hip_properties_5 *properties, int device) {
  memset(properties, 0x7f, sizeof *properties);
  strcpy(properties->name, "fake of the older layout");
  strcpy(properties->gcn_arch_name, "gfx1030");
  properties->total_global_memory = 5000000000u;
  properties->warp_size = 32;
  properties->max_threads_per_block = 1024;
  properties->multiprocessor_count = 40;
  return device == 0 ? enter() : 101;
}

#ifdef FAKE_OLD_CALLBACK
/* `stream` is the status that the callback is told. */
int hipStreamAddCallback(void *stream, void (*callback)(void *, int, void *), void *user_data, unsigned flags) {
  (void)flags;
  callback(stream, stream == NULL ? 0 : 700, user_data);
  return enter();
}
#else
int hipLaunchHostFunc(void *stream, void (*function)(void *), void *user_data) {
  (void)stream;
  function(user_data);
  return enter();
}
#endif

const char *hipGetErrorName(int error) {
  (void)error;
  return "hipErrorOfTheFake";
}

const char *hipGetErrorString(int error) {
  (void)error;
  return "an error of the fake";
}

#define FAKE(name)  \
  int name(void);   \
  int name(void) {  \
    return enter(); \
  }

FAKE(hipGetDevice)
#ifndef FAKE_EXIT
FAKE(hipSetDevice)
#else
void (*fake_at_teardown)(const char *registered);

static void tear_down_what_was_loaded(void) {
  if (fake_at_teardown != NULL) fake_at_teardown("as the runtime was loaded");
}

static void tear_down_what_was_used(void) {
  if (fake_at_teardown != NULL) fake_at_teardown("as the runtime was first used");
}

__attribute__((constructor)) static void load(void) {
  atexit(tear_down_what_was_loaded);
}

int hipSetDevice(int device) {
  static atomic_flag used = ATOMIC_FLAG_INIT;
  (void)device;
  if (!atomic_flag_test_and_set(&used)) atexit(tear_down_what_was_used);
  return enter();
}
#endif
FAKE(hipSetDeviceFlags)
FAKE(hipDeviceSynchronize)
FAKE(hipMalloc)
FAKE(hipFree)
FAKE(hipHostMalloc)
FAKE(hipHostFree)
FAKE(hipMemcpyAsync)
FAKE(hipMemsetAsync)
FAKE(hipStreamCreateWithFlags)
FAKE(hipStreamDestroy)
FAKE(hipStreamQuery)
FAKE(hipStreamSynchronize)
FAKE(hipStreamWaitEvent)
#ifndef FAKE_LACKS_EVENT
FAKE(hipEventRecord)
#endif
FAKE(hipEventCreateWithFlags)
FAKE(hipEventDestroy)
FAKE(hipEventQuery)
FAKE(hipEventSynchronize)
FAKE(hipEventElapsedTime)
FAKE(hipModuleLoadData)
FAKE(hipModuleUnload)
FAKE(hipModuleGetFunction)
FAKE(hipModuleLaunchKernel)
FAKE(hipPeekAtLastError)
FAKE(hipGetLastError)
#endif

#if defined(FAKE_COMPILER) || defined(FAKE_WITH_COMPILER)
int hiprtcVersion(int *major, int *minor) {
  *major = 9;
  *minor = FAKE_VERSION;
  return enter();
}

const char *hiprtcGetErrorString(int error) {
  (void)error;
  return "an error of the fake compiler";
}

#define FAKE_RTC(name) \
  int name(void);      \
  int name(void) {     \
    return enter();    \
  }

FAKE_RTC(hiprtcCreateProgram)
FAKE_RTC(hiprtcCompileProgram)
FAKE_RTC(hiprtcGetProgramLogSize)
FAKE_RTC(hiprtcGetProgramLog)
FAKE_RTC(hiprtcGetCodeSize)
FAKE_RTC(hiprtcGetCode)
FAKE_RTC(hiprtcDestroyProgram)
#endif
