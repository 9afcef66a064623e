/* The simulated machine as a surface: tally's engine behind the calls, coroutines as tasks.
 *
 * Each call costs as much kernel-mode work as a system call, so that time passes as a test expects.
 * The engine itself takes no time. */
#include "surface.h"

#include "sim/sim_state.h"
#include "tally/tracepoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALL_INSTRUCTIONS = 400, MEMORY_MAX = 64, WAITERS_MAX = 256 };

#define FAULT_BASE 0x7f0000000000u
#define DATA_ADDRESS 0x602000u
#define CODE_ADDRESS 0x401800u

struct waiter {
	struct sim_task *task;
	volatile uint32_t *word; /* NULL: it polls */
};

struct surface_sim {
	struct surface surface;
	struct sim_config config;
	struct sim_machine *machine;
	void *memory[MEMORY_MAX];
	unsigned memory_count;
	struct waiter waiters[WAITERS_MAX];
	unsigned waiter_count;
	char *format;
};

static struct surface_sim *sim_of(struct surface *surface)
{
	return (struct surface_sim *)surface;
}

static struct sim_machine *machine_of(struct surface *surface)
{
	return sim_of(surface)->machine;
}

static struct tally_engine *engine_of(struct surface *surface)
{
	return sim_engine(machine_of(surface));
}

/* --- work ----------------------------------------------------------------- */

static const uint64_t user_callers[] = { 0x401100, 0x401200, 0x401300 };
static const uint64_t kernel_callers[] = { 0xffffffff81002000u, 0xffffffff81a00000u };

static void work(struct surface *surface, enum tally_engine_mode mode, uint64_t instructions,
		 uint32_t branches_per_kilo)
{
	bool kernel = mode == TALLY_MODE_KERNEL;
	struct sim_phase phase = {
		.kind = SIM_WORK,
		.work = {
			.instructions = instructions,
			.per_kilo = { [SIM_CYCLES] = 1000, [SIM_BRANCHES] = branches_per_kilo,
				      [SIM_CACHE_REFERENCES] = 50, [SIM_CACHE_MISSES] = 5,
				      [SIM_BRANCH_MISSES] = 2, [SIM_BUS_CYCLES] = 100,
				      [SIM_L1D_LOADS] = 300, [SIM_L1D_LOAD_MISSES] = 9,
				      [SIM_L1D_STORES] = 150,
				      [SIM_STALLED_FRONTEND] = 40, [SIM_STALLED_BACKEND] = 60 },
			.mode = mode,
			.address = kernel ? 0xffffffff81003000u : 0x401000,
			.code_size = 1024,
			.callers = kernel ? kernel_callers : user_callers,
			.caller_count = kernel ? 2 : 3,
		},
	};
	sim_do(machine_of(surface), &phase);
}

static void enter(struct surface *surface)
{
	work(surface, TALLY_MODE_KERNEL, CALL_INSTRUCTIONS, 200);
}

static void sim_op_burn(struct surface *surface, uint64_t ns)
{
	work(surface, TALLY_MODE_USER, ns * machine_of(surface)->cpu->megahertz / 1000, 200);
}

static void sim_op_loop(struct surface *surface, uint64_t iterations)
{
	work(surface, TALLY_MODE_USER, 2 * iterations, 500);
}

static uint64_t sim_op_fault_address(struct surface *surface, unsigned n)
{
	(void)surface;
	return FAULT_BASE + 4096ull * n;
}

static void sim_op_fault(struct surface *surface, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		work(surface, TALLY_MODE_USER, 50, 200);
		sim_fault(machine_of(surface), FAULT_BASE + 4096ull * i, 1, false);
		enter(surface);
	}
}

static void sim_op_sleep(struct surface *surface, uint64_t ns)
{
	enter(surface);
	sim_do(machine_of(surface), &(struct sim_phase){ .kind = SIM_SLEEP, .ns = ns });
	enter(surface);
}

static void sim_op_yield_to_signal(struct surface *surface)
{
	enter(surface);
}

static const struct surface_file mapped = {
	.inode = 4711,
	.build_id = { 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 7, 11, 19, 29, 31, 37, 41, 43 },
	.build_id_size = 20,
};

