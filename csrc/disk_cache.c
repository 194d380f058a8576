#include "disk_cache.h"

#include "cache_folder.h"
#include "cache_store.h"
#include "clock.h"
#include "lock.h"
#include "log.h"
#include "runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char lock_file_name[] = "lock";
static const uint64_t longest_wait_ns = 60 * RDM__NS_PER_SECOND;
static const uint64_t turn_poll_ns = 5 * RDM__NS_PER_MS;

enum { FILE_NAME_SIZE = RDM__CACHE_NAME_SIZE + 8 };

static void file_name(const char *name, const char *ending, char out[FILE_NAME_SIZE]) {
  snprintf(out, FILE_NAME_SIZE, "%s%s", name, ending);
}

/* A whole entry for the key that may be trusted, or null. What is there and is no such entry is removed. */
static char *read_entry(int folder, const char *name, const rdm__cache_key *key, size_t *out_code_size_bytes) {
  char path[FILE_NAME_SIZE];
  file_name(name, RDM__CACHE_ENTRY_ENDING, path);
  int file = openat(folder, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    if (errno != ENOENT) unlinkat(folder, path, 0);
    return NULL;
  }
  struct stat status;
  char *code = NULL;
  if (fstat(file, &status) == 0 && rdm__cache_file_is_ours(&status)) {
    code = rdm__cache_entry_read(file, name, key, out_code_size_bytes);
  }
  if (code != NULL) {
    /* The time of the last use, which eviction goes by. A read-only folder does without. */
    (void)futimens(file, NULL);
  } else {
    rdm__log(RDM_LOG_WARNING, "the cached kernel %s is damaged or not ours; it is compiled anew", path);
    unlinkat(folder, path, 0);
  }
  close(file);
  return code;
}

/*
 * Each key has one byte of the lock file, by its hash. Two keys that share a byte wait for each other, which is only
 * slower. The lock belongs to the open file, so it also works between threads, and goes with the process.
 */
static bool try_lock(int lock_file, const char *name) {
  char digits[9] = {0};
  memcpy(digits, name, 7);
  struct flock range = {
      .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)strtoul(digits, NULL, 16), .l_len = 1};
  return fcntl(lock_file, F_OFD_SETLK, &range) == 0;
}

static bool take_turn(rdm__cache_turn *turn) {
  turn->lock_file = openat(turn->folder, lock_file_name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (turn->lock_file < 0) {
    char reason[256];
    snprintf(reason, sizeof reason, "its lock file can not be opened: %s", strerror(errno));
    rdm__cache_folder_complain(reason);
    return false;
  }
  uint64_t give_up_ns = rdm__now_ns() + longest_wait_ns;
  while (!try_lock(turn->lock_file, turn->name)) {
    bool busy = errno == EAGAIN || errno == EACCES || errno == EINTR;
    if (!busy || rdm__now_ns() >= give_up_ns || rdm__runtime_is_over()) {
      close(turn->lock_file);
      return false;
    }
    struct timespec pause = rdm__timespec(turn_poll_ns);
    nanosleep(&pause, NULL);
  }
  return true;
}

char *rdm__disk_cache_get(const rdm__cache_key *key, size_t *out_code_size_bytes, rdm__cache_turn *out_turn) {
  rdm__assert_no_leaf_held();
  *out_turn = (rdm__cache_turn){0};
  char reason[1024];
  int folder = rdm__cache_folder_open(true, reason, sizeof reason);
  if (folder < 0) {
    const char *chosen = getenv("RDM_CACHE_DIR");
    /* Turned off on purpose is nothing to complain of. */
    if (chosen == NULL || chosen[0] != '\0') rdm__cache_folder_complain(reason);
    return NULL;
  }
  rdm__cache_turn turn = {.folder = folder};
  rdm__cache_entry_name(key, turn.name);
  char *code = read_entry(folder, turn.name, key, out_code_size_bytes);
  if (code == NULL && take_turn(&turn)) {
    /* The process that had the turn before may have stored what we want. */
    code = read_entry(folder, turn.name, key, out_code_size_bytes);
    if (code == NULL) {
      turn.is_held = true;
      *out_turn = turn;
      return NULL;
    }
    close(turn.lock_file);
  }
  close(folder);
  return code;
}

void rdm__disk_cache_remove(const rdm__cache_key *key) {
  char reason[1024];
  int folder = rdm__cache_folder_open(false, reason, sizeof reason);
  if (folder < 0) return;
  char name[RDM__CACHE_NAME_SIZE];
  char path[FILE_NAME_SIZE];
  rdm__cache_entry_name(key, name);
  file_name(name, RDM__CACHE_ENTRY_ENDING, path);
  unlinkat(folder, path, 0);
  close(folder);
}

/* Under the key's turn nobody else writes this temporary file, so what a killed process left is just written over. */
static bool store(const rdm__cache_turn *turn, const rdm__cache_key *key, const char *code, size_t code_size_bytes) {
  char temporary[FILE_NAME_SIZE];
  char path[FILE_NAME_SIZE];
  file_name(turn->name, RDM__CACHE_TEMPORARY_ENDING, temporary);
  file_name(turn->name, RDM__CACHE_ENTRY_ENDING, path);
  unlinkat(turn->folder, temporary, 0);
  int file = openat(turn->folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return false;
  bool stored = rdm__cache_entry_write(file, key, code, code_size_bytes) && fsync(file) == 0;
  stored = close(file) == 0 && stored;
  stored = stored && renameat(turn->folder, temporary, turn->folder, path) == 0;
  if (!stored) unlinkat(turn->folder, temporary, 0);
  return stored;
}

void rdm__disk_cache_end_turn(rdm__cache_turn *turn, const rdm__cache_key *key, const char *code,
                              size_t code_size_bytes) {
  if (!turn->is_held) return;
  if (code != NULL) {
    if (store(turn, key, code, code_size_bytes)) {
      rdm__cache_evict(turn->folder, rdm__cache_limit_bytes(), NULL);
    } else {
      char reason[256];
      snprintf(reason, sizeof reason, "an entry can not be written: %s", strerror(errno));
      rdm__cache_folder_complain(reason);
    }
  }
  close(turn->lock_file);
  close(turn->folder);
  turn->is_held = false;
}
