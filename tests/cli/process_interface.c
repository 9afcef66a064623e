/* A program that counts itself: TAP.  The kernel, or the preloaded object in its place, must answer
 * alike.  `process_interface kernel`: says SKIP if the kernel refuses. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, DATA = 8 * PAGE };

static int tests;

static void check(bool ok, const char *what)
{
	printf("%sok %d - %s\n", ok ? "" : "not ", ++tests, what);
	fflush(stdout);
}

static int open_event(struct perf_event_attr *attr, pid_t pid, int cpu, int group)
{
	attr->size = sizeof(*attr);
	return (int)syscall(SYS_perf_event_open, attr, pid, cpu, group, 0);
}

static struct perf_event_attr task_clock(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_TASK_CLOCK,
					.exclude_kernel = 1 };
	return attr;
}

static void spin(unsigned ms)
{
	struct timespec start, now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	do {
		for (volatile int i = 0; i < 100000; i++)
			;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while ((now.tv_sec - start.tv_sec) * 1000000000LL + now.tv_nsec - start.tv_nsec <
	       ms * 1000000LL);
}

/* --- records -------------------------------------------------------------- */

static struct perf_event_mmap_page *ring_of(int fd)
{
	void *map = mmap(NULL, PAGE + DATA, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return map == MAP_FAILED ? NULL : map;
}

/* Copies the next record, at most `size` bytes, and returns its type; 0: there is none. */
static uint32_t next_record(struct perf_event_mmap_page *page, char *record, size_t size)
{
	struct perf_event_header header;
	const char *data = (const char *)page + page->data_offset;
	if (page->data_tail == __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE))
		return 0;
	memset(record, 0, size);
	memcpy(&header, data + page->data_tail % page->data_size, sizeof(header));
	for (size_t i = 0; i < header.size && i < size - 1; i++)
		record[i] = data[(page->data_tail + i) % page->data_size];
	__atomic_store_n(&page->data_tail, page->data_tail + header.size, __ATOMIC_RELEASE);
	return header.type;
}

/* Returns whether the next record is a mapping of this address, with this name. */
static bool mapping_is(struct perf_event_mmap_page *page, const void *address, const char *name)
{
	enum { ADDRESS = 16, NAME = 40 };
	char record[512];
	uint64_t start;
	if (next_record(page, record, sizeof(record)) != PERF_RECORD_MMAP)
		return false;
	memcpy(&start, record + ADDRESS, sizeof(start));
	return start == (uint64_t)(uintptr_t)address && !strcmp(record + NAME, name);
}

/* --- cases ---------------------------------------------------------------- */

/* The kernel looks at the group before the permission to count a CPU. */
static void errors_of_groups(void)
{
	struct perf_event_attr attr = task_clock();
	int fd = open_event(&attr, -1, 0, -2);
	check(fd < 0 && errno == EBADF, "a whole CPU with a bad group: EBADF");
	attr.exclude_kernel = 0;
	fd = open_event(&attr, -1, 0, -2);
	check(fd < 0 && (errno == EBADF || geteuid()), "… also with kernel mode, for root");
}

static void names_of_mappings(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_DUMMY,
					.exclude_kernel = 1,
					.mmap_data = 1 };
	int fd = open_event(&attr, 0, -1, -1), zero = open("/dev/zero", O_RDWR | O_CLOEXEC);
	struct perf_event_mmap_page *page = ring_of(fd);
	void *shared, *file, *ring;
	if (!page) {
		check(false, "an event with mmap_data has a ring");
		return;
	}
	page->data_tail = page->data_head;
	shared = mmap(NULL, PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(mapping_is(page, shared, "/dev/zero (deleted)"), "record of shared memory");
	file = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, zero, 0);
	check(mapping_is(page, file, "/dev/zero (deleted)"), "record of /dev/zero, shared");
	file = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, zero, 0);
	check(mapping_is(page, file, "/dev/zero"), "record of /dev/zero, private");
	ring = ring_of(fd);
	check(ring && mapping_is(page, ring, "anon_inode:[perf_event]"), "record of the ring itself");
	close(zero);
	close(fd);
}

/* Its mappings are ld.so's own. */
static void loaded_library(void)
{
	enum { NAME = 40 };
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_DUMMY,
					.exclude_kernel = 1,
					.mmap = 1 };
	char record[512];
	uint64_t count;
	unsigned told = 0, others = 0;
	int fd = open_event(&attr, 0, -1, -1);
	struct perf_event_mmap_page *page = ring_of(fd);
	if (!page || !dlopen("libm.so.6", RTLD_NOW) || read(fd, &count, sizeof(count)) < 0) {
		check(false, "a library is loaded");
		return;
	}
	for (uint32_t type; (type = next_record(page, record, sizeof(record)));) {
		if (type == PERF_RECORD_MMAP && strstr(record + NAME, "libm"))
			told++;
		else
			others++;
	}
	check(told == 1 && !others, "record of a library that dlopen(3) loads");
	printf("# %u records, %u others\n", told, others);
	munmap(page, PAGE + DATA);
	close(fd);
}

