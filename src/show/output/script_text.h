/* Samples in perf script's layout; and records with all their fields. */
#ifndef TALLY_OUTPUT_SCRIPT_TEXT_H
#define TALLY_OUTPUT_SCRIPT_TEXT_H

#include "base/buffer.h"
#include "output/script_fields.h"
#include "recording/recording.h"

struct tally_script;

/* Creates a printer for a recording that is being read, which must outlive it. `fields` may be NULL
 * for the defaults. Returns 0, -ENOMEM, or -ENODATA if samples lack a requested field. */
int tally_script_new(struct tally_recording *recording, const struct tally_script_fields *fields,
		     struct tally_script **out, struct tally_error *err);
void tally_script_free(struct tally_script *script);

/* Appends the sample that tally_recording_next() returned last. Returns 0, -ENOMEM, or -ENODATA: a
 * pipe announced an event late, and its samples lack a requested field. */
int tally_script_sample(struct tally_script *script, const struct tally_raw_record *raw,
			const struct tally_record *record, struct tally_buffer *out,
			struct tally_error *err);

/* Appends the head of a line for a record other than a sample, "command 1234 [000] 12.345678: ", in
 * the layout of its event's samples. `pid` and `tid` select the task whose command is shown; the
 * numbers are those of the task that was running. Returns like tally_script_sample(). */
int tally_script_head(struct tally_script *script, const struct tally_raw_record *raw,
		      const struct tally_record *record, uint32_t pid, uint32_t tid,
		      struct tally_buffer *out, struct tally_error *err);

/* Appends any record: offset, type, misc, then its fields by name. */
void tally_record_dump(const struct tally_recording *recording, const struct tally_raw_record *raw,
		       const struct tally_record *record, struct tally_buffer *out);

#endif
