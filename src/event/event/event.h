/* Parses event expressions into attributes: perf's grammar, over a catalogue that the caller passes
 * in.  Pure.
 *
 *     cycles:u  {a,b}:S  L1-dcache-load-misses  r1a8
 *     cpu/event=0x3c,umask=1,period=1000,name=foo/
 *     mem:0x1000/8:rw  sched:sched_switch  sched:*  sched_switch */
#ifndef TALLY_EVENT_H
#define TALLY_EVENT_H

#include "abi/abi.h"
#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tally_event_kind {
	TALLY_EVENT_HARDWARE,
	TALLY_EVENT_SOFTWARE,
	TALLY_EVENT_TOOL, /* needs no counter: times that the counting program measures itself */
	TALLY_EVENT_CACHE,
	TALLY_EVENT_PMU,
	TALLY_EVENT_RAW,
	TALLY_EVENT_BREAKPOINT,
	TALLY_EVENT_TRACEPOINT,
	TALLY_EVENT_VENDOR, /* a name from the CPU's vendor */
	TALLY_EVENT_KINDS
};

/* attr.type and attr.config of TALLY_EVENT_TOOL; the kernel does not know them. */
#define TALLY_TYPE_TOOL UINT32_MAX
enum tally_tool { TALLY_TOOL_DURATION_TIME = 1, TALLY_TOOL_USER_TIME, TALLY_TOOL_SYSTEM_TIME };

/* A term of a PMU's format: /sys/bus/event_source/devices/PMU/format/TERM, "config:0-7,32-35". */
struct tally_format_term {
	const char *name;
	uint8_t field; /* 0 config, 1 config1, 2 config2, 3 config3 */
	uint64_t mask; /* bits of the field that hold the value, from its lowest bit up */
};

/* A named event of a PMU: its expression in the PMU's terms. */
struct tally_pmu_alias {
	const char *name;
	const char *terms; /* "event=0x3c,umask=0x0" */
	const char *unit;  /* "" or "Joules" … */
	double scale;      /* 1 if there is none */
};

struct tally_pmu {
	const char *name;
	uint32_t type;
	const char *cpus; /* cpumask or "" */
	const struct tally_format_term *terms;
	size_t term_count;
	const struct tally_pmu_alias *events;
	size_t event_count;
	bool is_core; /* it counts on the cores of a type: sysfs has its `cpus` */
};

/* An event with a fixed name: hardware, software, tool, cache. */
struct tally_named_event {
	enum tally_event_kind kind;
	const char *name;
	const char *alias;       /* second name, or NULL */
	const char *description;
	uint32_t type;
	uint64_t config;
	const char *unavailable; /* why it can't be counted here, or NULL */
};

struct tally_tracepoint_name {
	const char *system, *name;
	uint64_t id; /* attr.config; UINT64_MAX: not yet known, ask `tracepoint_id` */
};

/* All names that expressions may use.  A provider fills it.  The names of hardware, software and
 * cache events are the kernel's (tally_catalogue_init() adds them), the others are the
 * machine's. */
struct tally_catalogue {
	struct tally_arena arena;
	struct tally_named_event *named;
	size_t named_count;
	/* the provider's user counts events of kind TOOL itself; otherwise naming one is an
	 * error */
	bool has_tools;
	struct tally_pmu *pmus;
	size_t pmu_count;
	struct tally_tracepoint_name *tracepoints; /* sorted by system, then name */
	size_t tracepoint_count;
	const char *tracepoints_unavailable;       /* why the list is empty, or NULL */
	/* Adds the tracepoints.  Listing them costs a directory walk, so a provider may do it only
	 * when a name needs it.  NULL: `tracepoints` is complete. */
	int (*load_tracepoints)(struct tally_catalogue *catalogue, void *context,
				struct tally_error *err);
	/* Returns the id of one tracepoint without that walk, or a negative errno if it doesn't
	 * exist.  May be NULL. */
	int64_t (*tracepoint_id)(void *context, const char *system, const char *name);
	/* Adds the PMU named `name`, or all if it is NULL.  PMUs cost file reads, so a provider may
	 * add them only when an expression needs them.  A PMU that is present is not added again;
	 * one that doesn't exist is no error.  NULL: `pmus` is complete. */
	int (*load_pmus)(struct tally_catalogue *catalogue, void *context, const char *name,
			 struct tally_error *err);
	/* Looks up a name that is none of the others: a CPU vendor's, with its own modifiers
	 * ("MEM_LOAD_RETIRED:L3_MISS:u").  Fills type, config*, precise_ip and the exclude flags of
	 * `attr`.  Returns 0 or -errno.  May be NULL. */
	int (*vendor_event)(const char *text, struct tally_attr *attr, struct tally_error *err);
	/* Frees the part of `context` that is outside the arena.  Called by
	 * tally_catalogue_release().  May be NULL. */
	void (*release)(void *context);
	void *context;
};

