/* Graphs: captured by any thread, launched by one or many, ended at any moment. */
#include "calls.h"
#include "concurrency.h"
#include "work.h"

#include <stdatomic.h>
#include <string.h>

enum { LAUNCHES = 20, THREADS = 8 };

/* A stream of device 0 with what an evaluation needs. */
typedef struct place {
  work_kernels kernels;
  work_buffers buffers;
  rdm_stream stream;
  rdm_encoder encoder;
} place;

static place make_place(void) {
  place made;
  CHECK_OK(work_load(0, &made.kernels));
  CHECK_OK(work_buffers_allocate(made.kernels.device, &made.buffers));
  CHECK_OK(rdm_stream_create(0, &made.stream));
  CHECK_OK(rdm_encoder_get(made.stream, &made.encoder));
  return made;
}

static rdm_graph capture_evaluation(const place *at) {
  rdm_graph graph;
  CHECK_OK(rdm_encoder_begin_capture(at->encoder));
  CHECK_OK(work_submit(at->encoder, &at->kernels, &at->buffers));
  CHECK_OK(rdm_encoder_end_capture(at->encoder, &graph));
  return graph;
}

static void forget_results(const place *at) {
  memset(at->buffers.host, 0, WORK_ELEMENTS * sizeof(float));
}

static void launch_and_check(const place *at, rdm_graph graph) {
  forget_results(at);
  CHECK_OK(rdm_encoder_launch_graph(at->encoder, graph));
  CHECK_OK(rdm_stream_synchronize(at->stream, RDM_WAIT_FOREVER));
  CHECK(work_count_wrong(&at->buffers) == 0);
}

static uint64_t calls_of(const char *entry_point) {
  uint64_t count = 0;
  CHECK_OK(rdm_sim_call_count(entry_point, &count));
  return count;
}

static uint64_t count_driver_graphs(void) {
  rdm_sim_objects objects = {.struct_size = sizeof objects};
  CHECK_OK(rdm_sim_count_objects(&objects));
  return objects.graphs;
}

static void what_was_captured_runs_at_each_launch_and_not_before(void) {
  test_use_sim(1);
  place at = make_place();
  forget_results(&at);
  rdm_graph graph = capture_evaluation(&at);
  CHECK_OK(rdm_stream_synchronize(at.stream, RDM_WAIT_FOREVER));
  CHECK(work_count_wrong(&at.buffers) > 0);
  uint64_t launches = calls_of("hipModuleLaunchKernel");
  for (int i = 0; i < LAUNCHES; i++) launch_and_check(&at, graph);
  CHECK(calls_of("hipModuleLaunchKernel") == launches && calls_of("hipGraphLaunch") == LAUNCHES);
  CHECK_OK(rdm_graph_release(graph));
}

/* Each step doubles and adds one, so the order of all of them shows. */
static void graphs_and_launches_of_a_stream_run_in_the_order_of_submission(void) {
  test_use_sim(1);
  place at = make_place();
  rdm_graph graph;
  float *values = at.buffers.first;
  float seen = 0;
  CHECK_OK(rdm_encoder_begin_capture(at.encoder));
  CHECK_OK(work_submit_step(at.encoder, &at.kernels, values, 1));
  CHECK_OK(work_submit_step(at.encoder, &at.kernels, values, 1));
  CHECK_OK(rdm_encoder_end_capture(at.encoder, &graph));
  CHECK_OK(rdm_encoder_fill(at.encoder, values, 0, sizeof *values));
  CHECK_OK(rdm_encoder_launch_graph(at.encoder, graph));
  CHECK_OK(work_submit_step(at.encoder, &at.kernels, values, 1));
  CHECK_OK(rdm_encoder_launch_graph(at.encoder, graph));
  CHECK_OK(rdm_encoder_copy(at.encoder, at.buffers.host, values, sizeof *values, RDM_COPY_DEVICE_TO_HOST));
  CHECK_OK(rdm_stream_synchronize(at.stream, RDM_WAIT_FOREVER));
  seen = at.buffers.host[0];
  CHECK_THAT(seen == 31, "it is %g, not 2^5 - 1", (double)seen);
}

