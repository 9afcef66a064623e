/* Shared by the simulated provider's files, and not for others. */
#ifndef TALLY_PROVIDER_INTERNAL_H
#define TALLY_PROVIDER_INTERNAL_H

#include "base/output_path.h"
#include "provider/simulated.h"
#include "valgrind/vsim_plan.h"

#include <stdbool.h>

/* An open event.  Its handle is its index, and its index in the plan. */
struct simulated_event {
	bool is_open;
	struct tally_attr attr;       /* as in the plan */
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
struct simulated_plan {
	struct tally_output_path path;
	int fd;
	struct vsim_plan *shared; /* NULL: there is no plan */
	uint8_t *rings;           /* NULL: no event records */
	/* our own tails; the ones in the rings' pages are for their writers */
	uint64_t tails[VSIM_RINGS];
	uint32_t news;            /* value of the plan's `news` that we have handled */
	bool has_leftovers;       /* records stayed behind, since our rings were full */
};

struct simulated {
	struct tally_provider provider; /* first member */
	struct tally_simulated_options options;
	struct vsim_geometry geometry;
	char machine[VSIM_GEOMETRY_TEXT + 32], caches[256];
	char folder[4096];
	struct simulated_event events[VSIM_EVENTS];
	struct simulated_plan plan;
	uint64_t damaged;  /* number of rings with invalid contents */
	/* the last command to execute; malloc'd, as are the strings in `words` */
	char **argv;
	char *words;
	uint8_t record[1 << 16]; /* the record being moved */
};

/* Returns the id in samples and in each process, whose engine numbers events in the order of
 * opening. */
static inline uint64_t simulated_id(int handle)
{
	return (uint64_t)handle + 1;
}

static inline struct simulated *simulated_of(struct tally_provider *provider)
{
	return (struct simulated *)provider;
}

/* Returns the event, or NULL if there is no such handle. */
struct simulated_event *simulated_event_of(struct simulated *simulated, int handle);

/* simulated_plan.c: makes a new file with only the geometry and the regions to be counted.  Returns
 * 0 or -errno. */
int simulated_plan_make(struct simulated *simulated, struct tally_error *err);
/* Writes the open events into the plan.  Only before the command starts. */
void simulated_plan_publish(struct simulated *simulated);
/* Returns the plan's event of a handle; NULL if there is no plan. */
struct vsim_event *simulated_planned(const struct simulated *simulated, int handle);
/* True once a process has begun.  From then on events keep their places. */
bool simulated_plan_has_begun(const struct simulated *simulated);
/* Makes room for the rings.  Returns 0 or -errno. */
int simulated_plan_add_rings(struct simulated *simulated);
/* Stops reading the rings, and tells writers that wait for room. */
void simulated_plan_close(struct simulated *simulated);
/* The same, and removes the file, with its counts. */
void simulated_plan_discard(struct simulated *simulated);

/* simulated_rings.c: the provider's operations on rings. */
struct tally_user_page *simulated_map(struct tally_provider *provider, int handle,
				      size_t data_pages, int overwrite);
void simulated_unmap(struct tally_provider *provider, struct tally_user_page *page,
		     size_t data_pages);
int simulated_wait(struct tally_provider *provider, struct tally_wait_item *items, size_t count,
		   int extra_fd, int timeout_ms);
ssize_t simulated_gather(struct tally_provider *provider);

/* simulated_geometry.c: finds the CPU named `cpu`; NULL: this machine's, from sysfs at `root`
 * (NULL: the usual place).  Returns 0 or -errno. */
int simulated_geometry(const char *cpu, const char *root, struct vsim_geometry *geometry,
		       struct tally_error *err);
/* Finds this machine's geometry.  Returns how many of its caches are as sysfs describes them, or
 * -ENOMEM. */
int simulated_geometry_here(const char *root, struct vsim_geometry *geometry);
/* Write all of it in one line; and a short form, "skylake: l1d 32K 8-way, …". */
void simulated_geometry_line(const struct vsim_geometry *geometry, char *out, size_t size);
void simulated_geometry_caches(const struct vsim_geometry *geometry, char *out, size_t size);
/* Returns the reason why such a CPU can't count this config; NULL if it can. */
const char *simulated_geometry_lacks(const struct vsim_geometry *geometry, uint64_t config);

/* simulated_launch.c: implements struct tally_provider_ops.command. */
int simulated_command(struct tally_provider *provider, const char *path, char **command,
		      char ***out, struct tally_error *err);

#endif
