/* Random calls on a surface, each printed: declarations for the files of `differential`. */
#ifndef TALLY_CONFORMANCE_DIFFERENTIAL_H
#define TALLY_CONFORMANCE_DIFFERENTIAL_H

#include "puppet.h"
#include "ring_walk.h"

#include <stdio.h>

enum {
	SLOTS = 12,
	BURST_SLOTS = 3,
	RINGS = 512,
	/* children that come and go, beside the one that exists from the start */
	FOLLOWERS = 2,
	FOLLOWERS_EVER = 16,
	OPERATIONS_MAX = 4096
};

enum target { OF_SELF, OF_CHILD, OF_FOLLOWER, OF_CPU, OF_NOBODY };

struct slot {
	int fd; /* -1: free */
	struct tally_attr attr;
	enum target target;
	pid_t task;
	int cpu;
	unsigned symbolic;     /* its number in printed lines */
	uint64_t id;           /* the id that IOC_ID returns */
	bool determined;       /* its count is the same on every surface */
	bool stream_determined; /* so are its records */
	bool member, refreshed;
	unsigned leader;       /* the leader's `symbolic` */
	unsigned buffer;       /* index of `buffers` that it writes to; 0: none */
	struct ring ring;
	bool mapped;
};

/* The possible contents of a ring buffer, whichever event maps it. */
struct buffer {
	bool mixed;   /* records that depend on time */
	bool foreign; /* records of other events than the one that mapped it */
};

struct follower {
	struct puppet *puppet; /* NULL: none */
	enum surface_task_kind kind;
	unsigned symbolic;
	pid_t last; /* the last task in this place */
};

struct differential {
	struct surface *surface;
	FILE *out;
	uint64_t random;
	unsigned operation;
	unsigned opened, buffer_count, follower_count;
	struct slot slots[SLOTS + BURST_SLOTS]; /* the last ones are do_burst()'s */
	struct buffer buffers[RINGS];
	struct puppet *child;
	struct follower followers[FOLLOWERS];
	pid_t self;
	long hit_id;
	const char *field; /* a field of the tracepoint */
	bool process;      /* only calls that the surface "process" answers as the kernel does */
	/* all events of the round have the same sample format, so one attr decodes every ring */
	bool uniform;
	uint64_t sample_type, read_format;
};

uint64_t draw(struct differential *d);
unsigned below(struct differential *d, unsigned limit);
bool one_in(struct differential *d, unsigned n);
#define ONE_OF(d, array) ((array)[below(d, sizeof(array) / sizeof((array)[0]))])

/* differential_process.c.  Chooses an event that the surface "process" has. */
void choose_process_event(struct differential *d, struct tally_attr *attr);
/* Sets which results of the event are determined on the kernel and in a program. */
void determine_process_event(struct slot *slot);
/* True if the surface "process" may refuse what the kernel allows: output to the ring of another task or
 * of one that has ended. */
bool process_refuses_output(const struct differential *d, const struct slot *slot,
			    const struct slot *target);
/* True if no other event samples the same faults as this one. */
bool samples_alone(const struct differential *d, const struct slot *slot);
void do_process_work(struct differential *d, struct puppet *puppet);
void do_burst(struct differential *d);

/* differential_attr.c.  Chooses slot->attr, and sets which of its results are determined. */
void choose_attr(struct differential *d, struct slot *slot);
uint64_t choose_period(struct differential *d, const struct tally_attr *attr);
void print_attr(struct differential *d, const struct tally_attr *attr);
/* A filter in two spellings: as passed to the kernel, and printed without values that differ
 * between runs. */
struct filter_text { char given[256], shown[256]; };
void choose_filter(struct differential *d, struct filter_text *filter);

/* differential_ring.c */
void do_map(struct differential *d);
void do_unmap(struct differential *d);
void do_drain(struct differential *d);
void print_new_records(struct differential *d, struct slot *slot);
void forget_mapping(struct differential *d, struct slot *slot);

/* differential_calls.c */
void differential_begin(struct differential *d);
void differential_step(struct differential *d);
void differential_end(struct differential *d);
struct slot *any_slot(struct differential *d);   /* often a free one */
struct slot *open_slot(struct differential *d);  /* NULL: no slot is open */
struct slot *slot_of_id(struct differential *d, uint64_t id);
const char *task_name(struct differential *d, pid_t task);
void print_read(struct differential *d, const struct slot *slot, const uint64_t *words,
		ssize_t size);
const char *errno_name(long code); /* valid until the call after the next */

#endif
