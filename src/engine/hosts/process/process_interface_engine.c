/* The interface's engine of a thread: its table, what it is told, and the calls on its events.
 *
 * As for the plan's engine (process_host.c), its clock is the thread's CPU time.  Faults, switches
 * and migrations are told when the thread makes a call on an event: what happened since the last
 * call counts then.  What happens during a call is this object's own, and is left out. */
#include "process/process_interface.h"
#include "process/process_usage.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

enum {
	TICK_NS = 4000000,
	PAGE = 4096,
	CPUS_MAX = 1024
};
enum { SET_SIGNAL = 10, GET_SIGNAL, SET_OWNER_EX = 15, GET_OWNER_EX }; /* fcntl's, for GNU only */

#define MAPPINGS (TALLY_ATTR_MMAP | TALLY_ATTR_MMAP2 | TALLY_ATTR_MMAP_DATA)

static struct process_interface *part_of(void *host)
{
	return ((struct process_thread *)host)->interface;
}

/* --- the engine's table --------------------------------------------------- */

static unsigned this_cpu(void *host)
{
	return part_of(host)->this_cpu;
}

static struct tally_engine_task *current_task(void *host)
{
	const struct process_interface *interface = part_of(host);
	if (interface->this_cpu != interface->on_cpu)
		return NULL;
	return interface->task;
}

/* F_SETOWN only asks whether there is such a task; opening names no other task here. */
static struct tally_engine_task *find_task(void *host, int32_t tid)
{
	if (process_call(SYS_kill, tid, 0) == -ESRCH)
		return NULL;
	return part_of(host)->task;
}

/* No other CPU runs anything of this engine, so the thread stands for it. */
static int run_on(void *host, unsigned cpu, void (*function)(void *), void *argument)
{
	struct process_interface *interface = part_of(host);
	unsigned this_cpu = interface->this_cpu;
	interface->this_cpu = cpu;
	function(argument);
	interface->this_cpu = this_cpu;
	return 0;
}

static bool capable(void *host, enum tally_engine_capability capability)
{
	enum { IPC_LOCK = 14, SYS_ADMIN = 21, PERFMON = 38 };
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };
	if (part_of(host)->inherits)
		return true;
	if (part_of(host)->cpu_event && capability == TALLY_CAPABLE_PERFMON)
		return false;
	if (process_call(SYS_capget, &header, data))
		return false;
	uint64_t effective = data[0].effective | (uint64_t)data[1].effective << 32;
	if (capability == TALLY_CAPABLE_IPC_LOCK)
		return effective >> IPC_LOCK & 1;
	if (capability == TALLY_CAPABLE_PERFMON && effective >> PERFMON & 1)
		return true;
	return effective >> SYS_ADMIN & 1;
}

/* The kernel answers EBADF for descriptors of anything but a directory of a control group's. */
static int cgroup_of_fd(void *host, int fd, uint64_t *id)
{
	enum { CGROUP2 = 0x63677270 };
	struct statfs about;
	struct stat file;
	(void)host;
	if (process_call(SYS_fstatfs, fd, &about) || about.f_type != CGROUP2 ||
	    process_call(SYS_fstat, fd, &file))
		return -EBADF;
	*id = file.st_ino;
	return 0;
}

static bool in_cgroup(void *host, struct tally_engine_task *task, uint64_t id)
{
	(void)host, (void)task, (void)id;
	return false;
}

static void pend(void *host)
{
	part_of(host)->pending = true;
}

/* The files of all events wake together: waiters look again. */
static void wake(void *host, struct tally_engine_file *file)
{
	const struct process_interface *interface = part_of(host);
	(void)file;
	for (unsigned i = 0, left = interface->open_events; left && i < INTERFACE_OPEN; i++) {
		if (!interface->events[i])
			continue;
		interface_wake(&interface_pool->events[interface->events[i] - 1]);
		left--;
	}
}

/* Signals are sent when the call is over, as the kernel sends them before the program goes on. */
static void queue_signal(void *host, const struct tally_engine_signal *signal)
{
	struct process_interface *interface = part_of(host);
	if (interface->signal_count == INTERFACE_SIGNALS)
		return;
	unsigned at = interface->signal_count++;
	interface->signals[at].number = signal->number;
	interface->signals[at].code = signal->code;
	interface->signals[at].fd = -1;
	if (signal->fd >= 0 && signal->fd < INTERFACE_OPEN)
		interface->signals[at].fd = interface->signal_fds[signal->fd];
	interface->signals[at].owner = signal->owner;
	interface->signals[at].type = signal->owner_type;
	interface->signals[at].data = signal->data;
	interface->signals[at].event_type = signal->type;
	interface->signals[at].address = signal->address;
}

