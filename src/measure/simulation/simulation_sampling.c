/* Samples for a line of a scenario: one ring on each CPU, as inherited events need. */
#include "simulation/simulation_state.h"

#include <errno.h>
#include <string.h>
#include <time.h>

enum { SIDE_BAND_PAGES = 256 };

static unsigned cpus_of(const struct simulation_stage *stage)
{
	return stage->scenario->machine.cpus;
}

static void set_clock(struct tally_attr *attr)
{
	attr->flags |= TALLY_ATTR_USE_CLOCKID | TALLY_ATTR_SAMPLE_ID_ALL;
	attr->clockid = CLOCK_MONOTONIC;
	attr->size = sizeof(*attr);
}

static void make_attr(const struct simulation_part *part, struct simulation_source *source)
{
	const struct scenario_part *line = part->line;
	struct tally_attr *attr = &source->attr;
	*attr = source->event->attr;
	attr->sample_type = TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_IP | TALLY_SAMPLE_TID |
			    TALLY_SAMPLE_TIME | TALLY_SAMPLE_CPU | TALLY_SAMPLE_PERIOD;
	if (line->has_stacks)
		attr->sample_type |= TALLY_SAMPLE_CALLCHAIN;
	if (source->event->kind == TALLY_EVENT_TRACEPOINT)
		attr->sample_type |= TALLY_SAMPLE_RAW;
	attr->read_format = TALLY_FORMAT_ID;
	if (!source->event->has_period && !source->event->has_frequency) {
		attr->sample_period = line->rate;
		if (line->is_frequency)
			attr->flags |= TALLY_ATTR_FREQ;
	}
	if (line->is_inherited && line->program >= 0)
		attr->flags |= TALLY_ATTR_INHERIT;
	attr->flags |= TALLY_ATTR_DISABLED;
	tally_attr_honour_period(attr);
	set_clock(attr);
	source->written = *attr;
	attr->read_format |= TALLY_FORMAT_LOST;
}

static int open_on(struct simulation_stage *stage, struct simulation_source *source, pid_t pid,
		   unsigned cpu)
{
	struct tally_provider *provider = stage->provider;
	uint64_t id;
	int handle = provider->ops->open(provider, &source->attr, pid, (int)cpu, -1,
					 TALLY_FLAG_FD_CLOEXEC);
	if (handle < 0)
		return handle;
	source->handles[cpu] = handle;
	int code = provider->ops->ioctl(provider, handle, TALLY_IOCTL_ID, &id, 0);
	source->ids[source->id_count++] = id;
	return code;
}

/* Gives the event a ring: the first event of a CPU gets a new one, the others write to it. */
static int give_ring(struct simulation_stage *stage, struct tally_ring *ring, int handle,
		     unsigned cpu, unsigned pages)
{
	struct tally_provider *provider = stage->provider;
	if (ring->page)
		return provider->ops->ioctl(provider, handle, TALLY_IOCTL_SET_OUTPUT,
					    (void *)(uintptr_t)ring->handle, 0);
	return tally_ring_open(ring, provider, handle, (int)cpu, pages);
}

static int make_source(struct simulation_stage *stage, struct simulation_source *source)
{
	source->handles = tally_arena_array(&stage->arena, cpus_of(stage),
					    sizeof(*source->handles));
	source->ids = tally_arena_array(&stage->arena, cpus_of(stage), sizeof(*source->ids));
	if (!source->handles || !source->ids)
		return simulation_out_of_memory(stage);
	for (unsigned cpu = 0; cpu < cpus_of(stage); cpu++)
		source->handles[cpu] = -1;
	return 0;
}

static bool wants_cpu(const struct simulation_stage *stage, const struct simulation_part *part,
		      unsigned cpu)
{
	return sim_cpu_online(stage->machine, cpu) &&
	       (part->line->cpu < 0 || part->line->cpu == (int)cpu);
}

/* Opens an event on all CPUs.  The PMU of one core type is not on every CPU, so one CPU is
 * enough. */
