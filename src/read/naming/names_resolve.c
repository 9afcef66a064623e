/* Names many places at once.
 *
 * One by one, each lookup would start anew: a binary search in a table of 100,000 symbols, a search
 * for the compile unit, a walk through its tree for inlined functions, a name to demangle.  For
 * many places at once, the places of a file are sorted by address.  Both searches become a merge,
 * each compile unit is read once, and a name is demangled when it first occurs.
 *
 * Files are independent until their names are interned, and reading them takes most of the time:
 * node's symbols 25 ms, kallsyms 45 ms (the kernel prints it), debug information more.  So each
 * file is a job, and jobs run on as many threads as there are CPUs, large ones first.  A job
 * touches only the file's table and object; its results stay in the table's terms.  Then the
 * caller's thread goes through the jobs by file and address and interns the names, so that ids
 * don't depend on how threads were scheduled.
 */
#include "naming/naming.h"

#include "base/error.h"
#include "base/extremes.h"
#include "base/terminal.h"
#include "base/text.h"
#include "base/threads.h"
#include "base/vector.h"
#include "naming/naming_internal.h"
#include "symbol/jit_dump.h"
#include "symbol/lines.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS_MAX = 16, COUNT_WORTH_KEEPING = 64 };

/* Costs are in bytes of a file that is read for the first time.  A thread is started only for a job
 * that costs at least COST_OF_THREAD: about a millisecond. */
static const uint64_t COST_OF_THREAD = 2 << 20, COST_OF_KALLSYMS = 100 << 20, COST_OF_PLACE = 4096;

/* A readable name that has no string id yet. */
struct fresh_text {
	const char *text;
	char *readable; /* NULL: `text` is readable */
};

struct job {
	struct tally_names *names; /* read only, except for the file's own table and object */
	uint32_t file;
	struct tally_name_table *table;
	struct tally_object_entry *entry;
	const struct tally_place *places;
	const uint32_t *members; /* the file's places, as indices into `places` */
	size_t count;
	uint64_t cost;

	/* The following are in order of addresses. */
	struct tally_radix_item *keys, *sorted; /* `sorted` points into `keys` */
	uint64_t *addresses;
	const struct tally_symbol **symbols;
	struct tally_line_answer *answers;
	/* frames of the answers from a JIT's dump; NULL: none */
	struct tally_line_frame *jit_frames;
	/* the late places with a line; `index` is that of the arrays above */
	struct { struct tally_late *items; size_t count, capacity; } late;
	struct { struct fresh_text *items; size_t count, capacity; } fresh;
	int result;
};

struct crew {
	struct job **jobs;
	size_t count;
	atomic_size_t next;
};

/* ---- in a job's thread --------------------------------------------------- */

static int allocate(struct job *job)
{
	job->keys = malloc(2 * job->count * sizeof(*job->keys));
	job->addresses = malloc(job->count * sizeof(*job->addresses));
	job->symbols = calloc(job->count, sizeof(*job->symbols));
	job->answers = calloc(job->count, sizeof(*job->answers));
	if (!job->keys || !job->addresses || !job->symbols || !job->answers)
		return -ENOMEM;
	return 0;
}

/* Places that are nowhere in the object come last, with an address that no symbol has. */
static void sort_members(struct job *job)
{
	for (size_t i = 0; i < job->count; i++) {
		uint64_t address;
		uint32_t member = job->members[i];
		if (!tally_name_table_address(job->names, job->table, job->entry,
					      &job->places[member], &address))
			address = UINT64_MAX;
		job->keys[i] = (struct tally_radix_item){ address, member };
	}
	job->sorted = tally_radix_sort(job->keys, job->keys + job->count, job->count);
	for (size_t i = 0; i < job->count; i++)
		job->addresses[i] = job->sorted[i].key;
}