static void sim_op_map_code(struct surface *surface, bool executable)
{
	enter(surface);
	struct tally_engine_mapping mapping = {
		.address = 0x7f1000000000u,
		.length = 4096,
		.file_offset = 0,
		.major = 8,
		.minor = 1,
		.inode = mapped.inode,
		.inode_generation = 1,
		.protection = executable ? PROT_READ | PROT_EXEC : PROT_READ,
		.flags = MAP_PRIVATE,
		.path = surface->ops->mapped_path(surface),
	};
	memcpy(mapping.build_id, mapped.build_id, sizeof(mapping.build_id));
	mapping.build_id_size = mapped.build_id_size;
	tally_engine_mmap_record(sim_engine_task(sim_current(machine_of(surface))), &mapping);
}

static int sim_op_mapped_file(struct surface *surface, struct surface_file *file)
{
	(void)surface;
	*file = mapped;
	return 0;
}

static const char *sim_op_mapped_path(struct surface *surface)
{
	(void)surface;
	return "/usr/lib/libmapped.so";
}

static int sim_op_set_comm(struct surface *surface, const char *comm)
{
	enter(surface);
	sim_set_comm(machine_of(surface), comm);
	return 0;
}

static void sim_op_hit(struct surface *surface, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		work(surface, TALLY_MODE_USER, 20, 200);
		enter(surface);
		sim_trace_syscall(machine_of(surface), 110);
	}
}

static uint64_t sim_op_watched_address(struct surface *surface, unsigned breakpoint_type)
{
	(void)surface;
	return breakpoint_type == TALLY_BREAKPOINT_X ? CODE_ADDRESS : DATA_ADDRESS;
}

static void sim_op_touch(struct surface *surface, unsigned breakpoint_type, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		work(surface, TALLY_MODE_USER, 20, 200);
		sim_touch(machine_of(surface), sim_op_watched_address(surface, breakpoint_type), 4,
			  breakpoint_type);
	}
}

static int sim_op_make(struct surface *surface, enum tally_sw event, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		work(surface, TALLY_MODE_USER, 50, 200);
		if (event == TALLY_SW_CONTEXT_SWITCHES)
			sim_op_sleep(surface, 1000);
		else if (event == TALLY_SW_CPU_MIGRATIONS)
			surface->ops->pin(surface, surface->ops->this_cpu(surface) == 0);
		else if (event == TALLY_SW_PAGE_FAULTS_MAJ)
			sim_fault(machine_of(surface), FAULT_BASE + 4096ull * i, 1, true);
		else
			sim_software(machine_of(surface), event, 1);
	}
	return 0;
}

enum { MADE_GROUP = 77 };

static int sim_op_make_cgroup(struct surface *surface, const char *name, uint64_t *id)
{
	char path[128];
	enter(surface);
	snprintf(path, sizeof(path), "/%s", name);
	*id = MADE_GROUP;
	tally_engine_cgroup_made(engine_of(surface), *id, path);
	return 0;
}

static const struct surface_ksymbol made_code = {
	.address = 0xffffffffc0001000u,
	.length = 96,
	.type = 2 /* OOL */,
	.name_start = "made_at_run_time",
};

static int sim_op_make_ksymbol(struct surface *surface, struct surface_ksymbol *symbol)
{
	enter(surface);
	if (symbol)
		*symbol = made_code;
	tally_engine_ksymbol(engine_of(surface), made_code.address, made_code.length,
			     made_code.type, !symbol, made_code.name_start);
	return 0;
}

static int sim_op_poke_text(struct surface *surface, struct surface_text_poke *poke)
{
	enter(surface);
	*poke = (struct surface_text_poke){ .address = 0xffffffff81003040u,
					    .old_bytes = { 0x66, 0x90 },
					    .old_length = 2,
					    .new_bytes = { 0xe9, 1, 2, 3, 4 },
					    .new_length = 5 };
	tally_engine_text_poke(engine_of(surface), poke->address, poke->old_bytes, poke->old_length,
			       poke->new_bytes, poke->new_length);
	return 0;
}

/* --- the system-call surface ---------------------------------------------- */

