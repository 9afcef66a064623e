/* Warnings about what limits the trust in a recording. */
#include "abi/abi.h"
#include "base/buffer.h"
#include "base/input_limits.h"
#include "base/number_text.h"
#include "base/terminal.h"
#include "perfdata/perfdata.h"
#include "profile/profile.h"
#include "task/jit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *either(uint64_t count, const char *one, const char *more)
{
	if (count == 1)
		return one;
	return more;
}

/* Debian's packages have dwz's files as .dwz/ARCHITECTURE/PACKAGE.debug. */
static void warn_partial(const struct tally_names_gaps *gaps, struct tally_buffer *out)
{
	const char *slash = strrchr(gaps->companion, '/'), *dwz = strstr(gaps->companion, ".dwz/");
	const char *file = slash ? slash + 1 : gaps->companion, *dot = strrchr(file, '.');
	char more[32] = "";
	if (gaps->partial_objects > 1)
		snprintf(more, sizeof(more), " (and %s more)",
			 tally_number(gaps->partial_objects - 1));
	tally_buffer_printf(out, "inlined functions of %s%s are not shown: %s is missing; ",
			    gaps->partial_object, more, file);
	if (dwz && dot)
		tally_buffer_printf(out, "install %.*s-dbgsym\n", (int)(dot - file), file);
	else if (dot && !strcmp(dot, ".dwo"))
		tally_buffer_text(out, "keep it where it was compiled\n");
	else
		tally_buffer_text(out, "install it with the debug files\n");
}

static void warn_names(const struct tally_names_gaps *gaps, bool is_packed,
		       struct tally_buffer *out)
{
	char hint[TALLY_INPUT_HINT];
	if (gaps->changed_files == 1)
		tally_buffer_printf(
			out,
			"%s is not the recorded file (it %s): its functions have no names; "
			"--symfs DIR searches DIR\n",
			gaps->changed_file, gaps->difference);
	else if (gaps->changed_files)
		tally_buffer_printf(out,
				    "%s (it %s) and %s more are not the recorded files: they name "
				    "no functions; --symfs DIR searches DIR\n",
				    gaps->changed_file, gaps->difference,
				    tally_number(gaps->changed_files - 1));
	if (gaps->distrusted_maps)
		tally_buffer_printf(
			out,
			"%s perf map%s not used, belonging neither to the recorded process's user "
			"nor to root\n",
			tally_number(gaps->distrusted_maps),
			either(gaps->distrusted_maps, " was", "s were"));
	if (gaps->map_lines_skipped)
		tally_buffer_printf(out, "%s malformed line%s of perf maps %s skipped\n",
				    tally_number(gaps->map_lines_skipped),
				    either(gaps->map_lines_skipped, "", "s"),
				    either(gaps->map_lines_skipped, "was", "were"));
	if (gaps->packed_damaged)
		tally_buffer_text(
			out,
			"the recording's own names are damaged: using this machine's files\n");
	if (gaps->packed_newer)
		tally_buffer_text(
			out,
			"the recording's own names are of a newer tally: using this machine's "
			"files\n");
	if (gaps->kernel_hidden)
		tally_buffer_text(
			out,
			"kernel functions are not named: /proc/kallsyms hides its addresses "
			"('tally doctor' tells how)\n");
	if (gaps->vmlinux_differs)
		tally_buffer_text(
			out,
			"the given vmlinux is another build than the recorded kernel: its names "
			"may be wrong\n");
	if (gaps->partial_objects)
		warn_partial(gaps, out);
	if (gaps->refused_objects)
		tally_buffer_printf(
			out,
			"debug information of %s%s is not read whole: its units share too much; "
			"%s\n",
			gaps->refused_object, either(gaps->refused_objects, "", " and others"),
			tally_input_hint(TALLY_INPUT_DWARF,
					 tally_input_rows[TALLY_INPUT_DWARF].bytes / 2, hint));
	if (gaps->nameless.listed)
		tally_buffer_printf(
			out,
			"%.0f%% of samples lack names, in %s: install debug files (-dbgsym) or use "
			"--debuginfod\n",
			gaps->nameless.percent, gaps->nameless.objects);
	if (gaps->absent.listed)
		tally_buffer_printf(
			out,
			"%.0f%% of samples lack names, in %s (not found %s): use --symfs DIR, or "
			"'tally pack' where recorded\n",
			gaps->absent.percent, gaps->absent.objects,
			is_packed ? "when they were named" : "on this machine");
	if (gaps->unfetched_files)
		tally_buffer_printf(out, "debuginfod: %s of %s debug file%s could not be fetched\n",
				    tally_number(gaps->unfetched_files),
				    tally_number(gaps->unfetched_files + gaps->fetched_files),
				    either(gaps->unfetched_files + gaps->fetched_files, "", "s"));
	if (gaps->fetching_ended)
		tally_buffer_text(out, "debuginfod: the rest was not requested\n");
	if (gaps->lacks_xz)
		tally_buffer_text(
			out,
			"names in .gnu_debugdata are left out: liblzma.so.5 is not installed "
			"(Debian: liblzma5)\n");
	if (gaps->kernel_differs)
		tally_buffer_text(
			out,
			"kernel functions are not named: the recording is of another kernel\n");
}

