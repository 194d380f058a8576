/*
 * rocm_device_map.h - the process-wide GPU state of a ROCm/HIP inference server: devices built on first use, command
 * encoders, events and run-time compiled modules, safe from every thread.
 *
 * Rules that hold for every function unless it says otherwise:
 *
 *  - Threads. Every function may be called from any thread at any time, also two at once on the same handle.
 *  - Status. A function that can fail returns an rdm_status; RDM_OK is 0. On failure nothing is changed, no
 *    out-parameter is written, and the calling thread's last error holds the full message (rdm_last_error).
 *  - Handles. A handle is a value of 64 bits, never a pointer. All bits 0 is the null handle. Each handle carries a
 *    kind and a generation, so a null, foreign (another kind, or never ours) or stale (released) handle gets its own
 *    error and never reads freed memory.
 *  - Ownership. `create` gives an owned handle, to be given back with `release`. `get` gives a borrowed one, which is
 *    valid for the life of the process unless the function says otherwise.
 *  - Process exit. Once exit handlers run, every call returns RDM_ERROR_SHUTTING_DOWN without entering the driver, and
 *    `release` and `free` functions return RDM_OK and do nothing.
 *  - Fork. In a child forked after the driver was loaded, every call returns RDM_ERROR_FORKED at once.
 *  - The current device. A function that works on a device makes it the calling thread's current one, asking the driver
 *    each time, and leaves it so: to go back could touch a GPU that nobody asked for.
 *  - Callbacks. A completion handler runs on a thread of this library and may call everything here but the functions
 *    that wait. A log handler must not call this library.
 *  - Structs that begin with `struct_size` may grow: the caller sets it to sizeof the struct it was compiled with.
 *  - Units are in the names: _bytes, _ns (nanoseconds), _count, _index.
 */
#ifndef ROCM_DEVICE_MAP_H
#define ROCM_DEVICE_MAP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) || defined(__clang__)
#define RDM_API __attribute__((visibility("default")))
#else
#define RDM_API
#endif

/* ---- Version --------------------------------------------------------------------------------------------------- */

#define RDM_VERSION_MAJOR 0
#define RDM_VERSION_MINOR 1
#define RDM_VERSION_PATCH 0
/* One number that grows with each release: major * 10000 + minor * 100 + patch. */
#define RDM_VERSION (RDM_VERSION_MAJOR * 10000 + RDM_VERSION_MINOR * 100 + RDM_VERSION_PATCH)

/* The version of the library that runs, in the form of RDM_VERSION. Makes no driver call. Works in any state. */
RDM_API uint32_t rdm_version(void);

/* The same as text, such as "0.1.0". Static storage. Works in any state. */
RDM_API const char *rdm_version_string(void);

/* ---- Status and errors ----------------------------------------------------------------------------------------- */

/* What a call came to. Values are fixed for ever; new ones may be added at the end. */
typedef int32_t rdm_status;
enum {
  RDM_OK = 0,
  /* An argument is outside what the function takes; the message names it. */
  RDM_ERROR_INVALID_ARGUMENT = 1,
  /* The handle is null. */
  RDM_ERROR_NULL_HANDLE = 2,
  /* The handle was released, or its encoder was cleared. */
  RDM_ERROR_STALE_HANDLE = 3,
  /* The value is a handle of another kind, or was never a handle of this process. */
  RDM_ERROR_FOREIGN_HANDLE = 4,
  /* The device index is negative or not below the device count. */
  RDM_ERROR_INVALID_DEVICE = 5,
  /* The driver works and reports no device. */
  RDM_ERROR_NO_DEVICE = 6,
  /* The driver's library was not found, or lacks a symbol; the message lists what was tried. */
  RDM_ERROR_NO_DRIVER = 7,
  /* RDM_DRIVER or the configuration names a driver that does not exist or was not built in. */
  RDM_ERROR_UNKNOWN_DRIVER = 8,
  /* The driver's library is of a version that is not supported. */
  RDM_ERROR_DRIVER_VERSION = 9,
  /* The user may not open the GPU's device nodes. */
  RDM_ERROR_PERMISSION = 10,
  /* Not an error: the work is still running. Leaves the last error as it is. */
  RDM_NOT_READY = 11,
  /* The event was never recorded, or its last record failed. */
  RDM_ERROR_NOT_RECORDED = 12,
  /* The deadline given by the caller passed. Nothing is poisoned; the wait can be taken up again. */
  RDM_ERROR_TIMEOUT = 13,
  /* The wait outlasted RDM_WATCHDOG_SECS. */
  RDM_ERROR_WATCHDOG = 14,
  /* The device has faulted; the message names the first cause. Every later call on it fails with this at once. */
  RDM_ERROR_DEVICE_FAULT = 15,
  /* The driver refused a launch; the device stays usable. */
  RDM_ERROR_LAUNCH = 16,
  /* The driver returned an error with no status of its own here; see driver_code. */
  RDM_ERROR_DRIVER = 17,
  RDM_ERROR_OUT_OF_MEMORY = 18,
  /* The run-time compiler refused the source; the message ends with the tail of its log. */
  RDM_ERROR_COMPILE = 19,
  /* The module has no kernel of that name. */
  RDM_ERROR_KERNEL_NOT_FOUND = 20,
  /* The process is exiting. */
  RDM_ERROR_SHUTTING_DOWN = 21,
  /* This process was forked after its parent had loaded the driver. */
  RDM_ERROR_FORKED = 22,
  /* The function waits and was called from a completion handler. */
  RDM_ERROR_IN_CALLBACK = 23,
  /* rdm_configure came after the driver was chosen. */
  RDM_ERROR_ALREADY_CONFIGURED = 24,
  /* The event belongs to another device than the stream. */
  RDM_ERROR_WRONG_DEVICE = 25,
  /* The driver or the build can not do this. */
  RDM_ERROR_UNSUPPORTED = 26,
  /* A system resource other than memory ran out (threads, handles). */
  RDM_ERROR_RESOURCE = 27,
  /* A stream is being captured into a graph, and the driver does not let this happen meanwhile. */
  RDM_ERROR_CAPTURING = 28
};