static int sim_op_open(struct surface *surface, const void *attr, pid_t pid, int cpu, int group,
		       unsigned long flags)
{
	enter(surface);
	return tally_engine_open(engine_of(surface), attr, pid, cpu, group, flags);
}

static ssize_t sim_op_read(struct surface *surface, int fd, void *bytes, size_t size)
{
	enter(surface);
	return tally_engine_read(engine_of(surface), fd, bytes, size);
}

static long sim_op_ioctl(struct surface *surface, int fd, unsigned long request, uintptr_t argument)
{
	enter(surface);
	return tally_engine_ioctl(engine_of(surface), fd, request, argument);
}

static void *sim_op_mmap(struct surface *surface, int fd, size_t size, int protection, int flags,
			 uint64_t offset, int *error)
{
	enter(surface);
	void *address = NULL;
	*error = tally_engine_mmap(engine_of(surface), fd, size, protection & PROT_WRITE,
				   flags & MAP_SHARED, offset, &address);
	return *error < 0 ? NULL : address;
}

static int sim_op_munmap(struct surface *surface, void *address, size_t size)
{
	enter(surface);
	return tally_engine_munmap(engine_of(surface), address, size);
}

static void wait_for(struct surface *surface, volatile uint32_t *word, uint64_t ns)
{
	struct surface_sim *sim = sim_of(surface);
	struct sim_task *self = sim_current(sim->machine);
	if (sim->waiter_count == WAITERS_MAX)
		abort();
	sim->waiters[sim->waiter_count++] = (struct waiter){ self, word };
	if (ns == SIM_NEVER)
		sim_do(sim->machine, &(struct sim_phase){ .kind = SIM_BLOCK });
	else
		sim_do(sim->machine, &(struct sim_phase){ .kind = SIM_SLEEP, .ns = ns });
	for (unsigned i = 0; i < sim->waiter_count; i++)
		if (sim->waiters[i].task == self) {
			sim->waiters[i] = sim->waiters[--sim->waiter_count];
			break;
		}
}

static void wake_waiters(struct surface_sim *sim, volatile uint32_t *word)
{
	for (unsigned i = 0; i < sim->waiter_count; i++)
		if (sim->waiters[i].word == word)
			sim_wake(sim->machine, sim->waiters[i].task);
}

static void on_wake(struct sim_machine *machine, struct tally_engine_file *file)
{
	(void)file;
	wake_waiters(machine->surface, NULL);
}

static int ask(struct surface *surface, struct pollfd *fds, unsigned count)
{
	int ready = 0;
	for (unsigned i = 0; i < count; i++) {
		struct tally_engine_file *file;
		int events = tally_engine_poll(engine_of(surface), fds[i].fd, &file);
		fds[i].revents = POLLNVAL;
		if (fds[i].fd < 0)
			fds[i].revents = 0;
		else if (events >= 0)
			fds[i].revents = (short)(events & (fds[i].events | POLLERR | POLLHUP));
		ready += fds[i].revents != 0;
	}
	return ready;
}

static int sim_op_poll(struct surface *surface, struct pollfd *fds, unsigned count, int timeout_ms)
{
	enter(surface);
	uint64_t end = timeout_ms < 0
			       ? SIM_NEVER
			       : sim_now(machine_of(surface)) + 1000000ull * (unsigned)timeout_ms;
	for (;;) {
		int ready = ask(surface, fds, count);
		uint64_t now = sim_now(machine_of(surface));
		if (ready || now >= end)
			return ready;
		wait_for(surface, NULL, end == SIM_NEVER ? SIM_NEVER : end - now);
	}
}

static int sim_op_fcntl(struct surface *surface, int fd, int command, long argument)
{
	enter(surface);
	return tally_engine_fcntl(engine_of(surface), fd, command, (uintptr_t)argument);
}

static int sim_op_close(struct surface *surface, int fd)
{
	enter(surface);
	return tally_engine_close(engine_of(surface), fd);
}

static int sim_op_prctl(struct surface *surface, int option)
{
	enter(surface);
	return tally_engine_prctl(engine_of(surface), option);
}

/* --- tasks ---------------------------------------------------------------- */

static pid_t sim_op_self(struct surface *surface)
{
	return sim_tid(sim_current(machine_of(surface)));
}

