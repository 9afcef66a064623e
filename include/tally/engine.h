/* The engine: a perf_event subsystem for places that have none, or whose own is refused.
 *
 * It is to a *host* what Linux's kernel/events is to the kernel: the host has CPUs, tasks and a
 * clock, tells the engine when tasks are switched, forked and exit, and calls in when something
 * happens that events count; the engine counts, samples and gives the system-call surface of
 * perf_event_open(2), with the kernel's behaviour and errno.  Freestanding: all that it needs from
 * outside is one table, struct tally_engine_host.  docs/porting.md leads through it; hosts/skeleton
 * is the smallest host, hosts/sim a whole machine.
 *
 * Calling context.  Functions are of four kinds, said at each:
 *   [surface]  system calls, in the context of the calling task, at task level; may sleep on the
 *   host's lock
 *   [cpu]      on the CPU that they are about, interrupts off, not where an event hits: switches at task level, the
 *              others at hardirq level
 *   [hit]      anywhere, at any instruction, at any level, also within any other function of the engine: nothing is
 *              allocated and nothing spins; a hit inside a hit of the same level on a CPU is dropped and counted
 *   [once]     while nothing else runs
 * Errors are -errno with Linux's numbers (asm-generic), whatever the host's libc has.
 */
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
struct tally_engine_process; /* descriptor table and identity of a process: opaque */
struct tally_engine_task;    /* a thread: opaque */
struct tally_engine_file;    /* an open event: opaque */
struct tally_trace_event;    /* tally/tracepoint.h */

/* Which kind of context the CPU is in; a higher one interrupts a lower one at any instruction. */
enum tally_engine_level {
	TALLY_LEVEL_TASK,
	TALLY_LEVEL_SOFTIRQ,
	TALLY_LEVEL_HARDIRQ,
	TALLY_LEVEL_NMI,
	TALLY_LEVELS
};

/* The state that an event interrupted.  Opaque to the engine but for these. */
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
	const void *host; /* the host's own, for its callbacks */
};

/* One shot, on the CPU where it was started, which the engine notes in `cpu`.  It is the engine's,
 * and good until it has fired or was cancelled; `fired` may start it again.  The host may keep what
 * it needs in `host_words`, 0 at first. */
struct tally_engine_timer {
	/* [hit], hardirq level */
	void (*fired)(struct tally_engine_timer *timer, const struct tally_engine_regs *regs);
	uint64_t deadline_ns;
	unsigned cpu;
	uintptr_t host_words[4];
};

/* A signal that an event asks for: F_SETOWN + O_ASYNC on its descriptor, or attr.sigtrap.  Good
 * during the call. */
struct tally_engine_signal {
	int number;       /* SIGIO, or what F_SETSIG said; SIGTRAP */
	int code;         /* POLL_IN 1, POLL_HUP 6; TRAP_PERF 6 */
	int fd;           /* si_fd; -1 for SIGTRAP */
	int32_t owner;    /* F_SETOWN: a pid, a negative process group; 0: `task` */
	int owner_type;   /* F_OWNER_TID 0, F_OWNER_PID 1, F_OWNER_PGRP 2 */
	struct tally_engine_task *task; /* SIGTRAP: synchronous, to this task */
	uint64_t data;    /* si_perf_data */
	uint32_t type;    /* si_perf_type */
	uint64_t address; /* si_addr */
};

enum tally_engine_capability {
	TALLY_CAPABLE_PERFMON,
	TALLY_CAPABLE_SYS_ADMIN,
	TALLY_CAPABLE_IPC_LOCK
};

/* Who a task is, for records. `comm` ends with NUL. */
struct tally_engine_identity {
	int32_t pid, tid, parent_pid, parent_tid;
	char comm[16];
};

/* All that the engine needs from outside.  `host` is passed back to every function.  Those of which
 * it says what NULL means are optional, the others must be there.  Called at any level unless said
 * otherwise.  None may call the engine, but for what tells of a task. */
