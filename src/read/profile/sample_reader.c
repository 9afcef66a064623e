/* A sample's chain is hashed as a whole, and profile_internal.h finds its row.  The meaning of a chain
 * depends on the maps of its process, so the number of these maps (see tally_tasks_generation()) is
 * hashed as well.
 *
 * For a long recording, one thread reads samples and hashes their chains, and a second one makes
 * rows of them.  The data that the first thread changes (tasks, classes) and the data that the
 * second one changes (chains, places, rows) are separate, down to cache lines: sharing a line costs
 * more than the second thread gains.  But the second thread looks up addresses in the tasks' maps.
 * Before these or anything else of the tasks changes, the first thread waits until the second one
 * has nothing to do, and makes the rest of the rows itself.  Waking the second thread for a few
 * samples costs more than they do, which matters when maps change all the time.  Samples keep their
 * order, so rows and places get the same numbers as with one thread.
 *
 * Chains are not copied for the second thread: the blocks that hold them are kept until their batch
 * is done.
 */
#include "profile/profile_internal.h"

#include "base/extremes.h"
#include "base/threads.h"
#include "base/vector.h"
#include "profile/profile.h"

#include "tally/perf_event.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TIME_QUANTUM_NS = 100000000 };

enum {
	BATCH = 512,         /* samples that are handed to the second thread together */
	BLOCKS = 16,         /* maximum number of blocks of a batch */
	COPIED_WORDS = 2048, /* for chains in records that are not kept in blocks */
	TASKS = 256,         /* tasks that are remembered */
	SPLIT_SAMPLES = 1 << 17,
};

struct batch {
	size_t count, blocks_held, copied;
	double share; /* share of the recording read when it is full */
	struct tally_block *blocks[BLOCKS];
	struct tally_hashed_sample samples[BATCH];
	uint64_t copies[COPIED_WORDS];
};

/* A task's properties, remembered until a record changes tasks. */
struct known_task {
	uint64_t era; /* of the reader when this was learnt */
	uint64_t maps;
	uint64_t cgroup;
	uint32_t event, pid, tid, cpu, class, waker;
};

struct tally_sample_reader {
	struct tally_profile *profile;
	/* the profile's; kept here because the second thread writes to the profile */
	struct tally_recording *recording;
	const struct tally_profile_options *options;
	struct tally_row_maker *rows;
	const struct tally_chain_table *hasher;
	struct tally_map class_index; /* hash → class */
	struct known_task tasks[TASKS];
	uint64_t era;
	struct batch *batch; /* the batch being filled */
	struct batch *batches[TALLY_PIPE_BATCHES];
	size_t batch_samples; /* number of samples at which it is handed over */
	/* size: of the recording in bytes; 0: not known */
	uint64_t samples, split_samples, size;
	struct tally_fact_reader facts;
	uint64_t wanted_facts, quantum_ns;
	char apart[64];
	struct tally_batch_pipe pipe;
};

/* ---- classes ------------------------------------------------------------- */

static int make_class(struct tally_sample_reader *reader, const struct known_task *task,
		      const struct tally_recorded_event *event, struct tally_class *class)
{
	struct tally_profile *profile = reader->profile;
	struct tally_tasks *tasks = &profile->recording->tasks;
	char buffer[16];
	bool merge = reader->options->merge_threads;
	uint32_t cgroup = 0, cgroup_id = 0;
	if (reader->options->by_cgroup)
		cgroup = tally_class_cgroup(tasks, event, task->cgroup);
	if (reader->options->by_cgroup_id)
		cgroup_id = tally_class_cgroup_namespace(tasks, task->pid, task->tid);
	uint32_t thread = tally_tasks_thread(tasks, task->pid, task->tid);
	uint32_t comm = tally_strings_intern(&tasks->strings,
					     tally_tasks_comm(tasks, task->pid, task->tid, buffer));
	*class = (struct tally_class){
		.event = task->event,
		.thread = merge ? UINT32_MAX : thread,
		.comm = comm,
		.cpu = task->cpu,
		.cgroup = cgroup,
		.cgroup_id = cgroup_id,
		.is_idle_task = tally_tasks_is_idle(tasks, task->pid, task->tid),
		.waker = task->waker,
	};
	if (thread == UINT32_MAX || comm == TALLY_STRING_NONE || cgroup == TALLY_STRING_NONE ||
	    cgroup_id == TALLY_STRING_NONE)
		return -ENOMEM;
	if (merge && !tally_map_put(&profile->merged_threads, (uint64_t)task->event << 32 | thread,
				    NULL))
		return -ENOMEM;
	return 0;
}

