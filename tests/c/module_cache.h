/* The test groups of module_cache, the processes that some of them start, and what they share. */
#ifndef TEST_MODULE_CACHE_H
#define TEST_MODULE_CACHE_H

#include "test.h"

extern const test_case memory_tests[];
extern const test_case failure_tests[];
extern const test_case argument_tests[];
extern const test_case disk_tests[];
extern const test_body disk_bodies[];
extern const test_case kill_tests[];
extern const test_case module_field_log_tests[];
extern const test_case build_tests[];
extern const test_case trust_tests[];

/* A source whose kernel `answer(int *out)` writes a number, under a name. Both differ with the number. */
typedef struct answer_source {
  char name[64];
  char text[256];
  rdm_module_source source;
} answer_source;

void answer_source_make(int number, answer_source *out_source);

/* Launches the kernel `answer` of a module on a new stream and gives what it wrote. */
int answer_of(int32_t device_index, rdm_module module);

uint64_t compile_count(void);
uint64_t disk_hit_count(void);

/* How many calls to an entry point have not returned. */
unsigned calls_inside(const char *entry_point);

/* Waits until that many threads are inside a call to the entry point. */
void wait_until_inside(const char *entry_point, unsigned count);

/* How much processor time the process has used, in nanoseconds. */
uint64_t process_time_ns(void);

/* Makes a fresh folder for the disk cache and sets RDM_CACHE_DIR to it. */
void use_new_cache_folder(char *out_path, size_t size);

/* The name of the file on disk that keeps the code of answer_source_make's source. */
void cache_entry_file(int number, char *out_name, size_t size);

/* Removes the folder and what is in it. */
void remove_cache_folder(const char *path);

#endif
