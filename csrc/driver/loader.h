/*
 * Finding and opening a driver's libraries, and remembering what was tried.
 *
 * Every attempt is kept with the loader's own text, so that one error, and `rdm doctor`, can show them all. The report
 * may be read by any thread; everything else is called by the one thread that opens a driver.
 */
#ifndef RDM_LOADER_H
#define RDM_LOADER_H

#include <stdbool.h>
#include <stddef.h>

typedef struct rdm__loader_attempt {
  /* "hip" or "cuda". Static storage. */
  const char *driver;
  /* What was given to the loader: a path or a soname. */
  char name[320];
  /* Used: the file that was loaded. Else the loader's text, or why the file was not taken. */
  char result[320];
  bool used;
} rdm__loader_attempt;

/* A symbol to look up; its address is stored into `slot`, which is a function pointer, null where there is none. */
typedef struct rdm__loader_symbol {
  const char *name;
  void *slot;
  bool required;
} rdm__loader_symbol;

/* Forgets a driver's attempts of an earlier, failed open. `driver` must have static storage. */
void rdm__loader_begin(const char *driver);

/* Opens a library with all its symbols bound now and kept local. Null where the loader refuses. */
void *rdm__loader_open(const char *driver, const char *name);

/*
 * A library that the process has loaded already: by one of the sonames, or by a file name that begins with `stem`.
 * Null-terminated list. Null where there is none, which is no attempt.
 */
void *rdm__loader_find_loaded(const char *driver, const char *stem, const char *const *sonames);

/* Closes a library that was opened by the latest attempt and notes why it is not taken. */
__attribute__((format(printf, 3, 4))) void rdm__loader_reject(const char *driver, void *library, const char *format,
                                                              ...);

/* Notes an attempt that needed no loader call, such as a variable that names no folder. */
__attribute__((format(printf, 3, 4))) void rdm__loader_note(const char *driver, const char *name, const char *format,
                                                            ...);

/* Looks all of them up. False where a required one is missing; `*out_missing` is then its name. */
bool rdm__loader_resolve(void *library, const rdm__loader_symbol *symbols, size_t count, const char **out_missing);

/* The number after ".so." in the library's own soname, -1 where it has none. */
int rdm__loader_major(void *library);

/* The file a library was loaded from, links resolved; with `as_named`, as the loader found it. */
void rdm__loader_path(void *library, bool as_named, char *out, size_t capacity);

/* The attempts whose name holds `stem`, joined into one text of the form "NAME: RESULT; NAME: RESULT". */
void rdm__loader_list(const char *driver, const char *stem, char *out, size_t capacity);

/* Copies at most `capacity` attempts, of all drivers in order, and returns how many there are. */
size_t rdm__loader_report(rdm__loader_attempt *out_attempts, size_t capacity);

/* An environment variable, null where it is unset or empty, or the process runs with raised privileges. */
const char *rdm__loader_variable(const char *name);

/*
 * True where the device node exists and this process may not open it; `out` then says who may, and the remedy. With
 * `try_open` the node is opened for a moment, which shows what a container's device rules refuse.
 */
bool rdm__loader_node_denied(const char *path, bool try_open, char *out, size_t capacity);

#endif
