#include "cache_folder.h"

#include "environment.h"
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char folder_name[] = "rocm-device-map";

bool rdm__cache_folder_path(char *buffer, size_t size) {
  const char *chosen = getenv("RDM_CACHE_DIR");
  if (chosen != NULL && chosen[0] == '\0') {
    snprintf(buffer, size, "RDM_CACHE_DIR is empty, which turns the cache on disk off");
    return false;
  }
  const char *xdg = rdm__environment_text("XDG_CACHE_HOME");
  const char *home = rdm__environment_text("HOME");
  int length = 0;
  if (chosen != NULL) {
    length = snprintf(buffer, size, "%s", chosen);
  } else if (xdg != NULL && xdg[0] == '/') {
    length = snprintf(buffer, size, "%s/%s", xdg, folder_name);
  } else if (home != NULL && home[0] == '/') {
    length = snprintf(buffer, size, "%s/.cache/%s", home, folder_name);
  } else {
    snprintf(buffer, size, "RDM_CACHE_DIR, XDG_CACHE_HOME and HOME are not set");
    return false;
  }
  /* Other parts of a process change the working folder, and entries would be strewn about. */
  if (length > 0 && (size_t)length < size && buffer[0] == '/') return true;
  bool too_long = length < 0 || (size_t)length >= size;
  if (too_long) {
    snprintf(buffer, size, "the folder's path is longer than %zu bytes", size - 1);
  } else {
    snprintf(buffer, size, "RDM_CACHE_DIR is \"%.200s\", which does not begin with \"/\"", chosen);
  }
  return false;
}

/* Makes the folder and what is missing above it. What fails is seen when the folder is opened. */
static void make_folders(const char *path) {
  char part[4096];
  snprintf(part, sizeof part, "%s", path);
  for (char *slash = strchr(part + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    mkdir(part, 0700);
    *slash = '/';
  }
  mkdir(part, 0700);
}

static const char *problem_of(const struct stat *status) {
  if (status->st_uid != geteuid()) return "it belongs to another user";
  if ((status->st_mode & (S_IWGRP | S_IWOTH)) != 0) return "other users can write to it (chmod 700 it)";
  return NULL;
}

int rdm__cache_folder_open(bool create, char *reason, size_t reason_size) {
  char path[4096];
  if (!rdm__cache_folder_path(path, sizeof path)) {
    snprintf(reason, reason_size, "%.300s", path);
    return -1;
  }
  const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  int folder = open(path, flags);
  if (folder < 0 && errno == ENOENT && create) {
    make_folders(path);
    folder = open(path, flags);
  }
  if (folder < 0) {
    snprintf(reason, reason_size, "%.600s: %s", path, strerror(errno));
    return -1;
  }
  struct stat status;
  const char *problem = fstat(folder, &status) != 0 ? strerror(errno) : problem_of(&status);
  if (problem == NULL) return folder;
  snprintf(reason, reason_size, "%.600s: %s", path, problem);
  close(folder);
  return -1;
}

bool rdm__cache_file_is_ours(const struct stat *status) {
  return S_ISREG(status->st_mode) && problem_of(status) == NULL;
}

void rdm__cache_folder_complain(const char *reason) {
  static atomic_bool complained;
  if (atomic_exchange_explicit(&complained, true, memory_order_relaxed)) return;
  rdm__log(RDM_LOG_WARNING, "no cache of compiled kernels on disk: %s; RDM_CACHE_DIR chooses another folder", reason);
}
