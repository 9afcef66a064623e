/* Reads records in order of time, applies them to the tasks, and completes samples before it gives
 * them.  The file has groups of events first, then opening and closing, then filters, then a
 * record's way from next_record() to take(). */
#include "recording/recording.h"

#include "abi/abi.h"
#include "base/extremes.h"
#include "base/reader.h"
#include "base/vector.h"
#include "naming/packed.h"
#include "perfdata/perfdata.h"
#include "task/jit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* True if a sample's record carries the counts of its group, which become samples of their own. */
static inline bool tally_sample_has_group(const struct tally_recording *recording,
					  const struct tally_raw_record *raw,
					  const struct tally_record *record)
{
	return !recording->options.keep_groups && record->header.type == TALLY_RECORD_SAMPLE &&
	       record->sample.type & TALLY_SAMPLE_READ &&
	       raw->event->attr.read_format & TALLY_FORMAT_ID && record->sample.read.values;
}

static inline bool tally_group_has_more(const struct tally_recording *recording)
{
	return recording->flow.group.next < recording->flow.group.record.sample.read.count;
}

/* Begins to give this sample's events. */
static void groups_start(struct tally_recording *recording, const struct tally_raw_record *raw,
			 const struct tally_record *record)
{
	recording->flow.group.raw = *raw;
	recording->flow.group.record = *record;
	recording->flow.group.next = 0;
}

/* Gives the next event of the group that counted since its last sample.  Returns 1, 0 when none is
 * left, or -ENOMEM. */
static int groups_next(struct tally_recording *recording, struct tally_raw_record *raw,
		       struct tally_record *record)
{
	const struct tally_read_values *read = &recording->flow.group.record.sample.read;
	while (recording->flow.group.next < read->count) {
		const uint64_t *words = &read->values[recording->flow.group.next++ * read->stride];
		uint64_t value = words[0], id = words[1];
		const struct tally_recorded_event *event = tally_perfdata_event_of_id(
			recording->data, id);
		if (!event) {
			recording->counts.unknown_ids++;
			continue;
		}
		uint64_t *last = tally_map_put(&recording->flow.group.last_values, id, NULL);
		if (!last)
			return -ENOMEM;
		uint64_t counted = value - *last;
		*last = value;
		if (!counted)
			continue;
		*raw = recording->flow.group.raw;
		raw->event = event;
		*record = recording->flow.group.record;
		record->sample.id = id;
		record->sample.period = counted;
		/* with a fixed period, the sample had none */
		record->sample.type |= TALLY_SAMPLE_PERIOD;
		return 1;
	}
	return 0;
}

enum { ENDED_KEPT = 512 /* ended tasks; up to twice as many are kept */ };

/* Takes ownership of `data`. */
static int start(struct tally_perfdata *data, struct tally_recording **out, struct tally_error *err)
{
	struct tally_recording *recording = calloc(1, sizeof(*recording));
	if (!recording) {
		tally_perfdata_close(data);
		return tally_error_set(err, -ENOMEM, "out of memory");
	}
	tally_names_init(&recording->names, &recording->tasks);
	tally_names_use_text_pokes(&recording->names, &recording->machine.text_pokes);
	recording->flow.endings.keeps_threads = true;
	recording->data = data;
	recording->filter.samples.takes_all = true;
	int result = tally_order_new(recording->data, &recording->flow.order, err);
	if (!result && tally_recording_apply_build_ids(recording) < 0)
		result = tally_error_set(err, -ENOMEM, "out of memory");
	if (result < 0) {
		tally_recording_close(recording);
		return result;
	}
	tally_recording_find_machine(recording);
	struct tally_feature_bytes packed = tally_perfdata_feature(data, TALLY_FEATURE_TALLY);
	if (packed.bytes && !tally_perfdata_is_pipe(data)) {
		tally_names_use_packed(&recording->names, packed.bytes, packed.size);
		recording->carried.section = packed.bytes;
		recording->carried.section_size = packed.size;
	}
	struct tally_feature_bytes listed = tally_perfdata_feature(data,
								   TALLY_FEATURE_SIMPLEPERF_FILE);
	if (listed.bytes && !tally_perfdata_is_pipe(data) && !tally_perfdata_is_swapped(data))
		tally_names_use_listed(&recording->names, listed.bytes, listed.size);
	*out = recording;
	return 0;
}

