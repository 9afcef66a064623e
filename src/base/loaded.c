/* Opens libraries, and keeps the loader's message for the first ones that are installed but can't
 * be loaded, because callers report the failure later.  Without trust in the environment, only the
 * folder of the C library is searched. */
#include "base/loaded.h"

#include "base/environment.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

enum { HOW = RTLD_NOW | RTLD_LOCAL };

enum { FAILED_MAX = 16 };

/* The first libraries that are there, but could not be loaded.  Entries below `count` don't change. */
static struct {
	pthread_mutex_t lock;
	struct {
		char name[64], problem[192];
	} entries[FAILED_MAX];
	atomic_uint count;
} failed = { .lock = PTHREAD_MUTEX_INITIALIZER };

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');
	if (!slash)
		return path;
	return slash + 1;
}

/* dlopen(3).  It says only by its text that the file is missing; the missing file may be one that the
 * library needs. */
static void *open_library(const char *path)
{
	void *handle = dlopen(path, HOW);
	const char *text = NULL;
	if (!handle)
		text = dlerror();
	if (!text || (!strncmp(text, path, strlen(path)) && strstr(text, strerror(ENOENT))))
		return handle;
	pthread_mutex_lock(&failed.lock);
	unsigned at = atomic_load(&failed.count);
	if (at < FAILED_MAX) {
		snprintf(failed.entries[at].name, sizeof(failed.entries[at].name), "%s",
			 last_part(path));
		snprintf(failed.entries[at].problem, sizeof(failed.entries[at].problem), "%s",
			 text);
		atomic_store(&failed.count, at + 1);
	}
	pthread_mutex_unlock(&failed.lock);
	return NULL;
}

const char *tally_loaded_problem(const char *library)
{
	for (unsigned i = 0; i < atomic_load(&failed.count); i++)
		if (*library && !strncmp(failed.entries[i].name, library, strlen(library)))
			return failed.entries[i].problem;
	return NULL;
}

int tally_loaded_refuse(struct tally_error *err, int code, const char *text, const char *library,
			const char *package)
{
	const char *problem = tally_loaded_problem(library);
	if (problem)
		return tally_error_set(err, code, "%s: %s", text, problem);
	tally_error_set(err, code, "%s: %s is not installed", text, library);
	tally_error_hint(err, "on Debian: apt-get install %s", package);
	return code;
}

static void *open_in(const char *above, const char *folder, int length, const char *name)
{
	char path[PATH_MAX];
	if (snprintf(path, sizeof(path), "%s%.*s/%s", above, length, folder, name) >=
	    (int)sizeof(path))
		return NULL;
	return open_library(path);
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
	if (handle)
		return handle;
	return open_in("/usr", libc.dli_fname, length, name);
}

void *tally_loaded_open(const char *name)
{
	if (tally_environment_distrust())
		return open_beside_libc(name);
	return open_library(name);
}

void *tally_loaded_open_needed(const char *name)
{
	static const char *const path = "LD_LIBRARY_PATH"; /* the dynamic linker's variable */
	void *handle = tally_loaded_open(name);
	if (!handle && !tally_environment_of_caller(path))
		handle = open_library(name);
	return handle;
}
