/* The provider's operations: events like those of perf_event_open(2), over a plan that processes
 * read when they begin.
 *
 * No call here reaches a process.  Events opened before the command starts are in the plan, and
 * each process opens them in an engine of its own when it begins under the tool.  From then on only
 * their being enabled changes in the plan, and processes follow that.  So once the command runs,
 * requests that can't be met later are refused, though the kernel would meet them at once: new
 * events, other periods.  Processes add their counts to the plan's totals: while they run at each
 * tick of simulated time (VSIM_TICK_NS) and before system calls, and the rest when they end. */
#include "provider/provider_internal.h"

#include "base/extremes.h"
#include "base/text.h"
#include "event/event.h"
#include "provider/provider.h"
#include "valgrind/vsim_names.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The fields that the engine can write into a sample of a simulated CPU. */
static const uint64_t SAMPLED = TALLY_SAMPLE_IP | TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME |
				TALLY_SAMPLE_ADDR | TALLY_SAMPLE_READ | TALLY_SAMPLE_CALLCHAIN |
				TALLY_SAMPLE_ID | TALLY_SAMPLE_CPU | TALLY_SAMPLE_PERIOD |
				TALLY_SAMPLE_STREAM_ID | TALLY_SAMPLE_IDENTIFIER |
				TALLY_SAMPLE_REGS_USER | TALLY_SAMPLE_STACK_USER;

/* The kernel's default limit.  More would lose no samples, but fill the disk. */
enum { SIMULATED_MAX_HZ = 100000 };

struct simulated_event *simulated_event_of(struct simulated *simulated, int handle)
{
	if (handle < 0 || handle >= VSIM_EVENTS || !simulated->events[handle].is_open)
		return NULL;
	return &simulated->events[handle];
}

/* ---- open and close ------------------------------------------------------ */

/* Returns the attribute that processes open: the PMU's own event, without modifiers that mean
 * nothing there. */
static struct tally_attr attr_for_plan(const struct tally_attr *asked)
{
	struct tally_attr attr = { 0 };
	uint64_t config;
	size_t size = sizeof(attr);
	if (asked->size)
		size = tally_min_u64(asked->size, size);
	memcpy(&attr, asked, size);
	attr.size = sizeof(attr);
	if (attr.type != VSIM_PMU_TYPE && !vsim_generic_config(attr.type, attr.config, &config)) {
		attr.type = VSIM_PMU_TYPE;
		attr.config = config;
	}
	/* An address is always exactly the instruction's, so a request for precision is met. */
	attr.flags &= ~(TALLY_ATTR_PRECISE_IP | TALLY_ATTR_EXCLUDE_GUEST | TALLY_ATTR_EXCLUDE_HOST);
	return attr;
}

/* Returns the reason why this CPU can't have the event, or NULL. */
static const char *lacks(const struct simulated *simulated, const struct tally_attr *asked)
{
	struct tally_attr attr = attr_for_plan(asked);
	if (attr.type != VSIM_PMU_TYPE)
		return NULL;
	return simulated_geometry_lacks(&simulated->geometry, attr.config);
}

/* Returns how many counters the PMU has according to this event. */
static unsigned counters_of(const struct tally_attr *attr)
{
	if (attr->type == VSIM_PMU_TYPE && attr->config1 & VSIM_COUNTERS_MASK)
		return attr->config1 & VSIM_COUNTERS_MASK;
	return 2 * VSIM_EVENTS;
}

/* True if the group has room for this event, with the smallest number of counters that any event so
 * far gives the PMU. The tool would refuse it as well, but in a process that can't report it. */
static bool group_fits(const struct simulated *simulated, const struct tally_attr *asked, int group)
{
	struct tally_attr attr = attr_for_plan(asked);
	unsigned needed = 1, counters = counters_of(&attr);
	for (int i = 0; i < VSIM_EVENTS; i++) {
		const struct simulated_event *event = &simulated->events[i];
		if (!event->is_open || event->attr.type != VSIM_PMU_TYPE)
			continue;
		unsigned own = counters_of(&event->attr);
		if (own < counters)
			counters = own;
		needed += group >= 0 && event->leader == group;
	}
	return attr.type != VSIM_PMU_TYPE || needed <= counters;
}

