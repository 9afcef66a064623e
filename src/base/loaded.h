/* Libraries that are loaded on demand (dlopen(3)), since each linked library costs time at every
 * start, and their functions.  docs/security.md lists them. */
#ifndef TALLY_BASE_LOADED_H
#define TALLY_BASE_LOADED_H

#include "base/error.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/* Loads a library by its name ("libz.so.1") with RTLD_NOW and RTLD_LOCAL.  If the environment is
 * untrusted, only the folder of the C library is searched: neither LD_LIBRARY_PATH nor a path
 * (which TALLY_LIBLLVM may be otherwise) can choose another one.  Returns the handle, which the
 * caller may close by dlclose(3), or NULL. */
void *tally_loaded_open(const char *name);

/* The same for a library without which tally can do little: if it is in no such place, and the caller
 * has set no LD_LIBRARY_PATH, the dynamic linker's own folders are searched, too. */
void *tally_loaded_open_needed(const char *name);

/* Returns why this process could not load the library whose name begins with `library` although it is
 * installed, such as the loader's "libz.so.1: failed to map segment"; NULL: it is not installed. */
const char *tally_loaded_problem(const char *library);

/* Sets the error "TEXT: LIBRARY is not installed" with a hint to install Debian's `package`, or with
 * tally_loaded_problem().  Returns the code.  `err` may be NULL. */
int tally_loaded_refuse(struct tally_error *err, int code, const char *text, const char *library,
			const char *package);

/* Sets `*function`, a pointer to a function, to the library's function `name`.  Returns false if it
 * has none, or if `handle` is NULL (no library). */
static inline bool tally_loaded_find(void *handle, const char *name, void *function)
{
	void *address = NULL;
	if (handle)
		address = dlsym(handle, name);
	/* C has no cast between the two kinds of pointers */
	memcpy(function, &address, sizeof(address));
	return address;
}

#endif
