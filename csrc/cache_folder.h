/*
 * The folder of the disk cache: where it is, and whether it may be trusted.
 *
 * RDM_CACHE_DIR where it is set (empty: no cache on disk; a relative path is refused), else XDG_CACHE_HOME, else HOME;
 * with neither there is none.
 * What is in the folder is loaded onto GPUs and, by `sim`, into this process. So the folder must belong to this user
 * and be writable by nobody else; any other is refused, with one log line, and the process works without it.
 */
#ifndef RDM_CACHE_FOLDER_H
#define RDM_CACHE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* Writes the folder's path; false, with `buffer` saying why, where there is no folder to use. Touches no file. */
bool rdm__cache_folder_path(char *buffer, size_t size);

/*
 * Opens the folder, made with mode 0700 where `create` asks for it. Gives a descriptor to be closed, or -1: then
 * `reason` says why in words. Checked at every call, since a folder can go or change.
 */
int rdm__cache_folder_open(bool create, char *reason, size_t reason_size);

/* Whether a file of the folder may be trusted: a regular file of this user's that nobody else can write. */
bool rdm__cache_file_is_ours(const struct stat *status);

/* One log line for the whole process about a cache that can not be used, or not be written to. */
void rdm__cache_folder_complain(const char *reason);

#endif
