/* Why a recording, or what its filters left of it, has nothing to show. */
#include "recording/recording.h"

#include "base/number_text.h"
#include "base/terminal.h"
#include "base/text.h"

#include <errno.h>
#include <string.h>

/* perf's names for kinds of traces (tools/perf/util/auxtrace.h), and whether its decoders make
 * samples of them. */
static const struct {
	const char *name;
	bool has_samples;
} traces[] = {
	[1] = { "Intel PT", true },         [2] = { "Intel BTS", true },
	[3] = { "CoreSight ETM", true },    [4] = { "Arm SPE", true },
	[5] = { "s390 CPU-MF", false },     [6] = { "HiSilicon PTT", false },
	[7] = { "powerpc VPA DTL", false },
};

void tally_recording_put_trace(const struct tally_recording_counts *counts,
			       struct tally_buffer *out)
{
	char size[TALLY_SIZE_TEXT];
	const size_t known = sizeof(traces) / sizeof(traces[0]);
	const char *name = NULL;
	if (counts->trace.type < known)
		name = traces[counts->trace.type].name;
	tally_buffer_printf(out, "%s of %s trace (AUX data)",
			    tally_size_text(counts->trace.bytes, size),
			    tally_text_or(name, "hardware"));
}

void tally_recording_put_decoder(const struct tally_recording_counts *counts,
			       struct tally_buffer *out)
{
	const size_t known = sizeof(traces) / sizeof(traces[0]);
	if (counts->trace.type < known && traces[counts->trace.type].has_samples)
		tally_buffer_text(
			out,
			"'perf inject --itrace -i FILE -o OUT' makes samples of it, which tally "
			"reads");
	else
		tally_buffer_text(out, "'perf script -D' shows what perf can decode of it");
}

static int has_only_a_trace(const struct tally_recording_counts *counts, struct tally_error *err)
{
	struct tally_buffer what = { 0 }, decoder = { 0 };
	tally_recording_put_trace(counts, &what);
	tally_recording_put_decoder(counts, &decoder);
	tally_error_set(err, -ENOENT, "the recording has %s but no samples",
			tally_buffer_string(&what));
	tally_error_hint(err, "%s", tally_buffer_string(&decoder));
	tally_buffer_release(&what);
	tally_buffer_release(&decoder);
	return -ENOENT;
}

static int has_no_samples(const struct tally_recording *recording, struct tally_error *err)
{
	tally_error_set(err, -ENOENT, "the recording has no samples");
	if (recording->counts.stat_counts) {
		tally_error_set(
			err, -ENOENT,
			"the recording has counts but no samples: perf stat record wrote it");
		tally_error_hint(
			err,
			"perf stat report shows them; tally stat -j saves counts that tally "
			"compare reads");
		return -ENOENT;
	}
	if (recording->counts.trace.bytes || recording->counts.trace.is_told)
		return has_only_a_trace(&recording->counts, err);
	if (tally_perfdata_is_unfinished(recording->data)) {
		tally_error_hint(
			err,
			"its recorder did not finish, perhaps because it was killed; stop it with "
			"SIGINT");
		return -ENOENT;
	}
	tally_error_hint(err,
			 "the program may have hardly used the CPU; try a higher -F, or -c 1 with "
			 "another event");
	return -ENOENT;
}

void tally_recording_leave_out(struct tally_recording *recording, uint32_t comm)
{
	if (comm == TALLY_STRING_NONE)
		return;
	uint64_t *times = tally_map_put(&recording->filter.left_out, comm, NULL);
	if (times)
		++*times;
}

static bool is_behind(const struct tally_map_slot *slot, const struct tally_map_slot *other)
{
	if (slot->value != other->value)
		return slot->value < other->value;
	return slot->key > other->key;
}

/* Returns the command with the most left out, after `last` in that order. */
static const struct tally_map_slot *next_left_out(const struct tally_map *left_out,
						  const struct tally_map_slot *last)
{
	const struct tally_map_slot *next = NULL;
	for (size_t i = 0; i < left_out->capacity; i++) {
		const struct tally_map_slot *slot = &left_out->slots[i];
		if (slot->used && (!last || is_behind(slot, last)) &&
		    (!next || is_behind(next, slot)))
			next = slot;
	}
	return next;
}

/* Appends the commands with the most left out, and how to name one with a comma. */
static void list_left_out(const struct tally_recording *recording, struct tally_buffer *out)
{
	enum { LISTED_MAX = 10 };
	const struct tally_map *left_out = &recording->filter.left_out;
	const struct tally_map_slot *last = NULL;
	char name[64], with_comma[64] = "";
	for (unsigned i = 0; i < LISTED_MAX && (last = next_left_out(left_out, last)); i++) {
		tally_terminal_clean_name(tally_strings_text(&recording->tasks.strings,
							     (uint32_t)last->key),
					  name, sizeof(name));
		tally_buffer_printf(out, "%s%s", i ? ", " : "its commands are ", name);
		if (strchr(name, ',') && !*with_comma)
			strcpy(with_comma, name);
	}
	if (!out->length)
		return;
	tally_buffer_text(out, left_out->count > LISTED_MAX ? " and others; " : "; ");
	if (*with_comma)
		tally_buffer_printf(out, "a comma ends a name in a list, so write '%.*s*'; ",
				    (int)strcspn(with_comma, ","), with_comma);
}

int tally_recording_is_empty(const struct tally_recording *recording, uint64_t left_out,
			     struct tally_error *err)
{
	struct tally_buffer comms = { 0 };
	if (!left_out && !recording->counts.filtered)
		return has_no_samples(recording, err);
	list_left_out(recording, &comms);
	if (!recording->counts.samples)
		tally_error_set(err, -ENOENT, "nothing in the recording passes the filters");
	else if (recording->counts.samples == 1)
		tally_error_set(err, -ENOENT,
				"the recording's only sample doesn't pass the filters");
	else
		tally_error_set(err, -ENOENT,
				"none of the recording's %s samples passes the filters",
				tally_number(recording->counts.samples));
	tally_error_hint(err, "%s'tally report --percent-limit 0' shows everything",
			 tally_buffer_string(&comms));
	tally_buffer_release(&comms);
	return -ENOENT;
}