/* The constant's name, such as "RDM_ERROR_TIMEOUT", or "RDM_ERROR_UNKNOWN". Static storage. Works in any state. */
RDM_API const char *rdm_status_name(rdm_status status);

/* One sentence on the status. Static storage. Works in any state. */
RDM_API const char *rdm_status_description(rdm_status status);

/* An error in full. */
typedef struct rdm_error {
  uint32_t struct_size;
  rdm_status status;
  /* The driver's own error number (HIP numbering), 0 where no driver call failed. */
  int32_t driver_code;
  /* The device it happened on, -1 where none. */
  int32_t device_index;
  /* The driver's name for driver_code, such as "hipErrorInvalidValue"; empty where there is none. */
  char driver_name[64];
  /* The driver entry point that failed, such as "hipModuleLaunchKernel"; empty where there is none. */
  char call[64];
  /* The whole message, one line but for a compiler's log. Always ends with a NUL. */
  char message[2048];
} rdm_error;

/*
 * Copies the calling thread's last error: that of its latest call that failed. A success leaves it as it is; a thread
 * with none gets RDM_OK and empty texts. Fails only on a null pointer or a struct_size too small to hold the status,
 * and then leaves the last error as it was. Works in any state.
 */
RDM_API rdm_status rdm_last_error(rdm_error *out_error);

/* The message alone, never null, valid until the thread's next failing call. Works in any state. */
RDM_API const char *rdm_last_error_message(void);

/* ---- Handles --------------------------------------------------------------------------------------------------- */

/* One GPU's state. Borrowed; valid for the life of the process. */
typedef struct rdm_device {
  uint64_t bits;
} rdm_device;
/* A (device, stream index) pair: an ordered queue of GPU work. Counted references. */
typedef struct rdm_stream {
  uint64_t bits;
} rdm_stream;
/* A stream that each thread resolves to one of its own. Owned. */
typedef struct rdm_thread_local_stream {
  uint64_t bits;
} rdm_thread_local_stream;
/* What a stream submits through. What the driver refuses of it is also recorded as the stream's error. Borrowed; stale
 * once its stream is released or its encoder cleared. */
typedef struct rdm_encoder {
  uint64_t bits;
} rdm_encoder;
/* A point in a stream that a host thread or another stream can wait for. Owned. */
typedef struct rdm_event {
  uint64_t bits;
} rdm_event;
/* Kernels compiled at run time and loaded on one device. Borrowed; valid for the life of the process. */
typedef struct rdm_module {
  uint64_t bits;
} rdm_module;
/* One kernel of a module. Borrowed; valid for the life of the process. */
typedef struct rdm_kernel {
  uint64_t bits;
} rdm_kernel;
/* Work of one stream that was captured, to be launched again and again. Owned. */
typedef struct rdm_graph {
  uint64_t bits;
} rdm_graph;

/* ---- Configuration and logging --------------------------------------------------------------------------------- */

typedef struct rdm_config {
  uint32_t struct_size;
  /* "hip", "cuda" or "sim"; null: RDM_DRIVER where it is set, else the real drivers that are built in, in that order.
   * "sim" is never chosen unless it is asked for by name. */
  const char *driver;
  /* How many GPUs `sim` simulates, 0: RDM_SIM_DEVICES, else 2. At most 64. Other drivers ignore it. */
  int32_t sim_device_count;
} rdm_config;

/*
 * Sets what the process uses, before anything else has used the driver; null resets to the defaults. The texts are
 * copied. Loads nothing and makes no driver call. Errors: RDM_ERROR_ALREADY_CONFIGURED once the driver is chosen,
 * RDM_ERROR_UNKNOWN_DRIVER, RDM_ERROR_INVALID_ARGUMENT.
 */
RDM_API rdm_status rdm_configure(const rdm_config *config);

typedef int32_t rdm_log_level;
enum { RDM_LOG_ERROR = 1, RDM_LOG_WARNING = 2, RDM_LOG_INFO = 3, RDM_LOG_DEBUG = 4 };

/* `message` is one line without its newline, valid during the call. */
typedef void (*rdm_log_handler)(rdm_log_level level, const char *message, void *user_data);

/*
 * Sends log lines of `max_level` and more severe to `handler` in place of standard error; a null handler restores
 * that. Until the first call of this function the level is rdm_default_log_level(). A handler may be called from any
 * thread, from several at once, and, by a thread that was already logging, shortly after it was replaced. Works in any
 * state.
 */
RDM_API rdm_status rdm_set_log_handler(rdm_log_handler handler, void *user_data, rdm_log_level max_level);

/*
 * The level that RDM_LOG_LEVEL names (error, warning, info or debug), read once; else RDM_LOG_INFO: errors, warnings,
 * and the one line `bound HIP device N: ...` for each device. For programs whose own handler is to go by it. Works in
 * any state.
 */
RDM_API rdm_log_level rdm_default_log_level(void);

/* ---- Driver ---------------------------------------------------------------------------------------------------- */

