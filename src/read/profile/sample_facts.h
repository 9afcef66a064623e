/* What samples have besides their stacks: facts, and the classes of samples that share them.
 *
 * Facts are values such as the branches that were taken before, the cost of an access, and the
 * source of its data.
 *
 * A report may keep samples apart by them: they are the values of its keys of branches and samples
 * (sort_keys.h).  Facts that a report does not use are not read. */
#ifndef TALLY_PROFILE_SAMPLE_FACTS_H
#define TALLY_PROFILE_SAMPLE_FACTS_H

#include "base/buffer.h"
#include "profile/sort_keys.h"
#include "recording/recording.h"
#include "recording/trace_text.h"

struct tally_class;
struct tally_profile;

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

#endif
