#include "cache_store.h"

#include "cache_lock.h"
#include "clock.h"
#include "environment.h"
#include "log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t default_limit_bytes = UINT64_C(1) << 30;

enum { NAME_LENGTH = RDM__CACHE_NAME_SIZE - 1, DEEPEST_FOLDER = 8 };

static bool begins_with_name(const char *file_name) {
  return strspn(file_name, "0123456789abcdef") == NAME_LENGTH;
}

static bool is_entry_name(const char *file_name) {
  return begins_with_name(file_name) && strcmp(file_name + NAME_LENGTH, RDM__CACHE_ENTRY_ENDING) == 0;
}

static bool is_temporary_name(const char *file_name) {
  size_t length = strlen(file_name);
  size_t ending = strlen(RDM__CACHE_TEMPORARY_ENDING);
  return begins_with_name(file_name) && length > ending &&
         strcmp(file_name + length - ending, RDM__CACHE_TEMPORARY_ENDING) == 0;
}

/* A listing of its own, so that two threads can read one open folder. Null, with errno, where that fails. */
static DIR *open_listing(int folder, const char *name) {
  int again = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR *listing = again < 0 ? NULL : fdopendir(again);
  if (listing == NULL && again >= 0) close(again);
  return listing;
}

/* `depth` bounds how deep into folders this goes. */
static bool remove_any(int folder, const char *name, int depth) {
  if (unlinkat(folder, name, 0) == 0 || errno == ENOENT) return true;
  if (errno != EISDIR && errno != EPERM) return false;
  if (unlinkat(folder, name, AT_REMOVEDIR) == 0) return true;
  DIR *listing = depth == 0 ? NULL : open_listing(folder, name);
  if (listing == NULL) return false;
  for (struct dirent *each = readdir(listing); each != NULL; each = readdir(listing)) {
    if (strcmp(each->d_name, ".") == 0 || strcmp(each->d_name, "..") == 0) continue;
    remove_any(dirfd(listing), each->d_name, depth - 1);
  }
  closedir(listing);
  return unlinkat(folder, name, AT_REMOVEDIR) == 0;
}

bool rdm__cache_remove(int folder, const char *name) {
  return remove_any(folder, name, DEEPEST_FOLDER);
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
  DIR *listing = open_listing(folder, ".");
  if (listing == NULL) return false;
  size_t capacity = 0;
  bool complete = true;
  for (struct dirent *each = readdir(listing); complete && each != NULL; each = readdir(listing)) {
    struct stat status;
    if (is_temporary_name(each->d_name)) out_list->has_temporary = true;
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

/* A temporary file whose turn nobody has is what a killed writer left; with the turn of its own name, also that. */
static void remove_left_behind(int folder, const char *own_name) {
  int lock_file = rdm__cache_lock_open(folder);
  DIR *listing = lock_file < 0 ? NULL : open_listing(folder, ".");
  for (struct dirent *each = NULL; listing != NULL && (each = readdir(listing)) != NULL;) {
    if (!is_temporary_name(each->d_name)) continue;
    if (own_name != NULL && strncmp(each->d_name, own_name, NAME_LENGTH) == 0) {
      rdm__cache_remove(folder, each->d_name);
      continue;
    }
    if (!rdm__cache_lock_try(lock_file, each->d_name)) continue;
    rdm__cache_remove(folder, each->d_name);
    rdm__cache_lock_drop(lock_file, each->d_name);
  }
  if (listing != NULL) closedir(listing);
  if (lock_file >= 0) close(lock_file);
}

uint64_t rdm__cache_evict(int folder, uint64_t limit_bytes, const char *own_name, uint64_t *out_count) {
  rdm__cache_list list;
  uint64_t removed_bytes = 0;
  uint64_t removed_count = 0;
  if (rdm__cache_list_read(folder, &list)) {
    uint64_t left_bytes = list.size_bytes;
    for (size_t i = 0; i < list.count && (left_bytes > limit_bytes || limit_bytes == 0); i++) {
      const rdm__cache_file *file = &list.files[i];
      bool was_there = unlinkat(folder, file->name, 0) == 0;
      /* One that another process has removed meanwhile is gone as well, but not by us. */
      if (!was_there && errno != ENOENT) {
        was_there = rdm__cache_remove(folder, file->name);
        if (!was_there) continue;
      }
      left_bytes -= file->size_bytes;
      removed_bytes += was_there ? file->size_bytes : 0;
      removed_count += was_there ? 1 : 0;
    }
    if (list.has_temporary) remove_left_behind(folder, own_name);
    rdm__cache_list_free(&list);
  }
  if (out_count != NULL) *out_count = removed_count;
  return removed_bytes;
}

uint64_t rdm__cache_limit_bytes(void) {
  const char *text = rdm__environment_text("RDM_CACHE_MAX_BYTES");
  uint64_t limit = default_limit_bytes;
  if (text == NULL || rdm__parse_whole_number(text, &limit)) return limit;
  static atomic_bool warned;
  if (!atomic_exchange_explicit(&warned, true, memory_order_relaxed)) {
    rdm__log(RDM_LOG_WARNING, "RDM_CACHE_MAX_BYTES is \"%s\", which is not a whole number of bytes; the limit is %llu",
             text, (unsigned long long)default_limit_bytes);
  }
  return default_limit_bytes;
}
