/* The table of HIP's error numbers, their names and a few words on each. */
#include "driver/driver_error.h"

#include "driver/driver.h"

#include <stddef.h>

/* After a sticky error the context is lost for good. */
enum fault_kind { USABLE = 0, STICKY = 1 };

typedef struct error_entry {
  int number;
  enum fault_kind kind;
  const char *name;
  const char *text;
} error_entry;

static const error_entry error_entries[] = {
    {0, USABLE, "hipSuccess", "no error"},
    {1, USABLE, "hipErrorInvalidValue", "an argument is invalid"},
    {2, USABLE, "hipErrorOutOfMemory", "out of memory"},
    {3, USABLE, "hipErrorNotInitialized", "the runtime is not initialized"},
    {4, USABLE, "hipErrorDeinitialized", "the runtime is shutting down"},
    {9, USABLE, "hipErrorInvalidConfiguration", "the launch configuration is invalid"},
    {12, USABLE, "hipErrorInvalidPitchValue", "the pitch is invalid"},
    {13, USABLE, "hipErrorInvalidSymbol", "the device symbol is invalid"},
    {17, USABLE, "hipErrorInvalidDevicePointer", "the device pointer is invalid"},
    {21, USABLE, "hipErrorInvalidMemcpyDirection", "the direction of the copy is invalid"},
    {35, USABLE, "hipErrorInsufficientDriver", "the GPU driver is older than the runtime needs"},
    {52, USABLE, "hipErrorMissingConfiguration", "a launch configuration is missing"},
    {53, USABLE, "hipErrorPriorLaunchFailure", "an earlier launch failed"},
    {98, USABLE, "hipErrorInvalidDeviceFunction", "the kernel does not exist on this device"},
    {100, USABLE, "hipErrorNoDevice", "no GPU was found"},
    {101, USABLE, "hipErrorInvalidDevice", "the device index is invalid"},
    {200, USABLE, "hipErrorInvalidImage", "the code object is invalid"},
    {201, USABLE, "hipErrorInvalidContext", "the context is invalid"},
    {202, USABLE, "hipErrorContextAlreadyCurrent", "the context is already current"},
    {205, USABLE, "hipErrorMapFailed", "mapping memory failed"},
    {206, USABLE, "hipErrorUnmapFailed", "unmapping memory failed"},
    {207, USABLE, "hipErrorArrayIsMapped", "the array is mapped"},
    {208, USABLE, "hipErrorAlreadyMapped", "the resource is already mapped"},
    {209, USABLE, "hipErrorNoBinaryForGpu", "the code object has no code for this GPU"},
    {210, USABLE, "hipErrorAlreadyAcquired", "the resource is already acquired"},
    {211, USABLE, "hipErrorNotMapped", "the resource is not mapped"},
    {212, USABLE, "hipErrorNotMappedAsArray", "the resource is not mapped as an array"},
    {213, USABLE, "hipErrorNotMappedAsPointer", "the resource is not mapped as a pointer"},
    {214, STICKY, "hipErrorECCNotCorrectable", "a memory error that could not be corrected"},
    {215, USABLE, "hipErrorUnsupportedLimit", "the limit is not supported"},
    {216, USABLE, "hipErrorContextAlreadyInUse", "the context is in use by another thread"},
    {217, USABLE, "hipErrorPeerAccessUnsupported", "the devices can not reach each other's memory"},
    {218, USABLE, "hipErrorInvalidKernelFile", "the kernel file is invalid"},
    {219, USABLE, "hipErrorInvalidGraphicsContext", "the graphics context is invalid"},
    {220, STICKY, "cudaErrorNvlinkUncorrectable", "a link error that could not be corrected"},
    {226, STICKY, "cudaErrorContained", "an exception on the device that its context does not survive"},
    {300, USABLE, "hipErrorInvalidSource", "the kernel source is invalid"},
    {301, USABLE, "hipErrorFileNotFound", "the file was not found"},
    {302, USABLE, "hipErrorSharedObjectSymbolNotFound", "a symbol of a shared object was not found"},
    {303, USABLE, "hipErrorSharedObjectInitFailed", "a shared object failed to initialize"},
    {304, USABLE, "hipErrorOperatingSystem", "a call of the operating system failed"},
    {400, USABLE, "hipErrorInvalidHandle", "the handle is invalid, or of another device"},
    {401, USABLE, "hipErrorIllegalState", "the object's state does not allow this"},
    {500, USABLE, "hipErrorNotFound", "the name was not found"},
    {600, USABLE, "hipErrorNotReady", "the work has not completed yet"},
    {700, STICKY, "hipErrorIllegalAddress", "a kernel accessed an illegal address"},
    {701, USABLE, "hipErrorLaunchOutOfResources", "the launch needs more resources than there are"},
    {702, STICKY, "hipErrorLaunchTimeOut", "a kernel ran too long and was ended"},
    {704, USABLE, "hipErrorPeerAccessAlreadyEnabled", "peer access is already enabled"},
    {705, USABLE, "hipErrorPeerAccessNotEnabled", "peer access is not enabled"},
    {708, USABLE, "hipErrorSetOnActiveProcess", "the device is already in use, so this can no longer be set"},
    {709, STICKY, "hipErrorContextIsDestroyed", "the context is destroyed"},
    {710, STICKY, "hipErrorAssert", "an assertion failed in a kernel"},
    {712, USABLE, "hipErrorHostMemoryAlreadyRegistered", "the host memory is already registered"},
    {713, USABLE, "hipErrorHostMemoryNotRegistered", "the host memory is not registered"},
    {714, STICKY, "cudaErrorHardwareStackError", "a kernel corrupted or overran its stack"},
    {715, STICKY, "cudaErrorIllegalInstruction", "a kernel met an illegal instruction"},
    {716, STICKY, "cudaErrorMisalignedAddress", "a kernel accessed a misaligned address"},
    {717, STICKY, "cudaErrorInvalidAddressSpace", "a kernel accessed an address of the wrong space"},
    {718, STICKY, "cudaErrorInvalidPc", "a kernel jumped to an invalid address"},
    {719, STICKY, "hipErrorLaunchFailure", "a kernel failed while it ran"},
    {720, USABLE, "hipErrorCooperativeLaunchTooLarge", "the cooperative launch is too large"},
    {800, USABLE, "hipErrorNotPermitted", "not permitted here"},
    {801, USABLE, "hipErrorNotSupported", "not supported"},
    {900, USABLE, "hipErrorStreamCaptureUnsupported", "not permitted while a stream is capturing"},
    {901, USABLE, "hipErrorStreamCaptureInvalidated", "the stream's capture was invalidated"},
    {902, USABLE, "hipErrorStreamCaptureMerge", "the operation would merge two captures"},
    {903, USABLE, "hipErrorStreamCaptureUnmatched", "the capture did not begin in this stream"},
    {904, USABLE, "hipErrorStreamCaptureUnjoined", "the capture has work that was never joined"},
    {905, USABLE, "hipErrorStreamCaptureIsolation", "the operation crosses into a capture"},
    {906, USABLE, "hipErrorStreamCaptureImplicit", "the operation uses the default stream while capturing"},
    {907, USABLE, "hipErrorCapturedEvent", "the event was last recorded in a capture"},
    {908, USABLE, "hipErrorStreamCaptureWrongThread", "the capture belongs to another thread"},
    {910, USABLE, "hipErrorGraphExecUpdateFailure", "the graph could not be updated"},
    {999, USABLE, "hipErrorUnknown", "unknown error"},
    {1052, USABLE, "hipErrorRuntimeMemory", "a memory call of the runtime failed"},
    {1053, USABLE, "hipErrorRuntimeOther", "a call of the runtime other than memory failed"},
};

