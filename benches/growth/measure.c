#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

void growth_point(const char *series, const char *what, uint64_t n, double value, const char *must, double limit) {
  printf("{\"series\":\"%s\",\"what\":\"%s\",\"n\":%llu,\"value\":%.3f,\"must\":\"%s\",\"limit\":%.0f}\n", series, what,
         (unsigned long long)n, value, must, limit);
  fflush(stdout);
}

double growth_resident_kib(void) {
  unsigned long size = 0, resident = 0;
  FILE *file = fopen("/proc/self/statm", "re");
  if (file == NULL || fscanf(file, "%lu %lu", &size, &resident) != 2) {
    fprintf(stderr, "growth: /proc/self/statm can not be read\n");
    exit(EXIT_FAILURE);
  }
  fclose(file);
  return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1024;
}

static uint64_t now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

uint64_t growth_processor_ns(void) {
  return now(CLOCK_PROCESS_CPUTIME_ID);
}

/* Of short rounds, since on a busy machine a long one never has the caches to itself. */
enum { SHORT_ROUNDS = 10 };

double growth_least_ns(int rounds, uint64_t count, void (*operation)(void *context, uint64_t index), void *context) {
  double least = 1e18;
  uint64_t share = count / SHORT_ROUNDS;
  for (int round = 0; round < rounds * SHORT_ROUNDS; round++) {
    uint64_t begin = now(CLOCK_THREAD_CPUTIME_ID);
    for (uint64_t i = 0; i < share; i++) operation(context, i);
    double each = (double)(now(CLOCK_THREAD_CPUTIME_ID) - begin) / (double)share;
    if (each < least) least = each;
  }
  return least;
}

void growth_check(rdm_status status, const char *doing) {
  if (status == RDM_OK) return;
  fprintf(stderr, "growth: %s: %s: %s\n", doing, rdm_status_name(status), rdm_last_error_message());
  exit(EXIT_FAILURE);
}
