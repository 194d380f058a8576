/* Many of a kind at once: each is found, whatever was made, ended and made again beside it. */
#include "concurrency.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Streams ---------------------------------------------------------------------------------------------------- */

enum { STREAMS = 5000, WITH_ENCODERS = 40, THREADS = 6, STREAMS_OF_A_THREAD = 400 };

static rdm_stream streams[STREAMS];
static int32_t indices[STREAMS];

static int32_t index_of(rdm_stream stream) {
  rdm_stream_info info = {.struct_size = sizeof info};
  CHECK_OK(rdm_stream_get_info(stream, &info));
  return info.stream_index;
}

static void check_found(int32_t index, rdm_stream expected) {
  rdm_stream found = {0};
  CHECK_OK(rdm_stream_get(0, index, &found));
  CHECK_THAT(found.bits == expected.bits, "stream %d is %#llx, found %#llx", index, (unsigned long long)expected.bits,
             (unsigned long long)found.bits);
}

static void create_streams(void) {
  test_use_sim(1);
  for (int i = 0; i < STREAMS; i++) {
    CHECK_OK(rdm_stream_create(0, &streams[i]));
    indices[i] = index_of(streams[i]);
  }
}

static void many_streams_are_each_found_by_their_index(void) {
  create_streams();
  for (int i = 0; i < STREAMS; i++) check_found(indices[i], streams[i]);
  for (int i = 1; i < STREAMS; i += 2) CHECK_OK(rdm_stream_release(streams[i]));
  for (int i = 0; i < STREAMS; i += 2) check_found(indices[i], streams[i]);
  /* What was released is not found: the index is free to be registered. */
  for (int i = 1; i < STREAMS; i += 2) {
    rdm_stream registered = {0};
    CHECK_OK(rdm_stream_get(0, indices[i], &registered));
    CHECK(registered.bits != streams[i].bits && index_of(registered) == indices[i]);
    check_found(indices[i], registered);
    CHECK_STATUS(rdm_stream_release(streams[i]), RDM_ERROR_STALE_HANDLE);
  }
  for (int i = 0; i < STREAMS; i += 2) check_found(indices[i], streams[i]);
}

static void a_clear_reaches_the_encoders_of_many_streams(void) {
  static rdm_encoder encoders[WITH_ENCODERS];
  create_streams();
  for (int i = 0; i < WITH_ENCODERS; i++) {
    CHECK_OK(rdm_encoder_get(streams[i * (STREAMS / WITH_ENCODERS)], &encoders[i]));
  }
  rdm_device device = {0};
  CHECK_OK(rdm_device_get(0, &device));
  CHECK_OK(rdm_device_synchronize(device, RDM_WAIT_FOREVER));
  CHECK_OK(rdm_clear_encoders());
  for (int i = 0; i < WITH_ENCODERS; i++) CHECK_STATUS(rdm_encoder_commit(encoders[i]), RDM_ERROR_STALE_HANDLE);
}

/* Each thread's streams stay its own while the table grows under all of them. */
static void make_find_and_end_streams(unsigned number) {
  rdm_stream own[STREAMS_OF_A_THREAD];
  int32_t first_index = 1000000 * ((int32_t)number + 1);
  for (int i = 0; i < STREAMS_OF_A_THREAD; i++) {
    rdm_stream registered = {0};
    CHECK_OK(rdm_stream_create(0, &own[i]));
    check_found(index_of(own[i]), own[i]);
    CHECK_OK(rdm_stream_get(0, first_index + i * 1024, &registered));
    check_found(first_index + i * 1024, registered);
    if (i % 3 == 0) CHECK_OK(rdm_stream_release(own[i]));
  }
  for (int i = 0; i < STREAMS_OF_A_THREAD; i++) {
    if (i % 3 != 0) check_found(index_of(own[i]), own[i]);
  }
}

static void streams_are_found_while_other_threads_make_and_end_many(void) {
  test_use_sim(1);
  test_run_threads(THREADS, make_find_and_end_streams);
}

/* ---- Thread-local streams --------------------------------------------------------------------------------------- */

enum { HANDLES = 1000 };

static void many_thread_local_streams_of_one_thread_are_each_its_own(void) {
  static rdm_thread_local_stream handles[HANDLES];
  static rdm_stream resolved[HANDLES];
  test_use_sim(1);
  for (int i = 0; i < HANDLES; i++) {
    CHECK_OK(rdm_thread_local_stream_create(0, &handles[i]));
    CHECK_OK(rdm_thread_local_stream_resolve(handles[i], &resolved[i]));
    for (int before = 0; before < i; before += 97) CHECK(resolved[before].bits != resolved[i].bits);
  }
  for (int i = 1; i < HANDLES; i += 2) CHECK_OK(rdm_thread_local_stream_release(handles[i]));
  /* The next that is new to the thread releases the streams of those that have ended. */
  rdm_thread_local_stream one_more = {0};
  rdm_stream stream = {0};
  CHECK_OK(rdm_thread_local_stream_create(0, &one_more));
  CHECK_OK(rdm_thread_local_stream_resolve(one_more, &stream));
  for (int i = 0; i < HANDLES; i++) {
    rdm_stream again = {0};
    rdm_stream_info info = {.struct_size = sizeof info};
    if (i % 2 == 0) {
      CHECK_OK(rdm_thread_local_stream_resolve(handles[i], &again));
      CHECK(again.bits == resolved[i].bits);
      CHECK_OK(rdm_stream_get_info(resolved[i], &info));
    } else {
      CHECK_STATUS(rdm_thread_local_stream_resolve(handles[i], &again), RDM_ERROR_STALE_HANDLE);
      CHECK_STATUS(rdm_stream_get_info(resolved[i], &info), RDM_ERROR_STALE_HANDLE);
    }
  }
}

