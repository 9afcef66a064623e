/* The system-call surface that the conformance suite uses (docs/spec.md, H6), and calls that make a
 * test's tasks cause events.
 *
 * One table has several implementations: surface_kernel.c (the running kernel, here and in the
 * guest machine) and surface_sim.c (tally's engine in the simulated machine).  A test is a C
 * function that runs *as a task* of the surface.  On the kernel it is a process.  In the simulated
 * machine it is a coroutine that the machine schedules, so each call below may let time pass and
 * other tasks run.  Therefore a test keeps no state in statics, shares data with its children only
 * through shared(), and spends time only in the calls below, never in loops of its own.
 *
 * Calls return the system call's result, or -errno.  A pointer given to a call may be invalid on
 * purpose (EFAULT): SURFACE_BAD_POINTER. */
#ifndef TALLY_CONFORMANCE_SURFACE_H
#define TALLY_CONFORMANCE_SURFACE_H

#include "abi/abi.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SURFACE_BAD_POINTER ((void *)16)

/* Features of a surface or of the machine under it.  A clause that needs more is not applicable
 * there. */
enum surface_feature {
	SURFACE_HARDWARE = 1u << 0, /* cycles and instructions can be counted */
	SURFACE_TRACEPOINTS = 1u << 1,
	SURFACE_BREAKPOINTS = 1u << 2,
	SURFACE_PRIVILEGED = 1u << 3, /* has CAP_PERFMON and may write sysctls */
	SURFACE_TWO_CPUS = 1u << 4,
	SURFACE_VFS = 1u << 5, /* has dup, sockets, /proc/self/fd */
	SURFACE_BPF = 1u << 6,
	SURFACE_ARM_PMU = 1u << 7, /* PMUv3 */
	SURFACE_X86_PMU = 1u << 8, /* counters with constraints, fixed counters */
	SURFACE_HETEROGENEOUS = 1u << 9,
	/* guests can be entered, for exclude_host and exclude_guest */
	SURFACE_VIRTUALISATION = 1u << 10,
	/* A guest or a simulation: no other user is affected. */
	SURFACE_MAY_SET_SYSCTLS = 1u << 11,
	SURFACE_HOTPLUG = 1u << 12,    /* CPUs may go offline (never on a real host) */
	SURFACE_EXACT_TIME = 1u << 13, /* simulated: times are exactly as computed */
	/* has pmu("trace"), which traces branches: clauses_d_aux.c */
	SURFACE_AUX = 1u << 14,
	SURFACE_USER_COUNTERS = 1u << 15 /* user code can read hardware counters */
};

/* The place of an arm64 kernel: in a guest; as a host at EL2 (VHE); or as a host at EL1, with its
 * own hypervisor at EL2. */
enum surface_level { SURFACE_LEVEL_GUEST, SURFACE_LEVEL_VHE_HOST, SURFACE_LEVEL_NON_VHE_HOST };

enum surface_task_kind { SURFACE_PROCESS, SURFACE_THREAD };

/* Describes the file that map_code() maps; build_id_size 0: no build-id. */
struct surface_file {
	uint64_t inode;
	uint8_t build_id[20], build_id_size;
};

/* Code that the kernel made at run time; fields that the surface does not know are 0. */
struct surface_ksymbol {
	uint64_t address;
	uint32_t length;
	uint16_t type; /* PERF_RECORD_KSYMBOL_TYPE_… */
	const char *name_start;
};

/* A place in the kernel's text that was patched; unknown fields are 0. */
struct surface_text_poke {
	uint64_t address;
	uint8_t old_bytes[8], new_bytes[8];
	uint16_t old_length, new_length;
};

struct surface;
/* The body of a task.  It returns the task's exit code (0..125). */
typedef int surface_body(struct surface *surface, void *argument);

struct surface_ops {
	const char *name; /* "kernel", "sim" */

	/* --- The system-call surface: H6 ---------------------------------- */
	int (*open)(struct surface *surface, const void *attr, pid_t pid, int cpu, int group,
		    unsigned long flags);
	ssize_t (*read)(struct surface *surface, int fd, void *bytes, size_t size);
	/* `request` has the number in linux/perf_event.h (TALLY_IOC_…). */
	long (*ioctl)(struct surface *surface, int fd, unsigned long request, uintptr_t argument);
	/* Returns the mapping, or NULL with -errno in *error.  `protection` and `flags` are
	 * mmap(2)'s. */
	void *(*mmap)(struct surface *surface, int fd, size_t size, int protection, int flags,
		      uint64_t offset, int *error);
	int (*munmap)(struct surface *surface, void *address, size_t size);
	int (*poll)(struct surface *surface, struct pollfd *fds, unsigned count, int timeout_ms);
	/* Supports F_GETFD, F_SETFD, F_GETFL, F_SETFL (O_ASYNC, O_NONBLOCK), F_SETSIG, F_SETOWN,
	 * F_DUPFD. */
	int (*fcntl)(struct surface *surface, int fd, int command, long argument);
	int (*close)(struct surface *surface, int fd);
	int (*prctl)(struct surface *surface, int option);

