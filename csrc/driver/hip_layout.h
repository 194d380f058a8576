/*
 * Our own declarations of AMD's device properties, in the layout of the majors up to 5 and in that which 6 brought
 * under the suffix R0600. Only what is read has a name; tests/headers/ holds offsets and sizes against AMD's headers.
 */
#ifndef RDM_HIP_LAYOUT_H
#define RDM_HIP_LAYOUT_H

#include <stddef.h>

typedef struct rdm__hip_properties_5 {
  char name[256];
  size_t total_global_memory;
  unsigned char shared_memory_to_registers[12];
  int warp_size;
  int max_threads_per_block;
  unsigned char limits_to_compute_capability[52];
  int multiprocessor_count;
  unsigned char caches_to_gcn_arch[56];
  char gcn_arch_name[256];
  unsigned char integrated_to_end[140];
} rdm__hip_properties_5;

typedef struct rdm__hip_properties_r0600 {
  char name[256];
  unsigned char uuid_to_luid_mask[32];
  size_t total_global_memory;
  unsigned char shared_memory_to_registers[12];
  int warp_size;
  size_t memory_pitch;
  int max_threads_per_block;
  unsigned char limits_to_device_overlap[64];
  int multiprocessor_count;
  unsigned char timeout_to_reserved[768];
  char gcn_arch_name[256];
  unsigned char shared_memory_to_end[56];
} rdm__hip_properties_r0600;

#endif
