/*
 * Thread-local variables on the hot paths, in the block that every thread has from its start: reading one is one load,
 * where the general kind is a function call in a shared library. The block has little room for libraries that are
 * loaded later, so all of ours together stay below RDM__FAST_THREAD_LOCAL_BYTES.
 */
#ifndef RDM_THREAD_MEMORY_H
#define RDM_THREAD_MEMORY_H

enum { RDM__FAST_THREAD_LOCAL_BYTES = 256 };

#define RDM__FAST_THREAD_LOCAL __attribute__((tls_model("initial-exec")))

#endif