	/* --- Tasks -------------------------------------------------------- */
	pid_t (*self)(struct surface *surface);    /* tid of the calling task */
	pid_t (*process)(struct surface *surface); /* its pid */
	/* Creates a process (fork) or thread (pthread_create) that runs `body` and exits.  Returns
	 * its tid (a process's pid). */
	pid_t (*spawn)(struct surface *surface, enum surface_task_kind kind, surface_body *body,
		       void *argument);
	/* Returns the exit code, 128 + signal, or -errno. */
	int (*wait)(struct surface *surface, pid_t task);
	/* exec(2).  Descriptors with FD_CLOEXEC close, comm becomes `comm` (at most 15 bytes), then
	 * `body` runs as the new program and the task exits with its result.  Returns only on
	 * failure, with -errno.  `argument` points to `size` bytes, at most 256, which are copied
	 * for the new program; or, with size 0, to shared() memory. */
	int (*exec)(struct surface *surface, const char *comm, surface_body *body,
		    const void *argument, size_t size);
	/* Makes the calling task run as another user without capabilities from now on.  Use a
	 * process of its own: spawn first. */
	int (*drop_privileges)(struct surface *surface);
	/* Blocks (switches away) until *word, in shared() memory, differs from `value`. */
	void (*wait_while)(struct surface *surface, volatile uint32_t *word, uint32_t value);
	/* Stores `value` and wakes the waiting tasks. */
	void (*post)(struct surface *surface, volatile uint32_t *word, uint32_t value);
	/* Returns zeroed memory that children of either kind share.  It is freed after the test. */
	void *(*shared)(struct surface *surface, size_t size);
	/* Makes the calling task run on this CPU from now on (-1: on any CPU).  Returns 0 or
	 * -errno. */
	int (*pin)(struct surface *surface, int cpu);
	int (*this_cpu)(struct surface *surface);
	int (*cpus)(struct surface *surface); /* number of online CPUs */

	/* --- Work: calls that make the calling task cause events ---------- */
	/* Uses at least this much user-mode CPU time. */
	void (*burn)(struct surface *surface, uint64_t ns);
	/* Runs a user-only loop: each iteration has 2 instructions, one of them a taken branch.
	 * Nothing else runs but the call itself. */
	void (*loop)(struct surface *surface, uint64_t iterations);
	/* Makes exactly `count` minor faults of user mode, at the addresses that fault_address()
	 * returns. */
	void (*fault)(struct surface *surface, unsigned count);
	/* Returns the address of the n-th fault (from 0) of any fault() of the calling task. */
	uint64_t (*fault_address)(struct surface *surface, unsigned n);
	/* Switches out and in once, voluntarily. */
	void (*sleep)(struct surface *surface, uint64_t ns);
	/* Lets pending signals be delivered. */
	void (*yield_to_signal)(struct surface *surface);
	/* Maps one page of the file mapped_path() and unmaps it: an MMAP record. */
	void (*map_code)(struct surface *surface, bool executable);
	const char *(*mapped_path)(struct surface *surface);
	int (*mapped_file)(struct surface *surface, struct surface_file *file);
	int (*set_comm)(struct surface *surface, const char *comm);
	/* Hits the suite's tracepoint `count` times.  The surface chooses the tracepoint; its id is
	 * tracepoint("hit").  On the kernel: syscalls:sys_enter_getppid or raw_syscalls:sys_enter,
	 * in the calling task. */
	void (*hit)(struct surface *surface, unsigned count);
	/* Reads or writes (`count` times, 4 bytes) the watched variable of breakpoints, or runs the
	 * watched function. */
	void (*touch)(struct surface *surface, unsigned breakpoint_type, unsigned count);
	uint64_t (*watched_address)(struct surface *surface, unsigned breakpoint_type);
	/* Causes `count` software events of this kind (clocks: uses `count` ns of CPU time).
	 * Returns 0, or -EOPNOTSUPP if the surface can't cause them. */
	int (*make)(struct surface *surface, enum tally_sw event, unsigned count);
	/* Makes a control group of this name below the calling task's.  Returns 0 and its id, or
	 * -errno.  The group is removed afterwards. */
	int (*make_cgroup)(struct surface *surface, const char *name, uint64_t *id);
	/* Makes the kernel create code; if `symbol` is NULL, makes it remove that code.  Returns 0
	 * or -EOPNOTSUPP. */
	int (*make_ksymbol)(struct surface *surface, struct surface_ksymbol *symbol);
	/* Makes the kernel patch its own text.  Returns 0 or -EOPNOTSUPP. */
	int (*poke_text)(struct surface *surface, struct surface_text_poke *poke);