static int learn_task(struct tally_sample_reader *reader, struct known_task *task,
		      const struct tally_recorded_event *event)
{
	struct tally_profile *profile = reader->profile;
	const struct tally_tasks *tasks = &profile->recording->tasks;
	struct tally_class class = { .event = task->event, .thread = UINT32_MAX, .cpu = task->cpu };
	if (!reader->options->only_places && make_class(reader, task, event, &class) < 0)
		return -ENOMEM;
	profile->has_stacks |= !profile->of_branches && tally_recording_has_stacks(&event->attr);
	task->maps = tally_tasks_generation(tasks, task->pid);
	task->class = tally_class_intern(profile, &reader->class_index, &class);
	task->era = reader->era;
	if (task->class == UINT32_MAX)
		return -ENOMEM;
	return 0;
}

/* Replaces a remembered task by another one, or by its current state.  Returns NULL when memory is
 * out. */
static const struct known_task *another_task(struct tally_sample_reader *reader,
					     struct known_task *there,
					     const struct known_task *wanted,
					     const struct tally_recorded_event *event)
{
	*there = *wanted;
	/* this may add a task, while the second thread may be reading their maps */
	if (reader->pipe.is_running && tally_batch_pipe_drain(&reader->pipe) < 0)
		return NULL;
	if (learn_task(reader, there, event) < 0)
		return NULL;
	return there;
}

/* Returns the sample's task; NULL when memory is out.  The wanted task is only made a struct when
 * it is new.  A compiler compares two halves of a struct as one word, and a CPU has to wait for a
 * word whose halves were just stored.  This took an eighth of the time of a report without call
 * trees. */
static const struct known_task *task_of(struct tally_sample_reader *reader,
					const struct tally_raw_record *raw,
					const struct tally_sample *sample)
{
	size_t event_count;
	const struct tally_recorded_event *events =
		tally_perfdata_events(reader->recording->data, &event_count);
	bool has_cpu = sample->type & TALLY_SAMPLE_CPU && !reader->options->merge_cpus;
	uint32_t event = (uint32_t)(raw->event - events), pid = sample->pid, tid = sample->tid;
	uint32_t cpu = has_cpu ? sample->cpu : UINT32_MAX;
	uint64_t cgroup = reader->options->by_cgroup ? sample->cgroup : 0;
	uint32_t waker = reader->recording->off_cpu.waker;
	uint32_t hash = tid + event * 31 + cpu * 7 + (uint32_t)cgroup * 13 + waker * 17;
	struct known_task *there = &reader->tasks[hash % TASKS];
	if (there->era == reader->era && there->event == event && there->pid == pid &&
	    there->tid == tid && there->cpu == cpu && there->cgroup == cgroup &&
	    there->waker == waker)
		return there;
	const struct known_task wanted = {
		.event = event, .pid = pid, .tid = tid, .cpu = cpu, .cgroup = cgroup, .waker = waker
	};
	return another_task(reader, there, &wanted, raw->event);
}

/* ---- batches ------------------------------------------------------------- */

static int work_off(void *context, unsigned number)
{
	struct tally_sample_reader *reader = context;
	const struct batch *batch = reader->batches[number];
	return tally_row_maker_add(reader->rows, batch->samples, batch->count, batch->share);
}

