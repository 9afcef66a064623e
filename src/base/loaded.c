#include "base/loaded.h"

#include <dlfcn.h>
#include <string.h>

bool tally_loaded_find(void *handle, const char *name, void *function)
{
	void *address = handle ? dlsym(handle, name) : NULL;
	/* C has no cast between the two kinds of pointers */
	memcpy(function, &address, sizeof(address));
	return address;
}
