/* Samples → classes, chains and rows, and what can be said about these. */
#ifndef TALLY_PROFILE_H
#define TALLY_PROFILE_H

#include "base/buffer.h"
#include "base/error.h"
#include "naming/naming.h"
#include "profile/sample_fields.h"
#include "profile/stacks.h"
#include "recording/recording.h"
#include "tally/perf_event.h"
#include "tally/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_buffer;
struct tally_class;
struct tally_fact_reader;
struct tally_fact_source;
struct tally_map;
struct tally_names;
struct tally_profile;
struct tally_profile_filter;
struct tally_recording;

/* The keys that a report can be sorted by.
 *
 * A key has a row in sample_fields.h.
 *
 * The values of keys of branches and samples are facts: the profile reads them from each sample,
 * and keeps samples apart by them (sample_facts.c). */

#define TALLY_SORT_CONSTANT(key, ...) TALLY_SORT_##key,
enum tally_sort_key {
	TALLY_SORT_KEYS_OF_TASKS(TALLY_SORT_CONSTANT)
	TALLY_SORT_KEYS_OF_BRANCHES(TALLY_SORT_CONSTANT)
	TALLY_SORT_KEYS_OF_SAMPLES(TALLY_SORT_CONSTANT)
	TALLY_SORT_KEYS_OF_FRAMES(TALLY_SORT_CONSTANT)
	TALLY_SORT_KEYS
};
#undef TALLY_SORT_CONSTANT

/* The first key of each list. */
#define TALLY_SORT_ONE(key, ...) +1
enum {
	TALLY_SORT_BRANCHES_START = 0 TALLY_SORT_KEYS_OF_TASKS(TALLY_SORT_ONE),
	TALLY_SORT_SAMPLES_START =
		TALLY_SORT_BRANCHES_START TALLY_SORT_KEYS_OF_BRANCHES(TALLY_SORT_ONE),
	TALLY_SORT_FRAMES_START =
		TALLY_SORT_SAMPLES_START TALLY_SORT_KEYS_OF_SAMPLES(TALLY_SORT_ONE)
};
#undef TALLY_SORT_ONE

/* Sets of keys: bits of a word. */
#define TALLY_SORT_BIT(key) ((uint64_t)1 << (key))
#define TALLY_SORT_OF_BRANCHES \
	(TALLY_SORT_BIT(TALLY_SORT_SAMPLES_START) - TALLY_SORT_BIT(TALLY_SORT_BRANCHES_START))
#define TALLY_SORT_OF_FACTS \
	(TALLY_SORT_BIT(TALLY_SORT_FRAMES_START) - TALLY_SORT_BIT(TALLY_SORT_BRANCHES_START))

/* All names, separated by blanks. */
#define TALLY_SORT_NAME(key, name, ...) " " name
#define TALLY_SORT_CHOICES \
	&(TALLY_SORT_KEYS_OF_TASKS(TALLY_SORT_NAME) TALLY_SORT_KEYS_OF_BRANCHES(TALLY_SORT_NAME) \
		  TALLY_SORT_KEYS_OF_FRAMES(TALLY_SORT_NAME) \
			  TALLY_SORT_KEYS_OF_SAMPLES(TALLY_SORT_NAME))[1]

/* The meaning of an entry's value, which decides how it is compared and shown. */
enum tally_sort_kind {
	TALLY_KIND_TASK_TEXT, /* string id of the tasks */
	TALLY_KIND_NUMBER,    /* UINT32_MAX: not recorded */
	TALLY_KIND_TEXT,      /* string id of the names */
	TALLY_KIND_DIGITS,    /* string id of the names: a decimal number of any size, or "?" */
	/* string id of the names; shown is the sum: this number for each sample of the entry */
	TALLY_KIND_EACH,
	TALLY_KIND_OBJECT,    /* string id of the names: a path; its last part is shown */
	TALLY_KIND_FUNCTION,  /* index into the names' functions */
	TALLY_KIND_LINE,      /* string id of the names: the source line of a branch's end */
	/* string id of the names; shown is the object of the entry's function */
	TALLY_KIND_OWN_OBJECT,
	TALLY_KIND_OWN_FUNCTION, /* string id of the names; shown is the entry's function */
};

/* A part of samples that a recording must contain. */
struct tally_sort_need {
	uint64_t sample_types; /* one of these bits of an event's attr.sample_type */
	uint64_t without_branches; /* … and none of these bits of its branch_sample_type */
	const char *lacks; /* "the recording has no …" */
	const char *hint;  /* how to record it */
};

/* A 64-bit word of a sample or a branch. */
struct tally_sort_word {
	enum { TALLY_WORD_NONE, TALLY_WORD_OF_SAMPLE, TALLY_WORD_OF_BRANCH } origin;
	uint32_t offset; /* in struct tally_sample or tally_branch */
};

