/* Functions of libraries that are loaded on demand (dlopen(3)), since each linked library costs
 * time at every start. */
#ifndef TALLY_BASE_LOADED_H
#define TALLY_BASE_LOADED_H

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/* Sets `*function`, a pointer to a function, to the library's function `name`.  Returns false if it
 * has none, or if `handle` is NULL (no library). */
static inline bool tally_loaded_find(void *handle, const char *name, void *function)
{
	void *address = handle ? dlsym(handle, name) : NULL;
	/* C has no cast between the two kinds of pointers */
	memcpy(function, &address, sizeof(address));
	return address;
}

#endif
