/* Makes a profile in steps: reads the samples, fetches and resolves the names of their places, and
 * rearranges the rows as the options say.  Then come figures of the finished profile, and the
 * search for chains that lost their way. */
#include "profile/profile.h"

#include "base/vector.h"
#include "profile/profile_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PROGRESS_EVERY = 20000 };

static int read_samples(struct tally_profile *profile, const struct tally_profile_options *options,
			struct tally_error *err)
{
	struct tally_recording *recording = profile->recording;
	struct tally_sample_reader *reader = tally_sample_reader_new(profile, options);
	uint64_t size = tally_perfdata_size(recording->data);
	struct tally_raw_record raw;
	struct tally_record record;
	int result = 1;
	if (!reader)
		result = tally_error_set(err, -ENOMEM, "out of memory");
	while (result > 0 && (result = tally_recording_next(recording, &raw, &record, err)) > 0) {
		if (record.header.type == TALLY_RECORD_SAMPLE &&
		    tally_sample_reader_add(reader, &raw, &record) < 0)
			result = tally_error_set(err, -ENOMEM, "out of memory");
		if (options->progress && size && !(recording->counts.records % PROGRESS_EVERY))
			options->progress(options->context, (double)raw.file_offset / (double)size);
	}
	if (!result && tally_sample_reader_finish(reader) < 0)
		result = tally_error_set(err, -ENOMEM, "out of memory");
	tally_sample_reader_free(reader);
	tally_row_table_finish(&profile->rows);
	return result;
}

static void release(struct tally_profile *profile)
{
	tally_recording_close(profile->recording);
	tally_vector_release(&profile->classes);
	tally_row_table_release(&profile->rows);
	tally_event_rows_release(&profile->by_event);
	tally_place_table_release(&profile->places);
	tally_facts_release(&profile->facts);
	tally_map_release(&profile->merged_threads);
	tally_map_release(&profile->leaves_left_out);
	tally_vector_release(&profile->spreads);
	tally_vector_release(&profile->idle);
	tally_vector_release(&profile->longest);
	free(profile->names);
}

static int name_places(struct tally_profile *profile)
{
	size_t count = profile->places.places.count;
	profile->names = malloc((count + 1) * sizeof(*profile->names));
	if (!profile->names || tally_row_table_heat(&profile->rows, &profile->places) < 0 ||
	    tally_names_resolve(&profile->recording->names, profile->places.places.items, count,
				profile->names) < 0)
		return -ENOMEM;
	return tally_names_tell_apart(&profile->recording->names);
}

static int fetch_names(struct tally_profile *profile)
{
	return tally_fetch_names(&profile->recording->names, &profile->rows, &profile->places);
}

static bool can_be_read_again(const struct tally_recording *recording)
{
	struct stat status;
	return recording->path && strcmp(recording->path, "-") && !stat(recording->path, &status) &&
	       (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));
}

/* Both recordings are of the same file. */
static int fetch_for(struct tally_names *to, struct tally_recording *recording,
		     const struct tally_profile_options *options, struct tally_error *err)
{
	struct tally_profile profile = { .recording = recording };
	struct tally_names *from = &recording->names;
	tally_names_use_sources(from, &to->sources);
	int result = tally_recording_filter(recording, &options->filter, err);
	if (!result)
		result = read_samples(&profile, options, err);
	tally_buffer_clear(&from->gaps.details); /* names are looked up once more */
	if (!result && fetch_names(&profile) < 0)
		result = tally_error_set(err, -ENOMEM, "out of memory");
	to->objects.fetched = from->objects.fetched;
	memset(&from->objects.fetched, 0, sizeof(from->objects.fetched));
	tally_buffer_append(&to->gaps.details, from->gaps.details.bytes, from->gaps.details.length);
	to->gaps.fetched_files = from->gaps.fetched_files;
	to->gaps.unfetched_files = from->gaps.unfetched_files;
	to->gaps.fetching_ended = from->gaps.fetching_ended;
	release(&profile);
	return result;
}

int tally_recording_fetch_names(struct tally_recording *recording,
				const struct tally_profile_options *options,
				struct tally_error *err)
{
	struct tally_profile_options chosen = *options;
	struct tally_recording *again;
	if (!recording->names.sources.asks_debuginfod)
		return 0;
	if (!can_be_read_again(recording)) {
		tally_error_set(
			err, -ESPIPE,
			"--debuginfod must find hot objects first, and a pipe can't be read "
			"twice");
		tally_error_hint(err, "write the recording to a file, and read that");
		return -ESPIPE;
	}
	int result = tally_recording_open(recording->path, &again, err);
	if (result < 0)
		return result;
	/* These filters would need the leaves' names. */
	chosen.filter.objects = chosen.filter.symbols = NULL;
	chosen.merge_threads = chosen.merge_cpus = true;
	chosen.facts = 0;
	chosen.of_branches = false;
	again->options.marks_cut = true;
	return fetch_for(&recording->names, again, &chosen, err);
}

