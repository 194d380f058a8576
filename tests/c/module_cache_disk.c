/* The cache on disk as one process sees it; tests/disk_cache.rs has what several do. */
#include "cache_entry.h"
#include "cache_key.h"
#include "cache_lock.h"
#include "cache_store.h"
#include "calls.h"
#include "log_lines.h"
#include "module_cache.h"
#include "runtime.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[256];

static void start(void) {
  test_use_sim(1);
  log_lines_capture();
  use_new_cache_folder(folder, sizeof folder);
}

static void end(void) {
  remove_cache_folder(folder);
}

static void get_code(int number) {
  answer_source source;
  const void *code = NULL;
  size_t size = 0;
  answer_source_make(number, &source);
  CHECK_OK(rdm_code_get("sim", &source.source, &code, &size));
}

static rdm_module get_module(int number) {
  answer_source source;
  rdm_device device;
  rdm_module module;
  answer_source_make(number, &source);
  CHECK_OK(rdm_device_get(0, &device));
  CHECK_OK(rdm_module_get(device, &source.source, &module));
  return module;
}

static void entry_path(int number, char *out_path, size_t size) {
  char name[64];
  cache_entry_file(number, name, sizeof name);
  snprintf(out_path, size, "%s/%s", folder, name);
}

static bool has_entry(int number) {
  char path[512];
  entry_path(number, path, sizeof path);
  return access(path, F_OK) == 0;
}

static unsigned files_with_ending(const char *ending) {
  unsigned count = 0;
  DIR *listing = opendir(folder);
  CHECK(listing != NULL);
  for (struct dirent *each = readdir(listing); each != NULL; each = readdir(listing)) {
    size_t length = strlen(each->d_name);
    if (length > strlen(ending) && strcmp(each->d_name + length - strlen(ending), ending) == 0) count++;
  }
  closedir(listing);
  return count;
}

static unsigned open_descriptors(void) {
  unsigned count = 0;
  DIR *listing = opendir("/proc/self/fd");
  CHECK(listing != NULL);
  while (readdir(listing) != NULL) count++;
  closedir(listing);
  return count;
}

/* Gets the modules with the numbers first to last in a fresh process, which prints how many it compiled and found. */
static void run_reader(int first, int last, unsigned compiles, unsigned hits) {
  char cache[300];
  char numbers[64];
  char expected[64];
  process_outcome outcome;
  snprintf(cache, sizeof cache, "TEST_CACHE_DIR=%s", folder);
  snprintf(numbers, sizeof numbers, "TEST_NUMBERS=%d %d", first, last);
  const char *environment[] = {cache, numbers, NULL};
  test_run_body("read_modules", environment, 60, &outcome);
  CHECK_THAT(outcome.exit_code == 0, "the reader ended with %d: %s", outcome.exit_code, outcome.standard_error);
  snprintf(expected, sizeof expected, "compiled %u, found %u\n", compiles, hits);
  CHECK_THAT(strcmp(outcome.standard_output, expected) == 0, "the reader %s", outcome.standard_output);
}

static int read_modules(void) {
  int first = 0;
  int last = 0;
  CHECK(setenv("RDM_CACHE_DIR", getenv("TEST_CACHE_DIR"), 1) == 0);
  CHECK(sscanf(getenv("TEST_NUMBERS"), "%d %d", &first, &last) == 2);
  test_use_sim(1);
  for (int number = first; number <= last; number++) CHECK(answer_of(0, get_module(number)) == number);
  printf("compiled %u, found %u\n", (unsigned)compile_count(), (unsigned)disk_hit_count());
  return 0;
}

/* ---- Entries --------------------------------------------------------------------------------------------------- */

static void a_later_process_compiles_nothing(void) {
  struct stat status;
  char path[512];
  start();
  for (int number = 1; number <= 3; number++) CHECK(answer_of(0, get_module(number)) == number);
  CHECK(compile_count() == 3 && disk_hit_count() == 0);
  run_reader(1, 3, 0, 3);
  run_reader(2, 4, 1, 2);
  CHECK(stat(folder, &status) == 0 && (status.st_mode & 07777) == 0700);
  for (int number = 1; number <= 4; number++) {
    entry_path(number, path, sizeof path);
    CHECK(stat(path, &status) == 0 && (status.st_mode & 07777) == 0600 && status.st_uid == geteuid());
  }
  CHECK(files_with_ending(RDM__CACHE_TEMPORARY_ENDING) == 0);
  end();
}

