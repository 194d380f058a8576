/* The simulated driver's variables that have two values. */
#include "driver/sim/driver_table.c"

#include "fuzz.h"
#include "fuzz_environment.h"

void environment_fuzz_choice(unsigned which, const char *text) {
  static const struct {
    const char *variable, *off, *on;
    size_t field;
  } choices[] = {
      {"RDM_SIM_FAULT_SCOPE", "device", "process", offsetof(rdm__sim_state_block, faults_are_process_wide)},
      {"RDM_SIM_LAST_ERROR", "sticky", "legacy", offsetof(rdm__sim_state_block, legacy_last_error)},
      {"RDM_SIM_SERIAL_COMPILER", "0", "1", offsetof(rdm__sim_state_block, one_compile_at_a_time)},
  };
  which %= sizeof choices / sizeof choices[0];
  rdm__sim_state_block state = {0};
  setenv(choices[which].variable, text, 1);
  rdm_status status = read_environment(&state);
  unsetenv(choices[which].variable);
  bool is_on = strcmp(text, choices[which].on) == 0;
  bool is_known = is_on || text[0] == '\0' || strcmp(text, choices[which].off) == 0;
  FUZZ_CHECK(status == (is_known ? RDM_OK : RDM_ERROR_INVALID_ARGUMENT), "%s=\"%s\" is %s", choices[which].variable,
             text, rdm_status_name(status));
  bool found = *(const bool *)((const char *)&state + choices[which].field);
  FUZZ_CHECK(found == (is_known && is_on), "%s=\"%s\" is taken for %d", choices[which].variable, text, found);
  FUZZ_CHECK(is_known || strstr(rdm_last_error_message(), choices[which].variable) != NULL,
             "the message does not name %s: %s", choices[which].variable, rdm_last_error_message());
}
