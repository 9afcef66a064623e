/* Rings as the clauses read them: an event with its buffer, its records one by one.
 *
 * Records are decoded by src/abi from a copy, so that they may lie across the buffer's end and may
 * be overwritten while they are looked at.
 */
#ifndef TALLY_CONFORMANCE_RING_WALK_H
#define TALLY_CONFORMANCE_RING_WALK_H

#include "suite.h"

struct ring {
	struct surface *surface;
	struct tally_attr attr; /* of the events that write to it */
	int fd;
	struct tally_user_page *page;
	size_t map_size; /* bytes, with the user page */
	uint64_t at;     /* next byte to read; data_tail follows it unless `keeps_tail` */
	bool keeps_tail;
	uint64_t *bytes; /* the last record that ring_next() gave */
};

/* An attr of `type` and `config`, disabled, user mode alone. */
struct tally_attr ring_attr(uint32_t type, uint64_t config, uint64_t period, uint64_t sample_type);
/* Page faults in user mode. */
struct tally_attr ring_faults_attr(uint64_t period, uint64_t sample_type);
/* Hits of the suite's tracepoint, by all modes; exclude_kernel would leave none. */
struct tally_attr ring_hits_attr(struct surface *surface, uint64_t period, uint64_t sample_type);
/* sched:sched_switch, a tracepoint that hits in kernel mode. */
struct tally_attr ring_switch_attr(struct surface *surface, uint64_t period, uint64_t sample_type);
/* A dummy event that writes the side-band records of `flags`, with a trailer of TID, TIME
 * (monotonic), ID, STREAM_ID, CPU and IDENTIFIER. */
struct tally_attr ring_sideband_attr(uint64_t flags);

/* Opens an event and maps 1 + `data_pages` pages.  Its descriptor, or -errno. */
int ring_open(struct ring *ring, struct surface *surface, const struct tally_attr *attr, pid_t pid,
	      int cpu, size_t data_pages);
/* Maps an event's ring for reading and writing.  0 or -errno. */
int ring_map(struct ring *ring, struct surface *surface, const struct tally_attr *attr, int fd,
	     size_t data_pages);
/* The same with mmap(2)'s protection. */
int ring_map_as(struct ring *ring, struct surface *surface, const struct tally_attr *attr, int fd,
		size_t data_pages, int protection);

uint64_t ring_head(const struct ring *ring); /* acquires what is before it */
const uint8_t *ring_data(const struct ring *ring);
size_t ring_data_size(const struct ring *ring);

/* The next record, valid until the next call: 1, 0 when there is none, -EBADMSG when it isn't
 * one. */
int ring_next(struct ring *ring, struct tally_record *record);
/* The same where records end at `end`: a backward ring's begin at its head and end at 0. */
int ring_next_up_to(struct ring *ring, uint64_t end, struct tally_record *record);
/* The next record of a type, those before it passed over. */
int ring_find(struct ring *ring, uint32_t type, struct tally_record *record);
/* Reads all that is there.  Records of `type` (0: of any), or -EBADMSG. */
long ring_count(struct ring *ring, uint32_t type);

/* Enabled for exactly so many faults in user mode; the calls are warmed before, so that they add
 * none. */
void ring_run_faults(struct surface *surface, int fd, unsigned count);
/* Enabled for exactly so many hits of the suite's tracepoint. */
void ring_run_hits(struct surface *surface, int fd, unsigned count);
/* Enabled while it switches out once; a preemption may add a hit. */
void ring_run_switch(struct surface *surface, int fd);
/* Where parent's and child's events are all alike the kernel swaps their contexts instead of
 * switching: the child then runs on the parent's events.  An event that isn't inherited prevents
 * it.  Its descriptor or -errno. */
int ring_keep_contexts_apart(struct surface *surface);
/* IOC_ID's answer, 0 on failure. */
uint64_t ring_event_id(struct surface *surface, int fd);
/* The count that read(2) gives first, ~0 on failure. */
uint64_t ring_event_count(struct surface *surface, int fd);

/* Older than 6.3: its attr ends before config3. */
bool ring_kernel_is_old(struct surface *surface);

/* A child that waits until it is told to go on; its events are opened in between. */
struct ring_child {
	volatile uint32_t go;   /* told by ring_child_go() */
	volatile uint32_t done; /* posted when the work is done, before it exits */
	volatile uint32_t leave;/* awaited after the work when `stays` */
	bool stays;
	pid_t task;
	void (*work)(struct surface *surface);
};
struct ring_child *ring_child_new(struct surface *surface, enum surface_task_kind kind,
				  void (*work)(struct surface *surface));
/* Lets it work; it exits by itself, or after ring_child_leave() when it stays. */
void ring_child_go(struct surface *surface, struct ring_child *child);
int ring_child_leave(struct surface *surface, struct ring_child *child);

/* A task's body: burns until the word that `argument` points to is posted. */
int ring_burns_until_told(struct surface *surface, void *argument);

/* A ring of RING_FAULTS samples by `attr`, their time monotonic.  0, or what the clause returns. */
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