/* Makes a JIT's dump from the recording itself, because the dump's file may be gone; NULL: the
 * recording doesn't have it. */
static struct tally_jit_dump *recall_jit(void *context, uint32_t file)
{
	struct tally_recording *recording = context;
	struct tally_feature_bytes packed = tally_perfdata_feature(recording->data,
								   TALLY_FEATURE_TALLY);
	struct tally_jit_dump *dump = NULL;
	int result = 0;
	struct tally_recording_carried *carried = &recording->carried;
	if (!carried->jits_are_read && packed.bytes && !tally_perfdata_is_pipe(recording->data)) {
		carried->jits_are_read = true;
		result = tally_packed_jits_new(packed.bytes, packed.size, &carried->jits);
	}
	if (!result && carried->jits)
		result = tally_packed_jits_find(carried->jits, &recording->tasks, file, &dump);
	if (result == -EBADMSG)
		recording->names.gaps.packed_damaged = true;
	return dump;
}

static uint64_t last_written_ns(const char *path)
{
	struct stat file;
	if (stat(path, &file) < 0 || !S_ISREG(file.st_mode))
		return 0;
	return (uint64_t)file.st_mtim.tv_sec * UINT64_C(1000000000) + (uint64_t)file.st_mtim.tv_nsec;
}

/* Finds out when files were mapped, to compare it with the times of files. */
static void find_times(struct tally_recording *recording)
{
	struct tally_reader reader = tally_feature_reader(recording->data,
							  TALLY_FEATURE_CLOCK_DATA);
	struct tally_file_times *times = &recording->names.objects.times;
	struct tally_feature_clock clock;
	times->until_ns = last_written_ns(recording->path);
	times->wall_offset_ns = 0;
	/* Files of a machine of the other byte order are not on this one. */
	if (tally_perfdata_is_swapped(recording->data))
		return;
	if (tally_feature_read_clock_data(&reader, &clock) && clock.wall_ns > clock.clock_ns)
		times->wall_offset_ns = clock.wall_ns - clock.clock_ns;
}

int tally_recording_open(const char *path, struct tally_recording **out, struct tally_error *err)
{
	struct tally_perfdata *data;
	int result = tally_perfdata_open(path, &data, err);
	if (result)
		return result;
	result = start(data, out, err);
	if (result)
		return result;
	(*out)->path = strdup(path);
	if (!(*out)->path || tally_tasks_use_jits(&(*out)->tasks) < 0) {
		tally_recording_close(*out);
		return tally_error_set(err, -ENOMEM, "out of memory");
	}
	(*out)->tasks.jits->recall = recall_jit;
	(*out)->tasks.jits->context = *out;
	find_times(*out);
	tally_off_cpu_look(*out);
	return 0;
}

int tally_recording_open_memory(const void *bytes, size_t size, struct tally_recording **out,
				struct tally_error *err)
{
	struct tally_perfdata *data;
	int result = tally_perfdata_open_memory(bytes, size, &data, err);
	if (result < 0)
		return result;
	return start(data, out, err);
}

