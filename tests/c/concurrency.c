/* What many threads at once may do, one test for each claim, on the simulated driver. */
#include "concurrency.h"

int main(int argc, char **argv) {
  static const test_case *const groups[] = {first_use_tests,
                                            current_device_tests,
                                            stream_tests,
                                            encoder_tests,
                                            event_tests,
                                            handler_tests,
                                            fault_tests,
                                            exit_tests,
                                            lifetime_tests,
                                            random_tests,
                                            bound_tests,
                                            failure_tests,
                                            closing_tests,
                                            closing_call_tests,
                                            capture_tests,
                                            graph_tests,
                                            abort_tests,
                                            fork_tests,
                                            many_tests,
                                            at_once_tests,
                                            pending_tests,
                                            memory_tests,
                                            late_exit_tests,
                                            counter_tests,
                                            counter_thread_tests,
                                            log_tests,
                                            NULL};
  static const test_body *const bodies[] = {first_use_bodies,    fault_bodies, exit_bodies, closing_bodies,
                                            closing_call_bodies, abort_bodies, fork_bodies, at_once_bodies,
                                            late_exit_bodies,    log_bodies,   NULL};
  return test_main(argc, argv, groups, bodies);
}
