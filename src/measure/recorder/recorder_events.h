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

/* recorder_attributes.c: completes the attributes and chooses the call graph. */
int tally_recorder_make_sources(struct tally_recorder_events *events,
				const struct tally_event_list *list, struct tally_error *err);
/* Returns the source whose samples stand for waits, or NULL. */
const struct tally_recorder_source *tally_recorder_off_cpu(
	const struct tally_recorder_events *events);
bool tally_recorder_samples_kernel(const struct tally_recorder_events *events);
/* Sets when the reader is woken, and limits copies so that several fit in a ring. */
void tally_recorder_set_wakeups(struct tally_recorder_events *events,
				const struct tally_recorder_ring_sizes *sizes);
/* Fills in `recorded`. */
void tally_recorder_describe_sources(struct tally_recorder_events *events);

/* recorder_events.c: opens the events and their rings, and fills in the ids. */
int tally_recorder_open(struct tally_recorder_events *events, struct tally_recorder_rings *rings,
			struct tally_error *err);
void tally_recorder_close(struct tally_recorder_events *events, struct tally_recorder_rings *rings);
/* Opens the events of a CPU that came online, with its ring, as on the other CPUs; closes them. */
int tally_recorder_open_cpu(struct tally_recorder_events *events,
			    struct tally_recorder_rings *rings, size_t ring,
			    struct tally_error *err);
void tally_recorder_close_cpu(struct tally_recorder_events *events,
			      struct tally_recorder_rings *rings, size_t ring);
/* Enables or disables the events that were opened disabled: all, from the handle `first` on, or
 * those with a name.  The last returns 1, 0 if no event has the name, or an error. */
int tally_recorder_enable(struct tally_recorder_events *events, bool enable,
			  struct tally_error *err);
int tally_recorder_enable_from(const struct tally_recorder_events *events, size_t first,
			       bool enable, struct tally_error *err);
int tally_recorder_enable_named(const struct tally_recorder_events *events, const char *name,
				bool enable, struct tally_error *err);
/* Returns how many samples the events lost, as they count themselves. */
uint64_t tally_recorder_lost(const struct tally_recorder_events *events);

/* recorder_copies.c: returns the ring size in which the largest copies fit for long enough at the
 * requested rates, up to 32 MiB; 0 for unknown rates. */
size_t tally_recorder_copies_ring_bytes(const struct tally_recorder_events *events);
/* Chooses the sizes of copies for rings of this size, and starts with the smallest. */
void tally_recorder_copies_init(struct tally_recorder_events *events, size_t ring_bytes);
/* True if the source's copies have several sizes. */
bool tally_recorder_has_copies(const struct tally_recorder_events *events,
			       const struct tally_recorder_source *source);
/* Notes the fate of a stack.  `needed`: bytes of copy that would contain all of it; UINT64_MAX:
 * more than the copy has. */
enum tally_recorder_stack_fate {
	TALLY_RECORDER_STACK_WHOLE,
	TALLY_RECORDER_STACK_CUT,
	TALLY_RECORDER_STACK_NEW
};
void tally_recorder_copies_note(struct tally_recorder_copies *copies,
				const struct tally_sample *sample,
				enum tally_recorder_stack_fate fate, uint64_t needed);
/* After a pass: switches to larger or smaller copies if that is better. */
int tally_recorder_copies_adapt(struct tally_recorder_events *events, struct tally_error *err);

/* Returns the source that wrote a record, by its id. */
static inline struct tally_recorder_source *tally_recorder_source_of(
	const struct tally_recorder_events *events, const void *bytes, size_t size)
{
	uint64_t id;
	if (!tally_record_id(&events->sources[0].attr, bytes, size, &id))
		return NULL;
	const uint64_t *slot = tally_map_get(&events->source_of_id, id);
	if (!slot)
		return NULL;
	return &events->sources[*slot];
}

static inline struct tally_recorder_source *tally_recorder_side_band(
	const struct tally_recorder_events *events)
{
	return &events->sources[events->source_count - 1];
}

#endif
