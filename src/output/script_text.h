/* Samples as `perf script` lays them out, field for field; and every record with all its fields. */
#ifndef TALLY_OUTPUT_SCRIPT_TEXT_H
#define TALLY_OUTPUT_SCRIPT_TEXT_H

#include "base/buffer.h"
#include "output/script_fields.h"
#include "recording/recording.h"

struct tally_script;

/* A printer over a recording that is being read, which must outlive it.  `fields`: NULL for what is
 * shown anyway. 0, -ENOMEM, or -ENODATA: samples don't have what was asked for. */
int tally_script_new(struct tally_recording *recording, const struct tally_script_fields *fields,
		     struct tally_script **out, struct tally_error *err);
void tally_script_free(struct tally_script *script);

/* Appends the sample that tally_recording_next() just gave.  0, -ENOMEM, or, in pipes, where events
 * come late, -ENODATA. */
int tally_script_sample(struct tally_script *script, const struct tally_raw_record *raw,
			const struct tally_record *record, struct tally_buffer *out,
			struct tally_error *err);

/* Appends the head of a line on a record that is no sample, "command  1234 [000] 12.345678: ", as
 * samples of its event have it; the task is whom the record is about, the rest is of who wrote it.
 * As tally_script_sample(). */
int tally_script_head(struct tally_script *script, const struct tally_raw_record *raw,
		      const struct tally_record *record, uint32_t pid, uint32_t tid,
		      struct tally_buffer *out, struct tally_error *err);

/* Appends any record: offset, type, misc, then its fields by name. */
void tally_record_dump(const struct tally_recording *recording, const struct tally_raw_record *raw,
		       const struct tally_record *record, struct tally_buffer *out);

#endif
