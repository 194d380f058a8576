#include "driver/sim/compiler_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Above the numbers that the child gives them. */
enum { LOWEST_DESCRIPTOR = 16 };

static int open_in_memory(const char *name) {
  int low = memfd_create(name, MFD_CLOEXEC);
  if (low < 0) return -1;
  int descriptor = fcntl(low, F_DUPFD_CLOEXEC, LOWEST_DESCRIPTOR);
  close(low);
  return descriptor;
}

static bool write_text(int descriptor, const char *text) {
  size_t size = strlen(text);
  while (size > 0) {
    ssize_t written = write(descriptor, text, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text += written;
    size -= (size_t)written;
  }
  return true;
}

/* The whole file, with `room` bytes left free behind it. NULL where it can not be read. */
static char *read_all(int descriptor, size_t room, size_t *out_size) {
  struct stat status;
  if (fstat(descriptor, &status) != 0) return NULL;
  size_t size = (size_t)status.st_size;
  char *bytes = malloc(size + room);
  if (bytes == NULL) return NULL;
  size_t done = 0;
  while (done < size) {
    ssize_t got = pread(descriptor, bytes + done, size - done, (off_t)done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      free(bytes);
      return NULL;
    }
    done += (size_t)got;
  }
  *out_size = size;
  return bytes;
}

static bool prepare_in_memory(rdm__sim_compiler_files *files, const char *text) {
  files->source = open_in_memory("rdm-sim-source");
  files->code = open_in_memory("rdm-sim-code");
  snprintf(files->source_path, sizeof files->source_path, "/proc/self/fd/%d", RDM__SIM_CHILD_SOURCE);
  snprintf(files->code_path, sizeof files->code_path, "/proc/self/fd/%d", RDM__SIM_CHILD_CODE);
  return files->source >= 0 && files->code >= 0 && write_text(files->source, text);
}

static bool prepare_folder(rdm__sim_compiler_files *files, const char *text, bool cxx) {
  const char *parent = getenv("TMPDIR");
  if (parent == NULL || *parent == '\0') parent = "/tmp";
  int length = snprintf(files->folder, sizeof files->folder, "%s/rdm-sim-XXXXXX", parent);
  if (length < 0 || (size_t)length >= sizeof files->folder || mkdtemp(files->folder) == NULL) {
    files->folder[0] = '\0';
    return false;
  }
  snprintf(files->source_path, sizeof files->source_path, "%s/kernel.%s", files->folder, cxx ? "cpp" : "c");
  snprintf(files->code_path, sizeof files->code_path, "%s/kernel.so", files->folder);
  int source = open(files->source_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (source < 0) return false;
  bool written = write_text(source, text);
  return close(source) == 0 && written;
}

int rdm__sim_compiler_files_open(rdm__sim_compiler_files *files, const char *text, bool cxx, bool in_memory) {
  files->source = -1;
  files->code = -1;
  files->folder[0] = '\0';
  errno = 0;
  files->log = open_in_memory("rdm-sim-log");
  bool prepared = files->log >= 0;
  if (prepared) prepared = in_memory ? prepare_in_memory(files, text) : prepare_folder(files, text, cxx);
  if (prepared) return 0;
  int error = errno == 0 ? EIO : errno;
  rdm__sim_compiler_files_close(files);
  return error;
}

void rdm__sim_compiler_files_close(rdm__sim_compiler_files *files) {
  if (files->source >= 0) close(files->source);
  if (files->code >= 0) close(files->code);
  if (files->log >= 0) close(files->log);
  if (files->folder[0] == '\0') return;
  unlink(files->source_path);
  unlink(files->code_path);
  rmdir(files->folder);
}

char *rdm__sim_compiler_files_log(const rdm__sim_compiler_files *files) {
  size_t size = 0;
  char *log = read_all(files->log, 1, &size);
  if (log != NULL) log[size] = '\0';
  return log;
}

char *rdm__sim_compiler_files_code(const rdm__sim_compiler_files *files, size_t room, size_t *out_size) {
  int code = files->folder[0] == '\0' ? files->code : open(files->code_path, O_RDONLY | O_CLOEXEC);
  if (code < 0) return NULL;
  char *bytes = read_all(code, room, out_size);
  if (code != files->code) close(code);
  /* The compiler may have ended without writing any. */
  if (bytes != NULL && *out_size > 0) return bytes;
  free(bytes);
  return NULL;
}