/* ---- Threads ----------------------------------------------------------------------------------------------------- */

static void capture_and_launch_on_a_stream_of_its_own(unsigned number) {
  (void)number;
  place at = make_place();
  for (int round = 0; round < 3; round++) {
    rdm_graph graph = capture_evaluation(&at);
    for (int i = 0; i < LAUNCHES / TEST_SLOWDOWN + 1; i++) launch_and_check(&at, graph);
    CHECK_OK(rdm_graph_release(graph));
  }
  CHECK_OK(rdm_stream_release(at.stream));
  CHECK_OK(work_buffers_free(&at.buffers));
}

static void every_thread_captures_while_others_launch(void) {
  test_use_sim(1);
  test_run_threads(THREADS, capture_and_launch_on_a_stream_of_its_own);
  place last = make_place();
  rdm_graph graph = capture_evaluation(&last);
  /* All others are released, and idle: what is left of them went with this capture's end. */
  CHECK_THAT(count_driver_graphs() == 1, "%llu graphs", (unsigned long long)count_driver_graphs());
  launch_and_check(&last, graph);
}

static place shared;

static void submit_to_shared(unsigned number) {
  (void)number;
  CHECK_OK(work_submit_step(shared.encoder, &shared.kernels, shared.buffers.first, 1));
}

static void *begin_shared_capture(void *unused) {
  (void)unused;
  CHECK_OK(rdm_encoder_begin_capture(shared.encoder));
  return NULL;
}

static void any_thread_may_begin_and_end_a_capture_and_submit_to_it(void) {
  test_use_sim(1);
  shared = make_place();
  rdm_graph graph;
  test_join_thread(test_start_thread(begin_shared_capture, NULL));
  test_run_threads(THREADS, submit_to_shared);
  CHECK_OK(rdm_encoder_end_capture(shared.encoder, &graph));
  float *values = shared.buffers.first;
  CHECK_OK(rdm_encoder_fill(shared.encoder, values, 0, sizeof *values));
  CHECK_OK(rdm_encoder_launch_graph(shared.encoder, graph));
  CHECK_OK(rdm_encoder_copy(shared.encoder, shared.buffers.host, values, sizeof *values, RDM_COPY_DEVICE_TO_HOST));
  CHECK_OK(rdm_stream_synchronize(shared.stream, RDM_WAIT_FOREVER));
  CHECK(shared.buffers.host[0] == (1 << THREADS) - 1);
}

static atomic_uint handlers_run;

static void note_run(rdm_status status, void *user_data) {
  (void)user_data;
  CHECK_OK(status);
  handlers_run++;
}

static _Atomic uint64_t published;
static atomic_bool stop;

/* The graph may end between any two steps of a launch: then it is stale, and never another's or none. */
static void launch_published(unsigned number) {
  (void)number;
  while (!stop) {
    rdm_graph graph = {published};
    rdm_status status = rdm_encoder_launch_graph(shared.encoder, graph);
    CHECK_THAT(status == RDM_OK || status == RDM_ERROR_STALE_HANDLE, "%s", rdm_last_error_message());
    /* A lock that is taken anew at once leaves the thread that makes graphs out. */
    test_sleep_ns(20000);
  }
}

static void *end_and_make_graphs(void *unused) {
  (void)unused;
  for (int i = 0; i < 300 / TEST_SLOWDOWN; i++) {
    rdm_graph old = {published};
    rdm_graph made;
    CHECK_OK(rdm_encoder_begin_capture(shared.encoder));
    CHECK_OK(rdm_encoder_end_capture(shared.encoder, &made));
    published = made.bits;
    CHECK_OK(rdm_graph_release(old));
  }
  stop = true;
  return NULL;
}

