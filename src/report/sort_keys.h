/* The keys that a report can be sorted by: their names and titles, and what their numbers mean.
 * Columns are in this order. */
#ifndef TALLY_PROFILE_SORT_KEYS_H
#define TALLY_PROFILE_SORT_KEYS_H

#include <stdbool.h>
#include <stdint.h>

enum tally_sort_key {
	/* Keys of the sample: the same for all frames of its stack. */
	TALLY_SORT_COMM,
	TALLY_SORT_PID,
	TALLY_SORT_TID,
	TALLY_SORT_CPU,
	TALLY_SORT_CGROUP,
	TALLY_SORT_CGROUP_ID, /* the cgroup namespace */
	/* Keys of a branch. */
	TALLY_SORT_OBJECT_FROM,
	TALLY_SORT_SYMBOL_FROM,
	TALLY_SORT_LINE_FROM,
	TALLY_SORT_OBJECT_TO,
	TALLY_SORT_SYMBOL_TO,
	TALLY_SORT_LINE_TO,
	TALLY_SORT_MISPREDICT,
	TALLY_SORT_IN_TRANSACTION,
	TALLY_SORT_ABORT,
	TALLY_SORT_CYCLES,
	TALLY_SORT_ADDRESS_FROM,
	TALLY_SORT_ADDRESS_TO,
	/* Keys of the sample again, with one value each. */
	TALLY_SORT_TIME,
	TALLY_SORT_SOCKET,
	TALLY_SORT_WEIGHT,
	TALLY_SORT_LOCAL_WEIGHT,
	TALLY_SORT_LATENCY,
	TALLY_SORT_LOCAL_LATENCY,
	TALLY_SORT_STAGE,
	TALLY_SORT_LOCAL_STAGE,
	TALLY_SORT_TRANSACTION,
	TALLY_SORT_TRACE,
	TALLY_SORT_ADDRESS,
	TALLY_SORT_CODE_PAGE,
	TALLY_SORT_LEVEL,
	TALLY_SORT_DATA_SYMBOL,
	TALLY_SORT_DATA_OBJECT,
	TALLY_SORT_CACHELINE,
	TALLY_SORT_PHYSICAL,
	TALLY_SORT_DATA_PAGE,
	TALLY_SORT_SNOOP,
	TALLY_SORT_TLB,
	TALLY_SORT_LOCK,
	TALLY_SORT_BLOCK,
	/* Keys of each frame. */
	TALLY_SORT_OBJECT,
	TALLY_SORT_SYMBOL,
	TALLY_SORT_SOURCE_FILE,
	TALLY_SORT_SOURCE_LINE,
	TALLY_SORT_KEYS
};

enum tally_sort_kind {
	TALLY_KEY_TASK_TEXT, /* string id of the tasks */
	TALLY_KEY_NUMBER,    /* UINT32_MAX: not recorded */
	TALLY_KEY_TEXT,      /* string id of the names */
	TALLY_KEY_DIGITS,    /* string id of the names: a decimal number of any size, or "?" */
	/* string id of the names; shown is the sum: this number for each sample of the entry */
	TALLY_KEY_EACH,
	TALLY_KEY_OBJECT,    /* string id of the names: a path; its last part is shown */
	TALLY_KEY_FUNCTION,  /* index into the names' functions */
	/* string id of the names; shown is the object of the entry's function */
	TALLY_KEY_OWN_OBJECT,
	TALLY_KEY_OWN_FUNCTION, /* string id of the names; shown is the entry's function */
};

struct tally_sort_key_words {
	const char *name, *alias; /* names in --sort; alias NULL: there is no other name */
	const char *title;        /* "COMMAND" */
	const char *json;         /* name of its field; NULL: written in another way */
	enum tally_sort_kind kind;
	unsigned facts;           /* facts of samples that it needs (sample_facts.h) */
};

const struct tally_sort_key_words *tally_sort_key_words(enum tally_sort_key key);

/* Returns the key that the first `length` bytes of a text name; TALLY_SORT_KEYS: none. */
enum tally_sort_key tally_sort_key_find(const char *name, unsigned length);

/* True if the values in a set of facts need something of a recording's events (PERF_SAMPLE_…) that
 * `sample_types` lacks.  `*fact` gets the facts that lack it, `*lacks` what it is, `*hint` how to
 * record it. */
bool tally_sort_key_lacks(unsigned facts, uint64_t sample_types, unsigned *fact, const char **lacks,
			  const char **hint);

#endif
