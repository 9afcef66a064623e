/* libc's own functions, by dlsym(3).  They are looked up when the object begins: dlsym() may take
 * locks, which a handler or a forked child must not wait for. */
#include "process/process_next.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>

static const char *const names[] = {
#define NAME(name) #name,
	PROCESS_NEXT_FUNCTIONS(NAME)
#undef NAME
};

static void *functions[PROCESS_NEXT_COUNT];

static long absent(void)
{
	errno = ENOSYS;
	return -1;
}

static void *find(enum process_next_index index)
{
	void *function = dlsym(RTLD_NEXT, names[index]);
	if (!function)
		function = (void *)absent;
	__atomic_store_n(&functions[index], function, __ATOMIC_RELEASE);
	return function;
}

void process_next_find(void)
{
	for (unsigned i = 0; i < PROCESS_NEXT_COUNT; i++)
		find(i);
}

void *process_next(enum process_next_index index)
{
	void *function = __atomic_load_n(&functions[index], __ATOMIC_ACQUIRE);
	if (!function)
		function = find(index);
	return function;
}