static void a_graph_that_others_launch_may_be_released_at_any_moment(void) {
  test_use_sim(1);
  shared = make_place();
  rdm_graph first;
  CHECK_OK(rdm_encoder_begin_capture(shared.encoder));
  CHECK_OK(rdm_encoder_end_capture(shared.encoder, &first));
  published = first.bits;
  pthread_t maker = test_start_thread(end_and_make_graphs, NULL);
  test_run_threads(4, launch_published);
  test_join_thread(maker);
  CHECK_OK(rdm_stream_synchronize(shared.stream, RDM_WAIT_FOREVER));
}

/* The library's own thread looks at a stream whose handlers wait; to be asked then would cost the capture. */
static void a_capture_waits_for_who_asks_for_its_stream(void) {
  test_use_sim(1);
  place at = make_place();
  rdm_graph graph;
  CHECK_OK(rdm_sim_hold(0, 1));
  CHECK_OK(work_submit(at.encoder, &at.kernels, &at.buffers));
  CHECK_OK(rdm_encoder_add_completion_handler(at.encoder, note_run, NULL));
  CHECK_OK(rdm_encoder_commit(at.encoder));
  CHECK_OK(rdm_sim_inject("hipStreamQuery", 1, 1, 0, 300 * TEST_MILLISECOND));
  calls_wait_until_inside("hipStreamQuery", 10 * TEST_SECOND);
  CHECK_OK(rdm_encoder_begin_capture(at.encoder));
  CHECK_OK(work_submit(at.encoder, &at.kernels, &at.buffers));
  /* Several looks of that thread, and as long as that call stands still. */
  test_sleep_ns(500 * TEST_MILLISECOND);
  CHECK_OK(rdm_encoder_end_capture(at.encoder, &graph));
  CHECK_OK(rdm_sim_hold(0, 0));
  launch_and_check(&at, graph);
  CHECK(handlers_run == 1);
}

static void a_poll_that_does_not_come_back_holds_a_capture_up_for_a_second(void) {
  test_use_sim(1);
  place at = make_place();
  CHECK_OK(rdm_sim_hold(0, 1));
  CHECK_OK(work_submit(at.encoder, &at.kernels, &at.buffers));
  CHECK_OK(rdm_encoder_add_completion_handler(at.encoder, note_run, NULL));
  CHECK_OK(rdm_encoder_commit(at.encoder));
  CHECK_OK(rdm_sim_inject("hipStreamQuery", 1, 1, 0, 3 * TEST_SECOND));
  calls_wait_until_inside("hipStreamQuery", 10 * TEST_SECOND);
  uint64_t start = test_now_ns();
  CHECK_STATUS(rdm_encoder_begin_capture(at.encoder), RDM_ERROR_TIMEOUT);
  CHECK(test_now_ns() - start < 2 * TEST_SECOND);
  CHECK_OK(rdm_sim_hold(0, 0));
  CHECK_OK(rdm_stream_synchronize(at.stream, RDM_WAIT_FOREVER));
  CHECK(handlers_run == 1);
}

/* ---- Ends -------------------------------------------------------------------------------------------------------- */

static void capture_nothing(rdm_encoder encoder) {
  rdm_graph graph;
  CHECK_OK(rdm_encoder_begin_capture(encoder));
  CHECK_OK(rdm_encoder_end_capture(encoder, &graph));
  CHECK_OK(rdm_graph_release(graph));
}

/* Many at a time, so that releases meet each other and what clears the list. */
static void make_and_release_many(unsigned number) {
  (void)number;
  enum { MANY = 8 };
  place at = make_place();
  rdm_graph graphs[MANY];
  for (int round = 0; round < 100 / TEST_SLOWDOWN; round++) {
    for (int i = 0; i < MANY; i++) {
      CHECK_OK(rdm_encoder_begin_capture(at.encoder));
      CHECK_OK(rdm_encoder_end_capture(at.encoder, &graphs[i]));
    }
    for (int i = 0; i < MANY; i++) CHECK_OK(rdm_graph_release(graphs[i]));
  }
  CHECK_OK(rdm_stream_release(at.stream));
}

