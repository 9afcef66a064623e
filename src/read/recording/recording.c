/* Reads records in order of time, applies them to the tasks, and completes samples before it gives
 * them.  The file has groups of events first, then opening and closing, then filters, then a
 * record's way from next_record() to take(). */
#include "recording/recording.h"

#include "abi/attr.h"
#include "abi/chain_walk.h"
#include "base/reader.h"
#include "base/vector.h"
#include "naming/packed_jits.h"
#include "task/jit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>

/* True if a sample's record carries the counts of its group, which become samples of their own. */
static inline bool tally_groups_carry(const struct tally_recording *recording,
				      const struct tally_raw_record *raw,
				      const struct tally_record *record)
{
	return !recording->keep_groups && record->header.type == TALLY_RECORD_SAMPLE &&
	       record->sample.type & TALLY_SAMPLE_READ &&
	       raw->event->attr.read_format & TALLY_FORMAT_ID && record->sample.read.values;
}

static inline bool tally_groups_has_more(const struct tally_recording *recording)
{
	return recording->group.next < recording->group.record.sample.read.count;
}

/* Begins to give this sample's events. */
static void groups_start(struct tally_recording *recording, const struct tally_raw_record *raw,
			 const struct tally_record *record)
{
	recording->group.raw = *raw;
	recording->group.record = *record;
	recording->group.next = 0;
}

/* Gives the next event of the group that counted since its last sample.  Returns 1, 0 when none is
 * left, or -ENOMEM. */
static int groups_next(struct tally_recording *recording, struct tally_raw_record *raw,
		       struct tally_record *record)
{
	const struct tally_read_values *read = &recording->group.record.sample.read;
	while (recording->group.next < read->count) {
		const uint64_t *words = &read->values[recording->group.next++ * read->stride];
		uint64_t value = words[0], id = words[1];
		const struct tally_recorded_event *event = tally_perfdata_event_of_id(
			recording->data, id);
		uint64_t *last = event ? tally_map_put(&recording->last_values, id, NULL) : NULL;
		if (event && !last)
			return -ENOMEM;
		if (!event) {
			recording->counts.unknown_ids++;
			continue;
		}
		uint64_t counted = value - *last;
		*last = value;
		if (!counted)
			continue;
		*raw = recording->group.raw;
		raw->event = event;
		*record = recording->group.record;
		record->sample.id = id;
		record->sample.period = counted;
		/* with a fixed period, the sample had none */
		record->sample.type |= TALLY_SAMPLE_PERIOD;
		return 1;
	}
	return 0;
}

enum { ENDED_KEPT = 512 /* ended tasks; up to twice as many are kept */ };

static bool names_kernel(const char *filename)
{
	return !strncmp(filename, "[kernel", 7);
}

