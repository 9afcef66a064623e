/* Finds by trial which events are counted at the same time.
 *
 * A trial opens units (groups and single events) on the calling thread as pinned groups, enables
 * them, and reads their leaders.  A pinned group is counted all the time or not at all: if it has
 * no counters when it is enabled, it goes into error state at once, and read(2) returns 0 bytes
 * (perf_event_open(2), "pinned").  So one trial takes microseconds, and it sees everything that a
 * table would miss: fixed counters, counters that count only certain events, and those that the
 * NMI watchdog or another user holds.
 *
 * The kernel's own check at open (EINVAL for the member that is one too many) is not enough.  It
 * assumes that all counters are free, and on arm64 it takes the cycle counter for one that counts
 * anything (measured: of 6 general counters, 7 instructions open, and are never counted).  The
 * difference between the two tells causes apart: a group that the kernel refuses by itself lacks no
 * counter that somebody holds.
 *
 * Pinned groups of a task go before the flexible groups of everybody, but behind pinned events of
 * whole CPUs (the watchdog's).  A flexible `perf stat -a` that runs beside tally is therefore not
 * seen; the counts are then scaled in the run, and say so.
 */
#include "counting/counter_fit.h"

#include "abi/abi.h"
#include "base/buffer.h"
#include "base/extremes.h"
#include "counting/counting_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A group or a single event. */
struct unit {
	size_t first, count;
};

struct trial {
	struct tally_provider *provider;
	struct tally_target target;
	struct tally_counting_options options;
	struct tally_count_handles handles;
	struct tally_event *events; /* copies, with pinned leaders */
	bool *is_refused;           /* by event: it can't be opened, even alone */
	int *opened;                /* handles of the current trial; −1: none */
	size_t count;
};

enum answer {
	FITS,
	REJECTED, /* the kernel refuses to open an event beside the others */
	STARVED   /* all open, but not all are counted */
};

static const struct tally_count_scope this_thread = { .pid = 0, .cpu = -1 };

bool tally_fit_can_try(const struct tally_provider_ops *provider)
{
	return provider->capabilities & TALLY_PROVIDER_ANY_TARGET;
}

/* True if the event is not in competition for a CPU's counters. */
static bool needs_no_counter(const struct tally_event *event)
{
	return event->kind == TALLY_EVENT_TOOL || event->attr.type == TALLY_TYPE_SOFTWARE ||
	       event->attr.type == TALLY_TYPE_TRACEPOINT;
}

static struct unit unit_at(const struct tally_event *events, size_t count, size_t first)
{
	struct unit unit = { first, 1 };
	while (events[first].group >= 0 && first + unit.count < count &&
	       events[first + unit.count].group == events[first].group)
		unit.count++;
	return unit;
}

static void close_opened(struct trial *trial)
{
	for (size_t i = 0; i < trial->count; i++) {
		if (trial->opened[i] >= 0)
			trial->provider->ops->close(trial->provider, trial->opened[i]);
		trial->opened[i] = -1;
	}
}

static void find_refused(struct trial *trial)
{
	for (size_t i = 0; i < trial->count; i++) {
		if (trial->events[i].kind == TALLY_EVENT_TOOL) {
			trial->is_refused[i] = true;
			continue;
		}
		int handle = tally_count_handles_open_event(&trial->handles, i, this_thread, -1,
							    false);
		trial->is_refused[i] = handle < 0;
		if (handle >= 0)
			trial->provider->ops->close(trial->provider, handle);
	}
}

static void end_trial(struct trial *trial)
{
	if (trial->opened)
		close_opened(trial);
	tally_count_handles_release(&trial->handles);
	free(trial->events);
	free(trial->is_refused);
	free(trial->opened);
}

/* Returns 0 or -ENOMEM.  End the trial even then. */
static int begin_trial(struct trial *trial, struct tally_provider *provider,
		       const struct tally_event *events, size_t count)
{
	struct tally_error ignored = TALLY_ERROR_NONE;
	*trial = (struct trial){ .provider = provider, .count = count };
	trial->events = calloc(count + 1, sizeof(*trial->events));
	trial->is_refused = calloc(count + 1, sizeof(*trial->is_refused));
	if (!trial->events || !trial->is_refused)
		return -ENOMEM;
	int *opened = calloc(count + 1, sizeof(*opened));
	if (!opened)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		trial->events[i] = events[i];
		trial->events[i].cgroup = trial->events[i].filter = NULL;
		trial->events[i].attr.flags |= TALLY_ATTR_PINNED;
		opened[i] = -1;
	}
	trial->opened = opened;
	trial->options = (struct tally_counting_options){ .provider = provider,
							  .events = trial->events,
							  .event_count = count,
							  .target = &trial->target,
							  .no_inherit = true };
	int result = tally_count_handles_init(&trial->handles, &trial->options, &ignored);
	if (result >= 0)
		find_refused(trial);
	return result;
}

