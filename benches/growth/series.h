/* The curves, each in the file of its name. `full`: up to the largest n, which takes minutes. */
#ifndef RDM_GROWTH_SERIES_H
#define RDM_GROWTH_SERIES_H

#include <stdbool.h>

void growth_devices(void);
void growth_threads(void);
void growth_streams(void);
void growth_events(bool full);
void growth_handles(void);

#endif
