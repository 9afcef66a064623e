#include "profile/profile.h"

#include "base/buffer.h"
#include "base/vector.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROGRESS_EVERY = 20000 };

/* ---- interning ----------------------------------------------------------------------------------------- */

static uint32_t intern_place(struct tally_profile *profile, const struct tally_place *place)
{
	uint64_t key = tally_hash64(place->address << 1 | place->before) + place->file;
	for (;; key++) {
		bool added;
		uint64_t *slot = tally_map_put(&profile->place_index, key, &added);
		if (!slot)
			return UINT32_MAX;
		if (added) {
			*slot = profile->places.count;
			return tally_vector_push(&profile->places, *place) < 0 ? UINT32_MAX : (uint32_t)*slot;
		}
		const struct tally_place *there = &profile->places.items[*slot];
		if (there->file == place->file && there->address == place->address && there->before == place->before)
			return (uint32_t)*slot;
	}
}

/* The node of `place` called from `caller`. */
static uint32_t intern_node(struct tally_profile *profile, uint32_t caller, uint32_t place)
{
	bool added;
	uint64_t *slot = tally_map_put(&profile->node_index, (uint64_t)caller << 32 | place, &added);
	if (!slot)
		return TALLY_NODE_NONE;
	if (added) {
		struct tally_node node = { .caller = caller, .place = place, .function = UINT32_MAX };
		*slot = profile->nodes.count;
		if (profile->nodes.count >= UINT32_MAX - 1 || tally_vector_push(&profile->nodes, node) < 0)
			return TALLY_NODE_NONE;
	}
	return (uint32_t)*slot;
}

static bool same_row(const struct tally_row *a, const struct tally_row *b)
{
	return a->event == b->event && a->thread == b->thread && a->comm == b->comm && a->cpu == b->cpu &&
	       a->leaf == b->leaf;
}

static int add_row(struct tally_profile *profile, const struct tally_row *row)
{
	uint64_t key = tally_hash64((uint64_t)row->leaf << 32 | row->thread) ^
		       tally_hash64(((uint64_t)row->event << 48) + ((uint64_t)row->comm << 16) + row->cpu + 1);
	for (;; key++) {
		bool added;
		uint64_t *slot = tally_map_put(&profile->row_index, key, &added);
		if (!slot)
			return -ENOMEM;
		if (added) {
			*slot = profile->rows.count;
			return tally_vector_push(&profile->rows, *row);
		}
		struct tally_row *there = &profile->rows.items[*slot];
		if (!same_row(there, row))
			continue;
		there->samples += row->samples;
		there->period += row->period;
		return 0;
	}
}

/* ---- the filter ---------------------------------------------------------------------------------------- */

