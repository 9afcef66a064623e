/* The file that is written, or the function that takes the samples instead (options.take_sample).
 */
#ifndef TALLY_RECORDER_OUTPUT_H
#define TALLY_RECORDER_OUTPUT_H

#include "recorder/recorder_events.h"
#include "recorder/recorder_excerpt.h"

#include <string.h>

struct tally_recorder_output {
	struct tally_recorder_session *session;
	const struct tally_recorder_events *events; /* the file's list of events */
	struct tally_perfdata_writer *writer;
	struct tally_recorder_excerpt *excerpt; /* NULL: none */
	int fd;
	uint64_t lost_reported; /* samples lost according to LOST records of the sample rings */
	uint64_t first_sample_ns, last_sample_ns; /* of the current file */
	uint64_t file_samples;                    /* status.samples at its start */
	size_t weight_at; /* bytes from a sample's beginning to its PERIOD; 0: several events sample */
};

/* Begins a file, the first one or the next. */
int tally_recorder_begin_file(struct tally_recorder_output *output, int fd,
			      struct tally_error *err);
void tally_recorder_output_release(struct tally_recorder_output *output);

/* Writes whole records, no samples among them. */
int tally_recorder_put(struct tally_recorder_output *output, const void *records, size_t size,
		       struct tally_error *err);
/* Writes the mark behind which readers may sort all records so far. */
int tally_recorder_finish_round(struct tally_recorder_output *output, struct tally_error *err);
/* Writes a sample in the file's form, after tally_recorder_count_sample() has counted it.  `written`
 * is its size; if that is an -errno, the sample counts as lost. */
int tally_recorder_put_sample(struct tally_recorder_output *output, const void *bytes, long written,
			      struct tally_error *err);
/* Writes one record of a sample ring as it is; its header has its size. */
int tally_recorder_write(struct tally_recorder_output *output, const void *bytes,
			 struct tally_error *err);
/* Counts a record of lost samples or of throttling. */
void tally_recorder_count(struct tally_recorder_output *output, const struct tally_record *record);
/* Does the same for a record of a sample ring, which is no sample. */
void tally_recorder_count_other(struct tally_recorder_output *output, const void *bytes,
				size_t size);
/* Call it after the last pass.  The kernel reports lost samples when there is room again.  This
 * reads the number of later losses from the events and writes it.  Returns 0 or an error of
 * writing. */
int tally_recorder_count_lost(struct tally_recorder_output *output, struct tally_error *err);
void tally_recorder_fill_status(struct tally_recorder_output *output);

/* The recorder's samples begin with IDENTIFIER, IP, TID, TIME: words 1 to 4 behind the header. */
enum {
	TALLY_RECORDER_SAMPLE_TIME_AT = 32,
	TALLY_RECORDER_SAMPLE_BYTES_MIN = TALLY_RECORDER_SAMPLE_TIME_AT + 8
};

/* Counts a sample.  In the header, since most samples are counted and copied, and no more. */
static inline void tally_recorder_count_sample(struct tally_recorder_output *output,
					       const void *bytes)
{
	struct tally_record_header header;
	uint64_t time, weight;
	memcpy(&header, bytes, sizeof(header));
	memcpy(&time, (const uint8_t *)bytes + TALLY_RECORDER_SAMPLE_TIME_AT, sizeof(time));
	output->session->status.samples++;
	if (output->weight_at && header.size >= output->weight_at + sizeof(weight)) {
		memcpy(&weight, (const uint8_t *)bytes + output->weight_at, sizeof(weight));
		output->session->status.weight += weight;
	}
	if (!output->first_sample_ns || time < output->first_sample_ns)
		output->first_sample_ns = time;
	if (time > output->last_sample_ns)
		output->last_sample_ns = time;
}

/* Adds a sample, as written, to the excerpt. */
static inline void tally_recorder_excerpt_sample(struct tally_recorder_output *output,
						 const void *sample)
{
	if (output->excerpt)
		tally_recorder_excerpt_add_sample(output->excerpt, sample);
}

#endif
