/* CPUs that go offline and come online while the whole machine is recorded.
 *
 * When a CPU goes offline, its events end for good.  When it comes back, it needs new events, whose
 * ids are written at the file's end (perfdata_writer.c).  The old events' records in the ring
 * are read before.
 */
#include "recorder/recorder_state.h"

#include "base/vector.h"
#include "machine/cpu.h"

#include <errno.h>

bool tally_recorder_follows_cpus(const struct tally_recorder *recorder)
{
	return recorder->session.target->all && recorder->session.provider == tally_provider_kernel();
}

static void drop_handles(struct tally_recorder *recorder, size_t ring)
{
	size_t kept = 0;
	for (size_t i = 0; i < recorder->events.handles.count; i++) {
		const struct tally_recorder_handle *opened = &recorder->events.handles.items[i];
		if (opened->ring != ring) {
			recorder->events.handles.items[kept++] = *opened;
			continue;
		}
		recorder->events.lost_closed += tally_recorder_lost_by(recorder, opened);
		recorder->session.provider->ops->close(recorder->session.provider, opened->handle);
	}
	recorder->events.handles.count = kept;
	kept = 0;
	for (size_t i = 0; i < recorder->events.side_handles.count; i++) {
		const struct tally_recorder_handle *opened = &recorder->events.side_handles.items[i];
		if (opened->ring != ring)
			recorder->events.side_handles.items[kept++] = *opened;
		else
			recorder->session.provider->ops->close(recorder->session.provider, opened->handle);
	}
	recorder->events.side_handles.count = kept;
}

static void close_cpu(struct tally_recorder *recorder, size_t ring)
{
	tally_ring_close(&recorder->rings.samples[ring]);
	tally_ring_close(&recorder->rings.sides[ring]);
	drop_handles(recorder, ring);
}

/* Opens a CPU's events again.  Its ring is empty: the pass before has read the rest. */
static int open_again(struct tally_recorder *recorder, size_t ring, struct tally_error *err)
{
	close_cpu(recorder, ring);
	size_t first = recorder->events.handles.count;
	int result = tally_recorder_open_cpu(recorder, ring, err);
	tally_recorder_describe_sources(recorder); /* their ids have moved */
	if (!result && recorder->events.is_enabled)
		result = tally_recorder_enable_from(recorder, first, true, err);
	if (result < 0)
		close_cpu(recorder, ring);
	return result;
}

static void come_online(struct tally_recorder *recorder, size_t ring)
{
	struct tally_recorder_cpu *cpu = &recorder->rings.cpus[ring];
	struct tally_error err = TALLY_ERROR_NONE;
	const char *why = NULL;
	if (recorder->output.is_pipe)
		why = "events can't be added to a recording in a pipe";
	else if (recorder->session.options.overwrite)
		why = "a flight recorder's rings are fixed";
	else if (open_again(recorder, ring, &err) < 0)
		why = err.message;
	cpu->state = why ? TALLY_RECORDER_CPU_GIVEN_UP : TALLY_RECORDER_CPU_ONLINE;
	if (why)
		tally_recorder_say(recorder, "CPU %u came online but is not recorded: %s",
				   cpu->number, why);
	else
		tally_recorder_say(recorder, "CPU %u came online: it is sampled from now on",
				   cpu->number);
}

/* Adds a ring for a CPU that had none. */
static void add_cpu(struct tally_recorder *recorder, unsigned cpu)
{
	for (size_t i = 0; i < recorder->rings.count; i++)
		if (recorder->rings.cpus[i].number == cpu)
			return;
	if (recorder->session.target->has_cpu_list || recorder->rings.count == recorder->rings.capacity)
		return;
	recorder->rings.cpus[recorder->rings.count] = (struct tally_recorder_cpu){
		cpu, TALLY_RECORDER_CPU_OFFLINE
	};
	recorder->rings.count++;
}

static bool set_online(struct tally_recorder *recorder, const struct tally_cpu_list *online)
{
	bool has_changed = false;
	for (size_t i = 0; i < online->count; i++)
		add_cpu(recorder, online->cpus[i]);
	for (size_t i = 0; i < recorder->rings.count; i++) {
		struct tally_recorder_cpu *cpu = &recorder->rings.cpus[i];
		bool is_online = tally_cpu_list_contains(online, cpu->number);
		if (cpu->state == TALLY_RECORDER_CPU_ONLINE && !is_online) {
			cpu->state = TALLY_RECORDER_CPU_OFFLINE;
			tally_recorder_say(
				recorder,
				"CPU %u went offline: nothing is sampled there until it is back",
				cpu->number);
			has_changed = true;
		} else if (cpu->state == TALLY_RECORDER_CPU_OFFLINE && is_online) {
			come_online(recorder, i);
			has_changed = true;
		}
	}
	return has_changed;
}

bool tally_recorder_check_online(struct tally_recorder *recorder, int hotplug_fd)
{
	enum { LOOK_NS = 1000000000 }; /* interval of looks without notifications: see cpu.h */
	uint64_t now = tally_recorder_now_ns();
	struct tally_cpu_list online;
	bool is_told = hotplug_fd >= 0 && tally_hotplug_has_news(hotplug_fd);
	if (!tally_recorder_follows_cpus(recorder) || (!is_told && now < recorder->rings.online_at))
		return false;
	recorder->rings.online_at = now + LOOK_NS;
	if (tally_cpu_list_read(TALLY_CPU_ONLINE, &online, NULL) < 0)
		return false;
	bool has_changed = set_online(recorder, &online);
	tally_cpu_list_release(&online);
	return has_changed;
}
