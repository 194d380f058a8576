#include "cache_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char lock_file_name[] = "lock";

/* Seven digits of 32 bits fit any file offset, and 268 million bytes seldom meet. The file itself stays empty. */
enum { PLACE_DIGITS = 7 };

int rdm__cache_lock_open(int folder) {
  return openat(folder, lock_file_name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
}

static bool set_lock(int lock_file, const char *name, short type) {
  char digits[PLACE_DIGITS + 1] = {0};
  memcpy(digits, name, PLACE_DIGITS);
  struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)strtoul(digits, NULL, 16), .l_len = 1};
  int result;
  do {
    result = fcntl(lock_file, F_OFD_SETLK, &range);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

bool rdm__cache_lock_try(int lock_file, const char *name) {
  if (set_lock(lock_file, name, F_WRLCK)) return true;
  if (errno == EACCES) errno = EAGAIN;
  return false;
}

void rdm__cache_lock_drop(int lock_file, const char *name) {
  (void)set_lock(lock_file, name, F_UNLCK);
}
