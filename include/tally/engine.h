/* The engine: a perf_event subsystem for places that have none, or where it is refused.
 *
 * The engine is to a *host* what Linux's kernel/events is to the kernel.  The host has CPUs, tasks
 * and a clock.  It tells the engine when tasks are switched, fork and exit, and calls it when
 * something happens that events count.  The engine counts, samples, and offers the system calls of
 * perf_event_open(2), with the kernel's behaviour and errno.  It is freestanding: all that it needs
 * from outside is one table, struct tally_engine_host. docs/porting.md explains how to write a
 * host; hosts/skeleton is the smallest one, hosts/sim a whole machine.
 *
 * Calling context.  There are four kinds of functions, and each function says its kind:
 *     [surface]  System calls, in the context of the calling task, at task level. May sleep on
 *                the host's lock.
 *     [cpu]      Runs on the CPU that it concerns, with interrupts off, but not within a hit:
 *                switches at task level, the others at hardirq level.
 *     [hit]      Runs anywhere, at any instruction, at any level, also within any other function
 *                of the engine. Allocates nothing and never spins. A hit inside a hit of the same
 *                level on a CPU is dropped and counted.
 *     [once]     Runs while no other code uses the engine.
 * Errors are -errno with Linux's numbers (asm-generic), whatever the host's libc has. */
#ifndef TALLY_ENGINE_H
#define TALLY_ENGINE_H

#include "tally/perf_event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tally_engine;         /* opaque */
struct tally_engine_process; /* a process's descriptor table and identity: opaque */
struct tally_engine_task;    /* a thread: opaque */
struct tally_engine_file;    /* an open event: opaque */
struct tally_trace_event;    /* tally/tracepoint.h */

/* The kind of context that the CPU is in.  A higher one interrupts a lower one at any
 * instruction. */
enum tally_engine_level {
	TALLY_LEVEL_TASK,
	TALLY_LEVEL_SOFTIRQ,
	TALLY_LEVEL_HARDIRQ,
	TALLY_LEVEL_NMI,
	TALLY_LEVELS
};

/* The state that an event interrupted.  The engine uses only these members. */
enum tally_engine_mode { /* as PERF_RECORD_MISC_CPUMODE */
	TALLY_MODE_UNKNOWN,
	TALLY_MODE_KERNEL,
	TALLY_MODE_USER,
	TALLY_MODE_HYPERVISOR,
	TALLY_MODE_GUEST_KERNEL,
	TALLY_MODE_GUEST_USER
};

struct tally_engine_regs {
	uint64_t ip, sp, fp;
	enum tally_engine_mode mode;
	const void *host; /* the host's own data, for its callbacks */
};

/* A one-shot timer on the CPU where it was started, which the engine stores in `cpu`.  It belongs
 * to the engine, and stays valid until it has fired or was cancelled; `fired` may start it again.
 * The host may use `host_words`, which are 0 at first. */
struct tally_engine_timer {
	/* [hit], hardirq level */
	void (*fired)(struct tally_engine_timer *timer, const struct tally_engine_regs *regs);
	uint64_t deadline_ns;
	unsigned cpu;
	uintptr_t host_words[4];
};

/* A signal that an event sends: F_SETOWN + O_ASYNC on its descriptor, or attr.sigtrap.  Valid
 * during the call. */
struct tally_engine_signal {
	int number;       /* SIGIO, or F_SETSIG's; SIGTRAP */
	int code;         /* POLL_IN 1, POLL_HUP 6; TRAP_PERF 6 */
	int fd;           /* si_fd; -1 for SIGTRAP */
	int32_t owner;    /* F_SETOWN's: a pid, or a negative process group; 0: use `task` */
	int owner_type;   /* F_OWNER_TID 0, F_OWNER_PID 1, F_OWNER_PGRP 2 */
	struct tally_engine_task *task; /* for SIGTRAP: deliver synchronously to this task */
	uint64_t data;    /* si_perf_data */
	uint32_t type;    /* si_perf_type */
	uint64_t address; /* si_addr */
};

enum tally_engine_capability {
	TALLY_CAPABLE_PERFMON,
	TALLY_CAPABLE_SYS_ADMIN,
	TALLY_CAPABLE_IPC_LOCK
};

/* A task's identity, for records.  `comm` ends with NUL. */
struct tally_engine_identity {
	int32_t pid, tid, parent_pid, parent_tid;
	char comm[16];
};

/* All that the engine needs from outside.  Every function gets `host` as its first argument.
 * Functions whose comment says what NULL means are optional, the others must be there.  They may be
 * called at any level unless their comment says otherwise.  None may call the engine, except the
 * functions that only return a task's data. */