struct tally_engine_host {
	void *host;
	unsigned cpus;        /* possible ones: 0 … cpus - 1; at least 1 */
	size_t page_size;     /* a power of two, 4096 … 65536 */
	/* how far apart calls of tally_engine_tick() are: frequency and throttling reckon in it */
	uint64_t tick_ns;

	/* --- where are we ------------------------------------------------- */
	/* monotonic; comparable between CPUs */
	uint64_t (*clock_ns)(void *host);
	/* attr.clockid (CLOCK_REALTIME 0, MONOTONIC 1, …): -EINVAL for one that is not kept.  NULL:
	 * none but monotonic. */
	int (*clock_of)(void *host, int32_t clockid, uint64_t *ns);
	unsigned (*this_cpu)(void *host);
	enum tally_engine_level (*level)(void *host);
	struct tally_engine_task *(*current_task)(void *host); /* on this CPU; NULL: idle */
	bool (*cpu_online)(void *host, unsigned cpu);          /* NULL: all are, always */

	/* --- exclusion ---------------------------------------------------- */
	/* Interrupts of this CPU off; NMIs may come still. */
	uintptr_t (*irq_save)(void *host);
	void (*irq_restore)(void *host, uintptr_t state);
	/* One lock that may sleep, for the system-call surface; not recursive.  Task level,
	 * interrupts on: who waits for it still runs what run_on() brings. */
	void (*lock)(void *host);
	void (*unlock)(void *host);
	/* Runs function(argument) on that CPU with interrupts off, at hardirq level, and waits
	 * until it has; on this CPU too.  -ENXIO when it is offline.  Called with the lock held, at
	 * task level: one at a time. */
	int (*run_on)(void *host, unsigned cpu, void (*function)(void *), void *argument);
	/* Once in each turn of a loop that waits for another CPU (a context's lock).  NULL:
	 * nothing. */
	void (*relax)(void *host);

	/* --- memory: task level; zeroed; NULL when there is none ---------- */
	void *(*allocate)(void *host, size_t size);
	void (*release)(void *host, void *memory, size_t size);
	/* Page-aligned, in one piece, shareable with the task that maps it (see docs/porting.md on
	 * aliasing caches).  NULL: nothing can be mapped (-ENOMEM). */
	void *(*allocate_pages)(void *host, size_t pages);
	void (*release_pages)(void *host, void *memory, size_t pages);
	/* Locked memory of the current task's user: -EPERM past its budget.  NULL: no budget but
	 * the engine's perf_event_mlock_kb. */
	int (*charge_locked)(void *host, size_t pages);
	void (*uncharge_locked)(void *host, size_t pages);

	/* --- the caller's memory: -EFAULT.  NULL: pointers are good. ------ */
	int (*copy_in)(void *host, void *to, const void *from, size_t size);
	int (*copy_out)(void *host, void *to, const void *from, size_t size);

	/* --- who may ------------------------------------------------------ */
	/* Of the current task.  NULL: yes. */
	bool (*capable)(void *host, enum tally_engine_capability capability);
	/* May the current task observe that one (ptrace's read access)? NULL: yes. */
	bool (*may_observe)(void *host, struct tally_engine_task *task);
	/* By tid; NULL: no such task.  Surface only.  Without it tasks are found by the tids of
	 * their identities. */
	struct tally_engine_task *(*find_task)(void *host, int32_t tid);

	/* --- telling others ----------------------------------------------- */
	/* Asks for one call of tally_engine_run_pending() on this CPU as soon as its level allows
	 * wake-ups (irq_work).  May be asked for again before it ran: once is enough. */
	void (*pend)(void *host);
	/* Something that tally_engine_poll() tells of this file may have changed. Below NMI level,
	 * perhaps with interrupts off.  Not after the file's last descriptor and mapping were
	 * closed: then `file` is gone. */
	void (*wake)(void *host, struct tally_engine_file *file);
	/* NULL: no signals.  Below NMI level; a SIGTRAP is to be delivered before the task's next
	 * user instruction. */
	void (*signal)(void *host, const struct tally_engine_signal *signal);

