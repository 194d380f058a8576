/* Many threads at once: each on its own stream, all on one stream, and each on its own device. */
#include "conformance.h"

#include <stdint.h>

enum { THREADS = 8, ROUNDS = 40, COUNT = 512 };

static void *kernels[2];
static void *shared_stream;
static unsigned *shared_memory;
static pthread_barrier_t barrier;

typedef struct worker {
  int index;
  int wrong;
  int errors;
} worker;

static void *work_alone(void *argument) {
  worker *self = argument;
  int device = self->index % (device_count < 2 ? 1 : 2);
  if (driver->set_device(device) != 0) self->errors++;
  void *stream = make_stream();
  void *event = make_event(RDM_HIP_EVENT_DISABLE_TIMING);
  unsigned *memory = make_device_memory(sizeof(unsigned) * COUNT);
  unsigned *host = make_host_memory(sizeof(unsigned) * COUNT);
  pthread_barrier_wait(&barrier);
  for (int round = 0; round < ROUNDS; round++) {
    unsigned start = (unsigned)(self->index * 1000 + round);
    for (unsigned i = 0; i < COUNT; i++) host[i] = start + i;
    if (driver->memory_copy_async(memory, host, sizeof(unsigned) * COUNT, 1, stream) != 0) self->errors++;
    for (int i = 0; i < 4; i++) {
      if (launch_step(kernels[device], stream, memory, COUNT) != 0) self->errors++;
    }
    if (driver->memory_copy_async(host, memory, sizeof(unsigned) * COUNT, 2, stream) != 0) self->errors++;
    if (driver->event_record(event, stream) != 0) self->errors++;
    if (driver->event_synchronize(event) != 0) self->errors++;
    for (unsigned i = 0; i < COUNT; i++) {
      if (host[i] != (start + i) * 16 + 15) self->wrong++;
    }
    int now = -1;
    if (driver->get_device(&now) != 0 || now != device) self->errors++;
  }
  if (driver->event_destroy(event) != 0 || driver->stream_destroy(stream) != 0) self->errors++;
  return NULL;
}

static void run_workers(void *(*function)(void *), int *out_wrong, int *out_errors) {
  pthread_t threads[THREADS];
  worker workers[THREADS];
  *out_wrong = 0;
  *out_errors = 0;
  pthread_barrier_init(&barrier, NULL, THREADS);
  for (int i = 0; i < THREADS; i++) {
    workers[i] = (worker){.index = i};
    need("pthread_create", pthread_create(&threads[i], NULL, function, &workers[i]));
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    *out_wrong += workers[i].wrong;
    *out_errors += workers[i].errors;
  }
  pthread_barrier_destroy(&barrier);
}

static void load_kernels(void) {
  for (int i = 0; i < device_count && i < 2; i++) {
    need("set_device", driver->set_device(i));
    kernels[i] = make_kernel(make_module(), "step");
  }
  need("set_device", driver->set_device(0));
}

static void own_streams(void) {
  int wrong = 0;
  int errors = 0;
  load_kernels();
  run_workers(work_alone, &wrong, &errors);
  check("threads.own_streams_data", wrong == 0, "%d wrong values", wrong);
  check("threads.own_streams_errors", errors == 0, "%d errors", errors);
}

/* Each thread doubles and adds on one stream; every launch has to take place, one at a time. */
static void *work_together(void *argument) {
  worker *self = argument;
  if (driver->set_device(0) != 0) self->errors++;
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < 3; i++) {
    if (launch_step(kernels[0], shared_stream, shared_memory, COUNT) != 0) self->errors++;
  }
  return NULL;
}

static void one_stream(void) {
  int wrong = 0;
  int errors = 0;
  load_kernels();
  shared_stream = make_stream();
  shared_memory = make_device_memory(sizeof(unsigned) * COUNT);
  unsigned *host = make_host_memory(sizeof(unsigned) * COUNT);
  need("memset", driver->memory_set_async(shared_memory, 0, sizeof(unsigned) * COUNT, shared_stream));
  need("stream_synchronize", driver->stream_synchronize(shared_stream));
  run_workers(work_together, &wrong, &errors);
  need("copy", driver->memory_copy_async(host, shared_memory, sizeof(unsigned) * COUNT, 2, shared_stream));
  need("stream_synchronize", driver->stream_synchronize(shared_stream));
  for (unsigned i = 0; i < COUNT; i++) {
    if (host[i] != (1u << (THREADS * 3)) - 1) wrong++;
  }
  check("threads.one_stream_data", wrong == 0, "%d wrong values, the first is %u", wrong, host[0]);
  check("threads.one_stream_errors", errors == 0, "%d errors", errors);
}

static void *churn(void *argument) {
  worker *self = argument;
  if (driver->set_device(self->index % device_count) != 0) self->errors++;
  pthread_barrier_wait(&barrier);
  for (int round = 0; round < ROUNDS; round++) {
    void *stream = NULL;
    void *event = NULL;
    if (driver->stream_create(&stream, RDM_HIP_STREAM_NON_BLOCKING) != 0) self->errors++;
    if (driver->event_create(&event, RDM_HIP_EVENT_DISABLE_TIMING) != 0) self->errors++;
    if (driver->event_record(event, stream) != 0) self->errors++;
    if (driver->event_synchronize(event) != 0) self->errors++;
    if (driver->event_destroy(event) != 0) self->errors++;
    if (driver->stream_destroy(stream) != 0) self->errors++;
  }
  return NULL;
}

static void create_and_destroy(void) {
  int wrong = 0;
  int errors = 0;
  run_workers(churn, &wrong, &errors);
  check("threads.create_and_destroy", errors == 0, "%d errors", errors);
}

const conformance_test thread_tests[] = {
    {"threads_own_streams", own_streams, 1},
    {"threads_one_stream", one_stream, 1},
    {"threads_create_and_destroy", create_and_destroy, 1},
    {NULL, NULL, 0},
};
