/* One pass over the rings: first the side-band, then samples up to where they stood before
 * (recorder.h says why).
 *
 * Side-band records must be applied in the order of their events: a process forked on one CPU may
 * map its program on another, and the mapping must come after the fork.  So the side-band rings are
 * merged by time, and only records from before the pass began are taken.  The cause of such a
 * record was written before it, so it is in the rings already.  Younger records wait for the next
 * pass; no sample of this pass needs them.
 */
#include "recorder/recorder_state.h"

#include "task/live_jits.h"
#include "task/made_code.h"

#include <string.h>
#include <time.h>

enum {
	RECORD_BYTES_MAX = 1 << 16,
	SYMBOL_RECORD_BYTES_MAX = 1 << 10,
	CACHE_LINE = 64,
	FETCHED_BYTES = 6 * CACHE_LINE
};

#define FUTURE_NS 60000000000u /* a record's time can't be this far ahead */

struct tally_recorder_source *tally_recorder_source_of(struct tally_recorder *recorder,
						       const void *bytes, size_t size)
{
	uint64_t id;
	uint64_t *slot = tally_record_id(&recorder->events.sources[0].attr, bytes, size, &id) ?
				 tally_map_get(&recorder->events.source_of_id, id) :
				 NULL;
	return slot ? &recorder->events.sources[*slot] : NULL;
}

int tally_recorder_put(struct tally_recorder *recorder, const void *records, size_t size,
		       struct tally_error *err)
{
	if (recorder->output.excerpt)
		tally_recorder_excerpt_add(recorder->output.excerpt, records, size);
	return size ? tally_perfdata_write(recorder->output.writer, records, size, err) : 0;
}

/* Counts records of lost samples and of throttling. */
static void count_record(struct tally_recorder *recorder, const struct tally_record *record)
{
	if (record->header.type == TALLY_RECORD_LOST ||
	    record->header.type == TALLY_RECORD_LOST_SAMPLES)
		recorder->session.status.lost += record->lost.lost;
	else if (record->header.type == TALLY_RECORD_THROTTLE)
		recorder->session.status.throttled++;
}

int tally_recorder_take_task(struct tally_recorder *recorder, const struct tally_record *record,
			     struct tally_error *err)
{
	int result = tally_tasks_record(&recorder->tasks.known, record);
	if (!result)
		result = tally_endings_record(&recorder->tasks.endings, record);
	if (!result && recorder->tasks.objects.is_live)
		result = tally_perf_maps_record(&recorder->tasks.perf_maps, &recorder->tasks.known, record);
	return result < 0 ? tally_error_set(err, result, "out of memory") : 0;
}

static int take_side_band(struct tally_recorder *recorder, const void *bytes, size_t size,
			  const struct tally_record *record, struct tally_error *err)
{
	count_record(recorder, record);
	if (recorder->session.options.overwrite)
		return tally_recorder_keep(recorder, bytes, size, err);
	int result = tally_recorder_take_task(recorder, record, err);
	if (result < 0)
		return result;
	tally_objects_see(&recorder->tasks.objects, &recorder->tasks.known, record);
	if (recorder->tasks.objects.live_jits)
		tally_live_jits_see(recorder->tasks.objects.live_jits, record);
	return tally_recorder_put(recorder, bytes, size, err);
}

/* Finds the ring whose next record is the oldest; returns NULL when all are read. */
static struct tally_ring *oldest_side_band(struct tally_recorder *recorder, uint64_t now_ns,
					   const void **bytes, size_t *size,
					   struct tally_record *record)
{
	const struct tally_attr *attr = &tally_recorder_side_band(recorder)->attr;
	struct tally_ring *oldest = NULL;
	for (size_t i = 0; i < recorder->rings.count; i++) {
		struct tally_ring *ring = &recorder->rings.sides[i];
		struct tally_record candidate;
		size_t candidate_size;
		const void *peeked;
		while ((peeked = ring->page ? tally_ring_peek(ring, &candidate_size) : NULL) &&
		       tally_record_decode(attr, peeked, candidate_size, &candidate) < 0)
			tally_ring_advance(ring, candidate_size); /* not a record of the kernel's */
		if (peeked && candidate.sample_id.time > now_ns + FUTURE_NS)
			/* An impossible time: a record that is never due would block all behind
			 * it. */
			candidate.sample_id.time = 0;
		if (!peeked || (oldest && candidate.sample_id.time >= record->sample_id.time))
			continue;
		oldest = ring;
		*bytes = peeked;
		*size = candidate_size;
		*record = candidate;
	}
	return oldest;
}