/* --- over execve(2) -------------------------------------------------------- */

static void execute_spin(void)
{
	execl("/proc/self/exe", "process_interface", "spin", NULL);
	_exit(1);
}

/* The program that is executed has no handler: the signal ends it. */
static void signals_after_exec(void)
{
	int status;
	pid_t child = fork();
	if (!child) {
		struct perf_event_attr attr = task_clock();
		attr.sample_period = 1000000;
		attr.enable_on_exec = attr.disabled = 1;
		attr.wakeup_events = 1;
		int fd = open_event(&attr, 0, -1, -1);
		fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK | O_ASYNC);
		fcntl(fd, F_SETSIG, SIGUSR1);
		fcntl(fd, F_SETOWN, getpid());
		execute_spin();
	}
	waitpid(child, &status, 0);
	check(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1,
	      "an event that signals goes on in the program that its process executes");
}

/* As perf record does it: the child waits, and executes the program when its event is open. */
static void ring_of_child(void)
{
	enum { PERIOD = 1000000, NAME = 40 };
	struct perf_event_attr attr = task_clock(), names = task_clock();
	char record[512], byte = 0;
	unsigned samples = 0, renamed = 0, mapped = 0, data = 0, ended = 0;
	int go[2], status;
	uint64_t count = 0, head;
	if (pipe(go))
		return;
	pid_t child = fork();
	if (!child) {
		if (read(go[0], &byte, 1) == 1)
			execute_spin();
		_exit(1);
	}
	attr.sample_period = PERIOD;
	attr.sample_type = PERF_SAMPLE_IP;
	attr.enable_on_exec = attr.disabled = 1;
	attr.mmap = attr.mmap_data = attr.task = 1;
	names.enable_on_exec = names.disabled = names.comm = 1;
	int fd = open_event(&attr, child, -1, -1), name_fd = open_event(&names, child, -1, -1);
	struct perf_event_mmap_page *page = fd < 0 ? NULL : ring_of(fd);
	check(page, "a ring of a child that waits in read(2)");
	check(!ioctl(name_fd, PERF_EVENT_IOC_SET_OUTPUT, fd), "another event writes there, too");
	check(write(go[1], &byte, 1) == 1 && waitpid(child, &status, 0) == child && !status,
	      "the child executes a program and ends");
	if (!page)
		return;
	head = page->data_head;
	for (uint32_t type; (type = next_record(page, record, sizeof(record)));) {
		samples += type == PERF_RECORD_SAMPLE;
		renamed += type == PERF_RECORD_COMM;
		if (type == PERF_RECORD_MMAP) {
			const struct perf_event_header *header = (const void *)record;
			bool is_data = header->misc & PERF_RECORD_MISC_MMAP_DATA;
			mapped += !is_data;
			data += is_data && (!strcmp(record + NAME, "[stack]") ||
					    strstr(record + NAME, "/process_interface"));
		}
		ended += type == PERF_RECORD_EXIT;
	}
	check(samples > 5, "samples of the program that the child executed");
	check(renamed == 1 && mapped > 1, "records of its name and of its mappings");
	check(data > 1, "records of its stack and its data");
	check(ended == 2, "record of its end, for each event");
	check(page->data_tail == head, "the ring is whole");
	check(read(fd, &count, sizeof(count)) == sizeof(count) && count > 5 * PERIOD, "its count");
	printf("# %u samples, %u mappings, %u of its data, count %llu\n", samples, mapped, data,
	       (unsigned long long)count);
	munmap(page, PAGE + DATA);
	close(name_fd);
	close(fd);
}

/* The dynamic linker works before any constructor does. */
static void faults_of_loading(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_PAGE_FAULTS,
					.exclude_kernel = 1,
					.enable_on_exec = 1,
					.disabled = 1 };
	uint64_t count = 0;
	char byte = 0;
	int go[2], status;
	if (pipe(go))
		return;
	pid_t child = fork();
	if (!child) {
		if (read(go[0], &byte, 1) == 1)
			execute_spin();
		_exit(1);
	}
	int fd = open_event(&attr, child, -1, -1);
	check(write(go[1], &byte, 1) == 1 && waitpid(child, &status, 0) == child &&
	      read(fd, &count, sizeof(count)) == sizeof(count) && count > 30,
	      "page faults of loading a program");
	printf("# %llu faults\n", (unsigned long long)count);
	close(fd);
}

