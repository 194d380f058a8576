/* Our struct of the device's properties against AMD's: offset and size of each member that is read, and the whole. */
#include "types.h"

#include <stddef.h>

#if HIP_VERSION_MAJOR >= 6
typedef rdm__hip_properties_r0600 our_properties;
#else
typedef rdm__hip_properties_5 our_properties;
#endif

#define SAME_MEMBER(ours, theirs)                                                                               \
  _Static_assert(offsetof(our_properties, ours) == offsetof(hipDeviceProp_t, theirs), #theirs " is elsewhere"); \
  SAME_TYPE(#theirs, __typeof__(((our_properties *)0)->ours), __typeof__(((hipDeviceProp_t *)0)->theirs))

_Static_assert(sizeof(our_properties) == sizeof(hipDeviceProp_t), "hipDeviceProp_t has another size");
SAME_MEMBER(name, name);
SAME_MEMBER(total_global_memory, totalGlobalMem);
SAME_MEMBER(warp_size, warpSize);
SAME_MEMBER(max_threads_per_block, maxThreadsPerBlock);
SAME_MEMBER(multiprocessor_count, multiProcessorCount);
SAME_MEMBER(gcn_arch_name, gcnArchName);
