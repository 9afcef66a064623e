/* Decides, for the counters of libtally, between the user page and read(2). */
#ifndef TALLY_LIBRARY_PAGE_READER_H
#define TALLY_LIBRARY_PAGE_READER_H

#include "event/event.h"
#include "library/user_page.h"
#include "machine/machine.h"
#include "provider/provider.h"

#include <pthread.h>
#include <sched.h>

/* The mapped pages of a counter or of a group.  Zeroed: none, with a reason. */
struct tally_page_reader {
	struct tally_provider *provider;
	struct tally_user_page *pages[TALLY_PAGES_MAX];
	unsigned count; /* 0: read(2) */
	/* The owner of the events.  A later thread may have the same value when the owner has ended:
	 * then the events are on no counter, and the page says so. */
	pthread_t thread;
	unsigned process;   /* tally_page_reader_this_process() when they were mapped */
	const char *reason; /* why there are no pages; static */
};

/* This process's number among its parents and children that use libtally.  It becomes 0 in a child
 * that fork(2) or clone(2) makes: the kernel does not copy user pages to it. */
extern const unsigned *tally_page_reader_process;

/* Numbers this process, unless that was done before.  Returns the number; 0: forks
 * can't be noticed here. */
unsigned tally_page_reader_number_process(void);

static inline unsigned tally_page_reader_this_process(void)
{
	return __atomic_load_n(tally_page_reader_process, __ATOMIC_RELAXED);
}

/* Lets user code read the event, where an attribute must ask for it (arm64).  Call before the event
 * is opened, with a catalogue that has its PMU; `strength` is 2 to ask for 64 bits as well, or 1.
 * Returns false if there is nothing to ask for. */
bool tally_page_reader_ask(struct tally_attr *attr, const struct tally_catalogue *catalogue,
			   unsigned strength);

/* Maps the pages of open events of the calling thread, which have no inherited children.  If that
 * fails, or is of no use, read(2) is used, and `reason` says why. */
void tally_page_reader_open(struct tally_page_reader *reader, struct tally_provider *provider,
			    const struct tally_event *events, const int *handles, size_t count);
void tally_page_reader_close(struct tally_page_reader *reader);

/* Returns the reason why the calling thread must use read(2) now; NULL: the pages can be read.
 * `with_times`: why it must for values and times, otherwise for values alone.  Static. */
const char *tally_page_reader_why_not(const struct tally_page_reader *reader, bool with_times);

/* True if the pages may be read by the calling thread. */
static inline bool tally_page_reader_usable(const struct tally_page_reader *reader)
{
	return reader->count && pthread_equal(reader->thread, pthread_self()) &&
	       reader->process == tally_page_reader_this_process();
}

/* --- parts, for the tests -------------------------------------------------- */

/* Sets the bits of arm64's PMUs that ask for user access: the terms `rdpmc` and `long` of the PMU's
 * format.  See tally_page_reader_ask(). */
bool tally_page_reader_set_bits(struct tally_attr *attr, const struct tally_catalogue *catalogue,
				unsigned strength);

/* True if all CPUs of `may` are of one kind.  `kinds` has the CPUs of each kind of core; with one or
 * none, all are. */
bool tally_page_reader_same_kind(const struct tally_cpu_list *kinds, size_t count,
				 const cpu_set_t *may);

#endif