static int add_fresh_text(struct job *job, const char *text)
{
	bool added = false;
	if (!text)
		return 0;
	if (!tally_map_put(&job->table->texts, (uint64_t)(uintptr_t)text, &added))
		return -ENOMEM;
	if (!added)
		return 0;
	struct fresh_text fresh = { text, NULL };
	if (!job->names->options.keep_mangled)
		fresh.readable = tally_demangle(text);
	return tally_vector_push(&job->fresh, fresh);
}

static int add_fresh_texts(struct job *job)
{
	const struct tally_symbol *last = NULL;
	for (size_t i = 0; i < job->count; i++) {
		const struct tally_line_answer *answer = &job->answers[i];
		if (job->symbols[i] && job->symbols[i] != last &&
		    add_fresh_text(job, job->symbols[i]->name) < 0)
			return -ENOMEM;
		last = job->symbols[i];
		for (uint32_t frame = 0; frame + 1 < answer->count; frame++)
			if (add_fresh_text(job, answer->frames[frame].function) < 0)
				return -ENOMEM;
	}
	return 0;
}

/* Addresses in ascending order, and what they mean.  A job's own arrays, or a part of them. */
struct asked {
	uint64_t *addresses;
	const struct tally_symbol **symbols;
	struct tally_line_answer *answers;
	size_t count;
};

/* The kernel's lines come from its file, whose addresses may differ from those of its table. */
static int find_file_lines(struct job *job, const struct asked *asked)
{
	const struct tally_names *names = job->names;
	uint64_t moved = 0;
	if (job->table->is_kernel)
		moved = (uint64_t)(names->kernel.shift - names->kernel.vmlinux_shift);
	for (size_t i = 0; moved && i < asked->count; i++)
		asked->addresses[i] += moved;
	int result = tally_lines_find(job->table->lines, asked->addresses, asked->count,
				      asked->answers);
	for (size_t i = 0; moved && i < asked->count; i++)
		asked->addresses[i] -= moved;
	return result;
}

/* A JIT's dump has lines, but not what was inlined. */
static void find_jit_line(struct job *job, size_t i, uint64_t address)
{
	const struct tally_jit_line *line = tally_jit_dump_line(job->table->dump, address);
	if (!line)
		return;
	job->jit_frames[i] = (struct tally_line_frame){ .file = line->file,
							.line = line->line,
							.column = line->column };
	job->answers[i] = (struct tally_line_answer){ &job->jit_frames[i], 1 };
}

static int find_jit_lines(struct job *job)
{
	job->jit_frames = calloc(job->count, sizeof(*job->jit_frames));
	if (!job->jit_frames)
		return -ENOMEM;
	for (size_t i = 0; i < job->count; i++)
		find_jit_line(job, i, job->addresses[i]);
	return 0;
}

static int find_lines(struct job *job, const struct asked *asked)
{
	if (job->table->lines && find_file_lines(job, asked) < 0)
		return -ENOMEM;
	if (!job->table->is_kernel)
		return 0;
	return tally_kernel_module_lines(job->names, job->table, asked->addresses, asked->symbols,
					 asked->count, asked->answers);
}

/* ---- late places --------------------------------------------------------- */

static int by_cause(const void *a_, const void *b_)
{
	const struct tally_late *a = a_, *b = b_;
	return tally_compare_u64(a->address + (uint64_t)a->moved, b->address + (uint64_t)b->moved);
}

/* Asks for the lines of the causes that have none yet, `back` bytes before them.  Sets `from` to
 * the late place of each address.  Returns 1, 0 if all have lines, or -ENOMEM. */