/* Takes a side-band record, with its true size in the header: perf finds the trailer by that. */
static int take_mended(struct tally_recorder *recorder, const void *bytes, size_t size,
		       const struct tally_record *record, struct tally_error *err)
{
	_Alignas(8) uint8_t mended[SYMBOL_RECORD_BYTES_MAX];
	size_t trailer = tally_sample_id_size(&tally_recorder_side_band(recorder)->attr);
	size_t true_size = tally_record_true_size(&record->header, bytes, trailer);
	if (true_size == size || true_size > sizeof(mended))
		return take_side_band(recorder, bytes, size, record, err);
	struct tally_record_header header = record->header;
	header.size = (uint16_t)true_size;
	memcpy(mended, bytes, true_size);
	memcpy(mended, &header, sizeof(header));
	return take_side_band(recorder, mended, true_size, record, err);
}

static int drain_side_band(struct tally_recorder *recorder, uint64_t now_ns, bool last,
			   struct tally_error *err)
{
	struct tally_record record;
	struct tally_ring *ring;
	const void *bytes;
	size_t size;
	int result = 0;
	for (size_t i = 0; i < recorder->rings.count; i++)
		if (recorder->rings.sides[i].page)
			tally_ring_note(&recorder->rings.sides[i]);
	while (!result && (ring = oldest_side_band(recorder, now_ns, &bytes, &size, &record)) &&
	       (last || record.sample_id.time < now_ns)) {
		result = take_mended(recorder, bytes, size, &record, err);
		tally_ring_advance(ring, size);
	}
	for (size_t i = 0; i < recorder->rings.count; i++)
		if (recorder->rings.sides[i].page)
			tally_ring_release_read(&recorder->rings.sides[i]);
	return result;
}

/* The recorder's samples begin with IDENTIFIER, IP, TID, TIME: words 1 to 4 behind the header. */
enum { SAMPLE_TIME_AT = 32, SAMPLE_BYTES_MIN = SAMPLE_TIME_AT + 8 };

static void see_sample(struct tally_recorder *recorder, const void *bytes)
{
	uint64_t time;
	memcpy(&time, (const uint8_t *)bytes + SAMPLE_TIME_AT, sizeof(time));
	recorder->session.status.samples++;
	if (!recorder->output.first_sample_ns || time < recorder->output.first_sample_ns)
		recorder->output.first_sample_ns = time;
	if (time > recorder->output.last_sample_ns)
		recorder->output.last_sample_ns = time;
}

/* Adds a sample, as written, to the excerpt. */
static inline void see_for_excerpt(struct tally_recorder *recorder, const void *sample)
{
	if (recorder->output.excerpt)
		tally_recorder_excerpt_add_sample(recorder->output.excerpt, sample);
}

/* Returns the source of a sample whose stack must be unwound or completed; otherwise NULL. */
static const struct tally_recorder_source *rewriting_source(struct tally_recorder *recorder,
							    const void *bytes, size_t size)
{
	const struct tally_recorder_source *source = recorder->events.unwinds || recorder->events.completes
							     ? tally_recorder_source_of(recorder,
											bytes, size)
							     : NULL;
	return source && (source->unwinds || source->completes) ? source : NULL;
}

/* Passes a sample to options.take_sample instead of writing it. */
static int give_sample(struct tally_recorder *recorder, const void *bytes, size_t size,
			       struct tally_error *err)
{
	const struct tally_recorder_source *source = tally_recorder_source_of(recorder, bytes,
									      size);
	struct tally_record record;
	if (!source || tally_record_decode(&source->written, bytes, size, &record) < 0)
		return 0; /* from no event of the caller's */
	int result = recorder->session.options.take_sample(recorder->session.options.context,
						   (size_t)(source - recorder->events.sources), &record);
	return result < 0 ? tally_error_set(err, result, "out of memory") : 0;
}