struct tally_sort_row {
	const char *name;  /* in --sort */
	const char *alias; /* another name in --sort; NULL: there is none */
	const char *title; /* "COMMAND" */
	const char *json;  /* name of its field; NULL: written in another way */
	enum tally_sort_kind kind;
	const struct tally_sort_need *need; /* NULL: any recording has it */

	/* Of facts: the number that the value is, as a word of the sample or from a function.  For
	 * values of kind NUMBER, this is the value; others are the number's text.  A sample without
	 * the need's types has "?". */
	struct tally_sort_word word;
	uint64_t (*number)(const struct tally_fact_source *source);
	/* Appends the number's text; NULL: in decimal. */
	void (*text)(uint64_t number, struct tally_buffer *out);
	/* In place of a number: returns the value, a string id; TALLY_STRING_NONE when memory is
	 * out. */
	uint32_t (*string)(struct tally_fact_reader *reader,
			   const struct tally_fact_source *source);
	bool uses_names; /* `string` needs the recording's names while samples are read */

	const char *menu; /* name in the browser's menu of columns; NULL: not there */
	char letter;      /* key of the menu's line */
};

const char *tally_sort_key_name(enum tally_sort_key key);
const struct tally_sort_row *tally_sort_row(enum tally_sort_key key);

/* True if the row's value is a number, which _number() returns. */
static inline bool tally_sort_has_number(const struct tally_sort_row *row)
{
	return row->number || row->word.origin != TALLY_WORD_NONE;
}
uint64_t tally_sort_number(const struct tally_sort_row *row,
			   const struct tally_fact_source *source);

/* Returns the key that the first `length` bytes of a text name; TALLY_SORT_KEYS: none. */
enum tally_sort_key tally_sort_key_find(const char *name, unsigned length);

/* True if one of the keys needs the recording's names while samples are read. */
bool tally_sort_keys_use_names(uint64_t keys);

/* True if a key needs this.  All keys of branches also need branch stacks. */
bool tally_sort_key_needs(enum tally_sort_key key, const struct tally_sort_need *need);

/* Returns the first need of the keys that no event of the recording meets; NULL: all are met, or
 * the recording is a pipe whose events are not known yet.  With `branches`, branch stacks are
 * needed, too. */
const struct tally_sort_need *tally_sort_keys_lack(uint64_t keys, bool branches,
						   const struct tally_recording *recording);

/* What samples have besides their stacks: facts, and the classes of samples that share them.
 *
 * Facts are values such as the branches that were taken before, the cost of an access, and the
 * source of its data.
 *
 * A report may keep samples apart by them: they are the values of its keys of branches and samples
 * (sort_keys.c).  Facts that a report does not use are not read. */

enum { TALLY_FACTS = TALLY_SORT_FRAMES_START - TALLY_SORT_BRANCHES_START };

struct tally_sample_facts {
	/* by key - TALLY_SORT_BRANCHES_START; 0: not used.  Keys of a branch's objects, functions
	 * and lines have the place, others the value of their kind. */
	uint32_t values[TALLY_FACTS];
};

static inline uint32_t *tally_fact(struct tally_sample_facts *facts, enum tally_sort_key key)
{
	return &facts->values[key - TALLY_SORT_BRANCHES_START];
}

struct tally_fact_table {
	/* by a class's number of facts - 1 */
	struct { struct tally_sample_facts *items; size_t count, capacity; } facts;
	struct tally_map index;
};

/* Returns the number of the facts, from 1; 0 when memory is out. */
uint32_t tally_facts_intern(struct tally_fact_table *table, const struct tally_sample_facts *facts);
void tally_facts_release(struct tally_fact_table *table);

/* The sample or branch that facts are read from. */
struct tally_fact_source {
	const struct tally_recorded_event *event;
	const struct tally_sample *sample;
	const struct tally_branch *branch; /* for keys of branches only */
	uint64_t quantum_ns;               /* resolution of times */
};

/* Reads the facts of one recording, from its beginning.  Zero-initialise it, except for the member
 * to be set. */
struct tally_fact_reader {
	struct tally_recording *recording;   /* to be set */
	struct tally_map known[TALLY_FACTS]; /* for texts of numbers: number → text */
	struct tally_buffer text;
	/* for texts of data: the unique text's string id → the id of a shorter text << 32 | the id
	 * of the shortest */
	struct tally_map longest;
	struct tally_map owners; /* shorter text → number of unique texts that it stands for */
	struct tally_event_text trace;
	uint32_t *packages; /* by CPU, once read; NULL: the recording doesn't have them */
	uint32_t package_count;
	bool packages_read;
};