/* An entry that is whole and for its key, with a code that no driver loads: of an exchanged compiler, say. */
static void write_entry_that_does_not_load(int number) {
  answer_source source;
  rdm__cache_key key;
  const rdm__driver *driver = NULL;
  char path[512];
  static const char code[] = "this is no code object";
  CHECK_OK(rdm__runtime_enter(&driver));
  answer_source_make(number, &source);
  CHECK(rdm__cache_key_make(driver, "sim", &source.source, &key));
  entry_path(number, path, sizeof path);
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  CHECK(file >= 0 && rdm__cache_entry_write(file, &key, code, sizeof code) && close(file) == 0);
  free(key.bytes);
}

static void a_whole_entry_that_does_not_load_is_compiled_anew(void) {
  rdm_device device;
  rdm_error error = {.struct_size = sizeof error};
  start();
  write_entry_that_does_not_load(1);
  CHECK_STATUS(rdm_device_get(77, &device), RDM_ERROR_INVALID_DEVICE);
  CHECK(answer_of(0, get_module(1)) == 1);
  /* The call succeeded, so the thread's last error is still that of the latest call that failed. */
  CHECK_OK(rdm_last_error(&error));
  CHECK_THAT(error.status == RDM_ERROR_INVALID_DEVICE, "%s", error.message);
  CHECK(compile_count() == 1 && disk_hit_count() == 1);
  CHECK(log_lines_with("does not load") == 1);
  run_reader(1, 1, 0, 1);
  end();
}

/* What another compiler of this driver made could not be told apart from its own. */
static void without_the_compilers_version_nothing_is_on_disk(void) {
  start();
  CHECK_OK(rdm_sim_inject("hiprtcVersion", 1, 2, 1, 0));
  CHECK(answer_of(0, get_module(1)) == 1);
  get_code(2);
  CHECK_OK(rdm_sim_clear_injections(NULL));
  CHECK(compile_count() == 2 && files_with_ending(RDM__CACHE_ENTRY_ENDING) == 0);
  /* Once it tells, all is as ever. */
  get_code(3);
  CHECK(compile_count() == 3 && has_entry(3));
  run_reader(3, 3, 0, 1);
  end();
}

/* ---- The limit ------------------------------------------------------------------------------------------------- */

static void set_limit(uint64_t bytes) {
  char text[32];
  snprintf(text, sizeof text, "%llu", (unsigned long long)bytes);
  CHECK(setenv("RDM_CACHE_MAX_BYTES", text, 1) == 0);
}

static uint64_t entry_size(int number) {
  struct stat status;
  char path[512];
  entry_path(number, path, sizeof path);
  CHECK(stat(path, &status) == 0);
  return (uint64_t)status.st_size;
}

static void the_least_recently_used_goes_first(void) {
  start();
  for (int number = 1; number <= 3; number++) {
    get_code(number);
    test_sleep_ns(20 * TEST_MILLISECOND);
  }
  set_limit(entry_size(1) * 3 + entry_size(1) / 2);
  /* The first one made is used again, by another process. */
  run_reader(1, 1, 0, 1);
  get_code(4);
  CHECK(has_entry(1) && !has_entry(2) && has_entry(3) && has_entry(4));
  test_sleep_ns(20 * TEST_MILLISECOND);
  get_code(5);
  CHECK(has_entry(1) && !has_entry(3) && has_entry(4) && has_entry(5));
  end();
}

static void what_is_over_the_limit_by_itself_drives_nothing_out(void) {
  start();
  get_code(1);
  CHECK(has_entry(1));
  set_limit(entry_size(1) + 100);
  answer_source large;
  char text[40000];
  char spaces[30000];
  const void *code = NULL;
  size_t size = 0;
  answer_source_make(2, &large);
  memset(spaces, ' ', sizeof spaces - 1);
  spaces[sizeof spaces - 1] = '\0';
  snprintf(text, sizeof text, "%s%s", large.text, spaces);
  large.source.source = text;
  CHECK_OK(rdm_code_get("sim", &large.source, &code, &size));
  CHECK(has_entry(1) && files_with_ending(RDM__CACHE_ENTRY_ENDING) == 1);
  set_limit(0);
  get_code(3);
  CHECK(files_with_ending(RDM__CACHE_ENTRY_ENDING) == 0);
  end();
}

static void a_limit_that_is_no_number_is_said_once(void) {
  start();
  CHECK(setenv("RDM_CACHE_MAX_BYTES", "1G", 1) == 0);
  get_code(1);
  get_code(2);
  CHECK(has_entry(1) && has_entry(2));
  CHECK(log_lines_with("RDM_CACHE_MAX_BYTES is \"1G\"") == 1);
  end();
}

