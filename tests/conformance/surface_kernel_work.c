/* Causes events on the running kernel. */
#include "surface_kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNSANITIZED __attribute__((no_sanitize("address")))
#endif
#endif
#ifndef UNSANITIZED
#define UNSANITIZED
#endif

void kernel_loop(struct surface *surface, uint64_t iterations)
{
	(void)surface;
	if (!iterations)
		return;
#if defined(__x86_64__)
	__asm__ volatile("1: decq %0\n\tjnz 1b" : "+r"(iterations) : : "cc");
#elif defined(__aarch64__)
	__asm__ volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r"(iterations) : : "cc");
#else
	for (volatile uint64_t left = iterations; left; left--)
		;
#endif
}

static uint64_t thread_time_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Counts only the loops between two clock readings: a reading is kernel time. */
void kernel_burn(struct surface *surface, uint64_t ns)
{
	uint64_t burnt = 0;
	while (burnt < ns) {
		uint64_t start = thread_time_ns();
		kernel_loop(surface, 20000);
		uint64_t looped = thread_time_ns() - start;
		start = thread_time_ns();
		uint64_t look = thread_time_ns() - start;
		burnt += looped > look ? looped - look : 0;
	}
}

UNSANITIZED void kernel_fault(struct surface *surface, unsigned count)
{
	size_t page_size = surface->page_size;
	while (count) {
		unsigned some = count < FAULT_PAGES ? count : FAULT_PAGES;
		for (unsigned i = 0; i < some; i++)
			*(volatile char *)(kernel_task.fault_region + i * page_size) = 1;
		madvise(kernel_task.fault_region, some * page_size, MADV_DONTNEED);
		count -= some;
	}
}

uint64_t kernel_fault_address(struct surface *surface, unsigned n)
{
	return (uintptr_t)kernel_task.fault_region + n % FAULT_PAGES * surface->page_size;
}

void kernel_sleep(struct surface *surface, uint64_t ns)
{
	struct timespec left = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };
	(void)surface;
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
		;
}

void kernel_map_code(struct surface *surface, bool executable)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	void *page = mmap(NULL, surface->page_size, PROT_READ | (executable ? PROT_EXEC : 0),
			  MAP_PRIVATE, fd, 0);
	close(fd);
	if (page != MAP_FAILED)
		munmap(page, surface->page_size);
}

void kernel_hit(struct surface *surface, unsigned count)
{
	(void)surface;
	for (unsigned i = 0; i < count; i++)
		syscall(SYS_getppid);
}

/* The targets of breakpoints.  They are static, since their addresses must be the same in parent,
 * child and thread. */
static volatile uint32_t watched_variable __attribute__((aligned(8)));

static __attribute__((noinline)) void watched_function(void)
{
	__asm__ volatile("" : : : "memory");
}

UNSANITIZED void kernel_touch(struct surface *surface, unsigned breakpoint_type, unsigned count)
{
	(void)surface;
	for (unsigned i = 0; i < count; i++) {
		if (breakpoint_type & TALLY_BREAKPOINT_R)
			(void)watched_variable;
		if (breakpoint_type & TALLY_BREAKPOINT_W)
			watched_variable = i;
		if (breakpoint_type & TALLY_BREAKPOINT_X)
			watched_function();
	}
}

uint64_t kernel_watched_address(struct surface *surface, unsigned breakpoint_type)
{
	(void)surface;
	return breakpoint_type & TALLY_BREAKPOINT_X ? (uintptr_t)&watched_function
						    : (uintptr_t)&watched_variable;
}

/* Makes `count` moves between CPUs by pinning the task back and forth.  It stays pinned where it
 * ends. */
static int migrate(unsigned count)
{
	cpu_set_t one;
	int first = sched_getcpu(), second = first ? 0 : 1;
	for (unsigned i = 0; i < count; i++) {
		CPU_ZERO(&one);
		CPU_SET(i % 2 ? first : second, &one);
		if (sched_setaffinity(0, sizeof(one), &one) < 0)
			return errno == EINVAL ? -EOPNOTSUPP : -errno;
	}
	return 0;
}