	/* --- time --------------------------------------------------------- */
	/* NULL: clock events count, but don't sample. [cpu]; timer_start also within `fired`, below
	 * NMI level. */
	/* at timer->deadline_ns */
	void (*timer_start)(void *host, struct tally_engine_timer *timer);
	/* fine when it isn't running */
	void (*timer_cancel)(void *host, struct tally_engine_timer *timer);
	/* Adds TALLY_CAP_USER_TIME, _TIME_ZERO and _TIME_SHORT to page->capabilities and fills
	 * time_shift, time_mult, time_zero (clock_ns() when the architecture's counter was 0),
	 * time_cycles, time_mask; time_offset is the engine's.  NULL: user code can't read that
	 * counter. [hit] */
	void (*user_clock)(void *host, struct tally_user_page *page);

	/* --- what a sample holds: [hit]; NULL: the field is empty as the kernel leaves it where it
	 * can't tell ---- */
	/* Addresses, leaf first, at most `max`: how many.  `user`: the user part, else the
	 * kernel's. */
	unsigned (*callchain)(void *host, const struct tally_engine_regs *regs, bool user,
			      uint64_t *addresses, unsigned max);
	/* The user registers of the current task (regs when they are the user's); *abi: 0 none, 1
	 * 32-bit, 2 64-bit; register `number` as the architecture's perf_regs.h numbers it. */
	uint64_t (*user_register)(void *host, const struct tally_engine_regs *regs, unsigned number,
				  uint64_t *abi);
	uint64_t (*interrupted_register)(void *host, const struct tally_engine_regs *regs,
					 unsigned number, uint64_t *abi);
	/* Registers that attr.sample_regs_* may ask for. 0: none. */
	uint64_t register_mask;
	/* Copies up to `size` bytes of the current task's user stack from `offset` bytes above its
	 * stack pointer up: how many were readable.  Called for a piece at a time, until one comes
	 * back short. */
	size_t (*user_stack)(void *host, const struct tally_engine_regs *regs, size_t offset,
			     void *to, size_t size);
	uint64_t (*user_stack_pointer)(void *host, const struct tally_engine_regs *regs);
	uint64_t (*physical_address)(void *host, uint64_t address);
	uint64_t (*page_size_of)(void *host, uint64_t address);
	/* id of the task's perf cgroup */
	uint64_t (*cgroup)(void *host, struct tally_engine_task *task);
	/* A cgroup by a descriptor of the caller's (PERF_FLAG_PID_CGROUP): its id, or -EBADF.
	 * NULL: -EINVAL. */
	int (*cgroup_of_fd)(void *host, int fd, uint64_t *id);
	/* Is this task in that cgroup or below? */
	bool (*in_cgroup)(void *host, struct tally_engine_task *task, uint64_t id);

	/* Completes where a tracepoint was hit: ip, sp and fp are those of the C code that hit it,
	 * in TALLY_MODE_USER.  For hosts whose code stands for a simulated machine's.  NULL: they
	 * are right. */
	void (*trace_regs)(void *host, struct tally_engine_regs *regs);

	/* --- breakpoints: NULL: type BREAKPOINT is refused (-EOPNOTSUPP) ---- */
	unsigned breakpoint_slots; /* of each CPU */
	/* Arms or (length 0) disarms slot `slot` of this CPU. [cpu]; hits:
	 * tally_engine_breakpoint_hit(). */
	int (*watch)(void *host, unsigned slot, uint64_t address, uint64_t length,
		     uint32_t bp_type);
};

/* --- life ----------------------------------------------------------------- */

/* [once] Registers the PMUs "software", "tracepoint", "breakpoint", then calls
 * tally_engine_hardware_init().  The table is copied.  NULL: out of memory. */