static int check(struct simulated *simulated, const struct tally_attr *attr, pid_t pid, int cpu,
		 int group)
{
	const struct simulated_event *leader = simulated_event_of(simulated, group);
	if (!simulated->plan.shared || pid <= 0 || simulated_plan_has_begun(simulated))
		return -EOPNOTSUPP;
	if (cpu < -1 || cpu > 0)
		return -ENODEV;
	if (tally_simulated_refuses(attr, NULL) || lacks(simulated, attr))
		return -ENOENT;
	if (attr->sample_type & ~SAMPLED)
		return -EOPNOTSUPP;
	/* Records are distributed by their ids, so they must have ids, at a fixed place. */
	if (attr->sample_period && (!(attr->sample_type & TALLY_SAMPLE_IDENTIFIER) ||
				    !(attr->flags & TALLY_ATTR_SAMPLE_ID_ALL)))
		return -EINVAL;
	if (group >= 0 && !leader)
		return -EBADF;
	if (group >= 0 && leader->leader != group)
		return -EINVAL;
	if (!group_fits(simulated, attr, group))
		return -ENOSPC;
	return 0;
}

/* Returns the handle behind all open ones: the plan is in the order of opening. */
static int free_handle(const struct simulated *simulated)
{
	int handle = VSIM_EVENTS;
	while (handle > 0 && !simulated->events[handle - 1].is_open)
		handle--;
	if (handle == VSIM_EVENTS)
		return -EMFILE;
	return handle;
}

static int simulated_open(struct tally_provider *provider, const struct tally_attr *attr, pid_t pid,
			  int cpu, int group, unsigned long flags)
{
	struct simulated *simulated = simulated_of(provider);
	(void)flags;
	int code = check(simulated, attr, pid, cpu, group);
	if (code < 0)
		return code;
	int handle = free_handle(simulated);
	if (handle < 0)
		return handle;
	simulated->events[handle] = (struct simulated_event){
		.is_open = true, .attr = attr_for_plan(attr), .read_format = attr->read_format,
		.leader = group < 0 ? handle : group, .output = handle,
		.is_enabled = !(attr->flags & TALLY_ATTR_DISABLED),
		.waits_for_exec = attr->flags & TALLY_ATTR_ENABLE_ON_EXEC,
	};
	simulated_plan_publish(simulated);
	return handle;
}

static void set_enabled(struct simulated *simulated, int handle, bool is_enabled)
{
	struct vsim_event *planned = simulated_planned(simulated, handle);
	simulated->events[handle].is_enabled = is_enabled;
	if (planned)
		__atomic_store_n(&planned->enabled, is_enabled, __ATOMIC_SEQ_CST);
}

static void simulated_close(struct tally_provider *provider, int handle)
{
	struct simulated *simulated = simulated_of(provider);
	struct simulated_event *event = simulated_event_of(simulated, handle);
	if (!event)
		return;
	if (event->page)
		simulated_unmap(provider, event->page, event->data_pages);
	set_enabled(simulated, handle, false);
	for (int i = 0; i < VSIM_EVENTS; i++) {
		if (simulated->events[i].leader == handle)
			simulated->events[i].leader = i;
		if (simulated->events[i].output == handle)
			simulated->events[i].output = i;
	}
	*event = (struct simulated_event){ 0 };
	simulated_plan_publish(simulated);
}

/* ---- reading ------------------------------------------------------------- */

static struct vsim_total total_of(const struct simulated *simulated, int handle)
{
	const struct vsim_event *planned = simulated_planned(simulated, handle);
	struct vsim_total total = { 0 };
	if (!planned)
		return total;
	total.value = __atomic_load_n(&planned->total.value, __ATOMIC_SEQ_CST) -
		      simulated->events[handle].value_before;
	total.enabled_ns = __atomic_load_n(&planned->total.enabled_ns, __ATOMIC_SEQ_CST);
	total.running_ns = __atomic_load_n(&planned->total.running_ns, __ATOMIC_SEQ_CST);
	total.lost = __atomic_load_n(&planned->total.lost, __ATOMIC_SEQ_CST);
	return total;
}

static size_t put_member(const struct simulated *simulated, int handle, uint64_t format,
			 uint64_t *words)
{
	struct vsim_total total = total_of(simulated, handle);
	size_t count = 0;
	words[count++] = total.value;
	if (format & TALLY_FORMAT_ID)
		words[count++] = simulated_id(handle);
	if (format & TALLY_FORMAT_LOST)
		words[count++] = total.lost;
	return count;
}

