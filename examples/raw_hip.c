/*
 * HIP code of your own beside the library: streams and events shared, in both directions. docs/integrate.md has the
 * rules. Ends with 77 where there is no AMD GPU.
 *
 *   gcc -D__HIP_PLATFORM_AMD__ -Icsrc/include examples/raw_hip.c librocm_device_map.a -lamdhip64 -pthread -ldl -lm
 *
 * Work on one side begins late on purpose (`prepare`), so that the other side's values are right only if it waited.
 */
#include <hip/hip_runtime_api.h>
#include <rocm_device_map.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Whoever calls HIP means HIP. The tests set another one, with hip* functions to match. */
#ifndef RAW_HIP_DRIVER
#define RAW_HIP_DRIVER "hip"
#endif

enum { COUNT = 4096, BLOCK = 256, SIZE_BYTES = COUNT * sizeof(float) };

/* Every wait has a bound: after a fault HIP's own waits may never come back. */
static const uint64_t deadline_ns = UINT64_C(60) * 1000 * 1000 * 1000;

static const char source_text[] =
    "extern \"C\" __global__ void multiply_add(float *values, float factor, float addend, unsigned int n) {\n"
    "  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) values[i] = values[i] * factor + addend;\n"
    "}\n";

static void must(rdm_status status, const char *what) {
  if (status == RDM_OK) return;
  fprintf(stderr, "raw_hip: %s: %s: %s\n", what, rdm_status_name(status), rdm_last_error_message());
  exit(1);
}

static void must_hip(hipError_t error, const char *what) {
  if (error == hipSuccess) return;
  fprintf(stderr, "raw_hip: %s: HIP error %d\n", what, (int)error);
  exit(1);
}

#define OK(call) must(call, #call)
#define HIP(call) must_hip(call, #call)

static rdm_device device;
static rdm_stream stream;  /* ours */
static hipStream_t theirs; /* the raw code's */
static rdm_kernel kernel;
static void *memory;  /* on the device */
static float *input;  /* pinned */
static float *output; /* pinned */
static unsigned long right;

/* On a thread of HIP's, in stream order: calls nothing of HIP's, nor of ours. */
static void prepare(hipStream_t on, hipError_t error, void *user_data) {
  (void)on;
  (void)error;
  nanosleep(&(struct timespec){.tv_nsec = 50 * 1000 * 1000}, NULL);
  for (unsigned i = 0; i < COUNT; i++) ((float *)user_data)[i] = (float)i;
}

static void launch(rdm_encoder encoder) {
  float factor = 2.0f;
  float addend = 1.0f;
  uint32_t count = COUNT;
  void *const arguments[] = {&memory, &factor, &addend, &count};
  const rdm_launch_config config = {
      .struct_size = sizeof config, .grid = {COUNT / BLOCK, 1, 1}, .block = {BLOCK, 1, 1}};
  OK(rdm_encoder_launch(encoder, kernel, &config, arguments, 4));
}

/* So that nothing is right by what was there before. */
static void clear(rdm_encoder encoder) {
  for (unsigned i = 0; i < COUNT; i++) input[i] = output[i] = -1.0f;
  OK(rdm_encoder_fill(encoder, memory, 0, SIZE_BYTES));
  OK(rdm_stream_synchronize(stream, deadline_ns));
}

static void check(const char *what) {
  unsigned long of_these = 0;
  for (unsigned i = 0; i < COUNT; i++) of_these += output[i] == 2.0f * (float)i + 1.0f;
  if (of_these != COUNT) {
    fprintf(stderr, "raw_hip: %s: %lu of %d values are right\n", what, of_these, COUNT);
    exit(1);
  }
  right += of_these;
}

/* Our stream, lent: raw calls and ours on one stream, in the order of the calls. */
static void raw_calls_on_our_stream(rdm_encoder encoder, hipStream_t native) {
  clear(encoder);
  HIP(hipStreamAddCallback(native, prepare, input, 0));
  HIP(hipMemcpyAsync(memory, input, SIZE_BYTES, hipMemcpyHostToDevice, native));
  launch(encoder);
  HIP(hipMemcpyAsync(output, memory, SIZE_BYTES, hipMemcpyDeviceToHost, native));
  /* Waits for the raw calls as well. */
  OK(rdm_stream_synchronize(stream, deadline_ns));
  check("raw calls on our stream");
}

/* Their stream waits for an event of ours. */
static void they_wait_for_us(rdm_encoder encoder, hipStream_t native) {
  clear(encoder);
  HIP(hipStreamAddCallback(native, prepare, input, 0));
  OK(rdm_encoder_copy(encoder, memory, input, SIZE_BYTES, RDM_COPY_HOST_TO_DEVICE));
  launch(encoder);

  rdm_event computed = {0};
  void *native_event = NULL;
  OK(rdm_event_create(device, RDM_EVENT_DEFAULT, &computed));
  OK(rdm_encoder_record_event(encoder, computed));
  OK(rdm_event_get_native(computed, &native_event));
  HIP(hipStreamWaitEvent(theirs, (hipEvent_t)native_event, 0));
  /* The wait is in their stream now and outlasts the event's release. */
  OK(rdm_event_release(computed));

  HIP(hipMemcpyAsync(output, memory, SIZE_BYTES, hipMemcpyDeviceToHost, theirs));
  HIP(hipStreamSynchronize(theirs));
  check("their stream waits for our event");
}

/* Our stream waits for an event of theirs. The ABI takes no raw event, so the raw side puts the wait into our stream.
 */
