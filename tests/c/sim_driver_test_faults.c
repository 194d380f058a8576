/* Faults of the simulated devices: what they end, what they leave alone, and how a kernel raises one. */
#include "sim_driver_test.h"

#include "driver/sim/callback.h"

static const char kernels[] =
    "extern \"C\" __global__ void store(int *to, int value) { *to = value; }\n"
    "extern \"C\" __global__ void store_at(char *to, unsigned long long offset) { to[offset] = 1; }\n"
    "extern \"C\" __global__ void divide(int *to, int a, int b) { *to = a / b; }\n"
    "extern \"C\" __global__ void trap(void) { __builtin_trap(); }\n"
    "__device__ __attribute__((noinline)) int deeper(volatile int *at, int n) {\n"
    "  volatile int here[64]; here[n & 63] = n; return n < 0 ? *at : deeper(here, n + 1) + here[n & 63]; }\n"
    "extern \"C\" __global__ void recurse(int *to) { *to = deeper(to, 1); }\n";

static void count_run(void *user_data) {
  atomic_fetch_add((atomic_int *)user_data, 1);
}

static void only_its_own_device(void) {
  open_driver(2);
  void *module_of_0 = load_source(kernels);
  void *store_of_0 = get_function(module_of_0, "store");
  void *stream_of_0 = create_stream();
  void *second_of_0 = create_stream();
  void *event_of_0 = create_event(0);
  int *memory_of_0 = allocate(64);
  atomic_int runs = 0;
  MUST(driver->set_device(1));
  void *module_of_1 = load_source(kernels);
  void *store_of_1 = get_function(module_of_1, "store");
  void *stream_of_1 = create_stream();
  int *memory_of_1 = allocate(64);
  MUST(driver->set_device(0));
  hold(0, true);
  int value = 7;
  int back = 0;
  void *arguments_of_0[] = {&memory_of_0, &value};
  void *arguments_of_1[] = {&memory_of_1, &value};
  RETURNS(0, launch(store_of_0, stream_of_0, 1, arguments_of_0));
  RETURNS(0, driver->launch_host_function(stream_of_0, count_run, &runs));
  RETURNS(0, driver->launch_host_function(second_of_0, count_run, &runs));
  RETURNS(0, driver->event_record(event_of_0, stream_of_0));
  fault(0, 702);
  fault(0, 700);
  hold(0, false);

  /* The first fault stays, and every call that names the device or what is its returns it. */
  void *created = NULL;
  rdm__device_properties properties;
  RETURNS(702, driver->stream_query(stream_of_0));
  RETURNS(702, driver->stream_synchronize(stream_of_0));
  RETURNS(702, driver->event_query(event_of_0));
  RETURNS(702, driver->event_synchronize(event_of_0));
  RETURNS(702, driver->event_record(event_of_0, stream_of_0));
  RETURNS(702, driver->event_destroy(event_of_0));
  RETURNS(702, driver->stream_destroy(second_of_0));
  RETURNS(702, driver->device_synchronize());
  RETURNS(702, driver->memory_free(memory_of_0));
  RETURNS(702, driver->memory_allocate(&created, 8));
  RETURNS(702, driver->stream_create(&created, 1));
  RETURNS(702, driver->event_create(&created, 0));
  RETURNS(702, driver->module_load_data(&created, "x", 1));
  RETURNS(702, driver->module_get_function(&created, module_of_0, "store"));
  RETURNS(702, driver->module_unload(module_of_0));
  RETURNS(702, launch(store_of_0, stream_of_0, 1, arguments_of_0));
  RETURNS(702, driver->launch_host_function(stream_of_0, count_run, &runs));
  RETURNS(702, driver->memory_set_async(memory_of_0, 0, 8, stream_of_0));
  RETURNS(702, driver->get_device_properties(&properties, 0));
  RETURNS(702, driver->set_device(0));
  RETURNS(702, driver->get_last_error());
  RETURNS(0, driver->get_last_error());

  /* The other device goes on, but may not touch what the first one had. */
  RETURNS(0, driver->set_device(1));
  RETURNS(0, launch(store_of_1, stream_of_1, 1, arguments_of_1));
  RETURNS(0, driver->memory_copy_async(&back, memory_of_1, sizeof back, RDM_COPY_DEVICE_TO_HOST, stream_of_1));
  RETURNS(0, driver->stream_synchronize(stream_of_1));
  CHECK(back == 7);
  RETURNS(702, driver->memory_copy_async(&back, memory_of_0, sizeof back, RDM_COPY_DEVICE_TO_HOST, stream_of_1));
  RETURNS(702, driver->stream_wait_event(stream_of_1, event_of_0, 0));
  RETURNS(0, driver->device_synchronize());
  sleep_ms(30);
  CHECK(atomic_load(&runs) == 0);
}

