/* The preloaded object as a provider: commands count and sample themselves, for tally.
 *
 * It needs no perf events of the kernel.  Each program of the command loads libtally-process.so by
 * LD_PRELOAD; in it tally's engine counts each thread (hosts/process).  docs/process.md explains what
 * it can see.  This file has the provider's events and texts, and what the command's environment
 * needs.
 *
 * TALLY_PLAN tells the programs the ways to open the plan, tried in order and separated by '|': its
 * path, the path of tally's descriptor in /proc, and a descriptor that the command inherits.  The
 * last is used only for memory without a name: a program that does not load the object would see
 * it. */
#include "provider/process.h"
#include "provider/host_place.h"
#include "provider/planned.h"

#include "base/buffer.h"
#include "base/environment.h"
#include "base/extremes.h"
#include "base/text.h"
#include "event/event.h"
#include "machine/machine.h"
#include "process/process_pmu.h"
#include "process/process_usage.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* The fields that the engine can write into a sample of the calling thread. */
static const uint64_t SAMPLED = TALLY_SAMPLE_IP | TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME |
				TALLY_SAMPLE_ADDR | TALLY_SAMPLE_READ | TALLY_SAMPLE_CALLCHAIN |
				TALLY_SAMPLE_ID | TALLY_SAMPLE_CPU | TALLY_SAMPLE_PERIOD |
				TALLY_SAMPLE_STREAM_ID | TALLY_SAMPLE_IDENTIFIER |
				TALLY_SAMPLE_REGS_USER | TALLY_SAMPLE_STACK_USER;

enum {
	RING_PAGES = 256, /* of each thread: 64 samples with full stacks */
	MAX_RING_PAGES = 4096,
	MAX_HZ = 10000 /* more would cost a program more time than it works */
};

struct process {
	struct planned planned;             /* first member */
	char folder[PATH_MAX];              /* of the object */
	struct tally_buffer preloads, ways; /* the command's LD_PRELOAD and TALLY_PLAN */
};

static struct process *process_of(struct tally_provider *provider)
{
	return (struct process *)provider;
}

/* ---- the events ---------------------------------------------------------- */

static const char *const HARDWARE_HINT =
	"--provider simulated counts and samples instructions, branches and misses on a simulated "
	"CPU (docs/simulated.md); task-clock samples CPU time";
static const char *const LIST_HINT = "'tally list --provider process' shows what it counts";

static bool is_wall_clock(const struct tally_attr *attr)
{
	return attr->type == TALLY_PROCESS_PMU_TYPE && attr->config == TALLY_PROCESS_WALL_CLOCK;
}

/* A program's own tracepoint, as find_tracepoint() numbers it: the kernel's have small numbers. */
static bool is_own_tracepoint(const struct tally_attr *attr)
{
	enum { LARGEST_ID = 65535 };
	if (attr->type == TALLY_PROCESS_PMU_TYPE)
		return attr->config == TALLY_PROCESS_TRACEPOINT;
	return attr->type == TALLY_TYPE_TRACEPOINT && attr->config > LARGEST_ID;
}

static bool is_counted(const struct tally_attr *attr)
{
	if (is_own_tracepoint(attr))
		return true;
	if (attr->type != TALLY_TYPE_SOFTWARE)
		return is_wall_clock(attr);
	switch (attr->config) {
	case TALLY_SW_CPU_CLOCK:
	case TALLY_SW_TASK_CLOCK:
	case TALLY_SW_PAGE_FAULTS:
	case TALLY_SW_CONTEXT_SWITCHES:
	case TALLY_SW_CPU_MIGRATIONS:
	case TALLY_SW_PAGE_FAULTS_MIN:
	case TALLY_SW_PAGE_FAULTS_MAJ:
	case TALLY_SW_DUMMY:
		return true;
	default:
		return false;
	}
}

static bool is_fault(const struct tally_attr *attr)
{
	if (attr->type != TALLY_TYPE_SOFTWARE)
		return false;
	return attr->config == TALLY_SW_PAGE_FAULTS || attr->config == TALLY_SW_PAGE_FAULTS_MIN ||
	       attr->config == TALLY_SW_PAGE_FAULTS_MAJ;
}

