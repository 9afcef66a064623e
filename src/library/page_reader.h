/* Decides, for the counters of libtally, between the user page and read(2). */
#ifndef TALLY_LIBRARY_PAGE_READER_H
#define TALLY_LIBRARY_PAGE_READER_H

#include "library/user_page.h"
#include "provider/provider.h"
#include "tally/counter.h"

#include <pthread.h>

/* The mapped pages of a counter or of a group.  Zeroed: none, with a reason. */
struct tally_page_reader {
	struct tally_provider *provider;
	struct tally_user_page *pages[TALLY_PAGES_MAX];
	unsigned count;     /* 0: read(2) */
	pthread_t thread;   /* the owner of the events */
	unsigned forks;     /* tally_page_reader_forks when they were mapped */
	const char *reason; /* why there are no pages; static */
};

/* How often this process was forked from one that used libtally: the kernel does not copy user
 * pages to the child. */
extern unsigned tally_page_reader_forks;

/* Lets user code read the event, where an attribute must ask for it (arm64: config1, bit 1; bit 0
 * for 64 bits).  Called before the event is opened; `strength` is 2 for all bits, 1 for the first.
 * Returns false if there is nothing to ask for. */
bool tally_page_reader_ask(struct tally_attr *attr, unsigned strength);

/* Maps the pages of open events of the calling thread, which have no inherited children.  If that
 * fails, read(2) is used, and `reason` says why. */
void tally_page_reader_open(struct tally_page_reader *reader, struct tally_provider *provider,
			    const int *handles, size_t count);
void tally_page_reader_close(struct tally_page_reader *reader);

/* Returns the reason why the calling thread must use read(2) now; NULL: the pages can be read.
 * Static. */
const char *tally_page_reader_why_not(const struct tally_page_reader *reader);

/* True if the pages may be read by the calling thread. */
static inline bool tally_page_reader_usable(const struct tally_page_reader *reader)
{
	return reader->count && pthread_equal(reader->thread, pthread_self()) &&
	       reader->forks == tally_page_reader_forks;
}

#endif