/* Sets the facts of `keys`, except for places.  The maps must be as they were at the sample's
 * time.  Returns 0 or -ENOMEM. */
int tally_facts_read(struct tally_fact_reader *reader, const struct tally_fact_source *source,
		     uint64_t keys, struct tally_sample_facts *facts);

/* Takes the text in reader->text: returns its string id; TALLY_STRING_NONE when memory is out. */
uint32_t tally_fact_intern_text(struct tally_fact_reader *reader);

/* Returns a text that is unique for the data: two libraries may have variables of one name, and two
 * processes have different data at one address. */
uint32_t tally_fact_intern_data(struct tally_fact_reader *reader, uint32_t text,
				const struct tally_data_name *name);

/* Call this when all samples are read: replaces the texts of data by the shortest ones that are
 * still unique. */
void tally_facts_shorten(const struct tally_fact_reader *reader, struct tally_fact_table *table);

void tally_fact_reader_release(struct tally_fact_reader *reader);

/* Returns the number of a class, or UINT32_MAX when memory is out.  `index` begins empty; the
 * caller releases it.  Not thread-safe. */
uint32_t tally_class_intern(struct tally_profile *profile, struct tally_map *index,
			    const struct tally_class *class);

/* _cgroup returns the path of the cgroup with this number: "unknown" and the number if no record
 * names it, "N/A" if samples of the event have no cgroup.  _cgroup_namespace returns the namespace
 * of a task's cgroups, as perf writes it.  Both are string ids of `tasks`; TALLY_STRING_NONE when
 * memory is out. */
uint32_t tally_class_cgroup(struct tally_tasks *tasks, const struct tally_recorded_event *event,
			    uint64_t number);
uint32_t tally_class_cgroup_namespace(struct tally_tasks *tasks, uint32_t pid, uint32_t tid);

/* The rows and classes of each event of a profile: a recording may have thousands of events, and a
 * view of one must not look at the rows of all. */

/* Zero-initialised has no events. */
struct tally_event_rows {
	uint32_t events;
	uint32_t *rows, *classes; /* numbers, by event, then ascending */
	uint32_t *positions;      /* by class: its place among those of its event */
	size_t *row_starts, *class_starts; /* by event, and one more */
	size_t *merged_threads;   /* by event: entries of the profile's merged_threads */
};

struct tally_numbers {
	const uint32_t *items;
	size_t count;
};

/* Fills an empty index from a profile that does not change any more.  Returns 0 or -ENOMEM; the
 * caller releases the index in both cases. */
int tally_event_rows_make(const struct tally_profile *profile, struct tally_event_rows *index);
void tally_event_rows_release(struct tally_event_rows *index);

/* Return the numbers of an event's rows and classes, ascending. */
struct tally_numbers tally_event_rows(const struct tally_event_rows *index, uint32_t event);
struct tally_numbers tally_event_classes(const struct tally_event_rows *index, uint32_t event);

/* A recording, aggregated: distinct (event, thread, CPU, stack) with their samples and periods.
 *
 * A hash of a sample's whole chain finds its row.  Only a new chain becomes a stack of places, and
 * only the distinct places are named.  Nothing is kept per sample.  Report, fold and flame graphs
 * all use this model.  Not thread-safe.
 */

/* The properties that samples share besides their stacks. */
struct tally_class {
	uint32_t event;  /* index into the recording's events */
	uint32_t thread; /* index into tasks.threads; UINT32_MAX: threads are merged */
	uint32_t comm;   /* string id in tasks.strings: the thread's name at that time */
	uint32_t cpu;    /* UINT32_MAX: not known, or CPUs are merged */
	/* string id in tasks.strings of the cgroup's path; 0: cgroups are merged */
	uint32_t cgroup;
	/* number of the samples' other facts in profile->facts, as far as they are needed; 0:
	 * none */
	uint32_t facts;
	/* string id in tasks.strings of the cgroup's namespace as perf writes it, device and inode;
	 * 0: merged */
	uint32_t cgroup_id;
	uint32_t is_idle_task; /* 1: the samples are of the idle task (tally_tasks_is_idle()) */
	/* the end of the wait, or the number of the waking (recording_internal.h); 0 in a finished profile */
	uint32_t waker;
};

