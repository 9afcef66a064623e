/* Writes records to the file, or passes samples to options.take_sample, and counts both.
 *
 * Lost samples are counted exactly.  The kernel writes a LOST record before the next record that
 * fits, so samples lost after the last record are not reported.  The events themselves count them.
 */
#include "recorder/recorder_output.h"

#include <sys/resource.h>
#include <sys/stat.h>

/* Returns where the samples of the only event have their PERIOD; 0: there are several. */
static size_t find_weight(const struct tally_recorder_events *events)
{
	/* what stands before it */
	const uint64_t before = TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_IP | TALLY_SAMPLE_TID |
				TALLY_SAMPLE_TIME | TALLY_SAMPLE_ADDR | TALLY_SAMPLE_ID |
				TALLY_SAMPLE_STREAM_ID | TALLY_SAMPLE_CPU;
	if (events->source_count != 2) /* with the side-band */
		return 0;
	unsigned words = (unsigned)__builtin_popcountll(events->sources[0].attr.sample_type & before);
	return sizeof(struct tally_record_header) + words * sizeof(uint64_t);
}

int tally_recorder_begin_file(struct tally_recorder_output *output, int fd, struct tally_error *err)
{
	const struct tally_recorder_session *session = output->session;
	const struct tally_perfdata_options writing = {
		.pipe = session->is_pipe,
		.compression_level = session->options.compression_level,
	};
	struct tally_perfdata_writer *writer;
	int result = tally_perfdata_writer_new(
		fd, output->events->recorded, output->events->source_count, &writing, &writer, err);
	if (result < 0)
		return result;
	tally_perfdata_writer_free(output->writer);
	output->writer = writer;
	output->fd = fd;
	output->first_sample_ns = output->last_sample_ns = 0;
	output->file_samples = session->status.samples;
	output->weight_at = find_weight(output->events);
	return 0;
}

void tally_recorder_output_release(struct tally_recorder_output *output)
{
	tally_perfdata_writer_free(output->writer);
	tally_recorder_excerpt_free(output->excerpt);
}

/* ---- records ------------------------------------------------------------- */

int tally_recorder_put(struct tally_recorder_output *output, const void *records, size_t size,
		       struct tally_error *err)
{
	if (output->excerpt)
		tally_recorder_excerpt_add(output->excerpt, records, size);
	return size ? tally_perfdata_write(output->writer, records, size, err) : 0;
}

int tally_recorder_finish_round(struct tally_recorder_output *output, struct tally_error *err)
{
	const struct tally_record_header round = { .type = TALLY_RECORD_FINISHED_ROUND,
						   .size = sizeof(round) };
	return tally_recorder_put(output, &round, sizeof(round), err);
}

/* Passes a sample to options.take_sample instead of writing it. */
static int give_sample(const struct tally_recorder_output *output, const void *bytes, size_t size,
		       struct tally_error *err)
{
	const struct tally_recorder_options *options = &output->session->options;
	const struct tally_recorder_source *source = tally_recorder_source_of(output->events, bytes,
									      size);
	struct tally_record record;
	if (!source || tally_record_decode(&source->written, bytes, size, &record) < 0)
		return 0; /* from no event of the caller's */
	int result = options->take_sample(options->context,
					  (size_t)(source - output->events->sources), &record);
	return result < 0 ? tally_error_set(err, result, "out of memory") : 0;
}

int tally_recorder_put_sample(struct tally_recorder_output *output, const void *bytes, long written,
			      struct tally_error *err)
{
	if (written < 0) {
		output->session->status.lost++;
		return 0;
	}
	if (output->session->options.take_sample)
		return give_sample(output, bytes, (size_t)written, err);
	tally_recorder_excerpt_sample(output, bytes);
	return tally_perfdata_write_walked(output->writer, bytes, (size_t)written, err);
}

int tally_recorder_write(struct tally_recorder_output *output, const void *bytes,
			 struct tally_error *err)
{
	struct tally_record_header header;
	memcpy(&header, bytes, sizeof(header));
	if (header.type == TALLY_RECORD_SAMPLE && header.size >= TALLY_RECORDER_SAMPLE_BYTES_MIN) {
		tally_recorder_count_sample(output, bytes);
		if (output->session->options.take_sample)
			return give_sample(output, bytes, header.size, err);
		tally_recorder_excerpt_sample(output, bytes);
		return tally_perfdata_write(output->writer, bytes, header.size, err);
	}
	if (header.type != TALLY_RECORD_SAMPLE)
		tally_recorder_count_other(output, bytes, header.size);
	return tally_recorder_put(output, bytes, header.size, err);
}

/* ---- counts -------------------------------------------------------------- */

void tally_recorder_count(struct tally_recorder_output *output, const struct tally_record *record)
{
	struct tally_recorder_status *status = &output->session->status;
	if (record->header.type == TALLY_RECORD_LOST ||
	    record->header.type == TALLY_RECORD_LOST_SAMPLES)
		status->lost += record->lost.lost;
	else if (record->header.type == TALLY_RECORD_THROTTLE)
		status->throttled++;
}

void tally_recorder_count_other(struct tally_recorder_output *output, const void *bytes,
				size_t size)
{
	struct tally_record record;
	uint64_t lost_before = output->session->status.lost;
	if (!tally_record_decode(&output->events->sources[0].attr, bytes, size, &record))
		tally_recorder_count(output, &record);
	output->lost_reported += output->session->status.lost - lost_before;
}

static int write_lost(struct tally_recorder_output *output, uint64_t lost, struct tally_error *err)
{
	const struct tally_recorder_source *source = &output->events->sources[0];
	struct {
		struct tally_record_header header;
		uint64_t id, lost;
		uint8_t trailer[64];
	} record = { .id = source->ids.items[0], .lost = lost };
	size_t size = offsetof(__typeof__(record), trailer) + tally_sample_id_size(&source->attr);
	struct tally_sample_id where = { .time = output->last_sample_ns, .id = record.id };
	record.header = (struct tally_record_header){ .type = TALLY_RECORD_LOST,
						      .size = (uint16_t)size };
	tally_sample_id_encode(&source->attr, &where, record.trailer);
	return tally_recorder_put(output, &record, size, err);
}

int tally_recorder_count_lost(struct tally_recorder_output *output, struct tally_error *err)
{
	uint64_t lost = tally_recorder_lost(output->events);
	if (lost <= output->lost_reported)
		return 0;
	uint64_t unreported = lost - output->lost_reported;
	output->lost_reported = lost;
	output->session->status.lost += unreported;
	return write_lost(output, unreported, err);
}

static double own_cpu_s(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

void tally_recorder_fill_status(struct tally_recorder_output *output)
{
	struct tally_recorder_session *session = output->session;
	struct tally_recorder_status *status = &session->status;
	struct stat file;
	status->seconds = (double)(tally_recorder_now_ns() - session->start_ns) / 1e9;
	status->bytes = tally_perfdata_writer_bytes(output->writer);
	if (!session->is_pipe && !fstat(output->fd, &file) && S_ISREG(file.st_mode))
		status->bytes = (uint64_t)file.st_size;
	status->own_cpu_s = own_cpu_s();
	status->file_samples = status->samples - output->file_samples;
}
