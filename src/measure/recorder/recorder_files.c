/* Ends files: continues in the next file of a recording, and dumps the flight recorder's rings.
 *
 * Each file of a recording is complete by itself.  The rings stay as they are, with the records
 * that arrive meanwhile.  A file begins with the tasks known so far, from the records.  /proc could
 * not replace this: it lacks tasks that have ended, whose samples may still be in the rings.
 *
 * The flight recorder writes nothing until a dump is requested, and then what the rings contain.
 *
 * The rings of the samples are mapped read-only and written backwards (attr.write_backward): each
 * record ends where the one before it begins, towards lower addresses, and overwrites the oldest
 * ones.  So the head is where the youngest record begins.  From there the records follow each other
 * to older ones, until a header makes no sense or the whole ring was walked: the next record was
 * partly overwritten.  While a dump reads a ring, writing to it is paused.
 *
 * The meaning of the samples (which tasks ran, what they had mapped) must be known for all the time
 * that the rings cover.  Side-band records are read as they come, and kept; `tasks` is the state
 * before the oldest kept one.  When too many are kept, the older half is applied to `tasks` and
 * dropped.  A dump contains `tasks`, the kept records, then the samples.
 */
#include "recorder/recorder_state.h"

#include "base/vector.h"

#include <errno.h>
#include <string.h>

enum { HISTORY_BYTES_MAX = 64 << 20 };

/* Applies the older half of the history to the tasks, and drops it. */
static int drop_older_half(struct tally_recorder *recorder, struct tally_error *err)
{
	const struct tally_attr *attr = &tally_recorder_side_band(&recorder->events)->attr;
	struct tally_buffer *history = &recorder->history;
	struct tally_record_header header;
	size_t at = 0;
	while (at < history->length / 2) {
		struct tally_record record;
		memcpy(&header, history->bytes + at, sizeof(header));
		if (!tally_record_decode(attr, history->bytes + at, header.size, &record)) {
			int result = tally_recorder_take_task(&recorder->tasks, &record, err);
			if (result < 0)
				return result;
		}
		at += header.size;
	}
	memmove(history->bytes, history->bytes + at, history->length - at);
	history->length -= at;
	return 0;
}

int tally_recorder_keep(struct tally_recorder *recorder, const void *bytes, size_t size,
			struct tally_error *err)
{
	int result = 0;
	if (recorder->history.length + size > HISTORY_BYTES_MAX)
		result = drop_older_half(recorder, err);
	if (result < 0)
		return result;
	tally_buffer_append(&recorder->history, bytes, size);
	if (recorder->history.failed)
		return tally_error_set(err, -ENOMEM, "out of memory");
	return 0;
}

/* The starts of the records that are in no dump yet, the youngest first. */
struct offsets {
	TALLY_VECTOR(uint64_t) at;
};

static int find_records(const struct tally_ring *ring, struct offsets *offsets)
{
	uint64_t head = ring->noted, size = ring->mask + 1, room = ring->tail - head, at = 0;
	if (room > size)
		room = size;
	while (at + sizeof(struct tally_record_header) <= room) {
		struct tally_record_header header;
		memcpy(&header, ring->data + ((head + at) & ring->mask), sizeof(header));
		if (header.size < sizeof(header) || header.size % 8 || at + header.size > room)
			break;
		if (tally_vector_push(&offsets->at, head + at) < 0)
			return -ENOMEM;
		at += header.size;
	}
	return 0;
}

static int write_ring(struct tally_recorder_output *output, struct tally_ring *ring,
		      struct tally_error *err)
{
	struct offsets offsets = { 0 };
	int result = find_records(ring, &offsets);
	if (result < 0)
		tally_error_set(err, result, "out of memory");
	for (size_t i = offsets.at.count; !result && i-- > 0;) {
		const void *record = tally_ring_at(ring, offsets.at.items[i]);
		if (record)
			result = tally_recorder_write(output, record, err);
		else
			result = tally_error_set(err, -ENOMEM, "out of memory");
	}
	tally_vector_release(&offsets.at);
	ring->tail = ring->noted;
	return result;
}

static int dump_ring(struct tally_recorder_output *output, struct tally_ring *ring,
		     struct tally_error *err)
{
	struct tally_provider *provider = output->session->provider;
	int paused = provider->ops->ioctl(provider, ring->handle, TALLY_IOCTL_PAUSE_OUTPUT,
					  (void *)1, 0);
	if (paused < 0)
		return tally_error_set(err, paused, "pausing a ring failed: %s",
				       tally_errno_text(paused));
	tally_ring_note(ring);
	int result = write_ring(output, ring, err);
	provider->ops->ioctl(provider, ring->handle, TALLY_IOCTL_PAUSE_OUTPUT, NULL, 0);
	return result;
}

int tally_recorder_dump_rings(struct tally_recorder *recorder, struct tally_error *err)
{
	const struct tally_record_header round = { .type = TALLY_RECORD_FINISHED_ROUND,
						   .size = sizeof(round) };
	const struct tally_buffer *history = &recorder->history;
	struct tally_recorder_rings *rings = &recorder->rings;
	struct tally_perfdata_writer *writer = recorder->output.writer;
	int result = tally_recorder_write_tasks(&recorder->tasks, &recorder->output, err);
	if (!result && history->length)
		result = tally_perfdata_write(writer, history->bytes, history->length, err);
	for (size_t i = 0; !result && i < rings->count; i++)
		if (rings->samples[i].page)
			result = dump_ring(&recorder->output, &rings->samples[i], err);
	if (result)
		return result;
	return tally_perfdata_write(writer, &round, sizeof(round), err);
}

/* ---- the next file ------------------------------------------------------- */

int tally_recorder_end_file(struct tally_recorder *recorder, struct tally_recorder_status *status,
			    struct tally_error *err)
{
	struct tally_recorder_output *output = &recorder->output;
	int result = 0;
	if (!recorder->session.is_pipe)
		result = tally_recorder_features(&recorder->tasks, output, err);
	int finished = tally_perfdata_finish(output->writer, result < 0 ? NULL : err);
	double seconds = recorder->session.status.seconds;
	tally_recorder_fill_status(output);
	recorder->session.status.seconds = seconds;
	*status = recorder->session.status;
	if (result < 0)
		return result;
	return finished;
}

int tally_recorder_next_file(struct tally_recorder *recorder, struct tally_error *err)
{
	const struct tally_recorder_options *options = &recorder->session.options;
	struct tally_recorder_status status;
	int fd, result = tally_recorder_write_held(&recorder->stacks, true, err);
	if (result < 0)
		return result;
	if (options->overwrite)
		result = tally_recorder_dump_rings(recorder, err);
	if (result < 0)
		return result;
	result = tally_recorder_end_file(recorder, &status, err);
	if (result < 0)
		return result;
	result = options->next_output(options->context, &status, &fd, err);
	if (result < 0)
		return result;
	result = tally_recorder_begin_file(&recorder->output, fd, err);
	if (result < 0)
		return result;
	/* No process of the next file has mapped them. */
	tally_recorder_forgotten_release(&recorder->tasks.forgotten);
	if (options->overwrite)
		return 0;
	return tally_recorder_write_tasks(&recorder->tasks, &recorder->output, err);
}
