/* Real samples: tally and elfutils' libdwfl unwind the stack copies of recordings, with the same
 * mappings, registers and bytes.  If the chains differ, the cause must be on a list, and at most
 * one sample in a thousand may differ.
 *
 * Arguments: the least number of samples, and the recordings.  Prints TAP. */
#include "object/object.h"
#include "recording/recording.h"

#include "dwfl_oracle.h"

enum { FRAMES = DWFL_ORACLE_FRAMES, SHOWN = 5, THREADS = 16 };

/* Why the two may differ.  The list is complete: any other difference is an error of one of
 * them. */
enum cause {
	CAUSE_NONE,
	/* Theirs equals ours up to where it stops: libdwfl needs popped values, which a sample
	 * lacks; loses rbx where no rule names it; does not read code. */
	CAUSE_STOPPED,
	/* Theirs has one more address, which no mapping contains: tally does not report it. */
	CAUSE_UNMAPPED,
	CAUSE_NO_RULES, /* they part in code without rules: tally reads the code, or both guess */
	/* Both end where the copy does; there libdwfl tries a frame pointer and goes astray. */
	CAUSE_CUT,
	CAUSE_UNKNOWN,
	CAUSES
};

static const char *const CAUSE_TEXTS[CAUSES] = {
	"equal",
	"libdwfl stops where tally goes on, to the outermost frame or to where the copy ends",
	"libdwfl ends with an address that no mapping holds",
	"code without rules",
	"libdwfl goes on by frame pointer where the copy ended",
	"not known why",
};

struct chains {
	struct tally_recording *recording;
	struct dwfl_oracle *theirs;
	uint64_t addresses[FRAMES];
	bool is_exact[FRAMES];
	size_t count;
	enum tally_unwind_end end;
	struct tally_unwind_chain *last[THREADS]; /* the last stack of each thread */
	size_t unlike;
};

/* Walks again, up to the thread's last stack, and counts results that differ from the whole
 * walk. */
static void compare_met(struct chains *chains, const struct tally_attr *attr,
			const struct tally_sample *sample)
{
	uint64_t addresses[FRAMES];
	bool is_exact[FRAMES];
	enum tally_unwind_end end;
	struct tally_unwind_chain **last = &chains->last[sample->tid % THREADS];
	if (!*last)
		*last = tally_unwind_chain_new();
	const struct tally_user_stack_walk walk = { .is_exact = is_exact, .chain = *last };
	size_t count = tally_user_stack_walk(&chains->recording->tasks,
					     &chains->recording->names.objects, attr, sample, &walk,
					     addresses, FRAMES, &end);
	chains->unlike += !*last || count != chains->count || end != chains->end ||
			  memcmp(addresses, chains->addresses, count * sizeof(*addresses)) != 0 ||
			  memcmp(is_exact, chains->is_exact, count * sizeof(*is_exact)) != 0;
}

static void show(const struct chains *chains, const struct tally_sample *sample)
{
	const struct dwfl_oracle *theirs = chains->theirs;
	printf("# pid %u, %s\n", sample->pid, tally_unwind_end_text(chains->end));
	for (size_t i = 0; i < chains->count || i < theirs->count; i++) {
		uint64_t address = i < chains->count ? chains->addresses[i] : theirs->addresses[i];
		const struct tally_mapping *mapping =
			tally_tasks_find(&chains->recording->tasks, sample->pid, false, address);
		printf("#   %16lx %16lx %s+%lx\n", i < chains->count ? chains->addresses[i] : 0,
		       i < theirs->count ? theirs->addresses[i] : 0,
		       mapping ? tally_tasks_path(&chains->recording->tasks, mapping->file) : "?",
		       mapping ? address - mapping->start + mapping->file_offset : 0);
	}
}

/* True if the object has rules for the frame. */
static bool has_rules(const struct chains *chains, const struct tally_sample *sample, size_t at)
{
	struct tally_recording *recording = chains->recording;
	uint64_t address = chains->addresses[at] - !chains->is_exact[at], start, end;
	const struct tally_mapping *mapping = tally_tasks_find(&recording->tasks, sample->pid,
							       false, address);
	struct tally_object_entry *entry = mapping ? tally_objects_get(&recording->names.objects,
								       &recording->tasks,
								       mapping->file)
						   : NULL;
	struct tally_unwind_table *table = entry && entry->object ? tally_objects_unwind(entry)
								  : NULL;
	return table &&
	       tally_object_address_of_offset(
		       entry->object, address - mapping->start + mapping->file_offset, &address) &&
	       tally_unwind_table_function(table, address, &start, &end);
}