/* ---- What is left behind --------------------------------------------------------------------------------------- */

static void write_file(const char *name, const char *text) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

static bool has_file(const char *name) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return access(path, F_OK) == 0;
}

static void temporary_files_of_the_dead_go_and_of_the_living_stay(void) {
  static const char dead[] = "0123456789abcdef0123456789abcdef.0011223344556677.part";
  static const char living[] = "fedcba9876543210fedcba9876543210.0011223344556677.part";
  static const char foreign[] = "some_notes_of_the_user_0123456789.part";
  start();
  write_file(dead, "half");
  write_file(living, "half");
  write_file(foreign, "mine");
  int open_folder = open(folder, O_RDONLY | O_DIRECTORY);
  int lock_file = rdm__cache_lock_open(open_folder);
  CHECK(lock_file >= 0 && rdm__cache_lock_try(lock_file, living));
  get_code(1);
  CHECK(!has_file(dead) && has_file(living) && has_file(foreign));
  rdm__cache_lock_drop(lock_file, living);
  get_code(2);
  CHECK(!has_file(living) && has_file(foreign));
  close(lock_file);
  close(open_folder);
  end();
}

static void foreign_files_are_never_evicted(void) {
  static const char foreign[] = "a_file_with_a_name_of_32_letters.code";
  uint64_t count = 0;
  start();
  write_file(foreign, "mine");
  get_code(1);
  CHECK_OK(rdm_cache_prune(0, &count, NULL));
  CHECK(count == 1 && has_file(foreign) && !has_entry(1));
  end();
}

static void descriptors_do_not_leak(void) {
  char path[512];
  start();
  get_code(0);
  unsigned before = open_descriptors();
  for (int number = 1; number <= 5; number++) {
    write_entry_that_does_not_load(number);
    entry_path(number, path, sizeof path);
    /* Not found, damaged and not ours by turns. */
    if (number % 3 == 0) CHECK(truncate(path, 10) == 0);
    if (number % 3 == 1) CHECK(unlink(path) == 0);
    if (number % 3 == 2) CHECK(chmod(path, 0666) == 0);
    get_code(number);
  }
  write_entry_that_does_not_load(9);
  get_code(9);
  rdm_module_source broken = {.struct_size = sizeof broken, .name = "broken", .source = "int"};
  const void *code = NULL;
  size_t size = 0;
  CHECK_STATUS(rdm_code_get("sim", &broken, &code, &size), RDM_ERROR_COMPILE);
  CHECK_OK(rdm_cache_check(1, NULL, NULL));
  CHECK_THAT(open_descriptors() == before, "%u descriptors before and %u after", before, open_descriptors());
  CHECK(compile_count() == 7 && disk_hit_count() == 1);
  end();
}

static void *get_stalled(void *argument) {
  (void)argument;
  get_code(1);
  return NULL;
}

/* The child has copies of all descriptors, and lives on. */
static void a_forked_child_keeps_no_turn(void) {
  int pipe_ends[2];
  char name[64];
  start();
  get_code(0);
  cache_entry_file(1, name, sizeof name);
  CHECK_OK(rdm_sim_inject("hiprtcCompileProgram", 1, 1, 0, 300 * TEST_MILLISECOND));
  pthread_t thread = test_start_thread(get_stalled, NULL);
  wait_until_inside("hiprtcCompileProgram", 1);
  CHECK(pipe(pipe_ends) == 0);
  pid_t child = fork();
  if (child == 0) {
    char byte;
    close(pipe_ends[1]);
    _exit(read(pipe_ends[0], &byte, 1) == 0 ? 0 : 1);
  }
  CHECK(child > 0);
  int open_folder = open(folder, O_RDONLY | O_DIRECTORY);
  int lock_file = rdm__cache_lock_open(open_folder);
  CHECK(!rdm__cache_lock_try(lock_file, name));
  test_join_thread(thread);
  CHECK(rdm__cache_lock_try(lock_file, name));
  close(lock_file);
  close(open_folder);
  close(pipe_ends[1]);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  end();
}

/* ---- The public functions -------------------------------------------------------------------------------------- */

typedef struct seen_entries {
  unsigned count;
  unsigned damaged;
  char first[64];
} seen_entries;

static void see_entry(const char *name, uint64_t size_bytes, int32_t valid, void *user_data) {
  seen_entries *seen = user_data;
  CHECK(size_bytes > 0);
  if (seen->count++ == 0) snprintf(seen->first, sizeof seen->first, "%s", name);
  if (valid == 0) seen->damaged++;
}

