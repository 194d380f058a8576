/* Modules: compiled once, found without waiting, kept on disk; one test for each claim, on the simulated driver. */
#include "module_cache.h"

#include "cache_entry.h"
#include "cache_key.h"
#include "cache_store.h"
#include "calls.h"
#include "runtime.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

void answer_source_make(int number, answer_source *out_source) {
  snprintf(out_source->name, sizeof out_source->name, "answer_%d.hip", number);
  snprintf(out_source->text, sizeof out_source->text, "extern \"C\" __global__ void answer(int *out) { *out = %d; }\n",
           number);
  out_source->source = (rdm_module_source){
      .struct_size = sizeof out_source->source, .name = out_source->name, .source = out_source->text};
}

int answer_of(int32_t device_index, rdm_module module) {
  rdm_device device;
  rdm_kernel kernel;
  rdm_stream stream;
  rdm_encoder encoder;
  void *memory = NULL;
  int answer = -1;
  CHECK_OK(rdm_device_get(device_index, &device));
  CHECK_OK(rdm_module_get_kernel(module, "answer", &kernel));
  CHECK_OK(rdm_stream_create(device_index, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  CHECK_OK(rdm_memory_allocate(device, sizeof answer, &memory));
  void *arguments[] = {&memory};
  const uint32_t sizes[] = {sizeof memory};
  const rdm_launch_config config = {
      .struct_size = sizeof config, .grid = {1, 1, 1}, .block = {1, 1, 1}, .argument_sizes_bytes = sizes};
  CHECK_OK(rdm_encoder_launch(encoder, kernel, &config, arguments, 1));
  CHECK_OK(rdm_encoder_copy(encoder, &answer, memory, sizeof answer, RDM_COPY_DEVICE_TO_HOST));
  CHECK_OK(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER));
  CHECK_OK(rdm_memory_free(device, memory));
  CHECK_OK(rdm_stream_release(stream));
  return answer;
}

uint64_t compile_count(void) {
  uint64_t count = 0;
  CHECK_OK(rdm_module_compile_count(&count));
  return count;
}

uint64_t disk_hit_count(void) {
  uint64_t count = 0;
  CHECK_OK(rdm_module_disk_hit_count(&count));
  return count;
}

unsigned calls_inside(const char *entry_point) {
  call_list list = calls_read(0);
  unsigned inside = 0;
  for (size_t i = 0; i < list.count; i++) {
    if (call_is(&list.calls[i], entry_point) && list.calls[i].result == -1) inside++;
  }
  calls_free(&list);
  return inside;
}

void wait_until_inside(const char *entry_point, unsigned count) {
  uint64_t end = test_now_ns() + 20 * TEST_SECOND;
  while (calls_inside(entry_point) != count) {
    CHECK_THAT(test_now_ns() < end, "%u threads and not %u are inside %s", calls_inside(entry_point), count,
               entry_point);
    test_sleep_ns(TEST_MILLISECOND);
  }
}

uint64_t process_time_ns(void) {
  struct rusage usage;
  CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
  uint64_t seconds = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec);
  return seconds * TEST_SECOND + (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
}

void use_new_cache_folder(char *out_path, size_t size) {
  const char *temporary = getenv("TMPDIR");
  snprintf(out_path, size, "%s/rdm-module-cache-XXXXXX", temporary != NULL ? temporary : "/tmp");
  CHECK(mkdtemp(out_path) != NULL);
  CHECK(setenv("RDM_CACHE_DIR", out_path, 1) == 0);
}

void remove_cache_folder(const char *path) {
  DIR *listing = opendir(path);
  CHECK(listing != NULL);
  for (struct dirent *each = readdir(listing); each != NULL; each = readdir(listing)) {
    if (each->d_name[0] != '.') unlinkat(dirfd(listing), each->d_name, 0);
  }
  closedir(listing);
  CHECK(rmdir(path) == 0);
}

void cache_entry_file(int number, char *out_name, size_t size) {
  answer_source source;
  rdm__cache_key key;
  const rdm__driver *driver = NULL;
  char name[RDM__CACHE_NAME_SIZE];
  CHECK_OK(rdm__runtime_enter(&driver));
  answer_source_make(number, &source);
  CHECK(rdm__cache_key_make(driver, "sim", &source.source, &key));
  rdm__cache_entry_name(&key, name);
  free(key.bytes);
  snprintf(out_name, size, "%s%s", name, RDM__CACHE_ENTRY_ENDING);
}

int main(int argc, char **argv) {
  static const test_case *const groups[] = {memory_tests, failure_tests, argument_tests,
                                            kill_tests,   disk_tests,    module_field_log_tests,
                                            build_tests,  trust_tests,   NULL};
  static const test_body *const bodies[] = {disk_bodies, NULL};
  return test_main(argc, argv, groups, bodies);
}
