/* CPUs that go offline and come online while the whole machine is recorded.
 *
 * When a CPU goes offline, its events end for good.  When it comes back, it needs new events, whose
 * ids are written at the file's end (perfdata_writer.c).  The old events' records in the ring
 * are read before.
 */
#include "recorder/recorder_state.h"

#include "machine/machine.h"

struct cpus {
	struct tally_recorder_events *events;
	struct tally_recorder_rings *rings;
};

/* Opens a CPU's events again.  Its ring is empty: the pass before has read the rest. */
static int open_again(const struct cpus *cpus, size_t ring, struct tally_error *err)
{
	tally_recorder_close_cpu(cpus->events, cpus->rings, ring);
	size_t first = cpus->events->handles.count;
	int result = tally_recorder_open_cpu(cpus->events, cpus->rings, ring, err);
	tally_recorder_describe_sources(cpus->events); /* their ids have moved */
	if (!result && cpus->events->is_enabled)
		result = tally_recorder_enable_from(cpus->events, first, true, err);
	if (result < 0)
		tally_recorder_close_cpu(cpus->events, cpus->rings, ring);
	return result;
}

static void come_online(const struct cpus *cpus, size_t ring)
{
	struct tally_recorder_cpu *cpu = &cpus->rings->cpus[ring];
	struct tally_error err = TALLY_ERROR_NONE;
	const char *why = NULL;
	if (cpus->rings->session->is_pipe)
		why = "events can't be added to a recording in a pipe";
	else if (cpus->rings->session->options.overwrite)
		why = "a flight recorder's rings are fixed";
	else if (open_again(cpus, ring, &err) < 0)
		why = err.message;
	if (why) {
		cpu->state = TALLY_RECORDER_CPU_GIVEN_UP;
		tally_recorder_say(cpus->rings->session,
				   "CPU %u came online but is not recorded: %s", cpu->number, why);
	} else {
		cpu->state = TALLY_RECORDER_CPU_ONLINE;
		tally_recorder_say(cpus->rings->session,
				   "CPU %u came online: it is sampled from now on", cpu->number);
	}
}

/* Adds a ring for a CPU that had none. */
static void add_cpu(const struct cpus *cpus, unsigned cpu)
{
	for (size_t i = 0; i < cpus->rings->count; i++)
		if (cpus->rings->cpus[i].number == cpu)
			return;
	if (cpus->rings->session->target->has_cpu_list ||
	    cpus->rings->count == cpus->rings->capacity)
		return;
	cpus->rings->cpus[cpus->rings->count] = (struct tally_recorder_cpu){
		cpu, TALLY_RECORDER_CPU_OFFLINE
	};
	cpus->rings->count++;
}

static bool set_online(const struct cpus *cpus, const struct tally_cpu_list *online)
{
	bool has_changed = false;
	for (size_t i = 0; i < online->count; i++)
		add_cpu(cpus, online->cpus[i]);
	for (size_t i = 0; i < cpus->rings->count; i++) {
		struct tally_recorder_cpu *cpu = &cpus->rings->cpus[i];
		bool is_online = tally_cpu_list_contains(online, cpu->number);
		if (cpu->state == TALLY_RECORDER_CPU_ONLINE && !is_online) {
			cpu->state = TALLY_RECORDER_CPU_OFFLINE;
			tally_recorder_say(
				cpus->rings->session,
				"CPU %u went offline: nothing is sampled there until it is back",
				cpu->number);
			has_changed = true;
		} else if (cpu->state == TALLY_RECORDER_CPU_OFFLINE && is_online) {
			come_online(cpus, i);
			has_changed = true;
		}
	}
	return has_changed;
}

bool tally_recorder_check_online(struct tally_recorder_events *events,
				 struct tally_recorder_rings *rings, bool have_changed)
{
	enum { LOOK_NS = 1000000000 }; /* interval of looks without notifications: see machine.h */
	const struct cpus cpus = { events, rings };
	uint64_t now = tally_recorder_now_ns();
	struct tally_cpu_list online;
	if (!tally_recorder_follows_cpus(rings->session) ||
	    (!have_changed && now < rings->online_at))
		return false;
	rings->online_at = now + LOOK_NS;
	if (tally_cpu_list_read(TALLY_CPU_ONLINE, &online, NULL) < 0)
		return false;
	bool has_changed = set_online(&cpus, &online);
	tally_cpu_list_release(&online);
	return has_changed;
}
