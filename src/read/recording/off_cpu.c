/* A map of the tasks that wait turns the records of one pass into durations, listed by number of
 * sample.  The recording then takes them from the list in the same order.  Wakings are numbered by
 * task and stack in the same pass. */
#include "recording/recording_internal.h"

#include "base/extremes.h"
#include "base/map.h"
#include "base/vector.h"
#include "perfdata/perfdata.h"
#include "recording/recording.h"
#include "tracepoint/tracepoint.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

struct tally_waking {
	/* number of the waking task and its stack, from 1; 0: the sample doesn't say which task it
	 * woke */
	uint32_t number;
	uint32_t woken; /* tid of the task that was woken */
	bool in_interrupt;
};

struct tally_waking_reader {
	const struct tally_recording *recording;
	struct tally_tracepoint *tracepoint;
	const struct tally_tracepoint_field *pid, *flags;
	bool was_looked_for;      /* for the format */
	struct tally_map numbers; /* hash of task and stack → number */
	/* tid → number of the last waking << 32 | its time in units of 2^16 ns */
	struct tally_map last;
};

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

/* Reads a sample of a waking.  Returns 0 or -ENOMEM. */
static int waking_read(struct tally_waking_reader *reader, const struct tally_recorded_event *event,
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

/* Returns the number of the waking of a task just before it left its CPU: a waker may come while
 * the task is about to leave, and then its waking is recorded first.  0: there was none. */
static uint32_t waking_before(const struct tally_waking_reader *reader, uint32_t tid, uint64_t time)
{
	const uint64_t *last = tally_map_get(&reader->last, tid);
	uint32_t now = (uint32_t)(time >> TIME_SHIFT);
	if (!last || now - (uint32_t)*last >= MOMENT)
		return 0;
	return (uint32_t)(*last >> 32);
}

static void waking_reader_release(struct tally_waking_reader *reader)
{
	tally_tracepoint_free(reader->tracepoint);
	tally_map_release(&reader->numbers);
	tally_map_release(&reader->last);
}

/* the task has exited: it leaves its CPU once more and doesn't come back */
static const uint64_t ENDED = UINT64_MAX;

/* the tid that the kernel reports at the very end of a task's exit */
static const uint32_t NO_MORE_TASK = UINT32_MAX;

struct measuring {
	struct tally_off_cpu *off_cpu;
	struct tally_waking_reader wakings;
	/* tid → number of its sample, or ENDED; until the wait ends, `waits` has the time when it
	 * began */
	struct tally_map waiting;
	uint64_t last;            /* ns: latest time seen */
};

static bool is_file(const char *path)
{
	struct stat status;
	return path && strcmp(path, "-") && !stat(path, &status) &&
	       (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));
}

static bool has_wakings(const struct tally_recording *recording)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(recording->data, &count);
	for (size_t i = 0; i < count; i++)
		if (tally_is_waking(&events[i].attr, events[i].name))
			return true;
	return false;
}

static bool has_event(const struct tally_recording *recording, bool *tells_switches)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(recording->data, &count);
	bool is_there = *tells_switches = false;
	for (size_t i = 0; i < count; i++) {
		is_there |= tally_is_off_cpu(&events[i].attr, events[i].name);
		*tells_switches |= (events[i].attr.flags & TALLY_ATTR_CONTEXT_SWITCH) != 0;
	}
	return is_there;
}

void tally_off_cpu_look(struct tally_recording *recording)
{
	bool tells_switches;
	recording->off_cpu.is_due = has_event(recording, &tells_switches) && tells_switches &&
				    is_file(recording->path);
	recording->off_cpu.has_wakings = recording->off_cpu.is_due && has_wakings(recording);
}

bool tally_off_cpu_is_unknown(const struct tally_recording *recording)
{
	bool tells_switches;
	return !recording->off_cpu.is_measured && !recording->options.keep_groups &&
	       has_event(recording, &tells_switches);
}

/* ---- measuring ----------------------------------------------------------- */

static void count_time(struct measuring *measuring, uint64_t time)
{
	if (time > measuring->last)
		measuring->last = time;
}

