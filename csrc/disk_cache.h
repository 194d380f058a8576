/*
 * The cache of compiled code on disk, shared by the processes of one user.
 *
 * Invariants. A reader sees a whole entry or none: an entry is written to a temporary file, synced, and renamed. A key
 * is compiled by one process at a time: its turn (cache_lock.h) is held from before the last look until the entry is
 * there, and goes with its holder. Only with the turn is an entry replaced or removed as damaged. Whatever is wrong
 * with the folder or an entry, the caller compiles and goes on.
 */
#ifndef RDM_DISK_CACHE_H
#define RDM_DISK_CACHE_H

#include "cache_entry.h"

/* A key's turn to compile. All zero: no turn was had, and nothing is stored. */
typedef struct rdm__cache_turn {
  bool is_held;
  int folder;
  int lock_file;
  char name[RDM__CACHE_NAME_SIZE];
} rdm__cache_turn;

/*
 * The code for a key, to be freed; or null and the key's turn: then the caller compiles and ends the turn. While
 * another process has the turn this waits for it, and for at most a minute. With `anew` what the disk has is not looked
 * at. Called with no lock held.
 */
char *rdm__disk_cache_get(const rdm__cache_key *key, bool anew, size_t *out_code_size_bytes, rdm__cache_turn *out_turn);

/* Ends a turn, with the code to store; null where there is none. */
void rdm__disk_cache_end_turn(rdm__cache_turn *turn, const rdm__cache_key *key, const char *code,
                              size_t code_size_bytes);

#endif