static int ask_causes(struct job *job, uint64_t back, const bool *has_line, struct asked *asked,
		      size_t *from)
{
	asked->count = 0;
	for (size_t i = 0; i < job->late.count; i++) {
		const struct tally_late *late = &job->late.items[i];
		const struct tally_symbol *symbol = job->symbols[late->index];
		uint64_t address = late->address + (uint64_t)late->moved - back;
		if (has_line[i] || (back && (!symbol || address < symbol->start)))
			continue;
		from[asked->count] = i;
		asked->symbols[asked->count] = symbol;
		asked->addresses[asked->count++] = address;
	}
	memset(asked->answers, 0, asked->count * sizeof(*asked->answers));
	if (!asked->count)
		return 0;
	if (find_lines(job, asked) < 0)
		return -ENOMEM;
	return 1;
}

/* Replaces the lines of the late places by those of their causes.  A compiler gives some
 * instructions no line.  A jump, such as that of a switch, gets the line of the code before; a load
 * that of the code behind, which waits for it. */
static int find_lines_of_causes(struct job *job)
{
	enum { BACK_MAX = 32 };
	size_t count = job->late.count;
	struct asked asked = { .addresses = calloc(count + 1, sizeof(*asked.addresses)),
			       .symbols = calloc(count + 1, sizeof(*asked.symbols)),
			       .answers = calloc(count + 1, sizeof(*asked.answers)) };
	size_t *from = calloc(count + 1, sizeof(*from));
	bool *has_line = calloc(count + 1, sizeof(*has_line));
	int more = 1;
	if (!asked.addresses || !asked.symbols || !asked.answers || !from || !has_line)
		more = -ENOMEM;
	qsort(job->late.items, count, sizeof(*job->late.items), by_cause);
	for (uint64_t back = 0; more > 0 && back <= BACK_MAX; back++) {
		more = ask_causes(job, back, has_line, &asked, from);
		for (size_t i = 0; more > 0 && i < asked.count; i++) {
			has_line[from[i]] = asked.answers[i].count && asked.answers[i].frames->line;
			const struct tally_late *late = &job->late.items[from[i]];
			struct tally_line_answer *answer = &job->answers[late->index];
			if (has_line[from[i]])
				*answer = asked.answers[i];
			has_line[from[i]] |= !late->is_jump && answer->count &&
					     answer->frames->line;
		}
	}
	free(asked.addresses);
	free(asked.symbols);
	free(asked.answers);
	free(has_line);
	free(from);
	return tally_error_of(more);
}

static void find_jit_lines_of_causes(struct job *job)
{
	for (size_t i = 0; i < job->late.count; i++) {
		const struct tally_late *late = &job->late.items[i];
		find_jit_line(job, late->index, late->address + (uint64_t)late->moved);
	}
}

/* Charges the late places to their causes.  Without lines these don't matter. */
static int charge(struct job *job)
{
	for (size_t i = 0; i < job->count; i++) {
		struct tally_late late = { .address = job->addresses[i],
					   .place = &job->places[job->sorted[i].index],
					   .index = (uint32_t)i };
		if (late.place->is_late && job->answers[i].count &&
		    tally_vector_push(&job->late, late) < 0)
			return -ENOMEM;
	}
	if (!job->late.count)
		return 0;
	int result = tally_causes_find(job->names, job->late.items, job->late.count);
	if (result)
		return result;
	if (!job->table->dump)
		return find_lines_of_causes(job);
	find_jit_lines_of_causes(job);
	return 0;
}

/* ---- a job --------------------------------------------------------------- */