struct tally_engine *tally_engine_new(const struct tally_engine_host *host);
/* [once] Every task has exited, every file is closed. */
void tally_engine_free(struct tally_engine *engine);

/* Weak, and empty: an architecture's own registers its PMUs here.  0 or -errno, which
 * tally_engine_new() ignores: no PMU is no reason not to count software events. */
int tally_engine_hardware_init(struct tally_engine *engine);

/* sysctls of kernel/: "perf_event_paranoid" (2), "perf_event_max_sample_rate" (100000),
 * "perf_event_mlock_kb" (516), "perf_event_max_stack" (127), "perf_event_max_contexts_per_stack"
 * (8), "perf_user_access" (0).  Set: [surface].  Get: [hit].  -ENOENT; -EINVAL for a value that
 * Linux refuses; -EBUSY for the sizes of stacks while events have them. */
int tally_engine_sysctl_get(struct tally_engine *engine, const char *name, long *value);
int tally_engine_sysctl_set(struct tally_engine *engine, const char *name, long value);

/* What went wrong without anybody to tell. Exact when nothing runs. */
struct tally_engine_statistics {
	uint64_t hits_dropped[TALLY_LEVELS]; /* a hit inside a hit of the same level */
	uint64_t raw_too_large;              /* tracepoint records over TALLY_TRACE_SIZE_MAX */
	uint64_t events;                     /* alive now */
	uint64_t bytes;                      /* allocated now */
};
void tally_engine_statistics(struct tally_engine *engine, struct tally_engine_statistics *out);

/* --- processes and tasks: [surface] level, of the CPU that does it -------- */

/* The first process, or one whose parent nobody watched.  NULL: out of memory. */
struct tally_engine_process *tally_engine_process_new(struct tally_engine *engine, int32_t pid);
/* fork(2): descriptors are shared with the parent's as after fork. */
struct tally_engine_process *tally_engine_process_fork(struct tally_engine_process *parent,
						       int32_t pid);
/* [surface] RLIMIT_NOFILE: how many descriptors it may have, at most 1048576; 4096 by itself, its
 * parent's after a fork. */
void tally_engine_process_limit(struct tally_engine_process *process, unsigned descriptors);
/* When its last task has exited, freed already or not: closes its descriptors and frees it. */
void tally_engine_process_exit(struct tally_engine_process *process);

struct tally_engine_task *tally_engine_task_new(struct tally_engine_process *process,
						const struct tally_engine_identity *identity,
						void *host_task);
/* After tally_engine_task_new(child), before it first runs: events of `parent` that are inherited
 * are cloned, FORK records are written.  `thread`: the new task shares the parent's process.
 * -ENOMEM: the fork must fail. */
int tally_engine_task_fork(struct tally_engine_task *parent, struct tally_engine_task *child,
			   bool thread);
/* exec(2) of the current task, after the old mappings went: remove_on_exec, enable_on_exec;
 * descriptors with FD_CLOEXEC close; COMM with COMM_EXEC. */
void tally_engine_task_exec(struct tally_engine_task *task, const char *comm);
/* exit of the current task, while it still is current: its events leave, children's counts fold
 * into the parents', EXIT records are written. */
void tally_engine_task_exit(struct tally_engine_task *task);
/* When it will never run again and is no longer current anywhere. */
void tally_engine_task_free(struct tally_engine_task *task);

void *tally_engine_task_host(struct tally_engine_task *task);
const struct tally_engine_identity *tally_engine_task_identity(
	const struct tally_engine_task *task);
struct tally_engine_process *tally_engine_task_process(struct tally_engine_task *task);

/* --- what the machine does: [cpu] ----------------------------------------- */

/* A CPU comes or goes (its tasks have gone elsewhere before). Events that are bound to it stop and
 * keep their counts. */
void tally_engine_cpu_up(struct tally_engine *engine, unsigned cpu);
void tally_engine_cpu_down(struct tally_engine *engine, unsigned cpu);

