/* Access to rings for the clauses: an event with its buffer, and its records one by one.
 *
 * src/engine/abi decodes each record from a copy.  So a record may lie across the buffer's end, and may be
 * overwritten during the decoding. */
#ifndef TALLY_CONFORMANCE_RING_WALK_H
#define TALLY_CONFORMANCE_RING_WALK_H

#include "suite.h"

struct ring {
	struct surface *surface;
	struct tally_attr attr; /* attributes of the events that write to the ring */
	int fd;
	struct tally_user_page *page;
	size_t map_size; /* in bytes, including the user page */
	uint64_t at;     /* next byte to read; data_tail follows it unless `keeps_tail` */
	bool keeps_tail;
	uint64_t *bytes; /* copy of the last record from ring_next() */
};

/* Returns attributes of this `type` and `config`: disabled, user mode only. */
struct tally_attr ring_attr(uint32_t type, uint64_t config, uint64_t period, uint64_t sample_type);
/* Samples page faults in user mode. */
struct tally_attr ring_faults_attr(uint64_t period, uint64_t sample_type);
/* Samples hits of the suite's tracepoint in all modes; exclude_kernel would exclude every hit. */
struct tally_attr ring_hits_attr(struct surface *surface, uint64_t period, uint64_t sample_type);
/* Samples sched:sched_switch, a tracepoint that hits in kernel mode. */
struct tally_attr ring_switch_attr(struct surface *surface, uint64_t period, uint64_t sample_type);
/* Attributes of a dummy event that writes the side-band records of `flags`, with a trailer of TID,
 * TIME (monotonic), ID, STREAM_ID, CPU and IDENTIFIER. */
struct tally_attr ring_sideband_attr(uint64_t flags);

/* Opens an event and maps 1 + `data_pages` pages.  Returns its descriptor, or -errno. */
int ring_open(struct ring *ring, struct surface *surface, const struct tally_attr *attr, pid_t pid,
	      int cpu, size_t data_pages);
/* Maps an event's ring for reading and writing.  Returns 0 or -errno. */
int ring_map(struct ring *ring, struct surface *surface, const struct tally_attr *attr, int fd,
	     size_t data_pages);
/* Does the same with this protection (mmap(2)). */
int ring_map_as(struct ring *ring, struct surface *surface, const struct tally_attr *attr, int fd,
		size_t data_pages, int protection);

uint64_t ring_head(const struct ring *ring); /* acquires the records before it */
const uint8_t *ring_data(const struct ring *ring);
size_t ring_data_size(const struct ring *ring);

/* Reads the next record, which is valid until the next call.  Returns 1; 0 if there is none;
 * -EBADMSG if the bytes are no record. */
int ring_next(struct ring *ring, struct tally_record *record);
/* Does the same for records that end at `end`.  A backward ring's records begin at its head and end
 * at 0. */
int ring_next_up_to(struct ring *ring, uint64_t end, struct tally_record *record);
/* Reads the next record of this type and skips others. */
int ring_find(struct ring *ring, uint32_t type, struct tally_record *record);
/* Reads all records.  Returns how many have `type` (0: any type), or -EBADMSG. */
long ring_count(struct ring *ring, uint32_t type);

/* Enables the event for exactly `count` faults in user mode.  All calls are warmed up before, so
 * that they cause no faults. */
void ring_run_faults(struct surface *surface, int fd, unsigned count);
/* Enables the event for exactly `count` hits of the suite's tracepoint. */
void ring_run_hits(struct surface *surface, int fd, unsigned count);
/* Enables the event while the task switches out once; a preemption may add a hit. */
void ring_run_switch(struct surface *surface, int fd);
/* Opens an event that isn't inherited.  If all events of parent and child are alike, the kernel
 * swaps the two contexts instead of switching, and the child then runs on the parent's events; this
 * event prevents that.  Returns its descriptor or -errno. */
int ring_keep_contexts_apart(struct surface *surface);
/* Returns the event's id from IOC_ID, or 0 on failure. */
uint64_t ring_event_id(struct surface *surface, int fd);
/* Returns the first word of read(2), the count, or ~0 on failure. */
uint64_t ring_event_count(struct surface *surface, int fd);

/* True if the kernel is older than 6.3: its attr ends before config3. */
bool ring_kernel_is_old(struct surface *surface);

/* A child that waits for ring_child_go(); events are opened on it before. */
struct ring_child {
	volatile uint32_t go;   /* set by ring_child_go() */
	volatile uint32_t done; /* posted when the work is done, before it exits */
	volatile uint32_t leave;/* if `stays`, the child waits for it after the work */
	bool stays;
	pid_t task;
	void (*work)(struct surface *surface);
};
struct ring_child *ring_child_new(struct surface *surface, enum surface_task_kind kind,
				  void (*work)(struct surface *surface));
/* The first makes it work; it then exits, or waits for ring_child_leave() if `stays` is set. */
void ring_child_go(struct surface *surface, struct ring_child *child);
int ring_child_leave(struct surface *surface, struct ring_child *child);

/* A task's body: uses CPU time until the word at `argument` is posted. */
int ring_burns_until_told(struct surface *surface, void *argument);

/* Opens a ring with RING_FAULTS samples by `attr`, with monotonic times.  Returns 0, or what the
 * clause must return. */
int ring_sample_faults(struct surface *surface, struct ring *ring, struct tally_attr attr);
enum { RING_FAULTS = 5 };
#define FAULT_SAMPLES(ring, attr) \
	do { int sampled_ = ring_sample_faults(surface, ring, attr); \
	     if (sampled_) \
		     return sampled_; } while (0)

#define CHECK_RING(...) \
	do { \
		int opened_ = ring_open(__VA_ARGS__); \
		if (opened_ < 0) \
			return clause_failed(__FILE__, __LINE__, "opening a ring gives %d", \
					     opened_); \
	} while (0)
#define CHECK_FOUND(ring, type, record) CHECK_EQUAL(ring_find(ring, type, record), 1)

#endif