static int run(struct job *job)
{
	size_t cursor = 0;
	bool lines = tally_names_reads_lines(job->names);
	if (allocate(job) < 0 || (job->entry && job->entry->lack == -ENOMEM) ||
	    tally_name_table_read(job->names, job->table, job->entry, lines) < 0)
		return -ENOMEM;
	for (size_t i = 0; job->table->is_kernel && i < job->count; i++)
		tally_kernel_names_reach(job->names, job->table,
					 job->places[job->members[i]].address);
	sort_members(job);
	for (size_t i = 0; i < job->count; i++)
		job->symbols[i] = tally_name_table_called(job->table, job->entry, job->addresses[i],
							  job->places[job->sorted[i].index].before,
							  &cursor);
	for (size_t i = 0; job->table->is_kernel && i < job->count; i++)
		job->symbols[i] = tally_kernel_module_symbol(job->names, job->table,
							     &job->places[job->sorted[i].index],
							     job->symbols[i]);
	for (size_t i = 0; job->table->is_kernel && i < job->count; i++)
		if (!job->symbols[i])
			tally_name_table_lacks(job->names, job->table);
	if (lines && job->table->dump && find_jit_lines(job) < 0)
		return -ENOMEM;
	const struct asked all = { job->addresses, job->symbols, job->answers, job->count };
	if (lines && (find_lines(job, &all) < 0 || charge(job) < 0))
		return -ENOMEM;
	if (lines && job->table->lines && job->count >= COUNT_WORTH_KEEPING)
		/* the few lines that come later are kept when the table is released */
		tally_lines_keep(job->table->lines);
	return add_fresh_texts(job);
}

static void *work(void *context)
{
	struct crew *crew = context;
	for (size_t at;
	     (at = atomic_fetch_add_explicit(&crew->next, 1, memory_order_relaxed)) < crew->count;)
		crew->jobs[at]->result = run(crew->jobs[at]);
	return NULL;
}

/* ---- sharing out --------------------------------------------------------- */

static int costlier_first(const void *a_, const void *b_)
{
	const struct job *a = *(struct job *const *)a_, *b = *(struct job *const *)b_;
	if (a->cost != b->cost)
		return tally_compare_u64(b->cost, a->cost);
	return tally_compare_u64(a->file, b->file);
}

static size_t wanted_threads(const struct crew *crew)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	size_t worth = 0;
	while (worth < crew->count && crew->jobs[worth]->cost >= COST_OF_THREAD)
		worth++;
	if (cpus < 1)
		cpus = 1;
	if (cpus > THREADS_MAX)
		cpus = THREADS_MAX;
	return (size_t)tally_min_u64(worth, (size_t)cpus);
}

/* The caller's thread works as well; it also does the share of threads that could not be
 * started. */
