/* Rows are made anew from the finished ones, since stacks that were different may now be the same.
 * For example, waits with and without a timeout then both end in the function that called the
 * scheduler. */
#include "profile/profile.h"

#include "base/vector.h"
#include "naming/naming.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Functions by which a task gives up its CPU, and in which the kernel notes that.  Sorted; a name
 * ends before a dot. */
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

/* Functions by which the kernel wakes a task on behalf of other code.  Sorted. */
static const char *const waking_functions[] = {
	"__wake_up",
	"__wake_up_common",
	"__wake_up_common_lock",
	"__wake_up_locked",
	"__wake_up_locked_key",
	"__wake_up_sync",
	"__wake_up_sync_key",
	"autoremove_wake_function",
	"complete",
	"complete_all",
	"complete_with_flags",
	"default_wake_function",
	"ep_autoremove_wake_function",
	"ep_poll_callback",
	"pollwake",
	"signal_wake_up_state",
	"swake_up_locked",
	"swake_up_one",
	"try_to_wake_up",
	"ttwu_do_activate",
	"ttwu_queue_wakelist",
	"wake_up_bit",
	"wake_up_process",
	"wake_up_q",
	"wake_up_state",
	"woken_wake_function",
};

/* A list of functions.  `answers`, by index of the names' functions: 0 not known yet, 1 not listed,
 * 2 listed. */
struct name_list {
	const char *const *names;
	size_t count;
	uint8_t *answers;
};

/* The row of a waking, and the task that woke. */
struct waker {
	uint32_t row; /* number of the row, + 1; 0: none */
	uint32_t comm;
};

struct arranger {
	struct tally_profile *profile;
	const struct tally_profile_options *options;
	struct name_list scheduler, waking;
	uint8_t *is_of_waits; /* by class */
	uint32_t *class_of;   /* by class: the same class without a waker */
	struct {
		struct waker *items;
		size_t count, capacity;
	} wakers; /* by number of the waking - 1 */
	struct {
		uint8_t *items;
		size_t count, capacity;
	} stack;                     /* the stack that is being put together */
	struct tally_row_table rows; /* the new ones */
	struct {
		uint64_t *items;
		size_t count, capacity;
	} longest; /* by new row */
};

bool tally_function_is_scheduler(const struct tally_names *names, uint32_t function)
{
	return tally_names_is_kernels(names, function, scheduler_functions,
				      sizeof(scheduler_functions) / sizeof(*scheduler_functions));
}

static bool has_place(const struct arranger *arranger, const struct name_list *list, uint32_t place)
{
	uint32_t function = tally_profile_symbol(arranger->profile, place);
	uint8_t *answer = &list->answers[function];
	const struct tally_names *names = &arranger->profile->recording->names;
	if (!*answer)
		*answer = 1 + tally_names_is_kernels(names, function, list->names, list->count);
	return *answer == 2;
}

/* Returns the start of the stack without the listed functions at its leaf.  Keeps one of them if
 * there is nothing else. */
static const uint8_t *fold(const struct arranger *arranger, const struct name_list *list,
			   const uint8_t *stack, const uint8_t *end)
{
	const uint8_t *next = stack;
	while (next < end && has_place(arranger, list, tally_stack_next_place(&next)) && next < end)
		stack = next;
	return stack;
}

/* ---- who woke whom ------------------------------------------------------- */

/* Returns where the stack of an interrupt ends.  The code below it was only interrupted, and did
 * not wake the task. */
static const uint8_t *cut_interrupted(const struct arranger *arranger, const uint8_t *stack,
				      const uint8_t *end)
{
	const struct tally_names *names = &arranger->profile->recording->names;
	const uint8_t *next = stack;
	while (next < end) {
		const uint8_t *at = next;
		uint32_t function = tally_profile_symbol(arranger->profile,
							   tally_stack_next_place(&next));
		bool is_kernel = names->functions.items[function].kind == TALLY_FRAME_KERNEL;
		if (!is_kernel)
			return at;
		if (names->functions.items[function].name != TALLY_STRING_NONE &&
		    !strncmp(tally_names_text(names, function), "asm_", 4))
			return next;
	}
	return end;
}

