/*
 * A hash map from int to pointer of the kind that std::unordered_map is: chained nodes of their own on the heap, and a
 * bucket found by a division with a prime that is known only at run time. The designs that are compared with use that
 * class; they are written in C here, so what it does is, too.
 */
#ifndef RDM_BENCH_HASH_MAP_H
#define RDM_BENCH_HASH_MAP_H

#include <stddef.h>

typedef struct rdm__bench_map_node {
  struct rdm__bench_map_node *next;
  int key;
  void *value;
} rdm__bench_map_node;

typedef struct rdm__bench_map {
  rdm__bench_map_node **buckets;
  size_t bucket_count;
  size_t size;
} rdm__bench_map;

/* Null where the key is not there. */
void *rdm__bench_map_find(const rdm__bench_map *map, int key);

/* Adds the key, or replaces its value. */
void rdm__bench_map_set(rdm__bench_map *map, int key, void *value);

#endif