typedef struct rdm_driver_info {
  uint32_t struct_size;
  /* The driver's own version number, 0 where it has none. */
  int32_t driver_version;
  /* The runtime's own version number. */
  int32_t runtime_version;
  /* The run-time compiler's version, major * 1000 + minor; 0 where there is none. */
  int32_t compiler_version;
  /* "hip", "cuda" or "sim". */
  char name[16];
  /* The file that the runtime was loaded from; empty for `sim`. */
  char runtime_path[512];
  /* The file that the run-time compiler was loaded from, or the compiler program of `sim`. */
  char compiler_path[512];
} rdm_driver_info;

/*
 * Loads the driver if this is the first use, and describes it. Touches no device: the only driver calls are the one
 * that initializes the runtime, the device count, and versions. Errors: RDM_ERROR_NO_DRIVER,
 * RDM_ERROR_UNKNOWN_DRIVER, RDM_ERROR_DRIVER_VERSION, RDM_ERROR_PERMISSION. A host whose driver works and has no
 * device is RDM_OK here.
 */
RDM_API rdm_status rdm_get_driver_info(rdm_driver_info *out_info);

/*
 * Opens a driver by name for a look, without making it the process's own: sets `*out_count` to how many devices it
 * has. Touches no device. The driver's library may stay loaded. For code that chooses a driver and then names it to
 * rdm_configure. Errors: as rdm_get_driver_info, for that driver.
 */
RDM_API rdm_status rdm_probe_driver(const char *driver, int32_t *out_count);

/* As a `timeout_ns`: a deadline that never comes; RDM_WATCHDOG_SECS still holds. */
#define RDM_WAIT_FOREVER UINT64_MAX

/* ---- Devices --------------------------------------------------------------------------------------------------- */

/* How many devices the driver has, read once for each process. Zero devices is RDM_OK and 0. Touches none. */
RDM_API rdm_status rdm_device_count(int32_t *out_count);

/*
 * The device with this index, built if this is its first use: the driver calls then name this device and no other.
 * Threads that ask for one index at once get one device. A failed construction leaves nothing and the next call tries
 * again. Errors: RDM_ERROR_INVALID_DEVICE, RDM_ERROR_NO_DEVICE, those of rdm_get_driver_info, and the driver's.
 */
RDM_API rdm_status rdm_device_get(int32_t device_index, rdm_device *out_device);

/*
 * The same, with another thread's construction of that device waited for at most `timeout_ns`. What no other thread is
 * constructing the call constructs itself, which takes as long as it takes. Errors: RDM_ERROR_TIMEOUT and
 * RDM_ERROR_WATCHDOG, with the construction going on. Every function that constructs a device waits so, without a
 * deadline of its own.
 */
RDM_API rdm_status rdm_device_get_within(int32_t device_index, uint64_t timeout_ns, rdm_device *out_device);

/* How many times the device with this index was constructed: 0 or 1. Builds nothing and makes no driver call. */
RDM_API rdm_status rdm_device_construction_count(int32_t device_index, uint64_t *out_count);

typedef struct rdm_device_info {
  uint32_t struct_size;
  int32_t device_index;
  uint64_t total_memory_bytes;
  int32_t multiprocessor_count;
  int32_t warp_size;
  int32_t max_threads_per_block;
  /* 1 once the device has faulted. */
  int32_t faulted;
  char name[256];
  /* The compiler's name for the architecture, with its feature suffixes, such as "gfx90a:sramecc+:xnack-". */
  char architecture[256];
} rdm_device_info;

/* Describes a device, from what was read when it was built. Makes no driver call. */
RDM_API rdm_status rdm_device_get_info(rdm_device device, rdm_device_info *out_info);

/*
 * Makes the device the calling thread's current one, also when other code has moved it since. For code that is about
 * to call the driver itself; the functions here do what they need.
 */
RDM_API rdm_status rdm_device_make_current(rdm_device device);

/* Commits and waits for every stream of the device, `timeout_ns` in all at most. Errors as rdm_stream_synchronize. */
RDM_API rdm_status rdm_device_synchronize(rdm_device device, uint64_t timeout_ns);

/*
 * Destroys every encoder of every device. The streams stay: their next use makes a fresh encoder, and an encoder
 * handle taken before is stale. Open batches are committed first; work already submitted completes and its completion
 * handlers run. Waits for nothing.
 */
RDM_API rdm_status rdm_clear_encoders(void);

/* ---- Streams --------------------------------------------------------------------------------------------------- */

/*
 * Creates a stream on a device, with a stream index that no other stream of the device has. The driver's stream is
 * made, or taken over from a stream that has ended, when work is first submitted. Owned: one reference, to be given
 * back with rdm_stream_release. Constructs the device. Errors as rdm_device_get.
 */
RDM_API rdm_status rdm_stream_create(int32_t device_index, rdm_stream *out_stream);

/*
 * The stream of a device with a stream index that the caller chose, registered by the first call that names it. For
 * code that numbers its streams itself; an index that rdm_stream_create gave out names that stream. Borrowed: the
 * registration lasts for the life of the process, unless the stream came from rdm_stream_create. Constructs the
 * device. Errors: RDM_ERROR_INVALID_ARGUMENT for a negative stream index, and those of rdm_device_get.
 */
RDM_API rdm_status rdm_stream_get(int32_t device_index, int32_t stream_index, rdm_stream *out_stream);

/* Takes one more reference to a stream. */
RDM_API rdm_status rdm_stream_retain(rdm_stream stream);

/*
 * Gives one reference back. With the last one the stream ends: its handle and its encoder's become stale, its open
 * batch is committed, its work completes and its completion handlers run, and its driver stream goes back for reuse.
 * Makes no driver call and waits for nothing. Errors: the handle errors; a registered stream is not an owned one and
 * gets RDM_ERROR_INVALID_ARGUMENT.
 */