/* Before the switch on this CPU: `previous` (NULL: idle) goes out, `next` (NULL: idle) comes in;
 * current_task() is still `previous`.  Counts context-switches, writes SWITCH records.
 * `preempted`: previous is runnable. */
void tally_engine_switch_out(struct tally_engine *engine, struct tally_engine_task *previous,
			     struct tally_engine_task *next, bool preempted);
/* After it: current_task() is `next`.  Also for the task that a CPU begins with: what was not
 * switched in does not count. */
void tally_engine_switch_in(struct tally_engine *engine, struct tally_engine_task *previous,
			    struct tally_engine_task *next);
/* `task` (not running) will run on another CPU next: cpu-migrations. */
void tally_engine_migrate(struct tally_engine_task *task, unsigned to_cpu);
/* The tick of this CPU: rotation, frequencies, unthrottling. */
void tally_engine_tick(struct tally_engine *engine, const struct tally_engine_regs *regs);
/* What host->pend() asked for. */
void tally_engine_run_pending(struct tally_engine *engine);

/* --- what happens: [hit] -------------------------------------------------- */

/* A software event (enum tally_sw) happened `count` times in the current task on this CPU; for page
 * faults PAGE_FAULTS and MIN or MAJ are two calls. `address`: PERF_SAMPLE_ADDR.  `regs` NULL: in
 * the kernel, who knows where (switches, migrations). */
void tally_engine_software(struct tally_engine *engine, enum tally_sw event, uint64_t count,
			   const struct tally_engine_regs *regs, uint64_t address);
void tally_engine_breakpoint_hit(struct tally_engine *engine, unsigned slot,
				 const struct tally_engine_regs *regs, uint64_t address);

/* --- side-band: [surface] level, in the task that they are about ---------- */

struct tally_engine_mapping {
	uint64_t address, length, file_offset;
	uint32_t major, minor;
	uint64_t inode, inode_generation;
	uint32_t protection, flags; /* mmap(2)'s */
	const char *path;           /* "//anon", "[heap]", … */
	uint8_t build_id[20], build_id_size; /* 0: unknown */
};
void tally_engine_mmap_record(struct tally_engine_task *task,
			      const struct tally_engine_mapping *mapping);
void tally_engine_comm(struct tally_engine_task *task, const char *comm); /* prctl(PR_SET_NAME) */
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

/* perf_event_open(2): a descriptor of the caller's process, or -errno. */
int tally_engine_open(struct tally_engine *engine, const void *attr, int32_t pid, int cpu,
		      int group_fd, unsigned long flags);
/* read(2): bytes, or -errno. */
long tally_engine_read(struct tally_engine *engine, int fd, void *bytes, size_t size);
/* ioctl(2), requests as TALLY_IOC_…. */
long tally_engine_ioctl(struct tally_engine *engine, int fd, unsigned long request,
			uintptr_t argument);
/* mmap(2) of an event: `writable` is PROT_WRITE, `shared` MAP_SHARED, `offset` in bytes.  *address:
 * the user page with the data behind it, or the AUX area.  The caller's mapping is what it is:
 * pages from allocate_pages(). */
int tally_engine_mmap(struct tally_engine *engine, int fd, size_t size, bool writable, bool shared,
		      uint64_t offset, void **address);
int tally_engine_munmap(struct tally_engine *engine, void *address, size_t size);
/* POLLIN 1, POLLHUP 16; or -EBADF.  Never waits: host->wake() says when to ask again, by the *file
 * (unless NULL) that is given here. POLLIN is told once for each wake-up. */
int tally_engine_poll(struct tally_engine *engine, int fd, struct tally_engine_file **file);
/* fcntl(2): F_GETFD F_SETFD F_GETFL F_SETFL F_SETOWN F_GETOWN F_SETSIG F_GETSIG F_SETOWN_EX F_DUPFD
 * F_DUPFD_CLOEXEC, numbers as asm-generic/fcntl.h. */
