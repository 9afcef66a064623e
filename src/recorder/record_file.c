/* Continues a recording in a new file; each file is complete by itself.
 *
 * The rings stay as they are, with the records that arrive meanwhile.  A file begins with the tasks
 * known so far, from the records.  /proc could not replace this: it lacks tasks that have ended,
 * whose samples may still be in the rings.
 */
#include "recorder/recorder_state.h"

int tally_recorder_next_file(struct tally_recorder *recorder, struct tally_error *err)
{
	const struct tally_perfdata_options writing = {
		.compression_level = recorder->options.compression_level
	};
	struct tally_recorder_status status;
	int fd, result = tally_recorder_write_held(recorder, true, err);
	if (!result && recorder->options.overwrite)
		result = tally_recorder_dump_rings(recorder, err);
	if (!result)
		result = tally_recorder_finish(recorder, &status, err);
	if (!result)
		result = recorder->options.next_output(recorder->options.context, &status, &fd,
						       err);
	if (result < 0)
		return result;
	struct tally_perfdata_writer *next;
	result = tally_perfdata_writer_new(fd, recorder->recorded, recorder->source_count, &writing,
					   &next, err);
	if (result < 0)
		return result;
	tally_perfdata_writer_free(recorder->writer);
	recorder->writer = next;
	recorder->output_fd = fd;
	/* No process of the next file has mapped them. */
	tally_recorder_forgotten_release(&recorder->forgotten);
	recorder->first_sample_ns = recorder->last_sample_ns = 0;
	recorder->file_samples = recorder->status.samples;
	recorder->file_start_ns = tally_recorder_now_ns();
	return recorder->options.overwrite ? 0 : tally_recorder_write_tasks(recorder, err);
}