static void warn_dump(const char *why, size_t count, const char *file, struct tally_buffer *out)
{
	if (count)
		tally_buffer_printf(out,
				    "the dump of JIT code %s %s: its functions are not named\n",
				    file, why);
}

static void warn_jits(const struct tally_jits *jits, struct tally_buffer *out)
{
	const struct tally_jit_gaps *gaps = &jits->gaps;
	warn_dump("is gone", gaps->missing, gaps->file, out);
	warn_dump("is not the file that was recorded", gaps->changed, gaps->file, out);
	warn_dump("was not used, because it belongs to another user", gaps->distrusted, gaps->file,
		  out);
	warn_dump("can't be read", gaps->unreadable, gaps->file, out);
	if (jits->items.count && (jits->has_no_times || gaps->other_clock))
		tally_buffer_text(
			out,
			"names of replaced JIT code may be wrong: its dump uses another clock "
			"(perf record needs -k mono)\n");
}

/* ---- stacks -------------------------------------------------------------- */

/* A reason why stacks don't reach the start of their thread, and the number of stacks that it
 * applies to. */
struct reason {
	uint64_t stacks;
	void (*put)(const struct tally_recording_counts *counts, struct tally_buffer *out);
};

static void put_cut(const struct tally_recording_counts *counts, struct tally_buffer *out)
{
	const struct tally_cut_stacks *cut = &counts->cut;
	if (cut->bytes && cut->is_at_least)
		tally_buffer_printf(
			out,
			"the copies were too short; record with more than --call-graph "
			"dwarf,%" PRIu64,
			cut->bytes);
	else if (cut->bytes)
		tally_buffer_printf(out,
				    "the copies were too short; --call-graph dwarf,%" PRIu64
				    " would have sufficed",
				    cut->bytes);
	else
		tally_buffer_text(
			out,
			"they exceed the largest copy (64512 bytes); 'tally record' completes them "
			"from memory");
}

static void put_cut_when_recorded(const struct tally_recording_counts *counts,
				  struct tally_buffer *out)
{
	(void)counts;
	tally_buffer_text(
		out, "they were longer than their copies, and changed before the rest was read");
}

static void put_deep(const struct tally_recording_counts *counts, struct tally_buffer *out)
{
	(void)counts;
	_Static_assert(TALLY_USER_FRAMES_MAX == 8000, "as the text says");
	tally_buffer_text(out, "they exceed the 8,000 frames that 'tally record' keeps");
}

/* The kernel stops copying at a page that isn't there: after the end of a stack, never touched, or
 * freed when exec replaced the program. */
