/* Most samples have a stack that was seen before: these cost a hash over the raw chain, a look into the table of
 * chains and two additions.  What a chain means also depends on the maps of its process, so that their number (see
 * tally_tasks_generation) is part of what is hashed.
 *
 * Only a chain that is new is taken apart: its addresses become places, its places the bytes of a row's stack.  The
 * table of chains merely remembers; when a recording has many more chains than stacks (thousands of short processes,
 * each with its own addresses), it is emptied, and memory goes with the stacks.
 */
#include "profile/sample_reader.h"

#include "abi/chain_walk.h"
#include "base/vector.h"
#include "profile/chain_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	BATCH = 32,
	COPIED_WORDS = 2048, /* of the batch's chains */
	TASKS = 256,         /* remembered at a time */
	CHAINS_LEAST = 1 << 16, CHAINS_PER_ROW = 4,
};
static const uint32_t NO_ROW = UINT32_MAX, FILTERED = UINT32_MAX - 1;

/* A sample on its way. */
struct pending {
	struct tally_chain_hash hash;
	const uint64_t *words;
	uint64_t count;
	uint64_t ip; /* where the chain has nothing else */
	uint64_t user_maps, kernel_maps;
	uint64_t period;
	uint32_t pid, class, row;
	uint32_t row_hash;
	size_t stack, stack_bytes; /* of a chain that is new: its places, in reader->stack */
	uint16_t misc;
	bool is_ip;
	bool is_new;
};

/* What is known of a task as long as no record tells of its like. */
struct known_task {
	uint64_t era; /* of the reader */
	uint64_t maps;
	uint32_t event, pid, tid, cpu, class;
};

struct tally_sample_reader {
	struct tally_profile *profile;
	const struct tally_profile_options *options;
	struct tally_chain_table chains;
	struct tally_map class_index; /* hash → class */
	struct known_task tasks[TASKS];
	uint64_t era;
	struct pending batch[BATCH];
	size_t waiting;
	uint64_t copies[COPIED_WORDS];
	size_t copied;
	struct { uint8_t *items; size_t count, capacity; } stack; /* bytes of those being made */
};

/* ---- classes ------------------------------------------------------------------------------------------- */

static uint32_t intern_class(struct tally_sample_reader *reader, const struct tally_class *class)
{
	struct tally_profile *profile = reader->profile;
	uint64_t key = tally_hash64((uint64_t)class->thread << 32 | class->cpu) ^
		       ((uint64_t)class->event << 32 | class->comm);
	for (;; key++) {
		bool added;
		uint64_t *slot = tally_map_put(&reader->class_index, key, &added);
		if (!slot)
			return UINT32_MAX;
		if (added) {
			*slot = profile->classes.count;
			return tally_vector_push(&profile->classes, *class) < 0 ? UINT32_MAX : (uint32_t)*slot;
		}
		if (*slot < profile->classes.count &&
		    !memcmp(&profile->classes.items[*slot], class, sizeof(*class)))
			return (uint32_t)*slot;
	}
}

static int learn_task(struct tally_sample_reader *reader, struct known_task *task,
		      const struct tally_recorded_event *event)
{
	struct tally_profile *profile = reader->profile;
	struct tally_tasks *tasks = &profile->recording->tasks;
	char buffer[16];
	bool merge = reader->options->merge_threads;
	uint32_t thread = tally_tasks_thread(tasks, task->pid, task->tid);
	uint32_t comm = tally_strings_intern(&tasks->strings, tally_tasks_comm(tasks, task->pid, task->tid, buffer));
	struct tally_class class = {
		.event = task->event,
		.thread = merge ? UINT32_MAX : thread,
		.comm = comm,
		.cpu = task->cpu,
	};
	if (thread == UINT32_MAX || comm == TALLY_STRING_NONE ||
	    (merge && !tally_map_put(&profile->merged_threads, (uint64_t)task->event << 32 | thread, NULL)))
		return -ENOMEM;
	profile->has_stacks |= tally_recording_has_stacks(&event->attr);
	task->maps = tally_tasks_generation(tasks, task->pid);
	task->class = intern_class(reader, &class);
	task->era = reader->era;
	return task->class == UINT32_MAX ? -ENOMEM : 0;
}