/* Writes what perf_event_open(2) describes in "Reading results". */
static ssize_t simulated_read(struct tally_provider *provider, int handle, void *bytes, size_t size)
{
	struct simulated *simulated = simulated_of(provider);
	const struct simulated_event *event = simulated_event_of(simulated, handle);
	uint64_t words[3 + 3 * VSIM_EVENTS];
	if (!event)
		return -EBADF;
	uint64_t format = event->read_format;
	bool is_group = format & TALLY_FORMAT_GROUP;
	size_t count = is_group;
	struct vsim_total total = total_of(simulated, handle);
	if (!is_group)
		words[count++] = total.value;
	if (format & TALLY_FORMAT_TOTAL_TIME_ENABLED)
		words[count++] = total.enabled_ns;
	if (format & TALLY_FORMAT_TOTAL_TIME_RUNNING)
		words[count++] = total.running_ns;
	if (!is_group && format & TALLY_FORMAT_ID)
		words[count++] = simulated_id(handle);
	if (!is_group && format & TALLY_FORMAT_LOST)
		words[count++] = total.lost;
	uint64_t members = 0;
	/* the leader comes first: it was opened first */
	for (int i = 0; is_group && i < VSIM_EVENTS; i++)
		if (simulated->events[i].is_open && simulated->events[i].leader == event->leader) {
			count += put_member(simulated, i, format, words + count);
			members++;
		}
	if (is_group)
		words[0] = members;
	if (size < count * sizeof(*words))
		return -ENOSPC;
	memcpy(bytes, words, count * sizeof(*words));
	return (ssize_t)(count * sizeof(*words));
}

/* ---- control ------------------------------------------------------------- */

static int set_period(struct simulated *simulated, struct simulated_event *event,
		      const uint64_t *period)
{
	if (!event->attr.sample_period || !*period || *period >> 63)
		return -EINVAL;
	if (simulated_plan_has_begun(simulated))
		return -EOPNOTSUPP;
	event->attr.sample_period = *period;
	simulated_plan_publish(simulated);
	return 0;
}

static int set_output(struct simulated *simulated, int handle, int output)
{
	struct simulated_event *event = &simulated->events[handle],
			       *to = simulated_event_of(simulated, output);
	if (output >= 0 && !to)
		return -EBADF;
	if (event->page || (to && to->output != output) || simulated_plan_has_begun(simulated))
		return -EINVAL;
	event->output = handle;
	if (to)
		event->output = output;
	simulated_plan_publish(simulated);
	return 0;
}