static int put_place(struct arranger *arranger, const struct tally_place *place)
{
	uint32_t number = tally_place_table_intern(&arranger->profile->places, place);
	if (number == UINT32_MAX ||
	    tally_vector_reserve(&arranger->stack, arranger->stack.count + TALLY_PLACE_BYTES_MAX) <
		    0)
		return -ENOMEM;
	uint8_t *at = tally_stack_put_place(arranger->stack.items + arranger->stack.count, number);
	arranger->stack.count = (size_t)(at - arranger->stack.items);
	return 0;
}

/* Appends the waker's stack, outermost frame first: it comes before the waiter's stack, in reverse
 * order. */
static int put_waker(struct arranger *arranger, const struct waker *waker, bool in_interrupt)
{
	const uint8_t *end,
		*stack = tally_row_stack(&arranger->profile->rows, waker->row - 1, &end);
	if (!stack)
		return 0;
	if (!arranger->options->shows_scheduler)
		stack = fold(arranger, &arranger->waking, stack, end);
	if (in_interrupt)
		end = cut_interrupted(arranger, stack, end);
	if (tally_vector_reserve(&arranger->stack, arranger->stack.count + (size_t)(end - stack)) <
	    0)
		return -ENOMEM;
	uint8_t *at = arranger->stack.items + arranger->stack.count;
	while (end > stack)
		at = tally_stack_put_place(at, tally_stack_last_place(stack, &end));
	arranger->stack.count = (size_t)(at - arranger->stack.items);
	return 0;
}

/* Puts what ended the wait before its stack, and adds up the time. */
static int put_end(struct arranger *arranger, const struct tally_row *row)
{
	const struct tally_off_cpu *off_cpu = &arranger->profile->recording->off_cpu;
	uint32_t number = arranger->profile->classes.items[row->class].waker;
	const struct waker *waker = NULL;
	struct tally_place place = tally_place_of_waker(TALLY_PLACE_WAKER_UNKNOWN, 0);
	uint64_t *time = &arranger->profile->wakers.unknown_ns;
	int result = 0;
	if (number - 1 < arranger->wakers.count)
		waker = &arranger->wakers.items[number - 1];
	if (number == TALLY_WAKER_NOBODY) {
		place = tally_place_of_waker(TALLY_PLACE_WAKER_PREEMPTED, 0);
		time = &arranger->profile->wakers.preempted_ns;
	} else if (waker && waker->row) {
		bool in_interrupt = number - 1 < off_cpu->interrupts.count &&
				    off_cpu->interrupts.items[number - 1];
		if (in_interrupt)
			place = tally_place_of_waker(TALLY_PLACE_WAKER_INTERRUPT, 0);
		else
			place = tally_place_of_waker(TALLY_PLACE_WAKER_TASK, waker->comm);
		time = &arranger->profile->wakers.woken_ns;
		result = put_waker(arranger, waker, in_interrupt);
	}
	*time += row->period;
	if (result)
		return result;
	return put_place(arranger, &place);
}

/* Lists the rows of wakings by number.  All rows with one number have the same stack, so any of
 * them will do. */
static int list_wakers(struct arranger *arranger)
{
	const struct tally_profile *profile = arranger->profile;
	for (size_t i = 0; i < profile->rows.rows.count; i++) {
		uint32_t class = (uint32_t)profile->rows.rows.items[i].class,
			 number = profile->classes.items[class].waker;
		if (!number || number == TALLY_WAKER_NOBODY || arranger->is_of_waits[class])
			continue;
		while (arranger->wakers.count < number)
			if (tally_vector_push(&arranger->wakers, (struct waker){ .row = 0 }) < 0)
				return -ENOMEM;
		arranger->wakers.items[number - 1] = (struct waker){
			.row = (uint32_t)i + 1, .comm = profile->classes.items[class].comm
		};
	}
	return 0;
}

