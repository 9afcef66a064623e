/* Maps the user pages of counters, and says why a counter can't be read from them. */
#include "library/page_reader.h"

#include "library/user_counters.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* --- the process ----------------------------------------------------------- */

static const unsigned no_process;
const unsigned *tally_page_reader_process = &no_process;
static unsigned *process_page;

/* The number is in a page that the kernel empties in each child (MADV_WIPEONFORK, Linux 4.14).
 * pthread_atfork() would not do: _Fork() and clone(2) don't call its handlers. */
static void make_process_page(void)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return;
	if (madvise(page, size, MADV_WIPEONFORK) < 0) {
		munmap(page, size);
		return;
	}
	process_page = page;
	tally_page_reader_process = process_page;
}

unsigned tally_page_reader_number_process(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	static unsigned last; /* a child goes on from its parent's */
	unsigned found = 0;
	pthread_once(&once, make_process_page);
	if (!process_page)
		return 0;
	if (tally_page_reader_this_process())
		return tally_page_reader_this_process();
	unsigned next = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
	if (__atomic_compare_exchange_n(process_page, &found, next, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED))
		return next;
	return found; /* another thread was first */
}

/* --- the machine ----------------------------------------------------------- */

enum { KINDS_MAX = 16 };

static struct {
	pthread_once_t once;
	struct tally_cpu_list kinds[KINDS_MAX];
	size_t count;
} cores = { .once = PTHREAD_ONCE_INIT };

static void read_cores(void)
{
	struct tally_arena arena = { 0 };
	struct tally_error ignored = TALLY_ERROR_NONE;
	const char **lists = NULL;
	size_t count = 0;
	tally_sysfs_core_cpus(NULL, &arena, &lists, &count);
	for (size_t i = 0; i < count && cores.count < KINDS_MAX; i++)
		if (!tally_cpu_list_parse(lists[i], &cores.kinds[cores.count], &ignored))
			cores.count++;
	tally_arena_release(&arena);
}

bool tally_page_reader_same_kind(const struct tally_cpu_list *kinds, size_t count,
				 const cpu_set_t *may)
{
	if (count < 2)
		return true;
	for (size_t i = 0; i < count; i++) {
		int found = 0;
		for (size_t k = 0; k < kinds[i].count; k++)
			found += CPU_ISSET(kinds[i].cpus[k], may) != 0;
		if (found == CPU_COUNT(may))
			return true;
	}
	return false;
}

/* Between the load of a counter's number and the instruction that reads it, the thread may move to
 * another CPU.  The next look at the lock tells, but if that CPU has no such counter, the instruction
 * has already trapped. */
static bool may_meet_another_kind(void)
{
	cpu_set_t may;
	pthread_once(&cores.once, read_cores);
	if (cores.count < 2)
		return false;
	/* fails with more CPUs than a cpu_set_t has */
	if (sched_getaffinity(0, sizeof(may), &may) < 0)
		return true;
	return !tally_page_reader_same_kind(cores.kinds, cores.count, &may);
}

/* --- asking ---------------------------------------------------------------- */

static const struct tally_pmu *find_pmu(const struct tally_catalogue *catalogue, uint32_t type)
{
	for (size_t i = 0; i < catalogue->pmu_count; i++)
		if (catalogue->pmus[i].type == type)
			return &catalogue->pmus[i];
	return NULL;
}

/* Returns the bits of config1 that a term of the PMU's format has; 0: none. */
static uint64_t config1_of(const struct tally_pmu *pmu, const char *term)
{
	for (size_t i = 0; i < pmu->term_count; i++)
		if (pmu->terms[i].field == 1 && !strcmp(pmu->terms[i].name, term))
			return pmu->terms[i].mask;
	return 0;
}

bool tally_page_reader_set_bits(struct tally_attr *attr, const struct tally_catalogue *catalogue,
				unsigned strength)
{
	/* of the types that every PMU of cores has: arch/arm64's armv8pmu_format_attrs */
	uint64_t is_for_user = 1 << 1, is_64_bit = 1 << 0;
	if (attr->type != TALLY_TYPE_HARDWARE && attr->type != TALLY_TYPE_HW_CACHE &&
	    attr->type != TALLY_TYPE_RAW) {
		const struct tally_pmu *pmu = find_pmu(catalogue, attr->type);
		if (!pmu)
			return false;
		is_for_user = config1_of(pmu, "rdpmc");
		is_64_bit = config1_of(pmu, "long");
	}
	/* nothing to ask for, or the expression has asked ("rdpmc=1") */
	if (!is_for_user || (attr->config1 & is_for_user))
		return false;
	attr->config1 |= is_for_user;
	if (strength > 1)
		attr->config1 |= is_64_bit;
	return true;
}