struct tally_engine_host {
	void *host;
	unsigned cpus;        /* number of possible CPUs, 0 … cpus - 1; at least 1 */
	size_t page_size;     /* a power of two, 4096 … 65536 */
	/* ns between calls of tally_engine_tick(): frequency and throttling use it */
	uint64_t tick_ns;
	/* clock_ns() is the CPU time of the task that runs, not the time of day: its clock may stand
	 * still.  Then records without attr.clockid carry clock_of()'s CLOCK_MONOTONIC, and a clock
	 * event whose timer fires late has one sample that weighs all periods that have passed. */
	bool counts_cpu_time;

	/* --- where are we ------------------------------------------------- */
	/* monotonic, in ns; comparable between CPUs */
	uint64_t (*clock_ns)(void *host);
	/* Reads the clock of attr.clockid (CLOCK_REALTIME 0, MONOTONIC 1, …).  Returns 0, or
	 * -EINVAL for one that the host does not have.  NULL: only monotonic. */
	int (*clock_of)(void *host, int32_t clockid, uint64_t *ns);
	unsigned (*this_cpu)(void *host);
	/* The number that records give for this CPU.  NULL: this_cpu()'s. */
	unsigned (*cpu_number)(void *host);
	enum tally_engine_level (*level)(void *host);
	struct tally_engine_task *(*current_task)(void *host); /* on this CPU; NULL: idle */
	bool (*cpu_online)(void *host, unsigned cpu);          /* NULL: all are, always */

	/* --- exclusion ---------------------------------------------------- */
	/* Turns the interrupts of this CPU off.  NMIs may still come. */
	uintptr_t (*irq_save)(void *host);
	void (*irq_restore)(void *host, uintptr_t state);
	/* One lock for the system-call surface.  It may sleep, and is not recursive.  Taken at task
	 * level with interrupts on: a waiter still runs the functions that run_on() brings. */
	void (*lock)(void *host);
	void (*unlock)(void *host);
	/* Runs function(argument) on that CPU, which may be this one, with interrupts off, at
	 * hardirq level, and waits until it has returned.  Returns 0, or -ENXIO if the CPU is
	 * offline.  Called with the lock held, at task level: so one call at a time. */
	int (*run_on)(void *host, unsigned cpu, void (*function)(void *), void *argument);
	/* Called once in each turn of a loop that waits for another CPU (for a context's lock).
	 * NULL: nothing. */
	void (*relax)(void *host);

	/* --- memory: at task level; zeroed; NULL when out of memory ------- */
	void *(*allocate)(void *host, size_t size);
	void (*release)(void *host, void *memory, size_t size);
	/* Page-aligned memory in one piece, which can be shared with the task that maps it
	 * (docs/porting.md discusses aliasing caches).  It may be a ring that another engine wrote:
	 * it goes on at the page's data_head.  NULL: nothing can be mapped (-ENOMEM). */
	void *(*allocate_pages)(void *host, size_t pages);
	void (*release_pages)(void *host, void *memory, size_t pages);
	/* Charges pages to the locked memory of the current task's user.  Returns 0, or -EPERM
	 * beyond its limit.  NULL: the only limit is the engine's perf_event_mlock_kb. */
	int (*charge_locked)(void *host, size_t pages);
	void (*uncharge_locked)(void *host, size_t pages);

	/* --- the caller's memory: -EFAULT.  NULL: pointers are valid. ---- */
	int (*copy_in)(void *host, void *to, const void *from, size_t size);
	int (*copy_out)(void *host, void *to, const void *from, size_t size);

	/* --- who may ------------------------------------------------------ */
	/* Does the current task have the capability?  NULL: yes. */
	bool (*capable)(void *host, enum tally_engine_capability capability);
	/* May the current task observe that one (ptrace's read access)?  NULL: yes. */
	bool (*may_observe)(void *host, struct tally_engine_task *task);
	/* Finds a task by its tid; returns NULL if there is none.  Called only from the surface.
	 * NULL: tasks are found by the tids of their identities. */
	struct tally_engine_task *(*find_task)(void *host, int32_t tid);

	/* --- telling others ----------------------------------------------- */
	/* Requests one call of tally_engine_run_pending() on this CPU as soon as its level allows
	 * wake-ups (irq_work).  May be called again before that ran: one run is enough. */
	void (*pend)(void *host);
	/* The state that tally_engine_poll() reports for this file may have changed.  Called below
	 * NMI level, perhaps with interrupts off, but never after the last close of the file's
	 * descriptors and mappings: then `file` no longer exists. */
	void (*wake)(void *host, struct tally_engine_file *file);
	/* Sends a signal.  Called below NMI level.  A SIGTRAP must be delivered before the task's
	 * next user instruction.  NULL: no signals. */
	void (*signal)(void *host, const struct tally_engine_signal *signal);