struct tally_profile_options {
	struct tally_profile_filter filter;
	bool merge_threads, merge_cpus; /* merge them, for fewer rows */
	/* merge addresses in no file; chains without frame pointers have very many of them */
	bool merge_unknown;
	bool by_cgroup, by_cgroup_id; /* keep cgroups apart; keep namespaces of cgroups apart */
	uint64_t facts;   /* set of the keys (sort_keys.c) whose values keep samples apart */
	bool of_branches; /* rows are branches with period 1; their stacks are the targets */
	/* periods are the costs of the samples' accesses (PERF_SAMPLE_WEIGHT), at least 1 */
	bool by_cost;
	bool leaves_out_idle; /* leave out samples of idle CPUs (idle.c) */
	/* stacks of waits lose the scheduler's frames, and the longest wait is noted
	 * (wait_stacks.c) */
	bool arranges_waits;
	bool shows_scheduler; /* with arranges_waits: keep the scheduler's frames */
	/* with arranges_waits: stacks of waits go on with the stacks that ended them */
	bool with_wakers;
	/* leave out the frames of runtimes that functions of a language called
	 * (wait_stacks.c) */
	bool joins_runtimes;
	bool hides_functions; /* don't report functions without names */
	uint64_t time_quantum_ns; /* resolution of times as a sort key, ns; 0: 100 ms */
	/* With merge_threads: only places and their names are needed.  Rows have only an event and
	 * a leaf, and tasks are forgotten when they end, so that memory depends on the number of
	 * places only. */
	bool only_places;
	/* a second thread helps after this many samples; 0: for long recordings, if there are
	 * enough CPUs */
	uint64_t split_samples;
	/* Called from time to time with the share read, 0…1; may be NULL. */
	void (*progress)(void *context, double share);
	void *context;
};

/* How much the periods of an event's samples vary (share_error.c). */
struct tally_period_spread {
	double sum, squares; /* sum of periods, and of their squares */
	uint64_t samples;
};

struct tally_left_out {
	uint64_t samples, period;
};

struct tally_profile {
	struct tally_recording *recording;
	struct { struct tally_class *items; size_t count, capacity; } classes;
	struct tally_row_table rows;     /* stacks consist of `places`, leaf first */
	struct tally_event_rows by_event;
	struct tally_place_table places;
	struct tally_place_name *names;  /* by place: its frames in recording->names */
	/* set of (event, thread) of samples whose threads are merged */
	struct tally_map merged_threads;
	/* by event; all 0 without samples */
	struct { struct tally_period_spread *items; size_t count, capacity; } spreads;
	struct tally_fact_table facts;
	bool has_stacks;
	bool of_branches; /* rows count branches in `samples` and `period` */
	bool of_costs;    /* periods are the costs of accesses */
	struct tally_profile_filter asked; /* the filter that the samples passed */
	/* set of functions whose samples a filter left out, for a hint */
	struct tally_map leaves_left_out;
	/* longest wait by row, ns; rows beyond `count` have none */
	struct { uint64_t *items; size_t count, capacity; } longest;
	bool notes_longest;
	/* with_wakers: waited time by the kind of its end */
	struct { uint64_t woken_ns, preempted_ns, unknown_ns; } wakers;
	/* by event: left out as idle */
	struct { struct tally_left_out *items; size_t count, capacity; } idle;
	/* samples left out because of their leaf; recording->counts.filtered has those left out
	 * before */
	size_t filtered;
};

/* Reads the whole recording, or the part that the options (NULL: defaults) select.  Takes ownership
 * of `recording`, also when it fails; it is released with the profile.  Returns 0, or -errno with a
 * message. */
int tally_profile_new(struct tally_recording *recording,
		      const struct tally_profile_options *options, struct tally_profile **out,
		      struct tally_error *err);
void tally_profile_free(struct tally_profile *profile);

/* For callers that name places while a recording is read: fetches the debug files of the hottest
 * objects beforehand, if the recording's sources ask for it.  To find them, it reads the
 * recording's file once more; `facts` in the options is ignored.  Returns 0, -ESPIPE when the
 * recording can't be read twice, or another -errno. */
int tally_recording_fetch_names(struct tally_recording *recording,
				const struct tally_profile_options *options,
				struct tally_error *err);

/* Returns the function that the place is in by the source: the innermost one that was inlined
 * there, or else the symbol's function. */
static inline uint32_t tally_profile_function(const struct tally_profile *profile, uint32_t place)
{
	return profile->recording->names.frames.items[profile->names[place].first].function;
}

/* Returns the function of the place's symbol, even if other functions were inlined there. */
static inline uint32_t tally_profile_symbol(const struct tally_profile *profile, uint32_t place)
{
	const struct tally_place_name *name = &profile->names[place];
	return profile->recording->names.frames.items[name->first + name->count - 1].function;
}

/* Sums the samples and periods of one event. */
void tally_profile_totals(const struct tally_profile *profile, uint32_t event, uint64_t *samples,
			  uint64_t *period);

/* Returns the `spread` (struct tally_share) of one event's samples. */
double tally_profile_spread(const struct tally_profile *profile, uint32_t event);

