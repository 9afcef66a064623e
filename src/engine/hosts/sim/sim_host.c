/* The host's table for the engine. */
#include "sim/sim_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE ((unsigned)SIM_PAGE_SIZE)
#define STACK_TOP 0x7ffffffff000u

static void nmi_body(void *argument)
{
	struct sim_machine *machine = argument;
	struct tally_engine_regs regs;
	sim_cpu_regs(machine->cpu, &regs);
	tally_engine_software(machine->engine, TALLY_SW_ALIGNMENT_FAULTS, 1, &regs, regs.ip);
}

/* Interrupts the engine, wherever it is, by an NMI, which nothing masks: config.nmi_every. */
static void maybe_nmi(struct sim_machine *machine)
{
	if (!machine->config.nmi_every || machine->in_nmi || !machine->engine ||
	    ++machine->callbacks % machine->config.nmi_every)
		return;
	machine->in_nmi = true;
	sim_at_level(machine->cpu, TALLY_LEVEL_NMI, nmi_body, machine);
	machine->in_nmi = false;
}

static uint64_t clock_ns(void *host)
{
	struct sim_machine *machine = host;
	maybe_nmi(machine);
	return machine->now;
}

static int clock_of(void *host, int32_t clockid, uint64_t *ns)
{
	struct sim_machine *machine = host;
	switch (clockid) {
	case 0: /* CLOCK_REALTIME */
	case 11: /* CLOCK_TAI */
		*ns = machine->now + 1767225600000000000u; /* it booted at the beginning of 2026 */
		return 0;
	case 1: /* CLOCK_MONOTONIC */
	case 4: /* CLOCK_MONOTONIC_RAW */
	case 7: /* CLOCK_BOOTTIME */
		*ns = machine->now;
		return 0;
	default:
		return -EINVAL;
	}
}

static unsigned this_cpu(void *host)
{
	struct sim_machine *machine = host;
	return machine->cpu->number;
}

static enum tally_engine_level level(void *host)
{
	struct sim_machine *machine = host;
	return machine->cpu->level;
}

static struct tally_engine_task *current_task(void *host)
{
	struct sim_machine *machine = host;
	if (machine->cpu->current)
		return machine->cpu->current->engine_task;
	return NULL;
}

static bool cpu_online(void *host, unsigned cpu)
{
	return sim_cpu_online(host, cpu);
}

static uintptr_t irq_save(void *host)
{
	struct sim_machine *machine = host;
	maybe_nmi(machine);
	return machine->cpu->irq_off++;
}

static void irq_restore(void *host, uintptr_t state)
{
	struct sim_machine *machine = host;
	machine->cpu->irq_off = (unsigned)state;
	maybe_nmi(machine);
	sim_cpu_settle(machine->cpu);
}

/* One thread runs the machine, and no call of the surface lets time pass: so no caller ever waits
 * here. */
static void lock(void *host)
{
	struct sim_machine *machine = host;
	if (machine->locked)
		abort();
	machine->locked = true;
}

static void unlock(void *host)
{
	struct sim_machine *machine = host;
	machine->locked = false;
}

static int run_on(void *host, unsigned number, void (*function)(void *), void *argument)
{
	struct sim_machine *machine = host;
	if (!sim_cpu_online(machine, number))
		return -6; /* ENXIO */
	struct sim_cpu *cpu = &machine->cpus[number];
	sim_cpu_advance(cpu);
	sim_at_level(cpu, TALLY_LEVEL_HARDIRQ, function, argument);
	sim_cpu_rearm(cpu);
	return 0;
}

static void *allocate(void *host, size_t size)
{
	(void)host;
	return calloc(1, size);
}

static void release(void *host, void *memory, size_t size)
{
	(void)host, (void)size;
	free(memory);
}

static void *allocate_pages(void *host, size_t pages)
{
	(void)host;
	void *memory = aligned_alloc(PAGE, pages * PAGE);
	if (memory)
		memset(memory, 0, pages * PAGE);
	return memory;
}

