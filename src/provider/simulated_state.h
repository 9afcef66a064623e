/* What the simulated provider's files share; of no use outside of them. */
#ifndef TALLY_PROVIDER_SIMULATED_STATE_H
#define TALLY_PROVIDER_SIMULATED_STATE_H

#include "provider/simulated.h"
#include "valgrind/vsim_plan.h"

#include <stdbool.h>

/* An open event; its handle is its index, and its place in the plan. */
struct simulated_event {
	bool is_open;
	struct tally_attr attr;       /* as the plan has it */
	uint64_t read_format;
	int leader;                   /* handle; its own for a leader or a single */
	/* handle whose ring it writes to; its own unless SET_OUTPUT said otherwise */
	int output;
	bool is_enabled, waits_for_exec; /* before the command starts; then the plan has it */
	uint64_t value_before;        /* at the last RESET */
	struct tally_user_page *page; /* of its ring, where it is mapped */
	size_t data_pages;
};

/* The file that the plan is in, and what of it is mapped. */
struct simulated_plan {
	char *path;
	int fd;
	struct vsim_plan *shared; /* NULL: there is none */
	uint8_t *rings;           /* NULL: nothing records */
	/* ours: what stands in the rings' own pages is for their writers */
	uint64_t tails[VSIM_RINGS];
	uint32_t news;            /* what was seen of it */
	bool has_leftovers;       /* our rings were full */
};

struct simulated {
	struct tally_provider provider; /* first */
	struct tally_simulated_options options;
	struct vsim_geometry geometry;
	char machine[VSIM_GEOMETRY_TEXT + 32], caches[256];
	char folder[4096];
	struct simulated_event events[VSIM_EVENTS];
	struct simulated_plan plan;
	uint64_t damaged;  /* rings whose contents made no sense */
	/* what was to be executed last; malloc'd, the strings from `words` on too */
	char **argv;
	char *words;
	uint8_t record[1 << 16]; /* one on its way */
};

/* In samples, and in each process: the engine there numbers events as they are opened. */
static inline uint64_t simulated_id(int handle)
{
	return (uint64_t)handle + 1;
}

static inline struct simulated *simulated_of(struct tally_provider *provider)
{
	return (struct simulated *)provider;
}

/* NULL: no such handle. */
struct simulated_event *simulated_event_of(struct simulated *simulated, int handle);

/* simulated_plan.c: a new file with nothing in it but the geometry and what is to be counted
 * where. */
int simulated_plan_make(struct simulated *simulated, struct tally_error *err);
/* Writes the open events into the plan.  Only before the command starts. */
void simulated_plan_publish(struct simulated *simulated);
/* The plan's event of a handle; NULL when there is no plan. */
struct vsim_event *simulated_planned(const struct simulated *simulated, int handle);
/* Has any process begun?  From then on events keep their places. */
bool simulated_plan_has_begun(const struct simulated *simulated);
/* Makes room for the rings. 0 or -errno. */
int simulated_plan_add_rings(struct simulated *simulated);
/* Nobody listens any more: whoever waits for room is told. */
void simulated_plan_close(struct simulated *simulated);
/* The same, and the file is gone; the counts with it. */
void simulated_plan_discard(struct simulated *simulated);

/* simulated_rings.c: the provider's operations on rings. */
struct tally_user_page *simulated_map(struct tally_provider *provider, int handle,
				      size_t data_pages, int overwrite);
void simulated_unmap(struct tally_provider *provider, struct tally_user_page *page,
		     size_t data_pages);
int simulated_wait(struct tally_provider *provider, struct tally_wait_item *items, size_t count,
		   int extra_fd, int timeout_ms);
ssize_t simulated_gather(struct tally_provider *provider);

/* simulated_geometry.c: the CPU that is called so, NULL: this machine's, by sysfs (`root`; NULL:
 * where it is). */
int simulated_geometry(const char *cpu, const char *root, struct vsim_geometry *geometry,
		       struct tally_error *err);
/* This machine's: how many of its caches are as sysfs describes them, or -ENOMEM. */
int simulated_geometry_here(const char *root, struct vsim_geometry *geometry);
/* All of it in one line; and "skylake: l1d 32K 8-way, …". */
void simulated_geometry_line(const struct vsim_geometry *geometry, char *out, size_t size);
void simulated_geometry_caches(const struct vsim_geometry *geometry, char *out, size_t size);
/* Why such a CPU can't count what this config stands for; NULL: it can. */
const char *simulated_geometry_lacks(const struct vsim_geometry *geometry, uint64_t config);

/* simulated_launch.c: struct tally_provider_ops.command. */
int simulated_command(struct tally_provider *provider, const char *path, char **command,
		      char ***out, struct tally_error *err);

#endif
