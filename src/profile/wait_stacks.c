/* Rows are made anew from the finished ones, since stacks that were different may now be the same: a task that waits with a limit
 * of time and one that waits without are both in what called the scheduler.
 */
#include "profile/wait_stacks.h"

#include "base/vector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Sorted.  By these a task gives up its CPU, and the kernel notes that; a name ends before a dot. */
static const char *const scheduler_functions[] = {
	"___perf_sw_event",
	"__cond_resched",
	"__perf_event_task_sched_out",
	"__schedule",
	"_cond_resched",
	"dynamic_cond_resched",
	"dynamic_preempt_schedule",
	"finish_task_switch",
	"io_schedule",
	"io_schedule_timeout",
	"irqentry_exit_cond_resched",
	"poll_schedule_timeout",
	"preempt_schedule",
	"preempt_schedule_common",
	"preempt_schedule_irq",
	"preempt_schedule_notrace",
	"preempt_schedule_notrace_thunk",
	"preempt_schedule_thunk",
	"prepare_task_switch",
	"raw_irqentry_exit_cond_resched",
	"schedule",
	"schedule_hrtimeout",
	"schedule_hrtimeout_range",
	"schedule_hrtimeout_range_clock",
	"schedule_preempt_disabled",
	"schedule_rtlock",
	"schedule_timeout",
	"schedule_timeout_idle",
	"schedule_timeout_interruptible",
	"schedule_timeout_killable",
	"schedule_timeout_uninterruptible",
};

struct arranger {
	struct tally_profile *profile;
	bool shows_scheduler;
	uint8_t *is_scheduler; /* by function of names: 0 not known yet, 1 no, 2 yes */
	uint8_t *is_of_waits;  /* by class */
	struct tally_row_table rows; /* the new ones */
	struct { uint64_t *items; size_t count, capacity; } longest; /* by new row */
};

static int compare_names(const void *wanted, const void *listed)
{
	return strcmp(wanted, *(const char *const *)listed);
}

static bool is_listed(const struct tally_names *names, uint32_t function)
{
	enum { LONGEST = 40 };
	char name[LONGEST];
	if (names->functions.items[function].kind != TALLY_FRAME_KERNEL ||
	    names->functions.items[function].name == TALLY_STRING_NONE)
		return false;
	const char *text = tally_names_text(names, function);
	size_t length = strcspn(text, ".");
	if (length >= sizeof(name))
		return false;
	memcpy(name, text, length);
	name[length] = '\0';
	return bsearch(name, scheduler_functions, sizeof(scheduler_functions) / sizeof(*scheduler_functions),
		       sizeof(*scheduler_functions), compare_names);
}

static bool is_scheduler(struct arranger *arranger, uint32_t place)
{
	uint32_t function = tally_profile_function(arranger->profile, place);
	uint8_t *answer = &arranger->is_scheduler[function];
	if (!*answer)
		*answer = is_listed(&arranger->profile->recording->names, function) ? 2 : 1;
	return *answer == 2;
}

/* Where the stack begins without the scheduler's frames; one of these stays where there is nothing else. */
static const uint8_t *fold_scheduler(struct arranger *arranger, const uint8_t *stack, const uint8_t *end)
{
	const uint8_t *next = stack;
	while (next < end && is_scheduler(arranger, tally_stack_next_place(&next)) && next < end)
		stack = next;
	return stack;
}

static int put_row(struct arranger *arranger, const struct tally_row *row, const uint8_t *stack, size_t size, uint64_t longest)
{
	uint32_t class = (uint32_t)row->class;
	uint32_t number = tally_row_table_put(&arranger->rows, tally_row_table_hash(class, stack, size), class, stack, size);
	if (number == UINT32_MAX)
		return -ENOMEM;
	while (arranger->longest.count <= number)
		if (tally_vector_push(&arranger->longest, 0) < 0)
			return -ENOMEM;
	arranger->rows.rows.items[number].samples += row->samples;
	arranger->rows.rows.items[number].period += row->period;
	if (arranger->longest.items[number] < longest)
		arranger->longest.items[number] = longest;
	return 0;
}

static int put_rows(struct arranger *arranger)
{
	static const uint8_t none[1] = { 0 };
	struct tally_profile *profile = arranger->profile;
	int result = 0;
	for (size_t i = 0; !result && i < profile->rows.rows.count; i++) {
		const struct tally_row *row = &profile->rows.rows.items[i];
		const uint8_t *end, *stack = tally_row_stack(&profile->rows, i, &end);
		if (stack && arranger->is_of_waits[row->class] && !arranger->shows_scheduler)
			stack = fold_scheduler(arranger, stack, end);
		result = put_row(arranger, row, stack ? stack : none, stack ? (size_t)(end - stack) : 0,
				 tally_profile_longest(profile, i));
	}
	return result;
}

/* Whether any class is. */
static bool find_waits(struct arranger *arranger)
{
	const struct tally_profile *profile = arranger->profile;
	size_t events;
	const struct tally_recorded_event *recorded = tally_perfdata_events(profile->recording->data, &events);
	bool any = false;
	for (size_t i = 0; i < profile->classes.count; i++) {
		uint32_t event = profile->classes.items[i].event;
		arranger->is_of_waits[i] = event < events && tally_is_off_cpu(&recorded[event].attr, recorded[event].name);
		any |= arranger->is_of_waits[i];
	}
	return any;
}

int tally_profile_arrange_waits(struct tally_profile *profile, bool shows_scheduler)
{
	struct arranger arranger = {
		.profile = profile,
		.shows_scheduler = shows_scheduler,
		.is_scheduler = calloc(profile->recording->names.functions.count + 1, 1),
		.is_of_waits = calloc(profile->classes.count + 1, 1),
	};
	int result = arranger.is_scheduler && arranger.is_of_waits ? 0 : -ENOMEM;
	bool has_waits = !result && find_waits(&arranger);
	if (has_waits)
		result = put_rows(&arranger);
	if (has_waits && !result) {
		tally_row_table_release(&profile->rows);
		tally_vector_release(&profile->longest);
		profile->rows = arranger.rows;
		profile->longest.items = arranger.longest.items;
		profile->longest.count = arranger.longest.count;
		profile->longest.capacity = arranger.longest.capacity;
		tally_row_table_finish(&profile->rows);
	} else {
		tally_row_table_release(&arranger.rows);
		tally_vector_release(&arranger.longest);
	}
	free(arranger.is_scheduler);
	free(arranger.is_of_waits);
	return result;
}

uint32_t tally_profile_waits(const struct tally_profile *profile)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(profile->recording->data, &count);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t samples, period;
		if (!tally_off_cpu_measured(&profile->recording->off_cpu, &events[i]))
			continue;
		tally_profile_totals(profile, i, &samples, &period);
		if (samples)
			return i;
	}
	return UINT32_MAX;
}
