/* The file of this program, to run it again. */
#ifndef TEST_SELF_H
#define TEST_SELF_H

#include <unistd.h>

/* False where the path does not fit. The text of /proc/self/exe, and not the link itself: to the kernel that leads to
 * Valgrind where it runs this program, and the text is right. */
static inline int self_path(char *path, size_t size) {
  ssize_t length = readlink("/proc/self/exe", path, size);
  if (length < 0 || (size_t)length >= size) return 0;
  path[length] = '\0';
  return 1;
}

#endif