/* The sample's task; NULL when memory is out. */
static const struct known_task *task_of(struct tally_sample_reader *reader, const struct tally_raw_record *raw,
					const struct tally_sample *sample)
{
	size_t event_count;
	const struct tally_recorded_event *events =
		tally_perfdata_events(reader->profile->recording->data, &event_count);
	bool has_cpu = sample->type & TALLY_SAMPLE_CPU && !reader->options->merge_cpus;
	struct known_task wanted = {
		.event = (uint32_t)(raw->event - events),
		.pid = sample->pid,
		.tid = sample->tid,
		.cpu = has_cpu ? sample->cpu : UINT32_MAX,
	};
	uint32_t hash = wanted.tid + wanted.event * 31 + wanted.cpu * 7;
	struct known_task *there = &reader->tasks[hash % TASKS];
	if (there->era == reader->era && there->event == wanted.event && there->pid == wanted.pid &&
	    there->tid == wanted.tid && there->cpu == wanted.cpu)
		return there;
	*there = wanted;
	return learn_task(reader, there, raw->event) < 0 ? NULL : there;
}

/* ---- chains that are new ------------------------------------------------------------------------------- */

static bool leaf_passes(struct tally_sample_reader *reader, size_t stack)
{
	const struct tally_profile_filter *filter = &reader->options->filter;
	struct tally_profile *profile = reader->profile;
	struct tally_names *names = &profile->recording->names;
	if (!filter->objects && !filter->symbols)
		return true;
	if (stack == reader->stack.count)
		return false;
	const uint8_t *at = reader->stack.items + stack;
	uint32_t place = tally_stack_next_place(&at);
	uint32_t function = tally_names_function(names, &profile->places.places.items[place], NULL);
	if (filter->objects && !tally_list_has(filter->objects, tally_names_object(names, function)) &&
	    !tally_list_has(filter->objects, tally_names_short_object(names, function)))
		return false;
	return !filter->symbols || tally_list_has(filter->symbols, tally_names_text(names, function));
}

static int push_place(struct tally_sample_reader *reader, uint32_t place)
{
	if (place == UINT32_MAX ||
	    tally_vector_reserve(&reader->stack, reader->stack.count + TALLY_PLACE_BYTES_MAX) < 0)
		return -ENOMEM;
	uint8_t *at = reader->stack.items + reader->stack.count;
	reader->stack.count += (size_t)(tally_stack_put_place(at, place) - at);
	return 0;
}

static int push_address(struct tally_sample_reader *reader, const struct pending *sample, bool kernel,
			uint64_t address, uint32_t before)
{
	struct tally_profile *profile = reader->profile;
	uint64_t maps = kernel ? sample->kernel_maps : sample->user_maps;
	return push_place(reader, tally_place_table_find(&profile->places, &profile->recording->tasks, sample->pid,
							 kernel, maps, address, before));
}

static bool is_kernel_mode(uint16_t misc)
{
	unsigned mode = misc & TALLY_MISC_CPUMODE_MASK;
	return mode == TALLY_MISC_KERNEL || mode == TALLY_MISC_GUEST_KERNEL;
}

static int add_to_row(struct tally_sample_reader *reader, uint32_t row, uint64_t period)
{
	if (row == NO_ROW)
		return -ENOMEM;
	if (row == FILTERED) {
		reader->profile->filtered++;
		return 0;
	}
	struct tally_row *there = &reader->profile->rows.rows.items[row];
	there->samples++;
	there->period += period;
	return 0;
}

/* The outermost caller of a stack that was cut. */
static int push_cut(struct tally_sample_reader *reader)
{
	const struct tally_place cut = { .file = TALLY_FILE_NONE, .address = TALLY_PLACE_CUT };
	return push_place(reader, tally_place_table_intern(&reader->profile->places, &cut));
}