int tally_engine_fcntl(struct tally_engine *engine, int fd, int command, uintptr_t argument);
int tally_engine_close(struct tally_engine *engine, int fd);
int tally_engine_prctl(struct tally_engine *engine, int option);

/* Sets what a sampling event does instead of writing to its ring: H4.  Before it is enabled. NULL:
 * the ring again. */
struct tally_engine_hit;
struct tally_pmu_event;
typedef void tally_engine_overflow_handler(struct tally_pmu_event *event,
					   const struct tally_engine_hit *hit,
					   const struct tally_engine_regs *regs, void *data);
int tally_engine_set_overflow_handler(struct tally_engine *engine, int fd,
				      tally_engine_overflow_handler *handler, void *data);

/* --- PMUs ----------------------------------------------------------------- */

/* Flags of add, del, start, stop. */
#define TALLY_EF_START 1u  /* add: start it too */
#define TALLY_EF_RELOAD 2u /* start: program the counter with period_left */
#define TALLY_EF_UPDATE 4u /* stop, del: fold the hardware's count in */

/* tally_pmu_event.state */
#define TALLY_HES_STOPPED 1u  /* does not count now */
#define TALLY_HES_UPTODATE 2u /* `count` holds all that the hardware counted */

/* An event as its PMU sees it.  A PMU changes `state`, the words from `previous` on and, through
 * tally_engine_pmu_count(), the count; the rest is the engine's. */
struct tally_pmu_event {
	struct tally_engine_pmu *pmu;
	const struct tally_attr *attr;
	struct tally_engine *engine;
	int cpu;              /* bound to it, or -1 */
	bool of_task;         /* counts a task, not a whole CPU */
	unsigned state;       /* TALLY_HES_… */
	uint64_t sample_period; /* now; adapts with attr.freq; 0: counts only */
	uint64_t last_period;
	int64_t period_left;  /* until the next overflow */
	/* value of the hardware counter that was last folded in, sign-extended from pmc_width */
	uint64_t previous;
	int index;            /* counter, -1: none */
	uint64_t config;      /* what the PMU made of attr */
	uint64_t words[6];    /* the PMU's own */
};

/* What an overflow or a hit brings for its samples. Zero what is unknown. */
struct tally_engine_hit {
	uint64_t address;     /* PERF_SAMPLE_ADDR */
	/* PERF_SAMPLE_PERIOD: of an overflow the period that elapsed, last_period */
	uint64_t period;
	uint64_t weight, data_src, transaction;
	uint64_t exact_ip;    /* with has_exact_ip: the instruction itself, MISC_EXACT_IP */
	bool has_exact_ip;
	const void *raw;      /* PERF_SAMPLE_RAW; raw_size as SPEC E5 */
	uint32_t raw_size;
	const struct tally_engine_branch { uint64_t from, to, flags; } *branches;
	uint32_t branch_count;
};

enum tally_engine_scope {
	/* tasks and CPUs; counters are scarce: rotation, pinned, exclusive */
	TALLY_SCOPE_HARDWARE,
	TALLY_SCOPE_SOFTWARE,  /* tasks and CPUs; always fits; may join a hardware group */
	TALLY_SCOPE_CPU_ONLY   /* uncore: per CPU alone; a task gets -EINVAL */
};

/* tally_engine_pmu.capabilities */
#define TALLY_PMU_NO_INTERRUPT 1u     /* sampling is refused: -EOPNOTSUPP */
#define TALLY_PMU_NO_EXCLUDE 2u       /* any exclude_* is refused: -EINVAL */
#define TALLY_PMU_HETEROGENEOUS 4u    /* one of several core types: counts on `cpus` alone */
#define TALLY_PMU_BRANCH_STACK 8u
#define TALLY_PMU_AUX 16u             /* gives an AUX area */
#define TALLY_PMU_GENERIC \
	32u /* takes types HARDWARE and HW_CACHE (as the kernel's first "cpu" PMU) */
