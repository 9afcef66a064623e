/* Event expressions → attributes: perf's grammar, over a catalogue handed in.  Pure.
 *
 *     cycles:u  {a,b}:S  L1-dcache-load-misses  r1a8  cpu/event=0x3c,umask=1,period=1000,name=foo/
 *     mem:0x1000/8:rw  sched:sched_switch  sched:*  sched_switch
 */
#ifndef TALLY_EVENT_EVENT_H
#define TALLY_EVENT_EVENT_H

#include "abi/attr.h"
#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tally_event_kind {
	TALLY_EVENT_HARDWARE,
	TALLY_EVENT_SOFTWARE,
	TALLY_EVENT_TOOL, /* what needs no counter: times that whoever counts takes itself */
	TALLY_EVENT_CACHE,
	TALLY_EVENT_PMU,
	TALLY_EVENT_RAW,
	TALLY_EVENT_BREAKPOINT,
	TALLY_EVENT_TRACEPOINT,
	TALLY_EVENT_VENDOR, /* by a name of the CPU's vendor */
	TALLY_EVENT_KINDS
};

/* attr.type and attr.config of TALLY_EVENT_TOOL: no kernel knows them. */
#define TALLY_TYPE_TOOL UINT32_MAX
enum tally_tool { TALLY_TOOL_DURATION_TIME = 1, TALLY_TOOL_USER_TIME, TALLY_TOOL_SYSTEM_TIME };

/* A term of a PMU's format: /sys/bus/event_source/devices/PMU/format/TERM, "config:0-7,32-35". */
struct tally_format_term {
	const char *name;
	uint8_t field; /* 0 config, 1 config1, 2 config2, 3 config3 */
	uint64_t mask; /* bits of the field; the value's bits fill them from the lowest up */
};

/* A named event of a PMU: its expression in the PMU's terms. */
struct tally_pmu_alias {
	const char *name;
	const char *terms; /* "event=0x3c,umask=0x0" */
	const char *unit;  /* "" or "Joules" … */
	double scale;      /* 1 where there is none */
};

struct tally_pmu {
	const char *name;
	uint32_t type;
	const char *cpus; /* cpumask or "" */
	const struct tally_format_term *terms;
	size_t term_count;
	const struct tally_pmu_alias *events;
	size_t event_count;
};

/* An event that has a fixed name: hardware, software, tool, cache. */
struct tally_named_event {
	enum tally_event_kind kind;
	const char *name;
	const char *alias;       /* the second name, or NULL */
	const char *description;
	uint32_t type;
	uint64_t config;
	const char *unavailable; /* why it can't be counted here, or NULL */
};

struct tally_tracepoint_name {
	const char *system, *name;
	uint64_t id; /* attr.config; UINT64_MAX: not known yet (looked up by `tracepoint_id`) */
};

/* What can be named.  Filled by a provider; the names of hardware, software and cache events are
 * the kernel's (tally_catalogue_init fills them), the rest is the machine's. */
struct tally_catalogue {
	struct tally_arena arena;
	struct tally_named_event *named;
	size_t named_count;
	/* set by who counts those of kind TOOL itself; else naming one is an error */
	bool has_tools;
	struct tally_pmu *pmus;
	size_t pmu_count;
	struct tally_tracepoint_name *tracepoints; /* sorted by system, name */
	size_t tracepoint_count;
	const char *tracepoints_unavailable;       /* why the list is empty, or NULL */
	/* Tracepoints cost a directory walk: a provider may leave them to be filled when a name
	 * asks for one.  NULL: all there is stands in `tracepoints`. */
	int (*load_tracepoints)(struct tally_catalogue *catalogue, void *context,
				struct tally_error *err);
	/* The id of one tracepoint without the walk; negative errno when it doesn't exist.  May be
	 * NULL. */
	int64_t (*tracepoint_id)(void *context, const char *system, const char *name);
	/* PMUs cost file reads: a provider may leave them to be filled when an expression asks.
	 * Adds the PMU called `name`, or all when NULL; a PMU that is there already is not added
	 * again, one that doesn't exist is no error.  NULL: all there are stand in `pmus`. */
	int (*load_pmus)(struct tally_catalogue *catalogue, void *context, const char *name,
			 struct tally_error *err);
	/* A name that is none of the others', the CPU vendor's ("MEM_LOAD_RETIRED:L3_MISS:u", its
	 * own modifiers included): fills type, config*, precise_ip and exclude flags of `attr`; 0
	 * or -errno.  May be NULL. */
	int (*vendor_event)(const char *text, struct tally_attr *attr, struct tally_error *err);
	/* Frees what `context` holds outside the arena; called by tally_catalogue_release.  May be
	 * NULL. */
	void (*release)(void *context);
	void *context;
};

int tally_catalogue_init(struct tally_catalogue *catalogue);
void tally_catalogue_release(struct tally_catalogue *catalogue);

enum { TALLY_EVENT_NO_GROUP = -1 };

/* One event that an expression names. */
struct tally_event {
	enum tally_event_kind kind;
	const char *name;        /* as printed: as typed, with modifiers; a glob's are expanded */
	/* type, config*, exclude_*, precise, pinned, exclusive; period/freq when given */
	struct tally_attr attr;
	/* number of its group, or TALLY_EVENT_NO_GROUP; members are adjacent, leader first */
	int group;
	/* attr.sample_period was given as a term: -c/-F don't override it */
	bool has_period, has_frequency;
	bool group_read;         /* :S — the leader samples, members are read */
	bool weak_group;         /* :W — opened singly where the group doesn't fit */
	bool from_glob;          /* one of many: may be left out where it can't be opened */
	/* :P — the highest precise_ip that the PMU accepts; the attr says 0 */
	bool precise_max;
	bool host_guest_given;   /* H or G was typed */
	const char *unit;        /* "" or the PMU's */
	/* of the fields of a tracepoint: what passes is counted; NULL: all does (not parsed
	 * here) */
	const char *filter;
	double scale;
	const char *cgroup;      /* counted in it alone; NULL: everywhere */
};

struct tally_event_list {
	struct tally_event *items; /* malloc'd; strings live in the arena passed to parse */
	size_t count, capacity;
	int group_count;
};

/* Parses and appends to `list` (several -e are one list).  Error: `position` is the column in
 * `text`, the message has the text and a caret line, what was expected, and the nearest name.
 * -EINVAL, -ENOENT (unknown name). */
int tally_event_parse(const char *text, struct tally_catalogue *catalogue,
		      struct tally_arena *arena, struct tally_event_list *list,
		      struct tally_error *err);

/* perf's -G: "foo,,bar" gives the events of the list that have had no turn yet a cgroup each, in
 * order; an empty name is a turn without one.  One name, first and alone, is for all events so far.
 * `turns` counts over all -G.  -EINVAL: no events yet, or fewer than names. */
int tally_event_assign_cgroups(struct tally_event_list *list, const char *names,
			       struct tally_arena *arena, size_t *turns, struct tally_error *err);

void tally_event_list_release(struct tally_event_list *list);

/* The name that an attr goes by ("cycles", "r1a8", "L1-dcache-loads", "type 9 config 0x3"), without
 * modifiers.  NULL for the catalogue: tracepoints and PMUs have their numbers. */
const char *tally_event_name_of(const struct tally_attr *attr,
				const struct tally_catalogue *catalogue, struct tally_arena *arena);

const char *tally_event_kind_text(enum tally_event_kind kind); /* "hardware", "software", … */

#endif