RDM_API rdm_status rdm_stream_release(rdm_stream stream);

typedef struct rdm_stream_info {
  uint32_t struct_size;
  int32_t device_index;
  int32_t stream_index;
} rdm_stream_info;

/* Describes a stream. Makes no driver call. */
RDM_API rdm_status rdm_stream_get_info(rdm_stream stream, rdm_stream_info *out_info);

/* Commits the stream's open batch without waiting. Does nothing for a stream that has no encoder. */
RDM_API rdm_status rdm_stream_finalize(rdm_stream stream);

/*
 * Commits the stream's open batch and waits until all that was submitted to the stream before has completed, for at
 * most `timeout_ns`. Completion handlers of that work have run when it returns RDM_OK. Errors: RDM_ERROR_TIMEOUT,
 * RDM_ERROR_WATCHDOG, RDM_ERROR_DEVICE_FAULT, RDM_ERROR_IN_CALLBACK; and where the stream has a recorded error that
 * nobody has taken, that error.
 */
RDM_API rdm_status rdm_stream_synchronize(rdm_stream stream, uint64_t timeout_ns);

/*
 * Records an error for a stream. The first one is kept until it is taken; later ones change nothing. Binds no device
 * and makes no driver call. For a stream handle that is stale the error goes to the process's own slot
 * (rdm_take_unattributed_error). `status` must not be RDM_OK or RDM_NOT_READY.
 */
RDM_API rdm_status rdm_stream_record_error(rdm_stream stream, rdm_status status, const char *message);

/* Takes the stream's recorded error, leaving none. With none, out_error->status is RDM_OK. */
RDM_API rdm_status rdm_stream_take_error(rdm_stream stream, rdm_error *out_error);

/*
 * Takes the first error that belongs to no live stream: one recorded for a stale stream, or by a release whose driver
 * call failed. With none, out_error->status is RDM_OK.
 */
RDM_API rdm_status rdm_take_unattributed_error(rdm_error *out_error);

/* ---- Thread-local and default streams -------------------------------------------------------------------------- */

/*
 * Creates a handle that stands for a stream of its own on each thread that resolves it. Made anywhere, used anywhere.
 * Touches no device. Errors: RDM_ERROR_INVALID_DEVICE, RDM_ERROR_NO_DEVICE, those of rdm_get_driver_info.
 */
RDM_API rdm_status rdm_thread_local_stream_create(int32_t device_index, rdm_thread_local_stream *out_stream);

/* The one such handle of the process for this device, made by the first call. Borrowed. Touches no device. */
RDM_API rdm_status rdm_thread_local_stream_get_shared(int32_t device_index, rdm_thread_local_stream *out_stream);

/*
 * Ends the handle. The streams that threads resolved it to are released as each of those threads next resolves a
 * handle that it has not resolved before, or ends; one that is a thread's default stream lasts until the default
 * changes.
 */
RDM_API rdm_status rdm_thread_local_stream_release(rdm_thread_local_stream stream);

/* The device index of the handle. Makes no driver call. */
RDM_API rdm_status rdm_thread_local_stream_get_device_index(rdm_thread_local_stream stream, int32_t *out_index);

/*
 * The calling thread's own stream for the handle, created by the thread's first call. Borrowed: it lasts until the
 * thread ends or the handle is released. A thread's streams go back for reuse when it ends. Errors as
 * rdm_stream_create.
 */
RDM_API rdm_status rdm_thread_local_stream_resolve(rdm_thread_local_stream stream, rdm_stream *out_stream);

/*
 * Makes a stream the calling thread's default, holding a reference to it until the default changes or the thread
 * ends. The null handle leaves the thread without one.
 */
RDM_API rdm_status rdm_default_stream_set(rdm_stream stream);

/* The calling thread's default stream, the null handle where it has none. Borrowed. Makes no driver call. */
RDM_API rdm_status rdm_default_stream_get(rdm_stream *out_stream);

/* ---- Command encoders ------------------------------------------------------------------------------------------ */

/*
 * The encoder of a stream, made by the first call. Any thread may submit to it; what several threads submit is
 * ordered by its lock. Borrowed: stale after rdm_clear_encoders or the stream's release. Errors: the handle errors
 * and the driver's.
 */
RDM_API rdm_status rdm_encoder_get(rdm_stream stream, rdm_encoder *out_encoder);

typedef struct rdm_launch_config {
  uint32_t struct_size;
  /* Blocks in the grid and threads in a block, each at least 1. */
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_memory_bytes;
  /* Null, or the size of each argument's value, to be checked against the kernel's where the driver can tell. */
  const uint32_t *argument_sizes_bytes;
} rdm_launch_config;

/*
 * Launches a kernel. `arguments` has `argument_count` pointers, one to each kernel argument; the values are copied
 * before the call returns. Errors: RDM_ERROR_LAUNCH names the kernel and the sizes, and the device stays usable;
 * RDM_ERROR_WRONG_DEVICE for a kernel of another device; RDM_ERROR_INVALID_ARGUMENT for an argument count, or a size in
 * argument_sizes_bytes, that the kernel does not have, where the driver can tell; RDM_ERROR_DEVICE_FAULT.
 */
RDM_API rdm_status rdm_encoder_launch(rdm_encoder encoder, rdm_kernel kernel, const rdm_launch_config *config,
                                      void *const *arguments, uint32_t argument_count);

typedef int32_t rdm_copy_kind;
enum { RDM_COPY_HOST_TO_DEVICE = 1, RDM_COPY_DEVICE_TO_HOST = 2, RDM_COPY_DEVICE_TO_DEVICE = 3 };