	/* --- time --------------------------------------------------------- */
	/* NULL: clock events count but can't sample. [cpu]; timer_start is also called within
	 * `fired`, below NMI level. */
	/* starts it for timer->deadline_ns */
	void (*timer_start)(void *host, struct tally_engine_timer *timer);
	/* allowed when it isn't running */
	void (*timer_cancel)(void *host, struct tally_engine_timer *timer);
	/* Sets TALLY_CAP_USER_TIME, _TIME_ZERO and _TIME_SHORT in page->capabilities, and
	 * time_shift, time_mult, time_zero (clock_ns() when the architecture's counter was 0),
	 * time_cycles and time_mask.  The engine sets time_offset.  NULL: user code can't read that
	 * counter. [hit] */
	void (*user_clock)(void *host, struct tally_user_page *page);

	/* --- contents of a sample: [hit].  NULL: the field has the kernel's value for "unknown"
	 * --- */
	/* Stores the addresses of a call chain, leaf first, at most `max`: the user part if `user`,
	 * otherwise the kernel's.  Returns their number. */
	unsigned (*callchain)(void *host, const struct tally_engine_regs *regs, bool user,
			      uint64_t *addresses, unsigned max);
	/* Returns a user register of the current task (`regs` if they are the user's). *abi: 0
	 * none, 1 32-bit, 2 64-bit.  `number` is that of the architecture's perf_regs.h. */
	uint64_t (*user_register)(void *host, const struct tally_engine_regs *regs, unsigned number,
				  uint64_t *abi);
	uint64_t (*interrupted_register)(void *host, const struct tally_engine_regs *regs,
					 unsigned number, uint64_t *abi);
	/* Registers that attr.sample_regs_* may name. 0: none. */
	uint64_t register_mask;
	/* Copies up to `size` bytes of the current task's user stack, from `offset` bytes above its
	 * stack pointer up.  Returns the number of readable bytes.  Called piece by piece until one
	 * is short. */
	size_t (*user_stack)(void *host, const struct tally_engine_regs *regs, size_t offset,
			     void *to, size_t size);
	/* Returns how many bytes of stack there are from its pointer up, at most `most`: a sample
	 * then holds these, rounded down to whole words, and no padding.  NULL: a sample has the size
	 * that was asked for, as the kernel's. */
	size_t (*user_stack_size)(void *host, const struct tally_engine_regs *regs, size_t most);
	uint64_t (*user_stack_pointer)(void *host, const struct tally_engine_regs *regs);
	uint64_t (*physical_address)(void *host, uint64_t address);
	uint64_t (*page_size_of)(void *host, uint64_t address);
	/* returns the id of the task's perf cgroup */
	uint64_t (*cgroup)(void *host, struct tally_engine_task *task);
	/* Finds the cgroup of a descriptor of the caller (PERF_FLAG_PID_CGROUP).  Returns 0 and its
	 * id, or -EBADF.  NULL: -EINVAL. */
	int (*cgroup_of_fd)(void *host, int fd, uint64_t *id);
	/* Is this task in that cgroup or below it? */
	bool (*in_cgroup)(void *host, struct tally_engine_task *task, uint64_t id);

	/* Corrects the registers of a tracepoint's hit: ip, sp and fp are those of the C code that
	 * made it, in TALLY_MODE_USER.  For hosts whose code stands for that of a simulated
	 * machine.  NULL: they are right. */
	void (*trace_regs)(void *host, struct tally_engine_regs *regs);

	/* --- breakpoints: NULL: type BREAKPOINT is refused (-EOPNOTSUPP) ---- */
	unsigned breakpoint_slots; /* number per CPU */
	/* Arms slot `slot` of this CPU, or disarms it if `length` is 0.  Returns 0 or -errno.
	 * [cpu].  The host reports hits by tally_engine_breakpoint_hit(). */
	int (*watch)(void *host, unsigned slot, uint64_t address, uint64_t length,
		     uint32_t bp_type);
};

/* --- life ----------------------------------------------------------------- */

/* [once] Makes an engine: registers the PMUs "software", "tracepoint" and "breakpoint", then calls
 * tally_engine_hardware_init().  Copies the table.  Returns NULL if out of memory. */
