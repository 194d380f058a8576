/*
 * A device's streams by their index: a hash table that grows with them, so that a lookup costs the same beside ten
 * streams as beside a hundred thousand. Not locked: the device's streams_lock guards it.
 */
#ifndef RDM_STREAM_TABLE_H
#define RDM_STREAM_TABLE_H

#include <stdint.h>

typedef struct rdm__stream rdm__stream;

/* All zero is an empty table. */
typedef struct rdm__stream_table {
  /* 2^bits of them; null at first. */
  rdm__stream **buckets;
  unsigned bits;
  uint32_t count;
  /* The one bucket of a table that could not be given more: so that to insert never fails. */
  rdm__stream *only_bucket;
} rdm__stream_table;

/* The open stream with this index, null where there is none. One that is closed and about to leave does not count. */
rdm__stream *rdm__stream_table_find(const rdm__stream_table *table, int32_t index);

void rdm__stream_table_insert(rdm__stream_table *table, rdm__stream *stream);

/* The stream has to be in the table. */
void rdm__stream_table_remove(rdm__stream_table *table, rdm__stream *stream);

/* The stream after this one in no particular order, null: the first one; null after the last. */
rdm__stream *rdm__stream_table_next(const rdm__stream_table *table, const rdm__stream *stream);

#endif
