#include "dependence.h"

#include <stddef.h>

/* Kinds of which two on one object do not disturb each other. */
static bool is_shared(point_kind kind) {
  return kind == POINT_LOAD || kind == POINT_READ_LOCK || kind == POINT_READ_UNLOCK;
}

bool dependence_of(point_kind one, const void *one_object, const void *one_other, point_kind other,
                   const void *other_object, const void *other_other) {
  if (is_shared(one) && is_shared(other)) return false;
  if (one_object != NULL && (one_object == other_object || one_object == other_other)) return true;
  return one_other != NULL && (one_other == other_object || one_other == other_other);
}

static bool is_unlock(point_kind kind) {
  return kind == POINT_UNLOCK || kind == POINT_BEGIN_WAIT || kind == POINT_READ_UNLOCK || kind == POINT_WRITE_UNLOCK;
}

static bool is_lock(point_kind kind) {
  return kind == POINT_LOCK || kind == POINT_READ_LOCK || kind == POINT_WRITE_LOCK;
}

bool dependence_both_possible(point_kind earlier, point_kind later) {
  if (is_unlock(earlier) && is_lock(later)) return false;
  return !(earlier == POINT_BROADCAST && later == POINT_WAIT);
}