/* A program learns its times, faults and switches from the kernel, as totals of both modes. */
static const char *refuses_mode(const struct tally_attr *attr, const char **hint)
{
	const uint64_t one = TALLY_ATTR_EXCLUDE_USER | TALLY_ATTR_EXCLUDE_KERNEL;
	*hint = "leave out the modifier";
	if (attr->flags & TALLY_ATTR_EXCLUDE_HOST)
		return "a program runs no guests";
	if (is_fault(attr) && attr->flags & one)
		return "inside a program, faults of user mode and kernel can't be told apart";
	*hint = NULL;
	return NULL;
}

static const char *process_refuses(const struct tally_attr *attr, const char **hint)
{
	const char *ignored;
	if (!hint)
		hint = &ignored;
	*hint = LIST_HINT;
	switch (attr->type) {
	case TALLY_PROCESS_PMU_TYPE:
	case TALLY_TYPE_SOFTWARE:
		if (!is_counted(attr))
			return "only the kernel counts this, not a program itself";
		return refuses_mode(attr, hint);
	case TALLY_TYPE_TRACEPOINT:
		if (is_own_tracepoint(attr))
			return refuses_mode(attr, hint);
		return "the kernel's tracepoints can't be reached from inside a program";
	case TALLY_TYPE_BREAKPOINT:
		return "breakpoints can't be set from inside a program";
	default:
		*hint = HARDWARE_HINT;
		return "the CPU's counters can't be reached from inside a program";
	}
}

/* Returns the attribute that processes open, without modifiers that mean nothing there.  A clock's
 * frequency is a period. */
static struct tally_attr attr_for_plan(const struct tally_attr *asked)
{
	enum { NS_PER_S = 1000000000 };
	struct tally_attr attr = *asked;
	attr.size = sizeof(attr);
	attr.flags &= ~(TALLY_ATTR_PRECISE_IP | TALLY_ATTR_EXCLUDE_GUEST);
	if (attr.type == TALLY_TYPE_TRACEPOINT) {
		attr.type = TALLY_PROCESS_PMU_TYPE;
		attr.config1 = attr.config;
		attr.config = TALLY_PROCESS_TRACEPOINT;
	}
	if (is_wall_clock(&attr) && attr.flags & TALLY_ATTR_FREQ && attr.sample_period) {
		attr.sample_period = tally_max_u64(NS_PER_S / attr.sample_period, 1);
		attr.flags &= ~TALLY_ATTR_FREQ;
	}
	return attr;
}

static const char *refuses_samples(const struct tally_attr *attr, const char **hint)
{
	*hint = NULL;
	bool is_dummy = attr->type == TALLY_TYPE_SOFTWARE && attr->config == TALLY_SW_DUMMY;
	if (!attr->sample_period || is_dummy)
		return NULL;
	*hint = "count it with 'tally stat', or sample task-clock";
	if (is_own_tracepoint(attr))
		return "a program's own tracepoints are counted, not sampled";
	if (!tally_attr_is_clock(attr) && !is_wall_clock(attr))
		return "only task-clock, cpu-clock and wall-clock can be sampled inside a program";
	*hint = "leave out the modifier: time in the kernel is shown at the call that leads there";
	if (attr->flags & TALLY_ATTR_EXCLUDE_USER)
		return "the kernel's code can't be sampled from inside a program";
	return NULL;
}

static int process_check(const struct planned *planned, const struct tally_attr *attr, int group)
{
	const char *hint;
	(void)planned, (void)group;
	if (process_refuses(attr, NULL))
		return -ENOENT;
	if (refuses_samples(attr, &hint))
		return -EOPNOTSUPP;
	return 0;
}

static const struct planned_host process_host = {
	.prefix = "tally-process-",
	.plan_bytes = sizeof(struct tally_plan),
	.ring_pages = RING_PAGES,
	.max_ring_pages = MAX_RING_PAGES,
	.room_bytes = (uint64_t)TALLY_PLAN_RINGS * (1 + RING_PAGES) * TALLY_PLAN_PAGE,
	.may_be_unnamed = true,
	.sample_fields = SAMPLED,
	.attr = attr_for_plan,
	.check = process_check,
};

static const char *process_describe(const struct tally_attr *attr, struct tally_arena *arena)
{
	(void)arena;
	if (is_wall_clock(attr))
		return "time that passes for each thread, whether it runs or sleeps";
	return NULL;
}

