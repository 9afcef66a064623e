/* Branch stacks in the format of perf script's fields brstack and brstacksym. */
#ifndef TALLY_OUTPUT_BRANCH_TEXT_H
#define TALLY_OUTPUT_BRANCH_TEXT_H

#include "base/buffer.h"
#include "recording/recording.h"

enum tally_branch_field {
	/* " 0x55e0a4/0x55e0c8/P/-/-/12/CALL " for each branch, the latest first */
	TALLY_BRANCH_FIELD_ADDRESSES,
	TALLY_BRANCH_FIELD_SYMBOLS /* "main+0x14/f+0x8/P/-/-/12/CALL " */
};

/* Appends the branches of the sample that tally_recording_next() returned last, on one line without
 * a newline. With `objects`, each address is followed by its file in brackets. Appends nothing if
 * the sample has no branches. Returns 0 or -ENOMEM. */
int tally_branch_text(struct tally_recording *recording, const struct tally_sample *sample,
		      enum tally_branch_field field, bool objects, struct tally_buffer *out);

#endif