static bool leaf_passes(struct tally_profile *profile, const struct tally_profile_filter *filter)
{
	struct tally_recording *recording = profile->recording;
	if (!filter->objects && !filter->symbols)
		return true;
	if (!recording->chain.count)
		return false;
	uint32_t function = tally_names_function(&recording->names, &recording->chain.items[0].place, NULL);
	if (filter->objects && !tally_list_has(filter->objects, tally_names_object(&recording->names, function)) &&
	    !tally_list_has(filter->objects, tally_names_short_object(&recording->names, function)))
		return false;
	return !filter->symbols || tally_list_has(filter->symbols, tally_names_text(&recording->names, function));
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static int add_sample(struct tally_profile *profile, const struct tally_raw_record *raw,
		      const struct tally_record *record, const struct tally_profile_filter *filter)
{
	struct tally_recording *recording = profile->recording;
	const struct tally_sample *sample = &record->sample;
	size_t event_count;
	const struct tally_recorded_event *events = tally_perfdata_events(recording->data, &event_count);
	char buffer[16];

	if (tally_recording_chain(recording, raw, record) < 0)
		return -ENOMEM;
	if (filter && !leaf_passes(profile, filter)) {
		profile->filtered++;
		return 0;
	}
	uint32_t node = TALLY_NODE_NONE;
	for (size_t i = recording->chain.count; i-- > 0;) {
		uint32_t place = intern_place(profile, &recording->chain.items[i].place);
		if (place == UINT32_MAX)
			return -ENOMEM;
		node = intern_node(profile, node, place);
		if (node == TALLY_NODE_NONE)
			return -ENOMEM;
	}
	struct tally_row row = {
		.event = (uint32_t)(raw->event - events),
		.thread = tally_tasks_thread(&recording->tasks, sample->pid, sample->tid),
		.comm = tally_strings_intern(&recording->tasks.strings,
					     tally_tasks_comm(&recording->tasks, sample->pid, sample->tid, buffer)),
		.cpu = sample->type & TALLY_SAMPLE_CPU ? sample->cpu : UINT32_MAX,
		.leaf = node,
		.samples = 1,
		.period = sample->type & TALLY_SAMPLE_PERIOD ? sample->period : raw->event->attr.sample_period,
	};
	if (!(sample->type & TALLY_SAMPLE_PERIOD) && raw->event->attr.flags & TALLY_ATTR_FREQ)
		row.period = 1;
	profile->has_stacks |= tally_recording_has_stacks(&raw->event->attr);
	return row.thread == UINT32_MAX || row.comm == TALLY_STRING_NONE ? -ENOMEM : add_row(profile, &row);
}

static int name_nodes(struct tally_profile *profile)
{
	struct tally_names *names = &profile->recording->names;
	uint32_t *functions = malloc((profile->places.count + 1) * sizeof(*functions));
	int result = functions ? 0 : -ENOMEM;
	for (size_t i = 0; !result && i < profile->places.count; i++) {
		functions[i] = tally_names_function(names, &profile->places.items[i], NULL);
		if (functions[i] == UINT32_MAX)
			result = -ENOMEM;
	}
	for (size_t i = 0; !result && i < profile->nodes.count; i++)
		profile->nodes.items[i].function = functions[profile->nodes.items[i].place];
	free(functions);
	return result;
}

int tally_profile_new(struct tally_recording *recording, const struct tally_profile_filter *filter,
		      void (*progress)(void *context, double share), void *context, struct tally_profile **out,
		      struct tally_error *err)
{
	struct tally_profile *profile = calloc(1, sizeof(*profile));
	struct tally_raw_record raw;
	struct tally_record record;
	int result = profile ? 1 : -ENOMEM;
	uint64_t size = tally_perfdata_size(recording->data);
	if (!profile) {
		tally_recording_close(recording);
		return tally_error_set(err, -ENOMEM, "out of memory");
	}
	profile->recording = recording;
	if (filter && (result = tally_recording_filter(recording, filter, err)) < 0) {
		tally_profile_free(profile);
		return result;
	}
	while ((result = tally_recording_next(recording, &raw, &record, err)) > 0) {
		if (record.header.type == TALLY_RECORD_SAMPLE && add_sample(profile, &raw, &record, filter) < 0) {
			result = tally_error_set(err, -ENOMEM, "out of memory");
			break;
		}
		if (progress && size && !(recording->counts.records % PROGRESS_EVERY))
			progress(context, (double)raw.file_offset / (double)size);
	}
	if (!result && name_nodes(profile) < 0)
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
	if (!profile)
		return;
	tally_recording_close(profile->recording);
	tally_vector_release(&profile->places);
	tally_vector_release(&profile->nodes);
	tally_vector_release(&profile->rows);
	tally_map_release(&profile->place_index);
	tally_map_release(&profile->node_index);
	tally_map_release(&profile->row_index);
	free(profile);
}

/* ---- views --------------------------------------------------------------------------------------------- */

void tally_profile_totals(const struct tally_profile *profile, uint32_t event, uint64_t *samples, uint64_t *period)
{
	*samples = *period = 0;
	for (size_t i = 0; i < profile->rows.count; i++) {
		const struct tally_row *row = &profile->rows.items[i];
		*samples += row->event == event ? row->samples : 0;
		*period += row->event == event ? row->period : 0;
	}
}

/* Why there is nothing to show, and what would be. */
static void say_nothing_is_left(const struct tally_profile *profile, struct tally_error *err)
{
	enum { LISTED_MAX = 10 };
	const struct tally_tasks *tasks = &profile->recording->tasks;
	struct tally_buffer comms = { 0 };
	struct tally_map seen = { 0 };
	uint64_t filtered = profile->filtered + profile->recording->counts.filtered;
	if (!filtered) {
		tally_error_set(err, -ENOENT, "the recording has no samples");
		tally_error_hint(err, "what was recorded may have run too shortly, or hardly have used the CPU: "
				      "a higher -F, or -c 1 with another event, sees more");
		return;
	}
	for (size_t i = 0; i < tasks->threads.count && seen.count < LISTED_MAX; i++) {
		bool added = false;
		uint32_t comm = tasks->threads.items[i].comm;
		if (comm != TALLY_STRING_NONE && tally_map_put(&seen, comm, &added) && added)
			tally_buffer_printf(&comms, "%s%s", comms.length ? ", " : "",
					    tally_strings_text(&tasks->strings, comm));
	}
	tally_error_set(err, -ENOENT, "none of the recording's %llu samples passes the filters",
			(unsigned long long)filtered);
	tally_error_hint(err, "its commands are %s; 'tally report --percent-limit 0' shows all there is",
			 tally_buffer_string(&comms));
	tally_map_release(&seen);
	tally_buffer_release(&comms);
}

int tally_profile_event(const struct tally_profile *profile, const char *name, uint32_t *event,
			struct tally_error *err)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(profile->recording->data, &count);
	size_t named = name ? tally_event_find(events, count, name) : 0;
	if (name && named == count)
		return tally_event_not_found(profile->recording->data, name, err);
	for (*event = (uint32_t)named; !name && *event < count; ++*event) {
		uint64_t samples, period;
		tally_profile_totals(profile, *event, &samples, &period);
		if (samples)
			break;
	}
	if (*event < count)
		return 0;
	say_nothing_is_left(profile, err);
	return -ENOENT;
}
