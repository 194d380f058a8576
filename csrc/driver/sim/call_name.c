#include "driver/sim/call_name.h"

#include <string.h>

static const char *const call_names[RDM__CALL_COUNT] = {
#define X(field, hip_name, parameters) [RDM__CALL_##field] = hip_name,
    RDM__DRIVER_CALLS(X)
#undef X
};

const char *rdm__sim_call_name(rdm__call call) {
  return (unsigned)call < RDM__CALL_COUNT ? call_names[call] : "";
}

rdm__call rdm__sim_call_by_name(const char *name) {
  for (int call = 0; call < RDM__CALL_COUNT; call++) {
    if (strcmp(call_names[call], name) == 0) return (rdm__call)call;
  }
  return RDM__CALL_COUNT;
}
