/* Makes memory run out: a process's FAIL_AT-th request fails, and with FAIL_ONWARD all later ones.
 *
 * There are two ways to use it, since neither sees all requests.  Preloaded, it replaces malloc for
 * every library (libelf, zstd), but not AddressSanitizer's malloc, which is part of the program.
 * Linked into the program with `--wrap` (WRAPPED), it stands between tally's own objects and any
 * malloc.
 *
 * It does not affect child processes: it removes the settings from the environment before main().
 * At exit it writes the number of requests to the file FAIL_COUNT. */
#undef _FILE_OFFSET_BITS /* the symbol here must be mmap, not mmap64 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#ifdef WRAPPED
#define NAME(function) __wrap_##function
#define REAL(function) __real_##function
#else
#define NAME(function) function
#define REAL(function) __libc_##function
#endif

void *REAL(malloc)(size_t size);
void *REAL(calloc)(size_t count, size_t size);
void *REAL(realloc)(void *old, size_t size);
void *NAME(malloc)(size_t size);
void *NAME(calloc)(size_t count, size_t size);
void *NAME(realloc)(void *old, size_t size);
void *NAME(aligned_alloc)(size_t alignment, size_t size);
int NAME(posix_memalign)(void **out, size_t alignment, size_t size);
void *NAME(mmap64)(void *at, size_t size, int protection, int flags, int fd, off_t offset);

static struct {
	atomic_ulong asked;
	unsigned long at; /* 0: none fails, but they are counted */
	atomic_bool is_on;
	bool onward;
	pid_t pid;
	char count[256];
} failing;

__attribute__((constructor)) static void begin(void)
{
	const char *at = getenv("FAIL_AT"), *count = getenv("FAIL_COUNT");
	if (!at)
		return;
	failing.at = strtoul(at, NULL, 10);
	failing.onward = getenv("FAIL_ONWARD") != NULL;
	snprintf(failing.count, sizeof(failing.count), "%s", count ? count : "");
	failing.pid = getpid();
	unsetenv("FAIL_AT");
	unsetenv("FAIL_ONWARD");
	unsetenv("FAIL_COUNT");
	unsetenv("LD_PRELOAD");
	atomic_store(&failing.is_on, true);
}

__attribute__((destructor)) static void end(void)
{
	if (!atomic_exchange(&failing.is_on, false) || !failing.count[0] || getpid() != failing.pid)
		return;
	char text[32];
	int length = snprintf(text, sizeof(text), "%lu\n", atomic_load(&failing.asked));
	int fd = open(failing.count, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text, (size_t)length) != length)
		_exit(99);
	close(fd);
}

static bool refused(void)
{
	if (!atomic_load(&failing.is_on))
		return false;
	unsigned long number = atomic_fetch_add(&failing.asked, 1) + 1;
	if (!failing.at || (failing.onward ? number < failing.at : number != failing.at))
		return false;
	errno = ENOMEM;
	return true;
}

void *NAME(malloc)(size_t size)
{
	return refused() ? NULL : REAL(malloc)(size);
}

void *NAME(calloc)(size_t count, size_t size)
{
	return refused() ? NULL : REAL(calloc)(count, size);
}

void *NAME(realloc)(void *old, size_t size)
{
	return refused() ? NULL : REAL(realloc)(old, size);
}

#ifdef WRAPPED
void *REAL(aligned_alloc)(size_t alignment, size_t size);
int REAL(posix_memalign)(void **out, size_t alignment, size_t size);
void *REAL(mmap64)(void *at, size_t size, int protection, int flags, int fd, off_t offset);
char *REAL(strdup)(const char *text);
char *REAL(strndup)(const char *text, size_t size);
FILE *REAL(open_memstream)(char **text, size_t *size);
int REAL(pthread_create)(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
			 void *argument);
char *NAME(strdup)(const char *text);
char *NAME(strndup)(const char *text, size_t size);
FILE *NAME(open_memstream)(char **text, size_t *size);
int NAME(pthread_create)(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
			 void *argument);

void *NAME(aligned_alloc)(size_t alignment, size_t size)
{
	return refused() ? NULL : REAL(aligned_alloc)(alignment, size);
}

int NAME(posix_memalign)(void **out, size_t alignment, size_t size)
{
	return refused() ? ENOMEM : REAL(posix_memalign)(out, alignment, size);
}

void *NAME(mmap64)(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	return refused() ? MAP_FAILED : REAL(mmap64)(at, size, protection, flags, fd, offset);
}

/* Allocations that the C library makes for tally are not visible here, so these functions count
 * themselves. */
char *NAME(strdup)(const char *text)
{
	return refused() ? NULL : REAL(strdup)(text);
}

char *NAME(strndup)(const char *text, size_t size)
{
	return refused() ? NULL : REAL(strndup)(text, size);
}

FILE *NAME(open_memstream)(char **text, size_t *size)
{
	return refused() ? NULL : REAL(open_memstream)(text, size);
}

int NAME(pthread_create)(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
			 void *argument)
{
	return refused() ? EAGAIN : REAL(pthread_create)(thread, attributes, run, argument);
}
#else
void *__libc_memalign(size_t alignment, size_t size);

void *aligned_alloc(size_t alignment, size_t size)
{
	return refused() ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
	if (refused() || !(*out = __libc_memalign(alignment, size)))
		return ENOMEM;
	return 0;
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	return refused() ? MAP_FAILED
			 : (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset);
}

void *mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	return mmap(at, size, protection, flags, fd, offset);
}
#endif
