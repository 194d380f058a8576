/*
 * The turns of the disk cache: who may write a key's entry, across processes and between threads.
 *
 * Each key has one byte of the folder's lock file, by its hash. Two keys that share a byte wait for each other, which
 * is only slower. A lock belongs to the open file that took it, so it also works between threads, and the kernel drops
 * it with its holder.
 */
#ifndef RDM_CACHE_LOCK_H
#define RDM_CACHE_LOCK_H

#include <stdbool.h>

/* Opens the lock file of an open folder, made where it is missing. Gives -1, with errno, where that fails. */
int rdm__cache_lock_open(int folder);

/* Takes the lock of an entry's name where nobody has it. Else false, with EAGAIN for one that another has. */
bool rdm__cache_lock_try(int lock_file, const char *name);

/* Drops the lock of a name. A copy of the descriptor, in a child that was forked meanwhile, does not keep it. */
void rdm__cache_lock_drop(int lock_file, const char *name);

#endif