static int make_stack(struct tally_sample_reader *reader, struct pending *sample)
{
	struct tally_chain_walk walk = {
		.at = sample->words, .end = sample->words + (sample->is_ip ? 0 : sample->count),
		.kernel = is_kernel_mode(sample->misc),
	};
	uint64_t address;
	sample->stack = reader->stack.count;
	if (sample->is_ip && push_address(reader, sample, is_kernel_mode(sample->misc), sample->ip, 0) < 0)
		return -ENOMEM;
	while (tally_chain_walk_next(&walk, &address))
		if (push_address(reader, sample, walk.kernel, address, walk.is_return && address) < 0)
			return -ENOMEM;
	return sample->misc & TALLY_MISC_STACK_CUT && !sample->is_ip ? push_cut(reader) : 0;
}

/* Makes the row's hash of the stack that was made last. */
static void end_stack(struct tally_sample_reader *reader, struct pending *sample)
{
	sample->stack_bytes = reader->stack.count - sample->stack;
	if (!leaf_passes(reader, sample->stack)) {
		sample->row = FILTERED;
		return;
	}
	sample->row_hash = tally_row_table_hash(sample->class, reader->stack.items + sample->stack, sample->stack_bytes);
	tally_row_table_prefetch(&reader->profile->rows, sample->row_hash);
}

static uint32_t put_row(struct tally_sample_reader *reader, const struct pending *sample)
{
	return sample->row == FILTERED ? FILTERED :
	       tally_row_table_put(&reader->profile->rows, sample->row_hash, sample->class,
				   reader->stack.items + sample->stack, sample->stack_bytes);
}

/* The row of a chain that was not known when the batch was looked up; its like may have been in the batch. */
static uint32_t learn_chain(struct tally_sample_reader *reader, const struct pending *sample)
{
	uint32_t row = tally_chain_table_find(&reader->chains, sample->hash);
	if (row != NO_ROW)
		return row;
	row = put_row(reader, sample);
	if (reader->chains.count > CHAINS_LEAST + CHAINS_PER_ROW * reader->profile->rows.rows.count)
		tally_chain_table_clear(&reader->chains);
	if (row != NO_ROW && tally_chain_table_add(&reader->chains, sample->hash, row) < 0)
		return NO_ROW;
	return row;
}

/* ---- the batch ----------------------------------------------------------------------------------------- */

/* Looks the chains up, and makes the stacks of those that are new: which rows they have is looked up after. */
static int look_up(struct tally_sample_reader *reader)
{
	const struct tally_row *rows = reader->profile->rows.rows.items;
	for (size_t i = 0; i < reader->waiting; i++) {
		struct pending *sample = &reader->batch[i];
		sample->row = tally_chain_table_find(&reader->chains, sample->hash);
		sample->is_new = sample->row == NO_ROW;
		if (sample->row < FILTERED)
			__builtin_prefetch(&rows[sample->row], 1);
	}
	reader->stack.count = 0;
	for (size_t i = 0; i < reader->waiting; i++) {
		struct pending *sample = &reader->batch[i];
		if (!sample->is_new)
			continue;
		if (make_stack(reader, sample) < 0)
			return -ENOMEM;
		end_stack(reader, sample);
	}
	return 0;
}

int tally_sample_reader_flush(struct tally_sample_reader *reader)
{
	int result = look_up(reader);
	for (size_t i = 0; !result && i < reader->waiting; i++) {
		struct pending *sample = &reader->batch[i];
		result = add_to_row(reader, sample->is_new ? learn_chain(reader, sample) : sample->row, sample->period);
	}
	reader->waiting = reader->copied = 0;
	return result;
}

static int on_change(void *context)
{
	struct tally_sample_reader *reader = context;
	reader->era++;
	return tally_sample_reader_flush(reader);
}

/* A stack that is unwound here is different each time until it is unwound. */
static int add_unwound(struct tally_sample_reader *reader, const struct tally_raw_record *raw,
		       const struct tally_record *record, uint32_t class, uint64_t period)
{
	struct tally_recording *recording = reader->profile->recording;
	if (tally_recording_chain(recording, raw, record) < 0)
		return -ENOMEM;
	struct pending sample = { .class = class };
	reader->stack.count = 0;
	for (size_t i = 0; i < recording->chain.count; i++)
		if (push_place(reader, tally_place_table_intern(&reader->profile->places,
								&recording->chain.items[i].place)) < 0)
			return -ENOMEM;
	end_stack(reader, &sample);
	return add_to_row(reader, put_row(reader, &sample), period);
}

