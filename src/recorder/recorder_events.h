/* The events of a recording: their attributes, the handles that are open, and which of them are on.
 */
#ifndef TALLY_RECORDER_EVENTS_H
#define TALLY_RECORDER_EVENTS_H

#include "base/map.h"
#include "recorder/recorder_rings.h"

/* One event of the recording; the last one is the side-band's dummy event. */
struct tally_recorder_source {
	struct tally_attr attr;    /* as opened */
	struct tally_attr written; /* as in the file, with stacks unwound */
	const struct tally_event *event; /* NULL: the side-band */
	const char *name;
	int cgroup_fd; /* -1: no cgroup */
	bool unwinds; /* its samples have stack copies that are unwound while draining */
	/* its samples have a register, or a part of the stack, that gives the leaf's caller while
	 * draining */
	bool completes;
	struct { uint64_t *items; size_t count, capacity; } ids;
};

struct tally_recorder_handle {
	int handle;
	uint32_t ring;   /* index of the ring that it writes to */
	uint32_t source;
	/* size of its copies if there are several sizes (only one is on); otherwise 0 */
	uint32_t copy_bytes;
};

/* The number of bytes of each stack that are copied: recorder_copies.c. */
enum { TALLY_RECORDER_COPY_SIZES = 4 };
struct tally_recorder_copies {
	uint32_t sizes[TALLY_RECORDER_COPY_SIZES]; /* ascending; each has open events */
	unsigned count, now; /* now: index of the size in use; count 0: the size is fixed */
	/* Stacks since the size came into use: the total; cut by it; cut, but only for lack of an
	 * earlier snapshot of the task; short enough for the next smaller size. */
	uint64_t stacks, cut, new, small;
	uint64_t lost_before; /* status.lost when the size came into use */
	unsigned highest;     /* largest index to use: larger copies lost samples */
	unsigned switches;
};

struct tally_recorder_events {
	struct tally_recorder_session *session;
	struct tally_recorder_source *sources;
	size_t source_count; /* including the side-band */
	struct tally_recorded_event *recorded; /* the sources, as the writer takes them */
	struct tally_map source_of_id;
	bool unwinds, completes; /* at least one source does */
	enum tally_call_graph call_graph;
	char call_graph_text[256];
	struct tally_recorder_copies copies;
	/* In the order of opening.  The side-band's are separate: they are on from the start. */
	struct {
		struct tally_recorder_handle *items;
		size_t count, capacity;
	} handles, side_handles;
	bool is_enabled;
	uint64_t lost_closed; /* samples lost by events that are closed now */
	/* threads of the target's child processes that this user must not record */
	size_t refused_descendants;
};

#endif
