#include "driver/sim/state.h"

static rdm__sim_state_block *the_state;

rdm__sim_state_block *rdm__sim_state(void) {
  return the_state;
}

void rdm__sim_state_set(rdm__sim_state_block *state) {
  the_state = state;
}