static int add_pmu(struct tally_catalogue *catalogue)
{
	static const struct tally_format_term terms[] = { { "event", 0, 0xff } };
	static const struct tally_pmu_alias events[] = { { "wall-clock", "event=1", "ns", 1 } };
	struct tally_pmu *pmu = tally_arena_array(&catalogue->arena, 1, sizeof(*pmu));
	if (!pmu)
		return -ENOMEM;
	*pmu = (struct tally_pmu){ "process", TALLY_PROCESS_PMU_TYPE, "", terms, 1, events, 1 };
	catalogue->pmus = pmu;
	catalogue->pmu_count = 1;
	return 0;
}

/* Any name that the kernel's tracepoints don't have may be one of the program's own, which shows only
 * when the program publishes it. */
static int64_t find_tracepoint(void *context, const char *system, const char *name)
{
	(void)context;
	int tracefs = tally_tracefs_open(NULL);
	int64_t kernels = -ENOENT;
	if (tracefs >= 0) {
		kernels = tally_tracefs_tracepoint_id(tracefs, system, name);
		close(tracefs);
	}
	if (kernels >= 0)
		return -ENOENT;
	return (int64_t)tally_process_name(system, name);
}

static int process_catalogue(struct tally_provider *provider, struct tally_catalogue *catalogue,
			     struct tally_error *err)
{
	const struct tally_attr tracepoint = { .type = TALLY_TYPE_TRACEPOINT };
	(void)provider;
	if ((!catalogue->named && tally_catalogue_init(catalogue)) || add_pmu(catalogue))
		return tally_error_set(err, -ENOMEM, "no memory left for the names of events");
	for (size_t i = 0; i < catalogue->named_count; i++) {
		struct tally_named_event *named = &catalogue->named[i];
		const struct tally_attr attr = { .type = named->type, .config = named->config };
		named->unavailable = process_refuses(&attr, NULL);
	}
	catalogue->tracepoints_unavailable = process_refuses(&tracepoint, NULL);
	catalogue->tracepoint_id = find_tracepoint;
	return 0;
}

/* ---- the command --------------------------------------------------------- */

static void add_way(struct tally_buffer *ways, const char *way)
{
	if (ways->length)
		tally_buffer_char(ways, '|');
	tally_buffer_text(ways, way);
}

/* Lists the ways to open the plan. */
static void list_ways(const struct planned_file *file, struct tally_buffer *ways)
{
	char text[64];
	tally_buffer_clear(ways);
	if (file->path.path[0])
		add_way(ways, file->path.path);
	snprintf(text, sizeof(text), "/proc/%d/fd/%d", (int)getpid(), file->fd);
	if (!access(text, F_OK))
		add_way(ways, text);
	snprintf(text, sizeof(text), "fd:%d", file->fd);
	if (!file->path.path[0])
		add_way(ways, text);
}

/* The dynamic linker takes these for the ends of paths in LD_PRELOAD. */
static const char UNFIT[] = " \t\n:";

/* Makes the value of LD_PRELOAD: the object, then what the user preloads.  Returns 0 or -EINVAL. */
static int list_preloads(struct process *process, struct tally_error *err)
{
	const char *own = tally_environment_of_caller("LD_PRELOAD");
	if (strpbrk(process->folder, UNFIT)) {
		tally_error_set(err, -EINVAL,
				"%s: the path has a blank or colon, so the object there can't be "
				"preloaded",
				process->folder);
		tally_error_hint(err, "install tally in a folder without them");
		return -EINVAL;
	}
	tally_buffer_clear(&process->preloads);
	tally_buffer_printf(&process->preloads, "%s/%s", process->folder,
			    tally_host_place_process.file);
	if (own)
		tally_buffer_printf(&process->preloads, ":%s", own);
	return 0;
}

static int process_command(struct tally_provider *provider, const char *path, char **command,
			   char ***out, struct tally_error *err)
{
	struct process *process = process_of(provider);
	int result = tally_process_check_program(path, err);
	if (result >= 0)
		result = list_preloads(process, err);
	if (result >= 0)
		result = planned_file_make(&process->planned, NULL, err);
	if (result < 0)
		return result;
	list_ways(&process->planned.file, &process->ways);
	if (process->ways.failed || process->preloads.failed)
		return tally_error_set(err, -ENOMEM, "out of memory");
	planned_publish(&process->planned);
	*out = command;
	return 0;
}