static void set_end(uint64_t *wait, uint64_t end)
{
	*wait = tally_saturating_sub_u64(end, *wait);
}

static void end_wait(struct measuring *measuring, uint32_t tid, uint64_t time)
{
	const uint64_t *number = tally_map_get(&measuring->waiting, tid);
	if (!number || *number == ENDED)
		return;
	set_end(&measuring->off_cpu->waits.items[*number], time);
	tally_map_remove(&measuring->waiting, tid);
}

static void set_waker(struct measuring *measuring, uint32_t tid, uint32_t waker)
{
	const uint64_t *number = tally_map_get(&measuring->waiting, tid);
	if (number && *number < measuring->off_cpu->wakers.count)
		measuring->off_cpu->wakers.items[*number] = waker;
}

/* The task now waits since sample number `state`, or has ended.  If it was still waiting, the end
 * of that wait is unknown, so the wait is dropped. */
static int set_state(struct measuring *measuring, uint32_t tid, uint64_t state)
{
	bool is_new;
	uint64_t *number = tally_map_put(&measuring->waiting, tid, &is_new);
	if (!number)
		return -ENOMEM;
	if (!is_new && *number != ENDED)
		measuring->off_cpu->waits.items[*number] = 0;
	*number = state;
	return 0;
}

/* A thread that calls exec takes the tid of its process's first thread, which has ended by then. */
static void revive(struct measuring *measuring, uint32_t tid)
{
	const uint64_t *number = tally_map_get(&measuring->waiting, tid);
	if (number && *number == ENDED)
		tally_map_remove(&measuring->waiting, tid);
}

static int begin_wait(struct measuring *measuring, const struct tally_sample *sample)
{
	struct tally_off_cpu *off_cpu = measuring->off_cpu;
	const uint64_t *number = tally_map_get(&measuring->waiting, sample->tid);
	bool is_dead = sample->tid == NO_MORE_TASK || (number && *number == ENDED);
	bool waits = sample->tid && !is_dead;
	if (waits && set_state(measuring, sample->tid, off_cpu->waits.count) < 0)
		return -ENOMEM;
	uint32_t waker = 0;
	uint64_t start = 0;
	if (waits) {
		waker = waking_before(&measuring->wakings, sample->tid, sample->time);
		start = sample->time;
	}
	if (off_cpu->wants_wakers && tally_vector_push(&off_cpu->wakers, waker) < 0)
		return -ENOMEM;
	return tally_vector_push(&off_cpu->waits, start);
}

/* If a task is woken several times, the last waking before it runs counts. */
static int add_waking(struct measuring *measuring, const struct tally_raw_record *raw,
		      const struct tally_sample *sample)
{
	struct tally_off_cpu *off_cpu = measuring->off_cpu;
	struct tally_waking waking;
	if (waking_read(&measuring->wakings, raw->event, sample, &waking) < 0 ||
	    tally_vector_push(&off_cpu->wakings, waking.number) < 0)
		return -ENOMEM;
	while (off_cpu->interrupts.count < waking.number)
		if (tally_vector_push(&off_cpu->interrupts, waking.in_interrupt) < 0)
			return -ENOMEM;
	if (waking.number)
		set_waker(measuring, waking.woken, waking.number);
	return 0;
}

static int measure_sample(struct measuring *measuring, const struct tally_raw_record *raw,
			  const struct tally_sample *sample)
{
	count_time(measuring, sample->time);
	if (tally_is_off_cpu(&raw->event->attr, raw->event->name))
		return begin_wait(measuring, sample);
	if (measuring->off_cpu->wants_wakers &&
	    tally_is_waking(&raw->event->attr, raw->event->name))
		return add_waking(measuring, raw, sample);
	return 0;
}