	/* --- Asking ------------------------------------------------------- */
	uint64_t (*now)(struct surface *surface); /* CLOCK_MONOTONIC, ns */
	/* Returns how many signals of this number the calling task has received since
	 * watch_signal(). *last_code: POLL_IN, POLL_HUP (si_code); *last_data: si_perf_data of
	 * SIGTRAP. */
	int (*watch_signal)(struct surface *surface, int signal);
	unsigned (*signals)(struct surface *surface, int signal, int *last_code,
			    uint64_t *last_data);
	/* Returns the id of a tracepoint, or -ENOENT.  Names: "hit" is the one that hit() hits;
	 * "weighted" one with __perf_count; "tasked" one with __perf_task (sched:sched_wakeup …);
	 * "addressed" one with __perf_addr, which each fault() hits; otherwise "group:name". */
	long (*tracepoint)(struct surface *surface, const char *name);
	/* Returns the text of its format file, which the surface owns, or NULL. */
	const char *(*tracepoint_format)(struct surface *surface, const char *name);
	/* Returns a descriptor of the calling task's control group, for FLAG_PID_CGROUP, or
	 * -EOPNOTSUPP. */
	int (*cgroup)(struct surface *surface);
	/* Gets the id of the control group of such a descriptor. */
	int (*cgroup_id)(struct surface *surface, int fd, uint64_t *id);
	/* Returns an open descriptor that is not an event. */
	int (*other_file)(struct surface *surface);
	/* Returns a descriptor for IOC_SET_BPF on a tracepoint.  Its program returns 1 and lets
	 * hits pass, or returns 0 and drops them.  Needs SURFACE_BPF. */
	int (*bpf_program)(struct surface *surface, bool passes);
	/* Returns attr.type of a PMU registered at run time, by name, or -ENOENT.  "hardware" is
	 * the CPU's PMU. */
	int (*pmu)(struct surface *surface, const char *name);
	/* Returns kernel.NAME, e.g. "perf_event_paranoid", or -errno.  A test may set one only with
	 * SURFACE_MAY_SET_SYSCTLS; it is restored after the test. */
	long (*sysctl)(struct surface *surface, const char *name);
	int (*set_sysctl)(struct surface *surface, const char *name, long value);
	int (*set_online)(struct surface *surface, int cpu, bool online);
	/* Reads a hardware counter with the user instruction (rdpmc, mrs); `index` is the user
	 * page's - 1. */
	int (*read_counter)(struct surface *surface, unsigned index, uint64_t *value);

	/* --- arm64 (SURFACE_ARM_PMU; NULL elsewhere) ---------------------- */
	/* From user mode: writes PMSELR_EL0 (unless `set` is NULL), then reads it.  Returns -errno
	 * if that traps. */
	int (*counter_selector)(struct surface *surface, const uint64_t *set, uint64_t *value);
	/* Returns enum surface_level, or -errno if it is unknown. */
	int (*level)(struct surface *surface);
	/* Needs SURFACE_VIRTUALISATION.  Enters a guest whose kernel (EL1) and then user program
	 * (EL0) run loops like loop()'s, and returns.  Returns 0 or -errno. */
	int (*run_guest)(struct surface *surface, uint64_t kernel_iterations,
			 uint64_t user_iterations);
};

struct surface {
	const struct surface_ops *ops;
	unsigned features; /* enum surface_feature */
	size_t page_size;
	unsigned hardware_counters; /* programmable counters; 0 without a hardware PMU */
	uint64_t raw_instructions;  /* config of the RAW event that counts instructions */
	unsigned pc_register, sp_register; /* bits of attr.sample_regs_user */
};

/* The running kernel. */
struct surface *surface_kernel(void);
/* The running kernel, in a program whose perf events tally's preloaded object answers. */
struct surface *surface_process(void);
/* Returns why the surface "process" can't keep this clause: process_exceptions.c, a closed list.
 * NULL: it must. */
const char *surface_process_exception(const char *clause);
/* The simulated machine, created anew for each test.  `model` is the name of a sim_pmu_model, or
 * "arm64-vhe" and the like.  Returns NULL if there is no such model.  It is not linked into the
 * guest machine's program. */
struct surface *surface_sim(const char *model);
void surface_sim_free(struct surface *surface);
/* Must be the first call of main(): if exec() made this process, it runs the body and doesn't
 * return. */
void surface_kernel_body(int argc, char **argv);
/* Runs the test's body as a task of a fresh machine (sim), or in a child process with a time limit
 * (kernel).  Returns the exit code, -ETIMEDOUT, or 128 + signal. */
int surface_kernel_run(struct surface *surface, surface_body *body, void *argument,
		       unsigned timeout_s);
int surface_sim_run(struct surface *surface, surface_body *body, void *argument,
		    unsigned timeout_s);

#endif
