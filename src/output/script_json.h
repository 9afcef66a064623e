/* Samples as JSON Lines (docs/script-json.md is the schema) and as CSV, one to a line. */
#ifndef TALLY_OUTPUT_SCRIPT_JSON_H
#define TALLY_OUTPUT_SCRIPT_JSON_H

#include "base/buffer.h"
#include "output/script_fields.h"
#include "recording/recording.h"

struct tally_script_json;

/* A printer over a recording that is being read, which must outlive it: CSV (RFC 4180) where that
 * is the layout of `fields`. 0 or -ENOMEM. */
int tally_script_json_new(struct tally_recording *recording,
			  const struct tally_script_fields *fields, struct tally_script_json **out,
			  struct tally_error *err);
void tally_script_json_free(struct tally_script_json *script);

/* CSV's line of names; nothing in JSON. */
void tally_script_json_start(const struct tally_script_json *script, struct tally_buffer *out);

/* Appends the sample that tally_recording_next() just gave.  0, -ENOMEM, or -ENODATA: it has not
 * what was asked for. */
int tally_script_json_sample(struct tally_script_json *script, const struct tally_raw_record *raw,
			     const struct tally_record *record, struct tally_buffer *out,
			     struct tally_error *err);

#endif
