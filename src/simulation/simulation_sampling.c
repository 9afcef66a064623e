/* Samples for a line of a scenario: one ring on each CPU, as inherited events need. */
#include "simulation/simulation_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIDE_BAND_PAGES = 256 };

static unsigned cpus_of(const struct simulation *simulation)
{
	return simulation->scenario->machine.cpus;
}

static void set_clock(struct tally_attr *attr)
{
	attr->flags |= TALLY_ATTR_USE_CLOCKID | TALLY_ATTR_SAMPLE_ID_ALL;
	attr->clockid = CLOCK_MONOTONIC;
	attr->size = sizeof(*attr);
}

static void make_attr(const struct simulation_part *part, struct simulation_source *source)
{
	const struct scenario_part *line = part->part;
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
		attr->flags |= line->is_frequency ? TALLY_ATTR_FREQ : 0;
	}
	if (line->is_inherited && line->program >= 0)
		attr->flags |= TALLY_ATTR_INHERIT;
	attr->flags |= TALLY_ATTR_DISABLED;
	tally_attr_honour_period(attr);
	set_clock(attr);
	source->written = *attr;
	attr->read_format |= TALLY_FORMAT_LOST;
}

static int open_on(struct simulation *simulation, struct simulation_source *source, pid_t pid,
		   unsigned cpu)
{
	struct tally_provider *provider = simulation->provider;
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
static int give_ring(struct simulation *simulation, struct tally_ring *ring, int handle,
		     unsigned cpu, unsigned pages)
{
	struct tally_provider *provider = simulation->provider;
	if (ring->page)
		return provider->ops->ioctl(provider, handle, TALLY_IOCTL_SET_OUTPUT,
					    (void *)(uintptr_t)ring->handle, 0);
	return tally_ring_open(ring, provider, handle, (int)cpu, pages);
}

static int make_source(struct simulation *simulation, struct simulation_source *source)
{
	source->handles = tally_arena_array(&simulation->arena, cpus_of(simulation),
					    sizeof(*source->handles));
	source->ids = tally_arena_array(&simulation->arena, cpus_of(simulation),
					sizeof(*source->ids));
	if (!source->handles || !source->ids)
		return simulation_out_of_memory(simulation);
	for (unsigned cpu = 0; cpu < cpus_of(simulation); cpu++)
		source->handles[cpu] = -1;
	return 0;
}

static bool wants_cpu(const struct simulation *simulation, const struct simulation_part *part,
		      unsigned cpu)
{
	return sim_cpu_online(simulation->machine, cpu) &&
	       (part->part->cpu < 0 || part->part->cpu == (int)cpu);
}

/* Opens an event on all CPUs.  The PMU of one core type is not on every CPU, so one CPU is
 * enough. */
static int open_source(struct simulation *simulation, struct simulation_part *part,
		       struct simulation_source *source)
{
	const struct scenario_instance *task = part->part->program >= 0
						       ? scenario_play_find(&simulation->play,
									    part->part->program)
						       : NULL;
	int refused = -ENODEV;
	for (unsigned cpu = 0; cpu < cpus_of(simulation); cpu++) {
		if (!wants_cpu(simulation, part, cpu))
			continue;
		int code = open_on(simulation, source, task ? task->tid : -1, cpu);
		if (!code)
			code = give_ring(simulation, &part->rings[cpu], source->handles[cpu], cpu,
					 part->part->pages);
		if (code < 0 && source->handles[cpu] >= 0)
			return tally_error_set(simulation->err, code,
					       "%.100s: line %u: no ring of %u pages for %s: %s",
					       simulation->options->scenario_name,
					       part->part->place.line, part->part->pages,
					       source->event->name, tally_errno_text(code));
		if (code < 0)
			refused = code;
	}
	if (!source->id_count)
		return tally_error_set(simulation->err, refused,
				       "%.100s: line %u: '%s' can't be sampled on this machine: %s",
				       simulation->options->scenario_name,
				       part->part->events_place.line, source->event->name,
				       tally_errno_text(refused));
	return 0;
}

static void enable(struct simulation *simulation, const struct simulation_source *source)
{
	for (unsigned cpu = 0; cpu < cpus_of(simulation); cpu++)
		if (source->handles[cpu] >= 0)
			simulation->provider->ops->ioctl(simulation->provider, source->handles[cpu],
							 TALLY_IOCTL_ENABLE, NULL, 0);
}

static void set_next_read(struct simulation *simulation, struct simulation_part *part)
{
	uint64_t every = part->part->read_every_ns;
	part->next_read_ns = every == UINT64_MAX ? UINT64_MAX
						 : sim_now(simulation->machine) + every;
}

int simulation_open_samples(struct simulation *simulation, struct simulation_part *part)
{
	size_t count = part->events.count;
	part->sources = tally_arena_array(&simulation->arena, count, sizeof(*part->sources));
	struct tally_ring *rings = tally_arena_array(&simulation->arena, cpus_of(simulation),
						     sizeof(*rings));
	if (!part->sources || !rings)
		return simulation_out_of_memory(simulation);
	int code = 0;
	for (size_t i = 0; !code && i < count; i++) /* closing looks at all of them */
		code = make_source(simulation, &part->sources[i]);
	if (!code)
		part->rings = rings;
	for (size_t i = 0; !code && i < count; i++) {
		part->sources[i].event = &part->events.items[i];
		make_attr(part, &part->sources[i]);
		code = open_source(simulation, part, &part->sources[i]);
	}
	for (size_t i = 0; !code && i < count; i++)
		enable(simulation, &part->sources[i]);
	set_next_read(simulation, part);
	return code;
}

int simulation_open_side_band(struct simulation *simulation)
{
	struct simulation_source *source = &simulation->side_band;
	if (!simulation->writer && simulation->fd < 0)
		return 0;
	int code = make_source(simulation, source);
	simulation->side_rings = tally_arena_array(&simulation->arena, cpus_of(simulation),
						   sizeof(*simulation->side_rings));
	if (!simulation->side_rings)
		return simulation_out_of_memory(simulation);
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
	for (unsigned cpu = 0; !code && cpu < cpus_of(simulation); cpu++) {
		code = open_on(simulation, source, -1, cpu);
		if (!code)
			code = tally_ring_open(&simulation->side_rings[cpu], simulation->provider,
					       source->handles[cpu], (int)cpu, SIDE_BAND_PAGES);
	}
	return code < 0 ? tally_error_set(simulation->err, code,
					  "the recording's side-band events don't open: %s",
					  tally_errno_text(code))
			: 0;
}

/* --- reading -------------------------------------------------------------- */

static void see_record(struct simulation *simulation, struct simulation_part *part,
		       const void *bytes, size_t size)
{
	struct tally_record record;
	if (tally_record_decode(&part->sources[0].written, bytes, size, &record) < 0)
		return;
	if (record.header.type == TALLY_RECORD_LOST) {
		part->lost_told += record.lost.lost;
		simulation_tell(
			simulation,
			"the ring of %s on cpu %u was full: a record says that %llu were lost, %llu so far",
			part->target_text, record.sample_id.cpu,
			(unsigned long long)record.lost.lost, (unsigned long long)part->lost_told);
	} else if (record.header.type == TALLY_RECORD_THROTTLE) {
		part->throttled++;
		simulation_tell(simulation,
				"sampling of %s was throttled: too many interrupts in a tick",
				part->target_text);
	}
}

/* Every sample begins with IDENTIFIER, IP, TID, TIME: words 1 to 4 behind the header. */
static void see_sample(struct simulation *simulation, struct simulation_part *part,
		       const void *bytes)
{
	uint64_t time;
	memcpy(&time, (const uint8_t *)bytes + 32, sizeof(time));
	if (!simulation->first_sample_ns || time < simulation->first_sample_ns)
		simulation->first_sample_ns = time;
	if (time > simulation->last_sample_ns)
		simulation->last_sample_ns = time;
	part->samples++;
}

static int drain_ring(struct simulation *simulation, struct simulation_part *part,
		      struct tally_ring *ring)
{
	const void *bytes;
	size_t size;
	int code = 0;
	tally_ring_note(ring);
	while (!code && (bytes = tally_ring_next(ring, &size))) {
		struct tally_record_header header;
		memcpy(&header, bytes, sizeof(header));
		if (part && header.type == TALLY_RECORD_SAMPLE)
			see_sample(simulation, part, bytes);
		else if (part)
			see_record(simulation, part, bytes, size);
		code = simulation_recording_write(simulation, bytes, size);
	}
	tally_ring_release_read(ring);
	return code;
}

int simulation_drain(struct simulation *simulation, struct simulation_part *part)
{
	int code = 0;
	for (unsigned cpu = 0; !code && cpu < cpus_of(simulation); cpu++)
		if (part->rings[cpu].page)
			code = drain_ring(simulation, part, &part->rings[cpu]);
	set_next_read(simulation, part);
	return code;
}

int simulation_drain_side_band(struct simulation *simulation)
{
	int code = 0;
	for (unsigned cpu = 0; simulation->side_rings && !code && cpu < cpus_of(simulation); cpu++)
		if (simulation->side_rings[cpu].page)
			code = drain_ring(simulation, NULL, &simulation->side_rings[cpu]);
	return code;
}

void simulation_read_lost(struct simulation *simulation, struct simulation_part *part)
{
	struct { uint64_t value, id, lost; } words;
	for (size_t i = 0; i < part->events.count; i++)
		for (unsigned cpu = 0; cpu < cpus_of(simulation); cpu++)
			if (part->sources[i].handles[cpu] >= 0 &&
			    simulation->provider->ops->read(simulation->provider,
							    part->sources[i].handles[cpu], &words,
							    sizeof(words)) == sizeof(words))
				part->lost += words.lost;
}

/* --- closing -------------------------------------------------------------- */

static void close_source(struct simulation *simulation, struct simulation_source *source)
{
	for (unsigned cpu = 0; source->handles && cpu < cpus_of(simulation); cpu++)
		if (source->handles[cpu] >= 0)
			simulation->provider->ops->close(simulation->provider,
							 source->handles[cpu]);
	source->handles = NULL;
}

static void close_rings(struct simulation *simulation, struct tally_ring *rings)
{
	for (unsigned cpu = 0; rings && cpu < cpus_of(simulation); cpu++)
		tally_ring_close(&rings[cpu]);
}

void simulation_close_samples(struct simulation *simulation, struct simulation_part *part)
{
	close_rings(simulation, part->rings);
	for (size_t i = 0; part->sources && i < part->events.count; i++)
		close_source(simulation, &part->sources[i]);
}

void simulation_close_side_band(struct simulation *simulation)
{
	close_rings(simulation, simulation->side_rings);
	close_source(simulation, &simulation->side_band);
}
