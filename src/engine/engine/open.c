/* perf_event_open(2): SPEC A1 to A7, H2.  The steps are in the kernel's order, since the first that
 * fails gives the errno.  Everything before install() can fail; struct opening says what has to be
 * undone then.  install() can't fail. */
#include "engine/engine_state.h"

#define OPEN_FLAGS \
	(TALLY_FLAG_FD_NO_GROUP | TALLY_FLAG_FD_OUTPUT | TALLY_FLAG_PID_CGROUP | \
	 TALLY_FLAG_FD_CLOEXEC)
#define O_RDWR_FLAG 2u

enum {
	CLOCK_OF_REALTIME = 0,
	CLOCK_OF_MONOTONIC = 1,
	CLOCK_OF_MONOTONIC_RAW = 4,
	CLOCK_OF_BOOTTIME = 7,
	CLOCK_OF_TAI = 11
};


static uint64_t clock_by_id(struct engine_event *event, int32_t clockid)
{
	struct tally_engine_host *host = &event->engine->host;
	uint64_t ns = 0;
	if (!host->clock_of || host->clock_of(host->host, clockid, &ns))
		return engine_now(event->engine);
	return ns;
}

static uint64_t clock_realtime(struct engine_event *event)
{
	return clock_by_id(event, CLOCK_OF_REALTIME);
}

static uint64_t clock_monotonic(struct engine_event *event)
{
	return clock_by_id(event, CLOCK_OF_MONOTONIC);
}

/* Not the clock above, though it reads the same: the event has no clockid. */
static uint64_t clock_of_records(struct engine_event *event)
{
	return clock_by_id(event, CLOCK_OF_MONOTONIC);
}

static uint64_t clock_monotonic_raw(struct engine_event *event)
{
	return clock_by_id(event, CLOCK_OF_MONOTONIC_RAW);
}

static uint64_t clock_boottime(struct engine_event *event)
{
	return clock_by_id(event, CLOCK_OF_BOOTTIME);
}

static uint64_t clock_tai(struct engine_event *event)
{
	return clock_by_id(event, CLOCK_OF_TAI);
}

/* A clock that an NMI may not read is only for events that never hit in NMIs. */
static int set_clock(struct engine_event *event)
{
	static const struct {
		int32_t clockid;
		bool nmi_safe;
		uint64_t (*clock)(struct engine_event *event);
	} clocks[] = {
		{ CLOCK_OF_REALTIME, false, clock_realtime },
		{ CLOCK_OF_MONOTONIC, true, clock_monotonic },
		{ CLOCK_OF_MONOTONIC_RAW, true, clock_monotonic_raw },
		{ CLOCK_OF_BOOTTIME, false, clock_boottime },
		{ CLOCK_OF_TAI, false, clock_tai },
	};
	const struct tally_engine_host *host = &event->engine->host;
	bool no_nmi = event->hw.pmu->capabilities & TALLY_PMU_NO_NMI;
	uint64_t ns;
	if (!engine_event_flag(event, TALLY_ATTR_USE_CLOCKID)) {
		if (host->counts_cpu_time)
			event->clock = clock_of_records;
		return 0;
	}
	for (unsigned i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
		if (clocks[i].clockid != event->attr.clockid || !(clocks[i].nmi_safe || no_nmi))
			continue;
		bool kept = event->attr.clockid == CLOCK_OF_MONOTONIC;
		if (host->clock_of)
			kept = !host->clock_of(host->host, event->attr.clockid, &ns);
		event->clock = clocks[i].clock;
		if (!kept)
			return -ENGINE_EINVAL;
		return 0;
	}
	return -ENGINE_EINVAL;
}

/* --- call chains' buffers ------------------------------------------------- */

static size_t chain_bytes(const struct tally_engine *engine)
{
	return (size_t)(engine->settings.max_stack + engine->settings.max_contexts_per_stack + 1) *
	       sizeof(uint64_t);
}