int tally_catalogue_init(struct tally_catalogue *catalogue);
void tally_catalogue_release(struct tally_catalogue *catalogue);

enum { TALLY_EVENT_NO_GROUP = -1 };

/* One event of an expression. */
struct tally_event {
	enum tally_event_kind kind;
	const char *name;        /* as printed: as typed, with modifiers; globs are expanded */
	/* type, config*, exclude_*, precise, pinned, exclusive; period or frequency if given */
	struct tally_attr attr;
	/* group number, or TALLY_EVENT_NO_GROUP; members are adjacent, leader first */
	int group;
	/* the expression gave attr.sample_period: -c and -F don't override it */
	bool has_period, has_frequency;
	bool group_read;         /* :S — the leader samples, members are read */
	bool weak_group;         /* :W — opened singly if the group doesn't fit */
	/* :P — the highest precise_ip that the PMU accepts; the attr has 0 */
	bool precise_max;
	bool host_guest_given;   /* H or G was given */
	const char *unit;        /* "" or the PMU's */
	/* filter on a tracepoint's fields: only hits that pass are counted; NULL: all (not parsed
	 * here) */
	const char *filter;
	double scale;
	const char *cgroup;      /* the only cgroup counted; NULL: all */
};

struct tally_event_list {
	struct tally_event *items; /* malloc'd; strings are in the arena passed to the parser */
	size_t count, capacity;
	int group_count;
};

/* Parses an expression and appends its events to `list` (several -e form one list).  Returns 0,
 * -EINVAL, or -ENOENT for an unknown name.  On error `position` is the column in `text`, and the
 * message has the text, a caret line, what was expected, and the nearest name. */
int tally_event_parse(const char *text, struct tally_catalogue *catalogue,
		      struct tally_arena *arena, struct tally_event_list *list,
		      struct tally_error *err);

/* perf's -G: assigns cgroups to events.  "foo,,bar" gives one cgroup each, in order, to the events
 * of the list that have had no turn yet; an empty name is a turn without a cgroup.  A single name
 * in the first -G applies to all events so far.  `turns` counts over all -G. Returns 0, -ENOMEM, or
 * -EINVAL if there are no events yet or fewer than names. */
int tally_event_assign_cgroups(struct tally_event_list *list, const char *names,
			       struct tally_arena *arena, size_t *turns, struct tally_error *err);

void tally_event_list_release(struct tally_event_list *list);

/* Types of cores (event_cores.c).  A machine has several if two PMUs or more are `is_core`; the
 * catalogue must have all PMUs. */

/* Returns the number of PMUs that count on cores of a type. */
size_t tally_catalogue_core_types(const struct tally_catalogue *catalogue);

/* Returns the PMU that an attr names, also by the extended type of a hardware or cache event; or
 * NULL. */
const struct tally_pmu *tally_event_pmu(const struct tally_attr *attr,
					const struct tally_catalogue *catalogue);

/* On a machine with several types of cores, replaces each event that names no PMU by one event for
 * each type ("cycles" → "cpu_core/cycles/", "cpu_atom/cycles/"), and each group by one group for
 * each type.  Returns 0 or -ENOMEM. */
int tally_event_split_by_core(struct tally_event_list *list,
			      const struct tally_catalogue *catalogue, struct tally_arena *arena);

/* By event: the CPUs that its PMU counts on, or NULL; the type of its core PMU, 0 if it has none or
 * if the machine has one type of cores.  The arrays are in the arena.  Returns 0 or -ENOMEM. */
int tally_event_places(const struct tally_event_list *list, const struct tally_catalogue *catalogue,
		       struct tally_arena *arena, const char *const **cpus, const uint32_t **cores);

/* Returns the name of an attr without modifiers ("cycles", "r1a8", "L1-dcache-loads", "type 9
 * config 0x3").  `catalogue` may be NULL; then tracepoints and PMUs are given by number. */
const char *tally_event_name_of(const struct tally_attr *attr,
				const struct tally_catalogue *catalogue, struct tally_arena *arena);

const char *tally_event_kind_text(enum tally_event_kind kind); /* "hardware", "software", … */

/* Gets type and config of a hardware, software, tool or cache event by its name or alias, without
 * modifiers.  Returns false if it is another name. */
bool tally_event_fixed(const char *name, uint32_t *type, uint64_t *config);

/* Returns the name that such an event is printed with ("cycles"), or NULL. */
const char *tally_event_fixed_name(uint32_t type, uint64_t config);

/* Gets the config of a cache event by its name, such as L1-dcache-load-misses.  Returns 0; -ENOENT if
 * it isn't a cache event's name; -EINVAL for a combination that no machine has. */
int tally_cache_config(const char *name, uint64_t *config);

#endif