static pid_t sim_op_process(struct surface *surface)
{
	return sim_pid(sim_current(machine_of(surface)));
}

struct start {
	struct surface *surface;
	surface_body *body;
	void *argument;
};

static int run_start(struct sim_machine *machine, void *argument)
{
	struct start start = *(struct start *)argument;
	(void)machine;
	free(argument);
	work(start.surface, TALLY_MODE_USER, 100, 200);
	return start.body(start.surface, start.argument);
}

static struct sim_task *spawn(struct surface *surface, struct sim_task *parent,
			      enum surface_task_kind kind, surface_body *body, void *argument)
{
	struct start *start = malloc(sizeof(*start));
	*start = (struct start){ surface, body, argument };
	struct sim_task_spec spec = {
		.comm = parent ? NULL : "conformance",
		.program = sim_body_program,
		.data = sim_body_new(run_start, start),
		.release = sim_body_release,
		.cpu = -1,
		.thread = kind == SURFACE_THREAD,
		.waited_for = kind == SURFACE_PROCESS,
	};
	struct sim_task *task = sim_spawn(machine_of(surface), parent, &spec);
	if (!task) {
		sim_body_release(spec.data);
		free(start);
	}
	return task;
}

static pid_t sim_op_spawn(struct surface *surface, enum surface_task_kind kind, surface_body *body,
			  void *argument)
{
	enter(surface);
	struct sim_task *task = spawn(surface, sim_current(machine_of(surface)), kind, body,
				      argument);
	return task ? sim_tid(task) : -ENOMEM;
}

static int sim_op_wait(struct surface *surface, pid_t tid)
{
	int code;
	enter(surface);
	while (!sim_exited(machine_of(surface), tid, &code)) {
		if (!sim_find_task(machine_of(surface), tid))
			return -ECHILD;
		sim_do(machine_of(surface), &(struct sim_phase){ .kind = SIM_BLOCK });
	}
	sim_reap(machine_of(surface), tid);
	return code;
}

static int sim_op_exec(struct surface *surface, const char *comm, surface_body *body,
		       const void *argument, size_t size)
{
	unsigned char copy[256];
	memcpy(copy, argument, size);
	enter(surface);
	sim_exec(machine_of(surface), comm);
	int code = body(surface, size ? copy : (void *)(uintptr_t)argument);
	sim_do(machine_of(surface), &(struct sim_phase){ .kind = SIM_EXIT, .exit_code = code });
	return -EIO; /* not reached: the task has ended */
}

static int sim_op_drop_privileges(struct surface *surface)
{
	sim_drop_privileges(sim_current(machine_of(surface)));
	return 0;
}

static void sim_op_wait_while(struct surface *surface, volatile uint32_t *word, uint32_t value)
{
	while (*word == value) {
		enter(surface);
		if (*word == value)
			wait_for(surface, word, SIM_NEVER);
	}
}

static void sim_op_post(struct surface *surface, volatile uint32_t *word, uint32_t value)
{
	*word = value;
	enter(surface);
	wake_waiters(sim_of(surface), word);
}

static void *sim_op_shared(struct surface *surface, size_t size)
{
	struct surface_sim *sim = sim_of(surface);
	if (sim->memory_count == MEMORY_MAX)
		abort();
	return sim->memory[sim->memory_count++] = calloc(1, size);
}

static int sim_op_pin(struct surface *surface, int cpu)
{
	enter(surface);
	int code = sim_pin(machine_of(surface), sim_current(machine_of(surface)), cpu);
	enter(surface);
	return code;
}

static int sim_op_this_cpu(struct surface *surface)
{
	return (int)machine_of(surface)->cpu->number;
}

static int sim_op_cpus(struct surface *surface)
{
	return (int)sim_cpus_online(machine_of(surface));
}

/* --- asking --------------------------------------------------------------- */

static uint64_t sim_op_now(struct surface *surface)
{
	return sim_now(machine_of(surface));
}

static int sim_op_watch_signal(struct surface *surface, int signal)
{
	struct sim_signal_count *count = sim_signals(sim_current(machine_of(surface)), signal);
	if (!count)
		return -EINVAL;
	*count = (struct sim_signal_count){ 0 };
	return 0;
}