static void clear_batch(struct tally_sample_reader *reader, struct batch *batch)
{
	while (batch->blocks_held)
		tally_recording_drop(reader->recording, batch->blocks[--batch->blocks_held]);
	batch->count = batch->copied = 0;
}

/* Makes the batch's rows in this thread. */
static int add_batch(struct tally_sample_reader *reader)
{
	struct batch *batch = reader->batch;
	int result = tally_row_maker_add(reader->rows, batch->samples, batch->count, batch->share);
	clear_batch(reader, batch);
	return result;
}

/* Hands over the batch. */
static int submit(struct tally_sample_reader *reader, uint64_t file_offset)
{
	reader->batch->share = 0;
	if (reader->size)
		reader->batch->share = (double)file_offset / (double)reader->size;
	if (!reader->pipe.is_running)
		return add_batch(reader);
	int result = tally_batch_pipe_submit(&reader->pipe);
	reader->batch = reader->batches[tally_batch_pipe_next(&reader->pipe)];
	clear_batch(reader, reader->batch);
	return result;
}

/* Makes the rows of all samples read so far. */
static int flush(struct tally_sample_reader *reader)
{
	if (reader->pipe.is_running) {
		int result = tally_batch_pipe_drain(&reader->pipe);
		if (result)
			return result;
	}
	return add_batch(reader);
}

/* Starts the second thread.  If that fails, the first one goes on alone. */
static int split(struct tally_sample_reader *reader)
{
	int result = flush(reader);
	for (unsigned i = 1; !result && i < TALLY_PIPE_BATCHES; i++) {
		reader->batches[i] = calloc(1, sizeof(*reader->batches[i]));
		if (!reader->batches[i])
			result = -ENOMEM;
	}
	if (!result && !tally_batch_pipe_start(&reader->pipe, work_off, reader))
		reader->batch_samples = BATCH;
	return result;
}

static int on_change(void *context)
{
	struct tally_sample_reader *reader = context;
	reader->era++;
	return flush(reader);
}

/* ---- samples ------------------------------------------------------------- */

/* Keeps the chain valid until its batch is done.  Returns false if that is not possible. */
static bool keep_chain(struct tally_sample_reader *reader, struct tally_hashed_sample *sample)
{
	struct batch *batch = reader->batch;
	struct tally_block *block;
	if (tally_recording_block(reader->recording, sample->words, &block)) {
		for (size_t i = batch->blocks_held; block && i--;)
			if (batch->blocks[i] == block)
				return true;
		tally_block_hold(block);
		if (block)
			batch->blocks[batch->blocks_held++] = block;
		return true;
	}
	if (sample->count > COPIED_WORDS - batch->copied)
		return false;
	uint64_t *copy = &batch->copies[batch->copied];
	memcpy(copy, sample->words, sample->count * sizeof(*copy));
	batch->copied += sample->count;
	sample->words = copy;
	return true;
}

/* A stack copy has to be unwound first: copies differ even if their stacks are the same. */
static int add_unwound(struct tally_sample_reader *reader, const struct tally_raw_record *raw,
		       const struct tally_record *record, uint32_t class, uint64_t period)
{
	int result = flush(reader);
	if (result)
		return result;
	if (tally_recording_chain(reader->recording, raw, record) < 0)
		return -ENOMEM;
	return tally_row_maker_add_unwound(reader->rows, class, period);
}

static bool has_address(const struct tally_sample *sample)
{
	for (uint64_t i = 0; i < sample->chain_length; i++)
		if (sample->chain[i] < TALLY_CONTEXT_MAX)
			return true;
	return false;
}

static int reserve_spreads(struct tally_profile *profile, uint32_t event)
{
	while (profile->spreads.count <= event)
		if (tally_vector_push(&profile->spreads, (struct tally_period_spread){ 0 }) < 0)
			return -ENOMEM;
	return 0;
}

