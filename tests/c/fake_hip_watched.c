/*
 * The stand-in of fake_hip.c for a whole machine: any call that would use a device, and not only describe it, ends the
 * process. Built as that one, and with
 *   FAKE_DEVICES         how many devices there are (1 unless given)
 *   FAKE_CODE_SIZE       how much code the compiler gives (4 bytes unless given)
 *   FAKE_CRASH_AT_EXIT   the library's teardown crashes
 */
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef FAKE_DEVICES
#define FAKE_DEVICES 1
#endif
#ifndef FAKE_CODE_SIZE
#define FAKE_CODE_SIZE 4
#endif

#define hipGetDeviceCount replaced_hipGetDeviceCount
#define hipSetDevice replaced_hipSetDevice
#define hipSetDeviceFlags replaced_hipSetDeviceFlags
#define hipDeviceSynchronize replaced_hipDeviceSynchronize
#define hipMalloc replaced_hipMalloc
#define hipFree replaced_hipFree
#define hipHostMalloc replaced_hipHostMalloc
#define hipStreamCreateWithFlags replaced_hipStreamCreateWithFlags
#define hipEventCreateWithFlags replaced_hipEventCreateWithFlags
#define hipModuleLoadData replaced_hipModuleLoadData
#define hiprtcGetCodeSize replaced_hiprtcGetCodeSize
#define hiprtcGetCode replaced_hiprtcGetCode
#include "fake_hip.c"
#undef hipGetDeviceCount
#undef hipSetDevice
#undef hipSetDeviceFlags
#undef hipDeviceSynchronize
#undef hipMalloc
#undef hipFree
#undef hipHostMalloc
#undef hipStreamCreateWithFlags
#undef hipEventCreateWithFlags
#undef hipModuleLoadData
#undef hiprtcGetCodeSize
#undef hiprtcGetCode

int hipGetDeviceCount(int *count) {
  *count = FAKE_DEVICES;
  return FAKE_DEVICES > 0 ? 0 : 100;
}

#define FORBIDDEN(name) \
  int name(void);       \
  int name(void) {      \
    abort();            \
  }

FORBIDDEN(hipSetDevice)
FORBIDDEN(hipSetDeviceFlags)
FORBIDDEN(hipDeviceSynchronize)
FORBIDDEN(hipMalloc)
FORBIDDEN(hipFree)
FORBIDDEN(hipHostMalloc)
FORBIDDEN(hipStreamCreateWithFlags)
FORBIDDEN(hipEventCreateWithFlags)
FORBIDDEN(hipModuleLoadData)

int hiprtcGetCodeSize(void *program, size_t *size) {
  (void)program;
  *size = FAKE_CODE_SIZE;
  return 0;
}

int hiprtcGetCode(void *program, char *code) {
  (void)program;
  memset(code, 1, FAKE_CODE_SIZE);
  return 0;
}

#ifdef FAKE_CRASH_AT_EXIT
__attribute__((destructor)) static void crash(void) {
  abort();
}
#endif
