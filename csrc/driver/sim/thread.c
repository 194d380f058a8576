#include "driver/sim/thread.h"

rdm__sim_thread *rdm__sim_this_thread(void) {
  static _Thread_local rdm__sim_thread thread;
  return &thread;
}