typedef struct waiter {
  int (*wait)(void *object);
  void *object;
  int result;
  pthread_t thread;
} waiter;

static int synchronize_device(void *object) {
  (void)object;
  return driver->device_synchronize();
}

static void *run_waiter(void *argument) {
  waiter *self = argument;
  self->result = self->wait(self->object);
  return NULL;
}

/* Every thread that waits for the device is let go with the fault. */
static void waits_end(void) {
  open_driver(1);
  void *stream = create_stream();
  void *event = create_event(0);
  void *memory = allocate(64);
  hold(0, true);
  MUST(driver->memory_set_async(memory, 1, 64, stream));
  MUST(driver->event_record(event, stream));
  waiter waiters[] = {
      {driver->stream_synchronize, stream, -1, 0},
      {driver->event_synchronize, event, -1, 0},
      {driver->memory_free, memory, -1, 0},
      {synchronize_device, NULL, -1, 0},
  };
  for (int i = 0; i < 4; i++) pthread_create(&waiters[i].thread, NULL, run_waiter, &waiters[i]);
  sleep_ms(30);
  for (int i = 0; i < 4; i++) CHECK(rdm__sim_device_fault(rdm__sim_device_at(0)) == 0);
  fault(0, 700);
  for (int i = 0; i < 4; i++) {
    pthread_join(waiters[i].thread, NULL);
    RETURNS(700, waiters[i].result);
  }
}

/* A kernel that does not end while its device faults: the waits end all the same. */
static void sleep_long(void *user_data) {
  (void)user_data;
  sleep_ms(60000);
}

static void waits_end_behind_running_work(void) {
  open_driver(1);
  void *stream = create_stream();
  void *event = create_event(0);
  MUST(driver->launch_host_function(stream, sleep_long, NULL));
  MUST(driver->event_record(event, stream));
  waiter first = {driver->stream_synchronize, stream, -1, 0};
  waiter second = {driver->event_synchronize, event, -1, 0};
  pthread_create(&first.thread, NULL, run_waiter, &first);
  pthread_create(&second.thread, NULL, run_waiter, &second);
  sleep_ms(30);
  fault(0, 719);
  pthread_join(first.thread, NULL);
  pthread_join(second.thread, NULL);
  RETURNS(719, first.result);
  RETURNS(719, second.result);
}

/* A stream that comes to a callback just when its device faults: it is not run, and the stream does not wait. */
static void no_callback_after_the_fault(void) {
  open_driver(2);
  atomic_int runs = 0;
  rdm__sim_callback_queue *queue = rdm__sim_device_callbacks(rdm__sim_device_at(0));
  CHECK(rdm__sim_callback_queue_start(queue));
  rdm__sim_callback_run(queue, count_run, &runs);
  CHECK(atomic_load(&runs) == 1);
  fault(0, 700);
  rdm__sim_callback_run(queue, count_run, &runs);
  CHECK(atomic_load(&runs) == 1);
}

/* A stream that waits for an event of a device that faults goes on; one whose own device faults stops waiting. */
static void waits_across_devices_end(void) {
  open_driver(3);
  void *stream_of_0 = create_stream();
  void *event_of_0 = create_event(0);
  MUST(driver->set_device(1));
  void *stream_of_1 = create_stream();
  char *memory_of_1 = allocate(8);
  char back = 0;
  MUST(driver->set_device(2));
  void *stream_of_2 = create_stream();
  MUST(driver->set_device(0));
  hold(0, true);
  MUST(driver->event_record(event_of_0, stream_of_0));
  MUST(driver->set_device(1));
  MUST(driver->stream_wait_event(stream_of_1, event_of_0, 0));
  MUST(driver->memory_set_async(memory_of_1, 4, 8, stream_of_1));
  MUST(driver->memory_copy_async(&back, memory_of_1, 1, RDM_COPY_DEVICE_TO_HOST, stream_of_1));
  MUST(driver->set_device(2));
  MUST(driver->stream_wait_event(stream_of_2, event_of_0, 0));
  sleep_ms(20);
  fault(2, 700);
  RETURNS(700, driver->stream_synchronize(stream_of_2));
  RETURNS(RDM_HIP_NOT_READY, driver->stream_query(stream_of_1));
  fault(0, 700);
  RETURNS(0, driver->stream_synchronize(stream_of_1));
  CHECK(back == 4);
}

