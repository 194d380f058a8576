/* What the cache on disk takes for code, and what it does not; and that several processes compile a source once. */
#include "cache_entry.h"
#include "cache_key.h"
#include "cache_store.h"
#include "log_lines.h"
#include "module_cache.h"
#include "runtime.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[256];

static void start(void) {
  test_use_sim(1);
  log_lines_capture();
  use_new_cache_folder(folder, sizeof folder);
}

static void entry_path(int number, char *out_path, size_t size) {
  char name[64];
  cache_entry_file(number, name, sizeof name);
  snprintf(out_path, size, "%s/%s", folder, name);
}

static void store(int number) {
  answer_source source;
  const void *code = NULL;
  size_t size = 0;
  answer_source_make(number, &source);
  CHECK_OK(rdm_code_get("sim", &source.source, &code, &size));
}

/* What a process that finds the entry with this number gets: it says how many it compiled, and answers right. */
static void check_reader_with(const char *variable, int number, unsigned compiles, unsigned hits) {
  char cache[300];
  char numbers[64];
  char expected[64];
  process_outcome outcome;
  snprintf(cache, sizeof cache, "TEST_CACHE_DIR=%s", folder);
  snprintf(numbers, sizeof numbers, "TEST_NUMBERS=%d %d", number, number);
  const char *environment[] = {cache, numbers, variable, NULL};
  test_run_body("read_modules", environment, 60, &outcome);
  CHECK_THAT(outcome.exit_code == 0, "the reader ended with %d, signal %d: %s", outcome.exit_code, outcome.signal,
             outcome.standard_error);
  snprintf(expected, sizeof expected, "compiled %u, found %u\n", compiles, hits);
  CHECK_THAT(strcmp(outcome.standard_output, expected) == 0, "the reader %s", outcome.standard_output);
}

static void check_reader(int number, unsigned compiles, unsigned hits) {
  check_reader_with(NULL, number, compiles, hits);
}

static void a_damaged_entry_is_compiled_anew(void) {
  char path[512];
  struct stat status;
  start();
  store(1);
  entry_path(1, path, sizeof path);
  check_reader(1, 0, 1);
  CHECK(stat(path, &status) == 0);
  int file = open(path, O_RDWR);
  char byte = 0;
  off_t middle = status.st_size - status.st_size / 4;
  CHECK(file >= 0 && pread(file, &byte, 1, middle) == 1);
  byte = (char)~byte;
  CHECK(pwrite(file, &byte, 1, middle) == 1);
  close(file);
  check_reader(1, 1, 0);
  check_reader(1, 0, 1);
  remove_cache_folder(folder);
}

static void an_entry_under_another_name_is_compiled_anew(void) {
  char first[512];
  char second[512];
  start();
  store(1);
  entry_path(1, first, sizeof first);
  entry_path(2, second, sizeof second);
  CHECK(rename(first, second) == 0);
  check_reader(2, 1, 0);
  remove_cache_folder(folder);
}

static void an_entry_that_is_a_link_is_compiled_anew(void) {
  char path[512];
  char elsewhere[600];
  start();
  store(1);
  entry_path(1, path, sizeof path);
  snprintf(elsewhere, sizeof elsewhere, "%s.elsewhere", path);
  CHECK(rename(path, elsewhere) == 0);
  CHECK(symlink(elsewhere, path) == 0);
  check_reader(1, 1, 0);
  remove_cache_folder(folder);
}

static void an_entry_that_others_can_write_to_is_compiled_anew(void) {
  char path[512];
  start();
  store(1);
  entry_path(1, path, sizeof path);
  CHECK(chmod(path, 0666) == 0);
  check_reader(1, 1, 0);
  remove_cache_folder(folder);
}

static void a_folder_that_others_can_write_to_is_not_used(void) {
  char path[512];
  start();
  CHECK(chmod(folder, 0777) == 0);
  store(1);
  entry_path(1, path, sizeof path);
  CHECK(access(path, F_OK) != 0);
  CHECK(log_lines_with("other users can write to it") == 1);
  remove_cache_folder(folder);
}

/* A compiler at the same path whose file was exchanged for another. */
static void what_an_exchanged_compiler_made_is_compiled_anew(void) {
  char path[300];
  char variable[400];
  start();
  snprintf(path, sizeof path, "%s/compiler", folder);
  snprintf(variable, sizeof variable, "RDM_SIM_COMPILER=%s", path);
  for (int version = 1; version <= 2; version++) {
    FILE *script = fopen(path, "w");
    CHECK(script != NULL);
    fprintf(script, "#!/bin/sh\n# Version %.*s\nexec cc \"$@\"\n", version, "II");
    fclose(script);
    CHECK(chmod(path, 0700) == 0);
    check_reader_with(variable, 1, 1, 0);
    check_reader_with(variable, 1, 0, 1);
  }
  remove_cache_folder(folder);
}

/* ---- Several processes ------------------------------------------------------------------------------------------ */

enum { PROCESSES = 4 };

static unsigned compiled[PROCESSES];

static void read_at_once(unsigned number) {
  char cache[300];
  process_outcome outcome;
  snprintf(cache, sizeof cache, "TEST_CACHE_DIR=%s", folder);
  /* The compile takes so long that the others come meanwhile. */
  const char *environment[] = {cache, "TEST_NUMBERS=7 7", "RDM_SIM_INJECT=hiprtcCompileProgram:1:1:0:500000000", NULL};
  test_run_body("read_modules", environment, 60, &outcome);
  CHECK_THAT(outcome.exit_code == 0, "a process ended with %d: %s", outcome.exit_code, outcome.standard_error);
  CHECK(sscanf(outcome.standard_output, "compiled %u", &compiled[number]) == 1);
}

static void processes_at_once_compile_a_source_once(void) {
  start();
  test_run_threads(PROCESSES, read_at_once);
  unsigned all = 0;
  for (int i = 0; i < PROCESSES; i++) all += compiled[i];
  CHECK_THAT(all == 1, "%d processes compiled one source %u times", PROCESSES, all);
  remove_cache_folder(folder);
}

const test_case trust_tests[] = {
    {.name = "a_damaged_entry_is_compiled_anew", .function = a_damaged_entry_is_compiled_anew},
    {.name = "an_entry_under_another_name_is_compiled_anew", .function = an_entry_under_another_name_is_compiled_anew},
    {.name = "an_entry_that_is_a_link_is_compiled_anew", .function = an_entry_that_is_a_link_is_compiled_anew},
    {.name = "an_entry_that_others_can_write_to_is_compiled_anew",
     .function = an_entry_that_others_can_write_to_is_compiled_anew},
    {.name = "a_folder_that_others_can_write_to_is_not_used",
     .function = a_folder_that_others_can_write_to_is_not_used},
    {.name = "what_an_exchanged_compiler_made_is_compiled_anew",
     .function = what_an_exchanged_compiler_made_is_compiled_anew},
    {.name = "processes_at_once_compile_a_source_once", .function = processes_at_once_compile_a_source_once},
    {0},
};
