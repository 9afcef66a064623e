/* The system-call surface that the conformance suite is written against (SPEC.md, H6), and the work
 * that a test's tasks do to make events happen.
 *
 * One table, several implementations: surface_kernel.c (the running kernel, here and in the guest
 * machine), surface_sim.c (tally's engine in the simulated machine).  A test is a C function that
 * runs *as a task* of the surface: on the kernel it is this process; in the simulated machine it is
 * a coroutine that the machine schedules, so that every call below may let time pass and other
 * tasks run.  Therefore a test keeps no state in statics, shares data with its children through
 * shared() alone, and spends time through the calls below, never in loops of its own.
 *
 * Calls return what the system call returns, or -errno.  Pointers given to calls may be bad on
 * purpose (EFAULT): SURFACE_BAD_POINTER.
 */
#ifndef TALLY_CONFORMANCE_SURFACE_H
#define TALLY_CONFORMANCE_SURFACE_H

#include "abi/attr.h"
#include "abi/record.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SURFACE_BAD_POINTER ((void *)16)

/* What a surface or the machine under it has; a clause that needs more is n/a there. */
enum surface_feature {
	SURFACE_HARDWARE = 1u << 0, /* cycles and instructions count */
	SURFACE_TRACEPOINTS = 1u << 1,
	SURFACE_BREAKPOINTS = 1u << 2,
	SURFACE_PRIVILEGED = 1u << 3, /* CAP_PERFMON, may write sysctls */
	SURFACE_TWO_CPUS = 1u << 4,
	SURFACE_VFS = 1u << 5, /* dup, sockets, /proc/self/fd: what only a VFS can show */
	SURFACE_BPF = 1u << 6,
	SURFACE_ARM_PMU = 1u << 7, /* PMUv3 */
	SURFACE_X86_PMU = 1u << 8, /* counters by constraint, fixed counters */
	SURFACE_HETEROGENEOUS = 1u << 9,
	SURFACE_VIRTUALISATION = 1u << 10, /* guests can be entered: exclude_host, exclude_guest */
	/* a guest or a simulation: nobody else's machine is changed */
	SURFACE_MAY_SET_SYSCTLS = 1u << 11,
	SURFACE_HOTPLUG = 1u << 12,    /* CPUs may be taken away (never on a real host) */
	SURFACE_EXACT_TIME = 1u << 13, /* simulated: times are what the test computes */
	SURFACE_AUX = 1u << 14         /* pmu("trace"): traces branches as clauses_d_aux.c has it */
};

/* Where an arm64 kernel stands: in a guest, or a host's at EL2 (VHE), or at EL1 with a hypervisor
 * of its own at EL2. */
enum surface_level { SURFACE_LEVEL_GUEST, SURFACE_LEVEL_VHE_HOST, SURFACE_LEVEL_NON_VHE_HOST };

enum surface_task_kind { SURFACE_PROCESS, SURFACE_THREAD };

/* Of the file that map_code() maps; a build_id_size of 0: it has none. */
struct surface_file {
	uint64_t inode;
	uint8_t build_id[20], build_id_size;
};

/* Code that the kernel made at run time, so far as its surface knows: zeros for what it doesn't. */
struct surface_ksymbol {
	uint64_t address;
	uint32_t length;
	uint16_t type; /* PERF_RECORD_KSYMBOL_TYPE_… */
	const char *name_start;
};

/* A place in the kernel's text that was patched; zeros as above. */
struct surface_text_poke {
	uint64_t address;
	uint8_t old_bytes[8], new_bytes[8];
	uint16_t old_length, new_length;
};

struct surface;
/* The body of a task: its return value is its exit code (0..125). */
typedef int surface_body(struct surface *surface, void *argument);

struct surface_ops {
	const char *name; /* "kernel", "sim" */

	/* --- The system-call surface: H6 ---------------------------------- */
	int (*open)(struct surface *surface, const void *attr, pid_t pid, int cpu, int group,
		    unsigned long flags);
	ssize_t (*read)(struct surface *surface, int fd, void *bytes, size_t size);
	/* `request` as linux/perf_event.h numbers it (TALLY_IOC_…). */
	long (*ioctl)(struct surface *surface, int fd, unsigned long request, uintptr_t argument);
	/* The mapping, or NULL with -errno in *error. `protection`, `flags` as mmap(2)'s. */
	void *(*mmap)(struct surface *surface, int fd, size_t size, int protection, int flags,
		      uint64_t offset, int *error);
	int (*munmap)(struct surface *surface, void *address, size_t size);
	int (*poll)(struct surface *surface, struct pollfd *fds, unsigned count, int timeout_ms);
	/* F_GETFD, F_SETFD, F_GETFL, F_SETFL (O_ASYNC, O_NONBLOCK), F_SETSIG, F_SETOWN, F_DUPFD. */
	int (*fcntl)(struct surface *surface, int fd, int command, long argument);
	int (*close)(struct surface *surface, int fd);
	int (*prctl)(struct surface *surface, int option);