static void whole_process(void) {
  open_driver(2);
  CHECK(driver->fault_is_process_wide);
  void *stream_of_0 = create_stream();
  MUST(driver->set_device(1));
  void *stream_of_1 = create_stream();
  void *memory_of_1 = allocate(8);
  hold(1, true);
  MUST(driver->memory_set_async(memory_of_1, 1, 8, stream_of_1));
  waiter waiting = {driver->stream_synchronize, stream_of_1, -1, 0};
  pthread_create(&waiting.thread, NULL, run_waiter, &waiting);
  sleep_ms(20);
  fault(0, 719);
  pthread_join(waiting.thread, NULL);
  RETURNS(700, waiting.result);
  int value = 0;
  RETURNS(700, driver->get_device_count(&value));
  RETURNS(700, driver->get_device(&value));
  RETURNS(700, driver->set_device(0));
  RETURNS(700, driver->stream_query(stream_of_0));
  RETURNS(700, driver->runtime_get_version(&value));
  RETURNS(700, driver->get_last_error());
  RETURNS(0, driver->get_last_error());
  /* The compiler is a library of its own. */
  RETURNS(0, driver->rtc_version(&value, &value));
}

/* Runs a kernel of device 0 that fails, and checks that device 1 is as it was. */
static void expect_fault_of(int expected, void *function, void **arguments) {
  MUST(driver->set_device(1));
  void *stream_of_1 = create_stream();
  void *memory_of_1 = allocate(8);
  MUST(driver->set_device(0));
  void *stream = create_stream();
  RETURNS(0, launch(function, stream, 1, arguments));
  RETURNS(expected, driver->stream_synchronize(stream));
  RETURNS(expected, driver->device_synchronize());
  RETURNS(0, driver->set_device(1));
  RETURNS(0, driver->memory_set_async(memory_of_1, 1, 8, stream_of_1));
  RETURNS(0, driver->stream_synchronize(stream_of_1));
}

static void expect_fault(int expected, const char *name, void **arguments) {
  expect_fault_of(expected, get_function(load_source(kernels), name), arguments);
}

static void far_write(void) {
  open_driver(2);
  char *memory = allocate(64);
  unsigned long long offset = 1ULL << 40;
  expect_fault(700, "store_at", (void *[]){&memory, &offset});
}

static void null_write(void) {
  open_driver(2);
  char *memory = NULL;
  unsigned long long offset = 0;
  expect_fault(700, "store_at", (void *[]){&memory, &offset});
}

static void write_past_the_end(void) {
  open_driver(2);
  char *memory = allocate(4096);
  unsigned long long offset = 4096;
  expect_fault(700, "store_at", (void *[]){&memory, &offset});
}

static void write_before_the_begin(void) {
  open_driver(2);
  char *memory = allocate(4096);
  unsigned long long offset = (unsigned long long)-1;
  expect_fault(700, "store_at", (void *[]){&memory, &offset});
}

static void write_after_free(void) {
  open_driver(2);
  void *store_at = get_function(load_source(kernels), "store_at");
  char *memory = allocate(64 << 20);
  /* In the middle, where nothing else is likely to be put meanwhile. */
  unsigned long long offset = 32 << 20;
  MUST(driver->memory_free(memory));
  expect_fault_of(700, store_at, (void *[]){&memory, &offset});
}

static void division_by_zero(void) {
  open_driver(2);
  int *memory = allocate(64);
  int one = 1;
  int zero = 0;
  expect_fault(719, "divide", (void *[]){&memory, &one, &zero});
}