/* Accesses pages of a file that the page cache has dropped. */
static int major_faults(struct kernel_surface *kernel, unsigned count)
{
	char path[96];
	size_t size = count * kernel->surface.page_size;
	unsigned char present[256];
	int result = -EOPNOTSUPP;
	if (count > sizeof(present))
		return -E2BIG;
	snprintf(path, sizeof(path), "%s/evicted", kernel->arena->directory);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	for (size_t at = 0; at < size; at += kernel->surface.page_size)
		if (pwrite(fd, "x", 1, (off_t)at) != 1)
			result = -EIO;
	ftruncate(fd, (off_t)size);
	fsync(fd);
	volatile char *pages = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	madvise((void *)pages, size, MADV_RANDOM); /* no read-ahead of neighbours */
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	bool gone = mincore((void *)pages, size, present) == 0;
	for (unsigned i = 0; i < count; i++)
		gone = gone && !(present[i] & 1);
	for (unsigned i = 0; gone && i < count; i++)
		(void)pages[i * kernel->surface.page_size];
	munmap((void *)pages, size);
	close(fd);
	return gone ? 0 : result;
}

int kernel_make(struct surface *surface, enum tally_sw event, unsigned count)
{
	switch (event) {
	case TALLY_SW_CPU_CLOCK:
	case TALLY_SW_TASK_CLOCK:
		kernel_burn(surface, count);
		return 0;
	case TALLY_SW_PAGE_FAULTS:
	case TALLY_SW_PAGE_FAULTS_MIN:
		kernel_fault(surface, count);
		return 0;
	case TALLY_SW_CONTEXT_SWITCHES:
		for (unsigned i = 0; i < count; i++)
			kernel_sleep(surface, 1000000);
		return 0;
	case TALLY_SW_CPU_MIGRATIONS:
		return migrate(count);
	case TALLY_SW_PAGE_FAULTS_MAJ:
		return major_faults(kernel_of(surface), count);
	default:
		return -EOPNOTSUPP;
	}
}

static _Thread_local sigjmp_buf refused;

static void on_refusal(int signal)
{
	(void)signal;
	siglongjmp(refused, 1);
}

#if defined(__aarch64__)
/* PMEVCNTR<n>_EL0: the register's number is part of the instruction. */
#define READ_EVENT_COUNTER(n, high, low) \
	case n: __asm__ volatile("mrs %0, S3_3_C14_C" #high "_" #low : "=r"(value)); break;
#define READ_EIGHT(base, high) \
	READ_EVENT_COUNTER(base, high, 0) READ_EVENT_COUNTER(base + 1, high, 1) \
	READ_EVENT_COUNTER(base + 2, high, 2) READ_EVENT_COUNTER(base + 3, high, 3) \
	READ_EVENT_COUNTER(base + 4, high, 4) READ_EVENT_COUNTER(base + 5, high, 5) \
	READ_EVENT_COUNTER(base + 6, high, 6)
static uint64_t read_register(unsigned index)
{
	uint64_t value = 0;
	switch (index) {
	READ_EIGHT(0, 8)
	READ_EVENT_COUNTER(7, 8, 7)
	READ_EIGHT(8, 9)
	READ_EVENT_COUNTER(15, 9, 7)
	READ_EIGHT(16, 10)
	READ_EVENT_COUNTER(23, 10, 7)
	READ_EIGHT(24, 11)
	default: __asm__ volatile("mrs %0, pmccntr_el0" : "=r"(value));
	}
	return value;
}
#elif defined(__x86_64__)
static uint64_t read_register(unsigned index)
{
	uint32_t low, high;
	__asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(index));
	return (uint64_t)high << 32 | low;
}
#endif

int kernel_read_counter(struct surface *surface, unsigned index, uint64_t *value)
{
	(void)surface;
#if defined(__aarch64__) || defined(__x86_64__)
	struct sigaction action = { .sa_handler = on_refusal, .sa_flags = SA_NODEFER }, ill, segv;
	volatile int result = 0;
	sigaction(SIGILL, &action, &ill);
	sigaction(SIGSEGV, &action, &segv);
	if (sigsetjmp(refused, 1) == 0)
		*value = read_register(index);
	else
		result = -EPERM;
	sigaction(SIGILL, &ill, NULL);
	sigaction(SIGSEGV, &segv, NULL);
	return result;
#else
	(void)index, (void)value, (void)on_refusal;
	return -EOPNOTSUPP;
#endif
}
