#include "stream_table.h"

#include "stream.h"

#include <stdlib.h>

enum { FIRST_BITS = 4, MOST_BITS = 24 };

static uint32_t bucket_count(const rdm__stream_table *table) {
  return UINT32_C(1) << table->bits;
}

static rdm__stream *const *buckets_of(const rdm__stream_table *table) {
  return table->buckets != NULL ? table->buckets : &table->only_bucket;
}

/* By the product's upper bits: indices that a caller chose may all be multiples of something. */
static uint32_t place_in(unsigned bits, int32_t index) {
  return bits == 0 ? 0 : (uint32_t)index * UINT32_C(2654435769) >> (32 - bits);
}

static rdm__stream **bucket(rdm__stream_table *table, int32_t index) {
  rdm__stream **buckets = table->buckets != NULL ? table->buckets : &table->only_bucket;
  return &buckets[place_in(table->bits, index)];
}

/* Twice the buckets. Where memory ran out all stays as it is, and lookups get slower. */
static void grow(rdm__stream_table *table) {
  unsigned bits = table->bits == 0 ? FIRST_BITS : table->bits + 1;
  if (bits > MOST_BITS) return;
  rdm__stream **buckets = calloc(UINT32_C(1) << bits, sizeof(rdm__stream *));
  if (buckets == NULL) return;
  for (uint32_t i = 0; i < bucket_count(table); i++) {
    rdm__stream *stream = buckets_of(table)[i];
    while (stream != NULL) {
      rdm__stream *next = stream->next;
      rdm__stream **place = &buckets[place_in(bits, stream->index)];
      stream->next = *place;
      *place = stream;
      stream = next;
    }
  }
  free(table->buckets);
  table->buckets = buckets;
  table->bits = bits;
  table->only_bucket = NULL;
}

rdm__stream *rdm__stream_table_find(const rdm__stream_table *table, int32_t index) {
  rdm__stream *stream = buckets_of(table)[place_in(table->bits, index)];
  while (stream != NULL && (stream->index != index || rdm__object_is_closed(&stream->object))) stream = stream->next;
  return stream;
}

void rdm__stream_table_insert(rdm__stream_table *table, rdm__stream *stream) {
  if (table->count >= bucket_count(table)) grow(table);
  rdm__stream **place = bucket(table, stream->index);
  stream->next = *place;
  *place = stream;
  table->count++;
}

void rdm__stream_table_remove(rdm__stream_table *table, rdm__stream *stream) {
  rdm__stream **place = bucket(table, stream->index);
  while (*place != stream) place = &(*place)->next;
  *place = stream->next;
  table->count--;
}

rdm__stream *rdm__stream_table_next(const rdm__stream_table *table, const rdm__stream *stream) {
  if (stream != NULL && stream->next != NULL) return stream->next;
  uint32_t i = stream == NULL ? 0 : place_in(table->bits, stream->index) + 1;
  while (i < bucket_count(table) && buckets_of(table)[i] == NULL) i++;
  return i < bucket_count(table) ? buckets_of(table)[i] : NULL;
}