int tally_profile_new(struct tally_recording *recording,
		      const struct tally_profile_options *options, struct tally_profile **out,
		      struct tally_error *err)
{
	struct tally_profile_options chosen = { 0 };
	struct tally_profile *profile = calloc(1, sizeof(*profile));
	if (!profile) {
		tally_recording_close(recording);
		return tally_error_set(err, -ENOMEM, "out of memory");
	}
	profile->recording = recording;
	profile->of_branches = options && options->of_branches;
	profile->of_costs = options && options->by_cost;
	profile->notes_longest = options && options->arranges_waits && recording->off_cpu.is_due;
	recording->options.marks_cut = true;
	if (options)
		chosen = *options;
	profile->asked = chosen.filter;
	if (chosen.only_places)
		tally_recording_forget_threads(recording);
	profile->places.merges_unknown = chosen.merge_unknown;
	/* These filters need the name of a sample's leaf, so it is not known yet which threads
	 * count. */
	chosen.merge_threads &= !chosen.filter.objects && !chosen.filter.symbols;
	/* Which leaves remain is known only when all stacks are. */
	struct tally_profile_filter leaves = { .objects = NULL };
	if (chosen.joins_runtimes) {
		leaves.objects = chosen.filter.objects;
		leaves.symbols = chosen.filter.symbols;
		chosen.filter.objects = chosen.filter.symbols = NULL;
	}
	recording->off_cpu.wants_wakers = chosen.with_wakers;
	bool names_while_reading = chosen.filter.objects || chosen.filter.symbols ||
				   tally_sort_keys_use_names(chosen.facts);
	int result = tally_recording_filter(recording, &chosen.filter, err);
	if (!result && names_while_reading)
		result = tally_recording_fetch_names(recording, &chosen, err);
	if (!result)
		result = read_samples(profile, &chosen, err);
	chosen.with_wakers &= recording->off_cpu.wants_wakers;
	if (!result && chosen.with_wakers && tally_profile_prepare_wakers(profile) < 0)
		result = tally_error_set(err, -ENOMEM, "out of memory");
	if (!result &&
	    ((!names_while_reading && fetch_names(profile) < 0) || name_places(profile) < 0 ||
	     (chosen.arranges_waits && tally_profile_arrange_waits(profile, &chosen) < 0) ||
	     (chosen.joins_runtimes && tally_profile_join_runtimes(profile, &leaves) < 0) ||
	     (chosen.leaves_out_idle && tally_profile_leave_out_idle(profile) < 0) ||
	     tally_event_rows_make(profile, &profile->by_event) < 0 ||
	     (!chosen.hides_functions && tally_note_nameless(profile) < 0)))
		result = tally_error_set(err, -ENOMEM, "out of memory");
	if (result < 0) {
		tally_profile_free(profile);
		return result;
	}
	*out = profile;
	return 0;
}

void tally_profile_free(struct tally_profile *profile)
{
	if (profile)
		release(profile);
	free(profile);
}

/* ---- views --------------------------------------------------------------- */

void tally_profile_totals(const struct tally_profile *profile, uint32_t event, uint64_t *samples,
			  uint64_t *period)
{
	struct tally_numbers rows = tally_event_rows(&profile->by_event, event);
	*samples = *period = 0;
	for (size_t i = 0; i < rows.count; i++) {
		const struct tally_row *row = &profile->rows.rows.items[rows.items[i]];
		*samples += row->samples;
		*period += row->period;
	}
}

double tally_profile_spread(const struct tally_profile *profile, uint32_t event)
{
	if (event >= profile->spreads.count || !(profile->spreads.items[event].sum > 0))
		return 1;
	const struct tally_period_spread *spread = &profile->spreads.items[event];
	return (double)spread->samples * spread->squares / (spread->sum * spread->sum);
}

int tally_profile_count_tasks(const struct tally_profile *profile, uint32_t event, size_t *comms,
			      size_t *threads)
{
	struct tally_map comm_set = { 0 }, thread_set = { 0 };
	struct tally_numbers rows = tally_event_rows(&profile->by_event, event);
	uint32_t last = UINT32_MAX;
	int result = 0;
	for (size_t i = 0; i < rows.count; i++) {
		uint32_t number = profile->rows.rows.items[rows.items[i]].class;
		const struct tally_class *class = &profile->classes.items[number];
		if (number == last)
			continue;
		last = number;
		if (!tally_map_put(&comm_set, class->comm, NULL) ||
		    !tally_map_put(&thread_set, class->thread, NULL))
			result = -ENOMEM;
	}
	*comms = comm_set.count;
	*threads = thread_set.count;
	if (event < profile->by_event.events)
		*threads += profile->by_event.merged_threads[event];
	/* not counting the one that stands for merged threads */
	*threads -= profile->merged_threads.count && thread_set.count;
	tally_map_release(&comm_set);
	tally_map_release(&thread_set);
	return result;
}

