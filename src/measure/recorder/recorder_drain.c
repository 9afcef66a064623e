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

#include <string.h>

enum { SIDE_BAND_RECORD_BYTES_MAX = 8 << 10, CACHE_LINE = 64, FETCHED_BYTES = 6 * CACHE_LINE };

#define FUTURE_NS 60000000000u /* a record's time can't be this far ahead */

/* ---- the side-band ------------------------------------------------------- */

static int take_side_band(struct tally_recorder *recorder, const void *bytes, size_t size,
			  const struct tally_record *record, struct tally_error *err)
{
	tally_recorder_count(&recorder->output, record);
	if (recorder->session.options.overwrite)
		return tally_recorder_keep(recorder, bytes, size, err);
	int result = tally_recorder_apply_task_record(&recorder->tasks, record, err);
	if (result)
		return result;
	return tally_recorder_put(&recorder->output, bytes, size, err);
}

/* Skips what is not a record of the kernel's.  Returns the ring's next record, decoded as well, or
 * NULL. */
static const void *peek_record(struct tally_ring *ring, const struct tally_attr *attr, size_t *size,
			       struct tally_record *record)
{
	const void *peeked;
	if (!ring->page)
		return NULL;
	while ((peeked = tally_ring_peek(ring, size)) &&
	       tally_record_decode(attr, peeked, *size, record) < 0)
		tally_ring_advance(ring, *size);
	return peeked;
}

/* Finds the ring whose next record is the oldest; returns NULL when all are read. */
static struct tally_ring *oldest_side_band(const struct tally_recorder *recorder, uint64_t now_ns,
					   const void **bytes, size_t *size,
					   struct tally_record *record)
{
	struct tally_ring *oldest = NULL;
	if (!recorder->rings.count)
		return NULL;
	struct tally_attr attr = tally_recorder_side_band(&recorder->events)->attr;
	attr.flags &= ~TALLY_ATTR_BUILD_ID; /* the kernel's records have none */
	for (size_t i = 0; i < recorder->rings.count; i++) {
		struct tally_ring *ring = &recorder->rings.sides[i];
		struct tally_record candidate;
		size_t candidate_size;
		const void *peeked = peek_record(ring, &attr, &candidate_size, &candidate);
		if (!peeked)
			continue;
		/* An impossible time: a record that is never due would block all behind it. */
		if (candidate.sample_id.time > now_ns + FUTURE_NS)
			candidate.sample_id.time = 0;
		if (oldest && candidate.sample_id.time >= record->sample_id.time)
			continue;
		oldest = ring;
		*bytes = peeked;
		*size = candidate_size;
		*record = candidate;
	}
	return oldest;
}

/* Takes a side-band record.  Puts its true size into the header, by which perf finds the trailer.
 * Adds the mapped file's build-id. */
