#include "hash_map.h"

#include <stdint.h>
#include <stdlib.h>

/* Bucket counts, each prime and about twice the one before, as libstdc++ grows. */
static const size_t primes[] = {13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753};

static void *allocate(size_t count, size_t size) {
  void *memory = calloc(count, size);
  if (memory == NULL) abort();
  return memory;
}

static size_t bucket_of(const rdm__bench_map *map, int key) {
  return (size_t)key % map->bucket_count;
}

static rdm__bench_map_node *find_node(const rdm__bench_map *map, int key) {
  if (map->size == 0) return NULL;
  rdm__bench_map_node *node = map->buckets[bucket_of(map, key)];
  while (node != NULL && node->key != key) node = node->next;
  return node;
}

void *rdm__bench_map_find(const rdm__bench_map *map, int key) {
  const rdm__bench_map_node *node = find_node(map, key);
  return node != NULL ? node->value : NULL;
}

static void grow(rdm__bench_map *map) {
  rdm__bench_map_node **old = map->buckets;
  size_t old_count = map->bucket_count;
  size_t choice = 0;
  while (primes[choice] <= old_count && choice + 1 < sizeof primes / sizeof primes[0]) choice++;
  map->bucket_count = primes[choice];
  map->buckets = allocate(map->bucket_count, sizeof(rdm__bench_map_node *));
  for (size_t i = 0; i < old_count; i++) {
    for (rdm__bench_map_node *node = old[i], *next; node != NULL; node = next) {
      next = node->next;
      size_t bucket = bucket_of(map, node->key);
      node->next = map->buckets[bucket];
      map->buckets[bucket] = node;
    }
  }
  free(old);
}

void rdm__bench_map_set(rdm__bench_map *map, int key, void *value) {
  rdm__bench_map_node *node = find_node(map, key);
  if (node == NULL) {
    if (map->size >= map->bucket_count) grow(map);
    node = allocate(1, sizeof *node);
    size_t bucket = bucket_of(map, key);
    *node = (rdm__bench_map_node){.next = map->buckets[bucket], .key = key};
    map->buckets[bucket] = node;
    map->size++;
  }
  node->value = value;
}