/* Copies memory in stream order. Host memory is read or written when the copy runs, not when it is submitted. */
RDM_API rdm_status rdm_encoder_copy(rdm_encoder encoder, void *destination, const void *source, size_t size_bytes,
                                    rdm_copy_kind kind);

/* Fills device memory with a byte in stream order. */
RDM_API rdm_status rdm_encoder_fill(rdm_encoder encoder, void *destination, uint8_t value, size_t size_bytes);

/* `status` is RDM_OK, or what kept the batch from completing (RDM_ERROR_DEVICE_FAULT). */
typedef void (*rdm_completion_handler)(rdm_status status, void *user_data);

/*
 * Adds a handler to the encoder's open batch. It runs exactly once, on a thread of this library, in the order of
 * adding for one encoder, after all that was submitted to the encoder before its commit has completed or failed; but
 * not at all once the process is exiting.
 */
RDM_API rdm_status rdm_encoder_add_completion_handler(rdm_encoder encoder, rdm_completion_handler handler,
                                                      void *user_data);

/* Ends the open batch: its handlers run once the device gets there. Without handlers this makes no driver call. */
RDM_API rdm_status rdm_encoder_commit(rdm_encoder encoder);

/* Records an event at this point of the stream. Errors: RDM_ERROR_WRONG_DEVICE, the handle errors, the driver's. */
RDM_API rdm_status rdm_encoder_record_event(rdm_encoder encoder, rdm_event event);

/*
 * Makes what is submitted to the stream from here on wait for the event's latest record, which may be on another
 * device. Does not block. Errors: RDM_ERROR_NOT_RECORDED, RDM_ERROR_DEVICE_FAULT where the event's device faulted.
 */
RDM_API rdm_status rdm_encoder_wait_event(rdm_encoder encoder, rdm_event event);

/*
 * The driver's own stream (hipStream_t), lent for use with other code on the encoder's device; not to be destroyed.
 * Valid for the life of the process, though once the encoder is gone another stream may be using it.
 */
RDM_API rdm_status rdm_encoder_get_native_stream(rdm_encoder encoder, void **out_native_stream);

/* ---- Graphs ---------------------------------------------------------------------------------------------------- */

/*
 * A graph is what a stream was given between the begin and the end of a capture: launches, copies and fills, with the
 * values that their arguments had. Launching it costs one driver call, however much is in it. What its work points to
 * has to be there whenever it runs.
 *
 * While a stream is captured what any thread submits to it is collected and does not run; waits for it, and for events
 * recorded in it, are RDM_ERROR_CAPTURING, and its completion handlers run once the capture is over. Other streams, and
 * memory, go on as ever; another stream that waits for an event recorded in the capture becomes a part of it, and has
 * to be waited for in turn before the end.
 */

/*
 * Begins to capture what is submitted to the encoder's stream, by any thread, and through any encoder of the stream.
 * Errors: RDM_ERROR_CAPTURING where the stream is being captured already, RDM_ERROR_UNSUPPORTED where the driver has no
 * captures, the handle errors, the driver's.
 */
RDM_API rdm_status rdm_encoder_begin_capture(rdm_encoder encoder);

/*
 * Ends the capture and makes a graph of it, which may be empty. Any thread may call it. Errors:
 * RDM_ERROR_INVALID_ARGUMENT where rdm_encoder_begin_capture was not called before, RDM_ERROR_CAPTURING where something
 * that the driver does not capture was asked of the stream meanwhile, the handle errors, the driver's. The capture is
 * then over too, unless the driver says that it goes on, as the message tells; the stream's end ends it in any case.
 */
RDM_API rdm_status rdm_encoder_end_capture(rdm_encoder encoder, rdm_graph *out_graph);

/*
 * Launches a graph on the stream that it was captured on, in stream order; into a capture of that stream, where there
 * is one. Errors: RDM_ERROR_INVALID_ARGUMENT for a graph of another stream, the handle errors, the driver's.
 */
RDM_API rdm_status rdm_encoder_launch_graph(rdm_encoder encoder, rdm_graph graph);

/*
 * Ends the graph's handle. Launches of it that were submitted complete. Makes no driver call: the driver's graph goes
 * with a later end of a capture on the device, once it is idle.
 */
RDM_API rdm_status rdm_graph_release(rdm_graph graph);

/* ---- Events ---------------------------------------------------------------------------------------------------- */

enum {
  RDM_EVENT_DEFAULT = 0,
  /* Can be timed with rdm_event_elapsed. Costs more to record. */
  RDM_EVENT_TIMING = 1
};

/*
 * Takes an event of the device from the pool, or makes one. Owned. Not recorded yet, whatever it was used for before.
 * Errors: the handle errors, RDM_ERROR_INVALID_ARGUMENT for unknown flags, the driver's.
 */
RDM_API rdm_status rdm_event_create(rdm_device device, uint32_t flags, rdm_event *out_event);

/* Gives the event back to the pool. Work that waits for it still does. Makes no driver call. */
RDM_API rdm_status rdm_event_release(rdm_event event);

/*
 * RDM_OK where all before the event's latest record has completed, RDM_NOT_READY where it has not or the event was
 * never recorded, else an error: RDM_ERROR_NOT_RECORDED where the latest record failed.
 */
RDM_API rdm_status rdm_event_query(rdm_event event);

/*
 * Waits until the event's latest record has completed, at most `timeout_ns`. Errors: RDM_ERROR_NOT_RECORDED, and those
 * of rdm_stream_synchronize but for the stream's recorded error.
 */
RDM_API rdm_status rdm_event_wait(rdm_event event, uint64_t timeout_ns);

/* Milliseconds between two completed events that were created with RDM_EVENT_TIMING on one device. */
RDM_API rdm_status rdm_event_elapsed(rdm_event start, rdm_event end, float *out_milliseconds);

