/* Samples as `perf script` lays them out, field for field; and every record with all its fields. */
#ifndef TALLY_OUTPUT_SCRIPT_TEXT_H
#define TALLY_OUTPUT_SCRIPT_TEXT_H

#include "base/buffer.h"
#include "profile/recording.h"

struct tally_script;

/* A printer over a recording that is being read; it must outlive the printer. */
int tally_script_new(struct tally_recording *recording, struct tally_script **out, struct tally_error *err);
void tally_script_free(struct tally_script *script);

/* What a line shows besides what it shows anyway. */
struct tally_script_fields {
	bool branches, branch_symbols; /* perf's brstack, brstacksym */
};
void tally_script_show(struct tally_script *script, const struct tally_script_fields *fields);

/* Appends the sample that tally_recording_next() just gave.  0 or -ENOMEM. */
int tally_script_sample(struct tally_script *script, const struct tally_raw_record *raw,
			const struct tally_record *record, struct tally_buffer *out);

/* Appends any record: offset, type, misc, then its fields by name. */
void tally_record_dump(const struct tally_recording *recording, const struct tally_raw_record *raw,
		       const struct tally_record *record, struct tally_buffer *out);

#endif