static unsigned sim_op_signals(struct surface *surface, int signal, int *last_code,
			       uint64_t *last_data)
{
	const struct sim_signal_count *count = sim_signals(sim_current(machine_of(surface)),
							   signal);
	if (last_code)
		*last_code = count->last_code;
	if (last_data)
		*last_data = count->last_data;
	return count->count;
}

static struct tally_trace_event *find_tracepoint(struct surface *surface, const char *name)
{
	static const char *const aliases[][2] = {
		{ "hit", "syscalls:sys_enter_getppid" }, { "weighted", "sched:sched_stat_runtime" },
		{ "tasked", "sched:sched_wakeup" }, { "addressed", "exceptions:page_fault_user" },
	};
	for (unsigned i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (!strcmp(name, aliases[i][0]))
			name = aliases[i][1];
	struct tally_trace_event *event = NULL;
	while ((event = tally_trace_next(engine_of(surface), event))) {
		size_t group = strlen(event->group);
		if (!strncmp(name, event->group, group) && name[group] == ':' &&
		    !strcmp(name + group + 1, event->name))
			break;
	}
	return event;
}

static long sim_op_tracepoint(struct surface *surface, const char *name)
{
	const struct tally_trace_event *event = find_tracepoint(surface, name);
	return event ? (long)event->id : -ENOENT;
}

static const char *sim_op_tracepoint_format(struct surface *surface, const char *name)
{
	struct surface_sim *sim = sim_of(surface);
	const struct tally_trace_event *event = find_tracepoint(surface, name);
	free(sim->format);
	sim->format = event ? malloc(8192) : NULL;
	if (sim->format)
		tally_trace_format(event, sim->format, 8192);
	return sim->format;
}

/* Returns the simulated machine's root group: host.cgroup_of_fd() accepts 5000 + id. */
static int sim_op_cgroup(struct surface *surface)
{
	(void)surface;
	return 5001;
}

static int sim_op_cgroup_id(struct surface *surface, int fd, uint64_t *id)
{
	(void)surface;
	*id = (uint64_t)(fd - 5000);
	return 0;
}

/* Returns a control group's descriptor: there are no other kinds of files. */
static int sim_op_other_file(struct surface *surface)
{
	return sim_op_cgroup(surface);
}

static int sim_op_pmu(struct surface *surface, const char *name)
{
	for (const struct tally_engine_pmu *pmu = NULL;
	     (pmu = tally_engine_pmu_next(engine_of(surface), pmu));)
		if (!strcmp(pmu->name, name) ||
		    (!strcmp(name, "hardware") && (pmu->capabilities & TALLY_PMU_GENERIC)))
			return (int)pmu->type;
	return -ENOENT;
}

static long sim_op_sysctl(struct surface *surface, const char *name)
{
	long value;
	int code = tally_engine_sysctl_get(engine_of(surface), name, &value);
	return code < 0 ? code : value;
}

static int sim_op_set_sysctl(struct surface *surface, const char *name, long value)
{
	return tally_engine_sysctl_set(engine_of(surface), name, value);
}

static int sim_op_read_counter(struct surface *surface, unsigned index, uint64_t *value)
{
	const struct sim_pmu_model *model = machine_of(surface)->model;
	return model->user_counter ? model->user_counter(machine_of(surface), index, value)
				   : -EOPNOTSUPP;
}

static int sim_op_counter_selector(struct surface *surface, const uint64_t *set, uint64_t *value)
{
	struct sim_cpu *cpu = machine_of(surface)->cpu;
	if (sim_op_sysctl(surface, "perf_user_access") != 1)
		return -EPERM; /* it traps */
	if (set)
		cpu->selector = *set;
	*value = cpu->selector;
	return 0;
}

static int sim_op_level(struct surface *surface)
{
	switch (sim_of(surface)->config.virtualisation) {
	case SIM_VHE:
		return SURFACE_LEVEL_VHE_HOST;
	case SIM_NON_VHE:
		return SURFACE_LEVEL_NON_VHE_HOST;
	default:
		return SURFACE_LEVEL_GUEST;
	}
}

/* Enters or leaves a guest as KVM does.  Without VHE, a hypervisor at EL2 runs before and after the
 * switch of the counters; a VHE host's kernel is itself at EL2. */
static void switch_guest(struct surface *surface, bool entering)
{
	bool vhe = sim_of(surface)->config.virtualisation == SIM_VHE;
	enum tally_engine_mode mode = vhe ? TALLY_MODE_KERNEL : TALLY_MODE_HYPERVISOR;
	work(surface, mode, CALL_INSTRUCTIONS, 200);
	sim_guest_switch(machine_of(surface), entering);
	work(surface, mode, CALL_INSTRUCTIONS, 200);
}

static int sim_op_run_guest(struct surface *surface, uint64_t kernel_iterations,
			    uint64_t user_iterations)
{
	enter(surface);
	switch_guest(surface, true);
	work(surface, TALLY_MODE_GUEST_KERNEL, 2 * kernel_iterations, 500);
	work(surface, TALLY_MODE_GUEST_USER, 2 * user_iterations, 500);
	switch_guest(surface, false);
	enter(surface);
	return 0;
}

static int sim_op_set_online(struct surface *surface, int cpu, bool online)
{
	struct sim_task *self = sim_current(machine_of(surface));
	enter(surface);
	/* a task that takes its own CPU offline first moves elsewhere */
	if (!online && (int)sim_task_cpu(self) == cpu && self->pinned < 0) {
		sim_op_pin(surface, cpu ? 0 : 1);
		sim_op_pin(surface, -1);
	}
	return sim_set_online(machine_of(surface), (unsigned)cpu, online);
}

static const struct surface_ops ops = {
	.name = "sim",
	.open = sim_op_open,
	.read = sim_op_read,
	.ioctl = sim_op_ioctl,
	.mmap = sim_op_mmap,
	.munmap = sim_op_munmap,
	.poll = sim_op_poll,
	.fcntl = sim_op_fcntl,
	.close = sim_op_close,
	.prctl = sim_op_prctl,
	.self = sim_op_self,
	.process = sim_op_process,
	.spawn = sim_op_spawn,
	.wait = sim_op_wait,
	.exec = sim_op_exec,
	.drop_privileges = sim_op_drop_privileges,
	.wait_while = sim_op_wait_while,
	.post = sim_op_post,
	.shared = sim_op_shared,
	.pin = sim_op_pin,
	.this_cpu = sim_op_this_cpu,
	.cpus = sim_op_cpus,
	.burn = sim_op_burn,
	.loop = sim_op_loop,
	.fault = sim_op_fault,
	.fault_address = sim_op_fault_address,
	.sleep = sim_op_sleep,
	.yield_to_signal = sim_op_yield_to_signal,
	.map_code = sim_op_map_code,
	.mapped_path = sim_op_mapped_path,
	.mapped_file = sim_op_mapped_file,
	.set_comm = sim_op_set_comm,
	.hit = sim_op_hit,
	.touch = sim_op_touch,
	.watched_address = sim_op_watched_address,
	.make = sim_op_make,
	.make_cgroup = sim_op_make_cgroup,
	.make_ksymbol = sim_op_make_ksymbol,
	.poke_text = sim_op_poke_text,
	.now = sim_op_now,
	.watch_signal = sim_op_watch_signal,
	.signals = sim_op_signals,
	.tracepoint = sim_op_tracepoint,
	.tracepoint_format = sim_op_tracepoint_format,
	.cgroup = sim_op_cgroup,
	.cgroup_id = sim_op_cgroup_id,
	.other_file = sim_op_other_file,
	.pmu = sim_op_pmu,
	.sysctl = sim_op_sysctl,
	.set_sysctl = sim_op_set_sysctl,
	.set_online = sim_op_set_online,
	.read_counter = sim_op_read_counter,
	.counter_selector = sim_op_counter_selector,
	.level = sim_op_level,
	.run_guest = sim_op_run_guest,
};

static unsigned features_of(const struct sim_pmu_model *model)
{
	unsigned features = SURFACE_BREAKPOINTS | SURFACE_TRACEPOINTS | SURFACE_PRIVILEGED |
			    SURFACE_TWO_CPUS | SURFACE_MAY_SET_SYSCTLS | SURFACE_HOTPLUG |
			    SURFACE_EXACT_TIME | SURFACE_AUX;
	if (!model->init)
		return features;
	features |= SURFACE_HARDWARE;
	if (model->user_counter)
		features |= SURFACE_USER_COUNTERS;
	if (model->architecture == &sim_x86_64)
		features |= SURFACE_X86_PMU;
	if (model->architecture == &sim_aarch64)
		features |= SURFACE_ARM_PMU;
	if (model->core_types > 1)
		features |= SURFACE_HETEROGENEOUS;
	return features;
}

/* "arm64", or on a host that enters guests "arm64-vhe" or "arm64-non-vhe". */
static const char *split_model(const char *model, enum sim_virtualisation *virtualisation)
{
	static const struct {
		const char *name, *model;
		enum sim_virtualisation virtualisation;
	} hosts[] = {
		{ "arm64-vhe", "arm64", SIM_VHE },
		{ "arm64-non-vhe", "arm64", SIM_NON_VHE },
		{ "arm64-32-vhe", "arm64-32", SIM_VHE },
		{ "arm64-32-non-vhe", "arm64-32", SIM_NON_VHE },
	};
	for (unsigned i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
		if (!strcmp(model, hosts[i].name)) {
			*virtualisation = hosts[i].virtualisation;
			return hosts[i].model;
		}
	const struct sim_pmu_model *found = sim_pmu_model(model);
	*virtualisation = found && found->hosts_guests ? SIM_IN_GUEST : SIM_NOT_VIRTUAL;
	return model;
}

struct surface *surface_sim(const char *model)
{
	enum sim_virtualisation virtualisation;
	model = split_model(model, &virtualisation);
	const struct sim_pmu_model *pmu = sim_pmu_model(model);
	struct surface_sim *sim = pmu ? calloc(1, sizeof(*sim)) : NULL;
	if (!sim)
		return NULL;
	sim->surface = (struct surface){ .ops = &ops,
					 .features = features_of(pmu),
					 .page_size = 4096,
					 .hardware_counters = pmu->counters,
					 .raw_instructions = pmu->raw_instructions,
					 .sp_register = pmu->architecture->sp_register,
					 .pc_register = pmu->architecture->pc_register };
	if (virtualisation == SIM_VHE || virtualisation == SIM_NON_VHE)
		sim->surface.features |= SURFACE_VIRTUALISATION;
	sim->config = (struct sim_config){ .cpus = 4, .model = model, .seed = 1, .balance = true,
					  .virtualisation = virtualisation };
	return &sim->surface;
}

void surface_sim_free(struct surface *surface)
{
	free(surface ? sim_of(surface)->format : NULL);
	free(surface ? sim_of(surface) : NULL);
}

static int run_machine(struct surface_sim *sim, surface_body *body, void *argument)
{
	sim->machine = sim_new(&sim->config);
	if (!sim->machine)
		return -ENODEV;
	sim->machine->surface = sim;
	sim->machine->on_wake = on_wake;
	struct sim_task *first = spawn(&sim->surface, NULL, SURFACE_PROCESS, body, argument);
	int32_t tid = sim_tid(first);
	unsigned left = sim_run(sim->machine, sim_now(sim->machine) + 100000000000u);
	int code = -ETIMEDOUT;
	sim_exited(sim->machine, tid, &code);
	if (left)
		printf("# %u tasks were left at %.3f s\n", left,
		       (double)sim_now(sim->machine) / 1e9);
	sim_free(sim->machine);
	for (unsigned i = 0; i < sim->memory_count; i++)
		free(sim->memory[i]);
	fflush(stdout);
	return code;
}

int surface_sim_run(struct surface *surface, surface_body *body, void *argument, unsigned timeout_s)
{
	fflush(stdout);
	pid_t child = fork(); /* a clause that crashes the machine must not end the others */
	if (child < 0)
		return -errno;
	if (child == 0) {
		alarm(timeout_s);
		int code = run_machine(sim_of(surface), body, argument);
		_exit(code < 0 ? 127 : code);
	}
	int status;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (!WIFEXITED(status))
		return 128 + WTERMSIG(status);
	return WEXITSTATUS(status) == 127 ? -ETIMEDOUT : WEXITSTATUS(status);
}
