/* The public functions on the cache on disk: describe, check, prune. They load no driver. */
#include "cache_folder.h"
#include "cache_lock.h"
#include "cache_store.h"
#include "runtime.h"
#include "status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The open folder, or an error that says why there is none. A folder that was never made is none. */
static rdm_status open_folder(int *out_folder) {
  rdm_status status = rdm__runtime_check();
  if (status != RDM_OK) return status;
  char reason[1024];
  *out_folder = rdm__cache_folder_open(false, reason, sizeof reason);
  return *out_folder >= 0 ? RDM_OK : rdm__fail(RDM_ERROR_UNSUPPORTED, "no cache on disk: %s", reason);
}

/* Why the folder can not be made: the part of its path that is there does not let us. 0 where nothing is in the way. */
static int error_of_making(char *path) {
  while (access(path, F_OK) != 0) {
    if (errno != ENOENT) return errno;
    char *slash = strrchr(path, '/');
    if (slash == NULL) return ENOENT;
    slash[slash == path ? 1 : 0] = '\0';
  }
  return faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

static void describe_missing(char *path, rdm_cache_info *info) {
  int error = error_of_making(path);
  info->problem[0] = '\0';
  info->enabled = error == 0 ? 1 : 0;
  if (error != 0)
    snprintf(info->problem, sizeof info->problem, "it can not be made: %.800s: %s", path, strerror(error));
}

static void describe_folder(int folder, rdm_cache_info *info) {
  rdm__cache_list list;
  info->problem[0] = '\0';
  if (!rdm__cache_list_read(folder, &list)) {
    snprintf(info->problem, sizeof info->problem, "it can not be listed: %s", strerror(errno));
    return;
  }
  info->enabled = 1;
  info->entry_count = list.count;
  info->size_bytes = list.size_bytes;
  rdm__cache_list_free(&list);
  if (faccessat(folder, ".", W_OK, AT_EACCESS) != 0) {
    snprintf(info->problem, sizeof info->problem, "it can be read and not be written to: %s", strerror(errno));
  }
}

rdm_status rdm_cache_get_info(rdm_cache_info *out_info) {
  rdm_status status = rdm__runtime_check();
  if (status != RDM_OK) return status;
  rdm_cache_info info = {.struct_size = sizeof info, .limit_bytes = rdm__cache_limit_bytes()};
  char path[4096];
  if (!rdm__cache_folder_path(path, sizeof path)) {
    snprintf(info.problem, sizeof info.problem, "%.1000s", path);
    return rdm__struct_copy_out("out_info", &info, sizeof info, offsetof(rdm_cache_info, path), out_info);
  }
  snprintf(info.path, sizeof info.path, "%.1000s", path);
  int folder = rdm__cache_folder_open(false, info.problem, sizeof info.problem);
  if (folder >= 0) {
    describe_folder(folder, &info);
    close(folder);
  } else if (access(path, F_OK) != 0 && errno == ENOENT) {
    describe_missing(path, &info);
  }
  return rdm__struct_copy_out("out_info", &info, sizeof info, offsetof(rdm_cache_info, path), out_info);
}

static bool is_valid(int folder, const char *name) {
  int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  /* One that went meanwhile, or that this process has no descriptor left for, is not damaged. */
  if (file < 0) return errno == ENOENT || errno == EMFILE || errno == ENFILE || errno == ENOMEM;
  struct stat status;
  size_t code_size_bytes = 0;
  char *code = NULL;
  if (fstat(file, &status) == 0 && rdm__cache_file_is_ours(&status)) {
    code = rdm__cache_entry_read(file, name, NULL, &code_size_bytes);
  }
  close(file);
  bool valid = code != NULL;
  free(code);
  return valid;
}

/* Under the entry's turn, since a process may be replacing it just now; one that has its turn will see to it. */
static void remove_if_damaged(int folder, int lock_file, const char *name) {
  if (lock_file < 0 || !rdm__cache_lock_try(lock_file, name)) return;
  if (!is_valid(folder, name)) rdm__cache_remove(folder, name);
  rdm__cache_lock_drop(lock_file, name);
}

rdm_status rdm_cache_check(int32_t remove_damaged, rdm_cache_handler handler, void *user_data) {
  int folder = -1;
  rdm_status status = open_folder(&folder);
  if (status != RDM_OK) return status;
  rdm__cache_list list;
  if (!rdm__cache_list_read(folder, &list)) {
    close(folder);
    return rdm__fail(RDM_ERROR_RESOURCE, "the cache's folder can not be listed");
  }
  int lock_file = remove_damaged != 0 ? rdm__cache_lock_open(folder) : -1;
  for (size_t i = 0; i < list.count; i++) {
    const rdm__cache_file *file = &list.files[i];
    bool valid = is_valid(folder, file->name);
    if (!valid && remove_damaged != 0) remove_if_damaged(folder, lock_file, file->name);
    if (handler != NULL) handler(file->name, file->size_bytes, valid ? 1 : 0, user_data);
  }
  rdm__cache_list_free(&list);
  if (lock_file >= 0) close(lock_file);
  close(folder);
  return RDM_OK;
}

rdm_status rdm_cache_prune(uint64_t limit_bytes, uint64_t *out_entry_count, uint64_t *out_size_bytes) {
  int folder = -1;
  rdm_status status = open_folder(&folder);
  if (status != RDM_OK) return status;
  uint64_t size_bytes = rdm__cache_evict(folder, limit_bytes, NULL, out_entry_count);
  if (out_size_bytes != NULL) *out_size_bytes = size_bytes;
  close(folder);
  return RDM_OK;
}
