/*
 * What a compiled module exports, and how its bytes end. The prelude that each kernel source is compiled with defines
 * the same struct; RDM__SIM_KERNEL_ABI changes with it.
 */
#ifndef RDM_SIM_KERNEL_ABI_H
#define RDM_SIM_KERNEL_ABI_H

#include <stddef.h>
#include <stdint.h>

#define RDM__SIM_KERNEL_ABI 1
#define RDM__SIM_ABI_SYMBOL "rdm_sim_kernel_abi"
/* Before the kernel's own name. */
#define RDM__SIM_KERNEL_PREFIX "rdm_sim_kernel_"

typedef struct rdm__sim_kernel {
  unsigned argument_count;
  const unsigned *argument_sizes;
  /* Runs the threads of a block whose index differs in x alone, from 0 up to the block's size in x. */
  void (*run_row)(void **arguments, unsigned count);
} rdm__sim_kernel;

/* What a kernel's thread sees as threadIdx, blockIdx, blockDim and gridDim: x, y and z of each. */
typedef struct rdm__sim_index {
  unsigned thread[3];
  unsigned block[3];
  unsigned block_size[3];
  unsigned grid_size[3];
} rdm__sim_index;

/* The module exports a variable of this type, which the driver sets: it gives the calling thread's index. */
typedef rdm__sim_index *(*rdm__sim_index_function)(void);
#define RDM__SIM_INDEX_SYMBOL "rdm_sim_index_of_thread"

/* The last bytes of a code object, behind the shared object: enough to refuse one that is damaged or cut short. */
typedef struct rdm__sim_code_trailer {
  uint64_t size;
  uint64_t checksum;
  char magic[16];
} rdm__sim_code_trailer;

#define RDM__SIM_CODE_MAGIC "rdm-sim-code-1\0"

/* FNV-1a. */
static inline uint64_t rdm__sim_checksum(const void *bytes, size_t size) {
  const unsigned char *byte = bytes;
  uint64_t checksum = UINT64_C(0xCBF29CE484222325);
  for (size_t index = 0; index < size; index++) checksum = (checksum ^ byte[index]) * UINT64_C(0x100000001B3);
  return checksum;
}

#endif