static void chains_put(struct tally_engine *engine)
{
	if (--engine->stack_users)
		return;
	for (unsigned cpu = 0; cpu < engine->host.cpus; cpu++)
		for (unsigned level = 0; level < TALLY_LEVELS; level++) {
			engine_release(engine, engine->cpus[cpu].chains[level],
				       chain_bytes(engine));
			engine->cpus[cpu].chains[level] = NULL;
		}
}

static int chains_get(struct tally_engine *engine)
{
	if (engine->stack_users++)
		return 0;
	for (unsigned cpu = 0; cpu < engine->host.cpus; cpu++)
		for (unsigned level = 0; level < TALLY_LEVELS; level++) {
			uint64_t *chain = engine_allocate(engine, chain_bytes(engine));
			if (!chain) {
				chains_put(engine);
				return -ENGINE_ENOMEM;
			}
			engine->cpus[cpu].chains[level] = chain;
		}
	return 0;
}

/* True if the event holds a reference to the chain buffers.  Inherited events use their
 * parent's. */
static bool has_chains(const struct engine_event *event)
{
	return event->attr.sample_type & TALLY_SAMPLE_CALLCHAIN && !event->parent;
}

static int get_chains(struct engine_event *event)
{
	struct tally_engine *engine = event->engine;
	int error = has_chains(event) ? chains_get(engine) : 0;
	if (!error && has_chains(event) &&
	    event->attr.sample_max_stack > engine->settings.max_stack) {
		chains_put(engine);
		error = -ENGINE_EOVERFLOW;
	}
	return error;
}

/* --- an event's life ------------------------------------------------------ */

static void init_event(struct engine_event *event, struct engine_event *leader)
{
	struct tally_attr *attr = &event->attr;
	engine_list_init(&event->siblings);
	engine_list_init(&event->sibling_link);
	engine_list_init(&event->context_link);
	engine_list_init(&event->group_link);
	engine_list_init(&event->active_link);
	engine_list_init(&event->children);
	engine_list_init(&event->child_link);
	engine_list_init(&event->owner_link);
	engine_list_init(&event->ring_link);
	engine_list_init(&event->breakpoint_link);
	event->references = 1;
	event->leader = leader ? leader : event;
	event->on_cpu = -1;
	event->state = ENGINE_EVENT_INACTIVE;
	if (attr->flags & TALLY_ATTR_DISABLED)
		event->state = ENGINE_EVENT_OFF;
	event->clock = event->parent ? event->parent->clock : NULL;
	if (!(attr->sample_type & TALLY_SAMPLE_BRANCH_STACK))
		attr->branch_sample_type = 0;
	bool adapts = attr->flags & TALLY_ATTR_FREQ && attr->sample_period;
	event->hw = (struct tally_pmu_event){
		.attr = attr,
		.engine = event->engine,
		.cpu = event->cpu,
		.of_task = event->task != NULL,
		.index = -1,
		.state = TALLY_HES_STOPPED | TALLY_HES_UPTODATE,
		.sample_period = adapts ? 1 : attr->sample_period,
	};
	event->hw.last_period = event->hw.sample_period;
	event->hw.period_left = (int64_t)event->hw.sample_period;
}

static void free_event(struct tally_engine *engine, struct engine_retired *retired)
{
	struct engine_event *event = ENGINE_CONTAINER(retired, struct engine_event, retired);
	engine_event_unpend(event); /* again, since a hit in progress may have queued it */
	if (has_chains(event))
		chains_put(engine);
	engine_release(engine, event->closed_file, sizeof(*event->closed_file));
	engine_release(engine, event, sizeof(*event));
}

static int check_target(const struct tally_engine *engine, const struct tally_attr *attr,
			const struct tally_engine_task *task, int cpu)
{
	uint64_t type = attr->sample_type;
	bool shared_read = attr->flags & TALLY_ATTR_INHERIT && type & TALLY_SAMPLE_READ &&
			   !(type & TALLY_SAMPLE_TID);
	if ((unsigned)cpu >= engine->host.cpus && (!task || cpu != -1))
		return -ENGINE_EINVAL;
	/* the signal would hit any task that runs there */
	if (attr->flags & TALLY_ATTR_SIGTRAP && !task)
		return -ENGINE_EINVAL;
	if (shared_read)
		return -ENGINE_EINVAL;
	return 0;
}