/* Counts the commands and threads with samples of the event.  Returns 0 or -ENOMEM. */
int tally_profile_count_tasks(const struct tally_profile *profile, uint32_t event, size_t *comms,
			      size_t *threads);

/* Finds the event by a name or a number ("0"); NULL: the first event with samples.  Returns 0, or
 * -ENOENT with a list of the names. */
int tally_profile_event(const struct tally_profile *profile, const char *name, uint32_t *event,
			struct tally_error *err);

/* Makes the stacks of one event, for fold and flame graphs.  Moves the profile's rows into `out`,
 * which must have none; the profile is left without rows.  `by_thread`: keep threads apart, else
 * merge them by comm.  `by_period`: weights are periods, else numbers of samples.  Returns 0 or
 * -ENOMEM. */
int tally_profile_stacks(struct tally_profile *profile, uint32_t event, bool by_thread,
			 bool by_period, struct tally_stacks *out);

/* Appends all that limits the trust in the recording, one line each ("12 records were lost …"), for
 * stderr; nothing if all is well. */
void tally_profile_warnings(const struct tally_recording *recording, struct tally_buffer *out);

/* True if the kernel followed frame pointers to make the recording's user chains. */
bool tally_profile_follows_frame_pointers(const struct tally_profile *profile);

/* Sets the recording's counts.chains_unstarted: of the shown samples with chains made by the
 * kernel, those whose outermost function is not the start of a program or thread.  The profile must
 * have its names and rows. */
void tally_profile_count_unstarted(struct tally_profile *profile);

/* Appends tally's own section with the known names of the profile's places and of `others` (of the
 * same recording; NULL: none), and with the profile's stacks; nothing if there are none.  The
 * profile's recording must have been prepared (tally_recording_prepare_packing).  `places` and
 * `known` (both may be NULL) get the number of places in a file or the kernel, and how many of them
 * are named in the section.  Returns 0 or -ENOMEM. */
int tally_make_name_section(struct tally_profile *profile, const struct tally_place_table *others,
		     struct tally_buffer *out, size_t *places, size_t *known);

/* Each sample of a recording by itself, in order of time: for exports and timelines.
 *
 * Unlike profile.h, which sums samples up, this keeps every sample: 32 bytes each, with interned
 * stacks.  Not thread-safe.
 */

struct tally_one_sample {
	uint64_t time;   /* ns of the recording's clock; 0: not recorded */
	uint64_t period; /* weight of the sample, in the unit of its event */
	uint32_t thread; /* index into the recording's tasks.threads */
	uint32_t stack;  /* row of `stacks` */
	/* index into the recording's events; TALLY_SAMPLE_LEFT_OUT: views skip the sample, whose
	 * time still counts for the recording's span */
	uint32_t event;
	bool is_idle_task; /* tally_tasks_is_idle() at that time */
};

#define TALLY_SAMPLE_LEFT_OUT UINT32_MAX

struct tally_samples {
	struct tally_recording *recording;
	struct { struct tally_one_sample *items; size_t count, capacity; } samples;
	/* stacks of numbers of `places`, leaf first; rows have no class or period */
	struct tally_row_table stacks;
	struct tally_place_table places;
	struct tally_place_name *names; /* by place: its frames in recording->names */
};

struct tally_samples_options {
	struct tally_profile_filter filter;
	/* called from time to time with the share read, 0…1; may be NULL */
	void (*progress)(void *context, double share);
	void *context;
};

/* Reads the whole recording, or the part that passes the filter.  Takes ownership of `recording`,
 * also when it fails; it is closed with the samples.  Returns 0, -ENOENT when no sample is left, or
 * another -errno. */
int tally_samples_new(struct tally_recording *recording,
		      const struct tally_samples_options *options, struct tally_samples **out,
		      struct tally_error *err);
void tally_samples_free(struct tally_samples *samples);

/* Sets `out` to the functions of a stack, root first, with file and line of each.  Returns 0 or
 * -ENOMEM. */
struct tally_place_frames {
	struct tally_place_frame *items;
	uint32_t *places; /* by frame: the place that it belongs to */
	size_t count, capacity;
};
int tally_samples_frames(const struct tally_samples *samples, uint32_t stack,
			 struct tally_place_frames *out);
void tally_place_frames_release(struct tally_place_frames *frames);

/* Parts of a sample that are packed into words, as numbers and in the words of `perf script` and
 * `perf report`: flags of branches, weights, transactions, page sizes, sources of data. */

/* Flags of a branch, as in struct perf_branch_entry. */
enum {
	TALLY_BRANCH_MISPREDICTED = 1,
	TALLY_BRANCH_PREDICTED = 2,
	TALLY_BRANCH_TRANSACTION = 4,
	TALLY_BRANCH_ABORTED = 8,
	TALLY_BRANCH_CYCLES_SHIFT = 4,
	TALLY_BRANCH_KIND_SHIFT = 20
};