static void release_pages(void *host, void *memory, size_t pages)
{
	(void)host, (void)pages;
	free(memory);
}

/* Nothing is mapped in the first pages of an address space, and programs have nothing in the upper
 * half. */
static bool bad_pointer(const void *pointer)
{
	return (uintptr_t)pointer < 16 * PAGE || (intptr_t)(uintptr_t)pointer < 0;
}

static int copy_in(void *host, void *to, const void *from, size_t size)
{
	(void)host;
	if (bad_pointer(from))
		return -EFAULT;
	memcpy(to, from, size);
	return 0;
}

static int copy_out(void *host, void *to, const void *from, size_t size)
{
	(void)host;
	if (bad_pointer(to))
		return -EFAULT;
	memcpy(to, from, size);
	return 0;
}

static bool capable(void *host, enum tally_engine_capability capability)
{
	struct sim_machine *machine = host;
	(void)capability;
	return !machine->cpu->current || !machine->cpu->current->unprivileged;
}

static bool may_observe(void *host, struct tally_engine_task *task)
{
	struct sim_machine *machine = host;
	const struct sim_task *other = tally_engine_task_host(task);
	return !machine->cpu->current || !machine->cpu->current->unprivileged ||
	       other->unprivileged;
}

static struct tally_engine_task *find_task(void *host, int32_t tid)
{
	struct sim_task *task = sim_find_task(host, tid);
	if (task)
		return task->engine_task;
	return NULL;
}

static void pend(void *host)
{
	struct sim_machine *machine = host;
	machine->cpu->pend = true;
	sim_cpu_rearm(machine->cpu);
}

static void wake(void *host, struct tally_engine_file *file)
{
	struct sim_machine *machine = host;
	if (machine->on_wake)
		machine->on_wake(machine, file);
}

static void deliver(struct sim_task *task, const struct tally_engine_signal *signal)
{
	struct sim_signal_count *count = sim_signals(task, signal->number);
	if (!count)
		return;
	count->count++;
	count->last_code = signal->code;
	count->last_data = signal->data;
}

static void signal_of(void *host, const struct tally_engine_signal *signal)
{
	struct sim_machine *machine = host;
	if (signal->task) {
		deliver(tally_engine_task_host(signal->task), signal);
		return;
	}
	struct sim_task *task = sim_find_task(machine,
					      signal->owner < 0 ? -signal->owner : signal->owner);
	if (task)
		deliver(task, signal);
}

/* --- timers: alarms of the machine ---------------------------------------- */

struct timer_alarm {
	struct sim_alarm alarm;
	struct tally_engine_timer *timer;
	struct sim_cpu *cpu;
};

static void fire(void *argument)
{
	struct timer_alarm *timer = argument;
	struct tally_engine_regs regs;
	sim_cpu_regs(timer->cpu, &regs);
	timer->timer->fired(timer->timer, &regs);
}

static void ring_timer(struct sim_machine *machine, struct sim_alarm *alarm)
{
	struct timer_alarm *timer = SIM_CONTAINER(alarm, struct timer_alarm, alarm);
	struct sim_cpu *cpu = timer->cpu;
	(void)machine;
	sim_cpu_advance(cpu);
	timer->timer->host_words[0] = 0;
	sim_at_level(cpu, TALLY_LEVEL_HARDIRQ, fire, timer);
	free(timer);
	sim_cpu_rearm(cpu);
}

static void timer_start(void *host, struct tally_engine_timer *timer)
{
	struct sim_machine *machine = host;
	struct timer_alarm *own = (struct timer_alarm *)timer->host_words[0];
	if (!own) {
		own = malloc(sizeof(*own));
		if (!own)
			abort();
		sim_alarm_init(&own->alarm, ring_timer);
		timer->host_words[0] = (uintptr_t)own;
	}
	own->timer = timer;
	own->cpu = machine->cpu;
	timer->cpu = machine->cpu->number;
	uint64_t at = timer->deadline_ns;
	if (at < machine->now)
		at = machine->now;
	sim_alarm_set(machine, &own->alarm, at);
}

