/* RDM_SIM_INJECT against a second parser, and what it does to calls against a model. */
#include "driver/sim/call_name.h"
#include "driver/sim/injection.h"
#include "driver/sim/state.h"
#include "fuzz.h"
#include "fuzz_environment.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS = 5, MOST_ITEMS = 64, CALLS_TRIED = 6 };

typedef struct item {
  int call;
  uint64_t nth, times, error, stall_ns;
  uint64_t seen;
} item;

/* `entry point:nth:times:error:stall_ns`, cut at the colons first and only then read. */
static bool expect_item(char *text, item *out) {
  char *fields[FIELDS];
  int count = 0;
  for (char *at = text; at != NULL && count <= FIELDS;) {
    char *colon = strchr(at, ':');
    if (colon != NULL) *colon = '\0';
    if (count < FIELDS) fields[count] = at;
    count++;
    at = colon == NULL ? NULL : colon + 1;
  }
  if (count != FIELDS) return false;
  out->call = RDM__CALL_COUNT;
  for (int call = 0; call < RDM__CALL_COUNT; call++) {
    if (strcmp(fields[0], rdm__sim_call_name((rdm__call)call)) == 0) out->call = call;
  }
  if (out->call == RDM__CALL_COUNT && strcmp(fields[0], "*") != 0) return false;
  out->seen = 0;
  return environment_expect_number(fields[1], &out->nth) && environment_expect_number(fields[2], &out->times) &&
         environment_expect_number(fields[3], &out->error) && environment_expect_number(fields[4], &out->stall_ns) &&
         out->nth > 0 && out->error <= INT_MAX;
}

/* Items with commas between them; no text is no item. -1 where it is no such list. */
static int expect_items(const char *text, item *items) {
  if (text[0] == '\0') return 0;
  char *copy = strdup(text);
  FUZZ_CHECK(copy != NULL, "no memory");
  int count = 0;
  bool valid = true;
  for (char *at = copy; at != NULL && valid && count < MOST_ITEMS; count++) {
    char *comma = strchr(at, ',');
    if (comma != NULL) *comma = '\0';
    valid = expect_item(at, &items[count]);
    at = comma == NULL ? NULL : comma + 1;
  }
  free(copy);
  return valid ? count : -1;
}

/* Every item counts a call that is its; of those whose turn it is, the one set first decides. */
static int expect_error(item *items, int count, int call) {
  int chosen = -1;
  for (int i = 0; i < count; i++) {
    if (items[i].call != RDM__CALL_COUNT && items[i].call != call) continue;
    uint64_t number = items[i].seen + 1;
    if (chosen >= 0) {
      items[i].seen = number;
      continue;
    }
    items[i].seen = number;
    bool begun = number >= items[i].nth;
    bool over = items[i].times != 0 && begun && number - items[i].nth >= items[i].times;
    if (begun && !over) chosen = i;
  }
  return chosen < 0 ? 0 : (int)items[chosen].error;
}

static void try_calls(item *items, int count) {
  for (int i = 0; i < count; i++) {
    if (items[i].stall_ns != 0) return;
  }
  uint64_t changed = 0;
  for (int round = 0; round < CALLS_TRIED; round++) {
    for (int i = 0; i < count; i++) {
      int call = items[i].call == RDM__CALL_COUNT ? round % RDM__CALL_COUNT : items[i].call;
      int expected = expect_error(items, count, call);
      int error = rdm__sim_injection_apply((rdm__call)call);
      FUZZ_CHECK(error == expected, "a call of %s returns %d and not %d", rdm__sim_call_name((rdm__call)call), error,
                 expected);
      changed += error != 0;
    }
  }
  uint64_t fired = rdm__sim_injections_clear(rdm__sim_state()->injections);
  FUZZ_CHECK(fired >= changed, "%llu calls were changed and %llu counted", (unsigned long long)changed,
             (unsigned long long)fired);
}

void environment_fuzz_injections(const char *text) {
  static item items[MOST_ITEMS];
  rdm__sim_state_block *state = rdm__sim_state();
  int count = expect_items(text, items);
  /* More than the model has room for. */
  if (count == MOST_ITEMS) return;
  rdm__sim_injections *injections = rdm__sim_injections_create();
  FUZZ_CHECK(injections != NULL, "no memory");
  bool taken = rdm__sim_injections_parse(injections, text);
  FUZZ_CHECK(taken == (count >= 0), "RDM_SIM_INJECT=\"%s\" is %s", text, taken ? "taken" : "refused");
  rdm__sim_injections *before = state->injections;
  state->injections = injections;
  if (taken) try_calls(items, count);
  state->injections = before;
  rdm__sim_injections_destroy(injections);
}
