/* Passes samples to a function as they come, instead of writing them.  The caller runs the loop
 * over the rings. */
#include "recorder/recorder_state.h"

int tally_recorder_give_sample(struct tally_recorder *recorder, const void *bytes, size_t size,
			       struct tally_error *err)
{
	const struct tally_recorder_source *source = tally_recorder_source_of(recorder, bytes,
									      size);
	struct tally_record record;
	if (!source || tally_record_decode(&source->written, bytes, size, &record) < 0)
		return 0; /* from no event of the caller's */
	int result = recorder->options.take_sample(recorder->options.context,
						   (size_t)(source - recorder->sources), &record);
	return result < 0 ? tally_error_set(err, result, "out of memory") : 0;
}

int tally_recorder_begin(struct tally_recorder *recorder, struct tally_error *err)
{
	recorder->start_ns = tally_recorder_now_ns();
	return tally_recorder_enable(recorder, true, err);
}

int tally_recorder_look(struct tally_recorder *recorder, struct tally_recorder_status *status,
			struct tally_error *err)
{
	int result = tally_recorder_drain(recorder, false, err);
	if (!result)
		tally_recorder_check_online(recorder, -1);
	tally_recorder_fill_status(recorder);
	*status = recorder->status;
	return result;
}

struct tally_tasks *tally_recorder_tasks(struct tally_recorder *recorder)
{
	return &recorder->tasks;
}