/* Periods begin when the event is enabled, as the kernel's do, and not at random.  A tracer would
 * see each sample's signal as a stop of its child: so a traced thread has no samples. */
static void timer_start(void *host, struct tally_engine_timer *timer)
{
	if (part_of(host)->is_traced)
		return;
	timer->host_words[0] = 1;
	part_of(host)->starts_timer = true;
	process_timer_engine_start(host, timer);
}

/* --- memory --------------------------------------------------------------- */

static void *allocate(void *host, size_t size)
{
	return process_heap_allocate(&part_of(host)->heap, size);
}

static void release(void *host, void *memory, size_t size)
{
	process_heap_release(&part_of(host)->heap, memory, size);
}

/* The pages of a ring are those of the event's memfd, emptied unless its records go on. */
static void *allocate_pages(void *host, size_t pages)
{
	int fd = part_of(host)->ring_fd;
	if (fd < 0)
		return NULL;
	if (!part_of(host)->ring_goes_on &&
	    (process_call(SYS_ftruncate, fd, 0) || process_call(SYS_ftruncate, fd, pages * PAGE)))
		return NULL;
	long map = process_call(SYS_mmap, NULL, pages * PAGE, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_POPULATE, fd, 0);
	if (map < 0 && map > -4096)
		return NULL;
	process_call(SYS_madvise, map, pages * PAGE, MADV_DONTFORK);
	return (void *)map;
}

static void release_pages(void *host, void *memory, size_t pages)
{
	(void)host;
	process_call(SYS_munmap, memory, pages * PAGE);
}

static size_t locked_limit(void)
{
	struct rlimit limit = { 0 };
	if (process_call(SYS_prlimit64, 0, RLIMIT_MEMLOCK, NULL, &limit) ||
	    limit.rlim_cur == RLIM_INFINITY)
		return SIZE_MAX;
	return (size_t)limit.rlim_cur / PAGE;
}

/* The limit holds for each thread's events together. */
static int charge_locked(void *host, size_t pages)
{
	struct process_interface *interface = part_of(host);
	if (pages > locked_limit() - interface->locked_pages)
		return -EPERM;
	interface->locked_pages += pages;
	return 0;
}

static void uncharge_locked(void *host, size_t pages)
{
	part_of(host)->locked_pages -= pages;
}

/* --- life ----------------------------------------------------------------- */

struct process_interface *interface_of(struct process_thread *thread)
{
	if (thread->interface)
		return thread->interface;
	if (process_agent.is_ending || interface_pool_make())
		return NULL;
	long map = process_call(SYS_mmap, NULL, sizeof(struct process_interface) + INTERFACE_HEAP,
				PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				-1, 0);
	if (map < 0 && map > -4096)
		return NULL;
	struct process_interface *interface = (struct process_interface *)map;
	interface->heap.memory = (uint8_t *)(interface + 1);
	interface->heap.size = INTERFACE_HEAP;
	interface->heap.used = (size_t)-(uintptr_t)interface->heap.memory % 64;
	interface->thread = thread;
	interface->ring_fd = -1;
	interface->self = interface_task_find(thread->tid, NULL);
	thread->interface = interface;
	return interface;
}

/* Settings of the kernel that programs may depend on; their files may be missing. */
static void copy_setting(struct tally_engine *engine, const char *name, const char *path)
{
	char text[24] = { 0 };
	long value = 0, fd = process_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	long length = process_call(SYS_read, fd, text, sizeof(text) - 1);
	process_call(SYS_close, fd);
	for (long i = 0; i < length && text[i] >= '0' && text[i] <= '9'; i++)
		value = value * 10 + text[i] - '0';
	if (length > 0 && text[0] >= '0' && text[0] <= '9')
		tally_engine_sysctl_set(engine, name, value);
}

/* Returns the number of CPUs that the machine may have: "0-3" in the kernel's file. */
static unsigned possible_cpus(void)
{
	char text[64] = { 0 };
	unsigned last = 0;
	long fd = process_call(SYS_openat, AT_FDCWD, "/sys/devices/system/cpu/possible",
			       O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		process_call(SYS_read, fd, text, sizeof(text) - 1);
		process_call(SYS_close, fd);
	}
	for (const char *at = text; *at; at++) {
		if (*at < '0' || *at > '9')
			last = 0;
		else
			last = last * 10 + (unsigned)(*at - '0');
		if (at[1] == '\n')
			break;
	}
	return last + 1 < CPUS_MAX ? last + 1 : CPUS_MAX;
}

static void note_usage(struct process_interface *interface);

static unsigned present_cpu(const struct process_interface *interface)
{
	unsigned cpu = (unsigned)sched_getcpu();
	return cpu < interface->cpus ? cpu : 0;
}