int tally_recorder_put_sample(struct tally_recorder *recorder, const void *bytes, long written,
			      struct tally_error *err)
{
	if (written < 0) {
		recorder->session.status.lost++;
		return 0;
	}
	if (recorder->session.options.take_sample)
		return give_sample(recorder, bytes, (size_t)written, err);
	see_for_excerpt(recorder, bytes);
	return tally_perfdata_write_walked(recorder->output.writer, bytes, (size_t)written, err);
}

static int write_sample(struct tally_recorder *recorder, const void *bytes, size_t size,
			struct tally_error *err)
{
	_Alignas(8) uint8_t rewritten[RECORD_BYTES_MAX];
	const struct tally_recorder_source *source = rewriting_source(recorder, bytes, size);
	see_sample(recorder, bytes);
	if (!source && recorder->session.options.take_sample)
		return give_sample(recorder, bytes, size, err);
	if (!source) {
		see_for_excerpt(recorder, bytes);
		return tally_perfdata_write(recorder->output.writer, bytes, size, err);
	}
	long written = tally_recorder_rewrite_sample(recorder, source, bytes, size, rewritten);
	int result = written ? tally_recorder_put_sample(recorder, rewritten, written, err) : 0;
	return result || !recorder->stacks.holds.news_tid ? result
						   : tally_recorder_write_told(recorder, err);
}

static void see_other(struct tally_recorder *recorder, const void *bytes, size_t size)
{
	struct tally_record record;
	uint64_t lost_before = recorder->session.status.lost;
	if (!tally_record_decode(&recorder->events.sources[0].attr, bytes, size, &record))
		count_record(recorder, &record);
	recorder->output.lost_told += recorder->session.status.lost - lost_before;
}

/* Counts the whole records at the start of a piece that go to the file unchanged.  Returns their
 * bytes, at most `limit` unless the first record is longer. */
static size_t walk(struct tally_recorder *recorder, const uint8_t *piece, size_t size, size_t limit)
{
	struct tally_record_header header;
	size_t at = 0;
	for (; size - at >= sizeof(header) && at < limit; at += header.size) {
		const uint8_t *bytes = piece + at;
		memcpy(&header, bytes, sizeof(header));
		if (header.size < sizeof(header) || header.size > size - at ||
		    (at && header.size > limit - at))
			break;
		if (header.type != TALLY_RECORD_SAMPLE)
			see_other(recorder, bytes, header.size);
		else if (header.size < SAMPLE_BYTES_MIN || recorder->session.options.take_sample ||
			 rewriting_source(recorder, bytes, header.size))
			break;
		else {
			see_sample(recorder, bytes);
			see_for_excerpt(recorder, bytes);
		}
	}
	return at;
}

/* Prefetches the next record while this one is processed.  Its fields are read one after the other,
 * each at a position that the one before gives, from memory that another CPU wrote.  The length of
 * a stack's copy stands behind the copy, probably as far as in this record.  (Without prefetch,
 * stack copies take 6 % longer.  With the first KiB of the copy as well, they take as long as
 * without.) */
static inline void fetch_next(const struct tally_ring *ring, size_t size)
{
	if (ring->noted - ring->tail < size)
		return;
	for (size_t at = 0; at < FETCHED_BYTES; at += CACHE_LINE)
		__builtin_prefetch(ring->data + ((ring->tail + at) & ring->mask));
	__builtin_prefetch(ring->data + ((ring->tail + size - sizeof(uint64_t)) & ring->mask));
}

int tally_recorder_write(struct tally_recorder *recorder, const void *bytes,
			 struct tally_error *err)
{
	struct tally_record_header header;
	memcpy(&header, bytes, sizeof(header));
	if (header.type == TALLY_RECORD_SAMPLE && header.size >= SAMPLE_BYTES_MIN)
		return write_sample(recorder, bytes, header.size, err);
	if (header.type != TALLY_RECORD_SAMPLE)
		see_other(recorder, bytes, header.size);
	return tally_recorder_put(recorder, bytes, header.size, err);
}

/* Writes one record: one that wraps, or must be unwound.  Returns 0 when there is none, 1, or
 * -errno. */
static int drain_record(struct tally_recorder *recorder, struct tally_ring *ring,
			struct tally_error *err)
{
	size_t size;
	const void *bytes = tally_ring_next(ring, &size);
	if (!bytes)
		return 0;
	if (((const struct tally_record_header *)bytes)->type == TALLY_RECORD_SAMPLE)
		fetch_next(ring, size);
	int result = tally_recorder_write(recorder, bytes, err);
	return result < 0 ? result : 1;
}

