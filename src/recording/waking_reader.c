#include "recording/waking_reader.h"

#include "perfdata/feature.h"

#include <errno.h>

/* common_flags of trace events: TRACE_FLAG_HARDIRQ, TRACE_FLAG_SOFTIRQ. */
enum { IN_INTERRUPT = 0x08 | 0x10 };

enum { TIME_SHIFT = 16, MOMENT = 2 /* in units of 65 us */ };

/* Looks up the tracepoint's fields; NULL: the recording doesn't have them. */
static void find_format(struct tally_waking_reader *reader,
			const struct tally_recorded_event *event)
{
	struct tally_feature_bytes tracing = tally_perfdata_feature(reader->recording->data,
								    TALLY_FEATURE_TRACING_DATA);
	struct tally_tracepoint_machine machine = { 0 };
	const char *text;
	size_t length;
	reader->was_looked_for = true;
	if (!tally_perfdata_tracepoint_format(reader->recording->data, event->attr.config, &text,
					      &length) ||
	    !tally_tracing_data_machine(tracing.bytes, tracing.size, &machine.long_bytes,
					&machine.swap) ||
	    tally_tracepoint_parse(text, length, &machine, &reader->tracepoint, NULL) < 0)
		return;
	reader->pid = tally_tracepoint_field(reader->tracepoint, "pid");
	reader->flags = tally_tracepoint_field(reader->tracepoint, "common_flags");
}

/* Hashes what makes rows distinct, and whether it was in an interrupt. */
static uint64_t hash_of(const struct tally_sample *sample, bool in_interrupt)
{
	uint64_t hash = tally_hash64((uint64_t)sample->pid << 32 | sample->tid) ^ in_interrupt;
	for (uint64_t i = 0; i < sample->chain_length; i++)
		hash = tally_hash64(hash ^ sample->chain[i]);
	return hash;
}

static int set_number(struct tally_waking_reader *reader, const struct tally_sample *sample,
		      struct tally_waking *out)
{
	uint64_t *slot = tally_map_put(&reader->numbers, hash_of(sample, out->in_interrupt), NULL);
	if (!slot)
		return -ENOMEM;
	if (!*slot)
		*slot = reader->numbers.count;
	out->number = (uint32_t)*slot;
	uint64_t *last = tally_map_put(&reader->last, out->woken, NULL);
	if (!last)
		return -ENOMEM;
	*last = (uint64_t)out->number << 32 | (uint32_t)(sample->time >> TIME_SHIFT);
	return 0;
}

int tally_waking_read(struct tally_waking_reader *reader, const struct tally_recorded_event *event,
		      const struct tally_sample *sample, struct tally_waking *out)
{
	uint64_t woken, flags = 0;
	*out = (struct tally_waking){ .number = 0 };
	if (!reader->was_looked_for)
		find_format(reader, event);
	if (!reader->pid || !sample->raw ||
	    !tally_tracepoint_u64(reader->tracepoint, reader->pid, sample->raw, sample->raw_size,
				  &woken))
		return 0;
	if (reader->flags)
		tally_tracepoint_u64(reader->tracepoint, reader->flags, sample->raw,
				     sample->raw_size, &flags);
	out->woken = (uint32_t)woken;
	out->in_interrupt = flags & IN_INTERRUPT;
	return set_number(reader, sample, out);
}

uint32_t tally_waking_before(const struct tally_waking_reader *reader, uint32_t tid, uint64_t time)
{
	const uint64_t *last = tally_map_get(&reader->last, tid);
	uint32_t now = (uint32_t)(time >> TIME_SHIFT);
	return last && now - (uint32_t)*last < MOMENT ? (uint32_t)(*last >> 32) : 0;
}

void tally_waking_reader_release(struct tally_waking_reader *reader)
{
	tally_tracepoint_free(reader->tracepoint);
	tally_map_release(&reader->numbers);
	tally_map_release(&reader->last);
}
