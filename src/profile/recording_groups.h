/* Samples that carry the counts of their group (PERF_SAMPLE_READ: "{a,b}:S"): one is given for each
 * event that counted since the last.  Part of recording.c. */
#ifndef TALLY_PROFILE_RECORDING_GROUPS_H
#define TALLY_PROFILE_RECORDING_GROUPS_H

#include "profile/recording.h"

/* Whether it is such a sample, and isn't wanted as it was written. */
static inline bool tally_groups_carry(const struct tally_recording *recording,
				      const struct tally_raw_record *raw,
				      const struct tally_record *record)
{
	return !recording->keep_groups && record->header.type == TALLY_RECORD_SAMPLE &&
	       record->sample.type & TALLY_SAMPLE_READ &&
	       raw->event->attr.read_format & TALLY_FORMAT_ID && record->sample.read.values;
}

/* From now on next() gives this one's. */
void tally_groups_start(struct tally_recording *recording, const struct tally_raw_record *raw,
			const struct tally_record *record);

static inline bool tally_groups_has_more(const struct tally_recording *recording)
{
	return recording->group.next < recording->group.record.sample.read.count;
}

/* The next event of the group that counted since its last sample: 1, 0 when none is left,
 * -ENOMEM. */
int tally_groups_next(struct tally_recording *recording, struct tally_raw_record *raw,
		      struct tally_record *record);

#endif