/* ---- Kernels ---------------------------------------------------------------------------------------------------- */

enum { KERNELS = 120, NAME_BYTES = 32, LINE_BYTES = 128 };

static rdm_module module;
static char names[KERNELS][NAME_BYTES];
static rdm_kernel kernels[KERNELS];

static void load_many_kernels(void) {
  static char source[KERNELS * LINE_BYTES];
  size_t length = 0;
  for (int i = 0; i < KERNELS; i++) {
    snprintf(names[i], sizeof names[i], "fill_with_%d", i);
    length += (size_t)snprintf(source + length, sizeof source - length,
                               "extern \"C\" __global__ void %s(unsigned *out) { out[0] = %d; }\n", names[i], i);
  }
  const rdm_module_source described = {.struct_size = sizeof described, .name = "many.hip", .source = source};
  rdm_device device = {0};
  test_use_sim(1);
  CHECK_OK(rdm_device_get(0, &device));
  CHECK_OK(rdm_module_get(device, &described, &module));
}

/* Each is what its name says: it writes its number. */
static void check_kernel(rdm_encoder encoder, int number, unsigned *memory, unsigned *host) {
  const rdm_launch_config config = {.struct_size = sizeof config, .grid = {1, 1, 1}, .block = {1, 1, 1}};
  void *arguments[] = {&memory};
  *host = UINT32_MAX;
  CHECK_OK(rdm_encoder_launch(encoder, kernels[number], &config, arguments, 1));
  CHECK_OK(rdm_encoder_copy(encoder, host, memory, sizeof *host, RDM_COPY_DEVICE_TO_HOST));
}

static void many_kernels_of_one_module_are_each_found_by_their_name(void) {
  load_many_kernels();
  for (int i = 0; i < KERNELS; i++) {
    CHECK_OK(rdm_module_get_kernel(module, names[i], &kernels[i]));
    for (int before = 0; before <= i; before++) {
      rdm_kernel again = {0};
      CHECK_OK(rdm_module_get_kernel(module, names[before], &again));
      CHECK(again.bits == kernels[before].bits);
      CHECK(before == i || again.bits != kernels[i].bits);
    }
  }
  rdm_kernel none = {0};
  CHECK_STATUS(rdm_module_get_kernel(module, "fill_with_", &none), RDM_ERROR_KERNEL_NOT_FOUND);
  rdm_device device = {0};
  rdm_stream stream = {0};
  rdm_encoder encoder = {0};
  void *memory = NULL;
  void *host = NULL;
  CHECK_OK(rdm_device_get(0, &device));
  CHECK_OK(rdm_stream_create(0, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  CHECK_OK(rdm_memory_allocate(device, sizeof(unsigned), &memory));
  CHECK_OK(rdm_host_memory_allocate(device, sizeof(unsigned), &host));
  for (int i = 0; i < KERNELS; i++) {
    check_kernel(encoder, i, memory, host);
    CHECK_OK(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER));
    CHECK_THAT(*(unsigned *)host == (unsigned)i, "%s wrote %u", names[i], *(unsigned *)host);
  }
}

static rdm_kernel found_by_thread[THREADS][KERNELS];

/* Each thread begins at another one, so that they add and look up at once. */
static void get_all_kernels(unsigned number) {
  for (int i = 0; i < KERNELS; i++) {
    int which = (i + (int)number * (KERNELS / THREADS)) % KERNELS;
    CHECK_OK(rdm_module_get_kernel(module, names[which], &found_by_thread[number][which]));
  }
}

static void threads_that_ask_for_many_kernels_at_once_get_the_same(void) {
  load_many_kernels();
  test_run_threads(THREADS, get_all_kernels);
  for (int i = 0; i < KERNELS; i++) {
    for (int thread = 1; thread < THREADS; thread++) {
      CHECK(found_by_thread[thread][i].bits == found_by_thread[0][i].bits);
    }
    CHECK(i == 0 || found_by_thread[0][i].bits != found_by_thread[0][i - 1].bits);
  }
}

const test_case many_tests[] = {
    {.name = "many_streams_are_each_found_by_their_index", .function = many_streams_are_each_found_by_their_index},
    {.name = "a_clear_reaches_the_encoders_of_many_streams", .function = a_clear_reaches_the_encoders_of_many_streams},
    {.name = "streams_are_found_while_other_threads_make_and_end_many",
     .function = streams_are_found_while_other_threads_make_and_end_many},
    {.name = "many_thread_local_streams_of_one_thread_are_each_its_own",
     .function = many_thread_local_streams_of_one_thread_are_each_its_own},
    {.name = "many_kernels_of_one_module_are_each_found_by_their_name",
     .function = many_kernels_of_one_module_are_each_found_by_their_name},
    {.name = "threads_that_ask_for_many_kernels_at_once_get_the_same",
     .function = threads_that_ask_for_many_kernels_at_once_get_the_same},
    {0},
};