static int control_one(struct simulated *simulated, int handle, enum tally_ioctl request)
{
	switch (request) {
	case TALLY_IOCTL_ENABLE:
	case TALLY_IOCTL_DISABLE:
		set_enabled(simulated, handle, request == TALLY_IOCTL_ENABLE);
		return 0;
	case TALLY_IOCTL_RESET:
		simulated->events[handle].value_before += total_of(simulated, handle).value;
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

static int simulated_ioctl(struct tally_provider *provider, int handle, enum tally_ioctl request,
			   void *argument, int whole_group)
{
	struct simulated *simulated = simulated_of(provider);
	struct simulated_event *event = simulated_event_of(simulated, handle);
	int result = 0;
	if (!event)
		return -EBADF;
	if (request == TALLY_IOCTL_ID) {
		*(uint64_t *)argument = simulated_id(handle);
		return 0;
	}
	if (request == TALLY_IOCTL_PERIOD)
		return set_period(simulated, event, argument);
	if (request == TALLY_IOCTL_SET_OUTPUT)
		return set_output(simulated, handle, (int)(intptr_t)argument);
	if (request == TALLY_IOCTL_SET_FILTER)
		return -EINVAL; /* as for any event other than a tracepoint */
	for (int i = 0; i < VSIM_EVENTS && !result; i++) {
		const struct simulated_event *one = &simulated->events[i];
		if (i == handle || (whole_group && one->is_open && one->leader == event->leader))
			result = control_one(simulated, i, request);
	}
	return result;
}

/* ---- texts for the user ------------------------------------------------- */

static const char *simulated_reason(struct tally_provider *provider, const struct tally_attr *attr,
				    int code, const char **hint)
{
	const char *reason = tally_simulated_refuses(attr, hint);
	if (reason)
		return reason;
	if (hint)
		*hint = NULL;
	reason = lacks(simulated_of(provider), attr);
	if (reason) {
		if (hint)
			*hint = "choose a CPU that has it with --sim-cpu";
		return reason;
	}
	switch (code) {
	case -EMFILE:
		return "at most 64 events are simulated at once";
	case -ENOSPC:
		if (hint)
			*hint = "count its events separately, or set counters= to the size of the "
				"largest group";
		return "its group has more events than the PMU has counters (counters=)";
	case -EOPNOTSUPP:
		if (attr->sample_type & ~SAMPLED)
			return "the simulated CPU has no such data for samples";
		return "only a command that tally starts is simulated";
	default:
		return tally_errno_text(code);
	}
}

static const char *simulated_quality(struct tally_provider *provider, const struct tally_attr *attr)
{
	struct tally_attr own = attr_for_plan(attr);
	(void)provider;
	if (own.type != VSIM_PMU_TYPE)
		return NULL;
	return vsim_quality_name(vsim_config_quality(own.config));
}

static const char *simulated_machine(struct tally_provider *provider, bool is_short)
{
	const struct simulated *simulated = simulated_of(provider);
	if (is_short)
		return simulated->caches;
	return simulated->machine;
}

static const char *simulated_uncounted(struct tally_provider *provider)
{
	const struct simulated *simulated = simulated_of(provider);
	const struct vsim_plan *shared = simulated->plan.shared;
	if (!simulated_plan_has_begun(simulated) || !shared->region_only ||
	    __atomic_load_n(&shared->regions, __ATOMIC_SEQ_CST))
		return NULL;
	if (simulated->options.function_count)
		return "no function of that name ran";
	return "the program never called tally_roi_begin()";
}

/* Lists the regions that were counted, and the named functions that never ran. */
static void region_notes(const struct simulated *simulated, struct tally_arena *arena,
			 const char **counted, const char **absent)
{
	const struct tally_simulated_options *options = &simulated->options;
	uint32_t regions = __atomic_load_n(&simulated->plan.shared->regions, __ATOMIC_SEQ_CST);
	static const char markers[] = "between the program's markers (tally/roi.h)";
	const char *ran = NULL, *not = NULL;
	for (unsigned i = 0; i < options->function_count; i++) {
		const char **list = regions >> i & 1 ? &ran : &not, *name = options->functions[i];
		if (*list)
			*list = tally_arena_printf(arena, "%s, '%s'", *list, name);
		else
			*list = tally_arena_printf(arena, "'%s'", name);
	}
	if (regions & VSIM_REGION_MARKED && ran)
		ran = tally_arena_printf(arena, "%s, and %s", ran, markers);
	else if (regions & VSIM_REGION_MARKED)
		ran = markers;
	if (ran)
		*counted = tally_arena_printf(arena, "counted only in regions: %s", ran);
	if (not)
		*absent = tally_arena_printf(
			arena,
			"no function %s ran: use the symbol's name, as 'tally report' shows it; "
			"inlined functions have none",
			not );
	else if (!regions)
		*absent = "the program never called tally_roi_begin() (tally/roi.h)";
}

static const char *unsimulated_note(const struct vsim_plan *shared, struct tally_arena *arena)
{
	uint32_t count = __atomic_load_n(&shared->unsimulated, __ATOMIC_SEQ_CST);
	if (!count)
		return NULL;
	return tally_arena_printf(
		arena,
		"%u program%s ran unsimulated and uncounted: set-user-ID, 32-bit and AVX-512-only "
		"programs can't be simulated, nor programs run as a user who can't open tally's "
		"files (setpriv, runuser)",
		count, tally_plural(count));
}

static size_t simulated_notes(struct tally_provider *provider, int signal,
			      struct tally_arena *arena, const char **notes, size_t maximum)
{
	struct simulated *simulated = simulated_of(provider);
	const struct vsim_plan *shared = simulated->plan.shared;
	bool has_begun = simulated_plan_has_begun(simulated);
	enum { COUNTED, ABSENT, STARTLESS, ILLEGAL, UNSIMULATED, DAMAGED, LINES };
	const char *lines[LINES] = { NULL };
	if (has_begun && shared->region_only)
		region_notes(simulated, arena, &lines[COUNTED], &lines[ABSENT]);
	if (shared && !has_begun)
		lines[STARTLESS] =
			"the simulated PMU did not start: unless a message above explains it, the "
			"program's file is damaged, or the memory limit (ulimit -v) is too low";
	if (signal == SIGILL)
		lines[ILLEGAL] =
			"SIGILL: the simulated CPU has no AVX-512 and can't run code that "
			"requires it";
	if (shared)
		lines[UNSIMULATED] = unsimulated_note(shared, arena);
	if (simulated->damaged)
		lines[DAMAGED] = "the program overwrote a ring: some records are lost";
	size_t count = 0;
	for (size_t i = 0; i < LINES && count < maximum; i++)
		if (lines[i])
			notes[count++] = lines[i];
	return count;
}

static int simulated_catalogue(struct tally_provider *provider, struct tally_catalogue *catalogue,
			       struct tally_error *err)
{
	(void)provider;
	return tally_simulated_catalogue(catalogue, err);
}

/* ---- life ---------------------------------------------------------------- */

static void simulated_release(struct tally_provider *provider)
{
	struct simulated *simulated = simulated_of(provider);
	for (int i = 0; i < VSIM_EVENTS; i++)
		simulated_close(provider, i);
	simulated_plan_discard(simulated);
	free(simulated->argv);
	free(simulated->words);
	free(simulated);
}

static int simulated_make(const struct tally_provider_choice *choice, struct tally_provider **out,
			  struct tally_error *err)
{
	return tally_provider_simulated_new(choice->simulated, out, err);
}

const struct tally_provider_ops tally_provider_simulated_ops = {
	.name = "simulated",
	.capabilities = TALLY_PROVIDER_SAMPLES | TALLY_PROVIDER_CATALOGUE |
			TALLY_PROVIDER_SIMULATED_TIME | TALLY_PROVIDER_ONE_CPU |
			TALLY_PROVIDER_CPU_MODEL,
	.make = simulated_make,
	.catalogue = simulated_catalogue,
	.open = simulated_open,
	.read = simulated_read,
	.ioctl = simulated_ioctl,
	.map = simulated_map,
	.unmap = simulated_unmap,
	.wait = simulated_wait,
	.close = simulated_close,
	.release = simulated_release,
	.command = simulated_command,
	.gather = simulated_gather,
	.reason = simulated_reason,
	.quality = simulated_quality,
	.uncounted = simulated_uncounted,
	.machine = simulated_machine,
	.notes = simulated_notes,
	.refuses = tally_simulated_refuses,
	.describe = tally_simulated_describe,
	.prepare_count = tally_simulated_make_generic,
	.prepare_record = tally_simulated_make_own,
	.default_event = "est-cycles",
	.default_event_note = "sampling est-cycles: an estimate, for ranking; -e instructions is "
			      "exact, and faster",
	/* it counts all at once: no groups */
	.standard_events = "instructions,branches,branch-misses,L1-dcache-loads,"
			   "L1-dcache-load-misses,LLC-load-misses,dTLB-load-misses,est-cycles",
	.detailed_events = "L1-dcache-stores,L1-dcache-store-misses,L1-icache-loads,"
			   "L1-icache-load-misses,LLC-loads,LLC-stores,LLC-store-misses,"
			   "dTLB-store-misses,iTLB-load-misses",
	.max_rate_hz = SIMULATED_MAX_HZ,
	.treatment = "simulated",
	.no_kernel_samples =
		"the simulated CPU does not support --overwrite, branch stacks, registers, -d, -W, "
		"-R, --per-thread, --off-cpu, --switch-output-event and similar options",
	.call_graph = "the simulated CPU's stack, unwound at each sample",
	.pmu_name = "vsim",
	.pmu_type = VSIM_PMU_TYPE,
};

int tally_provider_simulated_new(const struct tally_simulated_options *options,
				 struct tally_provider **out, struct tally_error *err)
{
	struct simulated *simulated = calloc(1, sizeof(*simulated));
	if (!simulated)
		return tally_error_set(err, -ENOMEM, "out of memory");
	simulated->provider.ops = &tally_provider_simulated_ops;
	simulated->options = *options;
	simulated->plan.fd = -1;
	simulated->plan.path.folder = -1;
	int result = 0;
	if (options->folder)
		snprintf(simulated->folder, sizeof(simulated->folder), "%s", options->folder);
	else
		result = tally_simulated_find(simulated->folder, sizeof(simulated->folder), err);
	if (!result)
		result = simulated_geometry(options->cpu, NULL, &simulated->geometry, err);
	if (result < 0) {
		free(simulated);
		return result;
	}
	simulated_geometry_line(&simulated->geometry, simulated->machine,
				sizeof(simulated->machine));
	simulated_geometry_caches(&simulated->geometry, simulated->caches,
				  sizeof(simulated->caches));
	*out = &simulated->provider;
	return 0;
}