static int run_all(struct job *jobs, size_t count)
{
	pthread_t threads[THREADS_MAX];
	struct crew crew = { .jobs = malloc((count + 1) * sizeof(*crew.jobs)), .count = count };
	size_t started = 0;
	int result = 0;
	if (!crew.jobs)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		crew.jobs[i] = &jobs[i];
	qsort(crew.jobs, count, sizeof(*crew.jobs), costlier_first);
	size_t wanted = wanted_threads(&crew);
	while (started + 1 < wanted && !tally_thread_start(&threads[started], work, &crew))
		started++;
	work(&crew);
	for (size_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	free(crew.jobs);
	for (size_t i = 0; i < count; i++)
		if (jobs[i].result < 0)
			result = jobs[i].result;
	return result;
}

static uint64_t cost_of(const struct job *job)
{
	uint64_t cost = 0;
	size_t size = 0;
	if (!job->table->lines_tried && tally_names_reads_lines(job->names))
		cost = job->count * COST_OF_PLACE;
	if (job->table->is_read)
		return cost;
	if (job->table->is_kernel)
		return cost + COST_OF_KALLSYMS;
	if (job->entry)
		tally_object_image(job->entry->object, &size);
	return cost + size;
}

/* ---- interning ----------------------------------------------------------- */

static int intern_texts(struct job *job)
{
	for (size_t i = 0; i < job->fresh.count; i++) {
		const struct fresh_text *fresh = &job->fresh.items[i];
		uint32_t id = tally_strings_intern(&job->names->strings,
						   tally_text_or(fresh->readable, fresh->text));
		uint64_t *slot = tally_map_get(&job->table->texts,
					       (uint64_t)(uintptr_t)fresh->text);
		if (id == TALLY_STRING_NONE || !slot)
			return -ENOMEM;
		*slot = id;
	}
	return 0;
}

static uint32_t intern_or_none(struct tally_strings *strings, const char *text)
{
	if (!text)
		return TALLY_STRING_NONE;
	return tally_strings_intern(strings, text);
}

/* Writes the path without "//", "." and "..": compilers use them to name one file in many ways.
 * `out` has room for the whole path. */
static void make_plain_path(const char *path, char *out)
{
	char *begin = out + (*path == '/'), *at = begin;
	*out = '/';
	for (size_t length; *(path += strspn(path, "/")); path += length) {
		length = strcspn(path, "/");
		bool is_up = length == 2 && !strncmp(path, "..", 2);
		char *last = at; /* the beginning of the last part written so far */
		while (last > begin && last[-1] != '/')
			last--;
		bool is_last_up = at - last == 2 && !strncmp(last, "..", 2);
		if (length == 1 && *path == '.')
			continue;
		if (is_up && at > begin && !is_last_up) {
			at = last;
			if (at > begin)
				at--;
			continue;
		}
		if (at > begin)
			*at++ = '/';
		memcpy(at, path, length);
		at += length;
	}
	*at = '\0';
}

static uint32_t intern_declared(struct job *job, const char *path)
{
	bool added = false;
	if (!path)
		return TALLY_STRING_NONE;
	uint64_t *slot = tally_map_put(&job->table->texts, (uint64_t)(uintptr_t)path, &added);
	if (!slot)
		return TALLY_STRING_NONE;
	if (added) {
		char *plain = malloc(strlen(path) + 2);
		if (plain)
			make_plain_path(path, plain);
		*slot = intern_or_none(&job->names->strings, plain);
		job->names->strings.failed |= !plain;
		free(plain);
	}
	return (uint32_t)*slot;
}

/* Sets the declaring file of a symbol's function, if the debug information at the place describes
 * the same function. */
static void set_declared(struct job *job, uint32_t number, const struct tally_line_frame *frame)
{
	struct tally_function *function = &job->names->functions.items[number];
	if (!frame || !frame->source || !frame->function || function->symbol == TALLY_STRING_NONE ||
	    function->declared != TALLY_STRING_NONE ||
	    strcmp(frame->function, tally_strings_text(&job->names->strings, function->symbol)))
		return;
	function->declared = intern_declared(job, frame->source);
}

/* Appends the frame of an inlined function. */
static int push_inlined(struct job *job, const struct tally_line_frame *inlined, uint32_t object)
{
	struct tally_names *names = job->names;
	struct tally_function function = {
		.name = TALLY_STRING_NONE,
		.symbol = TALLY_STRING_NONE,
		.source = TALLY_STRING_NONE,
		.object = object,
		.kind = TALLY_FRAME_INLINED,
	};
	if (inlined->function) {
		function.name = tally_names_intern_text(names, &job->table->texts,
							inlined->function);
		function.symbol = tally_strings_intern(&names->strings, inlined->function);
	}
	function.declared = intern_declared(job, inlined->source);
	struct tally_place_frame frame = {
		.function = tally_names_intern_function(names, job->file, function),
		.file = intern_or_none(&names->strings, inlined->file),
		.line = inlined->line,
	};
	if (frame.function == UINT32_MAX)
		return -ENOMEM;
	return tally_vector_push(&names->frames, frame);
}

/* A place of a missing file is a function of its own. */
static uint64_t offset_of(uint64_t address, uint64_t start)
{
	if (start == UINT64_MAX || address == UINT64_MAX)
		return 0;
	return address - start;
}

static void note_refusal(struct job *job)
{
	struct tally_names_gaps *gaps = &job->names->gaps;
	const char *object = tally_strings_text(&job->names->strings, job->table->object);
	if (job->table->is_refusal_noted || !job->table->lines ||
	    !tally_lines_is_refused(job->table->lines))
		return;
	job->table->is_refusal_noted = true;
	if (!gaps->refused_objects++)
		tally_terminal_clean_name(tally_object_short(object), gaps->refused_object,
					  sizeof(gaps->refused_object));
}

static int intern_job(struct job *job, struct tally_place_name *out)
{
	struct tally_names *names = job->names;
	const struct tally_symbol *last = NULL;
	uint32_t function = UINT32_MAX;
	if (intern_texts(job) < 0)
		return -ENOMEM;
	names->gaps.lacks_xz |= job->entry && job->entry->lack == -ENOPKG;
	const char *missing = NULL;
	if (job->table->lines)
		missing = tally_lines_missing(job->table->lines);
	note_refusal(job);
	if (missing && tally_names_note_partial(
			       names, tally_strings_text(&names->strings, job->table->object),
			       missing) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < job->count; i++) {
		const struct tally_symbol *symbol = job->symbols[i];
		const struct tally_line_answer *answer = &job->answers[i];
		struct tally_place_name *name = &out[job->sorted[i].index];
		const struct tally_place *place = &job->places[job->sorted[i].index];
		uint64_t start;
		if (symbol)
			start = symbol->start;
		else
			start = tally_name_table_start(job->table, job->entry, place,
						       job->addresses[i]);
		if (function == UINT32_MAX || symbol != last || !symbol)
			function = tally_names_symbol_function(names, job->table, job->file, place,
							       symbol, start);
		if (function == UINT32_MAX)
			return -ENOMEM;
		last = symbol;
		*name = (struct tally_place_name){
			.first = (uint32_t)names->frames.count,
			.count = 1,
			.offset = offset_of(job->addresses[i], start),
		};
		if (answer->count)
			name->count = answer->count;
		for (uint32_t at = 0; at + 1 < answer->count; at++)
			if (push_inlined(job, &answer->frames[at],
					 names->functions.items[function].object) < 0)
				return -ENOMEM;
		const struct tally_line_frame *outer = NULL;
		struct tally_place_frame frame = { .function = function,
						   .file = TALLY_STRING_NONE };
		if (answer->count)
			outer = &answer->frames[answer->count - 1];
		set_declared(job, function, outer);
		if (outer) {
			frame.file = intern_or_none(&names->strings, outer->file);
			frame.line = outer->line;
		}
		if (tally_vector_push(&names->frames, frame) < 0)
			return -ENOMEM;
	}
	for (size_t i = 0; i < job->late.count; i++) {
		const struct tally_late *late = &job->late.items[i];
		struct tally_place_name *name = &out[job->sorted[late->index].index];
		name->moved = late->moved;
		name->is_charged = late->is_charged;
	}
	return 0;
}

static void release_job(struct job *job)
{
	tally_vector_release(&job->late);
	for (size_t i = 0; i < job->fresh.count; i++)
		free(job->fresh.items[i].readable);
	tally_vector_release(&job->fresh);
	free(job->keys);
	free(job->addresses);
	free(job->symbols);
	free(job->answers);
	free(job->jit_frames);
}

/* ---- all of it ----------------------------------------------------------- */

/* Places by file: members[starts[f]] … members[starts[f + 1]).  The kernel comes after the last
 * file. */
struct shares {
	size_t *starts;
	uint32_t *members;
	size_t files; /* number of files, which is the kernel's slot */
};

static size_t slot_of(const struct shares *shares, uint32_t file)
{
	if (file == TALLY_FILE_KERNEL)
		return shares->files;
	return file;
}

static int share_places(const struct tally_names *names, const struct tally_place *places,
			size_t count, struct shares *shares)
{
	shares->files = names->tasks->files.count;
	shares->starts = calloc(shares->files + 3, sizeof(*shares->starts));
	shares->members = malloc((count + 1) * sizeof(*shares->members));
	if (!shares->starts || !shares->members)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		uint32_t file = tally_names_file(names, &places[i]);
		if (file != TALLY_FILE_NONE)
			shares->starts[slot_of(shares, file) + 2]++;
	}
	for (size_t slot = 0; slot <= shares->files; slot++)
		shares->starts[slot + 2] += shares->starts[slot + 1];
	for (size_t i = 0; i < count; i++) {
		uint32_t file = tally_names_file(names, &places[i]);
		if (file != TALLY_FILE_NONE)
			shares->members[shares->starts[slot_of(shares, file) + 1]++] = (uint32_t)i;
	}
	return 0;
}

