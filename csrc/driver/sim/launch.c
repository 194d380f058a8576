#include "driver/sim/launch.h"

#include "driver/sim/kernel_guard.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
  MAX_THREADS_PER_BLOCK = 1024,
  MAX_SHARED_MEMORY_BYTES = 65536,
  ARGUMENT_ALIGNMENT = 16,
};

/* One launch. The argument pointers, and behind them the values, follow it in its block of memory. */
typedef struct launch_work {
  rdm__sim_work work;
  rdm__sim_function *function;
  unsigned grid[3];
  unsigned block[3];
  void *arguments[];
} launch_work;

static void run_block(const rdm__sim_kernel *kernel, rdm__sim_index *index, void **arguments) {
  for (unsigned z = 0; z < index->block_size[2]; z++) {
    for (unsigned y = 0; y < index->block_size[1]; y++) {
      index->thread[1] = y;
      index->thread[2] = z;
      kernel->run_row(arguments, index->block_size[0]);
    }
  }
}

static void run_kernel(void *argument) {
  launch_work *launch = argument;
  const rdm__sim_kernel *kernel = rdm__sim_function_kernel(launch->function);
  rdm__sim_index *index = rdm__sim_index_of_thread();
  memcpy(index->grid_size, launch->grid, sizeof index->grid_size);
  memcpy(index->block_size, launch->block, sizeof index->block_size);
  for (unsigned z = 0; z < launch->grid[2]; z++) {
    for (unsigned y = 0; y < launch->grid[1]; y++) {
      for (unsigned x = 0; x < launch->grid[0]; x++) {
        index->block[0] = x;
        index->block[1] = y;
        index->block[2] = z;
        run_block(kernel, index, launch->arguments);
      }
    }
  }
}

static int run_launch(rdm__sim_work *work, rdm__sim_stream *stream) {
  (void)stream;
  return rdm__sim_kernel_guard_run(run_kernel, work);
}

static void finish_launch(rdm__sim_work *work, int fault) {
  (void)fault;
  rdm__sim_function_release(((launch_work *)work)->function);
  free(work);
}

/* HIP refuses a grid of 2^32 threads or more in any one dimension; here it is the whole grid, as kernels run for real.
 */
static int check_limits(const unsigned grid[3], const unsigned block[3], unsigned shared_memory) {
  uint64_t threads_in_block = 1;
  uint64_t threads = 1;
  for (int axis = 0; axis < 3; axis++) {
    if (grid[axis] == 0 || block[axis] == 0) return RDM_HIP_INVALID_CONFIGURATION;
    if (block[axis] > MAX_THREADS_PER_BLOCK) return RDM_HIP_INVALID_CONFIGURATION;
    threads_in_block *= block[axis];
  }
  if (threads_in_block > MAX_THREADS_PER_BLOCK) return RDM_HIP_INVALID_CONFIGURATION;
  threads = threads_in_block;
  for (int axis = 0; axis < 3; axis++) {
    threads *= grid[axis];
    if (threads > UINT32_MAX) return RDM_HIP_INVALID_CONFIGURATION;
  }
  return shared_memory > MAX_SHARED_MEMORY_BYTES ? RDM_HIP_INVALID_CONFIGURATION : RDM_HIP_SUCCESS;
}

static size_t round_up(size_t size) {
  return (size + ARGUMENT_ALIGNMENT - 1) / ARGUMENT_ALIGNMENT * ARGUMENT_ALIGNMENT;
}

static launch_work *make_launch(rdm__sim_function *function, const unsigned grid[3], const unsigned block[3],
                                void **arguments) {
  const rdm__sim_kernel *kernel = rdm__sim_function_kernel(function);
  size_t header = round_up(sizeof(launch_work) + kernel->argument_count * sizeof(void *));
  size_t size = header;
  for (unsigned index = 0; index < kernel->argument_count; index++) size += round_up(kernel->argument_sizes[index]);
  launch_work *launch = malloc(size);
  if (launch == NULL) return NULL;
  launch->work.run = run_launch;
  launch->work.finish = finish_launch;
  launch->work.repeats = true;
  memcpy(launch->grid, grid, sizeof launch->grid);
  memcpy(launch->block, block, sizeof launch->block);
  char *value = (char *)launch + header;
  for (unsigned index = 0; index < kernel->argument_count; index++) {
    launch->arguments[index] = value;
    memcpy(value, arguments[index], kernel->argument_sizes[index]);
    value += round_up(kernel->argument_sizes[index]);
  }
  launch->function = function;
  return launch;
}

int rdm__sim_launch_submit(rdm__sim_function *function, const unsigned grid[3], const unsigned block[3],
                           unsigned shared_memory, rdm__sim_stream *stream, void **arguments) {
  if (function == NULL || rdm__sim_function_device_index(function) != rdm__sim_stream_device_index(stream)) {
    return RDM_HIP_INVALID_HANDLE;
  }
  if (grid == NULL || block == NULL) return RDM_HIP_INVALID_VALUE;
  int result = check_limits(grid, block, shared_memory);
  if (result != RDM_HIP_SUCCESS) return result;
  unsigned count = rdm__sim_function_kernel(function)->argument_count;
  if (count > 0 && arguments == NULL) return RDM_HIP_INVALID_VALUE;
  for (unsigned index = 0; index < count; index++) {
    if (arguments[index] == NULL) return RDM_HIP_INVALID_VALUE;
  }
  launch_work *launch = make_launch(function, grid, block, arguments);
  if (launch == NULL) return RDM_HIP_OUT_OF_MEMORY;
  rdm__sim_function_retain(function);
  return rdm__sim_stream_submit(stream, &launch->work);
}
