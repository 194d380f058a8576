/*
 * Entries of the disk cache. An input's first byte chooses:
 *   0  its rest is an entry file, read against a second opinion on what an entry is;
 *   1  the same, with magic, sizes and checksum put right where they can be, so that what lies behind is reached;
 *   2  an entry is written and then damaged: it must be refused unless it is what was written;
 *   3  the same through the whole store, in a folder of its own.
 * Whatever the file is, nothing may crash, and no other code than the one that was stored may come out.
 */
#include "cache_entry.h"
#include "cache_folder.h"
#include "cache_store.h"
#include "disk_cache.h"
#include "fuzz.h"
#include "hash.h"
#include "rocm_device_map.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file's form as docs and cache_entry.h tell it: magic, key size, code size, checksum; the key; the code. */
enum { HEADER = 32, KEY_SIZE_AT = 8, CODE_SIZE_AT = 16, CHECKSUM_AT = 24, LARGEST_FILE = 1 << 16 };
static const uint8_t entry_magic[8] = "RDMCODE1";

static char folder[64];

static void ignore_log(rdm_log_level level, const char *message, void *user_data) {
  (void)level, (void)message, (void)user_data;
}

static void remove_folder(void) {
  rdm_cache_prune(0, NULL, NULL);
  char lock[128];
  snprintf(lock, sizeof lock, "%s/lock", folder);
  unlink(lock);
  rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc, (void)argv;
  /* In memory where there is such a place, as each store is synced. */
  snprintf(folder, sizeof folder, "%s/rdm-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
  FUZZ_CHECK(mkdtemp(folder) != NULL, "no folder %s", folder);
  setenv("RDM_CACHE_DIR", folder, 1);
  rdm_set_log_handler(ignore_log, NULL, RDM_LOG_ERROR);
  atexit(remove_folder);
  return 0;
}

static uint64_t word_at(const uint8_t *bytes, size_t at) {
  uint64_t word;
  memcpy(&word, bytes + at, sizeof word);
  return word;
}

static uint64_t checksum_of(const uint8_t *key, size_t key_size, const uint8_t *code, size_t code_size) {
  return rdm__hash_bytes(rdm__hash_bytes(0, key, key_size), code, code_size);
}

/* A second opinion, with sums that can not overflow: whether the file is a whole entry, and where its code is. */
static bool is_entry(const uint8_t *file, size_t size, size_t *out_key_size) {
  if (size < HEADER || memcmp(file, entry_magic, sizeof entry_magic) != 0) return false;
  unsigned __int128 key_size = word_at(file, KEY_SIZE_AT);
  unsigned __int128 code_size = word_at(file, CODE_SIZE_AT);
  if (HEADER + key_size + code_size != size) return false;
  const uint8_t *key = file + HEADER;
  *out_key_size = (size_t)key_size;
  return checksum_of(key, *out_key_size, key + *out_key_size, (size_t)code_size) == word_at(file, CHECKSUM_AT);
}

static int memory_file(const uint8_t *bytes, size_t size) {
  int file = memfd_create("fuzz", MFD_CLOEXEC);
  FUZZ_CHECK(file >= 0 && write(file, bytes, size) == (ssize_t)size, "no file in memory");
  lseek(file, 0, SEEK_SET);
  return file;
}

/* Reads the file for this key and compares with the second opinion. */
static void read_for(const uint8_t *bytes, size_t size, const uint8_t *key_bytes, size_t key_size, bool any_key) {
  rdm__cache_key key = {.bytes = (char *)(uintptr_t)key_bytes, .size_bytes = key_size};
  char name[RDM__CACHE_NAME_SIZE];
  rdm__cache_entry_name(&key, name);
  size_t own_key_size = 0;
  bool expected = is_entry(bytes, size, &own_key_size) && own_key_size == key_size &&
                  memcmp(bytes + HEADER, key_bytes, key_size) == 0;
  int file = memory_file(bytes, size);
  size_t code_size = SIZE_MAX;
  char *code = rdm__cache_entry_read(file, name, any_key ? NULL : &key, &code_size);
  close(file);
  FUZZ_CHECK((code != NULL) == expected, "a file of %zu bytes was %s, and it is %s entry for its key", size,
             code != NULL ? "accepted" : "refused", expected ? "an" : "no");
  if (code != NULL) {
    FUZZ_CHECK(code_size == size - HEADER - key_size && memcmp(code, bytes + HEADER + key_size, code_size) == 0,
               "the code of an accepted entry is another");
  } else {
    FUZZ_CHECK(code_size == SIZE_MAX, "the size was written for a file that was refused");
  }
  free(code);
}

/* Reads the file for the key that it has inside, as far as its sizes can be believed, and for another. */
static void read_bytes(const uint8_t *bytes, size_t size) {
  size_t key_size = size < HEADER ? 0 : size - HEADER;
  if (size >= HEADER && word_at(bytes, KEY_SIZE_AT) < key_size) key_size = (size_t)word_at(bytes, KEY_SIZE_AT);
  const uint8_t *key = size < HEADER ? bytes : bytes + HEADER;
  read_for(bytes, size, key, key_size, false);
  read_for(bytes, size, key, key_size, true);
  read_for(bytes, size, (const uint8_t *)"another key", 11, false);
}

static void put_right(uint8_t *bytes, size_t size, uint8_t what) {
  if (size < HEADER) return;
  uint64_t rest = size - HEADER;
  uint64_t key_size = word_at(bytes, KEY_SIZE_AT);
  memcpy(bytes, entry_magic, sizeof entry_magic);
  if ((what & 1) != 0) key_size %= rest + 1;
  uint64_t code_size = (what & 2) != 0 ? rest - key_size : word_at(bytes, CODE_SIZE_AT);
  memcpy(bytes + KEY_SIZE_AT, &key_size, sizeof key_size);
  memcpy(bytes + CODE_SIZE_AT, &code_size, sizeof code_size);
  /* Over what is really there, so that only the sizes can be what is wrong. */
  size_t real = (size_t)(key_size <= rest ? key_size : rest);
  uint64_t sum = checksum_of(bytes + HEADER, real, bytes + HEADER + real, (size_t)rest - real);
  if ((what & 4) != 0) memcpy(bytes + CHECKSUM_AT, &sum, sizeof sum);
}

/* ---- Writing and damaging -------------------------------------------------------------------------------------- */

typedef struct stored {
  rdm__cache_key key;
  const char *code;
  size_t code_size;
} stored;

static stored take_stored(fuzz_input *input) {
  size_t key_size = fuzz_byte(input);
  size_t code_size = fuzz_byte(input);
  if (key_size > fuzz_left(input)) key_size = fuzz_left(input);
  stored entry = {.key = {.bytes = (char *)(uintptr_t)input->at, .size_bytes = key_size}};
  input->at += key_size;
  if (code_size > fuzz_left(input)) code_size = fuzz_left(input);
  entry.code = (const char *)input->at;
  entry.code_size = code_size;
  input->at += code_size;
  return entry;
}

/* Changes, cuts and lengthens the file as the rest of the input says. */
static void damage(int file, fuzz_input *input) {
  struct stat status;
  FUZZ_CHECK(fstat(file, &status) == 0, "the file is gone");
  while (!fuzz_is_empty(input)) {
    uint8_t how = fuzz_byte(input);
    off_t at = (off_t)(fuzz_number(input, 2) % (uint64_t)(status.st_size + 64));
    uint8_t byte = fuzz_byte(input);
    if (how % 8 == 0) {
      FUZZ_CHECK(ftruncate(file, at) == 0, "cutting the file");
    } else {
      FUZZ_CHECK(pwrite(file, &byte, 1, at) == 1, "writing the file");
    }
  }
}

static size_t contents(int file, uint8_t *bytes) {
  ssize_t size = pread(file, bytes, LARGEST_FILE, 0);
  FUZZ_CHECK(size >= 0, "reading the file");
  return (size_t)size;
}

static void write_and_damage(fuzz_input *input) {
  static uint8_t before[LARGEST_FILE];
  static uint8_t after[LARGEST_FILE];
  stored entry = take_stored(input);
  int file = memory_file(NULL, 0);
  FUZZ_CHECK(rdm__cache_entry_write(file, &entry.key, entry.code, entry.code_size), "an entry was not written");
  size_t size = contents(file, before);
  FUZZ_CHECK(size == rdm__cache_entry_size(&entry.key, entry.code_size), "an entry is %zu bytes long", size);
  damage(file, input);
  bool same = contents(file, after) == size && memcmp(before, after, size) == 0;
  char name[RDM__CACHE_NAME_SIZE];
  rdm__cache_entry_name(&entry.key, name);
  size_t code_size = 0;
  lseek(file, 0, SEEK_SET);
  char *code = rdm__cache_entry_read(file, name, &entry.key, &code_size);
  close(file);
  FUZZ_CHECK((code != NULL) == same, "an entry that %s was %s", same ? "is whole" : "was damaged",
             code != NULL ? "accepted" : "refused");
  if (code != NULL) {
    FUZZ_CHECK(code_size == entry.code_size && memcmp(code, entry.code, code_size) == 0, "another code came out");
  }
  free(code);
}

static void check_code(const stored *entry, char *code, size_t code_size) {
  FUZZ_CHECK(code == NULL || (code_size == entry->code_size && memcmp(code, entry->code, code_size) == 0),
             "another code came out of the store");
  free(code);
}

/* Stores, damages the file where it lies, and asks again; what is refused is stored anew and then found. */
static void store_and_damage(fuzz_input *input) {
  static uint8_t before[LARGEST_FILE];
  static uint8_t after[LARGEST_FILE];
  stored entry = take_stored(input);
  rdm__cache_turn turn;
  size_t code_size = 0;
  char *code = rdm__disk_cache_get(&entry.key, true, &code_size, &turn);
  FUZZ_CHECK(code == NULL && turn.is_held, "no turn to store an entry");
  rdm__disk_cache_end_turn(&turn, &entry.key, entry.code, entry.code_size);
  char name[RDM__CACHE_NAME_SIZE];
  char path[160];
  rdm__cache_entry_name(&entry.key, name);
  snprintf(path, sizeof path, "%s/%s%s", folder, name, RDM__CACHE_ENTRY_ENDING);
  int file = open(path, O_RDWR | O_CLOEXEC);
  FUZZ_CHECK(file >= 0, "an entry was not stored");
  size_t size = contents(file, before);
  damage(file, input);
  bool same = contents(file, after) == size && memcmp(before, after, size) == 0;
  close(file);
  code = rdm__disk_cache_get(&entry.key, false, &code_size, &turn);
  FUZZ_CHECK((code != NULL) == same && turn.is_held == !same, "a stored entry that %s was %s",
             same ? "is whole" : "was damaged", code != NULL ? "accepted" : "refused");
  check_code(&entry, code, code_size);
  if (!same) {
    FUZZ_CHECK(access(path, F_OK) != 0, "a damaged entry stayed");
    rdm__disk_cache_end_turn(&turn, &entry.key, entry.code, entry.code_size);
    code = rdm__disk_cache_get(&entry.key, false, &code_size, &turn);
    FUZZ_CHECK(code != NULL && !turn.is_held, "an entry that was stored anew is not there");
    check_code(&entry, code, code_size);
  }
  uint64_t removed = 0;
  FUZZ_CHECK(rdm_cache_prune(0, &removed, NULL) == RDM_OK && removed == 1, "%llu entries were removed and not 1",
             (unsigned long long)removed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_input input = {.at = data, .end = data + size};
  if (size == 0 || size > LARGEST_FILE / 2) return 0;
  uint8_t choice = fuzz_byte(&input);
  if (choice % 4 == 0) {
    read_bytes(input.at, fuzz_left(&input));
  } else if (choice % 4 == 1) {
    uint8_t what = fuzz_byte(&input);
    size_t left = fuzz_left(&input);
    uint8_t *bytes = malloc(left + 1);
    FUZZ_CHECK(bytes != NULL, "no memory");
    if (left > 0) memcpy(bytes, input.at, left);
    put_right(bytes, left, what);
    read_bytes(bytes, left);
    free(bytes);
  } else if (choice % 4 == 2) {
    write_and_damage(&input);
  } else {
    store_and_damage(&input);
  }
  return 0;
}