/* The parts of a sample's weight: PERF_SAMPLE_WEIGHT is one number, PERF_SAMPLE_WEIGHT_STRUCT
 * three.  0: the sample has none. */
static inline uint64_t tally_sample_cost(const struct tally_sample *sample)
{
	if (sample->type & TALLY_SAMPLE_WEIGHT_STRUCT)
		return (uint32_t)sample->weight;
	return sample->weight;
}

static inline uint64_t tally_sample_latency(const struct tally_sample *sample)
{
	if (sample->type & TALLY_SAMPLE_WEIGHT_STRUCT)
		return sample->weight >> 32 & 0xffff;
	return 0;
}

static inline uint64_t tally_sample_stage_cycles(const struct tally_sample *sample)
{
	if (sample->type & TALLY_SAMPLE_WEIGHT_STRUCT)
		return sample->weight >> 48;
	return 0;
}

/* Appends "4K", "2M" or, as perf does, "1024M"; "N/A" for no page. */
void tally_page_size_text(uint64_t bytes, struct tally_buffer *out);

/* Appends "TX CON NEITHER :2a", the flags of PERF_SAMPLE_TRANSACTION; "-" for none. */
void tally_transaction_text(uint64_t flags, struct tally_buffer *out);

/* Appends a PERF_SAMPLE_DATA_SRC: "|OP LOAD|LVL L1 hit|SNP None|TLB L1 hit|LCK No|BLK  N/A". */
void tally_data_source_text(uint64_t data_src, struct tally_buffer *out);

/* Append one part of it, such as "L1 hit" or "Data Addr". */
void tally_data_level_text(uint64_t data_src, struct tally_buffer *out);
void tally_data_snoop_text(uint64_t data_src, struct tally_buffer *out);
void tally_data_tlb_text(uint64_t data_src, struct tally_buffer *out);
void tally_data_lock_text(uint64_t data_src, struct tally_buffer *out);
void tally_data_block_text(uint64_t data_src, struct tally_buffer *out);

/* Checks a profile's call chains against the code that is recorded in them.
 *
 * Each return address must follow a call, and a direct call must go to the function of the frame
 * below.  A failure means that a stack was unwound wrongly, or that a file is another one than was
 * recorded. */

/* Numbers of pairs of a caller's and its callee's place, each counted once. */
struct tally_call_check {
	uint64_t checked;
	uint64_t behind_no_call;   /* the caller's address does not follow a call */
	uint64_t to_another;       /* its direct call goes to another function */
	struct tally_place failed; /* the first caller's place that failed */
};

/* Checks the pairs whose code is in files of x86-64 and i386.  Opens the files, and reads their
 * code and unwind rules.  Returns 0 or -ENOMEM. */
int tally_call_check_profile(struct tally_profile *profile, struct tally_call_check *out);

/* The functions of a profile, by the samples in themselves (not in what they called).
 *
 * A function's code is that of its symbol, and all of its copies that were inlined into the code of
 * other symbols.  Each is listed apart. */

struct tally_annotation_weight {
	uint64_t samples, period;
};

static inline void tally_annotation_add(struct tally_annotation_weight *sum,
					const struct tally_annotation_weight *part)
{
	sum->samples += part->samples;
	sum->period += part->period;
}

/* The part of a function that is in one symbol's code.  Keep it small: a machine's programs have
 * hundreds of thousands of functions. */
struct tally_hot_function {
	uint32_t function; /* index into names->functions */
	uint32_t symbol;   /* the function whose code it is in; the same if it isn't inlined */
	uint32_t place;    /* one place of the part */
	uint32_t number;   /* parts with the same name and object have the same */
	/* samples in this part: with and without those in functions that were inlined into it */
	struct tally_annotation_weight weight, self;
	uint64_t whole_self; /* period of `self` over all parts of the function; or its samples */
};

struct tally_hot_functions {
	struct tally_hot_function *items;
	size_t count, capacity;
};

/* Which function to find. */
struct tally_function_choice {
	/* with or without version or parameters, or the end of a qualified name after "::", if only
	 * one function has it; NULL: any */
	const char *name;
	const char *object; /* its object, as a path or the path's last part; NULL: any */
};

/* Lists the parts of the chosen functions, the function with most samples in itself first.  Returns
 * 0, -ENOMEM, or -ENOENT with a hint when there is none.  The caller releases `out` as a vector. */
int tally_hot_functions_find(const struct tally_profile *profile, uint32_t event,
			     const struct tally_function_choice *choice,
			     struct tally_hot_functions *out, struct tally_error *err);