static void graphs_that_threads_release_at_once_are_all_destroyed(void) {
  test_use_sim(1);
  test_run_threads(THREADS, make_and_release_many);
  place last = make_place();
  /* Each end of a capture destroys some. */
  for (int i = 0; i < THREADS; i++) capture_nothing(last.encoder);
  CHECK_THAT(count_driver_graphs() == 1, "%llu graphs", (unsigned long long)count_driver_graphs());
}

static void a_released_graph_is_destroyed_once_it_is_idle(void) {
  test_use_sim(1);
  place at = make_place();
  place other = make_place();
  rdm_graph graph = capture_evaluation(&at);
  CHECK_OK(rdm_sim_hold(0, 1));
  forget_results(&at);
  CHECK_OK(rdm_encoder_launch_graph(at.encoder, graph));
  uint64_t before = calls_of(NULL);
  CHECK_OK(rdm_graph_release(graph));
  CHECK(calls_of(NULL) == before);
  CHECK_STATUS(rdm_graph_release(graph), RDM_ERROR_STALE_HANDLE);
  capture_nothing(other.encoder);
  CHECK(calls_of("hipGraphExecDestroy") == 0 && count_driver_graphs() == 2);
  CHECK_OK(rdm_sim_hold(0, 0));
  CHECK_OK(rdm_stream_synchronize(at.stream, RDM_WAIT_FOREVER));
  CHECK(work_count_wrong(&at.buffers) == 0);
  capture_nothing(other.encoder);
  CHECK(calls_of("hipGraphExecDestroy") == 2 && count_driver_graphs() == 1);
}

static void *launch_once(void *graph) {
  rdm_status status = rdm_encoder_launch_graph(shared.encoder, *(rdm_graph *)graph);
  CHECK_THAT(status == RDM_OK, "%s", rdm_last_error_message());
  return NULL;
}

static void a_graph_released_in_the_midst_of_its_launch_is_still_whole(void) {
  test_use_sim(1);
  shared = make_place();
  place other = make_place();
  rdm_graph graph = capture_evaluation(&shared);
  capture_nothing(other.encoder);
  forget_results(&shared);
  /* The launch stands still where it asks for the current device, the first thing that it does in the driver. */
  uint64_t fired = 0;
  CHECK_OK(rdm_sim_inject("hipGetDevice", 1, 1, 0, 300 * TEST_MILLISECOND));
  uint64_t before = calls_of("hipGetDevice");
  pthread_t launcher = test_start_thread(launch_once, &graph);
  while (calls_of("hipGetDevice") == before) test_sleep_ns(TEST_MILLISECOND);
  CHECK_OK(rdm_graph_release(graph));
  capture_nothing(other.encoder);
  CHECK(calls_of("hipGraphLaunch") == 0);
  test_join_thread(launcher);
  CHECK_OK(rdm_sim_clear_injections(&fired));
  CHECK_OK(rdm_stream_synchronize(shared.stream, RDM_WAIT_FOREVER));
  CHECK(fired == 1 && work_count_wrong(&shared.buffers) == 0);
}

/* No driver stream is lost by it: there are as many as were in use, one, and about eight. */
static void a_stream_that_ends_in_its_capture_gives_its_queue_back(void) {
  test_use_sim(1);
  for (int i = 0; i < 2 * LAUNCHES; i++) {
    place at = make_place();
    CHECK_OK(rdm_encoder_begin_capture(at.encoder));
    CHECK_OK(work_submit(at.encoder, &at.kernels, &at.buffers));
    CHECK_OK(rdm_stream_release(at.stream));
    CHECK_OK(work_buffers_free(&at.buffers));
  }
  CHECK_OK(work_on_new_stream(0, 2));
  rdm_sim_objects objects = {.struct_size = sizeof objects};
  CHECK_OK(rdm_sim_count_objects(&objects));
  CHECK_THAT(objects.streams <= 9 && objects.graphs == 0, "%llu streams", (unsigned long long)objects.streams);
}