int tally_profile_event(const struct tally_profile *profile, const char *name, uint32_t *event,
			struct tally_error *err)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(profile->recording->data,
									  &count);
	const struct tally_sample_filter *filter = &profile->recording->filter.samples;
	bool is_filtered = name && filter->event && !strcmp(filter->event, name) &&
			   filter->event_index < count;
	size_t named = 0;
	if (is_filtered)
		named = filter->event_index;
	else if (name)
		named = tally_event_find(events, count, name);
	if (name && named == count)
		return tally_event_not_found(profile->recording->data, name, err);
	for (*event = (uint32_t)named; !name && *event < count; ++*event) {
		uint64_t samples, period;
		tally_profile_totals(profile, *event, &samples, &period);
		if (samples || tally_profile_idle(profile, *event).samples)
			break;
	}
	if (*event < count)
		return 0;
	tally_recording_is_empty(profile->recording, profile->filtered, err);
	tally_hint_meant(&profile->recording->names, &profile->leaves_left_out, &profile->asked,
			 err);
	return -ENOENT;
}

/* Finds chains that lost their way along frame pointers.
 *
 * The kernel follows frame pointers as long as they look valid, and doesn't tell why a chain ends.
 * A stack is complete if its outermost function is one in which programs or threads begin.  For
 * chains that the kernel made, this is decided by the function's name.
 */

/* True if the kernel made the user chains.  Recorders that unwind stack copies either keep the
 * copies, or say so by a max_stack that the kernel doesn't have. */
bool tally_profile_follows_frame_pointers(const struct tally_profile *profile)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(profile->recording->data,
									  &count);
	for (size_t i = 0; i < count; i++)
		if (events[i].attr.sample_type & TALLY_SAMPLE_CALLCHAIN)
			return !(events[i].attr.sample_type & TALLY_SAMPLE_STACK_USER) &&
			       !(events[i].attr.flags & TALLY_ATTR_EXCLUDE_CALLCHAIN_USER) &&
			       !(events[i].attr.branch_sample_type & TALLY_BRANCH_CALL_STACK) &&
			       events[i].attr.sample_max_stack != UINT16_MAX;
	return false;
}

/* True if a chain that ends in this place lacks callers.  A chain that ends in the kernel belongs
 * to a kernel thread, or to a task without a program, and lacks none.  A function without a name
 * may be the start of a thread, so it counts as one.  An address outside of all mappings does
 * not. */
static bool is_unstarted(const struct tally_profile *profile, uint32_t place)
{
	const struct tally_names *names = &profile->recording->names;
	const struct tally_function *function =
		&names->functions.items[tally_profile_symbol(profile, place)];
	const struct tally_place *at = &profile->places.places.items[place];
	if (at->file == TALLY_FILE_NONE)
		return at->address != TALLY_PLACE_CUT; /* cut stacks are counted elsewhere */
	bool is_user = function->kind == TALLY_FRAME_PROGRAM ||
		       function->kind == TALLY_FRAME_LIBRARY;
	return is_user && function->name != TALLY_STRING_NONE &&
	       !tally_is_start(tally_strings_text(&names->strings, function->bare));
}

void tally_profile_count_unstarted(struct tally_profile *profile)
{
	uint64_t *unstarted = &profile->recording->counts.chains_unstarted;
	*unstarted = 0;
	const struct tally_recording *recording = profile->recording;
	size_t events;
	const struct tally_recorded_event *event = tally_perfdata_events(recording->data, &events);
	/* rows of branches are no stacks */
	bool has_whole_chains = !recording->options.leaves_only && !recording->filter.frames_max &&
				!profile->of_branches;
	if (!has_whole_chains || !tally_profile_follows_frame_pointers(profile))
		return;
	for (size_t i = 0; i < profile->rows.rows.count; i++) {
		const uint8_t *end, *at = tally_row_stack(&profile->rows, i, &end);
		const struct tally_row *row = &profile->rows.rows.items[i];
		uint32_t outermost = 0, frames = 0, of = profile->classes.items[row->class].event;
		if (!(event[of].attr.sample_type & TALLY_SAMPLE_CALLCHAIN))
			continue;
		for (; at && at < end; frames++)
			outermost = tally_stack_next_place(&at);
		if (frames && is_unstarted(profile, outermost))
			*unstarted += row->samples;
	}
}
