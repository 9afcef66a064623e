/* Providers whose events are opened by processes of the command: the simulated PMU, and the
 * preloaded object.
 *
 * No call here reaches a process.  Events opened before the command starts are in the plan
 * (plan/plan.h), and each process opens them in engines of its own when it begins.  From then on
 * only their being enabled changes in the plan, and processes follow that.  So once the command
 * runs, requests that can't be met later are refused, though the kernel would meet them at once: new
 * events, other periods.  Processes add their counts to the plan's totals.
 *
 *   planned.c        the provider's operations on events
 *   planned_file.c   the plan's file
 *   planned_rings.c  rings, gathering and waiting
 */
#ifndef TALLY_PROVIDER_PLANNED_H
#define TALLY_PROVIDER_PLANNED_H

#include "base/output_path.h"
#include "plan/plan.h"
#include "provider/provider.h"

#include <stdbool.h>

/* An open event.  Its handle is its index, and its index in the plan. */
struct planned_event {
	bool is_open;
	struct tally_attr attr; /* as in the plan */
	uint64_t read_format;
	/* handle of its group's leader; its own for a leader or an event without group */
	int leader;
	/* handle of the event whose ring it writes to; its own without SET_OUTPUT */
	int output;
	/* before the command starts; afterwards the plan's are valid */
	bool is_enabled, waits_for_exec;
	uint64_t value_before;        /* total at the last RESET */
	struct tally_user_page *page; /* the user page of its ring, if it is mapped */
	size_t data_pages;
};

/* The plan's file, and its mappings. */
struct planned_file {
	struct tally_output_path path; /* without a name for memory that has none */
	int fd;                        /* -1: there is no plan */
	struct tally_plan *shared;     /* NULL: there is no plan */
	uint8_t *rings;                /* NULL: no event records */
	/* our own tails; the ones in the rings' pages are for their writers */
	uint64_t tails[TALLY_PLAN_RINGS];
	uint32_t news;      /* value of the plan's `news` that we have handled */
	int slice_ms;       /* how long the next look for news may be away */
	int64_t reap_at_ms; /* monotonic: when to look for killed writers again */
	bool has_leftovers; /* records stayed behind, since our rings were full */
};

struct planned;

/* One sort of such providers. */
struct planned_host {
	const char *prefix; /* how its files' names begin: "tally-vsim-" */
	size_t plan_bytes;  /* size of its plan, whose first member is a struct tally_plan */
	/* data pages of each writer's ring, powers of two: the least, and the most for large rings of
	 * tally's */
	uint32_t ring_pages, max_ring_pages;
	/* bytes that a folder in memory must have free; a full one would end writers by SIGBUS */
	uint64_t room_bytes;
	bool may_be_unnamed;    /* its processes can open the plan without a name */
	uint64_t sample_fields; /* bits of sample_type that its engines can write */
	/* Returns the attribute that processes open. */
	struct tally_attr (*attr)(const struct tally_attr *asked);
	/* Returns 0, or open()'s -errno for an event that the host can't have.  `group` is a valid
	 * handle, or -1. */
	int (*check)(const struct planned *planned, const struct tally_attr *attr, int group);
};

struct planned {
	struct tally_provider provider; /* first member */
	const struct planned_host *host;
	struct planned_event events[TALLY_PLAN_EVENTS];
	struct planned_file file;
	uint64_t damaged;        /* number of rings with invalid contents */
	uint8_t record[1 << 16]; /* the record being moved */
};

/* Returns the id in samples and in each process, whose engine numbers events in the order of
 * opening. */
static inline uint64_t planned_id(int handle)
{
	return (uint64_t)handle + 1;
}

static inline struct planned *planned_of(struct tally_provider *provider)
{
	return (struct planned *)provider;
}

/* Sets up a provider in zeroed memory.  `ops` and `host` are static. */
void planned_init(struct planned *planned, const struct tally_provider_ops *ops,
		  const struct planned_host *host);
/* Closes all events and removes the plan. */
void planned_release(struct planned *planned);

/* Returns the event, or NULL if there is no such handle. */
struct planned_event *planned_event_of(struct planned *planned, int handle);

/* Operations of struct tally_provider_ops. */
int planned_open(struct tally_provider *provider, const struct tally_attr *attr, pid_t pid, int cpu,
		 int group, unsigned long flags);
ssize_t planned_read(struct tally_provider *provider, int handle, void *bytes, size_t size);
int planned_ioctl(struct tally_provider *provider, int handle, enum tally_ioctl request,
		  void *argument, int whole_group);
void planned_close(struct tally_provider *provider, int handle);

/* --- planned_file.c -------------------------------------------------------- */

/* Makes a new file with an empty plan, of the host's size, in `folder`; NULL: in memory, or where
 * temporary files go.  Returns 0 or -errno. */
int planned_file_make(struct planned *planned, const char *folder, struct tally_error *err);
/* Writes the open events into the plan.  Only before the command starts. */
void planned_publish(struct planned *planned);
/* Returns the plan's event of a handle; NULL if there is no plan. */
struct tally_plan_event *planned_in_file(const struct planned *planned, int handle);
/* True once a process has begun.  From then on events keep their places. */
bool planned_has_begun(const struct planned *planned);
/* Makes writers' rings, or larger ones, for a mapped ring of `data_pages` pages.  Only before the
 * command starts.  Returns 0 or -errno. */
int planned_add_rings(struct planned *planned, size_t data_pages);
/* Returns a freed ring's memory to the system.  Its pages read as zero afterwards. */
void planned_drop_ring(struct planned *planned, unsigned ring);
/* Stops reading the rings, and tells writers that wait for room. */
void planned_stop(struct planned *planned);
/* The same, and removes the file, with its counts. */
void planned_discard(struct planned *planned);

/* --- planned_rings.c: operations of struct tally_provider_ops --------------- */

struct tally_user_page *planned_map(struct tally_provider *provider, int handle, size_t data_pages,
				    int overwrite);
void planned_unmap(struct tally_provider *provider, struct tally_user_page *page,
		   size_t data_pages);
int planned_wait(struct tally_provider *provider, struct tally_wait_item *items, size_t count,
		 int extra_fd, int timeout_ms);
ssize_t planned_gather(struct tally_provider *provider);

#endif