static void trap(void) {
  open_driver(2);
  expect_fault(719, "trap", NULL);
}

static void stack_overrun(void) {
  open_driver(2);
  int *memory = allocate(64);
  expect_fault(700, "recurse", (void *[]){&memory});
}

static void copy_from_nowhere(void) {
  open_driver(1);
  char *memory = allocate(64);
  void *stream = create_stream();
  RETURNS(0, driver->memory_copy_async(memory, (void *)(uintptr_t)4096, 64, RDM_COPY_HOST_TO_DEVICE, stream));
  RETURNS(700, driver->stream_synchronize(stream));
}

/* ---- Signals of others ----------------------------------------------------------------------------------------- */

static char *signal_stack;
static char *volatile mended;
static volatile sig_atomic_t handler_runs;
static volatile sig_atomic_t handler_was_right;

static void mend(int number, siginfo_t *information, void *context) {
  char here;
  bool on_signal_stack = &here >= signal_stack && &here < signal_stack + 65536;
  handler_runs++;
  handler_was_right = number == SIGSEGV && information->si_code == SEGV_ACCERR && context != NULL &&
                      information->si_addr == mended && (SIM_TEST_SANITIZED || on_signal_stack);
  mprotect(mended, 4096, PROT_READ | PROT_WRITE);
}

/* The handler that was there before gets the faults of other threads, as it asked for them. */
static void others_faults_are_forwarded(void) {
  signal_stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  stack_t stack = {.ss_sp = signal_stack, .ss_size = 65536};
  MUST(sigaltstack(&stack, NULL));
  struct sigaction action = {.sa_sigaction = mend, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  MUST(sigaction(SIGSEGV, &action, NULL));
  open_driver(2);
  int *memory = allocate(64);
  int value = 3;
  void *stream = create_stream();
  RETURNS(0, launch(get_function(load_source(kernels), "store"), stream, 1, (void *[]){&memory, &value}));
  RETURNS(0, driver->stream_synchronize(stream));
  for (int round = 1; round <= 3; round++) {
    mended = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *(volatile char *)mended = 1;
    CHECK(handler_runs == round && handler_was_right);
  }
  /* Only address 0 is sure to be nowhere: what ThreadSanitizer maps for itself begins at 1 << 40. */
  char *nowhere = NULL;
  unsigned long long offset = 0;
  expect_fault(700, "store_at", (void *[]){&nowhere, &offset});
  CHECK(handler_runs == 3);
}

static void load_one(void) {
  open_driver(1);
  load_source(kernels);
}

static void own_fault_still_kills(void) {
  load_one();
  /* Volatile, so that the compiler does not see through it. */
  volatile char *volatile nowhere = (char *)8;
  *nowhere = 1;
}

static void sent_signal_still_kills(void) {
  load_one();
  kill(getpid(), SIGSEGV);
  sleep_ms(1000);
}

const sim_test fault_tests[] = {
    {"only_its_own_device", only_its_own_device, NULL, 0},
    {"waits_end", waits_end, NULL, 0},
    {"waits_end_behind_running_work", waits_end_behind_running_work, NULL, 0},
    {"no_callback_after_the_fault", no_callback_after_the_fault, NULL, 0},
    {"waits_across_devices_end", waits_across_devices_end, NULL, 0},
    {"whole_process", whole_process, "RDM_SIM_FAULT_SCOPE=process", 0},
    {"far_write", far_write, NULL, 0},
    {"null_write", null_write, NULL, 0},
    {"write_past_the_end", write_past_the_end, NULL, 0},
    {"write_before_the_begin", write_before_the_begin, NULL, 0},
    {"write_after_free", write_after_free, NULL, 0},
    {"division_by_zero", division_by_zero, NULL, 0},
    {"trap", trap, NULL, 0},
    {"stack_overrun", stack_overrun, NULL, 0},
    {"copy_from_nowhere", copy_from_nowhere, NULL, 0},
    {"others_faults_are_forwarded", others_faults_are_forwarded, NULL, 0},
    {"own_fault_still_kills", own_fault_still_kills, NULL, SIGSEGV},
    {"sent_signal_still_kills", sent_signal_still_kills, NULL, SIGSEGV},
    {NULL, NULL, NULL, 0},
};