/* Sums the samples whose stacks have such a function; `choice` has a name.  Returns 0 or
 * -ENOMEM. */
int tally_hot_functions_above(const struct tally_profile *profile, uint32_t event,
			      const struct tally_function_choice *choice,
			      struct tally_annotation_weight *out);

/* Returns an array by place: the weight of the event's samples whose leaf it is.  The caller frees
 * it.  NULL: out of memory. */
struct tally_annotation_weight *tally_leaf_weights(const struct tally_profile *profile,
						   uint32_t event);

/* Finds what was probably meant by a name that doesn't exist: it is shown all candidates and keeps
 * the nearest. */

enum tally_nearness { TALLY_NEAR_NOT, TALLY_NEAR_LETTERS, TALLY_NEAR_PART, TALLY_NEAR_END };

struct tally_meant_name {
	const char *typed; /* set by the caller */
	enum tally_nearness nearness;
	unsigned distance; /* number of different letters, with TALLY_NEAR_LETTERS */
	char name[256];    /* the nearest candidate; longer names are never suggested */
};

/* True if `typed` is the end of a qualified name: "alpha" is the end of "L<long>::alpha". */
bool tally_name_ends_in(const char *name, const char *typed);

/* Compares a candidate with the best one so far.  The best kind of name ends in the typed one
 * (after "::").  The second best contains it, ignoring case.  The third differs from it in few
 * letters, as a whole or in its last part.  Among equals the first one stays. */
void tally_meant_name_try(struct tally_meant_name *meant, const char *candidate);

/* Sets a hint when a filter matched no leaf's object or function: the nearest existing name, if any
 * is near.  `left_out` is the set of the leaves' functions. */
void tally_hint_meant(const struct tally_names *names, const struct tally_map *left_out,
		      const struct tally_profile_filter *filter, struct tally_error *err);

/* Idle time of CPUs: samples whose leaf is a function that the kernel idles in.
 *
 * An interrupt runs in whatever task it meets, also in the idle task.  Samples in interrupts are
 * work, and stay.
 */

/* True if the kernel idles in the function.  If kernel functions have no names, everything that the
 * idle task does in the kernel counts as idle. */
bool tally_function_is_idle(const struct tally_names *names, uint32_t function, bool is_idle_task);

/* Moves the idle samples from the profile's rows to profile->idle.  Returns 0 or -ENOMEM. */
int tally_profile_leave_out_idle(struct tally_profile *profile);

/* Returns what was left out of an event as idle; 0 samples: nothing. */
struct tally_left_out tally_profile_idle(const struct tally_profile *profile, uint32_t event);

/* Marks the idle samples of all events as left out.  Sets `idle` to the event's samples that are
 * left out, and `rest_period` to the period of its others.  Returns 0, or -ENOMEM. */
int tally_samples_leave_out_idle(struct tally_samples *samples, uint32_t event,
				 struct tally_left_out *idle, uint64_t *rest_period);

/* Appends "35% is idle and left out: percentages are of the rest; …" without a newline;
 * nothing if no sample was left out. */
void tally_idle_text(const struct tally_left_out *idle, uint64_t period, struct tally_buffer *out);

/* Counts a runtime's own code for the functions of the program that it runs.
 *
 * An interpreter runs a function of Python or JavaScript in its own code, so such a function is
 * hardly ever a sample's leaf, and the interpreter is always on top.  With --language-frames, the
 * runtime's frames that a function of the language called are left out of stacks: their samples
 * count for the function.  Frames of other libraries and of the kernel stay.
 *
 * A function of the language is JIT code with a name.  Its runtime is the object that called it: of
 * the nearest frame around it that is no JIT code.  Not thread-safe.
 */

/* The runtimes that were seen so far. */
struct tally_runtimes {
	const struct tally_names *names;
	struct tally_map objects; /* set of string ids: their paths */
};

/* Notes the runtimes in a stack of functions, leaf first.  Returns 0 or -ENOMEM. */
int tally_runtimes_note(struct tally_runtimes *runtimes, const uint32_t *functions, size_t count);

/* Sets for each function of a stack, leaf first, whether its frame is left out. */
void tally_runtimes_choose(const struct tally_runtimes *runtimes, const uint32_t *functions,
			   size_t count, bool *left_out);

void tally_runtimes_release(struct tally_runtimes *runtimes);

/* Leaves such frames out of a profile with names.  Then also leaves out the samples whose leaf the
 * filter does not select.  Returns 0 or -ENOMEM. */
int tally_profile_join_runtimes(struct tally_profile *profile,
				const struct tally_profile_filter *filter);

/* Counts the samples of one event whose leaf would be left out.  Returns 0 or -ENOMEM. */
int tally_profile_count_runtimes(const struct tally_profile *profile, uint32_t event,
				 uint64_t *samples);

