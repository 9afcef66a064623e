/* Samples as JSON Lines (schema in docs/script-json.md) and as CSV, one per line. */
#ifndef TALLY_OUTPUT_SCRIPT_JSON_H
#define TALLY_OUTPUT_SCRIPT_JSON_H

#include "base/buffer.h"
#include "output/script_fields.h"
#include "recording/recording.h"

struct tally_script_json;

/* Creates a printer for a recording that is being read, which must outlive it. `fields->layout`
 * selects JSON or CSV (RFC 4180). Returns 0, -ENOMEM, or -ENODATA if samples lack a requested
 * field. */
int tally_script_json_new(struct tally_recording *recording,
			  const struct tally_script_fields *fields, struct tally_script_json **out,
			  struct tally_error *err);
void tally_script_json_free(struct tally_script_json *script);

/* Appends CSV's header line; nothing for JSON. */
void tally_script_json_start(const struct tally_script_json *script, struct tally_buffer *out);

/* Appends the sample that tally_recording_next() returned last. Returns 0, -ENOMEM, or -ENODATA if
 * the sample lacks a requested field. */
int tally_script_json_sample(struct tally_script_json *script, const struct tally_raw_record *raw,
			     const struct tally_record *record, struct tally_buffer *out,
			     struct tally_error *err);

#endif