static const error_entry *find_entry(int number) {
  size_t low = 0;
  size_t high = sizeof error_entries / sizeof error_entries[0];
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (error_entries[middle].number == number) return &error_entries[middle];
    if (error_entries[middle].number < number) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return NULL;
}

const char *rdm__driver_error_name(int error) {
  const error_entry *entry = find_entry(error);
  return entry != NULL ? entry->name : "hipErrorUnrecognized";
}

const char *rdm__driver_error_string(int error) {
  const error_entry *entry = find_entry(error);
  return entry != NULL ? entry->text : "an error number that is not one of HIP's";
}

const char *rdm__driver_rtc_error_string(int error) {
  static const char *const texts[] = {
      "no error",
      "out of memory",
      "the program could not be created",
      "an input is invalid",
      "the program is invalid",
      "an option is invalid",
      "the source did not compile",
      "an operation on the compiler's built-ins failed",
      "the compilation is over, so no name expression can be added",
      "the compilation is not done, so no lowered name exists",
      "the name expression is invalid",
      "internal error of the compiler",
  };
  if (error < 0 || (size_t)error >= sizeof texts / sizeof texts[0]) return "an unknown error of the compiler";
  return texts[error];
}

bool rdm__driver_error_is_fault(int error) {
  const error_entry *entry = find_entry(error);
  return entry != NULL && entry->kind == STICKY;
}