	/* --- Tasks -------------------------------------------------------- */
	pid_t (*self)(struct surface *surface);    /* tid of the calling task */
	pid_t (*process)(struct surface *surface); /* its pid */
	/* fork or pthread_create: the child runs `body` and exits.  Its tid (its pid for a
	 * process). */
	pid_t (*spawn)(struct surface *surface, enum surface_task_kind kind, surface_body *body,
		       void *argument);
	/* The exit code, 128 + signal, or -errno. */
	int (*wait)(struct surface *surface, pid_t task);
	/* exec(2): descriptors with FD_CLOEXEC close, comm becomes `comm` (at most 15 bytes), then
	 * `body` runs as the new program and the task exits with what it returns; comes back only
	 * with -errno.  `argument` points to at most 256 bytes, `size` of them copied into the new
	 * program, or into shared() memory (size 0). */
	int (*exec)(struct surface *surface, const char *comm, surface_body *body,
		    const void *argument, size_t size);
	/* Lets the calling task run as another user without capabilities, from here on (own
	 * process: spawn first). */
	int (*drop_privileges)(struct surface *surface);
	/* Blocks (switches away) until *word, in shared() memory, differs from `value`. */
	void (*wait_while)(struct surface *surface, volatile uint32_t *word, uint32_t value);
	/* Stores and wakes those who wait. */
	void (*post)(struct surface *surface, volatile uint32_t *word, uint32_t value);
	/* Memory that children of either kind share; zeroed; freed after the test. */
	void *(*shared)(struct surface *surface, size_t size);
	/* -errno, or 0: the calling task runs on this CPU from now on (-1: anywhere). */
	int (*pin)(struct surface *surface, int cpu);
	int (*this_cpu)(struct surface *surface);
	int (*cpus)(struct surface *surface); /* online */

	/* --- Work: what makes events happen, in the calling task ---------- */
	/* user-mode CPU time of at least this */
	void (*burn)(struct surface *surface, uint64_t ns);
	void (*loop)(struct surface *surface,
		     uint64_t iterations); /* a user-only loop: 2 instructions each, 1 a
								      taken branch; nothing else but the call itself */
	void (*fault)(struct surface *surface,
		      unsigned count); /* exactly so many minor faults of user mode, on
								      addresses that fault_address() tells */
	/* The address of the n-th fault (from 0) of any fault() of the calling task. */
	uint64_t (*fault_address)(struct surface *surface, unsigned n);
	/* one voluntary switch out and in */
	void (*sleep)(struct surface *surface, uint64_t ns);
	/* lets pending signals be delivered */
	void (*yield_to_signal)(struct surface *surface);
	void (*map_code)(struct surface *surface,
			 bool executable); /* maps one page of a file: an MMAP record.  Path:
								      mapped_path() */
	const char *(*mapped_path)(struct surface *surface);
	int (*mapped_file)(struct surface *surface, struct surface_file *file);
	int (*set_comm)(struct surface *surface, const char *comm);
	/* Hits the suite's tracepoint once: `sched:`-like choice of the surface; its id is
	 * tracepoint("hit").  On the kernel: syscalls:sys_enter_getppid or raw_syscalls:sys_enter,
	 * in the calling task. */
	void (*hit)(struct surface *surface, unsigned count);
	/* Reads or writes (so many times, 4 bytes) the watched variable for breakpoints; runs the
	 * watched function. */
	void (*touch)(struct surface *surface, unsigned breakpoint_type, unsigned count);
	uint64_t (*watched_address)(struct surface *surface, unsigned breakpoint_type);
	/* Makes a page of its own again where an odd access traps, an instruction is emulated … : 0
	 * or -EOPNOTSUPP. */
	int (*make)(struct surface *surface, enum tally_sw event, unsigned count);
	/* A new control group of this name below the calling task's: 0 and its id, or -errno.  It
	 * is gone afterwards. */
	int (*make_cgroup)(struct surface *surface, const char *name, uint64_t *id);
	/* The kernel makes code, and takes it away again when `symbol` is NULL. 0 or
	 * -EOPNOTSUPP. */
	int (*make_ksymbol)(struct surface *surface, struct surface_ksymbol *symbol);
	/* The kernel patches its own text. 0 or -EOPNOTSUPP. */
	int (*poke_text)(struct surface *surface, struct surface_text_poke *poke);

