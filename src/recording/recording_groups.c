#include "recording/recording_groups.h"

#include <errno.h>

void tally_groups_start(struct tally_recording *recording, const struct tally_raw_record *raw,
			const struct tally_record *record)
{
	recording->group.raw = *raw;
	recording->group.record = *record;
	recording->group.next = 0;
}

int tally_groups_next(struct tally_recording *recording, struct tally_raw_record *raw,
		      struct tally_record *record)
{
	const struct tally_read_values *read = &recording->group.record.sample.read;
	while (recording->group.next < read->count) {
		const uint64_t *words = &read->values[recording->group.next++ * read->stride];
		uint64_t value = words[0], id = words[1];
		const struct tally_recorded_event *event = tally_perfdata_event_of_id(
			recording->data, id);
		uint64_t *last = event ? tally_map_put(&recording->last_values, id, NULL) : NULL;
		if (event && !last)
			return -ENOMEM;
		if (!event) {
			recording->counts.unknown_ids++;
			continue;
		}
		uint64_t counted = value - *last;
		*last = value;
		if (!counted)
			continue;
		*raw = recording->group.raw;
		raw->event = event;
		*record = recording->group.record;
		record->sample.id = id;
		record->sample.period = counted;
		/* with a fixed period, the sample had none */
		record->sample.type |= TALLY_SAMPLE_PERIOD;
		return 1;
	}
	return 0;
}