/* Pausing and resuming another event's trace is not supported. */
static int check_aux(const struct engine_event *event)
{
	enum { START_PAUSED = 1, PAUSE = 2, RESUME = 4 };
	const struct tally_attr *attr = &event->attr;
	if (attr->flags & TALLY_ATTR_AUX_OUTPUT &&
	    (!(event->hw.pmu->capabilities & TALLY_PMU_AUX_OUTPUT) ||
	     attr->aux_action & (PAUSE | RESUME)))
		return -ENGINE_EOPNOTSUPP;
	if ((attr->aux_action & (PAUSE | RESUME)) == (PAUSE | RESUME))
		return -ENGINE_EINVAL;
	if (attr->aux_action & START_PAUSED)
		return -ENGINE_EOPNOTSUPP;
	return 0;
}

int engine_event_new(struct tally_engine *engine, const struct tally_attr *attr,
		     struct tally_engine_task *task, int cpu, struct engine_event *leader,
		     struct engine_event *parent, struct engine_event **out)
{
	int error = check_target(engine, attr, task, cpu);
	if (error)
		return error;
	struct engine_event *event = engine_allocate(engine, sizeof(*event));
	if (!event)
		return -ENGINE_ENOMEM;
	event->engine = engine;
	event->attr = *attr;
	event->task = task;
	event->cpu = cpu;
	event->parent = parent;
	event->id = engine_add64(&engine->next_id, 1);
	init_event(event, leader);
	error = engine_pmu_init_event(event);
	if (error)
		goto no_pmu;
	error = check_aux(event);
	if (!error)
		error = get_chains(event);
	if (error)
		goto no_chains;
	if (parent)
		engine_event_get(parent);
	if (task)
		engine_task_get(task);
	engine_event_sizes(event);
	engine_sideband_account(event, 1);
	engine->statistics.events++;
	*out = event;
	return 0;
no_chains:
	engine_pmu_release_event(event);
no_pmu:
	engine_release(engine, event, sizeof(*event));
	return error;
}

void engine_event_get(struct engine_event *event)
{
	event->references++;
}

void engine_event_put(struct engine_event *event)
{
	struct tally_engine *engine = event->engine;
	if (--event->references)
		return;
	engine_event_unpend(event);
	engine_ring_detach(event);
	engine_pmu_release_event(event);
	engine_sideband_account(event, -1);
	engine->statistics.events--;
	if (event->task)
		engine_task_put(event->task);
	if (event->parent)
		engine_event_put(event->parent);
	engine_retire(engine, &event->retired, free_event);
}

void engine_event_close(struct engine_event *event)
{
	engine_list_remove(&event->owner_link);
	event->owner = NULL;
	engine_context_remove(event, true, false);
	ENGINE_LIST_EACH(child, &event->children, struct engine_event, child_link) {
		engine_context_remove(child, true, false);
		engine_list_remove(&child->child_link);
		engine_event_put(child);
	}
	engine_event_unpend(event); /* its work needs the file, which wakes and signals */
	engine_ring_detach(event);
	event->file = NULL;
	engine_event_put(event);
}

/* --- opening -------------------------------------------------------------- */

struct opening {
	struct tally_engine *engine;
	struct tally_attr attr;
	struct tally_engine_task *caller, *task; /* `task` is the counted one; NULL: a whole CPU */
	int cpu;
	unsigned long flags;
	struct engine_event *leader, *output;    /* NULL: none */
	/* Results of the steps: */
	struct engine_event *event;
	struct engine_context *context;
};