#if defined(__aarch64__) || defined(__riscv)
#define ACCESS_SYSCTL "kernel/perf_user_access"
#endif

bool tally_page_reader_ask(struct tally_attr *attr, const struct tally_catalogue *catalogue,
			   unsigned strength)
{
#ifdef __aarch64__
	/* without the sysctl, asking would only cost the kernel's chained counters */
	return tally_sysctl_read(ACCESS_SYSCTL) == 1 && !may_meet_another_kind() &&
	       tally_page_reader_set_bits(attr, catalogue, strength);
#else
	(void)attr;
	(void)catalogue;
	(void)strength;
	return false;
#endif
}

/* --- mapping --------------------------------------------------------------- */

static bool has_no_counter(const struct tally_event *events, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (events[i].kind == TALLY_EVENT_SOFTWARE ||
		    events[i].kind == TALLY_EVENT_BREAKPOINT ||
		    events[i].kind == TALLY_EVENT_TRACEPOINT)
			return true;
	return false;
}

void tally_page_reader_open(struct tally_page_reader *reader, struct tally_provider *provider,
			    const struct tally_event *events, const int *handles, size_t count)
{
	*reader = (struct tally_page_reader){ .provider = provider };
	if (!TALLY_USER_COUNTERS)
		reader->reason = "user code can't read counters on this architecture";
	else if (!provider->ops->map)
		reader->reason = "the provider has no user pages";
	else if (count > TALLY_PAGES_MAX)
		reader->reason = "the group has more than 8 events";
	else if (has_no_counter(events, count))
		reader->reason = "the kernel counts this event itself, not a hardware counter";
	else if (may_meet_another_kind())
		reader->reason = "the thread may move between cores of different kinds; pin it to "
				 "one kind before it opens the counter";
	if (reader->reason)
		return;
	reader->process = tally_page_reader_number_process();
	reader->thread = pthread_self();
	if (!reader->process) {
		reader->reason = "the kernel can't mark memory for forks (Linux 4.14 can)";
		return;
	}
	for (; reader->count < count; reader->count++) {
		struct tally_user_page *page = provider->ops->map(provider, handles[reader->count],
								  0, true);
		if (!page) {
			tally_page_reader_close(reader);
			reader->reason = "the user page can't be mapped: raise the limit of locked "
					 "memory (ulimit -l)";
			return;
		}
		reader->pages[reader->count] = page;
	}
}

void tally_page_reader_close(struct tally_page_reader *reader)
{
	/* A forked child does not have the pages: something else may be at their addresses. */
	for (unsigned i = 0;
	     i < reader->count && reader->process == tally_page_reader_this_process(); i++)
		reader->provider->ops->unmap(reader->provider, reader->pages[i], 0);
	reader->count = 0;
}

/* --- the reason ------------------------------------------------------------ */

/* Returns why user code can't read the page's counter. */
static const char *why_hidden(void)
{
#ifdef ACCESS_SYSCTL
	if (tally_sysctl_read(ACCESS_SYSCTL) == 0)
		return "kernel.perf_user_access is 0; set it to 1 and open the counter again";
#elif defined(__x86_64__)
	char text = 0;
	int fd = open(TALLY_SYSFS_PMUS "/cpu/rdpmc", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, &text, 1);
	if (fd >= 0)
		close(fd);
	if (got == 1 && text == '0')
		return TALLY_SYSFS_PMUS "/cpu/rdpmc is 0; write 1 to it and open the counter again";
#endif
	return "the event is not on a hardware counter now: it is disabled, or waits for one";
}

const char *tally_page_reader_why_not(const struct tally_page_reader *reader, bool with_times)
{
	uint64_t values[TALLY_PAGES_MAX];
	struct tally_page_times times;
	if (!reader->count)
		return reader->reason;
	if (reader->process != tally_page_reader_this_process())
		return "the counter belongs to the process that this one was forked from";
	if (!tally_page_reader_usable(reader))
		return "the counter belongs to another thread";
	if (tally_pages_read(reader->pages, reader->count, &tally_this_cpu, values, &times))
		return NULL;
	if (!with_times &&
	    tally_pages_read(reader->pages, reader->count, &tally_this_cpu, values, NULL))
		return NULL;
	for (unsigned i = 0; i < reader->count; i++) {
		const struct tally_user_page *page = reader->pages[i];
		if (!page->index || !(page->capabilities & TALLY_CAP_USER_RDPMC))
			return why_hidden();
		if (!TALLY_USER_IS_COUNTER(page->index - 1))
			return "the event has a part of a register, not a counter (topdown events)";
	}
	if (!(reader->pages[0]->capabilities & TALLY_CAP_USER_TIME))
		return "the kernel does not tell user code how to compute times (its clock is not "
		       "the CPU's)";
	return "the thread was interrupted at each try";
}