	/* --- Asking ------------------------------------------------------- */
	uint64_t (*now)(struct surface *surface); /* CLOCK_MONOTONIC, ns */
	/* Signals of number `signal` that the calling task has had since watch_signal();
	 * *last_band: POLL_IN, POLL_HUP (si_code), *last_data: si_perf_data of SIGTRAP. */
	int (*watch_signal)(struct surface *surface, int signal);
	unsigned (*signals)(struct surface *surface, int signal, int *last_code,
			    uint64_t *last_data);
	/* The id of a tracepoint, or -ENOENT.  "hit": the one that hit() hits; "weighted": one with
	 * __perf_count; "tasked": one with __perf_task (sched:sched_wakeup …); "addressed": one
	 * with __perf_addr, which a fault() hits each time; else "group:name". */
	long (*tracepoint)(struct surface *surface, const char *name);
	/* The text of its format file, owned by the surface; NULL. */
	const char *(*tracepoint_format)(struct surface *surface, const char *name);
	/* A descriptor that FLAG_PID_CGROUP takes for the control group of the calling task, or
	 * -EOPNOTSUPP. */
	int (*cgroup)(struct surface *surface);
	/* The id of the group that such a descriptor is of. */
	int (*cgroup_id)(struct surface *surface, int fd, uint64_t *id);
	/* An open descriptor that is no event. */
	int (*other_file)(struct surface *surface);
	/* A descriptor that IOC_SET_BPF takes on a tracepoint; its program lets hits pass, or drops
	 * them: 1, 0.  With SURFACE_BPF. */
	int (*bpf_program)(struct surface *surface, bool passes);
	/* attr.type of a PMU registered at run time, by name, or -ENOENT; "hardware": the CPU's
	 * own. */
	int (*pmu)(struct surface *surface, const char *name);
	/* kernel.NAME, e.g. "perf_event_paranoid"; -errno.  Set only with SURFACE_MAY_SET_SYSCTLS;
	 * restored after the test. */
	long (*sysctl)(struct surface *surface, const char *name);
	int (*set_sysctl)(struct surface *surface, const char *name, long value);
	int (*set_online)(struct surface *surface, int cpu, bool online);
	/* What the user instruction that reads a hardware counter gives (rdpmc, mrs); index as the
	 * user page's - 1. */
	int (*read_counter)(struct surface *surface, unsigned index, uint64_t *value);

	/* --- arm64 (SURFACE_ARM_PMU; NULL elsewhere) ---------------------- */
	/* From user mode: writes PMSELR_EL0 (unless `set` is NULL), then reads it.  -errno where
	 * that traps. */
	int (*counter_selector)(struct surface *surface, const uint64_t *set, uint64_t *value);
	/* enum surface_level, or -errno when it is not known */
	int (*level)(struct surface *surface);
	/* With SURFACE_VIRTUALISATION: enters a guest, whose kernel (EL1), then its user program
	 * (EL0), run a loop like loop()'s, and comes back.  0 or -errno. */
	int (*run_guest)(struct surface *surface, uint64_t kernel_iterations,
			 uint64_t user_iterations);
};

struct surface {
	const struct surface_ops *ops;
	unsigned features; /* enum surface_feature */
	size_t page_size;
	unsigned hardware_counters; /* programmable ones; 0 without */
	unsigned pc_register, sp_register; /* bits of attr.sample_regs_user */
};

/* The running kernel. */
struct surface *surface_kernel(void);
/* The simulated machine, made anew for each test; `model`: "x86", "arm64", "big.LITTLE". Not linked
 * into the guest's program. */
struct surface *surface_sim(const char *model);
void surface_sim_free(struct surface *surface);
/* The first call of main(): when the process is one that exec() made, runs its body and doesn't
 * return. */
void surface_kernel_body(int argc, char **argv);
/* Runs the test's body as a task of a fresh machine (sim), or in a child process with a time limit
 * (kernel): the exit code, or -ETIMEDOUT, or 128 + signal. */
int surface_kernel_run(struct surface *surface, surface_body *body, void *argument,
		       unsigned timeout_s);
int surface_sim_run(struct surface *surface, surface_body *body, void *argument,
		    unsigned timeout_s);

#endif