static void the_cache_is_described_checked_and_pruned(void) {
  char path[512];
  char name[64];
  uint64_t count = 0;
  uint64_t bytes = 0;
  seen_entries seen = {0};
  rdm_cache_info info = {.struct_size = sizeof info};
  start();
  for (int number = 1; number <= 3; number++) {
    get_code(number);
    test_sleep_ns(20 * TEST_MILLISECOND);
  }
  CHECK_OK(rdm_cache_get_info(&info));
  CHECK(info.enabled == 1 && info.entry_count == 3 && info.limit_bytes == UINT64_C(1) << 30);
  CHECK(info.size_bytes == entry_size(1) + entry_size(2) + entry_size(3));
  CHECK(strcmp(info.path, folder) == 0 && info.problem[0] == '\0');
  entry_path(2, path, sizeof path);
  CHECK(truncate(path, 100) == 0);
  CHECK_OK(rdm_cache_check(0, see_entry, &seen));
  CHECK(seen.count == 3 && seen.damaged == 1 && has_entry(2));
  cache_entry_file(1, name, sizeof name);
  CHECK(strcmp(seen.first, name) == 0);
  CHECK_OK(rdm_cache_check(1, NULL, NULL));
  CHECK(!has_entry(2));
  uint64_t size_of_first = entry_size(1);
  CHECK_OK(rdm_cache_prune(entry_size(3), &count, &bytes));
  CHECK(count == 1 && bytes == size_of_first && !has_entry(1) && has_entry(3));
  CHECK_OK(rdm_cache_prune(0, &count, &bytes));
  CHECK(count == 1 && !has_entry(3));
  /* The folder itself may go at any time, and is made again. */
  end();
  CHECK_STATUS(rdm_cache_check(0, NULL, NULL), RDM_ERROR_UNSUPPORTED);
  CHECK_STATUS(rdm_cache_prune(0, NULL, NULL), RDM_ERROR_UNSUPPORTED);
  CHECK_OK(rdm_cache_get_info(&info));
  CHECK(info.enabled == 1 && info.entry_count == 0 && info.problem[0] == '\0');
  get_code(4);
  CHECK(has_entry(4));
  end();
}

static void a_cache_turned_off_says_nothing(void) {
  rdm_cache_info info = {.struct_size = sizeof info};
  test_use_sim(1);
  log_lines_capture();
  get_code(1);
  CHECK_OK(rdm_cache_get_info(&info));
  CHECK(info.enabled == 0 && info.path[0] == '\0' && strstr(info.problem, "RDM_CACHE_DIR is empty") != NULL);
  CHECK(log_lines_with("cache") == 0 && compile_count() == 1);
  info.struct_size = 4;
  CHECK_STATUS(rdm_cache_get_info(&info), RDM_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rdm_cache_get_info(NULL), RDM_ERROR_INVALID_ARGUMENT);
}

const test_body disk_bodies[] = {{.name = "read_modules", .function = read_modules}, {0}};

const test_case disk_tests[] = {
    {.name = "a_later_process_compiles_nothing", .function = a_later_process_compiles_nothing},
    {.name = "without_the_compilers_version_nothing_is_on_disk",
     .function = without_the_compilers_version_nothing_is_on_disk},
    {.name = "a_whole_entry_that_does_not_load_is_compiled_anew",
     .function = a_whole_entry_that_does_not_load_is_compiled_anew},
    {.name = "the_least_recently_used_goes_first", .function = the_least_recently_used_goes_first},
    {.name = "what_is_over_the_limit_by_itself_drives_nothing_out",
     .function = what_is_over_the_limit_by_itself_drives_nothing_out},
    {.name = "a_limit_that_is_no_number_is_said_once", .function = a_limit_that_is_no_number_is_said_once},
    {.name = "temporary_files_of_the_dead_go_and_of_the_living_stay",
     .function = temporary_files_of_the_dead_go_and_of_the_living_stay},
    {.name = "foreign_files_are_never_evicted", .function = foreign_files_are_never_evicted},
    {.name = "descriptors_do_not_leak", .function = descriptors_do_not_leak},
    {.name = "a_forked_child_keeps_no_turn", .function = a_forked_child_keeps_no_turn},
    {.name = "the_cache_is_described_checked_and_pruned", .function = the_cache_is_described_checked_and_pruned},
    {.name = "a_cache_turned_off_says_nothing", .function = a_cache_turned_off_says_nothing},
    {0},
};