/* Applies the build-ids that the file, or the pipe so far, has announced since the last call. */
static int apply_build_ids(struct tally_recording *recording)
{
	size_t count;
	const struct tally_recorded_build_id *list = tally_perfdata_build_ids(recording->data,
									      &count);
	for (; recording->build_ids_seen < count; recording->build_ids_seen++) {
		const struct tally_recorded_build_id *one = &list[recording->build_ids_seen];
		struct tally_build_id id = { .size = one->size };
		if (one->size > sizeof(id.bytes) || tally_is_guest(one->misc))
			continue;
		memcpy(id.bytes, one->bytes, one->size);
		if (names_kernel(one->filename))
			tally_names_set_kernel_build_id(&recording->names, id);
		else if (tally_tasks_build_id(&recording->tasks, one->filename, &id) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* True if the recorded machine (NULL or "": not known) or kernel is not the running one. */
static bool is_another(const struct tally_recording *recording, const char *machine,
		       const char *release, const struct utsname *here)
{
	if (!machine || !*machine) {
		if (tally_perfdata_is_swapped(recording->data))
			return true;
	} else if (!tally_arch_related(recording->arch, tally_arch_host()) ||
		   (!recording->arch && strcmp(machine, here->machine))) {
		return true;
	}
	if (release)
		return strcmp(release, here->release) != 0;
	return recording->kernel.is_another;
}

static void see_machine(struct tally_recording *recording)
{
	struct utsname here;
	const char *machine = tally_perfdata_feature_text(recording->data, TALLY_FEATURE_ARCH);
	const char *release = tally_perfdata_feature_text(recording->data, TALLY_FEATURE_OSRELEASE);
	bool is_told = machine && *machine, is_swapped = tally_perfdata_is_swapped(recording->data);
	bool is_foreign = false;
	struct tally_objects *objects = &recording->names.objects;
	recording->arch = is_told || is_swapped ? tally_arch_named(machine) : tally_arch_host();
	bool has_border = recording->arch == TALLY_ARCH_X86_64 ||
			  recording->arch == TALLY_ARCH_ARM64;
	recording->tasks.kernel_start = has_border ? 1ull << 63 : 0;
	objects->arch = recording->arch;
	objects->machine = TALLY_UNWIND_OTHER;
	if (is_told || !is_swapped)
		objects->machine = tally_unwind_machine_named(machine);
	if (uname(&here) == 0)
		is_foreign = is_another(recording, machine, release, &here);
	if (!release && recording->kernel.release[0])
		release = recording->kernel.release;
	tally_names_set_kernel(&recording->names, release, is_foreign);
}

/* Takes ownership of `data`. */
static int start(struct tally_perfdata *data, struct tally_recording **out, struct tally_error *err)
{
	struct tally_recording *recording = calloc(1, sizeof(*recording));
	if (!recording) {
		tally_perfdata_close(data);
		return tally_error_set(err, -ENOMEM, "out of memory");
	}
	tally_names_init(&recording->names, &recording->tasks);
	tally_names_use_text_pokes(&recording->names, &recording->text_pokes);
	recording->endings.keeps_threads = true;
	recording->data = data;
	recording->filter.takes_all = true;
	int result = tally_order_new(recording->data, &recording->order, err);
	if (!result && apply_build_ids(recording) < 0)
		result = tally_error_set(err, -ENOMEM, "out of memory");
	if (result < 0) {
		tally_recording_close(recording);
		return result;
	}
	see_machine(recording);
	struct tally_feature_bytes packed = tally_perfdata_feature(data, TALLY_FEATURE_TALLY);
	if (packed.bytes && !tally_perfdata_is_pipe(data)) {
		tally_names_use_packed(&recording->names, packed.bytes, packed.size);
		recording->stacks.section = packed.bytes;
		recording->stacks.section_size = packed.size;
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
	if (!recording->jits_are_read && packed.bytes && !tally_perfdata_is_pipe(recording->data)) {
		recording->jits_are_read = true;
		result = tally_packed_jits_new(packed.bytes, packed.size, &recording->packed_jits);
	}
	if (!result && recording->packed_jits)
		result = tally_packed_jits_find(recording->packed_jits, &recording->tasks, file,
						&dump);
	if (result == -EBADMSG)
		recording->names.gaps.packed_damaged = true;
	return dump;
}

static uint64_t last_written_ns(const char *path)
{
	struct stat file;
	return !stat(path, &file) && S_ISREG(file.st_mode)
		       ? (uint64_t)file.st_mtim.tv_sec * UINT64_C(1000000000) +
				 (uint64_t)file.st_mtim.tv_nsec
		       : 0;
}

/* Finds out when files were mapped, to compare it with the times of files. */
static void see_times(struct tally_recording *recording)
{
	const struct tally_feature_bytes feature = tally_perfdata_feature(recording->data,
									  TALLY_FEATURE_CLOCK_DATA);
	struct tally_file_times *times = &recording->names.objects.times;
	struct tally_reader reader;
	tally_reader_init(&reader, feature.bytes, feature.size,
			  tally_perfdata_is_swapped(recording->data));
	uint32_t version = tally_reader_u32(&reader);
	tally_reader_u32(&reader); /* the clock's number */
	uint64_t wall_ns = tally_reader_u64(&reader), clock_ns = tally_reader_u64(&reader);
	times->until_ns = recording->path ? last_written_ns(recording->path) : 0;
	times->wall_offset_ns = !reader.failed && version == 1 && wall_ns > clock_ns
					? wall_ns - clock_ns
					: 0;
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
	see_times(*out);
	tally_off_cpu_look(*out);
	return 0;
}

int tally_recording_open_memory(const void *bytes, size_t size, struct tally_recording **out,
				struct tally_error *err)
{
	struct tally_perfdata *data;
	int result = tally_perfdata_open_memory(bytes, size, &data, err);
	return result < 0 ? result : start(data, out, err);
}

void tally_recording_close(struct tally_recording *recording)
{
	if (!recording)
		return;
	tally_names_release(&recording->names);
	tally_endings_release(&recording->endings);
	tally_tasks_release(&recording->tasks);
	tally_order_free(recording->order);
	tally_perfdata_close(recording->data);
	tally_vector_release(&recording->chain);
	tally_vector_release(&recording->made_chain);
	tally_packed_jits_free(recording->packed_jits);
	tally_packed_stacks_free(recording->stacks.packed);
	tally_packed_stacks_free(recording->stacks.noted);
	tally_deferred_release(&recording->deferred);
	tally_off_cpu_release(&recording->off_cpu);
	tally_text_pokes_release(&recording->text_pokes);
	tally_map_release(&recording->left_out);
	tally_map_release(&recording->last_values);
	tally_map_release(&recording->stack_tops);
	tally_vector_release(&recording->sums);
	tally_sample_filter_release(&recording->filter);
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
	recording->stacks.noted = calloc(1, sizeof(*recording->stacks.noted));
	return recording->stacks.noted ? 0 : -ENOMEM;
}

int tally_recording_weigh(struct tally_recording *recording, uint32_t event, uint64_t *weight)
{
	while (recording->sums.count <= event)
		if (tally_vector_push(&recording->sums, (struct tally_weight_sum){ 0 }) < 0)
			return -ENOMEM;
	uint64_t limit = recording->has_signed_sums ? (uint64_t)INT64_MAX : UINT64_MAX;
	*weight = tally_weight_sum_add(&recording->sums.items[event], *weight, limit);
	return 0;
}

bool tally_recording_is_saturated(const struct tally_recording *recording, uint32_t event)
{
	return event < recording->sums.count && recording->sums.items[event].cut;
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
	return result < 0 ? result : (int64_t)found;
}

int tally_recording_filter(struct tally_recording *recording,
			   const struct tally_profile_filter *filter, struct tally_error *err)
{
	recording->frames_max = filter->frames_max;
	tally_sample_filter_release(&recording->filter);
	int result = tally_sample_filter_init(&recording->filter, filter, recording->data, err);
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
		recording->filter.event_index = found;
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
	if (!recording->filter.takes_all &&
	    !tally_sample_filter_passes(&recording->filter, recording->data, &recording->tasks,
					raw->event, &record->sample)) {
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
	const char *name = recording->filter.event;
	const struct tally_recorded_event *events = tally_perfdata_events(recording->data, &count);
	bool is_found = recording->filter.event_index != SIZE_MAX;
	return name && !is_found && tally_event_find(events, count, name) == count
		       ? tally_event_not_found(recording->data, name, err)
		       : 0;
}

static int before_change(struct tally_recording *recording)
{
	return recording->before_change.call
		       ? recording->before_change.call(recording->before_change.context)
		       : 0;
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
	else if (header->type == TALLY_RECORD_HEADER_FEATURE)
		see_machine(recording); /* a pipe describes its machine in the stream */
	else if (header->type == TALLY_RECORD_HEADER_BUILD_ID)
		return apply_build_ids(recording);
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
	recording->stacks.samples += sample->stack != NULL;
	if (sample->branches)
		return tally_recording_branch_chain(recording, attr, sample);
	return sample->regs_user.words && sample->chain
		       ? tally_recording_complete_chain(recording, attr, sample)
		       : 0;
}

/* Returns false if the running kernel can't have the recorded address of a symbol.  Compares only
 * once, because it has to read kallsyms. */
static bool fits_running_kernel(struct tally_recording *recording,
				const struct tally_record *record)
{
	const char *symbol = recording->kernel.is_located ? NULL : tally_kernel_map_symbol(record);
	if (!symbol)
		return true;
	recording->kernel.is_located = true;
	return tally_kernel_may_be_at(record->mmap.file_offset,
				      tally_kernel_running_address(symbol), tally_arch_host());
}

/* Without a build-id and release, the kernel's maps are the only evidence. */
static void see_kernel_map(struct tally_recording *recording, const struct tally_record *record)
{
	char release[TALLY_KERNEL_RELEASE_BYTES];
	if (tally_names_know_kernel(&recording->names))
		return;
	bool is_module = tally_kernel_module_is_anothers(record, release);
	if (is_module)
		memcpy(recording->kernel.release, release, sizeof(release));
	if (!is_module && fits_running_kernel(recording, record))
		return;
	recording->kernel.is_another = true;
	see_machine(recording);
}

/* A machine may start 360,000 programs within an hour.  So only the tasks that live and those that
 * ended last are kept.  Ended tasks are needed for a while, since samples may come after their
 * EXIT: a task's last samples are taken while it exits, and some wait for the rest of their stack.
 * An EXIT without a time comes before the samples of its round, so it does not count here. */
static int apply_to_tasks(struct tally_recording *recording, const struct tally_record *record)
{
	struct tally_endings *endings = &recording->endings;
	if (record->header.type == TALLY_RECORD_MMAP || record->header.type == TALLY_RECORD_MMAP2)
		see_kernel_map(recording, record);
	if (tally_tasks_record(&recording->tasks, record) < 0)
		return -ENOMEM;
	bool may_be_early = record->header.type == TALLY_RECORD_EXIT && !record->sample_id.time;
	if (!may_be_early && tally_endings_record(endings, record) < 0)
		return -ENOMEM;
	if (endings->queue.count - endings->old >= ENDED_KEPT)
		tally_endings_pass(endings, &recording->tasks);
	return 0;
}

static int see_text_poke(struct tally_recording *recording, const struct tally_record *record)
{
	uint64_t end = recording->filter.time_end_ns;
	bool is_ours = record->header.type == TALLY_RECORD_TEXT_POKE &&
		       (record->header.misc & TALLY_MISC_CPUMODE_MASK) == TALLY_MISC_KERNEL;
	return is_ours && (!end || record->sample_id.time <= end) ?
		       tally_text_pokes_add(&recording->text_pokes, &record->text_poke) : 0;
}

static int see_guest(struct tally_recording *recording, uint16_t misc)
{
	uint32_t pid = tally_space_of(misc, 0).pid;
	recording->counts.guests++;
	if (tally_tasks_find(&recording->tasks, pid, false, 0))
		return 0;
	return before_change(recording) < 0 ? -ENOMEM
					    : tally_tasks_add_guest(&recording->tasks, misc);
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
		    see_guest(recording, record->header.misc) < 0)
			return -ENOMEM;
		recording->counts.trace.bytes += record->sample.type & TALLY_SAMPLE_AUX
							 ? record->sample.aux_size
							 : 0;
		const struct tally_attr *attr = &raw->event->attr;
		bool is_long = !recording->leaves_only &&
			       record->sample.chain_length >= tally_chain_limit(attr);
		int is_full = is_long ? tally_recording_ends_at_limit(recording, attr, record) : 0;
		if (is_full < 0)
			return -ENOMEM;
		recording->is_chain_full = is_full;
		if (!recording->keep_groups &&
		    make_chain(recording, &raw->event->attr, &record->sample) < 0)
			return -ENOMEM;
		if (!recording->keep_groups && tally_deferred_is_due(&record->sample))
			return tally_deferred_hold(&recording->deferred, raw, &record->sample);
		return advance_jits(recording, &raw->event->attr, &record->sample);
	}
	count_record(&recording->counts, record);
	if (record->header.type == TALLY_RECORD_CALLCHAIN_DEFERRED &&
	    tally_deferred_complete(&recording->deferred, record) < 0)
		return -ENOMEM;
	if (before_change(recording) < 0 || see_text_poke(recording, record) < 0)
		return -ENOMEM;
	return apply_to_tasks(recording, record) < 0 ? -ENOMEM : 1;
}

/* Takes a sample whose user stack has come.  Returns 1, 0 if there is none, or -ENOMEM. */
static int next_deferred(struct tally_recording *recording, struct tally_raw_record *raw,
			 struct tally_record *record)
{
	const struct tally_held_sample *held = tally_deferred_next(&recording->deferred);
	if (!held)
		return 0;
	*raw = held->raw;
	memcpy(&record->header, raw->bytes, sizeof(record->header));
	decode(raw, record); /* succeeds, as it did when the sample was held */
	recording->is_chain_full = false;
	if (tally_vector_reserve(&recording->made_chain, held->chain_length) < 0)
		return -ENOMEM;
	if (held->chain_length)
		memcpy(recording->made_chain.items, held->chain,
		       held->chain_length * sizeof(*held->chain));
	recording->made_chain.count = held->chain_length;
	record->sample.chain = recording->made_chain.items;
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
			got = tally_order_next(recording->order, raw, err);
			if (got < 0)
				return got;
			if (!got && !recording->deferred.held.count)
				return finish(recording, err);
			if (!got && tally_deferred_give_up(&recording->deferred) == 0)
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
		if (got)
			return got < 0 ? tally_error_set(err, -ENOMEM, "out of memory") : 1;
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
	counts->chains_full += recording->is_chain_full;
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
	if (!is_sample || recording->leaves_only)
		return true;
	if (recording->frames_max && !recording->keep_groups)
		tally_recording_shorten(recording, record);
	count_chain(recording, &raw->event->attr, record);
	return true;
}

int tally_recording_next(struct tally_recording *recording, struct tally_raw_record *raw,
			 struct tally_record *record, struct tally_error *err)
{
	bool is_due = recording->off_cpu.is_due && !recording->keep_groups;
	int measured = is_due ? tally_off_cpu_measure(recording, err) : 0;
	if (measured < 0)
		return measured;
	for (;;) {
		int got = tally_groups_has_more(recording) ? groups_next(recording, raw, record)
							   : 0;
		if (got < 0)
			return tally_error_set(err, -ENOMEM, "out of memory");
		if (!got) {
			got = next_record(recording, raw, record, err);
			if (got <= 0)
				return got;
			if (tally_groups_carry(recording, raw, record)) {
				groups_start(recording, raw, record);
				continue;
			}
		}
		if (take(recording, raw, record))
			return 1;
	}
}

bool tally_recording_tells_time(const struct tally_recording *recording,
				const struct tally_recorded_event *event)
{
	return tally_attr_is_clock(&event->attr) ||
	       tally_off_cpu_measured(&recording->off_cpu, event);
}

void tally_recording_command(const struct tally_recording *recording, struct tally_buffer *out)
{
	struct tally_feature_bytes feature = tally_perfdata_feature(recording->data,
								    TALLY_FEATURE_CMDLINE);
	struct tally_reader reader;
	bool ours = false;
	if (!feature.bytes)
		return;
	size_t start = out->length;
	tally_reader_init(&reader, feature.bytes, feature.size, false);
	for (uint32_t left = tally_reader_u32(&reader); left && !reader.failed; left--) {
		uint32_t length = tally_reader_u32(&reader);
		const char *text = tally_reader_bytes(&reader, length);
		if (text && memchr(text, 0, length) && ours)
			tally_buffer_printf(out, "%s%s", out->length ? " " : "", text);
		ours |= text && length > 2 && !memcmp(text, "--", 3);
	}
	for (size_t i = start; i < out->length; i++)
		if (strchr("\n\r\t", out->bytes[i]))
			out->bytes[i] = ' ';
}
