/*
 * The simulated driver's objects and their handles.
 *
 * A handle is a number, never an address: kind, generation and slot. So a handle that was destroyed, or that never
 * was one, is told apart without reading freed memory. An object lives while its handle or anything that uses it
 * holds a reference.
 */
#ifndef RDM_SIM_OBJECT_H
#define RDM_SIM_OBJECT_H

#include <stdatomic.h>
#include <stdint.h>

typedef enum rdm__sim_kind {
  RDM__SIM_STREAM = 1,
  RDM__SIM_EVENT,
  RDM__SIM_MODULE,
  RDM__SIM_FUNCTION,
  RDM__SIM_PROGRAM,
  RDM__SIM_GRAPH,
  RDM__SIM_GRAPH_EXEC,
  RDM__SIM_KIND_COUNT,
} rdm__sim_kind;

/* The first member of every object. */
typedef struct rdm__sim_object {
  atomic_uint references;
  rdm__sim_kind kind;
  /* The device current at its creation; -1 for a program and a graph, which have none. */
  int device;
  void (*destroy)(struct rdm__sim_object *object);
} rdm__sim_object;

typedef struct rdm__sim_handle_table rdm__sim_handle_table;

/* NULL where memory is short. */
rdm__sim_handle_table *rdm__sim_handle_table_create(void);

/* Starts an object with one reference, the caller's. */
void rdm__sim_object_init(rdm__sim_object *object, rdm__sim_kind kind, int device,
                          void (*destroy)(rdm__sim_object *object));
void rdm__sim_object_retain(rdm__sim_object *object);
/* NULL is fine. */
void rdm__sim_object_release(rdm__sim_object *object);

/* Gives the object a handle, which takes over the caller's reference. NULL where there is no room for one more. */
void *rdm__sim_handle_add(rdm__sim_object *object);

/* The object of a handle with one more reference, or NULL where it is not a live handle of this kind. */
void *rdm__sim_handle_get(const void *handle, rdm__sim_kind kind);

/* Ends a handle and gives its reference to the caller. NULL as above: of several callers one gets the object. */
void *rdm__sim_handle_remove(const void *handle, rdm__sim_kind kind);

uint64_t rdm__sim_handle_count(rdm__sim_kind kind);

#endif