void interface_look_for_tracer(struct process_interface *interface)
{
	static const char key[] = "TracerPid:\t";
	char *text = interface->path;
	long fd = process_call(SYS_openat, AT_FDCWD, "/proc/thread-self/status",
			       O_RDONLY | O_CLOEXEC);
	interface->is_traced = false;
	if (fd < 0)
		return;
	long length = process_call(SYS_read, fd, text, sizeof(interface->path) - 1);
	process_call(SYS_close, fd);
	text[length > 0 ? length : 0] = '\0';
	const char *tracer = strstr(text, key);
	interface->is_traced = tracer && tracer[sizeof(key) - 1] != '0';
}

static int engine_make(struct process_interface *interface)
{
	struct process_thread *thread = interface->thread;
	interface->cpus = possible_cpus();
	interface->on_cpu = interface->this_cpu = present_cpu(interface);
	struct tally_engine_host table = process_host_table(thread);
	table.cpus = interface->cpus;
	table.this_cpu = this_cpu;
	table.current_task = current_task;
	table.find_task = find_task;
	table.run_on = run_on;
	table.allocate = allocate;
	table.release = release;
	table.allocate_pages = allocate_pages;
	table.release_pages = release_pages;
	table.charge_locked = charge_locked;
	table.uncharge_locked = uncharge_locked;
	table.capable = capable;
	table.cgroup_of_fd = cgroup_of_fd;
	table.in_cgroup = in_cgroup;
	table.pend = pend;
	table.wake = wake;
	table.signal = queue_signal;
	table.timer_start = timer_start;
	table.callchain = process_sample_frames;
	struct tally_engine_identity identity = thread->identity;
	process_call(SYS_prctl, PR_GET_NAME, identity.comm);
	interface->engine = tally_engine_new(&table);
	if (interface->engine)
		interface->process = tally_engine_process_new(interface->engine, thread->pid);
	if (interface->process)
		interface->task = tally_engine_task_new(interface->process, &identity, NULL);
	if (!interface->task) {
		interface->engine = NULL;
		return -ENOMEM;
	}
	tally_engine_switch_in(interface->engine, NULL, interface->task);
	interface_look_for_tracer(interface);
	copy_setting(interface->engine, "perf_event_max_sample_rate",
		     "/proc/sys/kernel/perf_event_max_sample_rate");
	copy_setting(interface->engine, "perf_event_mlock_kb",
		     "/proc/sys/kernel/perf_event_mlock_kb");
	copy_setting(interface->engine, "perf_event_max_stack",
		     "/proc/sys/kernel/perf_event_max_stack");
	note_usage(interface);
	return 0;
}

/* --- what the thread did -------------------------------------------------- */

static bool counts_usage(const struct tally_attr *attr)
{
	return attr->type == TALLY_TYPE_SOFTWARE && attr->config != TALLY_SW_CPU_CLOCK &&
	       attr->config != TALLY_SW_TASK_CLOCK && attr->config != TALLY_SW_DUMMY;
}

