#include "cache_entry.h"

#include "hash.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Changes with the layout of an entry, so that an older library's entries are no entries. */
static const char magic[8] = {'R', 'D', 'M', 'C', 'O', 'D', 'E', '1'};

/* Far above any code object: what is larger is not read into memory to find out that it is no entry. */
static const uint64_t largest_entry_bytes = UINT64_C(1) << 31;

typedef struct entry_header {
  char magic[8];
  uint64_t key_size_bytes;
  uint64_t code_size_bytes;
  /* Over the two sizes, the key and the code. */
  uint64_t checksum;
} entry_header;

static uint64_t checksum(const char *key, size_t key_size, const char *code, size_t code_size) {
  return rdm__hash_bytes(rdm__hash_bytes(0, key, key_size), code, code_size);
}

void rdm__cache_entry_name(const rdm__cache_key *key, char name[RDM__CACHE_NAME_SIZE]) {
  uint64_t high = rdm__hash_bytes(1, key->bytes, key->size_bytes);
  uint64_t low = rdm__hash_bytes(2, key->bytes, key->size_bytes);
  snprintf(name, RDM__CACHE_NAME_SIZE, "%016llx%016llx", (unsigned long long)high, (unsigned long long)low);
}

uint64_t rdm__cache_entry_size(const rdm__cache_key *key, size_t code_size_bytes) {
  return sizeof(entry_header) + (uint64_t)key->size_bytes + code_size_bytes;
}

static bool write_all(int file, const char *bytes, size_t size) {
  while (size > 0) {
    ssize_t written = write(file, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes += written;
    size -= (size_t)written;
  }
  return true;
}

bool rdm__cache_entry_write(int file, const rdm__cache_key *key, const char *code, size_t code_size_bytes) {
  if (rdm__cache_entry_size(key, code_size_bytes) > largest_entry_bytes) {
    errno = EFBIG;
    return false;
  }
  entry_header header = {.key_size_bytes = key->size_bytes,
                         .code_size_bytes = code_size_bytes,
                         .checksum = checksum(key->bytes, key->size_bytes, code, code_size_bytes)};
  memcpy(header.magic, magic, sizeof header.magic);
  return write_all(file, (const char *)&header, sizeof header) && write_all(file, key->bytes, key->size_bytes) &&
         write_all(file, code, code_size_bytes);
}

static bool read_all(int file, char *bytes, size_t size) {
  while (size > 0) {
    ssize_t got = read(file, bytes, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes += got;
    size -= (size_t)got;
  }
  return true;
}

/* The header of a file whose size is exactly what its header says, so that nothing is allocated for a lie. */
static bool read_header(int file, entry_header *header) {
  struct stat status;
  if (fstat(file, &status) != 0 || !read_all(file, (char *)header, sizeof *header)) return false;
  if (memcmp(header->magic, magic, sizeof magic) != 0) return false;
  if ((uint64_t)status.st_size > largest_entry_bytes || (uint64_t)status.st_size < sizeof *header) return false;
  uint64_t rest = (uint64_t)status.st_size - sizeof *header;
  return header->key_size_bytes <= rest && header->code_size_bytes == rest - header->key_size_bytes;
}

static bool key_is(const char *bytes, size_t size_bytes, const char *name, const rdm__cache_key *wanted) {
  const rdm__cache_key key = {.bytes = (char *)(uintptr_t)bytes, .size_bytes = size_bytes};
  char own_name[RDM__CACHE_NAME_SIZE];
  rdm__cache_entry_name(&key, own_name);
  if (memcmp(own_name, name, RDM__CACHE_NAME_SIZE - 1) != 0) return false;
  return wanted == NULL || (wanted->size_bytes == size_bytes && memcmp(wanted->bytes, bytes, size_bytes) == 0);
}

char *rdm__cache_entry_read(int file, const char *name, const rdm__cache_key *key, size_t *out_code_size_bytes) {
  entry_header header;
  if (!read_header(file, &header)) return NULL;
  size_t key_size = (size_t)header.key_size_bytes;
  size_t code_size = (size_t)header.code_size_bytes;
  char *entry_key = malloc(key_size + 1);
  char *code = malloc(code_size + 1);
  bool valid = entry_key != NULL && code != NULL && read_all(file, entry_key, key_size) &&
               read_all(file, code, code_size) && checksum(entry_key, key_size, code, code_size) == header.checksum &&
               key_is(entry_key, key_size, name, key);
  free(entry_key);
  if (valid) {
    *out_code_size_bytes = code_size;
    return code;
  }
  free(code);
  return NULL;
}
