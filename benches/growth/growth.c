/* Memory and cost against how much there is of each thing, on the simulated driver. `growth full` takes minutes. */
#include "measure.h"
#include "series.h"

#include <stdlib.h>
#include <string.h>

/* The simulated driver keeps its latest 65,536 calls: what they take is not to be seen as growth. */
static void fill_call_log(void) {
  rdm_device device;
  growth_check(rdm_device_get(0, &device), "the device");
  for (int i = 0; i < 70000; i++) growth_check(rdm_device_make_current(device), "making a device current");
}

int main(int argument_count, char **arguments) {
  const rdm_config config = {.struct_size = sizeof config, .driver = "sim", .sim_device_count = 64};
  growth_check(rdm_configure(&config), "choosing the driver");
  rdm_set_log_handler(NULL, NULL, RDM_LOG_ERROR);
  fill_call_log();
  growth_devices();
  growth_streams();
  growth_events(argument_count > 1 && strcmp(arguments[1], "full") == 0);
  growth_handles();
  /* Last: what a thousand threads leave behind in the C library's allocator is not the library's. */
  growth_threads();
  return EXIT_SUCCESS;
}