/* Opens a unit's first `members` events as one group. */
static enum answer open_unit(struct trial *trial, struct unit unit, size_t members)
{
	int leader = -1;
	for (size_t i = unit.first, seen = 0; i < unit.first + unit.count && seen < members; i++) {
		if (trial->is_refused[i])
			continue;
		seen++;
		/* only a leader may be pinned */
		if (leader >= 0)
			trial->events[i].attr.flags &= ~TALLY_ATTR_PINNED;
		trial->opened[i] = tally_count_handles_open_event(&trial->handles, i, this_thread,
								  leader, false);
		trial->events[i].attr.flags |= TALLY_ATTR_PINNED;
		if (trial->opened[i] < 0)
			return REJECTED;
		if (leader < 0)
			leader = trial->opened[i];
	}
	if (leader >= 0)
		trial->provider->ops->ioctl(trial->provider, leader, TALLY_IOCTL_ENABLE, NULL, 0);
	return FITS;
}

/* True if each open handle is counted.  A member's read fails as its leader's does. */
static bool all_are_counted(const struct trial *trial)
{
	uint64_t words[8];
	for (size_t i = 0; i < trial->count; i++)
		if (trial->opened[i] >= 0 &&
		    !trial->provider->ops->read(trial->provider, trial->opened[i], words,
						sizeof(words)))
			return false;
	return true;
}

static enum answer answer_of(struct trial *trial, enum answer opening)
{
	enum answer answer = opening;
	if (answer == FITS && !all_are_counted(trial))
		answer = STARVED;
	close_opened(trial);
	return answer;
}

/* ---- groups -------------------------------------------------------------- */

int tally_fit_check_group(struct tally_provider *provider, struct tally_event *events, size_t count,
			  size_t from, bool splits, struct tally_unfit_group *out)
{
	for (struct unit unit = { from, 0 }; unit.first < count; unit.first += unit.count) {
		unit = unit_at(events, count, unit.first);
		if (unit.count == 1 || events[unit.first].cgroup)
			continue;
		struct trial trial;
		struct unit own = { 0, unit.count };
		enum answer answer = FITS;
		size_t fitting = unit.count;
		int result = begin_trial(&trial, provider, events + unit.first, unit.count);
		if (result >= 0)
			answer = answer_of(&trial, open_unit(&trial, own, unit.count));
		enum answer fewer = answer;
		while (fewer != FITS && fitting > 0)
			fewer = answer_of(&trial, open_unit(&trial, own, --fitting));
		end_trial(&trial);
		if (result < 0)
			return result;
		if (answer == FITS)
			continue;
		bool takes_apart = splits || events[unit.first].weak_group;
		*out = (struct tally_unfit_group){ .first = unit.first,
						   .count = unit.count,
						   .fitting = fitting,
						   .is_accepted = answer == STARVED,
						   .was_split = takes_apart };
		for (size_t i = unit.first; takes_apart && i < unit.first + unit.count; i++)
			events[i].group = TALLY_EVENT_NO_GROUP;
		return 1;
	}
	return 0;
}

const char *tally_fit_group_text(const struct tally_unfit_group *group,
				 const struct tally_event *events, int nmi_watchdog,
				 struct tally_arena *arena)
{
	struct tally_buffer names = { 0 };
	const char *holder = "", *cure = "; --split-groups counts them separately";
	for (size_t i = group->first; i < group->first + group->count; i++)
		tally_buffer_printf(&names, "%s%s", i > group->first ? "," : "", events[i].name);
	/* The watchdog holds one counter of each CPU. */
	if (group->is_accepted && nmi_watchdog == 1 && group->fitting + 1 == group->count)
		holder = "; the NMI watchdog may hold the one that lacks: "
			 "'sysctl kernel.nmi_watchdog=0' as root frees it";
	else if (group->is_accepted)
		holder = "; the kernel accepts the group, but counters that it needs are fixed to "
			 "other events, or another user holds them";
	if (group->was_split)
		cure = "; they are counted separately";
	const char *text = tally_arena_printf(
		arena,
		"group {%s} can't be counted at once: there are counters for %zu of its %zu events%s%s",
		tally_buffer_string(&names), group->fitting, group->count, holder, cure);
	tally_buffer_release(&names);
	return text;
}

