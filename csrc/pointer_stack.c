#include "pointer_stack.h"

#include <stdlib.h>

bool rdm__pointer_stack_push(rdm__pointer_stack *stack, void *item) {
  if (stack->count == stack->capacity) {
    uint32_t capacity = stack->capacity == 0 ? 16 : stack->capacity * 2;
    void **items = realloc(stack->items, capacity * sizeof *items);
    if (items == NULL) return false;
    stack->items = items;
    stack->capacity = capacity;
  }
  stack->items[stack->count++] = item;
  return true;
}

void *rdm__pointer_stack_pop(rdm__pointer_stack *stack) {
  return stack->count == 0 ? NULL : stack->items[--stack->count];
}