static void put_ended(const struct tally_recording_counts *counts, struct tally_buffer *out)
{
	(void)counts;
	tally_buffer_text(
		out,
		"the kernel had no more to copy: exec replaced the program, or memory was never "
		"touched");
}

/* For frame pointers the kernel makes the chain, and doesn't tell when it leaves out callers. */
static void put_full(const struct tally_recording_counts *counts, struct tally_buffer *out)
{
	const uint32_t usual = tally_chain_limit(&(struct tally_attr){ .sample_max_stack = 0 });
	tally_buffer_printf(out, "the kernel keeps %u frames; ", counts->chain_limit);
	if (counts->chain_limit < usual)
		tally_buffer_text(out, "record with a larger --max-stack, or --call-graph dwarf");
	else
		tally_buffer_text(
			out,
			"record with --call-graph dwarf, or raise kernel.perf_event_max_stack");
}

static void put_lost(const struct tally_recording_counts *counts, struct tally_buffer *out)
{
	(void)counts;
	tally_buffer_text(out, "nothing leads from code without unwind rules to its callers");
}

static void put_unstarted(const struct tally_recording_counts *counts, struct tally_buffer *out)
{
	(void)counts;
	tally_buffer_text(
		out, "code without frame pointers hides callers; record with --call-graph dwarf");
}

/* A few of thousands of stacks are always incomplete; trees show them as [truncated]. */
static void warn_stacks(const struct tally_recording_counts *counts, bool verbose,
			struct tally_buffer *out)
{
	enum { WORTH_SAYING = 20 }; /* one in so many */
	const struct reason reasons[] = {
		{ counts->stacks_cut - counts->cut.ended, put_cut },
		{ counts->chains_cut - counts->chains_deep - counts->chains_ended,
		  put_cut_when_recorded },
		{ counts->chains_deep, put_deep },
		{ counts->cut.ended + counts->chains_ended, put_ended },
		{ counts->chains_full, put_full },
		{ counts->stacks_lost + counts->chains_lost, put_lost },
		{ counts->chains_unstarted + counts->chains_astray, put_unstarted },
	};
	const struct reason *most = reasons;
	uint64_t incomplete = 0, stacks = counts->stacks + counts->chains;
	for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++) {
		incomplete += reasons[i].stacks;
		if (reasons[i].stacks > most->stacks)
			most = &reasons[i];
	}
	if (incomplete > stacks / WORTH_SAYING) {
		tally_buffer_printf(out, "%.0f%% of the stacks are incomplete: ",
				    100 * (double)incomplete / (double)stacks);
		most->put(counts, out);
		tally_buffer_char(out, '\n');
	}
	for (size_t i = 0; verbose && i < sizeof(reasons) / sizeof(*reasons); i++) {
		if (!reasons[i].stacks)
			continue;
		tally_buffer_printf(out, "incomplete stacks: %s of %s: ",
				    tally_number(reasons[i].stacks), tally_number(stacks));
		reasons[i].put(counts, out);
		tally_buffer_char(out, '\n');
	}
}

/* ---- the rest ------------------------------------------------------------ */

/* Feature sections that another tool or a later perf has added. */
static void warn_features(const struct tally_perfdata *data, struct tally_buffer *out)
{
	unsigned unknown = 0;
	for (unsigned feature = TALLY_FEATURE_KNOWN_MAX; feature < TALLY_FEATURE_MAX; feature++) {
		bool is_known = feature == TALLY_FEATURE_TALLY ||
				feature == TALLY_FEATURE_SIMPLEPERF_FILE ||
				feature == TALLY_FEATURE_SIMPLEPERF_META_INFO;
		unknown += !is_known && tally_perfdata_feature(data, feature).size;
	}
	if (unknown)
		tally_buffer_printf(
			out, "%u feature section%s skipped\n", unknown,
			either(unknown, " of an unknown kind was", "s of unknown kinds were"));
}

static void warn_trace(const struct tally_recording_counts *counts, struct tally_buffer *out)
{
	if (!counts->trace.bytes)
		return;
	tally_recording_put_trace(counts, out);
	tally_buffer_text(out, " is not decoded: ");
	tally_recording_put_decoder(counts, out);
	tally_buffer_char(out, '\n');
}

