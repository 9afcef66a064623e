#include "recorder/recorder_synthesis.h"

#include "task/live_jits.h"

#include <string.h>

enum { FILENAME_MAX_BYTES = 4096 };

void tally_synthesis_begin(struct tally_synthesis *synthesis)
{
	synthesis->size = sizeof(struct tally_record_header);
}

static void put(struct tally_synthesis *synthesis, const void *bytes, size_t size)
{
	memcpy(synthesis->bytes + synthesis->size, bytes, size);
	synthesis->size += size;
}

void tally_synthesis_u32(struct tally_synthesis *synthesis, uint32_t value)
{
	put(synthesis, &value, sizeof(value));
}

void tally_synthesis_u64(struct tally_synthesis *synthesis, uint64_t value)
{
	put(synthesis, &value, sizeof(value));
}

void tally_synthesis_string(struct tally_synthesis *synthesis, const char *text)
{
	size_t length = strlen(text);
	if (length >= FILENAME_MAX_BYTES)
		length = FILENAME_MAX_BYTES - 1;
	size_t padded = (length + 8) & ~(size_t)7;
	memset(synthesis->bytes + synthesis->size, 0, padded);
	memcpy(synthesis->bytes + synthesis->size, text, length);
	synthesis->size += padded;
}

int tally_synthesis_finish(struct tally_synthesis *synthesis, uint32_t type, uint16_t misc,
			   pid_t pid, pid_t tid)
{
	struct tally_recorder *recorder = synthesis->recorder;
	const struct tally_attr *attr = &tally_recorder_side_band(recorder)->attr;
	struct tally_sample_id id = { .pid = (uint32_t)pid,
				      .tid = (uint32_t)tid,
				      .time = synthesis->time_ns };
	struct tally_record record;
	tally_sample_id_encode(attr, &id, synthesis->bytes + synthesis->size);
	synthesis->size += tally_sample_id_size(attr);
	struct tally_record_header header = { type, misc, (uint16_t)synthesis->size };
	memcpy(synthesis->bytes, &header, sizeof(header));
	if (!synthesis->is_known &&
	    !tally_record_decode(attr, synthesis->bytes, synthesis->size, &record)) {
		int taken = tally_recorder_take_task(recorder, &record, synthesis->err);
		if (taken < 0)
			return taken;
		tally_objects_see(&recorder->objects, &recorder->tasks, &record);
		if (recorder->objects.live_jits)
			tally_live_jits_see(recorder->objects.live_jits, &record);
	}
	if (recorder->options.overwrite && !synthesis->is_known)
		return 0; /* a dump writes it */
	return tally_recorder_put(recorder, synthesis->bytes, synthesis->size, synthesis->err);
}