/* Records don't stay, chains do for the batch's time; false: it is too long for that. */
static bool copy_chain(struct tally_sample_reader *reader, struct pending *sample)
{
	if (sample->count > COPIED_WORDS - reader->copied)
		return false;
	uint64_t *copy = &reader->copies[reader->copied];
	memcpy(copy, sample->words, sample->count * sizeof(*copy));
	reader->copied += sample->count;
	sample->words = copy;
	return true;
}

static bool has_address(const struct tally_sample *sample)
{
	for (uint64_t i = 0; i < sample->chain_length; i++)
		if (sample->chain[i] < TALLY_CONTEXT_MAX)
			return true;
	return false;
}

static uint64_t period_of(const struct tally_raw_record *raw, const struct tally_sample *sample)
{
	if (sample->type & TALLY_SAMPLE_PERIOD)
		return sample->period;
	return raw->event->attr.flags & TALLY_ATTR_FREQ ? 1 : raw->event->attr.sample_period;
}

int tally_sample_reader_add(struct tally_sample_reader *reader, const struct tally_raw_record *raw,
			    const struct tally_record *record)
{
	struct tally_recording *recording = reader->profile->recording;
	const struct tally_sample *sample = &record->sample;
	const struct known_task *task = task_of(reader, raw, sample);
	struct pending *waiting = &reader->batch[reader->waiting];
	if (!task)
		return -ENOMEM;
	if (sample->stack && !(recording->leaves_only && sample->type & TALLY_SAMPLE_IP)) {
		uint32_t class = task->class;
		int result = tally_sample_reader_flush(reader);
		return result < 0 ? result : add_unwound(reader, raw, record, class, period_of(raw, sample));
	}
	*waiting = (struct pending){
		.words = sample->chain, .count = sample->chain_length, .ip = sample->ip, .period = period_of(raw, sample),
		.user_maps = task->maps, .kernel_maps = recording->tasks.kernel.generation,
		.pid = sample->pid, .class = task->class, .misc = record->header.misc,
		.is_ip = sample->type & TALLY_SAMPLE_IP && (recording->leaves_only || !has_address(sample)),
	};
	if (waiting->is_ip) {
		waiting->words = &waiting->ip;
		waiting->count = 1;
	}
	bool is_cut = waiting->misc & TALLY_MISC_STACK_CUT;
	uint64_t meaning = waiting->class | (uint64_t)is_kernel_mode(waiting->misc) << 32 |
			   (uint64_t)waiting->is_ip << 33 | (uint64_t)is_cut << 34 | waiting->kernel_maps << 35;
	waiting->hash = tally_chain_table_hash(&reader->chains, waiting->words, waiting->count, meaning,
					       waiting->user_maps);
	tally_chain_table_prefetch(&reader->chains, waiting->hash);
	bool stays = waiting->is_ip || copy_chain(reader, waiting);
	if (++reader->waiting == BATCH || !stays)
		return tally_sample_reader_flush(reader);
	return 0;
}

/* ---- its life ------------------------------------------------------------------------------------------ */

struct tally_sample_reader *tally_sample_reader_new(struct tally_profile *profile,
						    const struct tally_profile_options *options)
{
	struct tally_sample_reader *reader = calloc(1, sizeof(*reader));
	if (!reader)
		return NULL;
	if (tally_chain_table_init(&reader->chains) < 0) {
		free(reader);
		return NULL;
	}
	reader->profile = profile;
	reader->options = options;
	reader->era = 1;
	profile->recording->before_change.call = on_change;
	profile->recording->before_change.context = reader;
	return reader;
}

void tally_sample_reader_free(struct tally_sample_reader *reader)
{
	if (!reader)
		return;
	reader->profile->recording->before_change.call = NULL;
	tally_chain_table_release(&reader->chains);
	tally_map_release(&reader->class_index);
	tally_vector_release(&reader->stack);
	free(reader);
}
