/* What `tally report` is sorted by, and whether the recording can answer. */
#ifndef TALLY_COMMAND_REPORT_SORT_H
#define TALLY_COMMAND_REPORT_SORT_H

#include "recording/recording.h"
#include "report/report_model.h"

#define TALLY_SORT_CHOICES \
	"comm pid tid cpu cgroup cgroup_id dso_from sym_from srcline_from dso_to sym_to srcline_to mispredict in_tx abort " \
	"cycles addr_from addr_to dso sym srcfile srcline time socket weight local_weight ins_lat local_ins_lat p_stage_cyc " \
	"local_p_stage_cyc transaction trace addr code_page_size mem symbol_daddr dso_daddr dcacheline phys_daddr data_page_size " \
	"snoop tlb locked blocked"

enum tally_branch_wish {
	TALLY_BRANCHES_IF_RECORDED,
	TALLY_BRANCHES_WANTED,
	TALLY_BRANCHES_UNWANTED
};

struct tally_report_sort {
	bool by[TALLY_SORT_KEYS];
	bool given;
	enum tally_branch_wish branches;
	bool of_memory; /* --mem-mode: by what accesses cost */
};

/* "comm,dso,sym". */
int tally_report_sort_parse(struct tally_report_sort *sort, const char *text,
			    struct tally_error *err);

/* Whether lines of sources are asked for. */
bool tally_report_sort_needs_lines(const struct tally_report_sort *sort);

/* Whether functions are told apart, by their names or lines. */
bool tally_report_sort_names_code(const struct tally_report_sort *sort);

/* Decides, with what is known of the recording before it is read, whether rows are branches, and
 * what they are sorted by where nothing was asked for.  The facts to ask the profile for are
 * `facts`.  -EINVAL for what can't go together. */
int tally_report_sort_choose(struct tally_report_sort *sort,
			     const struct tally_recording *recording, bool wants_stacks,
			     unsigned *facts, struct tally_error *err);

/* -ENODATA where the recording has not what the facts are: with what has to be recorded.  Of a pipe
 * nothing is known before it is read: there all passes until then. */
int tally_report_sort_check(const struct tally_report_sort *sort,
			    const struct tally_recording *recording, unsigned facts,
			    struct tally_error *err);

#endif
