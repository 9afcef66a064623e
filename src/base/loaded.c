#include "base/loaded.h"

#include "base/environment.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>

enum { HOW = RTLD_NOW | RTLD_LOCAL };

static void *open_in(const char *above, const char *folder, int length, const char *name)
{
	char path[PATH_MAX];
	if (snprintf(path, sizeof(path), "%s%.*s/%s", above, length, folder, name) >=
	    (int)sizeof(path))
		return NULL;
	return dlopen(path, HOW);
}

/* Without a merged /usr, some libraries are in /lib/TRIPLE and others in /usr/lib/TRIPLE. */
static void *open_beside_libc(const char *name)
{
	Dl_info libc;
	void *of_libc = dlsym(RTLD_DEFAULT, "getauxval");
	if (strchr(name, '/') || !of_libc || !dladdr(of_libc, &libc) || *libc.dli_fname != '/')
		return NULL;
	int length = (int)(strrchr(libc.dli_fname, '/') - libc.dli_fname);
	void *handle = open_in("", libc.dli_fname, length, name);
	return handle ? handle : open_in("/usr", libc.dli_fname, length, name);
}

void *tally_loaded_open(const char *name)
{
	return tally_environment_distrust() ? open_beside_libc(name) : dlopen(name, HOW);
}