#define TALLY_PMU_ITRACE 64u          /* traces instructions: ITRACE_START goes before the trace */
#define TALLY_PMU_NO_NMI \
	128u /* never hits in an NMI: any attr.clockid; else REALTIME, BOOTTIME, TAI: -EINVAL */
#define TALLY_PMU_AUX_OUTPUT 256u     /* takes attr.aux_output, see aux_output_match() */

struct tally_engine_pmu_term {
	const char *name, *value;
}; /* {"event", "config:0-7"}; {"cycles", "event=0x3c"} */

struct tally_engine_pmu_ops {
	/* 0: mine; -ENOENT: not mine, the next is asked; else the open fails with it.  Fills
	 * event->config; may look at the group that the event is to join
	 * (tally_engine_group_first()), and refuses with -EINVAL what can never be scheduled
	 * together. [surface] */
	int (*event_init)(struct tally_engine_pmu *pmu, struct tally_pmu_event *event);
	void (*event_release)(struct tally_pmu_event *event); /* optional. [surface] */
	/* Puts it on a counter of this CPU, stopped unless TALLY_EF_START.  -EAGAIN: no room.
	 * [cpu] */
	int (*add)(struct tally_pmu_event *event, unsigned flags);
	void (*del)(struct tally_pmu_event *event, unsigned flags); /* [cpu] */
	/* [cpu], or [hit] by the engine's throttling */
	void (*start)(struct tally_pmu_event *event, unsigned flags);
	void (*stop)(struct tally_pmu_event *event, unsigned flags);
	/* Folds the hardware's count in.  [cpu], or [hit] when a sample holds the values of its
	 * group. */
	void (*read)(struct tally_pmu_event *event);
	/* Around batches of the above, on this CPU; nest. Optional. */
	void (*disable)(struct tally_engine_pmu *pmu);
	void (*enable)(struct tally_engine_pmu *pmu);
	/* A group's add calls stand between start and commit; commit says whether all fit together
	 * (-EAGAIN) and places them; cancel, after a failed add or commit, drops those that were
	 * added since start: they are not deleted one by one.  Optional, together; without them a
	 * failed group's events are deleted. [cpu] */
	void (*group_start)(struct tally_engine_pmu *pmu);
	int (*group_commit)(struct tally_engine_pmu *pmu);
	void (*group_cancel)(struct tally_engine_pmu *pmu);
	/* The user page's index - 1 of an active event (SPEC D5, F3, H5), or -1: can't be read by
	 * user code.  Optional. */
	int (*user_index)(const struct tally_pmu_event *event);
	/* Fills pmc_width, capabilities and time fields. Optional. */
	void (*user_page)(const struct tally_pmu_event *event, struct tally_user_page *page);
	/* IOC_PERIOD. Optional */
	int (*check_period)(const struct tally_pmu_event *event, uint64_t period);
	/* IOC_SET_FILTER. Optional */
	int (*set_filter)(struct tally_pmu_event *event, const char *text);
	/* AUX: sets up or tears down `pages` of the area. [surface] */
	int (*aux_setup)(struct tally_pmu_event *event, void *area, size_t pages, bool overwrite);
	void (*aux_free)(struct tally_pmu_event *event, void *area);
	/* With attr.aux_output: may the event write to the AUX area of `aux`, which leads its group
	 * (tally_engine_group_first())? It then has no samples of its own; without its leader it is
	 * in ERROR. [surface] */
	bool (*aux_output_match)(const struct tally_pmu_event *event,
				 const struct tally_pmu_event *aux);
	/* A task's switch on a CPU where this PMU has events, of the task or of the CPU (LBR and
	 * the like): before the task's events go, after they came. Optional. [cpu] */
	void (*switched)(struct tally_engine_pmu *pmu, struct tally_engine_task *task, bool in);
};

