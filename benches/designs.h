/* Every design, by name. */
#ifndef RDM_BENCH_DESIGNS_H
#define RDM_BENCH_DESIGNS_H

#include "bench.h"

/* cases/ */
extern const rdm__bench_design rdm__bench_device_lookup;
extern const rdm__bench_design rdm__bench_encoder_lookup;
extern const rdm__bench_design rdm__bench_event_pair;
extern const rdm__bench_design rdm__bench_event_create;
extern const rdm__bench_design rdm__bench_event_release;
extern const rdm__bench_design rdm__bench_event_record;
extern const rdm__bench_design rdm__bench_launch;
extern const rdm__bench_design rdm__bench_make_current;
extern const rdm__bench_design rdm__bench_graph;

/* baselines/ */
extern const rdm__bench_design rdm__bench_thread_local;
extern const rdm__bench_design rdm__bench_eager_vector;
extern const rdm__bench_design rdm__bench_mutex_map;
extern const rdm__bench_design rdm__bench_rwlock_array;
extern const rdm__bench_design rdm__bench_shared_mutex_map;
extern const rdm__bench_design rdm__bench_two_locks;
extern const rdm__bench_design rdm__bench_driver_event_pair;
extern const rdm__bench_design rdm__bench_driver_record;
extern const rdm__bench_design rdm__bench_event_locked_pool;
extern const rdm__bench_design rdm__bench_event_first_thread;
extern const rdm__bench_design rdm__bench_driver_launch;
extern const rdm__bench_design rdm__bench_driver_set_device;
extern const rdm__bench_design rdm__bench_driver_evaluation;
extern const rdm__bench_design rdm__bench_driver_graph;

#endif
