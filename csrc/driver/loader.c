#include "loader.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ATTEMPT_CAPACITY = 96 };

typedef struct attempt_list {
  size_t count;
  rdm__loader_attempt attempts[ATTEMPT_CAPACITY];
} attempt_list;

/* On the heap and reachable from here for the life of the process, like all state of the library. */
static attempt_list *attempts;
static pthread_mutex_t attempts_lock = PTHREAD_MUTEX_INITIALIZER;

/* Cuts at the capacity, which for paths and messages is what is wanted. */
static void copy_text(char *out, size_t capacity, const char *text) {
  size_t length = strlen(text);
  if (length >= capacity) length = capacity - 1;
  memcpy(out, text, length);
  out[length] = '\0';
}

static void add_attempt(const char *driver, const char *name, const char *result, bool used) {
  pthread_mutex_lock(&attempts_lock);
  if (attempts == NULL) attempts = calloc(1, sizeof *attempts);
  if (attempts != NULL && attempts->count < ATTEMPT_CAPACITY) {
    rdm__loader_attempt *attempt = &attempts->attempts[attempts->count++];
    attempt->driver = driver;
    copy_text(attempt->name, sizeof attempt->name, name);
    copy_text(attempt->result, sizeof attempt->result, result);
    attempt->used = used;
  }
  pthread_mutex_unlock(&attempts_lock);
}

void rdm__loader_begin(const char *driver) {
  pthread_mutex_lock(&attempts_lock);
  if (attempts != NULL) {
    size_t kept = 0;
    for (size_t i = 0; i < attempts->count; i++) {
      if (strcmp(attempts->attempts[i].driver, driver) != 0) attempts->attempts[kept++] = attempts->attempts[i];
    }
    attempts->count = kept;
  }
  pthread_mutex_unlock(&attempts_lock);
}

void *rdm__loader_open(const char *driver, const char *name) {
  dlerror();
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    const char *text = dlerror();
    add_attempt(driver, name, text != NULL ? text : "the loader gave no reason", false);
    return NULL;
  }
  char path[PATH_MAX];
  rdm__loader_path(library, false, path, sizeof path);
  add_attempt(driver, name, path, true);
  return library;
}

typedef struct loaded_search {
  const char *stem;
  char path[PATH_MAX];
} loaded_search;

static int match_loaded(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size;
  loaded_search *search = data;
  const char *name = info->dlpi_name;
  if (name == NULL) return 0;
  const char *slash = strrchr(name, '/');
  const char *base = slash != NULL ? slash + 1 : name;
  if (strncmp(base, search->stem, strlen(search->stem)) != 0) return 0;
  copy_text(search->path, sizeof search->path, name);
  return 1;
}

void *rdm__loader_find_loaded(const char *driver, const char *stem, const char *const *sonames) {
  void *library = NULL;
  for (size_t i = 0; library == NULL && sonames[i] != NULL; i++) {
    library = dlopen(sonames[i], RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  }
  if (library == NULL) {
    /* A copy that an application brings along may have a file name, or a major, that is not in the list. */
    loaded_search search = {.stem = stem, .path = ""};
    if (dl_iterate_phdr(match_loaded, &search) != 0) {
      library = dlopen(search.path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    }
  }
  dlerror();
  if (library == NULL) return NULL;
  char name[PATH_MAX];
  char path[PATH_MAX];
  rdm__loader_path(library, true, name, sizeof name);
  rdm__loader_path(library, false, path, sizeof path);
  add_attempt(driver, name, path, true);
  return library;
}

void rdm__loader_reject(const char *driver, void *library, const char *format, ...) {
  char reason[sizeof(((rdm__loader_attempt *)0)->result)];
  va_list list;
  va_start(list, format);
  vsnprintf(reason, sizeof reason, format, list);
  va_end(list);
  pthread_mutex_lock(&attempts_lock);
  if (attempts != NULL && attempts->count > 0) {
    rdm__loader_attempt *attempt = &attempts->attempts[attempts->count - 1];
    if (strcmp(attempt->driver, driver) == 0) {
      copy_text(attempt->result, sizeof attempt->result, reason);
      attempt->used = false;
    }
  }
  pthread_mutex_unlock(&attempts_lock);
  dlclose(library);
}

void rdm__loader_note(const char *driver, const char *name, const char *format, ...) {
  char text[sizeof(((rdm__loader_attempt *)0)->result)];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  add_attempt(driver, name, text, false);
}

bool rdm__loader_resolve(void *library, const rdm__loader_symbol *symbols, size_t count, const char **out_missing) {
  const char *missing = NULL;
  for (size_t i = 0; i < count; i++) {
    void *address = dlsym(library, symbols[i].name);
    /* C has no conversion from an object pointer to a function pointer; POSIX gives both one representation. */
    memcpy(symbols[i].slot, &address, sizeof address);
    if (address == NULL && symbols[i].required && missing == NULL) missing = symbols[i].name;
  }
  dlerror();
  if (missing != NULL) *out_missing = missing;
  return missing == NULL;
}

/* The address in a dynamic entry: some loaders leave it as an offset from where the object was loaded. */
static const char *dynamic_text(const struct link_map *map, ElfW(Addr) value) {
  if (value < map->l_addr) value += map->l_addr;
  return (const char *)value;
}

int rdm__loader_major(void *library) {
  struct link_map *map = NULL;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || map == NULL || map->l_ld == NULL) return -1;
  const char *texts = NULL;
  ElfW(Xword) soname_offset = 0;
  bool has_soname = false;
  for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
    if (entry->d_tag == DT_STRTAB) texts = dynamic_text(map, entry->d_un.d_ptr);
    if (entry->d_tag == DT_SONAME) {
      soname_offset = entry->d_un.d_val;
      has_soname = true;
    }
  }
  if (texts == NULL || !has_soname) return -1;
  const char *suffix = strstr(texts + soname_offset, ".so.");
  if (suffix == NULL) return -1;
  char *end = NULL;
  long major = strtol(suffix + 4, &end, 10);
  return end == suffix + 4 || major < 0 || major > 9999 ? -1 : (int)major;
}

