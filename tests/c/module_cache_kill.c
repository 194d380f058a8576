/* A writer of the disk cache that is killed at each of its system calls in turn, and what the next one finds. */
#include "disk_cache.h"
#include "log_lines.h"
#include "module_cache.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CODE_SIZE = 100000 };

static char key_bytes[] = "all that changes the code";
static const rdm__cache_key key = {.bytes = key_bytes, .size_bytes = sizeof key_bytes};
static char code[CODE_SIZE];

/* Stores the entry. False where it was found in place of a turn. */
static bool store(void) {
  size_t size = 0;
  rdm__cache_turn turn;
  char *found = rdm__disk_cache_get(&key, false, &size, &turn);
  if (found != NULL) {
    CHECK(size == CODE_SIZE && memcmp(found, code, CODE_SIZE) == 0);
    free(found);
    return false;
  }
  CHECK(turn.is_held);
  rdm__disk_cache_end_turn(&turn, &key, code, CODE_SIZE);
  return true;
}

/* A child that stops before it stores. -1 where one process may not trace another here. */
static pid_t start_writer(void) {
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(77);
    raise(SIGSTOP);
    store();
    /* The call itself: a build that counts what runs writes its counts in _exit, which is no part of storing. */
    syscall(SYS_exit_group, 0);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  return WIFSTOPPED(status) ? child : -1;
}

/* Lets the child run to its system call stop number `stops` (each call stops twice) and kills it. True if it ended. */
static bool kill_at(pid_t child, unsigned stops) {
  int status = 0;
  int signal_to_pass = 0;
  for (unsigned i = 0; i < stops; i++) {
    CHECK(ptrace(PTRACE_SYSCALL, child, NULL, (void *)(intptr_t)signal_to_pass) == 0);
    CHECK(waitpid(child, &status, 0) == child);
    if (WIFEXITED(status)) return WEXITSTATUS(status) == 0;
    CHECK(WIFSTOPPED(status));
    signal_to_pass = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
  }
  kill(child, SIGKILL);
  do {
    CHECK(waitpid(child, &status, 0) == child);
  } while (!WIFSIGNALED(status));
  return false;
}

static unsigned files_with_ending(const char *folder, const char *ending) {
  unsigned count = 0;
  DIR *listing = opendir(folder);
  if (listing == NULL) return 0;
  for (struct dirent *each = readdir(listing); each != NULL; each = readdir(listing)) {
    size_t length = strlen(each->d_name);
    if (length > strlen(ending) && strcmp(each->d_name + length - strlen(ending), ending) == 0) count++;
  }
  closedir(listing);
  return count;
}

static void a_writer_killed_at_any_system_call_is_no_harm(void) {
  unsigned found = 0;
  unsigned stored = 0;
  unsigned left_a_part = 0;
  for (size_t i = 0; i < sizeof code; i++) code[i] = (char)(i * 7);
  log_lines_capture();
  for (unsigned stops = 1;; stops++) {
    char folder[256];
    use_new_cache_folder(folder, sizeof folder);
    pid_t child = start_writer();
    if (child < 0) {
      remove_cache_folder(folder);
      printf("skipped: a process may not trace its child here\n");
      return;
    }
    bool ended = kill_at(child, stops);
    left_a_part += files_with_ending(folder, ".part");
    uint64_t begin = test_now_ns();
    *(store() ? &stored : &found) += 1;
    CHECK_THAT(test_now_ns() - begin < 5 * TEST_SECOND, "stop %u: the dead writer's turn was waited for", stops);
    CHECK_THAT(!store(), "stop %u: the entry was not kept", stops);
    CHECK_THAT(files_with_ending(folder, ".part") == 0, "stop %u: a temporary file stays", stops);
    CHECK(files_with_ending(folder, ".code") == 1);
    remove_cache_folder(folder);
    CHECK_THAT(stops < 20000, "the writer never ends");
    if (ended) break;
  }
  CHECK(log_lines_with("cache") == 0);
  /* It was killed before it wrote, while it wrote, and after. */
  CHECK_THAT(stored > 5 && found > 1 && left_a_part > 1, "%u stored, %u found, %u parts", stored, found, left_a_part);
  printf("%u points: the next one compiled after %u of them and found the entry after %u; %u temporary files\n",
         stored + found, stored, found, left_a_part);
}

const test_case kill_tests[] = {
    {.name = "a_writer_killed_at_any_system_call_is_no_harm",
     .function = a_writer_killed_at_any_system_call_is_no_harm},
    {0},
};