static int take_mended(struct tally_recorder *recorder, const void *bytes, size_t size,
		       struct tally_record *record, struct tally_error *err)
{
	_Alignas(8) uint8_t mended[SIDE_BAND_RECORD_BYTES_MAX];
	const struct tally_attr *attr = &tally_recorder_side_band(&recorder->events)->attr;
	struct tally_recorder_tasks *tasks = &recorder->tasks;
	struct tally_build_id id;
	size_t true_size = tally_record_true_size(&record->header, bytes,
						  tally_sample_id_size(attr));
	bool has_id = record->header.type == TALLY_RECORD_MMAP2 &&
		      attr->flags & TALLY_ATTR_BUILD_ID &&
		      tally_recorder_build_id(&tasks->build_ids, &tasks->known, &record->mmap, &id);
	/* another recorder's event has attr.build_id */
	bool is_marked = record->header.type == TALLY_RECORD_MMAP2 && record->mmap.has_inode &&
			 record->header.misc & TALLY_MISC_MMAP_BUILD_ID;
	if ((true_size == size && !has_id && !is_marked) || true_size > sizeof(mended))
		return take_side_band(recorder, bytes, size, record, err);
	struct tally_record_header header = record->header;
	header.size = (uint16_t)true_size;
	if (is_marked)
		header.misc &= (uint16_t)~TALLY_MISC_MMAP_BUILD_ID;
	memcpy(mended, bytes, true_size);
	memcpy(mended, &header, sizeof(header));
	if (has_id) {
		tally_recorder_put_build_id(mended, &id);
		if (tally_record_decode(attr, mended, true_size, record) < 0)
			return 0;
	}
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

/* ---- samples ------------------------------------------------------------- */

/* Returns the source of a sample whose stack must be unwound or completed; otherwise NULL. */
static const struct tally_recorder_source *rewriting_source(
	const struct tally_recorder_events *events, const void *bytes, size_t size)
{
	if (!events->unwinds && !events->completes)
		return NULL;
	const struct tally_recorder_source *source = tally_recorder_source_of(events, bytes, size);
	if (source && (source->unwinds || source->completes))
		return source;
	return NULL;
}

/* Counts the whole records at the start of a piece that go to the file unchanged.  Returns their
 * bytes, at most `limit` unless the first record is longer. */
static size_t walk(struct tally_recorder_output *output, const uint8_t *piece, size_t size,
		   size_t limit)
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
			tally_recorder_count_other(output, bytes, header.size);
		else if (header.size < TALLY_RECORDER_SAMPLE_BYTES_MIN ||
			 output->session->options.take_sample ||
			 rewriting_source(output->events, bytes, header.size))
			break;
		else {
			tally_recorder_count_sample(output, bytes);
			tally_recorder_excerpt_sample(output, bytes);
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

/* Writes one record: one that wraps, or must be unwound.  Returns 0 when there is none, 1, or
 * -errno. */
static int drain_record(struct tally_recorder *recorder, struct tally_ring *ring,
			struct tally_error *err)
{
	const struct tally_record_header *header;
	const struct tally_recorder_source *source = NULL;
	size_t size;
	const void *bytes = tally_ring_next(ring, &size);
	if (!bytes)
		return 0;
	header = bytes;
	if (header->type == TALLY_RECORD_SAMPLE)
		fetch_next(ring, size);
	if (header->type == TALLY_RECORD_SAMPLE && size >= TALLY_RECORDER_SAMPLE_BYTES_MIN)
		source = rewriting_source(&recorder->events, bytes, size);
	int result;
	if (source)
		result = tally_recorder_write_stack(&recorder->stacks, source, bytes, size, err);
	else
		result = tally_recorder_write(&recorder->output, bytes, err);
	if (result < 0)
		return result;
	return 1;
}

static int drain_samples(struct tally_recorder *recorder, struct tally_ring *ring,
			 struct tally_error *err)
{
	/* Free the ring in steps: the kernel fills the free part while we process the rest. */
	struct tally_perfdata_writer *writer = recorder->output.writer;
	size_t step = (ring->mask + 1) / 8, wanted = tally_perfdata_writer_wants(writer), size;
	uint64_t given_back = ring->tail;
	bool has_more;
	int result;
	if (wanted > step)
		wanted = step;
	do {
		const void *piece = tally_ring_piece(ring, &size);
		size_t whole = walk(&recorder->output, piece, size, wanted);
		tally_ring_advance(ring, whole);
		if (whole) {
			result = tally_perfdata_write_walked(writer, piece, whole, err);
			has_more = result >= 0;
		} else {
			result = drain_record(recorder, ring, err);
			has_more = result > 0;
		}
		if (whole || ring->tail - given_back > step) {
			tally_ring_release_read(ring);
			given_back = ring->tail;
		}
	} while (has_more);
	tally_ring_release_read(ring);
	return result;
}

static int drain_rings(struct tally_recorder *recorder, uint64_t now_ns, bool last,
		       struct tally_error *err)
{
	struct tally_recorder_rings *rings = &recorder->rings;
	int result = drain_side_band(recorder, now_ns, last, err);
	if (result)
		return result;
	result = tally_recorder_look_at_modules(&recorder->tasks, &recorder->output, now_ns, err);
	if (result)
		return result;
	for (size_t i = 0; i < rings->count; i++) {
		if (!rings->samples[i].page || rings->samples[i].is_backward)
			continue;
		result = drain_samples(recorder, &rings->samples[i], err);
		if (result)
			return result;
	}
	return 0;
}

int tally_recorder_drain(struct tally_recorder *recorder, bool last, struct tally_error *err)
{
	struct tally_provider *provider = recorder->session.provider;
	struct tally_recorder_rings *rings = &recorder->rings;
	struct tally_recorder_stacks *stacks = &recorder->stacks;
	uint64_t before = tally_recorder_bytes_read(rings);
	if (provider && provider->ops->gather)
		provider->ops->gather(provider);
	tally_recorder_note_heads(rings);
	tally_recorder_stacks_begin_pass(stacks, last);
	tally_recorder_tasks_begin_pass(&recorder->tasks);
	uint64_t now_ns = tally_recorder_now_ns(); /* by the clock of the records */
	int result = drain_rings(recorder, now_ns, last, err);
	tally_recorder_stacks_end_pass(stacks, now_ns);
	if (!result)
		result = tally_recorder_write_held(stacks, last, err);
	/* After an error as well: the names need it. */
	int ended = tally_recorder_tasks_end_pass(&recorder->tasks, now_ns, last,
						  result < 0 ? NULL : err);
	if (result < 0)
		return result;
	if (ended < 0)
		return ended;
	if (before != tally_recorder_bytes_read(rings) && !recorder->session.options.overwrite &&
	    !tally_recorder_holds_on(stacks))
		result = tally_recorder_finish_round(&recorder->output, err);
	if (result || last)
		return result;
	return tally_recorder_copies_adapt(&recorder->events, err);
}