/* Checks rates and permissions that depend on the attribute alone. */
static int check_attr(struct tally_engine *engine, const struct tally_attr *attr)
{
	if (!(attr->flags & TALLY_ATTR_EXCLUDE_KERNEL)) {
		int error = engine_allow_kernel(engine);
		if (error)
			return error;
	}
	if (attr->flags & TALLY_ATTR_NAMESPACES && !engine_capable(engine, TALLY_CAPABLE_PERFMON))
		return -ENGINE_EACCES;
	bool excessive = attr->sample_period >> 63;
	if (attr->flags & TALLY_ATTR_FREQ)
		excessive = attr->sample_period > (uint64_t)engine->settings.max_sample_rate;
	if (excessive)
		return -ENGINE_EINVAL;
	if (attr->sample_type & TALLY_SAMPLE_PHYS_ADDR)
		return engine_allow_kernel(engine);
	return 0;
}

static int find_group(struct opening *opening, int group_fd)
{
	if (group_fd == -1)
		return 0;
	struct tally_engine_file *file = engine_file(opening->engine, group_fd);
	if (!file)
		return -ENGINE_EBADF;
	if (opening->flags & TALLY_FLAG_FD_OUTPUT)
		opening->output = file->event;
	if (!(opening->flags & TALLY_FLAG_FD_NO_GROUP))
		opening->leader = file->event;
	/* The leader's task has exited: its group will never count again. */
	if (file->event->state == ENGINE_EVENT_EXIT)
		return -ENGINE_ENODEV;
	return 0;
}

static int find_target(struct opening *opening, int32_t pid)
{
	if (pid != -1 && !(opening->flags & TALLY_FLAG_PID_CGROUP)) {
		opening->task = pid ? engine_find_task(opening->engine, pid) : opening->caller;
		if (!opening->task)
			return -ENGINE_ESRCH;
	}
	if (opening->task && opening->leader &&
	    (opening->leader->attr.flags ^ opening->attr.flags) & TALLY_ATTR_INHERIT)
		return -ENGINE_EINVAL;
	return 0;
}

/* Events of a group must have the same cgroup, since a task is in one cgroup. */
static int join_cgroup(struct opening *opening, int32_t fd)
{
	struct tally_engine_host *host = &opening->engine->host;
	struct engine_event *event = opening->event;
	if (!(opening->flags & TALLY_FLAG_PID_CGROUP))
		return 0;
	if (event->hw.pmu->scope == TALLY_SCOPE_CPU_ONLY || !host->cgroup_of_fd || !host->in_cgroup)
		return -ENGINE_EINVAL;
	int error = host->cgroup_of_fd(host->host, fd, &event->cgroup);
	event->has_cgroup = true;
	if (!error && opening->leader &&
	    (!opening->leader->has_cgroup || opening->leader->cgroup != event->cgroup))
		error = -ENGINE_EINVAL;
	return error;
}

/* Checks the permission to count there, and finds the context: the task's, which is made if it has
 * none, or the CPU's. */
static int find_context(struct opening *opening)
{
	struct tally_engine *engine = opening->engine;
	const struct tally_engine_host *host = &engine->host;
	struct tally_engine_task *task = opening->task;
	if (task && !engine_capable(engine, TALLY_CAPABLE_PERFMON) && host->may_observe &&
	    !host->may_observe(host->host, task))
		return -ENGINE_EACCES;
	if (!task) {
		int error = engine_allow_cpu(engine);
		if (error)
			return error;
	}
	if (task && task->exited)
		return -ENGINE_ESRCH;
	if (!task && !engine->cpus[opening->cpu].up)
		return -ENGINE_ENODEV;
	return engine_context_find(engine, task, opening->cpu, &opening->context);
}

/* Software events may join any group.  Hardware events may join a group of their PMU, or one of
 * software events only, which from then on is a group of that PMU. */
static int join_group(struct opening *opening)
{
	struct engine_event *event = opening->event, *leader = opening->leader;
	if (!leader)
		return 0;
	if (leader->leader != leader || leader->clock != event->clock ||
	    leader->cpu != event->cpu || leader->context != opening->context)
		return -ENGINE_EINVAL;
	if (event->attr.flags & (TALLY_ATTR_EXCLUSIVE | TALLY_ATTR_PINNED))
		return -ENGINE_EINVAL;
	if (event->hw.pmu->scope == TALLY_SCOPE_SOFTWARE)
		return 0;
	if (leader->group_pmu && leader->group_pmu != event->hw.pmu)
		return -ENGINE_EINVAL;
	return 0;
}

