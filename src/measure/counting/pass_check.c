/* Compares the passes of one command.
 *
 * Each pass counts other events, so nothing in the merged table shows whether the runs did the same
 * work.  Figures that all passes have do: an event that fits beside the others in each pass, a
 * clock, or the CPU time of wait4(2).  Counts are compared rather than times where possible:
 * the instructions of the same work repeat to about 1 %, its time does not.
 */
#include "counting/pass_check.h"

#include "abi/abi.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int tally_pass_check_init(struct tally_pass_check *check,
			  const struct tally_counting_options *options, struct tally_error *err)
{
	*check = (struct tally_pass_check){ 0 };
	if (!options->passes || options->passes->count < 2)
		return 0;
	check->passes = (size_t)options->passes->count;
	check->width = options->event_count + 1;
	check->figures = calloc(check->passes * check->width, sizeof(*check->figures));
	if (!check->figures)
		return tally_error_set(err, -ENOMEM, "out of memory");
	return 0;
}

void tally_pass_check_release(struct tally_pass_check *check)
{
	free(check->figures);
	*check = (struct tally_pass_check){ 0 };
}

static struct tally_spread *figure_of(const struct tally_pass_check *check, size_t pass, size_t at)
{
	return &check->figures[pass * check->width + at];
}

void tally_pass_check_add(struct tally_pass_check *check,
			  const struct tally_counting_options *options,
			  const struct tally_event_count *rows, double cpu_ns)
{
	if (!check->figures)
		return;
	size_t pass = (size_t)options->pass, events = options->event_count;
	for (size_t i = 0; i < events; i++)
		if (options->passes->pass_of[i] == TALLY_IN_EVERY_PASS &&
		    rows[i].state == TALLY_COUNT_OK)
			tally_spread_add(figure_of(check, pass, i), rows[i].value);
	if (cpu_ns >= 0)
		tally_spread_add(figure_of(check, pass, events), cpu_ns);
}

static bool all_passes_have(const struct tally_pass_check *check, size_t at)
{
	for (size_t pass = 0; pass < check->passes; pass++)
		if (!figure_of(check, pass, at)->count)
			return false;
	return true;
}

/* Finds the common figure.  Returns its place, or `width` if there is none. */
static size_t find_common(struct tally_pass_check *check,
			  const struct tally_counting_options *options)
{
	size_t clock = check->width;
	for (size_t i = 0; i < options->event_count; i++) {
		const struct tally_attr *attr = &options->events[i].attr;
		if (options->passes->pass_of[i] != TALLY_IN_EVERY_PASS ||
		    !all_passes_have(check, i))
			continue;
		if (attr->type == TALLY_TYPE_HARDWARE && attr->config == TALLY_HW_INSTRUCTIONS)
			return i;
		if (tally_attr_is_clock(attr) && clock == check->width)
			clock = i;
	}
	check->is_time = true;
	if (clock == check->width && all_passes_have(check, options->event_count))
		clock = options->event_count;
	return clock;
}

/* True if chance alone may make two of the passes differ as much. */
static bool chance_explains(const struct tally_pass_check *check, const struct tally_spread *a,
			    const struct tally_spread *b)
{
	double pairs = (double)check->passes * (double)(check->passes - 1) / 2;
	const struct tally_figure old = { a->mean, tally_spread_sigma(a), a->count, false, false };
	const struct tally_figure new = { b->mean, tally_spread_sigma(b), b->count, false, false };
	struct tally_change change;
	if (a->count < 2 || b->count < 2)
		return false;
	tally_change_of(&old, &new, &change);
	return change.p >= 0.05 / pairs;
}

/* Writes the relative difference as "12.3 %". */
static const char *difference_text(const struct tally_pass_check *check, char out[32])
{
	snprintf(out, 32, "%.1f %%", 100 * (check->high - check->low) / check->high);
	if (check->high <= check->low)
		snprintf(out, 32, "0 %%");
	return out;
}

int tally_pass_check_judge(struct tally_pass_check *check,
			   const struct tally_counting_options *options, double maximum,
			   struct tally_error *err)
{
	if (!check->figures)
		return 0;
	size_t common = find_common(check, options);
	if (common == check->width)
		return 0;
	const struct tally_spread *lowest = figure_of(check, 0, common), *highest = lowest;
	for (size_t pass = 1; pass < check->passes; pass++) {
		const struct tally_spread *figure = figure_of(check, pass, common);
		if (figure->mean < lowest->mean)
			lowest = figure;
		if (figure->mean > highest->mean)
			highest = figure;
	}
	check->name = "the CPU time";
	if (common < options->event_count)
		check->name = options->events[common].name;
	check->low = lowest->mean;
	check->high = highest->mean;
	if (!maximum)
		maximum = check->is_time ? TALLY_PASS_DIFFERENCE_TIME : TALLY_PASS_DIFFERENCE_COUNT;
	double difference = check->high - check->low;
	if (difference <= maximum * check->high || chance_explains(check, lowest, highest) ||
	    (check->is_time && difference < TALLY_PASS_DIFFERENCE_NS))
		return 0;
	char text[32];
	double scale = check->is_time ? 1e-6 : 1;
	tally_error_set(err, -EILSEQ,
			"the runs did different work: %s differs by %s (%.0f to %.0f%s; the limit "
			"is %g %%), so counts of different runs don't belong together",
			check->name, difference_text(check, text), check->low * scale,
			check->high * scale, check->is_time ? " ms" : "", 100 * maximum);
	tally_error_hint(err, "give the command the same work each time (input, seeds, threads), "
			      "average with -r 5, allow more with --max-difference, or count "
			      "fewer events without --no-multiplex");
	return -EILSEQ;
}

size_t tally_pass_check_note(const struct tally_pass_check *check,
			     const struct tally_counting_options *options,
			     struct tally_arena *arena, const char **note)
{
	char text[32];
	if (!check->figures)
		return 0;
	*note = tally_arena_printf(
		arena,
		"the command ran once for each of %d sets of events that fit the counters; no "
		"figure of all the runs shows whether they did the same work",
		options->passes->count);
	if (check->name)
		*note = tally_arena_printf(
			arena,
			"the command ran once for each of %d sets of events that fit the counters; "
			"%s differs by %s between them",
			options->passes->count, check->name, difference_text(check, text));
	return *note != NULL;
}
