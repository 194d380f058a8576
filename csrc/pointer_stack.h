/* A growing stack of pointers, for the pools. Not locked: its owner's lock guards it. */
#ifndef RDM_POINTER_STACK_H
#define RDM_POINTER_STACK_H

#include <stdbool.h>
#include <stdint.h>

typedef struct rdm__pointer_stack {
  void **items;
  uint32_t count;
  uint32_t capacity;
} rdm__pointer_stack;

/* False, with nothing changed, where memory ran out. */
bool rdm__pointer_stack_push(rdm__pointer_stack *stack, void *item);

/* The latest item pushed, NULL where there is none. */
void *rdm__pointer_stack_pop(rdm__pointer_stack *stack);

#endif