static void timer_cancel(void *host, struct tally_engine_timer *timer)
{
	struct timer_alarm *own = (struct timer_alarm *)timer->host_words[0];
	if (!own)
		return;
	sim_alarm_set(host, &own->alarm, SIM_NEVER);
	free(own);
	timer->host_words[0] = 0;
}

/* The machine's cycle counter, as user code reads it, counts ns. */
static void user_clock(void *host, struct tally_user_page *page)
{
	(void)host;
	page->time_mult = 1;
	page->time_shift = 0;
	page->time_zero = 0;
	page->time_offset = 0;
	page->capabilities |= TALLY_CAP_USER_TIME | TALLY_CAP_USER_TIME_ZERO;
}

/* --- what a sample holds -------------------------------------------------- */

static unsigned chain_of(uint64_t ip, const struct sim_work *work, uint64_t *addresses,
			 unsigned max)
{
	unsigned count = 0;
	if (count < max)
		addresses[count++] = ip;
	for (unsigned i = 0; i < work->caller_count && count < max; i++)
		addresses[count++] = work->callers[i];
	return count;
}

static void user_state(struct sim_machine *machine, const struct tally_engine_regs *regs,
		       uint64_t *ip, const struct sim_work **work)
{
	static const struct sim_work none = { .mode = TALLY_MODE_USER };
	const struct sim_task *task = machine->cpu->current;
	if (regs->mode == TALLY_MODE_USER && regs->host) {
		*ip = regs->ip;
		*work = regs->host;
		return;
	}
	*work = task ? &task->user_work : &none;
	uint64_t span = (*work)->code_size / 4;
	*ip = (*work)->address + (span && task ? task->user_done % span * 4 : 0);
}

static unsigned callchain(void *host, const struct tally_engine_regs *regs, bool user,
			  uint64_t *addresses, unsigned max)
{
	struct sim_machine *machine = host;
	if (!user && regs->mode == TALLY_MODE_KERNEL && regs->host)
		return chain_of(regs->ip, regs->host, addresses, max);
	if (!user || !machine->cpu->current)
		return 0;
	uint64_t ip;
	const struct sim_work *work;
	user_state(machine, regs, &ip, &work);
	return chain_of(ip, work, addresses, max);
}

/* A C body's stack is the one that it runs on: the frames of functions called from it are below its
 * own frame. */
static uint64_t user_stack_pointer(void *host, const struct tally_engine_regs *regs)
{
	struct sim_machine *machine = host;
	const struct sim_task *task = machine->cpu->current;
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	(void)regs;
	if (!task || !task->stack_top)
		return STACK_TOP - 8192;
	bool within = here < task->stack_top && here > task->stack_top - SIM_STACK_SIZE;
	if (within)
		return here;
	return task->stack_pointer;
}

/* Registers are numbered as in asm/perf_regs.h of the model's architecture. */
static uint64_t user_register(void *host, const struct tally_engine_regs *regs, unsigned number,
			      uint64_t *abi)
{
	struct sim_machine *machine = host;
	if (!machine->cpu->current) {
		*abi = 0;
		return 0;
	}
	*abi = 2;
	uint64_t ip;
	const struct sim_work *work;
	user_state(machine, regs, &ip, &work);
	const struct sim_architecture *architecture = machine->model->architecture;
	if (number == architecture->sp_register)
		return user_stack_pointer(host, regs);
	if (number == architecture->pc_register)
		return ip;
	return 0x1000 + number;
}

static uint64_t interrupted_register(void *host, const struct tally_engine_regs *regs,
				     unsigned number, uint64_t *abi)
{
	struct sim_machine *machine = host;
	*abi = 2;
	const struct sim_architecture *architecture = machine->model->architecture;
	if (number == architecture->sp_register)
		return regs->sp;
	if (number == architecture->pc_register)
		return regs->ip;
	return 0x2000 + number;
}