int tally_profile_prepare_wakers(struct tally_profile *profile)
{
	for (unsigned kind = TALLY_PLACE_WAKER_INTERRUPT; kind < TALLY_PLACE_WAKER_TASK; kind++) {
		const struct tally_place place = tally_place_of_waker(kind, 0);
		if (tally_place_table_intern(&profile->places, &place) == UINT32_MAX)
			return -ENOMEM;
	}
	for (size_t i = 0; i < profile->classes.count; i++) {
		const struct tally_class *class = &profile->classes.items[i];
		const struct tally_place place = tally_place_of_waker(TALLY_PLACE_WAKER_TASK,
								      class->comm);
		if (class->waker &&
		    tally_place_table_intern(&profile->places, &place) == UINT32_MAX)
			return -ENOMEM;
	}
	return 0;
}

/* ---- rows ---------------------------------------------------------------- */

static int put_row(struct arranger *arranger, const struct tally_row *row, const uint8_t *stack,
		   size_t size, uint64_t longest)
{
	uint32_t class = arranger->class_of[row->class];
	uint32_t number = tally_row_table_put(
		&arranger->rows, tally_row_table_hash(class, stack, size), class, stack, size);
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

static int put_wait(struct arranger *arranger, size_t number)
{
	const struct tally_row *row = &arranger->profile->rows.rows.items[number];
	const uint8_t *end, *stack = tally_row_stack(&arranger->profile->rows, number, &end);
	arranger->stack.count = 0;
	if (stack && !arranger->options->shows_scheduler)
		stack = fold(arranger, &arranger->scheduler, stack, end);
	size_t size = 0;
	if (stack)
		size = (size_t)(end - stack);
	if (arranger->options->with_wakers && put_end(arranger, row) < 0)
		return -ENOMEM;
	if (tally_vector_reserve(&arranger->stack, arranger->stack.count + size + 1) < 0)
		return -ENOMEM;
	if (size)
		memcpy(arranger->stack.items + arranger->stack.count, stack, size);
	return put_row(arranger, row, arranger->stack.items, arranger->stack.count + size,
		       tally_profile_longest(arranger->profile, number));
}

static int put_rows(struct arranger *arranger)
{
	static const uint8_t none[1] = { 0 };
	struct tally_profile *profile = arranger->profile;
	int result = 0;
	if (arranger->options->with_wakers)
		result = list_wakers(arranger);
	for (size_t i = 0; !result && i < profile->rows.rows.count; i++) {
		const struct tally_row *row = &profile->rows.rows.items[i];
		const uint8_t *end, *stack = tally_row_stack(&profile->rows, i, &end);
		if (!stack)
			stack = end = none;
		if (arranger->is_of_waits[row->class])
			result = put_wait(arranger, i);
		else
			result = put_row(arranger, row, stack, (size_t)(end - stack),
					 tally_profile_longest(profile, i));
	}
	return result;
}

/* Sets is_of_waits.  Returns true if any class is one of waits. */
static bool find_waits(struct arranger *arranger)
{
	const struct tally_profile *profile = arranger->profile;
	bool any = false;
	for (uint32_t i = 0; i < profile->classes.count; i++) {
		arranger->is_of_waits[i] = tally_class_is_of_waits(profile, i);
		any |= arranger->is_of_waits[i];
	}
	return any;
}

/* Joins classes that differ only in their wakers.  Classes that are made here come after the
 * others. */
static int join_classes(struct arranger *arranger)
{
	struct tally_profile *profile = arranger->profile;
	struct tally_map index = { 0 };
	size_t count = profile->classes.count;
	int result = 0;
	for (size_t i = 0; !result && i < count; i++) {
		struct tally_class class = profile->classes.items[i];
		arranger->class_of[i] = (uint32_t)i;
		if (!class.waker)
			continue;
		class.waker = 0;
		arranger->class_of[i] = tally_class_intern(profile, &index, &class);
		if (arranger->class_of[i] == UINT32_MAX)
			result = -ENOMEM;
	}
	tally_map_release(&index);
	return result;
}

static void release(struct arranger *arranger)
{
	tally_row_table_release(&arranger->rows);
	tally_vector_release(&arranger->longest);
	tally_vector_release(&arranger->wakers);
	tally_vector_release(&arranger->stack);
	free(arranger->scheduler.answers);
	free(arranger->waking.answers);
	free(arranger->is_of_waits);
	free(arranger->class_of);
}

static void take_over(struct arranger *arranger)
{
	struct tally_profile *profile = arranger->profile;
	tally_row_table_release(&profile->rows);
	tally_vector_release(&profile->longest);
	profile->rows = arranger->rows;
	profile->longest.items = arranger->longest.items;
	profile->longest.count = arranger->longest.count;
	profile->longest.capacity = arranger->longest.capacity;
	tally_row_table_finish(&profile->rows);
	arranger->rows = (struct tally_row_table){ 0 };
	arranger->longest.items = NULL;
	arranger->longest.count = arranger->longest.capacity = 0;
}

int tally_profile_arrange_waits(struct tally_profile *profile,
				const struct tally_profile_options *options)
{
	size_t functions = profile->recording->names.functions.count + 1,
	       classes = profile->classes.count + 1;
	struct arranger arranger = {
		.profile = profile,
		.options = options,
		.scheduler = { scheduler_functions,
			       sizeof(scheduler_functions) / sizeof(*scheduler_functions),
			       calloc(functions, 1) },
		.waking = { waking_functions, sizeof(waking_functions) / sizeof(*waking_functions),
			    calloc(functions, 1) },
		.is_of_waits = calloc(classes, 1),
		.class_of = calloc(classes, sizeof(*arranger.class_of)),
	};
	int result = -ENOMEM;
	if (!arranger.scheduler.answers || !arranger.waking.answers || !arranger.is_of_waits ||
	    !arranger.class_of)
		goto out;
	result = 0;
	if (!find_waits(&arranger))
		goto out;
	result = join_classes(&arranger);
	if (result)
		goto out;
	result = put_rows(&arranger);
	if (!result)
		take_over(&arranger);
out:
	release(&arranger);
	return result;
}

uint32_t tally_profile_waits(const struct tally_profile *profile)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(profile->recording->data,
									  &count);
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

/* True if the waking event was recorded on tasks: it is inherited, and doesn't see other tasks.
 * Events on CPUs see all tasks. */
static bool is_of_tasks(const struct tally_profile *profile)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(profile->recording->data,
									  &count);
	for (size_t i = 0; i < count; i++)
		if (tally_off_cpu_is_waking(&profile->recording->off_cpu, &events[i]))
			return events[i].attr.flags & TALLY_ATTR_INHERIT;
	return false;
}

void tally_profile_wakers_text(const struct tally_profile *profile, struct tally_buffer *out)
{
	const double worth_saying = 0.5;
	double woken = (double)profile->wakers.woken_ns,
	       preempted = (double)profile->wakers.preempted_ns;
	double unknown = (double)profile->wakers.unknown_ns,
	       percent = (woken + preempted + unknown) / 100;
	if (!(percent > 0))
		return;
	tally_buffer_printf(out, "wakers are known for %.0f%% of the time", woken / percent);
	if (preempted / percent >= worth_saying)
		tally_buffer_printf(out, "; for %.0f%% tasks were ready and waited for a CPU",
				    preempted / percent);
	if (unknown / percent < worth_saying)
		return;
	tally_buffer_printf(out, "; for %.0f%% the waker was not recorded", unknown / percent);
	if (is_of_tasks(profile))
		tally_buffer_text(out, ": another task, a device or a timer ('record -a' records "
				       "these)");
}
