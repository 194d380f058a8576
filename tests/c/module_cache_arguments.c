/* The arguments of a launch against those of its kernel. */
#include "module_cache.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const rdm_module_source mixed_source = {
    .struct_size = sizeof mixed_source,
    .name = "mixed.hip",
    .source =
        "typedef struct wide { double values[3]; } wide;\n"
        "extern \"C\" __global__ void mixed(float *out, unsigned char byte, double real, wide three) {\n"
        "  *out = (float)byte + (float)real + (float)three.values[2];\n"
        "}\n"
        "extern \"C\" __global__ void nothing(void) {}\n"};

enum { ARGUMENTS = 4 };

static const uint32_t right_sizes[ARGUMENTS] = {8, 1, 8, 24};

typedef struct bench {
  rdm_device device;
  rdm_stream stream;
  rdm_encoder encoder;
  rdm_kernel kernel;
  rdm_kernel nothing;
  float *memory;
} bench;

static bench set_up(void) {
  bench made;
  rdm_module module;
  void *memory = NULL;
  test_use_sim(1);
  CHECK_OK(rdm_device_get(0, &made.device));
  CHECK_OK(rdm_module_get(made.device, &mixed_source, &module));
  CHECK_OK(rdm_module_get_kernel(module, "mixed", &made.kernel));
  CHECK_OK(rdm_module_get_kernel(module, "nothing", &made.nothing));
  CHECK_OK(rdm_stream_create(0, &made.stream));
  CHECK_OK(rdm_encoder_get(made.stream, &made.encoder));
  CHECK_OK(rdm_memory_allocate(made.device, sizeof(float), &memory));
  made.memory = memory;
  return made;
}

static rdm_status launch(const bench *all, uint32_t struct_size, const uint32_t *sizes, uint32_t count) {
  float *memory = all->memory;
  unsigned char byte = 1;
  double real = 2.0;
  double three[3] = {0.0, 0.0, 4.0};
  void *arguments[ARGUMENTS] = {&memory, &byte, &real, three};
  rdm_launch_config config = {
      .struct_size = struct_size, .grid = {1, 1, 1}, .block = {1, 1, 1}, .argument_sizes_bytes = sizes};
  return rdm_encoder_launch(all->encoder, all->kernel, &config, arguments, count);
}

static void check_result(const bench *all) {
  float result = 0;
  CHECK_OK(rdm_encoder_copy(all->encoder, &result, all->memory, sizeof result, RDM_COPY_DEVICE_TO_HOST));
  CHECK_OK(rdm_stream_synchronize(all->stream, RDM_WAIT_FOREVER));
  CHECK(result == 7.0f);
}

static void sizes_that_are_right_are_taken(void) {
  bench all = set_up();
  CHECK_OK(launch(&all, sizeof(rdm_launch_config), right_sizes, ARGUMENTS));
  check_result(&all);
  CHECK_OK(launch(&all, sizeof(rdm_launch_config), NULL, ARGUMENTS));
  check_result(&all);
  const rdm_launch_config config = {.struct_size = sizeof config, .grid = {1, 1, 1}, .block = {1, 1, 1}};
  CHECK_OK(rdm_encoder_launch(all.encoder, all.nothing, &config, NULL, 0));
}

static void each_size_that_is_wrong_is_named(void) {
  bench all = set_up();
  for (uint32_t i = 0; i < ARGUMENTS; i++) {
    uint32_t sizes[ARGUMENTS];
    char number[32];
    char has[32];
    char got[32];
    memcpy(sizes, right_sizes, sizeof sizes);
    sizes[i] += 4;
    CHECK_STATUS(launch(&all, sizeof(rdm_launch_config), sizes, ARGUMENTS), RDM_ERROR_INVALID_ARGUMENT);
    const char *message = rdm_last_error_message();
    snprintf(number, sizeof number, "argument %u,", i);
    snprintf(has, sizeof has, " %u bytes", right_sizes[i]);
    snprintf(got, sizeof got, "is %u", sizes[i]);
    CHECK_THAT(strstr(message, "kernel mixed") != NULL && strstr(message, number) != NULL &&
                   strstr(message, has) != NULL && strstr(message, got) != NULL,
               "the message is \"%s\"", message);
  }
  /* A refused argument is the caller's affair alone, and not the stream's. */
  CHECK_OK(launch(&all, sizeof(rdm_launch_config), right_sizes, ARGUMENTS));
  check_result(&all);
}

static void a_count_that_is_wrong_is_named(void) {
  bench all = set_up();
  CHECK_STATUS(launch(&all, sizeof(rdm_launch_config), right_sizes, ARGUMENTS - 1), RDM_ERROR_INVALID_ARGUMENT);
  CHECK_THAT(strstr(rdm_last_error_message(), "takes 4 arguments and argument_count is 3") != NULL,
             "the message is \"%s\"", rdm_last_error_message());
}

/* Built against the version in which the struct ended before the sizes: what is behind it is not ours to read. */
static void an_older_struct_has_no_sizes(void) {
  bench all = set_up();
  const uint32_t wrong[ARGUMENTS] = {1, 2, 3, 4};
  CHECK_OK(launch(&all, offsetof(rdm_launch_config, argument_sizes_bytes), wrong, ARGUMENTS));
  check_result(&all);
  CHECK_STATUS(launch(&all, sizeof(rdm_launch_config), wrong, ARGUMENTS), RDM_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(launch(&all, offsetof(rdm_launch_config, argument_sizes_bytes) - 1, NULL, ARGUMENTS),
               RDM_ERROR_INVALID_ARGUMENT);
}

const test_case argument_tests[] = {
    {.name = "sizes_that_are_right_are_taken", .function = sizes_that_are_right_are_taken},
    {.name = "each_size_that_is_wrong_is_named", .function = each_size_that_is_wrong_is_named},
    {.name = "a_count_that_is_wrong_is_named", .function = a_count_that_is_wrong_is_named},
    {.name = "an_older_struct_has_no_sizes", .function = an_older_struct_has_no_sizes},
    {0},
};
