/* A fast 64-bit hash of bytes, for tables and for telling damage. Not for secrets: whoever must be kept out is kept out
 * by file permissions. */
#ifndef RDM_HASH_H
#define RDM_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t rdm__hash_word(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
  return hash ^ hash >> 29;
}

/*
 * Each step is a bijection of the state for a given word, so two inputs that differ in one word never collide. Four
 * lanes, whose multiplications do not wait for each other.
 */
static inline uint64_t rdm__hash_bytes(uint64_t hash, const void *bytes, size_t size) {
  enum { LANES = 4 };
  const char *next = bytes;
  hash = rdm__hash_word(hash, size);
  uint64_t lanes[LANES] = {hash, hash + 1, hash + 2, hash + 3};
  for (; size >= sizeof lanes; size -= sizeof lanes, next += sizeof lanes) {
    for (int i = 0; i < LANES; i++) {
      uint64_t word;
      memcpy(&word, next + (size_t)i * sizeof word, sizeof word);
      lanes[i] = rdm__hash_word(lanes[i], word);
    }
  }
  for (int i = 0; i < LANES; i++) hash = rdm__hash_word(hash, lanes[i]);
  for (; size >= sizeof(uint64_t); size -= sizeof(uint64_t), next += sizeof(uint64_t)) {
    uint64_t word;
    memcpy(&word, next, sizeof word);
    hash = rdm__hash_word(hash, word);
  }
  uint64_t rest = 0;
  memcpy(&rest, next, size);
  return rdm__hash_word(hash, rest);
}

static inline uint64_t rdm__hash_text(uint64_t hash, const char *text) {
  return rdm__hash_bytes(hash, text, strlen(text));
}

#endif