/* Without a real stack each byte is the low byte of its address. */
__attribute__((no_sanitize("address"))) static size_t user_stack(
	void *host, const struct tally_engine_regs *regs, size_t offset, void *to, size_t size)
{
	struct sim_machine *machine = host;
	const struct sim_task *task = machine->cpu->current;
	uint64_t from = user_stack_pointer(host, regs) + offset;
	uint64_t top = task && task->stack_top ? task->stack_top : STACK_TOP;
	if (!task || from >= top)
		return 0;
	if (size > top - from)
		size = top - from;
	uint8_t *bytes = to;
	for (size_t i = 0; i < size; i++) {
		if (task->stack_top)
			bytes[i] = *(const uint8_t *)(uintptr_t)(from + i);
		else
			bytes[i] = (uint8_t)(from + i);
	}
	return size;
}

static uint64_t physical_address(void *host, uint64_t address)
{
	(void)host;
	if (address)
		return 0x100000000u | (address & 0xffffffffu);
	return 0;
}

static uint64_t page_size_of(void *host, uint64_t address)
{
	(void)host;
	if (address)
		return PAGE;
	return 0;
}

#define CGROUP_FD 5000 /* stands for the descriptor of a cgroup: 5000 + its id */

static uint64_t cgroup(void *host, struct tally_engine_task *task)
{
	const struct sim_task *own = tally_engine_task_host(task);
	(void)host;
	return own->cgroup;
}

static int cgroup_of_fd(void *host, int fd, uint64_t *id)
{
	(void)host;
	if (fd <= CGROUP_FD)
		return -9; /* EBADF */
	*id = (uint64_t)(fd - CGROUP_FD);
	return 0;
}

/* Two levels: 1 is the root, and contains all others. */
static bool in_cgroup(void *host, struct tally_engine_task *task, uint64_t id)
{
	return id == 1 || cgroup(host, task) == id;
}

static int watch(void *host, unsigned slot, uint64_t address, uint64_t length, uint32_t bp_type)
{
	struct sim_machine *machine = host;
	machine->cpu->watch[slot].address = address;
	machine->cpu->watch[slot].length = length;
	machine->cpu->watch[slot].type = bp_type;
	return 0;
}

void sim_host_table(struct sim_machine *machine, struct tally_engine_host *host)
{
	*host = (struct tally_engine_host){
		.host = machine,
		.cpus = machine->config.cpus,
		.page_size = PAGE,
		.tick_ns = machine->config.tick_ns,
		.clock_ns = clock_ns,
		.clock_of = clock_of,
		.this_cpu = this_cpu,
		.level = level,
		.current_task = current_task,
		.cpu_online = cpu_online,
		.irq_save = irq_save,
		.irq_restore = irq_restore,
		.lock = lock,
		.unlock = unlock,
		.run_on = run_on,
		.allocate = allocate,
		.release = release,
		.allocate_pages = allocate_pages,
		.release_pages = release_pages,
		.copy_in = copy_in,
		.copy_out = copy_out,
		.capable = capable,
		.may_observe = may_observe,
		.find_task = find_task,
		.pend = pend,
		.wake = wake,
		.signal = signal_of,
		.timer_start = timer_start,
		.timer_cancel = timer_cancel,
		.user_clock = user_clock,
		.callchain = callchain,
		.user_register = user_register,
		.interrupted_register = interrupted_register,
		.register_mask = machine->model->architecture->register_mask,
		.user_stack = user_stack,
		.user_stack_pointer = user_stack_pointer,
		.physical_address = physical_address,
		.page_size_of = page_size_of,
		.cgroup = cgroup,
		.cgroup_of_fd = cgroup_of_fd,
		.in_cgroup = in_cgroup,
		.breakpoint_slots = sizeof(machine->cpus[0].watch) /
				    sizeof(machine->cpus[0].watch[0]),
		.watch = watch,
		.trace_regs = sim_trace_regs,
	};
}
