/*
 * An entry of the disk cache: a file with a header, the whole key, and the code object.
 *
 * The name comes from a hash of the key, so its length is fixed; the whole key inside tells two keys of one hash apart,
 * and a checksum over all of it tells damage. A file that is anything but a whole entry for the key asked for is no
 * entry.
 */
#ifndef RDM_CACHE_ENTRY_H
#define RDM_CACHE_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 32 hexadecimal digits. */
enum { RDM__CACHE_NAME_SIZE = 33 };

typedef struct rdm__cache_key {
  char *bytes;
  size_t size_bytes;
} rdm__cache_key;

/* The file's name without its ending. */
void rdm__cache_entry_name(const rdm__cache_key *key, char name[RDM__CACHE_NAME_SIZE]);

/* How long the file of an entry is. */
uint64_t rdm__cache_entry_size(const rdm__cache_key *key, size_t code_size_bytes);

/* Writes a whole entry to a descriptor. False, with errno, where a write failed. */
bool rdm__cache_entry_write(int file, const rdm__cache_key *key, const char *code, size_t code_size_bytes);

/*
 * Reads a whole entry whose key has this name and, unless `key` is null, is exactly that key. Gives the code, to be
 * freed; null where the file is not such an entry.
 */
char *rdm__cache_entry_read(int file, const char *name, const rdm__cache_key *key, size_t *out_code_size_bytes);

#endif
