/* Facts about this machine that a user reads once, not at each command. */
#ifndef TALLY_COMMAND_NEWS_H
#define TALLY_COMMAND_NEWS_H

#include <stdbool.h>

enum tally_news {
	TALLY_NEWS_DEFAULT_EVENT = 1, /* which event record samples without -e, and why */
};

/* Returns true if this user has not read the fact on this machine, and notes that it has been read,
 * in the user's cache.  Without a cache, everything is news each time. */
bool tally_is_news(enum tally_news fact);

#endif