/* Nor is a capture that is nobody's left open, which other code's synchronization of the device would be refused for.
 */
static void a_capture_that_its_stream_left_is_ended_within_moments(void) {
  test_use_sim(1);
  place at = make_place();
  CHECK_OK(rdm_encoder_begin_capture(at.encoder));
  CHECK_OK(work_submit(at.encoder, &at.kernels, &at.buffers));
  uint64_t calls = calls_of(NULL);
  /* Also where the driver does not do it at once. */
  CHECK_OK(rdm_sim_inject("hipStreamEndCapture", 1, 2, 2, 50 * TEST_MILLISECOND));
  CHECK_OK(rdm_stream_release(at.stream));
  CHECK(calls_of(NULL) <= calls + 8 && calls_of("hipGraphDestroy") == 0);
  uint64_t end = test_now_ns() + 10 * TEST_SECOND;
  while (calls_of("hipGraphDestroy") == 0 && test_now_ns() < end) test_sleep_ns(TEST_MILLISECOND);
  CHECK(calls_of("hipStreamEndCapture") == 3 && count_driver_graphs() == 0);
}

/* More streams end in their captures than are passed over, while the thread that would end these stands still. */
static void a_stream_is_not_given_a_queue_that_is_still_captured(void) {
  enum { STREAMS = 10 };
  test_use_sim(1);
  place at[STREAMS];
  for (int i = 0; i < STREAMS; i++) {
    at[i] = make_place();
    CHECK_OK(rdm_encoder_begin_capture(at[i].encoder));
  }
  CHECK_OK(rdm_sim_inject("hipStreamEndCapture", 1, 1, 0, 500 * TEST_MILLISECOND));
  for (int i = 0; i < STREAMS; i++) {
    CHECK_OK(rdm_stream_release(at[i].stream));
    if (i == 0) calls_wait_until_inside("hipStreamEndCapture", 10 * TEST_SECOND);
  }
  CHECK_OK(work_on_new_stream(0, 2));
}

/* Also those of a batch that is open, or was committed in the midst of the capture. No later stream is needed. */
static void handlers_of_a_stream_that_ends_in_its_capture_run(void) {
  test_use_sim(1);
  place at = make_place();
  CHECK_OK(rdm_encoder_begin_capture(at.encoder));
  CHECK_OK(work_submit(at.encoder, &at.kernels, &at.buffers));
  CHECK_OK(rdm_encoder_add_completion_handler(at.encoder, note_run, NULL));
  CHECK_OK(rdm_encoder_commit(at.encoder));
  CHECK_OK(rdm_encoder_add_completion_handler(at.encoder, note_run, NULL));
  /* Several looks of the thread that runs them. */
  test_sleep_ns(100 * TEST_MILLISECOND);
  CHECK(handlers_run == 0);
  uint64_t before = calls_of("hipStreamEndCapture");
  CHECK_OK(rdm_stream_release(at.stream));
  uint64_t end = test_now_ns() + 10 * TEST_SECOND;
  while (handlers_run < 2 && test_now_ns() < end) test_sleep_ns(TEST_MILLISECOND);
  CHECK_THAT(handlers_run == 2, "%u of 2 handlers ran", handlers_run);
  CHECK(calls_of("hipStreamEndCapture") == before + 1 && count_driver_graphs() == 0);
  CHECK_OK(work_on_new_stream(0, 2));
}