static void note_usage(struct process_interface *interface)
{
	struct rusage usage = { 0 };
	process_call(SYS_getrusage, RUSAGE_THREAD, &usage);
	interface->minor_faults = (uint64_t)usage.ru_minflt;
	interface->major_faults = (uint64_t)usage.ru_majflt;
	interface->switches = (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw;
	if (interface->migration_events)
		interface->migrations = process_usage_migrations(interface->migrations);
}

/* SIGTRAP's siginfo: si_perf_data and si_perf_type follow si_addr; not every libc has names for
 * them. */
static void send_trap(const struct process_interface *interface, unsigned at)
{
	siginfo_t info = { .si_signo = interface->signals[at].number,
			   .si_code = interface->signals[at].code };
	const unsigned long data = (unsigned long)interface->signals[at].data;
	info.si_addr = (void *)(uintptr_t)interface->signals[at].address;
	memcpy((char *)&info.si_addr + sizeof(void *), &data, sizeof(data));
	memcpy((char *)&info.si_addr + sizeof(void *) + sizeof(data),
	       &interface->signals[at].event_type, sizeof(uint32_t));
	process_call(SYS_rt_tgsigqueueinfo, interface->thread->pid, interface->thread->tid,
		     info.si_signo, &info);
}

static void send_signal(const struct process_interface *interface, unsigned at)
{
	enum { TID, PID, GROUP, BAND_IN = 1 | 64, BAND_HANG_UP = 16 };
	int owner = interface->signals[at].owner;
	siginfo_t info = { .si_signo = interface->signals[at].number,
			   .si_code = interface->signals[at].code };
	info.si_fd = interface->signals[at].fd;
	info.si_band = info.si_code == POLL_HUP ? BAND_HANG_UP : BAND_IN;
	if (info.si_signo == SIGTRAP && interface->signals[at].fd < 0)
		send_trap(interface, at);
	else if (owner < 0)
		process_call(SYS_kill, owner, info.si_signo);
	else if (owner && interface->signals[at].type == TID)
		process_call(SYS_rt_tgsigqueueinfo, interface->thread->pid, owner, info.si_signo,
			     &info);
	else if (owner)
		process_call(SYS_rt_sigqueueinfo, owner, info.si_signo, &info);
}

static void send_signals(struct process_interface *interface)
{
	for (unsigned i = 0; i < interface->signal_count; i++)
		send_signal(interface, i);
	interface->signal_count = 0;
}

void interface_run_pending(struct process_interface *interface)
{
	while (interface->pending) {
		interface->pending = false;
		tally_engine_run_pending(interface->engine);
	}
	send_signals(interface);
}

/* Each hit is told by itself if an event samples it: the limit of samples a tick is for hits that
 * weigh more. */
static void tell(struct process_interface *interface, enum tally_sw event, uint64_t count)
{
	static const struct tally_engine_regs in_kernel = { .mode = TALLY_MODE_KERNEL };
	static const struct tally_engine_regs in_user = { .mode = TALLY_MODE_USER };
	bool is_fault = event == TALLY_SW_PAGE_FAULTS || event == TALLY_SW_PAGE_FAULTS_MIN ||
			event == TALLY_SW_PAGE_FAULTS_MAJ;
	uint64_t each = interface->usage_samples ? 1 : count;
	for (; count; count -= each) {
		tally_engine_software(interface->engine, event, each,
				      is_fault ? &in_user : &in_kernel, 0);
		interface_run_pending(interface);
	}
}

/* A fault hits events of both kinds before the next fault: one's sample may disable its group. */
static void tell_faults(struct process_interface *interface, enum tally_sw kind, uint64_t count)
{
	uint64_t each = interface->usage_samples ? 1 : count;
	for (; count; count -= each) {
		tell(interface, TALLY_SW_PAGE_FAULTS, each);
		tell(interface, kind, each);
	}
}

static void tell_usage(struct process_interface *interface)
{
	struct rusage usage = { 0 };
	process_call(SYS_getrusage, RUSAGE_THREAD, &usage);
	uint64_t minor = (uint64_t)usage.ru_minflt - interface->minor_faults;
	uint64_t major = (uint64_t)usage.ru_majflt - interface->major_faults;
	tell_faults(interface, TALLY_SW_PAGE_FAULTS_MIN, minor);
	tell_faults(interface, TALLY_SW_PAGE_FAULTS_MAJ, major);
	uint64_t switches = (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw;
	if (switches > interface->switches)
		tell(interface, TALLY_SW_CONTEXT_SWITCHES, switches - interface->switches);
	interface->minor_faults += minor;
	interface->major_faults += major;
	interface->switches = switches;
	if (!interface->migration_events)
		return;
	uint64_t migrations = process_usage_migrations(interface->migrations);
	if (migrations > interface->migrations)
		tell(interface, TALLY_SW_CPU_MIGRATIONS, migrations - interface->migrations);
	interface->migrations = migrations;
}

/* The engine follows the thread to another CPU.  Its switch counts itself, and so does the
 * migration: they are among those that the kernel has counted. */
static void move(struct process_interface *interface)
{
	unsigned cpu = present_cpu(interface);
	if (cpu == interface->on_cpu)
		return;
	struct tally_engine *engine = interface->engine;
	struct tally_engine_task *task = interface->task;
	tally_engine_switch_out(engine, task, NULL, true);
	interface->task = NULL;
	tally_engine_migrate(task, cpu);
	interface->on_cpu = interface->this_cpu = cpu;
	interface->task = task;
	tally_engine_switch_in(engine, NULL, task);
	interface->switches++;
	interface->migrations++;
}

/* A leader's close leaves members that the engine, like the kernel, schedules in at the next switch
 * of the thread.  This switch counts itself. */
static void switch_again(struct process_interface *interface)
{
	struct rusage usage = { 0 };
	struct tally_engine_task *task = interface->task;
	process_call(SYS_getrusage, RUSAGE_THREAD, &usage);
	if ((uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw == interface->switches)
		return;
	interface->awaits_switch = false;
	tally_engine_switch_out(interface->engine, task, NULL, true);
	tally_engine_switch_in(interface->engine, NULL, task);
	interface->switches++;
}

static void tick(struct process_interface *interface)
{
	uint64_t now = process_clock_ns(interface->thread);
	if (now - interface->tick_ns < TICK_NS)
		return;
	interface->tick_ns = now;
	enum tally_engine_level level = interface->thread->level;
	const struct tally_engine_regs regs = { .mode = TALLY_MODE_USER };
	interface->thread->level = TALLY_LEVEL_HARDIRQ;
	tally_engine_tick(interface->engine, &regs);
	interface->thread->level = level;
}

/* The name may have been changed by another thread, or through /proc. */
static void look_at_name(struct process_interface *interface)
{
	char comm[16] = { 0 };
	process_call(SYS_prctl, PR_GET_NAME, comm);
	if (!memcmp(comm, tally_engine_task_identity(interface->task)->comm, sizeof(comm)))
		return;
	tally_engine_comm(interface->task, comm);
	interface->renames++;
}

void interface_catch_up(struct process_interface *interface)
{
	if (!interface->open_events)
		return;
	tick(interface);
	move(interface);
	if (interface->awaits_switch)
		switch_again(interface);
	if (interface->usage_events)
		tell_usage(interface);
	if (interface->mapping_events)
		interface_maps_look(interface, 0);
	if (interface->comm_events)
		look_at_name(interface);
	interface_run_pending(interface);
}

void interface_settle(struct process_interface *interface)
{
	if (!interface->engine)
		return;
	interface_run_pending(interface);
	if (interface->usage_events)
		note_usage(interface);
}

/* --- calls ---------------------------------------------------------------- */

/* Returns the entry of an event of this thread's engine.  NULL: there is none any more: another
 * process has closed the event while this thread could not be asked. */
static struct interface_event *entry_of(struct process_interface *interface, int descriptor)
{
	if (descriptor < 0 || descriptor >= INTERFACE_OPEN || !interface->events[descriptor])
		return NULL;
	struct interface_event *event = &interface_pool->events[interface->events[descriptor] - 1];
	if (!interface_is_used(event) || event->serial != interface->serials[descriptor])
		return NULL;
	return event;
}

/* A whole CPU is refused as the kernel refuses it to users without privilege.  The kernel looks at
 * the user's privilege for other things, too, and earlier: level 1 permits those. */
static int open_once(struct process_interface *interface, const struct interface_call *call)
{
	static const char paranoid[] = "perf_event_paranoid";
	struct tally_engine *engine = interface->engine;
	const struct tally_attr *attr = (const struct tally_attr *)(const void *)call->text;
	int cpu = (int)call->arguments[0], leader = (int)call->arguments[1];
	unsigned long flags = (unsigned long)call->arguments[2];
	long level = 0;
	if (call->arguments[3] != -1)
		return tally_engine_open(engine, attr, 0, cpu, leader, flags);
	tally_engine_sysctl_get(engine, paranoid, &level);
	if (capable(interface->thread, TALLY_CAPABLE_PERFMON))
		tally_engine_sysctl_set(engine, paranoid, 1);
	interface->cpu_event = true;
	int result = tally_engine_open(engine, attr, (int32_t)call->arguments[4], cpu, leader,
				       flags);
	interface->cpu_event = false;
	tally_engine_sysctl_set(engine, paranoid, level);
	return result;
}

/* Closes the events of processes that were killed: no process has them open. */
static void sweep(struct process_interface *interface)
{
	interface_reap();
	for (int i = 0; i < INTERFACE_OPEN; i++) {
		if (!interface->events[i] || entry_of(interface, i))
			continue;
		tally_engine_close(interface->engine, i);
		interface->events[i] = 0;
		interface->open_events--;
	}
}

static int open_in_engine(struct process_interface *interface, const struct interface_call *call)
{
	int fd = open_once(interface, call);
	if (fd != -EMFILE && fd != -ENOMEM)
		return fd;
	sweep(interface);
	return open_once(interface, call);
}

int interface_try_open(struct process_interface *interface, const struct interface_call *call)
{
	int error = interface->engine ? 0 : engine_make(interface);
	if (error)
		return error;
	int fd = open_in_engine(interface, call);
	if (fd < 0)
		return fd;
	tally_engine_close(interface->engine, fd);
	return 0;
}

static void open_event(struct process_interface *interface, struct interface_call *call)
{
	struct tally_engine *engine = interface->engine;
	int fd = open_in_engine(interface, call);
	call->result = fd;
	if (fd < 0)
		return;
	if (fd >= INTERFACE_OPEN) {
		tally_engine_close(engine, fd);
		call->result = -EMFILE;
		return;
	}
	struct tally_engine_values values;
	tally_engine_set_id(engine, fd, call->event_id);
	tally_engine_values(engine, fd, &values);
	struct interface_event *event = &interface_pool->events[call->event];
	event->attr = values.attr;
	event->flags = values.attr.flags;
	event->read_format = values.attr.read_format;
	event->cpu = (int32_t)call->arguments[0];
	event->descriptor = fd;
	event->pid = interface->thread->pid;
	event->tid = interface->thread->tid;
	event->enabled = !(values.attr.flags & TALLY_ATTR_DISABLED);
	if (call->arguments[2] & TALLY_FLAG_FD_OUTPUT && call->arguments[1] >= 0)
		event->output = interface->events[call->arguments[1]];
	interface->events[fd] = call->event + 1;
	interface->serials[fd] = event->serial;
	interface->open_events++;
	if (event->flags & MAPPINGS && !interface->mapping_events++ && !event->goes_on)
		interface_maps_read(interface, false);
	interface->comm_events += (event->flags & TALLY_ATTR_COMM) != 0;
	if (!counts_usage(&values.attr))
		return;
	interface->migration_events += values.attr.config == TALLY_SW_CPU_MIGRATIONS;
	interface->usage_events++;
	note_usage(interface);
	interface->usage_samples += values.attr.sample_period != 0;
}

static void publish(struct process_interface *interface, int descriptor)
{
	struct interface_event *event = entry_of(interface, descriptor);
	struct tally_engine_values values;
	if (!event || tally_engine_values(interface->engine, descriptor, &values))
		return;
	event->own = (struct interface_values){ values.count, values.enabled_ns, values.running_ns,
						values.lost };
	event->attr = values.attr;
	event->enabled = values.enabled;
}

void interface_publish(struct process_interface *interface)
{
	for (int i = 0; i < INTERFACE_OPEN; i++)
		if (interface->events[i])
			publish(interface, i);
}

static bool has_members(const struct interface_event *leader)
{
	unsigned number = (unsigned)(leader - interface_pool->events) + 1;
	for (unsigned i = 0; i < interface_pool->events_used; i++) {
		const struct interface_event *event = &interface_pool->events[i];
		if (event != leader && event->leader == number && !event->parent &&
		    interface_is_used(event))
			return true;
	}
	return false;
}

static void close_event(struct process_interface *interface, struct interface_call *call)
{
	const struct interface_event *event = entry_of(interface, call->descriptor);
	if (event && has_members(event))
		interface->awaits_switch = true;
	if (event && counts_usage(&event->attr)) {
		interface->usage_events--;
		interface->migration_events -= event->attr.config == TALLY_SW_CPU_MIGRATIONS;
		interface->usage_samples -= event->attr.sample_period != 0;
	}
	if (event) {
		interface->open_events--;
		interface->mapping_events -= (event->flags & MAPPINGS) != 0;
		interface->comm_events -= (event->flags & TALLY_ATTR_COMM) != 0;
		interface->events[call->descriptor] = 0;
	}
	call->result = tally_engine_close(interface->engine, call->descriptor);
}

/* Requests whose argument points to memory have it in the call. */
static void control(struct process_interface *interface, struct interface_call *call)
{
	unsigned long request = (unsigned long)call->arguments[0];
	uintptr_t argument = (uintptr_t)call->arguments[1];
	if (request == TALLY_IOC_ID)
		argument = (uintptr_t)call->answer;
	else if (request == TALLY_IOC_PERIOD || request == TALLY_IOC_SET_FILTER ||
		 request == TALLY_IOC_MODIFY_ATTRIBUTES || request == TALLY_IOC_QUERY_BPF)
		argument = (uintptr_t)call->text;
	call->result = tally_engine_ioctl(interface->engine, call->descriptor, request, argument);
	struct interface_event *event = entry_of(interface, call->descriptor);
	if (request == TALLY_IOC_SET_OUTPUT && !call->result && event)
		event->output = (int)argument < 0 ? 0 : interface->events[(int)argument];
}

/* Notes the settings of the file, for the thread's next program. */
static void note_file(struct process_interface *interface, int descriptor)
{
	struct interface_event *event = entry_of(interface, descriptor);
	struct tally_engine *engine = interface->engine;
	int32_t owner[2] = { 0 };
	if (!event)
		return;
	tally_engine_fcntl(engine, descriptor, GET_OWNER_EX, (uintptr_t)owner);
	event->file.set = true;
	event->file.flags = tally_engine_fcntl(engine, descriptor, F_GETFL, 0);
	event->file.signal = tally_engine_fcntl(engine, descriptor, GET_SIGNAL, 0);
	event->file.owner_type = owner[0];
	event->file.owner = owner[1];
	event->file.signal_fd = interface->signal_fds[descriptor];
}

static void restore_file(struct process_interface *interface, const struct interface_event *event)
{
	struct tally_engine *engine = interface->engine;
	int fd = event->descriptor;
	const int32_t owner[2] = { event->file.owner_type, event->file.owner };
	if (!event->file.set)
		return;
	interface->signal_fds[fd] = event->file.signal_fd;
	tally_engine_fcntl(engine, fd, SET_OWNER_EX, (uintptr_t)owner);
	tally_engine_fcntl(engine, fd, SET_SIGNAL, (uintptr_t)event->file.signal);
	tally_engine_fcntl(engine, fd, F_SETFL, (uintptr_t)event->file.flags);
}

long interface_stand_in(struct process_interface *interface, const struct interface_event *event,
			struct interface_call *call)
{
	struct tally_attr attr = event->attr;
	int error = interface->engine ? 0 : engine_make(interface);
	if (error)
		return error;
	attr.flags |= TALLY_ATTR_DISABLED;
	attr.flags &= ~(uint64_t)TALLY_ATTR_ENABLE_ON_EXEC;
	interface->inherits = true;
	int fd = tally_engine_open(interface->engine, &attr, 0, -1, -1, 0);
	interface->inherits = false;
	if (fd < 0)
		return fd;
	call->descriptor = fd;
	control(interface, call);
	tally_engine_close(interface->engine, fd);
	return call->result;
}

static void control_file(struct process_interface *interface, struct interface_call *call)
{
	int command = (int)call->arguments[0];
	uintptr_t argument = (uintptr_t)call->arguments[1];
	if (command == F_SETFL && argument & O_ASYNC)
		interface->signal_fds[call->descriptor] = (int)call->arguments[2];
	if (command == SET_OWNER_EX)
		argument = (uintptr_t)call->text;
	if (command == GET_OWNER_EX)
		argument = (uintptr_t)call->answer;
	call->result = tally_engine_fcntl(interface->engine, call->descriptor, command, argument);
	if (call->result >= 0)
		note_file(interface, call->descriptor);
}

/* Opens a memfd of another process. */
static int open_ring(int32_t pid, int fd)
{
	static const char prefix[] = "/proc/";
	char path[64], *end = path + sizeof(prefix) - 1;
	memcpy(path, prefix, sizeof(prefix));
	const int numbers[2] = { pid, fd };
	for (unsigned i = 0; i < 2; i++) {
		char digits[20];
		unsigned count = 0;
		for (int left = numbers[i]; left || !count; left /= 10)
			digits[count++] = (char)('0' + left % 10);
		while (count)
			*end++ = digits[--count];
		memcpy(end, "/fd/", 4);
		end += i ? 0 : 4;
	}
	*end = '\0';
	return (int)process_call(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
}

static void map_ring(struct process_interface *interface, struct interface_call *call)
{
	void *address = NULL;
	int32_t pid = (int32_t)call->arguments[4];
	int fd = (int)call->arguments[5];
	bool is_foreign = pid != interface->thread->pid;
	if (is_foreign)
		fd = open_ring(pid, fd);
	interface->ring_fd = fd;
	call->result = tally_engine_mmap(
		interface->engine, call->descriptor, (size_t)call->arguments[0],
		call->arguments[1] & 1, call->arguments[2], (uint64_t)call->arguments[3], &address);
	call->address = (uintptr_t)address;
	interface->ring_fd = -1;
	if (fd >= 0 && is_foreign)
		process_call(SYS_close, fd);
	struct interface_event *event = entry_of(interface, call->descriptor);
	if (call->result || !event)
		return;
	event->ring.address = (uintptr_t)address;
	if (!is_foreign)
		return;
	event->ring.mappings++;
	event->ring.pid = pid;
	event->ring.fd = (int32_t)call->arguments[5];
	event->ring.size = (uint64_t)call->arguments[0];
	event->ring.writable = call->arguments[1];
}

/* The process that mapped the ring may have done so when the thread ran another program. */
static void unmap_ring(struct process_interface *interface, struct interface_call *call)
{
	struct interface_event *event = entry_of(interface, call->descriptor);
	uint64_t address = (uint64_t)call->arguments[0];
	bool is_foreign = call->arguments[2] != interface->thread->pid;
	if (event && is_foreign)
		address = event->ring.address;
	call->result = tally_engine_munmap(interface->engine, (void *)(uintptr_t)address,
					   (size_t)call->arguments[1]);
	if (!call->result && event && is_foreign)
		event->ring.mappings--;
}

static bool is_ring_of(const struct interface_event *event, int fd)
{
	struct stat about;
	return !process_call(SYS_fstat, fd, &about) && about.st_ino == event->inode;
}

/* Mappings of the thread's own process ended with its program. */
static void restore_ring(struct process_interface *interface, struct interface_event *event)
{
	unsigned mappings = event->ring.mappings;
	void *address = NULL;
	event->ring.mappings = 0;
	if (!mappings)
		return;
	int fd = open_ring(event->ring.pid, event->ring.fd);
	if (fd < 0)
		return;
	interface->ring_fd = fd;
	interface->ring_goes_on = true;
	while (is_ring_of(event, fd) && event->ring.mappings < mappings &&
	       !tally_engine_mmap(interface->engine, event->descriptor, event->ring.size,
				  event->ring.writable, true, 0, &address))
		event->ring.mappings++;
	event->ring.address = (uintptr_t)address;
	interface->ring_goes_on = false;
	interface->ring_fd = -1;
	process_call(SYS_close, fd);
}

void interface_restore(struct process_interface *interface, struct interface_event *event)
{
	restore_ring(interface, event);
	restore_file(interface, event);
}

void interface_restore_output(struct process_interface *interface,
			      const struct interface_event *event)
{
	if (!event->output)
		return;
	const struct interface_event *target = &interface_pool->events[event->output - 1];
	if (interface_is_used(target) && target->tid == event->tid && !target->gone)
		tally_engine_ioctl(interface->engine, event->descriptor, TALLY_IOC_SET_OUTPUT,
				   (uintptr_t)target->descriptor);
}

/* FORK records.  The engine's own task for the child lives only for that: the child has an engine
 * of its own. */
static void tell_fork(struct process_interface *interface, const struct interface_call *call)
{
	struct tally_engine_identity child = *tally_engine_task_identity(interface->task);
	bool is_thread = call->arguments[0] == child.pid;
	child.parent_pid = child.pid;
	child.parent_tid = child.tid;
	child.pid = (int32_t)call->arguments[0];
	child.tid = (int32_t)call->arguments[1];
	struct tally_engine_task *task = tally_engine_task_new(interface->process, &child, NULL);
	if (!task)
		return;
	tally_engine_task_fork(interface->task, task, is_thread);
	interface->forks_told++;
	tally_engine_task_free(task);
}

static void carry_out(struct process_interface *interface, struct interface_call *call)
{
	struct tally_engine *engine = interface->engine;
	switch ((enum interface_operation)call->operation) {
	case INTERFACE_OPEN_EVENT:
		open_event(interface, call);
		break;
	case INTERFACE_READ:
		call->result = tally_engine_read(engine, call->descriptor, call->answer,
						 (size_t)call->arguments[0]);
		break;
	case INTERFACE_IOCTL:
		control(interface, call);
		break;
	case INTERFACE_POLL:
		call->result = tally_engine_poll(engine, call->descriptor, NULL);
		break;
	case INTERFACE_FCNTL:
		control_file(interface, call);
		break;
	case INTERFACE_MAP:
		map_ring(interface, call);
		break;
	case INTERFACE_UNMAP:
		unmap_ring(interface, call);
		break;
	case INTERFACE_CLOSE:
		close_event(interface, call);
		break;
	case INTERFACE_FORKED:
		tell_fork(interface, call);
		break;
	case INTERFACE_PUBLISH:
		publish(interface, call->descriptor);
		call->result = 0;
		break;
	}
}

/* The event that the caller means may have ended, and another one may have its descriptor. */
static bool is_meant(const struct process_interface *interface, const struct interface_call *call)
{
	int descriptor = call->descriptor;
	return descriptor >= 0 && descriptor < INTERFACE_OPEN && interface->events[descriptor] &&
	       interface->serials[descriptor] == call->serial;
}

void interface_execute(struct process_interface *interface, struct interface_call *call)
{
	call->result = 0;
	if (call->serial && !is_meant(interface, call)) {
		call->serial = 0;
		return;
	}
	if (!interface->engine)
		call->result = engine_make(interface);
	if (call->result)
		return;
	carry_out(interface, call);
	interface_run_pending(interface);
}

void interface_engine_end(struct process_interface *interface)
{
	struct process_thread *thread = interface->thread;
	if (interface->engine) {
		interface_catch_up(interface);
		tally_engine_task_exit(interface->task);
		interface_run_pending(interface);
		for (int i = 0; i < INTERFACE_OPEN; i++) {
			struct interface_event *event = entry_of(interface, i);
			if (!event)
				continue;
			publish(interface, i);
			__atomic_store_n(&event->gone, 1, __ATOMIC_SEQ_CST);
			if (event->parent)
				interface_fold(event);
		}
		wake(thread, NULL);
		tally_engine_switch_out(interface->engine, interface->task, NULL, false);
		tally_engine_process_exit(interface->process); /* unmaps the rings */
	}
	interface_engine_drop(interface);
}

void interface_engine_drop(struct process_interface *interface)
{
	interface->thread->interface = NULL;
	process_call(SYS_munmap, interface, sizeof(*interface) + INTERFACE_HEAP);
}
