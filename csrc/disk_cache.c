#include "disk_cache.h"

#include "cache_folder.h"
#include "cache_lock.h"
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
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t longest_wait_ns = 60 * RDM__NS_PER_SECOND;
static const uint64_t turn_poll_ns = 5 * RDM__NS_PER_MS;

/* What the folder lets us do no longer, or never did; said once. */
static void complain(const char *what, int error) {
  char path[512];
  char reason[1024];
  if (!rdm__cache_folder_path(path, sizeof path)) path[0] = '\0';
  snprintf(reason, sizeof reason, "%s: %s: %s", path, what, strerror(error));
  rdm__cache_folder_complain(reason);
}

static void entry_file_name(const char *name, char out[RDM__CACHE_FILE_NAME_SIZE]) {
  snprintf(out, RDM__CACHE_FILE_NAME_SIZE, "%s%s", name, RDM__CACHE_ENTRY_ENDING);
}

/* ---- Reading --------------------------------------------------------------------------------------------------- */

typedef enum entry_state { ENTRY_FOUND, ENTRY_MISSING, ENTRY_DAMAGED } entry_state;

/* True where what is at a path is the reason that it can not be opened, and not the state of this process. */
static bool blames_the_file(int error) {
  return error == ELOOP || error == ENXIO || error == EACCES || error == EPERM || error == ENODEV;
}

static entry_state read_entry(int folder, const char *name, const rdm__cache_key *key, char **out_code,
                              size_t *out_code_size_bytes) {
  char path[RDM__CACHE_FILE_NAME_SIZE];
  entry_file_name(name, path);
  int file = openat(folder, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return blames_the_file(errno) ? ENTRY_DAMAGED : ENTRY_MISSING;
  struct stat status;
  char *code = NULL;
  if (fstat(file, &status) == 0 && rdm__cache_file_is_ours(&status)) {
    code = rdm__cache_entry_read(file, name, key, out_code_size_bytes);
  }
  /* The time of the last use, which eviction goes by. A read-only folder does without. */
  if (code != NULL) (void)futimens(file, NULL);
  close(file);
  *out_code = code;
  return code != NULL ? ENTRY_FOUND : ENTRY_DAMAGED;
}

/* ---- The turn -------------------------------------------------------------------------------------------------- */

static bool wait_for_turn(const rdm__cache_turn *turn) {
  uint64_t give_up_ns = rdm__now_ns() + longest_wait_ns;
  while (!rdm__cache_lock_try(turn->lock_file, turn->name)) {
    if (errno != EAGAIN) {
      complain("its lock file can not be locked", errno);
      return false;
    }
    if (rdm__runtime_is_over()) return false;
    if (rdm__now_ns() >= give_up_ns) {
      rdm__log(RDM_LOG_WARNING,
               "another process has been compiling the cached kernel %s for a minute; it is compiled here too",
               turn->name);
      return false;
    }
    struct timespec pause = rdm__timespec(turn_poll_ns);
    nanosleep(&pause, NULL);
  }
  return true;
}

static bool take_turn(rdm__cache_turn *turn) {
  turn->lock_file = rdm__cache_lock_open(turn->folder);
  if (turn->lock_file < 0) {
    complain("its lock file can not be opened", errno);
    return false;
  }
  turn->is_held = wait_for_turn(turn);
  if (!turn->is_held) close(turn->lock_file);
  return turn->is_held;
}

static void drop_turn(rdm__cache_turn *turn) {
  rdm__cache_lock_drop(turn->lock_file, turn->name);
  close(turn->lock_file);
  close(turn->folder);
  turn->is_held = false;
}

/* With the turn: the process that had it before may have stored what we want. */
static char *look_again(const rdm__cache_turn *turn, const rdm__cache_key *key, size_t *out_code_size_bytes) {
  char *code = NULL;
  if (read_entry(turn->folder, turn->name, key, &code, out_code_size_bytes) != ENTRY_DAMAGED) return code;
  char path[RDM__CACHE_FILE_NAME_SIZE];
  entry_file_name(turn->name, path);
  rdm__log(RDM_LOG_WARNING, "the cached kernel %s is damaged or not ours; it is compiled anew", path);
  rdm__cache_remove(turn->folder, path);
  return NULL;
}

char *rdm__disk_cache_get(const rdm__cache_key *key, bool anew, size_t *out_code_size_bytes,
                          rdm__cache_turn *out_turn) {
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
  char *code = NULL;
  if (!anew && read_entry(folder, turn.name, key, &code, out_code_size_bytes) == ENTRY_FOUND) {
    close(folder);
    return code;
  }
  if (!take_turn(&turn)) {
    close(folder);
    return NULL;
  }
  if (!anew) code = look_again(&turn, key, out_code_size_bytes);
  if (code != NULL) {
    drop_turn(&turn);
  } else {
    *out_turn = turn;
  }
  return code;
}

/* ---- Storing --------------------------------------------------------------------------------------------------- */

/* A name that no other writer has, even where the lock file was removed under two of them. */
static void temporary_file_name(const char *name, char out[RDM__CACHE_FILE_NAME_SIZE]) {
  uint64_t random = 0;
  if (getrandom(&random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random) {
    random = rdm__now_ns() ^ (uint64_t)getpid() << 40;
  }
  snprintf(out, RDM__CACHE_FILE_NAME_SIZE, "%s.%016llx%s", name, (unsigned long long)random,
           RDM__CACHE_TEMPORARY_ENDING);
}

/* Puts the temporary file where the entry belongs, over whatever is there. */
static bool put_in_place(int folder, const char *temporary, const char *path) {
  if (renameat(folder, temporary, folder, path) == 0) return true;
  return rdm__cache_remove(folder, path) && renameat(folder, temporary, folder, path) == 0;
}

/* Gives 0, or the error that kept the entry from being stored. */
static int store(const rdm__cache_turn *turn, const rdm__cache_key *key, const char *code, size_t code_size_bytes) {
  char temporary[RDM__CACHE_FILE_NAME_SIZE];
  char path[RDM__CACHE_FILE_NAME_SIZE];
  temporary_file_name(turn->name, temporary);
  entry_file_name(turn->name, path);
  int file = openat(turn->folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return errno;
  int error = rdm__cache_entry_write(file, key, code, code_size_bytes) && fsync(file) == 0 ? 0 : errno;
  if (close(file) != 0 && error == 0) error = errno;
  if (error == 0 && !put_in_place(turn->folder, temporary, path)) error = errno;
  if (error != 0) unlinkat(turn->folder, temporary, 0);
  return error;
}

void rdm__disk_cache_end_turn(rdm__cache_turn *turn, const rdm__cache_key *key, const char *code,
                              size_t code_size_bytes) {
  if (!turn->is_held) return;
  if (code != NULL) {
    uint64_t limit = rdm__cache_limit_bytes();
    /* One that is over the limit by itself would only drive out all others. */
    bool fits = rdm__cache_entry_size(key, code_size_bytes) <= limit;
    int error = fits ? store(turn, key, code, code_size_bytes) : 0;
    if (error != 0) complain("an entry can not be written", error);
    rdm__cache_evict(turn->folder, limit, turn->name, NULL);
  }
  drop_turn(turn);
}