/* Notes the periods of a sample's `count` rows.  The branches of one sample are not independent, so
 * they enter as one. */
static inline int note_period(struct tally_profile *profile, uint32_t event, uint64_t period,
			      uint64_t count)
{
	if (profile->spreads.count <= event && reserve_spreads(profile, event) < 0)
		return -ENOMEM;
	struct tally_period_spread *spread = &profile->spreads.items[event];
	spread->samples += count;
	spread->sum += (double)period;
	spread->squares += (double)period * (double)period;
	return 0;
}

static void hash_chain(const struct tally_sample_reader *reader, struct tally_hashed_sample *sample)
{
	uint64_t meaning = sample->class | (uint64_t)sample->is_kernel << 32 |
			   (uint64_t)sample->is_ip << 33 | (uint64_t)sample->is_cut << 34 |
			   (uint64_t)sample->is_late << 35 | sample->kernel_maps << 36;
	sample->hash = tally_chain_table_hash(reader->hasher, sample->words, sample->count, meaning,
					      sample->user_maps);
}

/* Returns the class of a task's sample with these facts; UINT32_MAX when memory is out. */
static uint32_t class_with_facts(struct tally_sample_reader *reader, uint32_t number,
				 const struct tally_sample_facts *facts)
{
	struct tally_profile *profile = reader->profile;
	struct tally_class class = profile->classes.items[number];
	class.facts = tally_facts_intern(&profile->facts, facts);
	if (!class.facts)
		return UINT32_MAX;
	return tally_class_intern(profile, &reader->class_index, &class);
}

/* A branch doesn't say whether an address is the kernel's; the upper half of addresses is. */
static uint32_t find_place(struct tally_sample_reader *reader, const struct known_task *task,
			   uint64_t address)
{
	const struct tally_tasks *tasks = &reader->recording->tasks;
	bool kernel = address >> 63;
	return tally_place_table_find(&reader->profile->places, tasks, task->pid, kernel,
				      kernel ? tasks->kernel.generation : task->maps, address,
				      TALLY_ADDRESS_EXACT);
}

/* Sets the wanted facts of one end of a branch: its place.  Returns 0 or -ENOMEM. */
static int add_branch_end(const struct tally_sample_reader *reader, uint32_t place,
			  enum tally_sort_key object, enum tally_sort_key symbol,
			  enum tally_sort_key line, struct tally_sample_facts *facts)
{
	const enum tally_sort_key keys[] = { object, symbol, line };
	for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (reader->wanted_facts & TALLY_SORT_BIT(keys[i]))
			*tally_fact(facts, keys[i]) = place;
	if (place == UINT32_MAX)
		return -ENOMEM;
	return 0;
}

static int add_branch(struct tally_sample_reader *reader, const struct known_task *task,
		      const struct tally_fact_source *source, struct tally_sample_facts facts)
{
	const uint64_t from = TALLY_SORT_BIT(TALLY_SORT_OBJECT_FROM) |
			      TALLY_SORT_BIT(TALLY_SORT_SYMBOL_FROM) |
			      TALLY_SORT_BIT(TALLY_SORT_LINE_FROM);
	if (reader->wanted_facts & from &&
	    add_branch_end(reader, find_place(reader, task, source->branch->from),
			   TALLY_SORT_OBJECT_FROM, TALLY_SORT_SYMBOL_FROM, TALLY_SORT_LINE_FROM,
			   &facts) < 0)
		return -ENOMEM;
	uint32_t to = find_place(reader, task, source->branch->to);
	if (add_branch_end(reader, to, TALLY_SORT_OBJECT_TO, TALLY_SORT_SYMBOL_TO,
			   TALLY_SORT_LINE_TO, &facts) < 0 ||
	    tally_facts_read(&reader->facts, source, reader->wanted_facts & TALLY_SORT_OF_BRANCHES,
			     &facts) < 0)
		return -ENOMEM;
	uint32_t class = class_with_facts(reader, task->class, &facts);
	if (class == UINT32_MAX)
		return -ENOMEM;
	return tally_row_maker_add_place(reader->rows, class, to, 1);
}

