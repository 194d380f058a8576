#include "cache_store.h"

#include "clock.h"
#include "environment.h"
#include "log.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t default_limit_bytes = UINT64_C(1) << 30;

static bool is_entry_name(const char *name) {
  return strlen(name) == RDM__CACHE_NAME_SIZE - 1 + strlen(RDM__CACHE_ENTRY_ENDING) &&
         strcmp(name + RDM__CACHE_NAME_SIZE - 1, RDM__CACHE_ENTRY_ENDING) == 0;
}

static int by_last_use(const void *left, const void *right) {
  uint64_t a = ((const rdm__cache_file *)left)->last_used_ns;
  uint64_t b = ((const rdm__cache_file *)right)->last_used_ns;
  return (a > b) - (a < b);
}

/* Adds a file to a list that doubles. */
static bool append(rdm__cache_list *list, size_t *capacity, const char *name, const struct stat *status) {
  if (list->count == *capacity) {
    size_t larger = *capacity == 0 ? 64 : *capacity * 2;
    rdm__cache_file *files = realloc(list->files, larger * sizeof *files);
    if (files == NULL) return false;
    list->files = files;
    *capacity = larger;
  }
  rdm__cache_file *file = &list->files[list->count++];
  memset(file, 0, sizeof *file);
  memcpy(file->name, name, strlen(name) + 1);
  file->size_bytes = (uint64_t)status->st_size;
  file->last_used_ns = (uint64_t)status->st_mtim.tv_sec * RDM__NS_PER_SECOND + (uint64_t)status->st_mtim.tv_nsec;
  list->size_bytes += file->size_bytes;
  return true;
}

bool rdm__cache_list_read(int folder, rdm__cache_list *out_list) {
  *out_list = (rdm__cache_list){0};
  int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *listing = again < 0 ? NULL : fdopendir(again);
  if (listing == NULL) {
    if (again >= 0) close(again);
    return false;
  }
  size_t capacity = 0;
  bool complete = true;
  for (struct dirent *each = readdir(listing); complete && each != NULL; each = readdir(listing)) {
    struct stat status;
    /* One that another process has just removed is simply not there. */
    if (!is_entry_name(each->d_name) || fstatat(folder, each->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    complete = append(out_list, &capacity, each->d_name, &status);
  }
  closedir(listing);
  if (!complete) {
    rdm__cache_list_free(out_list);
    return false;
  }
  if (out_list->count > 0) qsort(out_list->files, out_list->count, sizeof *out_list->files, by_last_use);
  return true;
}

void rdm__cache_list_free(rdm__cache_list *list) {
  free(list->files);
  *list = (rdm__cache_list){0};
}

uint64_t rdm__cache_evict(int folder, uint64_t limit_bytes, uint64_t *out_count) {
  rdm__cache_list list;
  uint64_t removed_bytes = 0;
  uint64_t removed_count = 0;
  if (rdm__cache_list_read(folder, &list)) {
    for (size_t i = 0; i < list.count && list.size_bytes - removed_bytes > limit_bytes; i++) {
      if (unlinkat(folder, list.files[i].name, 0) != 0) continue;
      removed_bytes += list.files[i].size_bytes;
      removed_count++;
    }
    rdm__cache_list_free(&list);
  }
  if (out_count != NULL) *out_count = removed_count;
  return removed_bytes;
}

uint64_t rdm__cache_limit_bytes(void) {
  const char *text = getenv("RDM_CACHE_MAX_BYTES");
  uint64_t limit = default_limit_bytes;
  if (text == NULL || rdm__parse_whole_number(text, &limit)) return limit;
  static atomic_bool warned;
  if (!atomic_exchange_explicit(&warned, true, memory_order_relaxed)) {
    rdm__log(RDM_LOG_WARNING, "RDM_CACHE_MAX_BYTES is \"%s\", which is not a whole number of bytes; the limit is %llu",
             text, (unsigned long long)default_limit_bytes);
  }
  return default_limit_bytes;
}
