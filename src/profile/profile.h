/* A recording, aggregated: distinct (event, thread, CPU, stack) with their samples and periods.
 *
 * Stacks are interned as a tree of places first (a stack is its leaf's node), then only the distinct places are
 * named; nothing is kept per sample.  One model feeds report, fold and flame graphs.  Not thread-safe.
 */
#ifndef TALLY_PROFILE_PROFILE_H
#define TALLY_PROFILE_PROFILE_H

#include "base/buffer.h"
#include "profile/recording.h"
#include "profile/stacks.h"

#define TALLY_NODE_NONE UINT32_MAX

/* A frame of the tree of stacks: what it is, and its caller. */
struct tally_node {
	uint32_t caller; /* TALLY_NODE_NONE for an outermost frame */
	uint32_t place;  /* index into places, until named */
	uint32_t function; /* of recording->names, once named */
};

struct tally_row {
	uint32_t event;  /* index into the recording's events */
	uint32_t thread; /* of tasks.threads */
	uint32_t comm;   /* string id in tasks.strings: what the thread was called then */
	uint32_t cpu;
	uint32_t leaf;   /* node, TALLY_NODE_NONE for samples without any address */
	uint64_t samples, period;
};

struct tally_profile {
	struct tally_recording *recording;
	struct { struct tally_place *items; size_t count, capacity; } places;
	struct { struct tally_node *items; size_t count, capacity; } nodes;
	struct { struct tally_row *items; size_t count, capacity; } rows;
	struct tally_map place_index, node_index, row_index;
	bool has_stacks;
	size_t filtered; /* samples left out for their leaf; recording->counts.filtered has those left out before */
};

/* Reads the whole recording, or what of it the filter (NULL: all) takes.  Takes it over: released with the profile.
 * `progress` (may be NULL) is called now and then with the share read, 0…1. */
int tally_profile_new(struct tally_recording *recording, const struct tally_profile_filter *filter,
		      void (*progress)(void *context, double share), void *context, struct tally_profile **out,
		      struct tally_error *err);
void tally_profile_free(struct tally_profile *profile);

/* Samples and period of one event. */
void tally_profile_totals(const struct tally_profile *profile, uint32_t event, uint64_t *samples, uint64_t *period);

/* The event that a name or a number ("0") means; -ENOENT with the list of names.  NULL: the first that has samples. */
int tally_profile_event(const struct tally_profile *profile, const char *name, uint32_t *event,
			struct tally_error *err);

/* The stacks of one event, for fold and flame graphs.  `by_thread`: threads apart, else merged by comm.
 * `by_period`: weights are periods, else samples. */
int tally_profile_stacks(const struct tally_profile *profile, uint32_t event, bool by_thread, bool by_period,
			 struct tally_stacks *out);

/* Everything a reader should know of how far to trust this, one line each ("12 records were lost …"), or "" — for
 * stderr. */
void tally_profile_warnings(const struct tally_recording *recording, struct tally_buffer *out);

#endif