static int measure_record(struct measuring *measuring, const struct tally_raw_record *raw,
			  const struct tally_record *record)
{
	const struct tally_sample_id *id = &record->sample_id;
	switch (record->header.type) {
	case TALLY_RECORD_SAMPLE:
		return measure_sample(measuring, raw, &record->sample);
	case TALLY_RECORD_SWITCH:
	case TALLY_RECORD_SWITCH_CPU_WIDE:
		if (!id->present)
			return 0;
		count_time(measuring, id->time);
		if (!(record->header.misc & TALLY_MISC_SWITCH_OUT))
			end_wait(measuring, id->tid, id->time);
		else if (record->header.misc & TALLY_MISC_SWITCH_OUT_PREEMPT)
			set_waker(measuring, id->tid, TALLY_WAKER_NOBODY);
		return 0;
	case TALLY_RECORD_EXIT:
		return set_state(measuring, record->task.tid, ENDED);
	case TALLY_RECORD_COMM:
		if (record->header.misc & TALLY_MISC_COMM_EXEC)
			revive(measuring, record->comm.tid);
		return 0;
	case TALLY_RECORD_FORK:
		/* the number belonged to another task before */
		tally_map_remove(&measuring->waiting, record->task.tid);
		return 0;
	default:
		return 0;
	}
}

static void cut_waits(struct measuring *measuring)
{
	for (size_t i = 0; i < measuring->waiting.capacity; i++) {
		const struct tally_map_slot *slot = &measuring->waiting.slots[i];
		if (slot->used && slot->value != ENDED)
			set_end(&measuring->off_cpu->waits.items[slot->value], measuring->last);
	}
}

static int measure(struct measuring *measuring, struct tally_recording *recording,
		   struct tally_error *err)
{
	struct tally_raw_record raw;
	struct tally_record record;
	int result;
	while ((result = tally_recording_next(recording, &raw, &record, err)) > 0)
		if (measure_record(measuring, &raw, &record) < 0)
			return tally_error_set(err, -ENOMEM, "out of memory");
	uint64_t first, last;
	if (tally_recorded_times(recording->data, &first, &last))
		count_time(measuring, last);
	if (!result)
		cut_waits(measuring);
	return result;
}

int tally_off_cpu_measure(struct tally_recording *recording, struct tally_error *err)
{
	struct measuring measuring = { .off_cpu = &recording->off_cpu };
	struct tally_recording *again;
	recording->off_cpu.wants_wakers &= recording->off_cpu.has_wakings;
	recording->off_cpu.is_due = false;
	int result = tally_recording_open(recording->path, &again, err);
	if (result < 0)
		return result;
	/* gives the same samples in the same order, as they were written */
	again->off_cpu.is_due = false;
	measuring.wakings.recording = again;
	result = measure(&measuring, again, err);
	waking_reader_release(&measuring.wakings);
	recording->off_cpu.is_measured = !result;
	tally_map_release(&measuring.waiting);
	tally_recording_close(again);
	return result;
}

/* ---- what was measured --------------------------------------------------- */

bool tally_off_cpu_take(struct tally_off_cpu *off_cpu, struct tally_sample *sample)
{
	uint64_t wait = 0;
	if (off_cpu->wants_wakers) {
		off_cpu->waker = TALLY_WAKER_UNKNOWN;
		if (off_cpu->next < off_cpu->wakers.count)
			off_cpu->waker = off_cpu->wakers.items[off_cpu->next];
	}
	if (off_cpu->next < off_cpu->waits.count)
		wait = off_cpu->waits.items[off_cpu->next++];
	sample->period = wait;
	sample->type |= TALLY_SAMPLE_PERIOD;
	return wait;
}

void tally_off_cpu_take_waking(struct tally_off_cpu *off_cpu)
{
	off_cpu->waker = TALLY_WAKER_UNKNOWN;
	if (off_cpu->next_waking < off_cpu->wakings.count)
		off_cpu->waker = off_cpu->wakings.items[off_cpu->next_waking++];
}

void tally_off_cpu_release(struct tally_off_cpu *off_cpu)
{
	tally_vector_release(&off_cpu->wakers);
	tally_vector_release(&off_cpu->wakings);
	tally_vector_release(&off_cpu->interrupts);
	tally_vector_release(&off_cpu->waits);
}