/* ---- passes -------------------------------------------------------------- */

/* True if the unit needs counters and can be opened. */
static bool competes(const struct trial *trial, struct unit unit)
{
	for (size_t i = unit.first; i < unit.first + unit.count; i++)
		if (!trial->is_refused[i] && !needs_no_counter(&trial->events[i]))
			return true;
	return false;
}

/* Tries the events of a pass, the anchor and one more unit together.  Counts of 0 leave out. */
static enum answer try_pass(struct trial *trial, const int *pass_of, int pass, struct unit anchor,
			    struct unit added)
{
	enum answer answer = FITS;
	if (anchor.count)
		answer = open_unit(trial, anchor, anchor.count);
	for (struct unit unit = { 0, 0 }; unit.first < trial->count && answer == FITS;
	     unit.first += unit.count) {
		unit = unit_at(trial->events, trial->count, unit.first);
		if (pass_of[unit.first] == pass && unit.first != added.first)
			answer = open_unit(trial, unit, unit.count);
	}
	if (answer == FITS)
		answer = open_unit(trial, added, added.count);
	return answer_of(trial, answer);
}

static struct unit find_anchor(const struct trial *trial)
{
	for (struct unit unit = { 0, 0 }; unit.first < trial->count; unit.first += unit.count) {
		unit = unit_at(trial->events, trial->count, unit.first);
		for (size_t i = unit.first; i < unit.first + unit.count; i++) {
			const struct tally_attr *attr = &trial->events[i].attr;
			if (attr->type == TALLY_TYPE_HARDWARE &&
			    attr->config == TALLY_HW_INSTRUCTIONS && !trial->is_refused[i])
				return unit;
		}
	}
	return (struct unit){ trial->count, 0 };
}

static void put_into_pass(int *pass_of, struct unit unit, int pass)
{
	for (size_t i = unit.first; i < unit.first + unit.count; i++)
		pass_of[i] = pass;
}

/* Returns the number of passes; 0 if `anchor` leaves no room for another unit. */
static int fill_passes(struct trial *trial, struct unit anchor, int *pass_of)
{
	enum { UNPLACED = -2 };
	const struct unit none = { trial->count, 0 };
	int passes = 0;
	for (size_t i = 0; i < trial->count; i++)
		pass_of[i] = UNPLACED;
	for (struct unit unit = { 0, 0 }; unit.first < trial->count; unit.first += unit.count) {
		unit = unit_at(trial->events, trial->count, unit.first);
		int pass = 0;
		if (!competes(trial, unit) || unit.first == anchor.first) {
			put_into_pass(pass_of, unit, TALLY_IN_EVERY_PASS);
			continue;
		}
		while (pass < passes && try_pass(trial, pass_of, pass, anchor, unit) != FITS)
			pass++;
		if (pass == passes) {
			/* A unit that has no counters even alone gets a pass, and a row that says so. */
			if (anchor.count && try_pass(trial, pass_of, pass, anchor, unit) != FITS &&
			    try_pass(trial, pass_of, pass, none, unit) == FITS)
				return 0;
			passes++;
		}
		put_into_pass(pass_of, unit, pass);
	}
	return (int)tally_max_i64(passes, 1);
}

int tally_count_passes_find(struct tally_provider *provider, const struct tally_event *events,
			    size_t count, struct tally_count_passes *out, struct tally_error *err)
{
	struct trial trial;
	*out = (struct tally_count_passes){ .count = 1 };
	int result = begin_trial(&trial, provider, events, count);
	out->pass_of = calloc(count + 1, sizeof(*out->pass_of));
	if (!out->pass_of)
		result = -ENOMEM;
	if (result >= 0)
		out->count = fill_passes(&trial, find_anchor(&trial), out->pass_of);
	if (result >= 0 && !out->count)
		out->count = fill_passes(&trial, (struct unit){ count, 0 }, out->pass_of);
	end_trial(&trial);
	if (result < 0)
		return tally_error_set(err, result, "out of memory");
	return 0;
}

void tally_count_passes_release(struct tally_count_passes *passes)
{
	free(passes->pass_of);
	*passes = (struct tally_count_passes){ 0 };
}
