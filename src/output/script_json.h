/* Samples as JSON Lines (docs/script-json.md is the schema) and as CSV, one to a line. */
#ifndef TALLY_OUTPUT_SCRIPT_JSON_H
#define TALLY_OUTPUT_SCRIPT_JSON_H

#include "base/buffer.h"
#include "profile/recording.h"

#include <stdbool.h>

struct tally_script_json;

/* A printer over a recording that is being read, which must outlive it; NULL when memory is out.  `csv`: RFC 4180. */
struct tally_script_json *tally_script_json_new(struct tally_recording *recording, bool csv);
void tally_script_json_free(struct tally_script_json *script);

/* CSV's line of names; nothing in JSON. */
void tally_script_json_start(const struct tally_script_json *script, struct tally_buffer *out);

/* Appends the sample that tally_recording_next() just gave.  0 or -ENOMEM. */
int tally_script_json_sample(struct tally_script_json *script, const struct tally_raw_record *raw,
			     const struct tally_record *record, struct tally_buffer *out);

#endif