static void an_end_of_a_capture_destroys_64_graphs_at_most(void) {
  enum { GRAPHS = 70, AT_ONCE = 64 };
  test_use_sim(1);
  place at = make_place();
  rdm_graph graphs[GRAPHS];
  for (int i = 0; i < GRAPHS; i++) {
    CHECK_OK(rdm_encoder_begin_capture(at.encoder));
    CHECK_OK(rdm_encoder_end_capture(at.encoder, &graphs[i]));
  }
  for (int i = 0; i < GRAPHS; i++) CHECK_OK(rdm_graph_release(graphs[i]));
  capture_nothing(at.encoder);
  CHECK_THAT(count_driver_graphs() == GRAPHS - AT_ONCE + 1, "%llu graphs", (unsigned long long)count_driver_graphs());
  capture_nothing(at.encoder);
  CHECK(count_driver_graphs() == 1);
}

static void a_capture_outlives_its_encoder(void) {
  test_use_sim(1);
  place at = make_place();
  rdm_graph graph;
  CHECK_OK(rdm_encoder_begin_capture(at.encoder));
  CHECK_OK(work_submit(at.encoder, &at.kernels, &at.buffers));
  CHECK_OK(rdm_clear_encoders());
  CHECK_STATUS(rdm_encoder_end_capture(at.encoder, &graph), RDM_ERROR_STALE_HANDLE);
  CHECK_OK(rdm_encoder_get(at.stream, &at.encoder));
  CHECK_OK(rdm_encoder_end_capture(at.encoder, &graph));
  launch_and_check(&at, graph);
}

/* ---- What goes wrong --------------------------------------------------------------------------------------------- */

static void check_refused(rdm_status status, rdm_status expected, const char *part) {
  CHECK_THAT(status == expected, "%s: %s", rdm_status_name(status), rdm_last_error_message());
  CHECK_THAT(strstr(rdm_last_error_message(), part) != NULL, "%s", rdm_last_error_message());
}

static void calls_in_the_wrong_order_are_told_what_is_right(void) {
  test_use_sim(1);
  place at = make_place();
  place other = make_place();
  rdm_graph graph = {0};
  check_refused(rdm_encoder_end_capture(at.encoder, &graph), RDM_ERROR_INVALID_ARGUMENT, "rdm_encoder_begin_capture");
  check_refused(rdm_encoder_end_capture(at.encoder, NULL), RDM_ERROR_INVALID_ARGUMENT, "out_graph is null");
  check_refused(rdm_encoder_launch_graph(at.encoder, graph), RDM_ERROR_NULL_HANDLE, "graph");
  check_refused(rdm_encoder_launch_graph(at.encoder, (rdm_graph){at.stream.bits}), RDM_ERROR_FOREIGN_HANDLE, "graph");
  CHECK_OK(rdm_encoder_begin_capture(at.encoder));
  check_refused(rdm_encoder_begin_capture(at.encoder), RDM_ERROR_CAPTURING, "already");
  check_refused(rdm_stream_synchronize(at.stream, RDM_WAIT_FOREVER), RDM_ERROR_CAPTURING, "captured");
  CHECK_OK(work_submit(at.encoder, &at.kernels, &at.buffers));
  CHECK_OK(rdm_encoder_end_capture(at.encoder, &graph));
  check_refused(rdm_encoder_launch_graph(other.encoder, graph), RDM_ERROR_INVALID_ARGUMENT, "another stream");
  launch_and_check(&at, graph);
  /* Its queue may go to another stream now, whose graph it is not. */
  CHECK_OK(rdm_stream_release(at.stream));
  place next = make_place();
  check_refused(rdm_encoder_launch_graph(next.encoder, graph), RDM_ERROR_INVALID_ARGUMENT, "another stream");
  CHECK_OK(rdm_graph_release(graph));
  check_refused(rdm_encoder_launch_graph(next.encoder, graph), RDM_ERROR_STALE_HANDLE, "graph");
}

