/* Entry points: stream capture, and the graphs that come of it. */
#include "driver/sim/call.h"
#include "driver/sim/calls.h"
#include "driver/sim/capture.h"
#include "driver/sim/graph.h"
#include "driver/sim/graph_exec.h"
#include "driver/sim/stream.h"
#include "driver/sim/thread.h"

static int check_stream(const rdm__sim_stream *stream, const void *handle) {
  if (handle == NULL) return RDM_HIP_NOT_SUPPORTED;
  return stream == NULL ? RDM_HIP_INVALID_HANDLE : RDM_HIP_SUCCESS;
}

int rdm__sim_hip_stream_begin_capture(void *stream, int mode) {
  rdm__sim_call_scope scope;
  rdm__sim_stream *found = rdm__sim_stream_get(stream);
  int result = rdm__sim_call_begin(&scope, RDM__CALL_stream_begin_capture, stream, rdm__sim_stream_device_index(found));
  if (result == RDM_HIP_SUCCESS) result = check_stream(found, stream);
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_stream_begin_capture(found, mode);
  rdm__sim_stream_release(found);
  return rdm__sim_call_end(&scope, result);
}

int rdm__sim_hip_stream_end_capture(void *stream, void **graph) {
  rdm__sim_call_scope scope;
  rdm__sim_stream *found = rdm__sim_stream_get(stream);
  int result = rdm__sim_call_begin(&scope, RDM__CALL_stream_end_capture, stream, rdm__sim_stream_device_index(found));
  if (result == RDM_HIP_SUCCESS) result = check_stream(found, stream);
  if (result == RDM_HIP_SUCCESS && graph == NULL) result = RDM_HIP_INVALID_VALUE;
  if (result == RDM_HIP_SUCCESS) {
    *graph = NULL;
    result = rdm__sim_stream_end_capture(found, graph);
  }
  rdm__sim_stream_release(found);
  return rdm__sim_call_end(&scope, result);
}

int rdm__sim_hip_stream_is_capturing(void *stream, int *status) {
  rdm__sim_call_scope scope;
  rdm__sim_stream *found = rdm__sim_stream_get(stream);
  int result = rdm__sim_call_begin(&scope, RDM__CALL_stream_is_capturing, stream, rdm__sim_stream_device_index(found));
  if (result == RDM_HIP_SUCCESS) result = check_stream(found, stream);
  if (result == RDM_HIP_SUCCESS && status == NULL) result = RDM_HIP_INVALID_VALUE;
  if (result == RDM_HIP_SUCCESS) *status = rdm__sim_stream_capture_status(found);
  rdm__sim_stream_release(found);
  return rdm__sim_call_end(&scope, result);
}

int rdm__sim_hip_thread_exchange_capture_mode(int *mode) {
  rdm__sim_call_scope scope;
  int result = rdm__sim_call_begin(&scope, RDM__CALL_thread_exchange_capture_mode, NULL, -1);
  if (result == RDM_HIP_SUCCESS) {
    int before = mode == NULL ? -1 : rdm__sim_capture_exchange_mode(*mode);
    if (before < 0) {
      result = RDM_HIP_INVALID_VALUE;
    } else {
      *mode = before;
    }
  }
  return rdm__sim_call_end(&scope, result);
}

/* ---- Graphs ---- */

int rdm__sim_hip_graph_destroy(void *graph) {
  rdm__sim_call_scope scope;
  int result = rdm__sim_call_begin(&scope, RDM__CALL_graph_destroy, graph, -1);
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_graph_destroy(graph);
  return rdm__sim_call_end(&scope, result);
}

int rdm__sim_hip_graph_instantiate(void **executable, void *graph, unsigned long long flags) {
  rdm__sim_call_scope scope;
  void *made = NULL;
  int result = rdm__sim_call_begin(&scope, RDM__CALL_graph_instantiate, graph, -1);
  if (result == RDM_HIP_SUCCESS && (executable == NULL || flags != 0)) result = RDM_HIP_INVALID_VALUE;
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_graph_instantiate(graph, &made);
  if (result == RDM_HIP_SUCCESS) *executable = made;
  return rdm__sim_call_end_created(&scope, result, made);
}

int rdm__sim_hip_graph_launch(void *executable, void *stream) {
  rdm__sim_call_scope scope;
  rdm__sim_stream *found = rdm__sim_stream_get(stream);
  int result = rdm__sim_call_begin(&scope, RDM__CALL_graph_launch, executable, rdm__sim_stream_device_index(found));
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_stream_check_submit(found, stream);
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_graph_launch(executable, found);
  rdm__sim_stream_release(found);
  return rdm__sim_call_end(&scope, result);
}

int rdm__sim_hip_graph_exec_destroy(void *executable) {
  rdm__sim_call_scope scope;
  int result = rdm__sim_call_begin(&scope, RDM__CALL_graph_exec_destroy, executable, -1);
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_graph_exec_destroy(executable);
  return rdm__sim_call_end(&scope, result);
}
