/* The files of the disk cache's folder: listed, and removed least recently used first. */
#ifndef RDM_CACHE_STORE_H
#define RDM_CACHE_STORE_H

#include "cache_entry.h"

#include <stdbool.h>
#include <stdint.h>

#define RDM__CACHE_ENTRY_ENDING ".code"
#define RDM__CACHE_TEMPORARY_ENDING ".part"

/* The name of an entry's file, and of its temporary file: "<name>.code", "<name>.<16 digits>.part". */
enum { RDM__CACHE_FILE_NAME_SIZE = RDM__CACHE_NAME_SIZE + 24 };

typedef struct rdm__cache_file {
  char name[RDM__CACHE_FILE_NAME_SIZE];
  uint64_t size_bytes;
  uint64_t last_used_ns;
} rdm__cache_file;

typedef struct rdm__cache_list {
  rdm__cache_file *files;
  size_t count;
  uint64_t size_bytes;
  /* There are temporary files, of a writer at work or of one that was killed. */
  bool has_temporary;
} rdm__cache_list;

/* The entries of an open folder, the least recently used first. False where memory ran out or the folder is gone. */
bool rdm__cache_list_read(int folder, rdm__cache_list *out_list);
void rdm__cache_list_free(rdm__cache_list *list);

/* Removes what has this name, a folder too: nothing but entries is meant to be there. False where it stays. */
bool rdm__cache_remove(int folder, const char *name);

/*
 * Removes the least recently used entries until the rest fit, and the temporary files of writers that were killed.
 * `own_name` is the entry whose turn the caller has and writes no more, null for none. Gives what was removed of
 * entries.
 */
uint64_t rdm__cache_evict(int folder, uint64_t limit_bytes, const char *own_name, uint64_t *out_count);

/* RDM_CACHE_MAX_BYTES, else 1 GiB. Not a whole number: one warning, and the default. */
uint64_t rdm__cache_limit_bytes(void);

#endif