/* How far a share of samples can be trusted: its sampling error.
 *
 * A profile of n samples is a random draw: in the next run, a function with 10.0 % has 9.6 %.
 * Without its error, a percentage invites the reader to take that difference for an answer.  So
 * each share needs the interval that holds, in 95 of 100 recordings, the share that endless
 * sampling would show.
 *
 * The textbook's √(p(1 − p)/n) fails for small shares of few samples, which profiles are full of.
 * It gives a function without samples no error at all; at 1 % and 100 samples, its intervals hold
 * the true share in 63 of 100 cases instead of 95.  Wilson's interval asks the other way round:
 * which true shares could well have led to these samples?  It stays honest for small shares.  It is
 * not symmetric: the error given as "±" is its longer side, so "p ± e" holds no less often.
 *
 * Samples need not have the same weight: a share is one of summed periods, and with -F periods
 * differ.  A few heavy samples say less than their number suggests.  Then the share is a ratio of
 * sums, with the variance
 *
 *     [ S_in (1 − p)² + S_out p² ] / W²
 *
 * S_in and S_out are the sums of squared periods inside and outside of the part, W the sum of all
 * periods.  The effective number of samples is that of a draw of equal samples with the same
 * variance: p(1 − p)/variance.
 *
 * Squares are not kept for each entry, which would cost memory in millions of rows.  But the
 * samples and the period of the part are known, and so its mean weight; for all samples together,
 * the spread of weights is known.  The spread that the two means don't explain is divided evenly.
 * If all samples weigh the same, the result is n.
 *
 * The error does not cover everything.  If sampling keeps step with the program, shares are wrong
 * by more than the number of samples suggests; if samples are at even distances in a steady
 * program, shares are often right by more.  Differences of two shares of one recording are not
 * independent; differences between two recordings are.
 *
 * Pure, thread-safe.
 */

struct tally_share {
	double part, whole;             /* sums of periods: 0 ≤ part ≤ whole */
	uint64_t part_samples, samples; /* numbers of samples in these */
	/* spread of all weights: samples × Σ weight² / (Σ weight)²; 1 if all weigh the same.
	 * Anything below 1, such as 0, counts as 1. */
	double spread;
};

struct tally_share_interval {
	double low, high; /* percent, unless stated otherwise */
};

/* Returns the number of samples of equal weight that would say as much. */
double tally_share_effective_samples(const struct tally_share *share);

/* Returns the 95 % confidence interval of the true share, in percent; 0 to 100 without samples. */
struct tally_share_interval tally_share_interval(const struct tally_share *share);

/* Returns Wilson's interval of a share p of n equal samples, z standard deviations wide, as a part
 * of 1; 0 to 1 without samples. */
struct tally_share_interval tally_wilson_interval(double p, double n, double z);

/* Returns the longer side of the interval in percentage points: the true share is within percent ±
 * this. */
double tally_share_error(const struct tally_share *share);

/* Stacks of waits as a profile shows them: they end where a task waits, not in the scheduler
 * functions that it called.  If it was recorded, they go on with the stack that woke the task. */

/* Adds the places that join a wait's stack with the stack that ended it.  Call it before places are
 * named.  Returns 0 or -ENOMEM. */
int tally_profile_prepare_wakers(struct tally_profile *profile);

/* Makes the rows of off-CPU events anew, according to the options.  The profile's places must be
 * named.  Returns 0 or -ENOMEM. */
int tally_profile_arrange_waits(struct tally_profile *profile,
				const struct tally_profile_options *options);

/* True if the function is part of how a task gives up its CPU. */
bool tally_function_is_scheduler(const struct tally_names *names, uint32_t function);

static inline bool tally_class_is_of_waits(const struct tally_profile *profile, uint32_t class)
{
	size_t events;
	const struct tally_recorded_event *recorded = tally_perfdata_events(
		profile->recording->data, &events);
	uint32_t event = profile->classes.items[class].event;
	return event < events && tally_is_off_cpu(&recorded[event].attr, recorded[event].name);
}

/* Returns the event whose samples are waits of known lengths; UINT32_MAX: none has samples. */
uint32_t tally_profile_waits(const struct tally_profile *profile);

/* Appends "who ended waits is known of 83% of their time; …" without a newline, if the profile has
 * wakers and waits. */
void tally_profile_wakers_text(const struct tally_profile *profile, struct tally_buffer *out);

/* Returns the longest wait of a row, ns; 0: the row is not one of waits. */
static inline uint64_t tally_profile_longest(const struct tally_profile *profile, size_t row)
{
	return row < profile->longest.count ? profile->longest.items[row] : 0;
}

#endif