/* Makes all tables and objects before jobs point to them, because they move while others are
 * added. */
static int make_jobs(struct tally_names *names, const struct tally_place *places,
		     const struct shares *shares, struct job **jobs, size_t *count)
{
	*jobs = calloc(shares->files + 1, sizeof(**jobs));
	if (!*jobs)
		return -ENOMEM;
	for (size_t slot = 0; slot <= shares->files; slot++) {
		size_t first = shares->starts[slot], members = shares->starts[slot + 1] - first;
		if (!members)
			continue;
		struct job *job = &(*jobs)[(*count)++];
		*job = (struct job){ .names = names,
				     .places = places,
				     .members = shares->members + first,
				     .count = members,
				     .file = (uint32_t)slot };
		if (slot == shares->files)
			job->file = TALLY_FILE_KERNEL;
		if (!tally_name_table_of(names, job->file))
			return -ENOMEM;
	}
	for (size_t i = 0; i < *count; i++) {
		struct job *job = &(*jobs)[i];
		job->table = tally_name_table_of(names, job->file);
		job->entry = tally_name_table_entry(names, job->file);
		job->cost = cost_of(job);
	}
	return 0;
}

/* Names the places without a table. */
static int name_plainly(struct tally_names *names, const struct tally_place *places, size_t count,
			struct tally_place_name *out)
{
	for (size_t i = 0; i < count; i++) {
		struct tally_place_frame frame = { .file = TALLY_STRING_NONE };
		if (tally_names_file(names, &places[i]) != TALLY_FILE_NONE)
			continue;
		out[i] = (struct tally_place_name){ .first = (uint32_t)names->frames.count,
						    .count = 1 };
		frame.function = tally_names_plain_function(names, &places[i], &out[i].offset);
		if (frame.function == UINT32_MAX || tally_vector_push(&names->frames, frame) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Names a single place: setting up the jobs of all files would take longer. */
static int resolve_one(struct tally_names *names, const struct tally_place *place,
		       struct tally_place_name *out)
{
	uint32_t member = 0;
	struct job job = { .names = names, .places = place, .members = &member, .count = 1,
			   .file = tally_names_file(names, place) };
	if (job.file == TALLY_FILE_NONE)
		return name_plainly(names, place, 1, out);
	job.table = tally_name_table_of(names, job.file);
	if (!job.table)
		return -ENOMEM;
	job.entry = tally_name_table_entry(names, job.file);
	int result = run(&job);
	if (!result)
		result = intern_job(&job, out);
	release_job(&job);
	return result;
}

int tally_names_resolve_by_files(struct tally_names *names, const struct tally_place *places,
				 size_t count, struct tally_place_name *out)
{
	struct shares shares = { 0 };
	struct job *jobs = NULL;
	size_t job_count = 0;
	if (count == 1)
		return resolve_one(names, places, out);
	int result = share_places(names, places, count, &shares);
	if (result)
		goto out;
	result = make_jobs(names, places, &shares, &jobs, &job_count);
	if (result)
		goto out;
	result = run_all(jobs, job_count);
	if (result)
		goto out;
	result = name_plainly(names, places, count, out);
	for (size_t i = 0; !result && i < job_count; i++)
		result = intern_job(&jobs[i], out);
out:
	for (size_t i = 0; i < job_count; i++)
		release_job(&jobs[i]);
	free(jobs);
	free(shares.starts);
	free(shares.members);
	return result;
}
