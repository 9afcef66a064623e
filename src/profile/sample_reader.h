/* Samples → rows, for profile.c alone.
 *
 * Samples wait in a small batch, so that what the table of chains will look at is on its way from
 * memory when it is looked at.  The batch is emptied before any map or name of a task changes.
 */
#ifndef TALLY_PROFILE_SAMPLE_READER_H
#define TALLY_PROFILE_SAMPLE_READER_H

#include "profile/profile.h"

struct tally_sample_reader;

/* The reader of a profile's recording; `options` must outlive it.  NULL when memory is out. */
struct tally_sample_reader *tally_sample_reader_new(struct tally_profile *profile,
						    const struct tally_profile_options *options);
void tally_sample_reader_free(struct tally_sample_reader *reader);

/* Adds the sample that tally_recording_next() just gave.  0 or -ENOMEM. */
int tally_sample_reader_add(struct tally_sample_reader *reader, const struct tally_raw_record *raw,
			    const struct tally_record *record);

/* When the last was added.  0 or -ENOMEM. */
int tally_sample_reader_finish(struct tally_sample_reader *reader);

#endif
