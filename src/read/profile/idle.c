/* Looks leaves up in a sorted list of the kernel's idle functions, and remembers the answer for
 * each function.  The rows that remain are moved together in place. */
#include "profile/profile.h"

#include "base/extremes.h"
#include "base/vector.h"
#include "naming/naming.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Sorted.  perf top hides most of these; the others are of newer kernels, and of hypervisors'
 * guests. */
static const char *const idle_functions[] = {
	"acpi_idle_do_entry",
	"acpi_idle_enter",
	"acpi_processor_ffh_cstate_enter",
	"acpi_safe_halt",
	"amd_e400_idle",
	"arch_cpu_idle",
	"arch_cpu_idle_enter",
	"arch_cpu_idle_exit",
	"cpu_do_idle",
	"cpu_idle",
	"cpu_idle_poll",
	"cpu_startup_entry",
	"cpuidle_enter",
	"cpuidle_enter_state",
	"cpuidle_idle_call",
	"default_enter_idle",
	"default_idle",
	"default_idle_call",
	"do_idle",
	"enter_idle",
	"exit_idle",
	"hv_vtl_idle",
	"intel_idle",
	"intel_idle_ibrs",
	"intel_idle_irq",
	"intel_idle_xstate",
	"mwait_idle",
	"mwait_idle_with_hints",
	"native_safe_halt",
	"poll_idle",
	"ppc64_runlatch_off",
	"pseries_dedicated_idle_sleep",
	"psci_cpu_suspend_enter",
	"psci_enter_idle_state",
	"psw_idle",
	"psw_idle_exit",
	"pv_native_safe_halt",
	"snooze_loop",
	"tdx_halt",
	"tdx_safe_halt",
	"xen_safe_halt",
};

bool tally_function_is_idle(const struct tally_names *names, uint32_t function, bool is_idle_task)
{
	if (function >= names->functions.count)
		return false;
	if (names->functions.items[function].name == TALLY_STRING_NONE)
		return is_idle_task &&
		       names->functions.items[function].kind == TALLY_FRAME_KERNEL;
	return tally_names_is_kernels(names, function, idle_functions,
				      sizeof(idle_functions) / sizeof(*idle_functions));
}

/* True if the event's samples come by time or from hardware, so that they can hit the idle task;
 * false for events that happen in code. */
static bool event_meets_idle(const struct tally_attr *attr)
{
	bool is_hit = attr->type == TALLY_TYPE_TRACEPOINT || attr->type == TALLY_TYPE_BREAKPOINT ||
		      attr->type == TALLY_TYPE_SOFTWARE;
	return tally_attr_is_clock(attr) || !is_hit;
}

/* `answers`: by function of names, for the idle task and for others apart: 0 not known yet, 1 no,
 * 2 yes. */
static bool is_idle(const struct tally_names *names, uint32_t function, bool is_task,
		    uint8_t *answers)
{
	uint8_t *answer = &answers[2 * (size_t)function + is_task];
	if (!*answer)
		*answer = tally_function_is_idle(names, function, is_task) ? 2 : 1;
	return *answer == 2;
}

static uint8_t *make_answers(const struct tally_names *names)
{
	return calloc(names->functions.count + 1, 2);
}

static void take_out_of_spread(struct tally_profile *profile, uint32_t event,
			       const struct tally_row *row)
{
	if (event >= profile->spreads.count || !row->samples)
		return;
	struct tally_period_spread *spread = &profile->spreads.items[event];
	double period = (double)row->period, squares = period * period / (double)row->samples;
	if (spread->samples <= row->samples) {
		*spread = (struct tally_period_spread){ .samples = 0 };
		return;
	}
	spread->sum -= period;
	spread->squares = tally_max_double(spread->squares - squares, 0);
	spread->samples -= row->samples;
}

static int leave_out(struct tally_profile *profile, uint32_t event, const struct tally_row *row)
{
	while (profile->idle.count <= event)
		if (tally_vector_push(&profile->idle, (struct tally_left_out){ .samples = 0 }) < 0)
			return -ENOMEM;
	profile->idle.items[event].samples += row->samples;
	profile->idle.items[event].period += row->period;
	take_out_of_spread(profile, event, row);
	return 0;
}

