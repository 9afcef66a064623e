/* One pass over the rings: side-band first, then samples up to where they stood before (recorder.h says why).
 *
 * Side-band records must be applied in the order in which they happened: a process forked on one CPU may map its
 * program on another, and the map must come behind the fork.  So the side-band rings are merged by time, and only
 * records from before the pass began count: whatever caused such a record was written before it, hence is in the
 * rings already.  Younger ones wait for the next pass; no sample of this pass needs them.
 */
#include "session/recorder_state.h"

#include <string.h>
#include <time.h>

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

static int take_side_band(struct tally_recorder *recorder, const void *bytes, size_t size,
			  const struct tally_record *record, struct tally_error *err)
{
	count_record(recorder, record);
	int result = tally_tasks_record(&recorder->tasks, record);
	if (result < 0)
		return tally_error_set(err, result, "out of memory");
	return write_records(recorder, bytes, size, err);
}

/* The ring whose next record is the oldest, and that record; NULL when all are read. */
static struct tally_ring *oldest_side_band(struct tally_recorder *recorder, const void **bytes, size_t *size,
					   struct tally_record *record)
{
	const struct tally_attr *attr = &tally_record_side_band(recorder)->attr;
	struct tally_ring *oldest = NULL;
	for (size_t i = 0; i < recorder->ring_count; i++) {
		struct tally_ring *ring = &recorder->side_rings[i];
		struct tally_record candidate;
		size_t candidate_size;
		const void *peeked;
		while ((peeked = ring->page ? tally_ring_peek(ring, &candidate_size) : NULL) &&
		       tally_record_decode(attr, peeked, candidate_size, &candidate) < 0)
			tally_ring_advance(ring, candidate_size); /* none that the kernel writes */
		if (!peeked || (oldest && candidate.sample_id.time >= record->sample_id.time))
			continue;
		oldest = ring;
		*bytes = peeked;
		*size = candidate_size;
		*record = candidate;
	}
	return oldest;
}

static int drain_side_band(struct tally_recorder *recorder, uint64_t before_ns, struct tally_error *err)
{
	struct tally_record record;
	struct tally_ring *ring;
	const void *bytes;
	size_t size;
	int result = 0;
	for (size_t i = 0; i < recorder->ring_count; i++)
		if (recorder->side_rings[i].page)
			tally_ring_note(&recorder->side_rings[i]);
	while (!result && (ring = oldest_side_band(recorder, &bytes, &size, &record)) &&
	       record.sample_id.time < before_ns) {
		result = take_side_band(recorder, bytes, size, &record, err);
		tally_ring_advance(ring, size);
	}
	for (size_t i = 0; i < recorder->ring_count; i++)
		if (recorder->side_rings[i].page)
			tally_ring_release_read(&recorder->side_rings[i]);
	return result;
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
			if (!tally_record_decode(&recorder->sources[0].attr, bytes, size, &record)) {
				uint64_t lost_before = recorder->status.lost;
				count_record(recorder, &record);
				recorder->lost_told += recorder->status.lost - lost_before;
			}
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

static uint64_t bytes_read(const struct tally_recorder *recorder)
{
	uint64_t total = 0;
	for (size_t i = 0; i < recorder->ring_count; i++)
		total += recorder->rings[i].tail + recorder->side_rings[i].tail;
	return total;
}

int tally_record_drain(struct tally_recorder *recorder, bool last, struct tally_error *err)
{
	struct timespec now;
	uint64_t before = bytes_read(recorder);
	for (size_t i = 0; i < recorder->ring_count; i++)
		if (recorder->rings[i].page)
			tally_ring_note(&recorder->rings[i]);
	clock_gettime(CLOCK_MONOTONIC, &now); /* the clock of the records */
	uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	int result = drain_side_band(recorder, last ? UINT64_MAX : now_ns, err);
	for (size_t i = 0; !result && i < recorder->ring_count; i++)
		if (recorder->rings[i].page)
			result = drain_samples(recorder, &recorder->rings[i], err);
	return !result && before != bytes_read(recorder) ? finish_round(recorder, err) : result;
}