struct tally_engine_pmu {
	const char *name;             /* "cpu", "armv8_pmuv3" */
	uint32_t type;                /* 0: numbered at registration, from TALLY_TYPE_MAX up */
	enum tally_engine_scope scope;
	unsigned capabilities;        /* TALLY_PMU_… */
	const struct tally_engine_pmu_ops *ops;
	const struct tally_engine_pmu_term *formats, *events; /* end with a NULL name; NULL: none */
	/* CPUs that it counts on: bit per CPU, `cpu_words` of 64; NULL: all. */
	const uint64_t *cpus;
	unsigned cpu_words;
	void *driver;                 /* the PMU's own */
	/* The engine's. */
	struct tally_engine_pmu *next;
	uint64_t bit;
	unsigned event_count;
};

/* [surface] `pmu` stays the caller's and must outlive the engine or its unregistration.  -EEXIST:
 * name or type. */
int tally_engine_pmu_register(struct tally_engine *engine, struct tally_engine_pmu *pmu);
/* -EBUSY while it has events. */
int tally_engine_pmu_unregister(struct tally_engine *engine, struct tally_engine_pmu *pmu);
/* Walks them: NULL starts, NULL ends. */
const struct tally_engine_pmu *tally_engine_pmu_next(struct tally_engine *engine,
						     const struct tally_engine_pmu *pmu);

/* For PMUs.  Adds to the event's count, and takes it from a sampling event's period_left. [hit] */
void tally_engine_pmu_count(struct tally_pmu_event *event, uint64_t more);
/* A counter passed its period: writes the sample, adapts, throttles.  True: the PMU must stop the
 * event. [hit] */
bool tally_engine_overflow(struct tally_pmu_event *event, const struct tally_engine_hit *hit,
			   const struct tally_engine_regs *regs);
/* When period_left has run out: sets it, and last_period, for the next overflow, and is true.  A
 * PMU calls it before it programs its counter with period_left (whatever it answers), and to tell a
 * period's end from a narrow counter's wrap. [cpu] or [hit] */
bool tally_engine_period_elapsed(struct tally_pmu_event *event);
/* The user page's lock, index and offset again, after add, start, stop. [cpu] or [hit] */
void tally_engine_user_page_changed(struct tally_pmu_event *event);
/* The group that an event is, or is about to be, in: leader first; NULL ends. */
struct tally_pmu_event *tally_engine_group_first(struct tally_pmu_event *event);
struct tally_pmu_event *tally_engine_group_next(struct tally_pmu_event *event,
						struct tally_pmu_event *member);

/* AUX output, by the PMU that owns the area: where to write and how much room there is; then how
 * much was written.  `head` runs freely: write at head % area_size, and wrap.  In overwrite mode
 * (snapshots: the area is mapped read-only) the room is the whole area, and `head` is set to where
 * writing ended before aux_end().  Area and descriptor stay good until aux_end(), which stop() must
 * call.  begin: 0; -EINVAL there is no area; -EBUSY one has begun already; -ENOSPC the reader has
 * left no room: it is woken and the event disabled.  `flags`: PERF_AUX_FLAG_TRUNCATED 1 (disables
 * the event), OVERWRITE 2 (the engine's), PARTIAL 4, COLLISION 8. [hit] */
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

/* Of a PMU with TALLY_PMU_ITRACE: the trace has begun.  Until then an ITRACE_START record, naming
 * the current task, is written each time the event is about to be added. [hit] */
void tally_engine_itrace_started(struct tally_pmu_event *event);
/* The hardware dropped so many of the event's samples: LOST_SAMPLES. [hit] */
void tally_engine_lost_samples(struct tally_pmu_event *event, uint64_t lost);
/* What stands for the event in the trace that it writes to: AUX_OUTPUT_HW_ID. [hit] */
void tally_engine_aux_output_id(struct tally_pmu_event *event, uint64_t hw_id);

#ifdef __cplusplus
}
#endif

#endif