static void warn_saturated(const struct tally_recording *recording, struct tally_buffer *out)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(recording->data, &count);
	for (size_t i = 0; i < count; i++) {
		uint64_t cut = tally_recording_weights_cut(recording, (uint32_t)i);
		if (!cut)
			continue;
		tally_buffer_text(out, "sums of '");
		tally_put_name(out, events[i].name);
		tally_buffer_printf(out,
				    "' end at 2^%u - 1: shares are not exact, since %s sample%s "
				    "for less or nothing\n",
				    recording->sums.are_signed ? 63u : 64u,
				    tally_number(cut),
				    either(cut, " counts", "s count"));
	}
}

void tally_profile_warnings(const struct tally_recording *recording, struct tally_buffer *out)
{
	const struct tally_recording_counts *counts = &recording->counts;
	const struct tally_error *damage = tally_perfdata_damage(recording->data);
	if (damage)
		tally_buffer_printf(out, "%s; everything before is used\n", damage->message);
	if (counts->lost)
		tally_buffer_printf(out,
				    "%s record%s lost: the figures are too low (record with a "
				    "larger -m or a lower -F)\n",
				    tally_number(counts->lost),
				    either(counts->lost, " was", "s were"));
	if (counts->throttled)
		tally_buffer_printf(
			out,
			"the kernel throttled sampling %s time%s: the figures are too low there\n",
			tally_number(counts->throttled), either(counts->throttled, "", "s"));
	warn_saturated(recording, out);
	warn_stacks(counts, recording->names.sources.verbose, out);
	if (counts->guests)
		tally_buffer_printf(
			out,
			"%s sample%s in guests, whose code has no names here: record in "
			"the guest to see it\n",
			tally_number(counts->guests), either(counts->guests, " is", "s are"));
	if (counts->stacks_foreign)
		tally_buffer_printf(
			out,
			"%s copied stack%s of another architecture and not unwound (record with "
			"--call-graph fp)\n",
			tally_number(counts->stacks_foreign),
			either(counts->stacks_foreign, " is", "s are"));
	if (counts->stacks_32bit)
		tally_buffer_printf(out,
				    "%s copied stack%s of 32-bit programs and not unwound (record "
				    "these with --call-graph fp)\n",
				    tally_number(counts->stacks_32bit),
				    either(counts->stacks_32bit, " is", "s are"));
	if (counts->undecodable)
		tally_buffer_printf(
			out, "%s record%s own size and %s skipped\n",
			tally_number(counts->undecodable),
			either(counts->undecodable, " doesn't fit its", "s don't fit their"),
			either(counts->undecodable, "was", "were"));
	if (counts->unknown_ids)
		tally_buffer_printf(
			out,
			"%s count%s of events that the recording does not describe %s left "
			"out\n",
			tally_number(counts->unknown_ids), either(counts->unknown_ids, "", "s"),
			either(counts->unknown_ids, "was", "were"));
	if (tally_off_cpu_is_unknown(recording))
		tally_buffer_text(
			out, TALLY_OFF_CPU_NAME
			" is shown by the number of waits: lengths need switch events "
			"(tally record --off-cpu)\n");
	if (counts->samples) /* otherwise the error says so */
		warn_trace(counts, out);
	warn_features(recording->data, out);
	if (counts->unknown)
		tally_buffer_printf(out, "%s record%s skipped\n", tally_number(counts->unknown),
				    either(counts->unknown, " of an unknown type was",
					   "s of unknown types were"));
	warn_names(&recording->names.gaps, tally_names_are_carried(&recording->names), out);
	if (recording->names.sources.verbose && recording->names.gaps.details.length)
		tally_buffer_append(out, recording->names.gaps.details.bytes,
				    recording->names.gaps.details.length);
	if (recording->tasks.jits)
		warn_jits(recording->tasks.jits, out);
}