struct tally_engine *tally_engine_new(const struct tally_engine_host *host);
/* [once] Frees the engine.  Every task must have exited and every file must be closed. */
void tally_engine_free(struct tally_engine *engine);

/* A weak function without effect: an architecture defines its own to register its PMUs.  Returns 0
 * or -errno, which tally_engine_new() ignores: without a PMU, software events still count. */
int tally_engine_hardware_init(struct tally_engine *engine);

/* Get and set the sysctls of kernel/: "perf_event_paranoid" (default 2),
 * "perf_event_max_sample_rate" (100000), "perf_event_mlock_kb" (516), "perf_event_max_stack" (127),
 * "perf_event_max_contexts_per_stack" (8), "perf_user_access" (0).  Get: [hit].  Set: [surface].
 * Return 0; -ENOENT for another name; -EINVAL for a value that Linux refuses; -EBUSY for the two
 * sizes of stacks while events use them. */
int tally_engine_sysctl_get(struct tally_engine *engine, const char *name, long *value);
int tally_engine_sysctl_set(struct tally_engine *engine, const char *name, long value);

/* Failures that are reported nowhere else, and totals.  Exact when nothing runs. */
struct tally_engine_statistics {
	uint64_t hits_dropped[TALLY_LEVELS]; /* hits inside a hit of the same level */
	uint64_t raw_too_large; /* tracepoint records larger than TALLY_TRACE_SIZE_MAX */
	uint64_t events;                     /* events that exist now */
	uint64_t bytes;                      /* bytes allocated now */
};
void tally_engine_statistics(struct tally_engine *engine, struct tally_engine_statistics *out);

/* --- processes and tasks: [surface] level, on the CPU that does it -------- */

/* Adds the first process, or one whose parent the engine does not know.  Returns NULL if out of
 * memory. */
struct tally_engine_process *tally_engine_process_new(struct tally_engine *engine, int32_t pid);
/* fork(2): shares the parent's descriptors, as after a fork.  Returns NULL if out of memory. */
struct tally_engine_process *tally_engine_process_fork(struct tally_engine_process *parent,
						       int32_t pid);
/* [surface] RLIMIT_NOFILE: the number of descriptors that it may have, at most 1048576.  The
 * default is 4096, or the parent's limit after a fork. */
void tally_engine_process_limit(struct tally_engine_process *process, unsigned descriptors);
/* Called when the process's last task has exited, even if that is freed already.  Closes the
 * process's descriptors and frees it. */
void tally_engine_process_exit(struct tally_engine_process *process);

struct tally_engine_task *tally_engine_task_new(struct tally_engine_process *process,
						const struct tally_engine_identity *identity,
						void *host_task);
/* Called after tally_engine_task_new(child), before the child first runs.  Clones the inherited
 * events of `parent` and writes FORK records.  `thread`: the new task shares the parent's process.
 * Returns 0, or -ENOMEM: then the fork must fail. */
int tally_engine_task_fork(struct tally_engine_task *parent, struct tally_engine_task *child,
			   bool thread);
/* In the copy of an engine that fork(2) made in a child: the current task, the copy of the one that
 * forked, goes on as the child.  Writes a FORK record to its events, and takes the child's
 * identity. */
void tally_engine_task_forked(struct tally_engine_task *task,
			      const struct tally_engine_identity *child);
/* exec(2) of the current task, after the old mappings have been removed.  Handles remove_on_exec
 * and enable_on_exec, closes descriptors with FD_CLOEXEC, writes COMM with COMM_EXEC. */
void tally_engine_task_exec(struct tally_engine_task *task, const char *comm);
/* Exit of the current task, while it is still current.  Its events leave, children's counts are
 * folded into their parents', EXIT records are written. */
void tally_engine_task_exit(struct tally_engine_task *task);
/* Called when the task will never run again and is current on no CPU. */
void tally_engine_task_free(struct tally_engine_task *task);

/* [hit] Returns the task that is current on this CPU; NULL: the CPU is idle. */
struct tally_engine_task *tally_engine_task_current(struct tally_engine *engine);
void *tally_engine_task_host(struct tally_engine_task *task);
const struct tally_engine_identity *tally_engine_task_identity(
	const struct tally_engine_task *task);
struct tally_engine_process *tally_engine_task_process(struct tally_engine_task *task);

/* --- what the machine does: [cpu] ----------------------------------------- */

/* A CPU comes or goes.  When it goes, its tasks have already moved; events bound to it stop and
 * keep their counts. */
void tally_engine_cpu_up(struct tally_engine *engine, unsigned cpu);
void tally_engine_cpu_down(struct tally_engine *engine, unsigned cpu);