/* Its parent reads a child's event all the time, also in the middle of execve(2). */
static void read_while_executing(void)
{
	enum { ROUNDS = 30 };
	unsigned ended_well = 0, reads = 0, failed = 0;
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct perf_event_attr attr = task_clock();
		uint64_t count = 0, last = 0;
		char byte = 0;
		int go[2], status = -1;
		if (pipe(go))
			return;
		pid_t child = fork();
		if (!child) {
			if (read(go[0], &byte, 1) == 1)
				execute_spin();
			_exit(1);
		}
		int fd = open_event(&attr, child, -1, -1);
		if (write(go[1], &byte, 1) != 1)
			return;
		while (!waitpid(child, &status, WNOHANG)) {
			failed += read(fd, &count, sizeof(count)) != sizeof(count) || count < last;
			last = count;
			reads++;
		}
		ended_well += !status;
		close(fd);
		close(go[0]);
		close(go[1]);
	}
	check(ended_well == ROUNDS, "programs end well whose events are read while they begin");
	check(reads > ROUNDS && !failed, "their counts never fall");
	printf("# %u of %d, %u reads, %u wrong\n", ended_well, ROUNDS, reads, failed);
}

/* A child inherits the event, and executes a program. */
static void heirs_after_exec(bool is_group)
{
	struct perf_event_attr attr = task_clock(), leader = task_clock();
	uint64_t before = 0, after = 0;
	int status;
	attr.inherit = leader.inherit = 1;
	int group = is_group ? open_event(&leader, 0, -1, -1) : -1;
	int fd = open_event(&attr, 0, -1, group);
	if (read(fd, &before, sizeof(before)) != sizeof(before))
		return;
	pid_t child = fork();
	if (!child)
		execute_spin();
	waitpid(child, &status, 0);
	check(read(fd, &after, sizeof(after)) == sizeof(after) && after - before > 15000000,
	      is_group ? "… also if the event is a member of a group" :
			 "an inherited event counts in the program that a child executes");
	close(fd);
	close(group);
}

/* --- samples -------------------------------------------------------------- */

static volatile unsigned deep_calls;

static __attribute__((noinline)) void call_deep(unsigned depth)
{
	if (depth)
		call_deep(depth - 1);
	else
		spin(30);
	deep_calls++; /* so that no call is a jump */
}

/* What a sample has behind its header: the chain, and the stack. */
struct seen {
	uint64_t calls; /* addresses within call_deep() */
	uint64_t copied;
};

static struct seen look_at(const char *record)
{
	struct seen seen = { 0, 0 };
	uint64_t count, size, address, start = (uint64_t)(uintptr_t)call_deep;
	const char *at = record + sizeof(struct perf_event_header);
	memcpy(&count, at, sizeof(count));
	at += sizeof(count);
	for (; count; count--, at += sizeof(address)) {
		memcpy(&address, at, sizeof(address));
		seen.calls += address - start < 256;
	}
	memcpy(&size, at, sizeof(size));
	at += sizeof(size);
	if (size)
		memcpy(&seen.copied, at + size, sizeof(seen.copied));
	return seen;
}

/* This file is compiled with frame pointers. */
static void chains_and_stacks(void)
{
	enum { DEPTH = 6, STACK = 2048 };
	static char record[16 * PAGE];
	struct perf_event_attr attr = task_clock();
	struct seen best = { 0, 0 };
	unsigned samples = 0;
	attr.sample_period = 1000000;
	attr.sample_type = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_STACK_USER;
	attr.sample_stack_user = STACK;
	attr.exclude_callchain_kernel = 1;
	int fd = open_event(&attr, 0, -1, -1);
	struct perf_event_mmap_page *page = fd < 0 ? NULL : ring_of(fd);
	if (!page) {
		check(false, "a sampling event has a ring");
		return;
	}
	call_deep(DEPTH);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	for (uint32_t type; (type = next_record(page, record, sizeof(record)));) {
		if (type != PERF_RECORD_SAMPLE)
			continue;
		struct seen seen = look_at(record);
		samples++;
		if (seen.calls > best.calls)
			best.calls = seen.calls;
		if (seen.copied > best.copied)
			best.copied = seen.copied;
	}
	check(samples > 5 && best.calls > DEPTH, "chains have the callers");
	check(best.copied > 256 && best.copied <= STACK, "samples have copies of the stack");
	printf("# %u samples, %u calls, %u bytes\n", samples, (unsigned)best.calls,
	       (unsigned)best.copied);
	munmap(page, PAGE + DATA);
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "spin")) {
		spin(20);
		return 0;
	}
	struct perf_event_attr attr = task_clock();
	int fd = open_event(&attr, 0, -1, -1);
	if (fd < 0 && argc > 1 && !strcmp(argv[1], "kernel")) {
		printf("1..0 # SKIP the kernel refuses perf events: %s\n", strerror(errno));
		return 0;
	}
	close(fd);
	errors_of_groups();
	names_of_mappings();
	loaded_library();
	signals_after_exec();
	ring_of_child();
	faults_of_loading();
	read_while_executing();
	heirs_after_exec(false);
	heirs_after_exec(true);
	chains_and_stacks();
	printf("1..%d\n", tests);
	return 0;
}
