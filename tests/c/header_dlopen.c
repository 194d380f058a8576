/* A program that is not linked with the library loads it late, from a thread, as a plug-in's host does: the file is the
 * argument. It must need no room of the program's own thread-local storage, and outlive dlclose. */
#include "rocm_device_map.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 3 };

typedef rdm_status (*stream_create_function)(int32_t, rdm_stream *);
typedef rdm_status (*default_stream_set_function)(rdm_stream);

static const char *path;

/* A data pointer as a pointer to a function, which ISO C has no conversion for. */
static int find(void *library, const char *name, void *out_function) {
  void *symbol = dlsym(library, name);
  if (symbol == NULL) {
    fprintf(stderr, "header_dlopen: %s\n", dlerror());
    return 0;
  }
  memcpy(out_function, &symbol, sizeof symbol);
  return 1;
}

/* Leaves the thread with a default stream, which is given back as it ends, after the library was closed. Null where all
 * went well. */
static void *use(void *unused) {
  static const char failed[] = "failed";
  stream_create_function create;
  default_stream_set_function set_default;
  rdm_stream stream;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  (void)unused;
  if (library == NULL) {
    fprintf(stderr, "header_dlopen: %s\n", dlerror());
    return (void *)failed;
  }
  if (!find(library, "rdm_stream_create", &create) || !find(library, "rdm_default_stream_set", &set_default)) {
    return (void *)failed;
  }
  if (create(0, &stream) != RDM_OK || set_default(stream) != RDM_OK) return (void *)failed;
  return dlclose(library) == 0 ? NULL : (void *)failed;
}

int main(int argument_count, char **arguments) {
  if (argument_count != 2) return 2;
  path = arguments[1];
  for (int i = 0; i < ROUNDS; i++) {
    pthread_t thread;
    void *result = NULL;
    if (pthread_create(&thread, NULL, use, NULL) != 0 || pthread_join(thread, &result) != 0) return 1;
    if (result != NULL) return 1;
  }
  return use(NULL) == NULL ? 0 : 1;
}