/* Called before the switch on this CPU, while current_task() is still `previous`: `previous` goes
 * out, `next` comes in (NULL: idle).  Counts context-switches, writes SWITCH records.  `preempted`:
 * `previous` is runnable. */
void tally_engine_switch_out(struct tally_engine *engine, struct tally_engine_task *previous,
			     struct tally_engine_task *next, bool preempted);
/* Called after the switch: current_task() is `next`.  Also for the first task of a CPU: a task that
 * was not switched in does not count. */
void tally_engine_switch_in(struct tally_engine *engine, struct tally_engine_task *previous,
			    struct tally_engine_task *next);
/* `task`, which is not running, will run on another CPU next: counts cpu-migrations. */
void tally_engine_migrate(struct tally_engine_task *task, unsigned to_cpu);
/* The tick of this CPU: rotation, frequencies, unthrottling. */
void tally_engine_tick(struct tally_engine *engine, const struct tally_engine_regs *regs);
/* Does the work that host->pend() requested. */
void tally_engine_run_pending(struct tally_engine *engine);

/* --- what happens: [hit] -------------------------------------------------- */

/* A software event (enum tally_sw) happened `count` times in the current task on this CPU.  A page
 * fault is two calls: PAGE_FAULTS, and MIN or MAJ.  `address`: PERF_SAMPLE_ADDR.  `regs` NULL:
 * somewhere in the kernel (switches, migrations). */
void tally_engine_software(struct tally_engine *engine, enum tally_sw event, uint64_t count,
			   const struct tally_engine_regs *regs, uint64_t address);
void tally_engine_breakpoint_hit(struct tally_engine *engine, unsigned slot,
				 const struct tally_engine_regs *regs, uint64_t address);

/* --- side-band: [surface] level, in the task that they concern ----------- */

struct tally_engine_mapping {
	uint64_t address, length, file_offset;
	uint32_t major, minor;
	uint64_t inode, inode_generation;
	uint32_t protection, flags; /* as in mmap(2) */
	const char *path;           /* "//anon", "[heap]", … */
	uint8_t build_id[20], build_id_size; /* 0: unknown */
};
void tally_engine_mmap_record(struct tally_engine_task *task,
			      const struct tally_engine_mapping *mapping);
void tally_engine_comm(struct tally_engine_task *task, const char *comm); /* prctl(PR_SET_NAME) */
/* COMM with COMM_EXEC: for a host whose engine begins with the program that was executed. */
void tally_engine_comm_exec(struct tally_engine_task *task, const char *comm);
struct tally_engine_namespace { uint64_t device, inode; };
/* net, uts, ipc, pid, user, mnt, cgroup in this order. */
void tally_engine_namespaces(struct tally_engine_task *task,
			     const struct tally_engine_namespace *namespaces, unsigned count);
void tally_engine_cgroup_made(struct tally_engine *engine, uint64_t id, const char *path);
void tally_engine_ksymbol(struct tally_engine *engine, uint64_t address, uint32_t length,
			  uint16_t type, bool unregister, const char *name);
void tally_engine_text_poke(struct tally_engine *engine, uint64_t address, const void *old_bytes,
			    uint16_t old_length, const void *new_bytes, uint16_t new_length);

/* --- the system-call surface: [surface], as the current task -------------- */

/* perf_event_open(2).  Returns a descriptor of the caller's process, or -errno. */
int tally_engine_open(struct tally_engine *engine, const void *attr, int32_t pid, int cpu,
		      int group_fd, unsigned long flags);
/* read(2).  Returns the number of bytes, or -errno. */
long tally_engine_read(struct tally_engine *engine, int fd, void *bytes, size_t size);
/* ioctl(2).  Requests are TALLY_IOC_…. */
long tally_engine_ioctl(struct tally_engine *engine, int fd, unsigned long request,
			uintptr_t argument);
/* mmap(2) of an event: `writable` is PROT_WRITE, `shared` MAP_SHARED, `offset` is in bytes.  Sets
 * *address to the user page with the data behind it, or to the AUX area.  Returns 0 or -errno.  The
 * caller gets the pages of allocate_pages() themselves. */
int tally_engine_mmap(struct tally_engine *engine, int fd, size_t size, bool writable, bool shared,
		      uint64_t offset, void **address);
int tally_engine_munmap(struct tally_engine *engine, void *address, size_t size);
/* Returns POLLIN 1, POLLHUP 16, 0, or -EBADF.  Never waits: host->wake() says when to call again,
 * and names the file that is stored in *file here (unless `file` is NULL).  POLLIN is reported once
 * for each wake-up. */
