/*
 * What -fsanitize=thread puts before each memory access of the product: here it goes to races.c, and no run-time
 * library of a sanitizer is linked. So a race is found in the very schedule that has it, every time, and a schedule
 * costs little.
 */
#include "races.h"

#include <stdlib.h>

#define HERE ((uintptr_t)__builtin_return_address(0))

#define ACCESS_FUNCTIONS(size)                       \
  void __tsan_read##size(void *address);             \
  void __tsan_write##size(void *address);            \
  void __tsan_unaligned_read##size(void *address);   \
  void __tsan_unaligned_write##size(void *address);  \
  void __tsan_volatile_read##size(void *address);    \
  void __tsan_volatile_write##size(void *address);   \
  void __tsan_read##size(void *address) {            \
    races_access(address, size, ACCESS_READ, HERE);  \
  }                                                  \
  void __tsan_write##size(void *address) {           \
    races_access(address, size, ACCESS_WRITE, HERE); \
  }                                                  \
  void __tsan_unaligned_read##size(void *address) {  \
    races_access(address, size, ACCESS_READ, HERE);  \
  }                                                  \
  void __tsan_unaligned_write##size(void *address) { \
    races_access(address, size, ACCESS_WRITE, HERE); \
  }                                                  \
  void __tsan_volatile_read##size(void *address) {   \
    races_access(address, size, ACCESS_READ, HERE);  \
  }                                                  \
  void __tsan_volatile_write##size(void *address) {  \
    races_access(address, size, ACCESS_WRITE, HERE); \
  }

ACCESS_FUNCTIONS(1)
ACCESS_FUNCTIONS(2)
ACCESS_FUNCTIONS(4)
ACCESS_FUNCTIONS(8)
ACCESS_FUNCTIONS(16)

void __tsan_init(void);
void __tsan_init(void) {}
void __tsan_func_entry(void *caller);
void __tsan_func_entry(void *caller) {
  (void)caller;
}
void __tsan_func_exit(void);
void __tsan_func_exit(void) {}

void __tsan_read_range(void *address, size_t size);
void __tsan_read_range(void *address, size_t size) {
  races_access(address, size, ACCESS_READ, HERE);
}
void __tsan_write_range(void *address, size_t size);
void __tsan_write_range(void *address, size_t size) {
  races_access(address, size, ACCESS_WRITE, HERE);
}

/* ---- What the C library does to memory for the product ---------------------------------------------------------- */

void *__real_memcpy(void *to, const void *from, size_t size);
void *__real_memmove(void *to, const void *from, size_t size);
void *__real_memset(void *to, int value, size_t size);
int __real_strcmp(const char *one, const char *other);
void *__wrap_memcpy(void *to, const void *from, size_t size);
void *__wrap_memmove(void *to, const void *from, size_t size);
void *__wrap_memset(void *to, int value, size_t size);
int __wrap_strcmp(const char *one, const char *other);

void *__wrap_memcpy(void *to, const void *from, size_t size) {
  races_access(from, size, ACCESS_READ, HERE);
  races_access(to, size, ACCESS_WRITE, HERE);
  return __real_memcpy(to, from, size);
}

void *__wrap_memmove(void *to, const void *from, size_t size) {
  races_access(from, size, ACCESS_READ, HERE);
  races_access(to, size, ACCESS_WRITE, HERE);
  return __real_memmove(to, from, size);
}

void *__wrap_memset(void *to, int value, size_t size) {
  races_access(to, size, ACCESS_WRITE, HERE);
  return __real_memset(to, value, size);
}

int __wrap_strcmp(const char *one, const char *other) {
  size_t length = 0;
  while (one[length] != '\0' && one[length] == other[length]) length++;
  races_access(one, length + 1, ACCESS_READ, HERE);
  races_access(other, length + 1, ACCESS_READ, HERE);
  return __real_strcmp(one, other);
}
