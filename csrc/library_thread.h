/* Starting the library's own threads, which live as long as the process. A lower layer: calls nothing of the library.
 */
#ifndef RDM_LIBRARY_THREAD_H
#define RDM_LIBRARY_THREAD_H

/* Starts a detached thread that takes none of the process's signals. Gives 0, or the error number. */
int rdm__library_thread_start(void *(*body)(void *argument), void *argument);

#endif