int tally_engine_poll(struct tally_engine *engine, int fd, struct tally_engine_file **file);
/* fcntl(2): F_GETFD F_SETFD F_GETFL F_SETFL F_SETOWN F_GETOWN F_SETSIG F_GETSIG F_SETOWN_EX
 * F_GETOWN_EX F_DUPFD F_DUPFD_CLOEXEC, numbered as in asm-generic/fcntl.h. */
int tally_engine_fcntl(struct tally_engine *engine, int fd, int command, uintptr_t argument);
int tally_engine_close(struct tally_engine *engine, int fd);
int tally_engine_prctl(struct tally_engine *engine, int option);

/* An event's present values, whatever its read_format; without those of inherited events. */
struct tally_engine_values {
	struct tally_attr attr;      /* as the engine took it: MODIFY_ATTRIBUTES changes it */
	uint64_t count, enabled_ns, running_ns, lost;
	bool enabled;
};
/* Reads them, for a host that shows them elsewhere.  Returns 0 or -EBADF. */
int tally_engine_values(struct tally_engine *engine, int fd, struct tally_engine_values *values);

/* Gives an event another id: for a host whose events have the same ids in several engines.  Returns 0
 * or -EBADF. */
int tally_engine_set_id(struct tally_engine *engine, int fd, uint64_t id);

/* Sets the function that a sampling event calls instead of writing to its ring (H4); NULL: the ring
 * again.  Call it before the event is enabled.  Returns 0 or -EBADF. */
struct tally_engine_hit;
struct tally_pmu_event;
typedef void tally_engine_overflow_handler(struct tally_pmu_event *event,
					   const struct tally_engine_hit *hit,
					   const struct tally_engine_regs *regs, void *data);
int tally_engine_set_overflow_handler(struct tally_engine *engine, int fd,
				      tally_engine_overflow_handler *handler, void *data);

/* --- PMUs ----------------------------------------------------------------- */

/* Flags of add, del, start, stop. */
#define TALLY_EF_START 1u  /* add: start it as well */
#define TALLY_EF_RELOAD 2u /* start: program the counter with period_left */
#define TALLY_EF_UPDATE 4u /* stop, del: fold the hardware's count in */

/* tally_pmu_event.state */
#define TALLY_HES_STOPPED 1u  /* does not count now */
#define TALLY_HES_UPTODATE 2u /* `count` holds all that the hardware has counted */

/* An event as its PMU sees it.  A PMU changes `state`, the members from `previous` on and, by
 * tally_engine_pmu_count(), the count.  The engine owns the rest. */
struct tally_pmu_event {
	struct tally_engine_pmu *pmu;
	const struct tally_attr *attr;
	struct tally_engine *engine;
	int cpu;              /* the CPU that it is bound to, or -1 */
	bool of_task;         /* counts a task, not a whole CPU */
	unsigned state;       /* TALLY_HES_… */
	uint64_t sample_period; /* present period; varies with attr.freq; 0: counts only */
	uint64_t last_period;
	int64_t period_left;  /* events until the next overflow */
	/* value of the hardware counter when it was last folded in, sign-extended from pmc_width */
	uint64_t previous;
	int index;            /* counter; -1: none */
	uint64_t config;      /* the PMU's translation of attr */
	uint64_t words[6];    /* for the PMU */
};

/* Data of an overflow or a hit, for its samples.  Zero means unknown. */
struct tally_engine_hit {
	uint64_t address;     /* PERF_SAMPLE_ADDR */
	/* PERF_SAMPLE_PERIOD; for an overflow, the period that elapsed (last_period) */
	uint64_t period;
	uint64_t weight, data_src, transaction;
	/* valid with has_exact_ip: address of the instruction itself, MISC_EXACT_IP */
	uint64_t exact_ip;
	bool has_exact_ip;
	const void *raw;      /* PERF_SAMPLE_RAW; raw_size as in SPEC E5 */
	uint32_t raw_size;
	const struct tally_engine_branch { uint64_t from, to, flags; } *branches;
	uint32_t branch_count;
};

enum tally_engine_scope {
	/* tasks and CPUs; counters are scarce: rotation, pinned, exclusive */
	TALLY_SCOPE_HARDWARE,
	TALLY_SCOPE_SOFTWARE,  /* tasks and CPUs; always fits; may join a hardware group */
	TALLY_SCOPE_CPU_ONLY   /* uncore: counts CPUs only; a task gets -EINVAL */
};