void rdm__loader_path(void *library, bool as_named, char *out, size_t capacity) {
  struct link_map *map = NULL;
  out[0] = '\0';
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || map == NULL || map->l_name == NULL) return;
  char resolved[PATH_MAX];
  const char *path = as_named || realpath(map->l_name, resolved) == NULL ? map->l_name : resolved;
  copy_text(out, capacity, path);
}

void rdm__loader_list(const char *driver, const char *stem, char *out, size_t capacity) {
  size_t used = 0;
  out[0] = '\0';
  pthread_mutex_lock(&attempts_lock);
  for (size_t i = 0; attempts != NULL && i < attempts->count; i++) {
    const rdm__loader_attempt *attempt = &attempts->attempts[i];
    if (strcmp(attempt->driver, driver) != 0 || strstr(attempt->name, stem) == NULL) continue;
    /* The loader's text mostly begins with the name already. */
    bool named = strncmp(attempt->result, attempt->name, strlen(attempt->name)) == 0;
    int length = snprintf(out + used, capacity - used, "%s%s%s%s", used > 0 ? "; " : "", named ? "" : attempt->name,
                          named ? "" : ": ", attempt->result);
    if (length < 0) break;
    used += (size_t)length;
    if (used >= capacity) break;
  }
  pthread_mutex_unlock(&attempts_lock);
  if (out[0] == '\0') snprintf(out, capacity, "nothing was tried");
}

size_t rdm__loader_report(rdm__loader_attempt *out_attempts, size_t capacity) {
  pthread_mutex_lock(&attempts_lock);
  size_t count = attempts != NULL ? attempts->count : 0;
  for (size_t i = 0; i < count && i < capacity; i++) out_attempts[i] = attempts->attempts[i];
  pthread_mutex_unlock(&attempts_lock);
  return count;
}

const char *rdm__loader_variable(const char *name) {
  const char *value = secure_getenv(name);
  return value != NULL && value[0] != '\0' ? value : NULL;
}

bool rdm__loader_node_denied(const char *path, bool try_open, char *out, size_t capacity) {
  bool denied = faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) != 0 && errno == EACCES;
  if (!denied) {
    if (!try_open) return false;
    int node = open(path, O_RDWR | O_CLOEXEC);
    if (node >= 0) close(node);
    if (node >= 0 || errno != EPERM) return false;
    snprintf(out, capacity,
             "%s is refused to this process by the container's device rules; start the container with --device=%s",
             path, path);
    return true;
  }
  struct stat status;
  if (stat(path, &status) != 0) {
    snprintf(out, capacity, "%s is in a folder that user %u may not enter", path, (unsigned)geteuid());
    return true;
  }
  unsigned mode = (unsigned)(status.st_mode & 07777);
  char buffer[4096];
  struct group entry;
  struct group *group = NULL;
  char number[32];
  snprintf(number, sizeof number, "%u", (unsigned)status.st_gid);
  if (getgrgid_r(status.st_gid, &entry, buffer, sizeof buffer, &group) != 0) group = NULL;
  const char *name = group != NULL ? group->gr_name : number;
  if ((mode & 0060) != 0060 || status.st_gid == 0) {
    snprintf(out, capacity,
             "%s (mode %04o, group %s) may not be opened by user %u; give it a group of its own such as render and the "
             "mode 0660, with a udev rule, and add the user to that group",
             path, mode, name, (unsigned)geteuid());
    return true;
  }
  snprintf(out, capacity,
           "%s (mode %04o, group %s) may not be opened by user %u; add the user to that group (usermod -aG %s USER, "
           "then log in again) or, in a container, pass the group in (--group-add %s)",
           path, mode, name, (unsigned)geteuid(), name, number);
  return true;
}