static int add_branches(struct tally_sample_reader *reader, const struct known_task *task,
			const struct tally_raw_record *raw, const struct tally_sample *sample)
{
	uint64_t count = sample->branches ? sample->branch_count : 0;
	struct tally_fact_source source = { .event = raw->event,
					    .sample = sample,
					    .quantum_ns = reader->quantum_ns };
	struct tally_sample_facts facts = { 0 };
	int result = count ? note_period(reader->profile, task->event, count, count) : 0;
	if (!result && count)
		result = tally_facts_read(&reader->facts, &source,
					  reader->wanted_facts & ~TALLY_SORT_OF_BRANCHES, &facts);
	for (uint64_t i = 0; !result && i < count; i++) {
		source.branch = &sample->branches[i];
		result = add_branch(reader, task, &source, facts);
	}
	return result;
}

/* Returns the class of a sample that is kept apart by facts; UINT32_MAX when memory is out. */
static uint32_t class_of_sample(struct tally_sample_reader *reader, const struct known_task *task,
				const struct tally_raw_record *raw,
				const struct tally_sample *sample)
{
	const struct tally_fact_source source = { .event = raw->event,
						  .sample = sample,
						  .quantum_ns = reader->quantum_ns };
	struct tally_sample_facts facts = { 0 };
	if (tally_facts_read(&reader->facts, &source, reader->wanted_facts, &facts) < 0)
		return UINT32_MAX;
	return class_with_facts(reader, task->class, &facts);
}

int tally_sample_reader_add(struct tally_sample_reader *reader, const struct tally_raw_record *raw,
			    const struct tally_record *record)
{
	const struct tally_recording *recording = reader->recording;
	const struct tally_sample *sample = &record->sample;
	const struct known_task *task = task_of(reader, raw, sample);
	if (!task || (++reader->samples == reader->split_samples && split(reader) < 0))
		return -ENOMEM;
	uint64_t period = sample->period;
	if (reader->options->by_cost)
		period = tally_max_u64(tally_sample_cost(sample), 1);
	if (reader->options->of_branches)
		return add_branches(reader, task, raw, sample);
	if (tally_recording_weigh(reader->recording, task->event, &period) < 0)
		return -ENOMEM;
	uint32_t class = task->class;
	if (reader->wanted_facts)
		class = class_of_sample(reader, task, raw, sample);
	if (class == UINT32_MAX || note_period(reader->profile, task->event, period, 1) < 0)
		return -ENOMEM;
	if (sample->stack && !(recording->options.leaves_only && sample->type & TALLY_SAMPLE_IP))
		return add_unwound(reader, raw, record, class, period);
	const struct tally_space space = tally_space_of(record->header.misc, sample->pid);
	uint64_t user_maps = task->maps;
	if (space.pid != sample->pid)
		user_maps = tally_tasks_generation(&recording->tasks, space.pid);
	bool is_late = tally_recording_is_late(reader->recording, raw, record);
	bool is_ip = sample->type & TALLY_SAMPLE_IP &&
		     (recording->options.leaves_only || !has_address(sample));
	if (is_ip && (recording->options.leaves_only || reader->options->only_places) &&
	    !reader->pipe.is_running) {
		const struct tally_leaf_sample leaf = {
			.ip = sample->ip,
			.period = period,
			.pid = space.pid,
			.class = class,
			.is_kernel = space.kernel,
			.is_late = is_late,
			.maps = space.kernel ? recording->tasks.kernel.generation : user_maps,
		};
		return tally_row_maker_add_leaf(reader->rows, &leaf);
	}
	struct batch *batch = reader->batch;
	struct tally_hashed_sample *waiting = &batch->samples[batch->count];
	*waiting = (struct tally_hashed_sample){
		.words = sample->chain ? sample->chain : &waiting->ip,
		.count = (uint32_t)sample->chain_length,
		.ip = sample->ip,
		.period = period,
		.user_maps = user_maps,
		.kernel_maps = recording->tasks.kernel.generation,
		.pid = space.pid,
		.class = class,
		.is_kernel = space.kernel,
		.is_late = is_late,
		.is_ip = is_ip,
	};
	waiting->is_cut = !waiting->is_ip && (recording->chain.is_full ||
					      record->header.misc & TALLY_MISC_STACK_INCOMPLETE);
	if (waiting->is_ip) {
		waiting->words = &waiting->ip;
		waiting->count = 1;
	}
	if (reader->options->only_places)
		return tally_row_maker_add_places(reader->rows, waiting);
	batch->count++;
	hash_chain(reader, waiting);
	if (!reader->pipe.is_running)
		tally_chain_table_prefetch(reader->hasher, waiting->hash);
	if (!waiting->is_ip && !keep_chain(reader, waiting))
		return flush(reader);
	if (batch->count == reader->batch_samples || batch->blocks_held == BLOCKS)
		return submit(reader, raw->file_offset);
	return 0;
}