void tally_recording_close(struct tally_recording *recording)
{
	if (!recording)
		return;
	tally_names_release(&recording->names);
	tally_endings_release(&recording->flow.endings);
	tally_tasks_release(&recording->tasks);
	tally_order_free(recording->flow.order);
	tally_perfdata_close(recording->data);
	tally_vector_release(&recording->chain);
	tally_vector_release(&recording->chain.made);
	tally_packed_jits_free(recording->carried.jits);
	tally_packed_stacks_free(recording->carried.stacks);
	tally_packed_stacks_free(recording->carried.noted);
	tally_deferred_release(&recording->flow.deferred);
	tally_off_cpu_release(&recording->off_cpu);
	tally_text_pokes_release(&recording->machine.text_pokes);
	tally_map_release(&recording->filter.left_out);
	tally_map_release(&recording->flow.group.last_values);
	tally_map_release(&recording->chain.stack_tops);
	tally_vector_release(&recording->sums);
	tally_sample_filter_release(&recording->filter.samples);
	free(recording->path);
	free(recording);
}

static void count_record(struct tally_recording_counts *counts, const struct tally_record *record)
{
	switch (record->header.type) {
	case TALLY_RECORD_LOST:
	case TALLY_RECORD_LOST_SAMPLES:
		counts->lost = tally_sum_capped(counts->lost, record->lost.lost);
		break;
	case TALLY_RECORD_THROTTLE:
		counts->throttled++;
		break;
	}
}

int tally_recording_prepare_packing(struct tally_recording *recording)
{
	recording->names.options.keep_mangled = true;
	/* names don't depend on how long tasks waited */
	recording->off_cpu.is_due = false;
	tally_names_use_cache(&recording->names);
	recording->carried.noted = calloc(1, sizeof(*recording->carried.noted));
	if (!recording->carried.noted)
		return -ENOMEM;
	return 0;
}

int tally_recording_weigh(struct tally_recording *recording, uint32_t event, uint64_t *weight)
{
	while (recording->sums.count <= event)
		if (tally_vector_push(&recording->sums, (struct tally_weight_sum){ 0 }) < 0)
			return -ENOMEM;
	uint64_t limit = UINT64_MAX;
	if (recording->sums.are_signed)
		limit = INT64_MAX;
	*weight = tally_weight_sum_add(&recording->sums.items[event], *weight, limit);
	return 0;
}

uint64_t tally_recording_weights_cut(const struct tally_recording *recording, uint32_t event)
{
	if (event >= recording->sums.count)
		return 0;
	return recording->sums.items[event].cut;
}

bool tally_recording_is_saturated(const struct tally_recording *recording, uint32_t event)
{
	return tally_recording_weights_cut(recording, event) != 0;
}

const struct tally_packed_stacks *tally_recording_noted_stacks(
	const struct tally_recording *recording)
{
	return recording->carried.noted;
}

void tally_recording_on_change(struct tally_recording *recording, int (*call)(void *context),
			       void *context)
{
	recording->flow.before_change.call = call;
	recording->flow.before_change.context = context;
}

bool tally_recording_block(const struct tally_recording *recording, const uint64_t *chain,
			   struct tally_block **block)
{
	if (chain && chain == recording->chain.made.items)
		return false;
	return tally_order_block(recording->flow.order, block);
}

void tally_recording_drop(struct tally_recording *recording, struct tally_block *block)
{
	tally_order_drop(recording->flow.order, block);
}

void tally_recording_forget_threads(struct tally_recording *recording)
{
	recording->flow.endings.keeps_threads = false;
}

/* ---- records ------------------------------------------------------------- */

/* Reads the whole file once more to find an event whose name is in the data, perhaps behind its
 * samples.  Returns its index, or -errno with a message. */
static int64_t find_late_name(const char *path, const char *name, struct tally_error *err)
{
	struct tally_perfdata *data;
	struct tally_raw_record raw;
	size_t count;
	int result = tally_perfdata_open(path, &data, err);
	if (result < 0)
		return result;
	while ((result = tally_perfdata_next(data, &raw, err)) > 0)
		continue;
	const struct tally_recorded_event *events = tally_perfdata_events(data, &count);
	size_t found = tally_event_find(events, count, name);
	if (!result && found == count)
		result = tally_event_not_found(data, name, err);
	tally_perfdata_close(data);
	if (result < 0)
		return result;
	return (int64_t)found;
}