/* The driver's own event (hipEvent_t), lent until the handle is released; not to be destroyed. */
RDM_API rdm_status rdm_event_get_native(rdm_event event, void **out_native_event);

/* ---- Memory ---------------------------------------------------------------------------------------------------- */

/* Allocates device memory, aligned to at least 256 bytes. A size of 0 is RDM_ERROR_INVALID_ARGUMENT. */
RDM_API rdm_status rdm_memory_allocate(rdm_device device, size_t size_bytes, void **out_pointer);

/*
 * Frees device memory. The driver may wait for the device. Null is RDM_OK. On a faulted device it does nothing. A
 * driver's failure is also kept as the process's unattributed error, for callers who can not report it.
 */
RDM_API rdm_status rdm_memory_free(rdm_device device, void *pointer);

/* Allocates pinned host memory that the device can read and write. */
RDM_API rdm_status rdm_host_memory_allocate(rdm_device device, size_t size_bytes, void **out_pointer);

/* Frees pinned host memory, as rdm_memory_free does. */
RDM_API rdm_status rdm_host_memory_free(rdm_device device, void *pointer);

/* ---- Modules and kernels --------------------------------------------------------------------------------------- */

typedef struct rdm_module_source {
  uint32_t struct_size;
  uint32_t option_count;
  /* Shown in the compiler's messages and part of the key. */
  const char *name;
  /* HIP C++ source with `extern "C" __global__` kernels. */
  const char *source;
  /* Options for the run-time compiler besides the architecture, in order. May be null where option_count is 0. */
  const char *const *options;
} rdm_module_source;

/*
 * The module for this device and source, compiled and loaded by the first call. Threads that ask for the same one
 * wait for one compile; a module that is already there is never delayed by another's compile. Errors:
 * RDM_ERROR_COMPILE with the tail of the compiler's log; then nothing is kept and the next call tries again.
 */
RDM_API rdm_status rdm_module_get(rdm_device device, const rdm_module_source *source, rdm_module *out_module);

/*
 * The same, with another thread's build of that module waited for at most `timeout_ns`. What no other thread is
 * building the call builds itself, which takes as long as it takes, its turn at a compiler that does one thing at a
 * time included. Errors: RDM_ERROR_TIMEOUT and RDM_ERROR_WATCHDOG, with the build going on.
 */
RDM_API rdm_status rdm_module_get_within(rdm_device device, const rdm_module_source *source, uint64_t timeout_ns,
                                         rdm_module *out_module);

/* A kernel of a module by its name. Errors: RDM_ERROR_KERNEL_NOT_FOUND. */
RDM_API rdm_status rdm_module_get_kernel(rdm_module module, const char *name, rdm_kernel *out_kernel);

/* How many sources were compiled in this process so far, failures counted in. Makes no driver call. */
RDM_API rdm_status rdm_module_compile_count(uint64_t *out_count);

/* How many sources were not compiled since the cache on disk had their code. Makes no driver call. */
RDM_API rdm_status rdm_module_disk_hit_count(uint64_t *out_count);

/*
 * Loads a code object that was compiled elsewhere, anew at each call: keep the handle. `name` is for messages. The code
 * is copied or read before the call returns. Errors: the driver's own for an image that it can not load.
 */
RDM_API rdm_status rdm_module_load(rdm_device device, const char *name, const void *code, size_t code_size_bytes,
                                   rdm_module *out_module);

/*
 * The code of a source for an architecture, such as "gfx1100", "sm_90" or "sim", compiled unless this process or the
 * cache on disk has it. Needs the driver's compiler and no device. Borrowed: valid for the life of the process. Errors
 * as rdm_module_get.
 */
RDM_API rdm_status rdm_code_get(const char *architecture, const rdm_module_source *source, const void **out_code,
                                size_t *out_code_size_bytes);

/*
 * The same, with another thread's compile of that source waited for at most `timeout_ns`. What no other thread is
 * compiling the call compiles itself, which takes as long as it takes. Errors: RDM_ERROR_TIMEOUT and
 * RDM_ERROR_WATCHDOG, with the compile going on.
 */
RDM_API rdm_status rdm_code_get_within(const char *architecture, const rdm_module_source *source, uint64_t timeout_ns,
                                       const void **out_code, size_t *out_code_size_bytes);

/* ---- The cache of compiled code on disk ------------------------------------------------------------------------ */

/*
 * Where: RDM_CACHE_DIR (empty: no cache), else $XDG_CACHE_HOME/rocm-device-map, else $HOME/.cache/rocm-device-map; an
 * absolute path. The folder must belong to this user and be writable by nobody else. It holds at most
 * RDM_CACHE_MAX_BYTES, 1 GiB where that is not set; the least recently used entries go first. The functions here load
 * no driver.
 */
typedef struct rdm_cache_info {
  uint32_t struct_size;
  /* 1 where there is a folder that can be used, or can be made. */
  int32_t enabled;
  uint64_t entry_count;
  uint64_t size_bytes;
  uint64_t limit_bytes;
  /* The folder; empty where there is none. */
  char path[1024];
  /* Why there is none, or it can not be used or written to; else empty. */
  char problem[1024];
} rdm_cache_info;

/* Describes the cache. Makes no folder. */
RDM_API rdm_status rdm_cache_get_info(rdm_cache_info *out_info);

/* `name` is the entry's file name; `valid` is 1 for a whole and undamaged entry. */
typedef void (*rdm_cache_handler)(const char *name, uint64_t size_bytes, int32_t valid, void *user_data);