static void check_works_afterwards(place *at) {
  rdm_error error = {.struct_size = sizeof error};
  CHECK_OK(rdm_stream_take_error(at->stream, &error));
  rdm_graph graph = capture_evaluation(at);
  launch_and_check(at, graph);
  CHECK_OK(rdm_graph_release(graph));
}

static void a_capture_that_is_lost_is_told_at_its_end_and_the_next_one_works(void) {
  test_use_sim(1);
  place at = make_place();
  rdm_event event;
  rdm_graph graph = {0};
  CHECK_OK(rdm_event_create(at.kernels.device, RDM_EVENT_DEFAULT, &event));
  CHECK_OK(rdm_encoder_begin_capture(at.encoder));
  CHECK_OK(rdm_encoder_record_event(at.encoder, event));
  CHECK_STATUS(rdm_event_query(event), RDM_ERROR_CAPTURING);
  check_refused(rdm_encoder_end_capture(at.encoder, &graph), RDM_ERROR_CAPTURING, "which is lost");
  CHECK(graph.bits == 0 && count_driver_graphs() == 0);
  check_works_afterwards(&at);
}

static void a_driver_that_fails_in_between_leaves_nothing_behind(void) {
  static const char *const entry_points[] = {"hipStreamBeginCapture", "hipStreamEndCapture",
                                             "hipGraphInstantiateWithFlags"};
  test_use_sim(1);
  place at = make_place();
  for (int i = 0; i < 3; i++) {
    rdm_graph graph = {0};
    CHECK_OK(rdm_sim_inject(entry_points[i], 1, 1, 2, 0));
    rdm_status status = rdm_encoder_begin_capture(at.encoder);
    if (status == RDM_OK) status = work_submit(at.encoder, &at.kernels, &at.buffers);
    if (status == RDM_OK) status = rdm_encoder_end_capture(at.encoder, &graph);
    CHECK_THAT(status == RDM_ERROR_OUT_OF_MEMORY && graph.bits == 0, "%s: %s", entry_points[i],
               rdm_last_error_message());
    /* That call did nothing, so the driver's capture goes on, and can be ended after all. */
    if (i == 1) {
      CHECK_THAT(strstr(rdm_last_error_message(), "goes on") != NULL, "%s", rdm_last_error_message());
      CHECK_OK(rdm_encoder_end_capture(at.encoder, &graph));
      CHECK_OK(rdm_graph_release(graph));
    }
    check_works_afterwards(&at);
    capture_nothing(at.encoder);
  }
  CHECK_OK(rdm_sim_inject("hipGraphLaunch", 1, 1, 2, 0));
  rdm_graph graph = capture_evaluation(&at);
  CHECK_STATUS(rdm_encoder_launch_graph(at.encoder, graph), RDM_ERROR_OUT_OF_MEMORY);
  rdm_error error = {.struct_size = sizeof error};
  CHECK_OK(rdm_stream_take_error(at.stream, &error));
  CHECK(error.status == RDM_ERROR_OUT_OF_MEMORY);
  launch_and_check(&at, graph);
}

static void a_driver_without_captures_is_told_as_that(void) {
  test_use_sim(1);
  place at = make_place();
  CHECK_OK(rdm_sim_inject("hipStreamBeginCapture", 1, 1, 801, 0));
  CHECK_STATUS(rdm_encoder_begin_capture(at.encoder), RDM_ERROR_UNSUPPORTED);
  check_works_afterwards(&at);
}