/* Notes what this process has used: that is not the command's. */
/* Runs in the child, before exec: its number of migrations is in the same file as later. */
static void note_usage(struct tally_plan_usage *start)
{
	struct timespec time;
	struct rusage used;
	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) < 0 || getrusage(RUSAGE_SELF, &used) < 0)
		return;
	*start = (struct tally_plan_usage){
		.cpu_ns = (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec,
		.minor_faults = (uint64_t)used.ru_minflt,
		.major_faults = (uint64_t)used.ru_majflt,
		.switches = (uint64_t)used.ru_nvcsw + (uint64_t)used.ru_nivcsw,
		.migrations = process_usage_migrations(0),
	};
}

static int process_before_exec(struct tally_provider *provider)
{
	const struct process *process = process_of(provider);
	const struct planned_file *file = &process->planned.file;
	if (!file->path.path[0] && fcntl(file->fd, F_SETFD, 0) < 0)
		return -errno;
	if (setenv("LD_PRELOAD", tally_buffer_string(&process->preloads), 1) < 0 ||
	    setenv("TALLY_PLAN", tally_buffer_string(&process->ways), 1) < 0)
		return -errno;
	note_usage(&file->shared->start);
	return 0;
}

/* ---- texts for the user -------------------------------------------------- */

static const char *process_reason(struct tally_provider *provider, const struct tally_attr *attr,
				  int code, const char **hint)
{
	const char *ignored;
	(void)provider;
	if (!hint)
		hint = &ignored;
	const char *reason = process_refuses(attr, hint);
	if (!reason)
		reason = refuses_samples(attr, hint);
	if (reason)
		return reason;
	switch (code) {
	case -EMFILE:
		return "at most 64 events are counted at once";
	case -EOPNOTSUPP:
		if (attr->sample_type & ~SAMPLED)
			return "a program has no such data for its samples";
		return "only a command that tally starts can be measured from inside";
	default:
		return tally_errno_text(code);
	}
}

static const char NOT_LOADED[] =
	"the program did not load libtally-process.so: a static program, one with more rights than "
	"its caller, or one of another machine";

static const char *process_uncounted(struct tally_provider *provider)
{
	const struct planned *planned = planned_of(provider);
	if (!planned->file.shared || planned_has_begun(planned))
		return NULL;
	return NOT_LOADED;
}

static bool has_unpublished(const struct planned *planned)
{
	const struct tally_plan *shared = planned->file.shared;
	for (unsigned i = 0; i < shared->event_count && i < TALLY_PLAN_EVENTS; i++)
		if (planned->events[i].is_open && is_own_tracepoint(&planned->events[i].attr) &&
		    !__atomic_load_n(&shared->events[i].published, __ATOMIC_SEQ_CST))
			return true;
	return false;
}

static size_t process_notes(struct tally_provider *provider, int signal, struct tally_arena *arena,
			    const char **notes, size_t maximum)
{
	const struct planned *planned = planned_of(provider);
	const struct tally_plan *shared = planned->file.shared;
	enum { STARTLESS, UNCOUNTED, UNRECORDED, UNPUBLISHED, DAMAGED, LINES };
	const char *lines[LINES] = { NULL };
	(void)signal;
	if (!shared)
		return 0;
	uint32_t uncounted = __atomic_load_n(&shared->uncounted, __ATOMIC_SEQ_CST),
		 unrecorded = __atomic_load_n(&shared->unrecorded, __ATOMIC_SEQ_CST);
	if (!planned_has_begun(planned))
		lines[STARTLESS] = NOT_LOADED;
	if (uncounted)
		lines[UNCOUNTED] = tally_arena_printf(
			arena,
			"%u program%s ran uncounted: static, set-user-ID and 32-bit programs "
			"can't be measured from inside",
			uncounted, tally_plural(uncounted));
	if (unrecorded)
		lines[UNRECORDED] = tally_arena_printf(
			arena,
			"%u thread%s ran unrecorded: at most %d are recorded at the same time",
			unrecorded, tally_plural(unrecorded), TALLY_PLAN_RINGS);
	if (has_unpublished(planned))
		lines[UNPUBLISHED] = "no program published all of these tracepoints: they need "
				     "tally_trace_publish() and the shared libtally "
				     "(tally/tracepoint.h)";
	if (planned->damaged)
		lines[DAMAGED] = "the program overwrote a ring: some records are lost";
	size_t count = 0;
	for (size_t i = 0; i < LINES && count < maximum; i++)
		if (lines[i])
			notes[count++] = lines[i];
	return count;
}