int tally_recording_filter(struct tally_recording *recording,
			   const struct tally_profile_filter *filter, struct tally_error *err)
{
	recording->filter.frames_max = filter->frames_max;
	tally_sample_filter_release(&recording->filter.samples);
	int result = tally_sample_filter_init(&recording->filter.samples, filter, recording->data,
					      err);
	if (result || !filter->event)
		return result;
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(recording->data, &count);
	size_t found = tally_event_find(events, count, filter->event);
	if (found == count && recording->path && !tally_perfdata_is_pipe(recording->data)) {
		int64_t late = find_late_name(recording->path, filter->event, err);
		if (late < 0)
			return (int)late;
		found = (size_t)late;
	}
	if (found < count)
		recording->filter.samples.event_index = found;
	return 0;
}

static void leave_out_sample(struct tally_recording *recording, const struct tally_sample *sample)
{
	uint32_t thread = tally_tasks_thread(&recording->tasks, sample->pid, sample->tid);
	if (thread != UINT32_MAX)
		tally_recording_leave_out(recording, recording->tasks.threads.items[thread].comm);
}

static bool passes(struct tally_recording *recording, const struct tally_raw_record *raw,
		   const struct tally_record *record)
{
	struct tally_recording_counts *counts = &recording->counts;
	if (record->header.type != TALLY_RECORD_SAMPLE)
		return true;
	struct tally_sample_filter *filter = &recording->filter.samples;
	if (!filter->takes_all &&
	    !tally_sample_filter_passes(filter, recording->data, &recording->tasks, raw->event,
					&record->sample)) {
		counts->filtered++;
		leave_out_sample(recording, &record->sample);
		return false;
	}
	if (!counts->first_time || record->sample.time < counts->first_time)
		counts->first_time = record->sample.time;
	bool waits = tally_off_cpu_measured(&recording->off_cpu, raw->event);
	uint64_t end = tally_sum_capped(record->sample.time, waits ? record->sample.period : 0);
	if (end > counts->last_time)
		counts->last_time = end;
	return true;
}

/* A pipe may have ended without announcing the event that the filter names. */
static int finish(const struct tally_recording *recording, struct tally_error *err)
{
	size_t count;
	const char *name = recording->filter.samples.event;
	const struct tally_recorded_event *events = tally_perfdata_events(recording->data, &count);
	bool is_found = recording->filter.samples.event_index != SIZE_MAX;
	if (!name || is_found || tally_event_find(events, count, name) < count)
		return 0;
	return tally_event_not_found(recording->data, name, err);
}

static int before_change(struct tally_recording *recording)
{
	if (!recording->flow.before_change.call)
		return 0;
	return recording->flow.before_change.call(recording->flow.before_change.context);
}

/* AUXTRACE_INFO begins with the kind of trace, AUXTRACE with its size. */
static void count_trace(struct tally_recording_counts *counts, const struct tally_raw_record *raw,
			bool is_info)
{
	struct tally_reader reader;
	tally_reader_init(&reader, raw->bytes, raw->size, false);
	tally_reader_seek(&reader, sizeof(struct tally_record_header));
	if (is_info) {
		counts->trace.type = tally_reader_u32(&reader);
		counts->trace.is_told = true;
	} else {
		counts->trace.bytes = tally_sum_capped(counts->trace.bytes,
						       tally_reader_u64(&reader));
	}
}

/* Applies a record that a tool wrote, not the kernel. */
static int apply_tools_record(struct tally_recording *recording, const struct tally_raw_record *raw,
			      const struct tally_record_header *header)
{
	bool changes = header->type == TALLY_RECORD_HEADER_FEATURE ||
		       header->type == TALLY_RECORD_HEADER_BUILD_ID;
	if (changes && before_change(recording) < 0)
		return -ENOMEM;
	if (!tally_record_type_name(header->type))
		recording->counts.unknown++;
	else if (header->type == TALLY_RECORD_STAT)
		recording->counts.stat_counts++;
	else if (header->type == TALLY_RECORD_AUXTRACE ||
		 header->type == TALLY_RECORD_AUXTRACE_INFO)
		count_trace(&recording->counts, raw, header->type == TALLY_RECORD_AUXTRACE_INFO);
	else if (header->type == TALLY_RECORD_HEADER_FEATURE) /* a pipe has them in the stream */
		tally_recording_find_machine(recording);
	else if (header->type == TALLY_RECORD_HEADER_BUILD_ID)
		return tally_recording_apply_build_ids(recording);
	return 0;
}