static int open_source(struct simulation_stage *stage, struct simulation_part *part,
		       struct simulation_source *source)
{
	const struct scenario_instance *task = NULL;
	if (part->line->program >= 0)
		task = scenario_play_find(&stage->play, part->line->program);
	int refused = -ENODEV;
	for (unsigned cpu = 0; cpu < cpus_of(stage); cpu++) {
		if (!wants_cpu(stage, part, cpu))
			continue;
		int code = open_on(stage, source, task ? task->tid : -1, cpu);
		if (!code)
			code = give_ring(stage, &part->rings[cpu], source->handles[cpu], cpu,
					 part->line->pages);
		if (code < 0 && source->handles[cpu] >= 0)
			return tally_error_set(
				stage->err, code, "%.100s: line %u: no ring of %u pages for %s: %s",
				stage->options->scenario_name, part->line->place.line,
				part->line->pages, source->event->name, tally_errno_text(code));
		if (code < 0)
			refused = code;
	}
	if (!source->id_count)
		return tally_error_set(stage->err, refused,
				       "%.100s: line %u: '%s' can't be sampled on this machine: %s",
				       stage->options->scenario_name, part->line->events_place.line,
				       source->event->name, tally_errno_text(refused));
	return 0;
}

static void enable(struct simulation_stage *stage, const struct simulation_source *source)
{
	for (unsigned cpu = 0; cpu < cpus_of(stage); cpu++)
		if (source->handles[cpu] >= 0)
			stage->provider->ops->ioctl(stage->provider, source->handles[cpu],
						    TALLY_IOCTL_ENABLE, NULL, 0);
}

static void set_next_read(struct simulation_stage *stage, struct simulation_part *part)
{
	uint64_t every = part->line->read_every_ns;
	part->next_read_ns = UINT64_MAX;
	if (every != UINT64_MAX)
		part->next_read_ns = sim_now(stage->machine) + every;
}

int simulation_open_samples(struct simulation_stage *stage, struct simulation_part *part)
{
	size_t count = part->events.count;
	part->sources = tally_arena_array(&stage->arena, count, sizeof(*part->sources));
	struct tally_ring *rings = tally_arena_array(&stage->arena, cpus_of(stage), sizeof(*rings));
	if (!part->sources || !rings)
		return simulation_out_of_memory(stage);
	for (size_t i = 0; i < count; i++) { /* closing looks at all of them */
		int code = make_source(stage, &part->sources[i]);
		if (code)
			return code;
	}
	part->rings = rings;
	for (size_t i = 0; i < count; i++) {
		part->sources[i].event = &part->events.items[i];
		make_attr(part, &part->sources[i]);
		int code = open_source(stage, part, &part->sources[i]);
		if (code)
			return code;
	}
	for (size_t i = 0; i < count; i++)
		enable(stage, &part->sources[i]);
	set_next_read(stage, part);
	return 0;
}

int simulation_open_side_band(struct simulation_stage *stage,
			      struct simulation_recording *recording)
{
	struct simulation_source *source = &recording->side_band;
	if (recording->fd < 0)
		return 0;
	int code = make_source(stage, source);
	recording->side_rings = tally_arena_array(&stage->arena, cpus_of(stage),
						  sizeof(*recording->side_rings));
	if (!recording->side_rings)
		return simulation_out_of_memory(stage);
	source->attr = (struct tally_attr){
		.type = TALLY_TYPE_SOFTWARE,
		.config = TALLY_SW_DUMMY,
		.sample_period = 1,
		.sample_type = TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME |
			       TALLY_SAMPLE_CPU,
		.read_format = TALLY_FORMAT_ID,
		.flags = TALLY_ATTR_MMAP | TALLY_ATTR_MMAP2 | TALLY_ATTR_COMM |
			 TALLY_ATTR_COMM_EXEC | TALLY_ATTR_TASK | TALLY_ATTR_KSYMBOL,
	};
	set_clock(&source->attr);
	source->written = source->attr;
	for (unsigned cpu = 0; !code && cpu < cpus_of(stage); cpu++) {
		code = open_on(stage, source, -1, cpu);
		if (!code)
			code = tally_ring_open(&recording->side_rings[cpu], stage->provider,
					       source->handles[cpu], (int)cpu, SIDE_BAND_PAGES);
	}
	if (code < 0)
		return tally_error_set(stage->err, code,
				       "the recording's side-band events don't open: %s",
				       tally_errno_text(code));
	return 0;
}

/* ---- reading ------------------------------------------------------------- */

