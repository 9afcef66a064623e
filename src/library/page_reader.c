/* Maps the user pages of counters, and says why a counter can't be read from them. */
#include "library/page_reader.h"

#include "library/user_counters.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

unsigned tally_page_reader_forks;

static void forked(void)
{
	tally_page_reader_forks++;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forked);
}

/* Returns a sysctl's number; −1: there is none. */
static long read_sysctl(const char *path)
{
	char text[24] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ssize_t got = read(fd, text, sizeof(text) - 1);
	close(fd);
	return got > 0 ? strtol(text, NULL, 10) : -1;
}

#ifdef __aarch64__
#define ACCESS_SYSCTL "/proc/sys/kernel/perf_user_access"

bool tally_page_reader_ask(struct tally_attr *attr, unsigned strength)
{
	enum { IS_64_BIT = 1, IS_FOR_USER = 2 }; /* arch/arm64/kernel/perf_event.c, format */
	bool is_hardware = attr->type == TALLY_TYPE_HARDWARE || attr->type == TALLY_TYPE_HW_CACHE ||
			   attr->type == TALLY_TYPE_RAW;
	if (!is_hardware || attr->config1 || read_sysctl(ACCESS_SYSCTL) != 1)
		return false;
	attr->config1 = IS_FOR_USER;
	if (strength > 1)
		attr->config1 |= IS_64_BIT;
	return true;
}
#else
bool tally_page_reader_ask(struct tally_attr *attr, unsigned strength)
{
	(void)attr;
	(void)strength;
	return false;
}
#endif

void tally_page_reader_open(struct tally_page_reader *reader, struct tally_provider *provider,
			    const int *handles, size_t count)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	*reader = (struct tally_page_reader){ .provider = provider };
	if (!TALLY_USER_COUNTERS)
		reader->reason = "user code can't read counters on this architecture";
	else if (!provider->ops->map)
		reader->reason = "the provider has no user pages";
	else if (count > TALLY_PAGES_MAX)
		reader->reason = "the group has more than 8 events";
	if (reader->reason)
		return;
	pthread_once(&once, watch_forks);
	reader->thread = pthread_self();
	reader->forks = tally_page_reader_forks;
	for (; reader->count < count; reader->count++) {
		struct tally_user_page *page = provider->ops->map(provider, handles[reader->count],
								  0, true);
		if (!page) {
			tally_page_reader_close(reader);
			reader->reason = "the user page can't be mapped (limit of locked memory?)";
			return;
		}
		reader->pages[reader->count] = page;
	}
}

void tally_page_reader_close(struct tally_page_reader *reader)
{
	/* A forked child does not have the pages: something else may be at their addresses. */
	for (unsigned i = 0; i < reader->count && reader->forks == tally_page_reader_forks; i++)
		reader->provider->ops->unmap(reader->provider, reader->pages[i], 0);
	reader->count = 0;
}

/* Returns why user code can't read the page's counter. */
static const char *why_hidden(void)
{
#ifdef __aarch64__
	if (read_sysctl(ACCESS_SYSCTL) == 0)
		return "kernel.perf_user_access is 0";
#elif defined(__x86_64__)
	if (read_sysctl("/sys/bus/event_source/devices/cpu/rdpmc") == 0)
		return "/sys/bus/event_source/devices/cpu/rdpmc is 0";
#endif
	return "the event is not on a hardware counter, or was waiting for one";
}

const char *tally_page_reader_why_not(const struct tally_page_reader *reader)
{
	uint64_t values[TALLY_PAGES_MAX];
	struct tally_page_times times;
	if (!reader->count)
		return reader->reason;
	if (reader->forks != tally_page_reader_forks)
		return "the counter belongs to the process that this one was forked from";
	if (!tally_page_reader_usable(reader))
		return "the counter belongs to another thread";
	if (tally_pages_read(reader->pages, reader->count, &tally_this_cpu, values, &times))
		return NULL;
	for (unsigned i = 0; i < reader->count; i++)
		if (!reader->pages[i]->index)
			return why_hidden();
	if (!(reader->pages[0]->capabilities & TALLY_CAP_USER_RDPMC))
		return why_hidden();
	if (!(reader->pages[0]->capabilities & TALLY_CAP_USER_TIME))
		return "the kernel does not tell user code how to compute times (its clock is not "
		       "the CPU's)";
	return "the thread was interrupted at each try";
}
