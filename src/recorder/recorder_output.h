/* The file that is written, or the function that takes the samples instead (options.take_sample).
 */
#ifndef TALLY_RECORDER_OUTPUT_H
#define TALLY_RECORDER_OUTPUT_H

#include "recorder/recorder_excerpt.h"
#include "recorder/recorder_session.h"

struct tally_recorder_output {
	struct tally_recorder_session *session;
	struct tally_perfdata_writer *writer;
	struct tally_recorder_excerpt *excerpt; /* NULL: none */
	bool is_pipe;
	int fd;
	uint64_t lost_told; /* samples lost according to LOST records of the sample rings */
	uint64_t first_sample_ns, last_sample_ns; /* of the current file */
	uint64_t file_samples; /* status.samples at its start */
	struct tally_buffer history; /* a flight recorder's side-band records since the tasks */
};

#endif
