/* Samples → rows.  Only profile.c uses this.
 *
 * Samples wait in a small batch, so that the memory that the table of chains will need is
 * prefetched.  The batch is emptied before any map or name of a task changes.
 */
#ifndef TALLY_PROFILE_SAMPLE_READER_H
#define TALLY_PROFILE_SAMPLE_READER_H

#include "profile/profile.h"

struct tally_sample_reader;

/* Makes the reader of a profile's recording; `options` must outlive it.  Returns NULL when memory
 * is out. */
struct tally_sample_reader *tally_sample_reader_new(struct tally_profile *profile,
						    const struct tally_profile_options *options);
void tally_sample_reader_free(struct tally_sample_reader *reader);

/* Adds the sample that tally_recording_next() just gave.  Returns 0 or -ENOMEM. */
int tally_sample_reader_add(struct tally_sample_reader *reader, const struct tally_raw_record *raw,
			    const struct tally_record *record);

/* Call this after the last sample.  Returns 0 or -ENOMEM. */
int tally_sample_reader_finish(struct tally_sample_reader *reader);

#endif