/*
 * Reads every entry, calls `handler` (may be null) for each, the least recently used first, and removes those that are
 * not valid where `remove_damaged` is 1. Errors: RDM_ERROR_UNSUPPORTED where there is no folder that can be used.
 */
RDM_API rdm_status rdm_cache_check(int32_t remove_damaged, rdm_cache_handler handler, void *user_data);

/*
 * Removes the least recently used entries until the rest is at most `limit_bytes`, 0: all. The out-parameters, which
 * may be null, say how much went. Errors as rdm_cache_check.
 */
RDM_API rdm_status rdm_cache_prune(uint64_t limit_bytes, uint64_t *out_entry_count, uint64_t *out_size_bytes);

/* ---- Diagnosis ------------------------------------------------------------------------------------------------- */

/*
 * What a program such as `rdm doctor` is made of. None of these functions builds a device, makes one current or chooses
 * the process's driver. A driver's library, once opened, may stay loaded; AMD's runtime attaches to every GPU that
 * ROCR_VISIBLE_DEVICES leaves it as soon as it is initialized, whoever asks for what.
 */

/* `name` is what the loader was given, a path or a soname; `used` is 1 where that file was taken, and `result` is then
 * its path, else the loader's text or why the file was not taken. Both are valid during the call. */
typedef void (*rdm_attempt_handler)(const char *name, const char *result, int32_t used, void *user_data);

/*
 * Calls `handler` for each attempt at a library of the driver, in order, in the latest opening of it: none where it
 * was not opened yet (rdm_probe_driver), or looks for none (`sim`). Errors: RDM_ERROR_UNKNOWN_DRIVER,
 * RDM_ERROR_INVALID_ARGUMENT for a null handler.
 */
RDM_API rdm_status rdm_driver_attempts(const char *driver, rdm_attempt_handler handler, void *user_data);

/*
 * Opens a driver by name as rdm_probe_driver does and describes one of its devices. The driver is asked for the
 * device's properties and for nothing else, which makes no context there. Errors: those of rdm_probe_driver,
 * RDM_ERROR_NO_DEVICE, RDM_ERROR_INVALID_DEVICE, the driver's; RDM_ERROR_UNSUPPORTED for `sim` unless the process uses
 * it already.
 */
RDM_API rdm_status rdm_probe_device(const char *driver, int32_t device_index, rdm_device_info *out_info);

typedef struct rdm_device_node {
  uint32_t struct_size;
  /* The others but `path` and `driver` are 0 and empty where it does not exist. */
  int32_t exists;
  /* 1 where this process may open it for reading and writing, as its mode and owner say. It is not opened. */
  int32_t accessible;
  /* The permission bits, such as 0660. */
  uint32_t mode;
  uint32_t owner_id;
  uint32_t group_id;
  /* The driver that needs it: "hip" or "cuda". */
  char driver[16];
  char path[128];
  /* The group's name, or its number where it has none. */
  char group[64];
  /* Where it is not accessible: why, and the remedy, in the form "WHY; REMEDY". */
  char problem[1024];
} rdm_device_node;

/* `node` is valid during the call. */
typedef void (*rdm_device_node_handler)(const rdm_device_node *node, void *user_data);

/*
 * Calls `handler` for each device node that a driver of this build needs: AMD's /dev/kfd and /dev/dri/renderD*, and
 * NVIDIA's /dev/nvidiactl, /dev/nvidia-uvm and /dev/nvidia0 and so on. Those without a number are named also where they
 * do not exist. Loads no driver and opens no node. Errors: RDM_ERROR_INVALID_ARGUMENT for a null handler.
 */
RDM_API rdm_status rdm_device_nodes(rdm_device_node_handler handler, void *user_data);

/* ---- Counters -------------------------------------------------------------------------------------------------- */

/*
 * What the process has done since its start. Those marked "now" go up and down; all others only grow, and a count that
 * was read is never smaller when it is read again. They are read one after the other while other threads go on, so two
 * of them may be of slightly different moments. What a call counted is there once the call has returned.
 */
