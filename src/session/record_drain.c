/* One pass over the rings: side-band whole, then samples up to where they stood before (recorder.h says why). */
#include "session/recorder_state.h"

#include <string.h>

enum { RECORD_BYTES_MAX = 1 << 16 };

struct tally_record_source *tally_record_source_of(struct tally_recorder *recorder, const void *bytes, size_t size)
{
	uint64_t id;
	uint64_t *slot = tally_record_id(&recorder->sources[0].attr, bytes, size, &id) ?
				 tally_map_get(&recorder->source_of_id, id) :
				 NULL;
	return slot ? &recorder->sources[*slot] : NULL;
}

static int write_records(struct tally_recorder *recorder, const void *bytes, size_t size, struct tally_error *err)
{
	return size ? tally_perfdata_write(recorder->writer, bytes, size, err) : 0;
}

/* Loss, throttling: counted as they pass. */
static void count_record(struct tally_recorder *recorder, const struct tally_record *record)
{
	if (record->header.type == TALLY_RECORD_LOST || record->header.type == TALLY_RECORD_LOST_SAMPLES)
		recorder->status.lost += record->lost.lost;
	else if (record->header.type == TALLY_RECORD_THROTTLE)
		recorder->status.throttled++;
}

static int drain_side_band(struct tally_recorder *recorder, struct tally_ring *ring, struct tally_error *err)
{
	const struct tally_attr *attr = &tally_record_side_band(recorder)->attr;
	const void *bytes;
	size_t size;
	tally_ring_note(ring);
	while ((bytes = tally_ring_next(ring, &size))) {
		struct tally_record record;
		int result = tally_record_decode(attr, bytes, size, &record);
		if (!result) {
			count_record(recorder, &record);
			result = tally_tasks_record(&recorder->tasks, &record);
			if (result < 0)
				return tally_error_set(err, result, "out of memory");
		}
		result = write_records(recorder, bytes, size, err);
		if (result < 0)
			return result;
	}
	tally_ring_release_read(ring);
	return 0;
}

static void see_sample_time(struct tally_recorder *recorder, const void *bytes)
{
	/* IDENTIFIER, IP, TID, TIME: words 1 to 4 behind the header, in every sample of ours. */
	uint64_t time;
	memcpy(&time, (const uint8_t *)bytes + 32, sizeof(time));
	if (!recorder->first_sample_ns || time < recorder->first_sample_ns)
		recorder->first_sample_ns = time;
	if (time > recorder->last_sample_ns)
		recorder->last_sample_ns = time;
}

static int write_sample(struct tally_recorder *recorder, const void *bytes, size_t size, struct tally_error *err)
{
	_Alignas(8) uint8_t rewritten[RECORD_BYTES_MAX];
	struct tally_record_source *source = tally_record_source_of(recorder, bytes, size);
	recorder->status.samples++;
	see_sample_time(recorder, bytes);
	if (!source || !source->unwinds)
		return write_records(recorder, bytes, size, err);
	long written = tally_record_unwind_sample(recorder, source, bytes, size, rewritten);
	if (written < 0) {
		recorder->status.lost++;
		return 0;
	}
	return write_records(recorder, rewritten, (size_t)written, err);
}

static int drain_samples(struct tally_recorder *recorder, struct tally_ring *ring, struct tally_error *err)
{
	const void *bytes;
	size_t size;
	uint64_t given_back = ring->tail;
	while ((bytes = tally_ring_next(ring, &size))) {
		struct tally_record_header header;
		struct tally_record record;
		int result;
		memcpy(&header, bytes, sizeof(header));
		if (header.type == TALLY_RECORD_SAMPLE) {
			result = write_sample(recorder, bytes, size, err);
		} else {
			if (!tally_record_decode(&recorder->sources[0].attr, bytes, size, &record))
				count_record(recorder, &record);
			result = write_records(recorder, bytes, size, err);
		}
		if (result < 0)
			return result;
		/* Room is given back in steps: the kernel fills what is free while we unwind the rest. */
		if (ring->tail - given_back > ring->mask / 8) {
			tally_ring_release_read(ring);
			given_back = ring->tail;
		}
	}
	tally_ring_release_read(ring);
	return 0;
}

static int finish_round(struct tally_recorder *recorder, struct tally_error *err)
{
	const struct tally_record_header round = { .type = TALLY_RECORD_FINISHED_ROUND, .size = sizeof(round) };
	return write_records(recorder, &round, sizeof(round), err);
}

int tally_record_drain(struct tally_recorder *recorder, struct tally_error *err)
{
	int result = 0;
	bool any = false;
	for (size_t i = 0; i < recorder->ring_count; i++)
		if (recorder->rings[i].page)
			tally_ring_note(&recorder->rings[i]);
	for (size_t i = 0; !result && i < recorder->ring_count; i++)
		if (recorder->side_rings[i].page) {
			uint64_t before = recorder->side_rings[i].tail;
			result = drain_side_band(recorder, &recorder->side_rings[i], err);
			any |= before != recorder->side_rings[i].tail;
		}
	for (size_t i = 0; !result && i < recorder->ring_count; i++)
		if (recorder->rings[i].page) {
			any |= recorder->rings[i].tail != recorder->rings[i].noted;
			result = drain_samples(recorder, &recorder->rings[i], err);
		}
	return !result && any ? finish_round(recorder, err) : result;
}