int tally_sample_reader_finish(struct tally_sample_reader *reader)
{
	int result = flush(reader);
	tally_facts_shorten(&reader->facts, &reader->profile->facts);
	return result;
}

/* ---- its life ------------------------------------------------------------ */

/* Returns the number of samples after which a second thread helps.  Leaves are named with data that
 * only one thread may use.  For leaves or places alone there is too little work for two threads. */
static uint64_t split_from(const struct tally_profile *profile,
			   const struct tally_profile_options *options)
{
	if (options->filter.objects || options->filter.symbols || options->facts ||
	    options->of_branches || options->only_places)
		return UINT64_MAX;
	if (options->split_samples)
		return options->split_samples;
	if (tally_cpus_allowed() > 1 && !profile->recording->options.leaves_only)
		return SPLIT_SAMPLES;
	return UINT64_MAX;
}

struct tally_sample_reader *tally_sample_reader_new(struct tally_profile *profile,
						    const struct tally_profile_options *options)
{
	struct tally_sample_reader *reader = calloc(1, sizeof(*reader));
	if (!reader)
		return NULL;
	*reader = (struct tally_sample_reader){
		.profile = profile,
		.recording = profile->recording,
		.options = options,
		.rows = tally_row_maker_new(profile, options),
		.batch_samples = TALLY_SLICE,
		.split_samples = split_from(profile, options),
		.size = tally_perfdata_size(profile->recording->data),
		.era = 1,
		.facts.recording = profile->recording,
		.wanted_facts = options->facts & TALLY_SORT_OF_FACTS,
		.quantum_ns = options->time_quantum_ns ? options->time_quantum_ns : TIME_QUANTUM_NS,
	};
	if (!options->of_branches)
		reader->wanted_facts &= ~TALLY_SORT_OF_BRANCHES;
	reader->batch = reader->batches[0] = calloc(1, sizeof(*reader->batch));
	if (!reader->rows || !reader->batch) {
		tally_row_maker_free(reader->rows);
		free(reader->batch);
		free(reader);
		return NULL;
	}
	reader->hasher = tally_row_maker_chains(reader->rows);
	tally_recording_on_change(reader->recording, on_change, reader);
	return reader;
}

void tally_sample_reader_free(struct tally_sample_reader *reader)
{
	if (!reader)
		return;
	tally_recording_on_change(reader->recording, NULL, NULL);
	tally_batch_pipe_stop(&reader->pipe);
	for (unsigned i = 0; i < TALLY_PIPE_BATCHES && reader->batches[i]; i++) {
		clear_batch(reader, reader->batches[i]);
		free(reader->batches[i]);
	}
	tally_row_maker_free(reader->rows);
	tally_map_release(&reader->class_index);
	tally_fact_reader_release(&reader->facts);
	free(reader);
}
