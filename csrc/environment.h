/* Environment variables, read strictly. The library never sets one. */
#ifndef RDM_ENVIRONMENT_H
#define RDM_ENVIRONMENT_H

#include <stdbool.h>
#include <stdint.h>

/* The variable's text, NULL where it is unset or empty. */
const char *rdm__environment_text(const char *name);

/* Reads a decimal whole number: digits alone, nothing before or after. False where the text is anything else. */
bool rdm__parse_whole_number(const char *text, uint64_t *out_value);

#endif