static int decode(const struct tally_raw_record *raw, struct tally_record *record)
{
	const struct tally_recorded_event *event = raw->event;
	if (!event)
		return -EBADMSG;
	if (record->header.type == TALLY_RECORD_SAMPLE && event->layout.is_plain)
		return tally_sample_decode(&event->layout, raw->bytes, raw->size, record);
	return tally_record_decode(&event->attr, raw->bytes, raw->size, record);
}

/* Makes JIT code known that was made before the sample.  Returns 1 or -ENOMEM. */
static int advance_jits(struct tally_recording *recording, const struct tally_attr *attr,
			const struct tally_sample *sample)
{
	struct tally_tasks *tasks = &recording->tasks;
	if (!tasks->jits || !tasks->jits->items.count)
		return 1;
	tasks->jits->has_no_times = !(attr->flags & TALLY_ATTR_USE_CLOCKID) ||
				    attr->clockid != CLOCK_MONOTONIC;
	if (tally_jits_are_behind(tasks, sample->pid, sample->time)) {
		if (before_change(recording) < 0)
			return -ENOMEM;
		tally_jits_advance(tasks, sample->pid, sample->time);
	}
	return 1;
}

static int make_chain(struct tally_recording *recording, const struct tally_attr *attr,
		      struct tally_sample *sample)
{
	recording->chain.stacks += sample->stack != NULL;
	if (sample->branches)
		return tally_recording_branch_chain(recording, attr, sample);
	if (!sample->regs_user.words || !sample->chain)
		return 0;
	return tally_recording_complete_chain(recording, attr, sample);
}

/* A machine may start 360,000 programs within an hour.  So only the tasks that live and those that
 * ended last are kept.  Ended tasks are needed for a while, since samples may come after their
 * EXIT: a task's last samples are taken while it exits, and some wait for the rest of their stack.
 * An EXIT without a time comes before the samples of its round, so it does not count here. */
static int apply_to_tasks(struct tally_recording *recording, const struct tally_record *record)
{
	struct tally_endings *endings = &recording->flow.endings;
	if (record->header.type == TALLY_RECORD_MMAP || record->header.type == TALLY_RECORD_MMAP2)
		tally_recording_check_kernel(recording, record);
	if (tally_tasks_record(&recording->tasks, record) < 0)
		return -ENOMEM;
	bool may_be_early = record->header.type == TALLY_RECORD_EXIT && !record->sample_id.time;
	if (!may_be_early && tally_endings_record(endings, record) < 0)
		return -ENOMEM;
	if (endings->queue.count - endings->old >= ENDED_KEPT)
		tally_endings_pass(endings, &recording->tasks);
	return 0;
}

static int add_guest(struct tally_recording *recording, uint16_t misc)
{
	uint32_t pid = tally_space_of(misc, 0).pid;
	recording->counts.guests++;
	if (tally_tasks_find(&recording->tasks, pid, false, 0))
		return 0;
	if (before_change(recording) < 0)
		return -ENOMEM;
	return tally_tasks_add_guest(&recording->tasks, misc);
}

/* Applies a record of the kernel, whose header is in `record`.  Returns 1 if it can be given, 0 if
 * not, or -ENOMEM. */