/* Checks that an event which needs an AUX area has a leader with one. */
static int find_area(const struct opening *opening)
{
	enum { PAUSE_OR_RESUME = 6 };
	const struct engine_event *event = opening->event, *leader = opening->leader;
	const struct tally_engine_pmu_ops *ops = event->hw.pmu->ops;
	if (event->attr.aux_sample_size || event->attr.aux_action & PAUSE_OR_RESUME)
		return -ENGINE_EINVAL; /* snapshots are not supported */
	if (!engine_event_flag(event, TALLY_ATTR_AUX_OUTPUT))
		return 0;
	bool match = leader && leader->hw.pmu->capabilities & TALLY_PMU_AUX &&
		     ops->aux_output_match && ops->aux_output_match(&event->hw, &leader->hw);
	if (!match)
		return -ENGINE_EINVAL;
	return 0;
}

/* Does all that can fail between making the event and making its file. */
static int prepare(struct opening *opening, int32_t pid)
{
	struct engine_event *event = opening->event;
	int error = join_cgroup(opening, pid);
	if (error)
		return error;
	if (event->attr.sample_period && event->hw.pmu->capabilities & TALLY_PMU_NO_INTERRUPT)
		return -ENGINE_EOPNOTSUPP;
	error = set_clock(event);
	if (error)
		return error;
	error = find_context(opening);
	if (error)
		return error;
	error = join_group(opening);
	if (error)
		return error;
	if (opening->output)
		error = engine_event_set_output(event, opening->output);
	if (error)
		return error;
	if (engine_event_size_fits(event, 1))
		return find_area(opening);
	return -ENGINE_E2BIG;
}

static int install(struct opening *opening, struct tally_engine_file *file)
{
	struct engine_event *event = opening->event;
	file->event = event;
	file->references = 1;
	file->flags = O_RDWR_FLAG;
	event->file = file;
	engine_context_install(opening->context, event);
	event->owner = opening->caller;
	engine_list_add_tail(&event->owner_link, &opening->caller->owned);
	return engine_file_install(opening->caller->process, file,
				   opening->flags & TALLY_FLAG_FD_CLOEXEC);
}

static int open_event(struct opening *opening, int32_t pid, int group_fd)
{
	struct tally_engine *engine = opening->engine;
	int error = engine_files_room(opening->caller->process);
	if (error)
		return error;
	error = find_group(opening, group_fd);
	if (error)
		return error;
	error = find_target(opening, pid);
	if (error)
		return error;
	error = engine_event_new(engine, &opening->attr, opening->task, opening->cpu,
				 opening->leader, NULL, &opening->event);
	if (error)
		return error;
	struct tally_engine_file *file = NULL;
	error = prepare(opening, pid);
	if (!error) {
		file = engine_allocate(engine, sizeof(*file));
		if (!file)
			error = -ENGINE_ENOMEM;
	}
	if (error) {
		engine_event_put(opening->event);
		return error;
	}
	return install(opening, file);
}

int tally_engine_open(struct tally_engine *engine, const void *attr, int32_t pid, int cpu,
		      int group_fd, unsigned long flags)
{
	struct opening opening = { .engine = engine, .cpu = cpu, .flags = flags };
	engine_enter(engine);
	opening.caller = engine_current(engine);
	int result = -ENGINE_ESRCH;
	if (!opening.caller)
		goto out;
	result = -ENGINE_EINVAL;
	if (flags & ~OPEN_FLAGS)
		goto out;
	result = engine_attr_copy(engine, attr, &opening.attr);
	if (result)
		goto out;
	result = check_attr(engine, &opening.attr);
	if (result)
		goto out;
	result = -ENGINE_EINVAL;
	if (flags & TALLY_FLAG_PID_CGROUP && (pid == -1 || cpu == -1))
		goto out;
	result = open_event(&opening, pid, group_fd);
out:
	engine_leave(engine);
	return result;
}