static void we_wait_for_them(rdm_encoder encoder, hipStream_t native) {
  clear(encoder);
  hipEvent_t loaded = NULL;
  HIP(hipEventCreateWithFlags(&loaded, hipEventDisableTiming));
  HIP(hipStreamAddCallback(theirs, prepare, input, 0));
  HIP(hipMemcpyAsync(memory, input, SIZE_BYTES, hipMemcpyHostToDevice, theirs));
  HIP(hipEventRecord(loaded, theirs));
  HIP(hipStreamWaitEvent(native, loaded, 0));
  HIP(hipEventDestroy(loaded));

  /* An event of ours behind that wait stands for theirs: with it comes a host wait that has a deadline, and
   * rdm_encoder_wait_event for every other stream of ours. */
  rdm_event after_theirs = {0};
  OK(rdm_event_create(device, RDM_EVENT_DEFAULT, &after_theirs));
  OK(rdm_encoder_record_event(encoder, after_theirs));
  rdm_stream other = {0};
  rdm_encoder other_encoder = {0};
  OK(rdm_stream_create(0, &other));
  OK(rdm_encoder_get(other, &other_encoder));
  OK(rdm_encoder_wait_event(other_encoder, after_theirs));
  OK(rdm_event_release(after_theirs));

  launch(other_encoder);
  OK(rdm_encoder_copy(other_encoder, output, memory, SIZE_BYTES, RDM_COPY_DEVICE_TO_HOST));
  OK(rdm_stream_synchronize(other, deadline_ns));
  OK(rdm_stream_release(other));
  check("our streams wait for their event");
}

/* Theirs again, but recorded on our stream by a raw call: any event of theirs may be. */
static void their_event_on_our_stream(rdm_encoder encoder, hipStream_t native) {
  clear(encoder);
  hipEvent_t computed = NULL;
  HIP(hipEventCreateWithFlags(&computed, hipEventDisableTiming));
  HIP(hipStreamAddCallback(native, prepare, input, 0));
  OK(rdm_encoder_copy(encoder, memory, input, SIZE_BYTES, RDM_COPY_HOST_TO_DEVICE));
  launch(encoder);
  HIP(hipEventRecord(computed, native));
  HIP(hipStreamWaitEvent(theirs, computed, 0));
  HIP(hipMemcpyAsync(output, memory, SIZE_BYTES, hipMemcpyDeviceToHost, theirs));
  HIP(hipStreamSynchronize(theirs));
  HIP(hipEventDestroy(computed));
  check("their event, recorded on our stream");
}

/* What can not be done, so that nobody has to find out: an event of ours that raw code records is not recorded to us.
 */
static void our_event_recorded_by_them(hipStream_t native) {
  rdm_event event = {0};
  void *native_event = NULL;
  OK(rdm_event_create(device, RDM_EVENT_DEFAULT, &event));
  OK(rdm_event_get_native(event, &native_event));
  HIP(hipEventRecord((hipEvent_t)native_event, native));
  if (rdm_event_wait(event, deadline_ns) != RDM_ERROR_NOT_RECORDED || rdm_event_query(event) != RDM_NOT_READY) {
    fprintf(stderr, "raw_hip: a raw record of our event was seen\n");
    exit(1);
  }
  OK(rdm_event_release(event));
}

static int no_gpu(const char *why) {
  printf("raw_hip: skipped, there is no GPU to run on: %s\n", why);
  return 77;
}

int main(void) {
  const rdm_config config = {.struct_size = sizeof config, .driver = RAW_HIP_DRIVER};
  OK(rdm_configure(&config));
  int32_t device_count = 0;
  if (rdm_device_count(&device_count) != RDM_OK) return no_gpu(rdm_last_error_message());
  if (device_count == 0) return no_gpu("the runtime has 0 devices");

  /* The library first: it sets the device's flags, which HIP takes only before the device's first queue. */
  OK(rdm_device_get(0, &device));
  OK(rdm_stream_create(0, &stream));
  rdm_encoder encoder = {0};
  void *native = NULL;
  OK(rdm_encoder_get(stream, &encoder));
  OK(rdm_encoder_get_native_stream(encoder, &native));
  rdm_module module = {0};
  const rdm_module_source source = {.struct_size = sizeof source, .name = "raw_hip", .source = source_text};
  OK(rdm_module_get(device, &source, &module));
  OK(rdm_module_get_kernel(module, "multiply_add", &kernel));

  /* Raw calls work on the thread's current device, which the library's calls move. */
  OK(rdm_device_make_current(device));
  HIP(hipStreamCreateWithFlags(&theirs, hipStreamNonBlocking));
  HIP(hipMalloc(&memory, SIZE_BYTES));
  void *pinned = NULL;
  HIP(hipHostMalloc(&pinned, SIZE_BYTES, 0));
  input = pinned;
  OK(rdm_host_memory_allocate(device, SIZE_BYTES, &pinned));
  output = pinned;

  raw_calls_on_our_stream(encoder, native);
  they_wait_for_us(encoder, native);
  we_wait_for_them(encoder, native);
  their_event_on_our_stream(encoder, native);
  our_event_recorded_by_them(native);

  /* Each side frees what it made. The native stream is the library's. */
  OK(rdm_stream_release(stream));
  HIP(hipStreamDestroy(theirs));
  HIP(hipFree(memory));
  HIP(hipHostFree(input));
  OK(rdm_host_memory_free(device, output));
  printf("raw_hip: 4 ways to share, %lu values right\n", right);
  return 0;
}