typedef struct rdm_counters {
  uint32_t struct_size;
  uint32_t reserved;

  /* Lookups of a device by its index, by any function that takes one, and how many of them found the device by what
   * the thread remembered, without the map's lock. */
  uint64_t device_lookups;
  uint64_t device_hits;
  /* Devices that were built. */
  uint64_t device_constructions;
  /* First faults of devices, each of which has cost the process that device, or all of them with AMD's runtime. */
  uint64_t faults;

  /* Lookups of an encoder by its stream, and how many of them took no lock. */
  uint64_t encoder_lookups;
  uint64_t encoder_hits;
  uint64_t encoders_created;
  /* Now. */
  uint64_t encoders_alive;
  uint64_t streams_created;
  /* Now. */
  uint64_t streams_alive;
  /* Driver streams made. They are reused and never destroyed, so as many exist. */
  uint64_t driver_streams;

  /* What the driver took: kernel launches, copies and their bytes, fills. */
  uint64_t launches;
  uint64_t copies;
  uint64_t copied_bytes;
  uint64_t fills;
  /* Graphs captured (rdm_encoder_end_capture), and how often the driver took one to launch. What is submitted to a
   * stream while it is captured counts once, then, and not with each launch of the graph. */
  uint64_t graphs_created;
  /* Now. */
  uint64_t graphs_alive;
  uint64_t graph_launches;
  /* Launches that the driver refused, of graphs too. */
  uint64_t launches_refused;
  /* Batches of completion handlers that were committed. */
  uint64_t batches_committed;
  /* Now: those whose handlers have yet to run to their end. */
  uint64_t batches_pending;

  uint64_t events_created;
  uint64_t events_released;
  /* Now: created and not released. */
  uint64_t events_alive;
  /* Now: driver events that no handle names, in the shared pool, with threads, or used by a synchronize. */
  uint64_t events_pooled;
  /* Now: driver events that exist, but for those given up on a device that is lost. */
  uint64_t driver_events;
  /* How often a thread that had no event left went to a shared pool, and took its lock. */
  uint64_t event_pool_visits;
  /* Records by rdm_encoder_record_event and waits by rdm_encoder_wait_event that the driver took. */
  uint64_t event_records;
  uint64_t event_waits;

  /* How often a thread waited for a device's work or for completion handlers. What is done already is not waited for.
   * A synchronize that waits for both counts twice. */
  uint64_t waits;
  /* Now: threads that wait so. */
  uint64_t waits_running;
  /* For how long, all threads together, in nanoseconds; a wait counts when it ends. */
  uint64_t wait_time_ns;
  /* Waits of any kind that ended with RDM_ERROR_TIMEOUT, and with RDM_ERROR_WATCHDOG. */
  uint64_t wait_timeouts;
  uint64_t wait_watchdogs;

  /* Modules loaded. They are never unloaded. */
  uint64_t modules_loaded;
  /* Lookups of a module by its source, and how many of them found it there. */
  uint64_t module_lookups;
  uint64_t module_hits;
  /* Sources given to the run-time compiler, and how many of them failed. */
  uint64_t compiles;
  uint64_t compile_failures;
  /* Now. */
  uint64_t compiles_running;
  /* How long the compiler took, all compiles together, in nanoseconds, without the wait for its turn. */
  uint64_t compile_time_ns;
  /* Sources whose code was found in the cache on disk, and those looked for there in vain. */
  uint64_t disk_cache_hits;
  uint64_t disk_cache_misses;

  /* Blocks of device memory and of pinned host memory that were allocated and freed. */
  uint64_t device_allocations;
  uint64_t device_frees;
  uint64_t host_allocations;
  uint64_t host_frees;

  /* Driver calls that failed, also those that no caller was told of. */
  uint64_t driver_errors;
  /* Errors kept for a stream, or for none (rdm_take_unattributed_error). */
  uint64_t stream_errors;
  /* Log lines of these levels, also those that went nowhere. */
  uint64_t log_errors;
  uint64_t log_warnings;
} rdm_counters;

/*
 * Adds up the counters of all threads, those that have ended too. Loads no driver, makes no driver call, and takes no
 * lock that is held while the driver is called: so it answers also while every other thread stands still. Takes a look
 * at each event, stream and encoder slot that was ever used at one time: some microseconds for a thousand.
 */
RDM_API rdm_status rdm_get_counters(rdm_counters *out_counters);

/* ---- The simulated driver -------------------------------------------------------------------------------------- */

/*
 * For tests. Every function below is RDM_ERROR_UNSUPPORTED unless the process's driver is `sim`; each loads it if
 * need be. Entry points are named as HIP names them, such as "hipEventRecord" or "hiprtcCompileProgram".
 */

/* A handle-like value in the call log is 0 where the call has none. */
typedef struct rdm_sim_call {
  /* Nanoseconds on the monotonic clock when the call was entered. */
  uint64_t time_ns;
  /* A small number for each thread, in the order of their first calls. */
  uint64_t thread;
  /* The stream, event, module, function or memory that the call named. */
  uint64_t handle;
  /* The thread's current device as the call was entered. */
  int32_t current_device;
  /* The device that the call names in an argument, or that its handle belongs to; -1 where there is none. */
  int32_t named_device;
  /* What the call returned; -1 while it is still inside. */
  int32_t result;
  /* 1 where the call was made from a host callback. */
  int32_t in_callback;
  /* Static storage. */
  const char *entry_point;
} rdm_sim_call;

/*
 * Copies the calls from number `first` on (the process's first is 0), at most `capacity` of them, into `out_calls`,
 * and sets `*out_count` to how many were copied. The log keeps the latest 65,536 calls; older ones are skipped.
 */
RDM_API rdm_status rdm_sim_read_calls(uint64_t first, rdm_sim_call *out_calls, size_t capacity, size_t *out_count);

/* How many calls were made to an entry point so far, null: to all of them. */
RDM_API rdm_status rdm_sim_call_count(const char *entry_point, uint64_t *out_count);

/*
 * Makes the `nth` call from now on (1: the next) to an entry point, null: to any of them, stall for `stall_ns` and
 * then, where `error` is not 0, return it without doing anything. `times` calls in a row are so treated, 0: all from
 * then on. Several injections may be set; for one call the one set first wins.
 */
RDM_API rdm_status rdm_sim_inject(const char *entry_point, uint64_t nth, uint64_t times, int32_t error,
                                  uint64_t stall_ns);

/* Removes every injection and sets `*out_fired` (may be null) to how many calls they had changed. */
RDM_API rdm_status rdm_sim_clear_injections(uint64_t *out_fired);

/* Makes a device's streams start no further work (1), or go on (0). What is running completes. */
RDM_API rdm_status rdm_sim_hold(int32_t device_index, int32_t hold);

/* Faults a device now, with a HIP error number, as a queue fault of its own would. */
RDM_API rdm_status rdm_sim_fault(int32_t device_index, int32_t error);

typedef struct rdm_sim_objects {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t streams;
  uint64_t events;
  uint64_t modules;
  uint64_t programs;
  uint64_t device_allocations;
  uint64_t host_allocations;
  uint64_t graphs;
} rdm_sim_objects;

/* How many objects of each kind are alive in the simulated driver. */
RDM_API rdm_status rdm_sim_count_objects(rdm_sim_objects *out_objects);

#ifdef __cplusplus
}
#endif

#endif