static int drain_samples(struct tally_recorder *recorder, struct tally_ring *ring,
			 struct tally_error *err)
{
	/* Free the ring in steps: the kernel fills the free part while we process the rest. */
	size_t step = (ring->mask + 1) / 8, wanted = tally_perfdata_writer_wants(recorder->output.writer),
	       size;
	uint64_t given_back = ring->tail;
	int result;
	do {
		const void *piece = tally_ring_piece(ring, &size);
		size_t whole = walk(recorder, piece, size, wanted < step ? wanted : step);
		tally_ring_advance(ring, whole);
		result = whole ? tally_perfdata_write_walked(recorder->output.writer, piece, whole, err)
			       : 0;
		if (!whole || result < 0)
			result = result < 0 ? result : drain_record(recorder, ring, err);
		else
			result = 1;
		if (whole || ring->tail - given_back > step) {
			tally_ring_release_read(ring);
			given_back = ring->tail;
		}
	} while (result > 0);
	tally_ring_release_read(ring);
	return result;
}

static int finish_round(struct tally_recorder *recorder, struct tally_error *err)
{
	const struct tally_record_header round = { .type = TALLY_RECORD_FINISHED_ROUND,
						   .size = sizeof(round) };
	return tally_recorder_put(recorder, &round, sizeof(round), err);
}

static uint64_t bytes_read(const struct tally_recorder *recorder)
{
	uint64_t total = 0;
	for (size_t i = 0; i < recorder->rings.count; i++)
		total += recorder->rings.samples[i].tail + recorder->rings.sides[i].tail;
	return total;
}

static void note_heads(struct tally_recorder *recorder)
{
	recorder->rings.found_bytes = 0;
	for (size_t i = 0; i < recorder->rings.count; i++) {
		struct tally_ring *ring = &recorder->rings.samples[i];
		if (!ring->page || ring->is_backward)
			continue;
		tally_ring_note(ring);
		if (ring->noted - ring->tail > recorder->rings.found_bytes)
			recorder->rings.found_bytes = ring->noted - ring->tail;
	}
}

int tally_recorder_drain(struct tally_recorder *recorder, bool last, struct tally_error *err)
{
	struct timespec now;
	struct tally_provider *provider = recorder->session.provider;
	uint64_t before = bytes_read(recorder);
	if (provider && provider->ops->gather)
		provider->ops->gather(provider);
	note_heads(recorder);
	if (recorder->stacks.outer)
		tally_recorder_outer_pass(recorder->stacks.outer);
	if (recorder->tasks.objects.made_code)
		tally_made_code_pass(recorder->tasks.objects.made_code);
	if (recorder->tasks.objects.live_jits)
		tally_live_jits_pass(recorder->tasks.objects.live_jits, &recorder->tasks.known);
	clock_gettime(CLOCK_MONOTONIC, &now); /* the clock of the records */
	uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	int result = drain_side_band(recorder, now_ns, last, err);
	if (!result)
		result = tally_recorder_look_at_modules(recorder, now_ns, err);
	recorder->stacks.holds.is_open = !last && !recorder->session.options.take_sample;
	recorder->stacks.holds.pass++;
	for (size_t i = 0; !result && i < recorder->rings.count; i++)
		if (recorder->rings.samples[i].page && !recorder->rings.samples[i].is_backward)
			result = drain_samples(recorder, &recorder->rings.samples[i], err);
	recorder->stacks.holds.is_open = false;
	recorder->stacks.holds.last_pass_ns = now_ns;
	if (!result)
		result = tally_recorder_write_held(recorder, last, err);
	if (!result)
		result = tally_recorder_end_gone(recorder, now_ns, err);
	tally_endings_pass(&recorder->tasks.endings, &recorder->tasks.known);
	tally_perf_maps_look(&recorder->tasks.perf_maps, now_ns, last);
	tally_recorder_trim_objects(recorder);
	if (!result)
		result = tally_recorder_forget_files(recorder, err);
	if (!result && before != bytes_read(recorder) && !recorder->session.options.overwrite &&
	    !tally_recorder_holds_on(recorder))
		result = finish_round(recorder, err);
	return !result && !last ? tally_recorder_copies_adapt(recorder, err) : result;
}
