/* The option --sort.  For `tally report`: whether the recording has data for the keys. */
#ifndef TALLY_COMMAND_REPORT_SORT_H
#define TALLY_COMMAND_REPORT_SORT_H

#include "recording/recording.h"
#include "report/report.h"

enum tally_branch_choice {
	TALLY_BRANCHES_IF_RECORDED,
	TALLY_BRANCHES_WANTED,
	TALLY_BRANCHES_UNWANTED
};

struct tally_report_sort {
	bool by[TALLY_SORT_KEYS];
	bool given;
	enum tally_branch_choice branches;
	bool of_memory; /* --mem-mode: weigh by the cost of accesses */
	/* Set by tally_report_sort_choose(): */
	bool of_branches; /* rows are branches */
	uint64_t facts;   /* set of the keys whose values the profile must read */
};

/* Parses "comm,dso,sym" of a command whose rows may have the keys of the set `allowed`
 * (TALLY_SORT_BIT()).  `choices` has their names, separated by blanks, for suggestions.  Returns 0,
 * or -errno with a message. */
int tally_sort_keys_parse(const char *text, uint64_t allowed, const char *choices,
			  bool by[TALLY_SORT_KEYS], struct tally_error *err);

/* Parses the keys of `tally report`. Returns 0, or -errno with a message. */
int tally_report_sort_parse(struct tally_report_sort *sort, const char *text,
			    struct tally_error *err);

/* True if a key needs source lines. */
bool tally_report_sort_needs_lines(const struct tally_report_sort *sort);

/* True if a key names functions or lines. */
bool tally_report_sort_names_code(const struct tally_report_sort *sort);

/* Decides, before the recording is read, whether rows are branches, and the default keys. Returns
 * 0, or -EINVAL for keys that exclude each other. */
int tally_report_sort_choose(struct tally_report_sort *sort,
			     const struct tally_recording *recording, bool wants_stacks,
			     struct tally_error *err);

/* Returns 0, or -ENODATA with a hint on what to record if the recording lacks what the keys show.
 * Returns 0 for a pipe that has not been read, since nothing is known about it. */
int tally_report_sort_check(const struct tally_report_sort *sort,
			    const struct tally_recording *recording, struct tally_error *err);

#endif