/* tally_engine_pmu.capabilities */
#define TALLY_PMU_NO_INTERRUPT 1u     /* sampling is refused: -EOPNOTSUPP */
#define TALLY_PMU_NO_EXCLUDE 2u       /* any exclude_* is refused: -EINVAL */
#define TALLY_PMU_HETEROGENEOUS 4u    /* one of several core types: counts only on `cpus` */
#define TALLY_PMU_BRANCH_STACK 8u
#define TALLY_PMU_AUX 16u             /* has an AUX area */
#define TALLY_PMU_GENERIC \
	32u /* accepts types HARDWARE and HW_CACHE (as the kernel's first "cpu" PMU) */
#define TALLY_PMU_ITRACE 64u /* traces instructions: an ITRACE_START record precedes the trace */
/* never hits in an NMI, so any attr.clockid is allowed; otherwise REALTIME, BOOTTIME, TAI:
 * -EINVAL */
#define TALLY_PMU_NO_NMI 128u
#define TALLY_PMU_AUX_OUTPUT 256u     /* accepts attr.aux_output: see aux_output_match() */

struct tally_engine_pmu_term {
	const char *name, *value;
}; /* {"event", "config:0-7"}; {"cycles", "event=0x3c"} */

struct tally_engine_pmu_ops {
	/* Accepts or refuses an event: 0 accepts it; -ENOENT passes it to the next PMU; any other
	 * error fails the open.  Sets event->config.  May look at the group that the event is about
	 * to join (tally_engine_group_first()), and refuses with -EINVAL an event that can never be
	 * scheduled together with it. [surface] */
	int (*event_init)(struct tally_engine_pmu *pmu, struct tally_pmu_event *event);
	void (*event_release)(struct tally_pmu_event *event); /* optional. [surface] */
	/* Puts the event on a counter of this CPU, stopped unless TALLY_EF_START.  Returns 0, or
	 * -EAGAIN if there is no room. [cpu] */
	int (*add)(struct tally_pmu_event *event, unsigned flags);
	void (*del)(struct tally_pmu_event *event, unsigned flags); /* [cpu] */
	/* [cpu], or [hit] when the engine throttles */
	void (*start)(struct tally_pmu_event *event, unsigned flags);
	void (*stop)(struct tally_pmu_event *event, unsigned flags);
	/* Folds the hardware's count in. [cpu], or [hit] when a sample holds the values of its
	 * group. */
	void (*read)(struct tally_pmu_event *event);
	/* Called around batches of the above, on this CPU; may nest.  Optional. */
	void (*disable)(struct tally_engine_pmu *pmu);
	void (*enable)(struct tally_engine_pmu *pmu);
	/* The add calls of a group come between start and commit.  Commit places the events and
	 * returns 0, or -EAGAIN if they don't all fit.  Cancel, after a failed add or commit, drops
	 * all that were added since start; del is not called for them.  Optional, but only all
	 * three together: without them, del is called for the events of a failed group. [cpu] */
	void (*group_start)(struct tally_engine_pmu *pmu);
	int (*group_commit)(struct tally_engine_pmu *pmu);
	void (*group_cancel)(struct tally_engine_pmu *pmu);
	/* Returns the user page's index - 1 of an active event (SPEC D5, F3, H5), or -1 if user
	 * code can't read it.  Optional. */
	int (*user_index)(const struct tally_pmu_event *event);
	/* Sets pmc_width, capabilities and time fields.  Optional. */
	void (*user_page)(const struct tally_pmu_event *event, struct tally_user_page *page);
	/* IOC_PERIOD: returns 0 or -errno.  Optional. */
	int (*check_period)(const struct tally_pmu_event *event, uint64_t period);
	/* IOC_SET_FILTER: returns 0 or -errno.  Optional. */
	int (*set_filter)(struct tally_pmu_event *event, const char *text);
	/* AUX: set up and tear down an area of `pages`. [surface] */
	int (*aux_setup)(struct tally_pmu_event *event, void *area, size_t pages, bool overwrite);
	void (*aux_free)(struct tally_pmu_event *event, void *area);
	/* With attr.aux_output: true if the event may write to the AUX area of `aux`, which leads
	 * its group (tally_engine_group_first()).  The event then has no samples of its own, and is
	 * in ERROR without its leader. [surface] */
	bool (*aux_output_match)(const struct tally_pmu_event *event,
				 const struct tally_pmu_event *aux);
	/* A task is switched on a CPU where this PMU has events, of the task or of the CPU (LBR and
	 * the like).  Called before the task's events go out, and after they have come in.
	 * Optional. [cpu] */
	void (*switched)(struct tally_engine_pmu *pmu, struct tally_engine_task *task, bool in);
};

