/* mprotect(2) and mremap(2): process_maps.c writes records of memory that becomes executable.
 * mmap(2) and munmap(2) are in process_interface_calls.c.
 *
 * These call the kernel, not libc's functions: memory allocators call them before this object's
 * constructor runs, when looking up libc's functions might allocate. */
#include "process/process_agent.h"
#include "process/process_call.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>

enum { LARGEST_ERROR = 4095 };

static long answer(long result)
{
	if (result >= 0 || result < -LARGEST_ERROR)
		return result;
	errno = (int)-result;
	return -1;
}

PROCESS_EXPORT int mprotect(void *address, size_t size, int protection)
{
	long result = process_call(SYS_mprotect, address, size, protection);
	if (!result && protection & PROT_EXEC)
		process_maps_changed(address, size, protection, 0);
	return (int)answer(result);
}

PROCESS_EXPORT int pkey_mprotect(void *address, size_t size, int protection, int key)
{
	if (key == -1)
		return mprotect(address, size, protection);
	long result = process_call(SYS_pkey_mprotect, address, size, protection, key);
	if (!result && protection & PROT_EXEC)
		process_maps_changed(address, size, protection, 0);
	return (int)answer(result);
}

PROCESS_EXPORT void *mremap(void *address, size_t old_size, size_t size, int flags, ...)
{
	va_list list;
	va_start(list, flags);
	void *wanted = NULL;
	if (flags & MREMAP_FIXED || flags & MREMAP_DONTUNMAP)
		wanted = va_arg(list, void *);
	va_end(list);
	long result = process_call(SYS_mremap, address, old_size, size, flags, wanted);
	if (result >= 0 || result < -LARGEST_ERROR)
		process_maps_moved(address, (const void *)result, size);
	return (void *)answer(result);
}
