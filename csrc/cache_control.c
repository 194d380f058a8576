/* The public functions on the cache on disk: describe, check, prune. They load no driver. */
#include "cache_folder.h"
#include "cache_store.h"
#include "runtime.h"
#include "status.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
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
  struct stat folder_status;
  if (stat(path, &folder_status) != 0) {
    info.enabled = 1;
  } else {
    int folder = rdm__cache_folder_open(false, info.problem, sizeof info.problem);
    rdm__cache_list list;
    if (folder >= 0 && rdm__cache_list_read(folder, &list)) {
      info.problem[0] = '\0';
      info.enabled = 1;
      info.entry_count = list.count;
      info.size_bytes = list.size_bytes;
      rdm__cache_list_free(&list);
    }
    if (folder >= 0) close(folder);
  }
  return rdm__struct_copy_out("out_info", &info, sizeof info, offsetof(rdm_cache_info, path), out_info);
}

static bool is_valid(int folder, const char *name) {
  int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return false;
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

rdm_status rdm_cache_check(int32_t remove_damaged, rdm_cache_handler handler, void *user_data) {
  int folder = -1;
  rdm_status status = open_folder(&folder);
  if (status != RDM_OK) return status;
  rdm__cache_list list;
  if (!rdm__cache_list_read(folder, &list)) {
    close(folder);
    return rdm__fail(RDM_ERROR_RESOURCE, "the cache's folder can not be listed");
  }
  for (size_t i = 0; i < list.count; i++) {
    const rdm__cache_file *file = &list.files[i];
    bool valid = is_valid(folder, file->name);
    if (!valid && remove_damaged != 0) unlinkat(folder, file->name, 0);
    if (handler != NULL) handler(file->name, file->size_bytes, valid ? 1 : 0, user_data);
  }
  rdm__cache_list_free(&list);
  close(folder);
  return RDM_OK;
}

rdm_status rdm_cache_prune(uint64_t limit_bytes, uint64_t *out_entry_count, uint64_t *out_size_bytes) {
  int folder = -1;
  rdm_status status = open_folder(&folder);
  if (status != RDM_OK) return status;
  uint64_t size_bytes = rdm__cache_evict(folder, limit_bytes, out_entry_count);
  if (out_size_bytes != NULL) *out_size_bytes = size_bytes;
  close(folder);
  return RDM_OK;
}