/* ---- life ---------------------------------------------------------------- */

/* Returns the reason why programs can't be measured from inside on this machine, or "". */
static const char *impossible(void)
{
	if (sysconf(_SC_PAGESIZE) != TALLY_PLAN_PAGE)
		return "this machine's pages are larger than 4 KiB";
	return tally_host_place_process.absent;
}

static const char *process_lack(void)
{
	const struct tally_host_place *place = &tally_host_place_process;
	char folder[PATH_MAX];
	if (impossible()[0])
		return impossible();
	if (tally_host_place_find(place, folder, sizeof(folder)) && strpbrk(folder, UNFIT))
		return "the path of libtally-process.so has a blank or colon, so it can't be "
		       "preloaded";
	return tally_host_place_lack(place);
}

static void process_release(struct tally_provider *provider)
{
	struct process *process = process_of(provider);
	planned_release(&process->planned);
	tally_buffer_release(&process->preloads);
	tally_buffer_release(&process->ways);
	free(process);
}

static int process_make(const struct tally_provider_choice *choice, struct tally_provider **out,
			struct tally_error *err)
{
	const struct tally_host_place *place = &tally_host_place_process;
	(void)choice;
	struct process *process = calloc(1, sizeof(*process));
	if (!process)
		return tally_error_set(err, -ENOMEM, "out of memory");
	planned_init(&process->planned, &tally_provider_process_ops, &process_host);
	if (!impossible()[0] &&
	    tally_host_place_find(place, process->folder, sizeof(process->folder))) {
		*out = &process->planned.provider;
		return 0;
	}
	free(process);
	if (impossible()[0])
		return tally_error_set(err, -ENOENT, "programs can't be measured from inside: %s",
				       impossible());
	tally_error_set(err, -ENOENT, "%s is neither beside tally nor in %s", place->file,
			place->installed);
	tally_error_hint(err, "'meson install' puts it there");
	return -ENOENT;
}

const struct tally_provider_ops tally_provider_process_ops = {
	.name = "process",
	.capabilities = TALLY_PROVIDER_SAMPLES | TALLY_PROVIDER_CATALOGUE |
			TALLY_PROVIDER_LIVE_TASKS | TALLY_PROVIDER_COMMAND_TIME |
			TALLY_PROVIDER_ONE_CPU | TALLY_PROVIDER_NO_CHAINS,
	.make = process_make,
	.catalogue = process_catalogue,
	.open = planned_open,
	.read = planned_read,
	.ioctl = planned_ioctl,
	.map = planned_map,
	.unmap = planned_unmap,
	.wait = planned_wait,
	.close = planned_close,
	.release = process_release,
	.command = process_command,
	.before_exec = process_before_exec,
	.check_program = tally_process_check_program,
	.lack = process_lack,
	.gather = planned_gather,
	.reason = process_reason,
	.uncounted = process_uncounted,
	.notes = process_notes,
	.refuses = process_refuses,
	.describe = process_describe,
	.default_event = "task-clock",
	.standard_events = "task-clock,context-switches,cpu-migrations,page-faults",
	.detailed_events = "minor-faults,major-faults",
	.max_rate_hz = MAX_HZ,
	.treatment = "measured from inside",
	.missed_reason = "most of the command's time can't be seen from inside",
	.missed_note = "static, set-user-ID and 32-bit programs can't be entered, what the kernel "
		       "does to make and end a thread can't be seen, and of a program that is "
		       "killed up to 20 ms a thread are missing",
	.no_kernel_samples =
		"--provider process does not support --overwrite, branch stacks, registers, -d, -W, "
		"-R, --per-thread, --off-cpu, --switch-output-event and similar options: they need "
		"the kernel's perf events",
};
