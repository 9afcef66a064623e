/* Samples with the counts of their group (PERF_SAMPLE_READ: "{a,b}:S"): one sample is given for
 * each event that counted since its last one.  Part of recording.c. */
#ifndef TALLY_PROFILE_RECORDING_GROUPS_H
#define TALLY_PROFILE_RECORDING_GROUPS_H

#include "recording/recording.h"

/* True if the record is such a sample, and is not to be given as it was written. */
static inline bool tally_groups_carry(const struct tally_recording *recording,
				      const struct tally_raw_record *raw,
				      const struct tally_record *record)
{
	return !recording->keep_groups && record->header.type == TALLY_RECORD_SAMPLE &&
	       record->sample.type & TALLY_SAMPLE_READ &&
	       raw->event->attr.read_format & TALLY_FORMAT_ID && record->sample.read.values;
}

/* Begins to give this sample's events. */
void tally_groups_start(struct tally_recording *recording, const struct tally_raw_record *raw,
			const struct tally_record *record);

static inline bool tally_groups_has_more(const struct tally_recording *recording)
{
	return recording->group.next < recording->group.record.sample.read.count;
}

/* Gives the next event of the group that counted since its last sample.  Returns 1, 0 when none is
 * left, or -ENOMEM. */
int tally_groups_next(struct tally_recording *recording, struct tally_raw_record *raw,
		      struct tally_record *record);

#endif
