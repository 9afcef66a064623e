/* libtally: events that are counted together, so that their ratios mean something.
 *
 *     const char *events = "instructions,cycles";
 *     struct tally_group *group = tally_group_open(events, error, sizeof(error));
 *     struct tally_count counts[2];
 *     tally_group_read(group, counts, 2);
 *
 * The kernel puts either all events of a group on the CPU's counters or none: so all counts are of
 * the same time.  A group counts the calling thread only; use a tally_counter to count the threads
 * and processes that it starts later as well.  Only one thread at a time may use a group. */
#ifndef TALLY_GROUP_H
#define TALLY_GROUP_H

#include "tally/counter.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tally_group; /* opaque */

/* Opens events, separated by commas, as one group that counts from now on.  The first is the
 * leader.  The expressions are those of tally_counter_open().  Returns NULL, with a sentence in
 * `error` (may be NULL) and errno set, if that fails.  The caller owns the group. */
struct tally_group *tally_group_open(const char *events, char *error, size_t error_size);

/* Return the number of events, and the name of one as `tally stat` prints it; NULL if `index` is
 * not below the number.  The text lives as long as the group. */
size_t tally_group_size(const struct tally_group *group);
const char *tally_group_name(const struct tally_group *group, size_t index);

/* Reads all events at once, and stores the first `size` counts in the order of the expression.
 * Returns the number of events, or -1 with errno set.  Up to 8 hardware events are read without a
 * system call, where that is possible (tally_group_read_way()). */
long tally_group_read(struct tally_group *group, struct tally_count *counts, size_t size);

/* Reads the counts alone: `value` of tally_group_read(), by the fastest way.  Returns the number of
 * events, or -1 with errno set. */
long tally_group_values(struct tally_group *group, uint64_t *values, size_t size);

/* Returns how the calling thread reads this group now, as tally_counter_read_way() does; `ns` is the
 * time of one tally_group_values(). */
const char *tally_group_read_way(struct tally_group *group, double *ns);

/* Set all counts to zero, switch all events on or off.  Return 0, or -1 with errno set. */
int tally_group_reset(struct tally_group *group);
int tally_group_enable(struct tally_group *group);
int tally_group_disable(struct tally_group *group);

/* Closes the group.  NULL is allowed. */
void tally_group_close(struct tally_group *group);

#ifdef __cplusplus
}
#endif

#endif
