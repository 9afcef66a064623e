/* Counts lost samples exactly.
 *
 * The kernel writes a LOST record before the next record that fits, so samples lost after the last
 * record are not reported.  The events themselves count them (FORMAT_LOST, Linux 6.0; children
 * count in their parent).
 */
#include "recorder/recorder_state.h"

#include <string.h>

uint64_t tally_recorder_lost_by(const struct tally_recorder *recorder,
				const struct tally_recorder_handle *opened)
{
	uint64_t words[8];
	struct tally_provider *provider = recorder->provider;
	uint64_t format = recorder->sources[opened->source].attr.read_format;
	if (format != (TALLY_FORMAT_ID | TALLY_FORMAT_LOST))
		return 0;
	ssize_t got = provider->ops->read(provider, opened->handle, words, sizeof(words));
	return got >= (ssize_t)(3 * sizeof(*words)) ? words[2] : 0; /* value, id, lost */
}

static int write_lost(struct tally_recorder *recorder, uint64_t lost, struct tally_error *err)
{
	struct {
		struct tally_record_header header;
		uint64_t id, lost;
		uint8_t trailer[64];
	} record = { .id = recorder->sources[0].ids.items[0], .lost = lost };
	const struct tally_attr *attr = &recorder->sources[0].attr;
	size_t size = offsetof(__typeof__(record), trailer) + tally_sample_id_size(attr);
	struct tally_sample_id where = { .time = recorder->last_sample_ns, .id = record.id };
	record.header = (struct tally_record_header){ .type = TALLY_RECORD_LOST,
						      .size = (uint16_t)size };
	tally_sample_id_encode(attr, &where, record.trailer);
	return tally_recorder_put(recorder, &record, size, err);
}

int tally_recorder_count_lost(struct tally_recorder *recorder, struct tally_error *err)
{
	uint64_t lost = recorder->lost_closed;
	for (size_t i = 0; i < recorder->handles.count; i++)
		lost += tally_recorder_lost_by(recorder, &recorder->handles.items[i]);
	if (lost <= recorder->lost_told)
		return 0;
	uint64_t untold = lost - recorder->lost_told;
	recorder->lost_told = lost;
	recorder->status.lost += untold;
	return write_lost(recorder, untold, err);
}