static int apply_record(struct tally_recording *recording, const struct tally_raw_record *raw,
			struct tally_record *record)
{
	int decoded = decode(raw, record);
	if (decoded == -ENOTSUP)
		recording->counts.unknown++;
	else if (decoded < 0)
		recording->counts.undecodable++;
	if (decoded < 0)
		return 0;
	if (record->header.type == TALLY_RECORD_SAMPLE) {
		recording->counts.samples++;
		if (tally_is_guest(record->header.misc) &&
		    add_guest(recording, record->header.misc) < 0)
			return -ENOMEM;
		if (record->sample.type & TALLY_SAMPLE_AUX)
			recording->counts.trace.bytes += record->sample.aux_size;
		const struct tally_attr *attr = &raw->event->attr;
		bool is_long = !recording->options.leaves_only &&
			       record->sample.chain_length >= tally_chain_limit(attr);
		int is_full = 0;
		if (is_long)
			is_full = tally_recording_ends_at_limit(recording, attr, record);
		if (is_full < 0)
			return -ENOMEM;
		recording->chain.is_full = is_full;
		if (!recording->options.keep_groups &&
		    make_chain(recording, &raw->event->attr, &record->sample) < 0)
			return -ENOMEM;
		if (!recording->options.keep_groups && tally_deferred_is_due(&record->sample))
			return tally_deferred_hold(&recording->flow.deferred, raw, &record->sample);
		return advance_jits(recording, &raw->event->attr, &record->sample);
	}
	count_record(&recording->counts, record);
	if (record->header.type == TALLY_RECORD_CALLCHAIN_DEFERRED &&
	    tally_deferred_complete(&recording->flow.deferred, record) < 0)
		return -ENOMEM;
	if (before_change(recording) < 0 || tally_recording_keep_text_poke(recording, record) < 0)
		return -ENOMEM;
	if (apply_to_tasks(recording, record) < 0)
		return -ENOMEM;
	return 1;
}

/* Takes a sample whose user stack has come.  Returns 1, 0 if there is none, or -ENOMEM. */
static int next_deferred(struct tally_recording *recording, struct tally_raw_record *raw,
			 struct tally_record *record)
{
	const struct tally_held_sample *held = tally_deferred_next(&recording->flow.deferred);
	if (!held)
		return 0;
	*raw = held->raw;
	memcpy(&record->header, raw->bytes, sizeof(record->header));
	decode(raw, record); /* succeeds, as it did when the sample was held */
	recording->chain.is_full = false;
	if (tally_vector_reserve(&recording->chain.made, held->chain_length) < 0)
		return -ENOMEM;
	if (held->chain_length)
		memcpy(recording->chain.made.items, held->chain,
		       held->chain_length * sizeof(*held->chain));
	recording->chain.made.count = held->chain_length;
	record->sample.chain = recording->chain.made.items;
	record->sample.chain_length = held->chain_length;
	return advance_jits(recording, &raw->event->attr, &record->sample);
}

/* Reads the file's next record, or takes a held sample that is ready.  Returns 1, 0 at the end, or
 * -errno. */
static int next_record(struct tally_recording *recording, struct tally_raw_record *raw,
		       struct tally_record *record, struct tally_error *err)
{
	for (;;) {
		int got = next_deferred(recording, raw, record);
		if (!got) {
			got = tally_order_next(recording->flow.order, raw, err);
			if (got < 0)
				return got;
			if (!got && !recording->flow.deferred.held.count)
				return finish(recording, err);
			if (!got && tally_deferred_give_up(&recording->flow.deferred) == 0)
				continue;
			if (!got)
				return tally_error_set(err, -ENOMEM, "out of memory");
			recording->counts.records++;
			memcpy(&record->header, raw->bytes, sizeof(record->header));
			if (record->header.type < TALLY_RECORD_USER_START)
				got = apply_record(recording, raw, record);
			else if (apply_tools_record(recording, raw, &record->header) < 0)
				got = -ENOMEM;
			else
				got = 1;
		}
		if (got < 0)
			return tally_error_set(err, -ENOMEM, "out of memory");
		if (got)
			return 1;
	}
}