int tally_profile_leave_out_idle(struct tally_profile *profile)
{
	struct tally_row_table *table = &profile->rows;
	size_t events, kept = 0, bytes = 0, count = table->rows.count;
	const struct tally_recorded_event *recorded = tally_perfdata_events(
		profile->recording->data, &events);
	const struct tally_names *names = &profile->recording->names;
	uint8_t *answers = make_answers(names);
	int result = 0;
	if (!answers)
		result = -ENOMEM;
	for (size_t i = 0; !result && i < count; i++) {
		struct tally_row row = table->rows.items[i];
		const uint8_t *end, *stack = tally_row_stack(table, i, &end), *at = stack;
		uint32_t event = profile->classes.items[row.class].event;
		size_t size = 0;
		if (stack)
			size = (size_t)(end - stack);
		bool may_be = size && event < events &&
			      event_meets_idle(&recorded[event].attr);
		if (may_be && is_idle(names,
				      tally_profile_symbol(profile, tally_stack_next_place(&at)),
				      profile->classes.items[row.class].is_idle_task, answers)) {
			result = leave_out(profile, event, &row);
			continue;
		}
		/* a stack ends where the next row's begins, so both move together */
		if (size)
			memmove(table->stacks.items + bytes, stack, size);
		row.stack = bytes & ((1ull << 40) - 1);
		if (i < profile->longest.count)
			profile->longest.items[kept] = profile->longest.items[i];
		table->rows.items[kept++] = row;
		bytes += size;
	}
	if (!result) {
		table->rows.count = kept;
		table->stacks.count = bytes;
	}
	free(answers);
	return result;
}

struct tally_left_out tally_profile_idle(const struct tally_profile *profile, uint32_t event)
{
	if (event >= profile->idle.count)
		return (struct tally_left_out){ .samples = 0 };
	return profile->idle.items[event];
}

static bool is_sample_idle(const struct tally_samples *samples,
			   const struct tally_one_sample *sample, uint8_t *answers)
{
	const struct tally_names *names = &samples->recording->names;
	const uint8_t *end, *at = tally_row_stack(&samples->stacks, sample->stack, &end);
	if (!at || at == end)
		return false;
	const struct tally_place_name *name = &samples->names[tally_stack_next_place(&at)];
	uint32_t function = names->frames.items[name->first + name->count - 1].function;
	return is_idle(names, function, sample->is_idle_task, answers);
}

int tally_samples_leave_out_idle(struct tally_samples *samples, uint32_t event,
				 struct tally_left_out *idle, uint64_t *rest_period)
{
	size_t events;
	const struct tally_recorded_event *recorded = tally_perfdata_events(
		samples->recording->data, &events);
	uint8_t *answers = make_answers(&samples->recording->names);
	*idle = (struct tally_left_out){ .samples = 0 };
	*rest_period = 0;
	for (size_t i = 0; answers && i < samples->samples.count; i++) {
		struct tally_one_sample *sample = &samples->samples.items[i];
		bool is_left_out = event_meets_idle(&recorded[sample->event].attr) &&
				   is_sample_idle(samples, sample, answers);
		if (sample->event == event && is_left_out) {
			idle->samples++;
			idle->period += sample->period;
		} else if (sample->event == event) {
			*rest_period += sample->period;
		}
		if (is_left_out)
			sample->event = TALLY_SAMPLE_LEFT_OUT;
	}
	if (!answers)
		return -ENOMEM;
	free(answers);
	return 0;
}

void tally_idle_text(const struct tally_left_out *idle, uint64_t period, struct tally_buffer *out)
{
	double share = 100 * (double)idle->period / ((double)idle->period + (double)period);
	if (idle->samples)
		tally_buffer_printf(
			out,
			"%.*f%% is idle and left out: percentages are of the rest; --idle shows it",
			share < 10 ? 1 : 0, share);
}
