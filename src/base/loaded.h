/* Functions of libraries that are loaded when they are needed (dlopen(3)), since each that is
 * linked costs time at every start. */
#ifndef TALLY_BASE_LOADED_H
#define TALLY_BASE_LOADED_H

#include <stdbool.h>

/* Sets `*function`, a pointer to a function, to what the library calls `name`; false where there is
 * none, or no library (`handle` NULL). */
bool tally_loaded_find(void *handle, const char *name, void *function);

#endif