static void take_record(struct simulation_stage *stage, struct simulation_part *part,
			const void *bytes, size_t size)
{
	struct tally_record record;
	if (tally_record_decode(&part->sources[0].written, bytes, size, &record) < 0)
		return;
	if (record.header.type == TALLY_RECORD_LOST) {
		part->lost_reported += record.lost.lost;
		simulation_report(stage,
				  "the ring of %s on cpu %u was full: a record "
				  "says that %llu were lost, %llu so far",
				  part->target_text, record.sample_id.cpu,
				  (unsigned long long)record.lost.lost,
				  (unsigned long long)part->lost_reported);
	} else if (record.header.type == TALLY_RECORD_THROTTLE) {
		part->throttled++;
		simulation_report(stage,
				  "sampling of %s was throttled: too many interrupts in a tick",
				  part->target_text);
	}
}

/* Every sample begins with IDENTIFIER, IP, TID, TIME: words 1 to 4 behind the header. */
static void take_sample(struct simulation_recording *recording, struct simulation_part *part,
			const void *bytes)
{
	uint64_t time;
	memcpy(&time, (const uint8_t *)bytes + 32, sizeof(time));
	if (!recording->first_sample_ns || time < recording->first_sample_ns)
		recording->first_sample_ns = time;
	if (time > recording->last_sample_ns)
		recording->last_sample_ns = time;
	part->samples++;
}

static int drain_ring(struct simulation_stage *stage, struct simulation_part *part,
		      struct simulation_recording *recording, struct tally_ring *ring)
{
	const void *bytes;
	size_t size;
	int code = 0;
	tally_ring_note(ring);
	while (!code && (bytes = tally_ring_next(ring, &size))) {
		struct tally_record_header header;
		memcpy(&header, bytes, sizeof(header));
		if (part && header.type == TALLY_RECORD_SAMPLE)
			take_sample(recording, part, bytes);
		else if (part)
			take_record(stage, part, bytes, size);
		code = simulation_recording_write(recording, bytes, size);
	}
	tally_ring_release_read(ring);
	return code;
}

int simulation_drain(struct simulation_stage *stage, struct simulation_part *part,
		     struct simulation_recording *recording)
{
	int code = 0;
	for (unsigned cpu = 0; !code && cpu < cpus_of(stage); cpu++)
		if (part->rings[cpu].page)
			code = drain_ring(stage, part, recording, &part->rings[cpu]);
	set_next_read(stage, part);
	return code;
}

int simulation_drain_side_band(struct simulation_stage *stage,
			       struct simulation_recording *recording)
{
	for (unsigned cpu = 0; recording->side_rings && cpu < cpus_of(stage); cpu++) {
		if (!recording->side_rings[cpu].page)
			continue;
		int code = drain_ring(stage, NULL, recording, &recording->side_rings[cpu]);
		if (code)
			return code;
	}
	return 0;
}

void simulation_read_lost(struct simulation_stage *stage, struct simulation_part *part)
{
	struct { uint64_t value, id, lost; } words;
	for (size_t i = 0; i < part->events.count; i++)
		for (unsigned cpu = 0; cpu < cpus_of(stage); cpu++)
			if (part->sources[i].handles[cpu] >= 0 &&
			    stage->provider->ops->read(stage->provider,
						       part->sources[i].handles[cpu], &words,
						       sizeof(words)) == sizeof(words))
				part->lost += words.lost;
}

/* ---- closing ------------------------------------------------------------- */

static void close_source(struct simulation_stage *stage, struct simulation_source *source)
{
	for (unsigned cpu = 0; source->handles && cpu < cpus_of(stage); cpu++)
		if (source->handles[cpu] >= 0)
			stage->provider->ops->close(stage->provider, source->handles[cpu]);
	source->handles = NULL;
}

static void close_rings(struct simulation_stage *stage, struct tally_ring *rings)
{
	for (unsigned cpu = 0; rings && cpu < cpus_of(stage); cpu++)
		tally_ring_close(&rings[cpu]);
}

void simulation_close_samples(struct simulation_stage *stage, struct simulation_part *part)
{
	close_rings(stage, part->rings);
	for (size_t i = 0; part->sources && i < part->events.count; i++)
		close_source(stage, &part->sources[i]);
}

void simulation_close_side_band(struct simulation_stage *stage,
				struct simulation_recording *recording)
{
	close_rings(stage, recording->side_rings);
	close_source(stage, &recording->side_band);
}
