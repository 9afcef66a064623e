/* Branch stacks as `perf script` prints its fields brstack and brstacksym. */
#ifndef TALLY_OUTPUT_BRANCH_TEXT_H
#define TALLY_OUTPUT_BRANCH_TEXT_H

#include "base/buffer.h"
#include "recording/recording.h"

enum tally_branch_field {
	TALLY_BRANCH_FIELD_ADDRESSES, /* " 0x55e0a4/0x55e0c8/P/-/-/12/CALL " for each branch, the latest first */
	TALLY_BRANCH_FIELD_SYMBOLS /* "main+0x14/f+0x8/P/-/-/12/CALL " */
};

/* Appends the branches of the sample that tally_recording_next() just gave, on one line without an
 * end; `objects`: the file in brackets behind each place.  Nothing where it has none.  0 or
 * -ENOMEM. */
int tally_branch_text(struct tally_recording *recording, const struct tally_sample *sample,
		      enum tally_branch_field field, bool objects, struct tally_buffer *out);

#endif