struct tally_engine_pmu {
	const char *name;             /* "cpu", "armv8_pmuv3" */
	uint32_t type;                /* 0: the engine assigns a number from TALLY_TYPE_MAX up */
	enum tally_engine_scope scope;
	unsigned capabilities;        /* TALLY_PMU_… */
	const struct tally_engine_pmu_ops *ops;
	const struct tally_engine_pmu_term *formats, *events; /* end with a NULL name; NULL: none */
	/* CPUs that it counts on, a bit per CPU, `cpu_words` words of 64; NULL: all. */
	const uint64_t *cpus;
	unsigned cpu_words;
	void *driver;                 /* for the PMU's driver */
	/* The engine's. */
	struct tally_engine_pmu *next;
	uint64_t bit;
	unsigned event_count;
};

/* [surface] Registers a PMU.  `pmu` stays the caller's, and must live until it is unregistered or
 * the engine is freed.  Returns 0, or -EEXIST if its name or type is taken. */
int tally_engine_pmu_register(struct tally_engine *engine, struct tally_engine_pmu *pmu);
/* Returns 0, -EBUSY while it has events, or -ENOENT if it isn't registered. */
int tally_engine_pmu_unregister(struct tally_engine *engine, struct tally_engine_pmu *pmu);
/* Walks the PMUs: NULL starts and ends the walk. */
const struct tally_engine_pmu *tally_engine_pmu_next(struct tally_engine *engine,
						     const struct tally_engine_pmu *pmu);

/* For PMUs: adds to the event's count, and subtracts from the period_left of a sampling event.
 * [hit] */
void tally_engine_pmu_count(struct tally_pmu_event *event, uint64_t more);
/* For PMUs: a counter has passed its period.  Writes the sample, adapts the period, throttles.
 * Returns true if the PMU must stop the event. [hit] */
bool tally_engine_overflow(struct tally_pmu_event *event, const struct tally_engine_hit *hit,
			   const struct tally_engine_regs *regs);
/* Returns true if period_left has run out, and then sets it and last_period for the next overflow.
 * A PMU calls it before it programs its counter with period_left (whatever the result), and to tell
 * the end of a period from the wrap of a narrow counter. [cpu] or [hit] */
bool tally_engine_period_elapsed(struct tally_pmu_event *event);
/* Updates the user page's lock, index and offset, after add, start, stop. [cpu] or [hit] */
void tally_engine_user_page_changed(struct tally_pmu_event *event);
/* Walk the group that an event is in, or is about to join: leader first; NULL ends. */
struct tally_pmu_event *tally_engine_group_first(struct tally_pmu_event *event);
struct tally_pmu_event *tally_engine_group_next(struct tally_pmu_event *event,
						struct tally_pmu_event *member);

/* AUX output, by the PMU that owns the area.  tally_engine_aux_begin() says where to write and how
 * much room there is; tally_engine_aux_end() says how much was written.  `head` runs freely: write
 * at head % area_size, and wrap.  In overwrite mode (snapshots: the area is mapped read-only), the
 * room is the whole area, and the PMU sets `head` to the end of the written data before it calls
 * aux_end().  Area and descriptor stay valid until aux_end(), which stop() must call. begin returns
 * 0; -EINVAL if there is no area; -EBUSY if another begin is open; -ENOSPC if the reader has left
 * no room: then the reader is woken and the event disabled.  `flags`: PERF_AUX_FLAG_TRUNCATED 1
 * (disables the event), OVERWRITE 2 (set by the engine), PARTIAL 4, COLLISION 8. [hit] */
struct tally_engine_aux {
	uint64_t head;
	size_t room;
	void *area;
	size_t area_size;
	bool overwrite;
	void *opaque;
};
int tally_engine_aux_begin(struct tally_pmu_event *event, struct tally_engine_aux *aux);
void tally_engine_aux_end(struct tally_pmu_event *event, struct tally_engine_aux *aux,
			  size_t written, uint64_t flags);

/* For a PMU with TALLY_PMU_ITRACE: its trace has begun.  Until then, an ITRACE_START record that
 * names the current task is written each time the event is about to be added. [hit] */
void tally_engine_itrace_started(struct tally_pmu_event *event);
/* The hardware has dropped `lost` of the event's samples: writes LOST_SAMPLES. [hit] */
void tally_engine_lost_samples(struct tally_pmu_event *event, uint64_t lost);
/* Reports the event's id in the trace that it writes to: AUX_OUTPUT_HW_ID. [hit] */
void tally_engine_aux_output_id(struct tally_pmu_event *event, uint64_t hw_id);

#ifdef __cplusplus
}
#endif

#endif