static void a_fault_ends_captures_and_graphs_and_releases_them_without_the_driver(void) {
  test_use_sim(1);
  place at = make_place();
  place other = make_place();
  rdm_graph graph = capture_evaluation(&at);
  rdm_graph none;
  CHECK_OK(rdm_encoder_begin_capture(other.encoder));
  CHECK_OK(rdm_sim_fault(0, 700));
  CHECK_STATUS(rdm_encoder_launch_graph(at.encoder, graph), RDM_ERROR_DEVICE_FAULT);
  CHECK_STATUS(rdm_encoder_end_capture(other.encoder, &none), RDM_ERROR_DEVICE_FAULT);
  CHECK_STATUS(rdm_encoder_begin_capture(at.encoder), RDM_ERROR_DEVICE_FAULT);
  uint64_t calls = calls_of(NULL);
  CHECK_OK(rdm_graph_release(graph));
  CHECK_STATUS(rdm_encoder_end_capture(other.encoder, &none), RDM_ERROR_DEVICE_FAULT);
  CHECK(calls_of(NULL) == calls);
}

const test_case graph_tests[] = {
    {.name = "what_was_captured_runs_at_each_launch_and_not_before",
     .function = what_was_captured_runs_at_each_launch_and_not_before},
    {.name = "graphs_and_launches_of_a_stream_run_in_the_order_of_submission",
     .function = graphs_and_launches_of_a_stream_run_in_the_order_of_submission},
    {.name = "every_thread_captures_while_others_launch", .function = every_thread_captures_while_others_launch},
    {.name = "any_thread_may_begin_and_end_a_capture_and_submit_to_it",
     .function = any_thread_may_begin_and_end_a_capture_and_submit_to_it},
    {.name = "a_graph_that_others_launch_may_be_released_at_any_moment",
     .function = a_graph_that_others_launch_may_be_released_at_any_moment},
    {.name = "a_capture_waits_for_who_asks_for_its_stream", .function = a_capture_waits_for_who_asks_for_its_stream},
    {.name = "a_poll_that_does_not_come_back_holds_a_capture_up_for_a_second",
     .function = a_poll_that_does_not_come_back_holds_a_capture_up_for_a_second},
    {.name = "graphs_that_threads_release_at_once_are_all_destroyed",
     .function = graphs_that_threads_release_at_once_are_all_destroyed},
    {.name = "a_released_graph_is_destroyed_once_it_is_idle",
     .function = a_released_graph_is_destroyed_once_it_is_idle},
    {.name = "a_graph_released_in_the_midst_of_its_launch_is_still_whole",
     .function = a_graph_released_in_the_midst_of_its_launch_is_still_whole},
    {.name = "a_stream_that_ends_in_its_capture_gives_its_queue_back",
     .function = a_stream_that_ends_in_its_capture_gives_its_queue_back},
    {.name = "a_capture_that_its_stream_left_is_ended_within_moments",
     .function = a_capture_that_its_stream_left_is_ended_within_moments},
    {.name = "a_stream_is_not_given_a_queue_that_is_still_captured",
     .function = a_stream_is_not_given_a_queue_that_is_still_captured},
    {.name = "handlers_of_a_stream_that_ends_in_its_capture_run",
     .function = handlers_of_a_stream_that_ends_in_its_capture_run},
    {.name = "an_end_of_a_capture_destroys_64_graphs_at_most",
     .function = an_end_of_a_capture_destroys_64_graphs_at_most},
    {.name = "a_capture_outlives_its_encoder", .function = a_capture_outlives_its_encoder},
    {.name = "calls_in_the_wrong_order_are_told_what_is_right",
     .function = calls_in_the_wrong_order_are_told_what_is_right},
    {.name = "a_capture_that_is_lost_is_told_at_its_end_and_the_next_one_works",
     .function = a_capture_that_is_lost_is_told_at_its_end_and_the_next_one_works},
    {.name = "a_driver_that_fails_in_between_leaves_nothing_behind",
     .function = a_driver_that_fails_in_between_leaves_nothing_behind},
    {.name = "a_driver_without_captures_is_told_as_that", .function = a_driver_without_captures_is_told_as_that},
    {.name = "a_fault_ends_captures_and_graphs_and_releases_them_without_the_driver",
     .function = a_fault_ends_captures_and_graphs_and_releases_them_without_the_driver},
    {0},
};