static enum cause compare(const struct chains *chains, const struct tally_sample *sample)
{
	const struct dwfl_oracle *theirs = chains->theirs;
	size_t same = 0;
	while (same < chains->count && same < theirs->count &&
	       chains->addresses[same] == theirs->addresses[same])
		same++;
	if (same == chains->count && same == theirs->count)
		return CAUSE_NONE;
	if (same == theirs->count &&
	    (chains->end == TALLY_UNWIND_COMPLETE || chains->end == TALLY_UNWIND_TRUNCATED))
		return CAUSE_STOPPED;
	if (same == chains->count && same + 1 == theirs->count &&
	    !tally_tasks_find(&chains->recording->tasks, sample->pid, false,
			      theirs->addresses[same] - 1))
		return CAUSE_UNMAPPED;
	if (same > 0 &&
	    (chains->end == TALLY_UNWIND_NO_RULES || !has_rules(chains, sample, same - 1)))
		return CAUSE_NO_RULES;
	return same == chains->count && chains->end == TALLY_UNWIND_TRUNCATED ? CAUSE_CUT
									      : CAUSE_UNKNOWN;
}

static bool check(const char *path, size_t causes[CAUSES], size_t *unlike)
{
	struct tally_error err;
	struct tally_raw_record raw;
	struct tally_record record;
	struct chains *chains = calloc(1, sizeof(*chains));
	if (!chains || !(chains->theirs = calloc(1, sizeof(*chains->theirs))) ||
	    tally_recording_open(path, &chains->recording, &err) < 0)
		return false;
	dwfl_oracle_init(chains->theirs);
	chains->recording->options.leaves_only = true;
	struct tally_tasks *tasks = &chains->recording->tasks;
	while (tally_recording_next(chains->recording, &raw, &record, &err) > 0) {
		const struct tally_sample *sample = &record.sample;
		if (record.header.type != TALLY_RECORD_SAMPLE || !sample->stack)
			continue;
		const struct tally_attr *attr = &raw.event->attr;
		chains->count = tally_user_stack_frames(
			tasks, &chains->recording->names.objects, attr, sample, chains->addresses,
			chains->is_exact, FRAMES, &chains->end, NULL);
		compare_met(chains, attr, sample);
		if (!chains->count || !dwfl_oracle_unwind(chains->theirs, tasks, attr, sample))
			continue;
		enum cause cause = compare(chains, sample);
		if (causes[cause]++ < SHOWN && (cause == CAUSE_UNKNOWN || getenv("VERBOSE")) &&
		    cause != CAUSE_NONE)
			show(chains, sample);
	}
	tally_recording_close(chains->recording);
	dwfl_oracle_release(chains->theirs);
	free(chains->theirs);
	for (unsigned i = 0; i < THREADS; i++)
		tally_unwind_chain_free(chains->last[i]);
	*unlike += chains->unlike;
	free(chains);
	return true;
}

int main(int argc, char **argv)
{
	size_t causes[CAUSES] = { 0 }, samples = 0, unlike = 0;
	bool is_read = true;
	size_t least = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	for (int i = 2; i < argc; i++)
		is_read &= check(argv[i], causes, &unlike);
	for (unsigned i = 0; i < CAUSES; i++) {
		samples += causes[i];
		printf("# %8zu %s\n", causes[i], CAUSE_TEXTS[i]);
	}
	bool is_enough = is_read && samples >= least;
	bool is_equal = samples > 0 && causes[CAUSE_NONE] * 1000 >= samples * 999;
	printf("%sok 1 - recordings_have_enough_samples\n", is_enough ? "" : "not ");
	printf("%sok 2 - chains_equal_libdwfl_s_in_999_of_1000\n", is_equal ? "" : "not ");
	printf("%sok 3 - every_difference_has_a_known_cause\n",
	       causes[CAUSE_UNKNOWN] ? "not " : "");
	printf("%sok 4 - walks_that_meet_the_last_stack_equal_whole_ones\n1..4\n",
	       unlike ? "not " : "");
	return !(is_enough && is_equal && !causes[CAUSE_UNKNOWN] && !unlike);
}