/* Counts chains that don't reach the start of their thread, so that reports can warn. */
static void count_chain(struct tally_recording *recording, const struct tally_attr *attr,
			const struct tally_record *record)
{
	struct tally_recording_counts *counts = &recording->counts;
	uint16_t misc = record->header.misc;
	bool is_cut = misc & TALLY_MISC_STACK_CUT;
	counts->chains_cut += is_cut;
	bool has_ended = is_cut && misc & TALLY_MISC_STACK_ENDED;
	counts->chains_ended += has_ended;
	counts->chains_deep += is_cut && !has_ended &&
			       record->sample.chain_length >= TALLY_USER_FRAMES_MAX;
	bool is_lost = !is_cut && misc & TALLY_MISC_STACK_LOST,
	     is_unwound = attr->sample_max_stack == UINT16_MAX;
	counts->chains_lost += is_lost && is_unwound;
	counts->chains_astray += is_lost && !is_unwound;
	counts->chains += record->sample.chain_length != 0 && !record->sample.stack;
	counts->chains_full += recording->chain.is_full;
}

/* Prepares a record for next() to give.  Returns false if it is left out. */
static bool take(struct tally_recording *recording, const struct tally_raw_record *raw,
		 struct tally_record *record)
{
	bool is_sample = record->header.type == TALLY_RECORD_SAMPLE;
	bool waits = is_sample && tally_off_cpu_measured(&recording->off_cpu, raw->event);
	recording->off_cpu.waker = TALLY_WAKER_UNKNOWN;
	if (is_sample && recording->off_cpu.wants_wakers &&
	    tally_off_cpu_is_waking(&recording->off_cpu, raw->event)) {
		tally_off_cpu_take_waking(&recording->off_cpu);
		return true;
	}
	if ((waits && !tally_off_cpu_take(&recording->off_cpu, &record->sample)) ||
	    !passes(recording, raw, record))
		return false;
	if (!is_sample || recording->options.leaves_only)
		return true;
	if (recording->filter.frames_max && !recording->options.keep_groups)
		tally_recording_shorten(recording, record);
	count_chain(recording, &raw->event->attr, record);
	return true;
}

int tally_recording_next(struct tally_recording *recording, struct tally_raw_record *raw,
			 struct tally_record *record, struct tally_error *err)
{
	if (recording->off_cpu.is_due && !recording->options.keep_groups) {
		int measured = tally_off_cpu_measure(recording, err);
		if (measured < 0)
			return measured;
	}
	for (;;) {
		int got = 0;
		if (tally_group_has_more(recording))
			got = groups_next(recording, raw, record);
		if (got < 0)
			return tally_error_set(err, -ENOMEM, "out of memory");
		if (!got) {
			got = next_record(recording, raw, record, err);
			if (got <= 0)
				return got;
			if (tally_sample_has_group(recording, raw, record)) {
				groups_start(recording, raw, record);
				continue;
			}
		}
		if (take(recording, raw, record))
			return 1;
	}
}

bool tally_recording_weighs_time(const struct tally_recording *recording,
				 const struct tally_recorded_event *event)
{
	return tally_attr_is_clock(&event->attr) ||
	       tally_off_cpu_measured(&recording->off_cpu, event);
}

void tally_recording_command(const struct tally_recording *recording, struct tally_buffer *out)
{
	struct tally_reader reader = tally_feature_reader(recording->data, TALLY_FEATURE_CMDLINE);
	size_t start = out->length;
	bool ours = false;
	for (uint32_t left = tally_reader_u32(&reader); left; left--) {
		const char *text = tally_feature_read_string(&reader);
		if (!text)
			break;
		if (ours)
			tally_buffer_printf(out, "%s%s", out->length ? " " : "", text);
		ours |= !strcmp(text, "--");
	}
	for (size_t i = start; i < out->length; i++)
		if (strchr("\n\r\t", out->bytes[i]))
			out->bytes[i] = ' ';
}
