/* Types and functions that the tracepoint*.c files share. */
#ifndef TALLY_ENGINE_TRACEPOINT_STATE_H
#define TALLY_ENGINE_TRACEPOINT_STATE_H

#include "engine/engine_state.h"
#include "filter/filter.h"
#include "tally/tracepoint.h"

#define TRACE_ID_MAX 65535u /* common_type has 16 bits */

/* Scratch for hits: a buffer for each CPU and level, with the record until it is delivered. */
struct trace_scratch {
	struct engine_retired retired;
	size_t each; /* bytes of one buffer */
	uint8_t *levels[TALLY_LEVELS]; /* of each level: `each` bytes for every CPU */
};

struct engine_tracepoints {
	struct tally_trace_event *first, *last; /* the registered tracepoints */
	uint32_t next_id;
	/* number of users of each scratch; the first makes it, the last frees it */
	unsigned record_users, line_users;
	struct trace_scratch *records, *lines; /* atomic */
};

/* A list of probes.  It is replaced, never changed, since hits may be walking it.  Each list keeps
 * in reserve the lists that later removals will need, so that removing a probe can't fail. */
struct tally_trace_probes {
	struct engine_retired retired;
	/* a list with room for one less; NULL: removing leaves none */
	struct tally_trace_probes *reserve;
	unsigned count;
	struct tally_trace_probe list[]; /* `count` probes, and an end mark */
};

/* The perf events of a tracepoint. */
struct tally_trace_lists {
	struct engine_retired retired;
	size_t size;
	struct engine_hits of_tasks; /* all that count a task; changed under the engine lock */
	struct engine_hits cpus[];   /* by CPU: events that are scheduled in */
};

struct trace_filter {
	struct engine_retired retired;
	size_t size;
	uint64_t program[]; /* engine_event.filter points here */
};

struct tally_trace_listener {
	struct engine_retired retired;
	struct tally_trace_event *event;
	tally_trace_write *write;
	void *data;
};

/* A line being written.  The text grows up from the start; pieces that arguments are made of grow
 * down from `size`. */
struct tally_trace_text {
	char *bytes;
	size_t length, size;
	const void *record;
	uint32_t record_size;
	const struct tally_trace_class *of;
};

static inline uint8_t *trace_scratch_of(const struct trace_scratch *scratch, unsigned cpu,
					int level)
{
	return scratch->levels[level] + cpu * scratch->each;
}

/* --- tracepoint_probe.c --------------------------------------------------- */

void trace_update_alone(struct tally_trace_event *event); /* sets perf_alone. [surface] */
int trace_operate(struct tally_trace_event *event, enum tally_trace_operation operation,
		  void *data);
void trace_probes_free(struct tally_trace_event *event); /* [once] */

/* --- tracepoint_listen.c -------------------------------------------------- */

/* Adds a user of that scratch; the first makes it.  Returns 0 or -ENOMEM. [surface] */
int trace_scratch_ref(struct tally_engine *engine, struct trace_scratch **scratch, unsigned *users,
		      size_t each);
void trace_scratch_unref(struct tally_engine *engine, struct trace_scratch **scratch,
			 unsigned *users);
/* [hit] */
void trace_listener_deliver(const struct tally_trace_listener *listener,
			    const struct tally_trace_hit *hit, const struct engine_cpu *cpu);

/* --- tracepoint_format.c -------------------------------------------------- */

/* True if the field is text: its type names char, and its elements have one byte. */
bool trace_field_is_text(const struct tally_trace_field *field);

/* --- tracepoint.c --------------------------------------------------------- */

void trace_event_classify(struct engine_event *event); /* sets counts_only. [surface] */

/* --- tracepoint_filter.c -------------------------------------------------- */

void trace_filter_free(struct engine_event *event);
bool trace_filter_match(const struct tally_filter *filter, const struct tally_trace_hit *hit,
			const struct engine_cpu *cpu);

#endif
