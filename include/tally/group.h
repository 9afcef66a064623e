/* libtally: events that are counted together, so that their ratios mean something.
 *
 *     const char *events = "instructions,cycles";
 *     struct tally_group *group = tally_group_open(events, error, sizeof(error));
 *     struct tally_count counts[2];
 *     tally_group_read(group, counts, 2);
 *
 * The kernel puts a group on the CPU's counters whole or not at all: all its counts are of the same
 * time.  It counts the calling thread alone (what threads and processes started later do is a
 * tally_counter's to count).  A group is used by one thread at a time.
 */
#ifndef TALLY_GROUP_H
#define TALLY_GROUP_H

#include "tally/counter.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tally_group; /* opaque */

/* Opens events, separated by commas, as one group, counting from now on; the first is the leader.
 * Expressions as tally_counter_open() takes them.  NULL with a sentence in `error` (may be NULL)
 * and errno set.  Owned by the caller. */
struct tally_group *tally_group_open(const char *events, char *error, size_t error_size);

/* How many events there are, and the name of one as `tally stat` prints it (lives as long as the
 * group; NULL from the last on). */
size_t tally_group_size(const struct tally_group *group);
const char *tally_group_name(const struct tally_group *group, size_t index);

/* Reads all of them by one system call: the first `size` counts, in the order of the expression.
 * How many there are in all, or -1 with errno set. */
long tally_group_read(struct tally_group *group, struct tally_count *counts, size_t size);

/* All of the group at once: 0, or -1 with errno set. */
int tally_group_reset(struct tally_group *group);
int tally_group_enable(struct tally_group *group);
int tally_group_disable(struct tally_group *group);

/* NULL is fine. */
void tally_group_close(struct tally_group *group);

#ifdef __cplusplus
}
#endif

#endif
