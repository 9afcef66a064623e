/* This machine: its CPUs, limits, files below /proc and /sys; what doctor finds out about it. */
#ifndef TALLY_MACHINE_H
#define TALLY_MACHINE_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* CPUs: the lists that the kernel writes ("0-3,7"), their model, how they share caches.
 *
 * sysfs: Documentation/ABI/testing/sysfs-devices-system-cpu.  Lists are on the heap, everything
 * else is in the caller's arena. */

enum { TALLY_CPU_MAX = 65536 }; /* larger numbers in a list are an error */

struct tally_cpu_list {
	unsigned *cpus; /* ascending, each once; malloc'd */
	size_t count;
};

/* Parses "0-3,7"; blanks around it and a trailing comma are allowed, and an empty text is an empty
 * list.  Returns 0, or -EINVAL with the position. */
int tally_cpu_list_parse(const char *text, struct tally_cpu_list *out, struct tally_error *err);
/* The same for a list given by the user, which must not be empty. */
int tally_cpu_list_asked(const char *text, struct tally_cpu_list *out, struct tally_error *err);
/* Adds a CPU unless it is in the list.  Returns 0 or -ENOMEM. */
int tally_cpu_list_add(struct tally_cpu_list *list, unsigned cpu);
void tally_cpu_list_release(struct tally_cpu_list *list);

/* Returns the list as text ("0-3,7"); NULL if out of memory. */
char *tally_cpu_list_text(const struct tally_cpu_list *list, struct tally_arena *arena);

int tally_cpu_list_contains(const struct tally_cpu_list *list, unsigned cpu);

enum tally_cpu_set { TALLY_CPU_ONLINE, TALLY_CPU_POSSIBLE, TALLY_CPU_PRESENT };

/* Reads the machine's list.  If sysfs is hidden: 0 … sysconf's number − 1.  Returns 0 or -errno. */
int tally_cpu_list_read(enum tally_cpu_set set, struct tally_cpu_list *out,
			struct tally_error *err);

/* The CPU's model, as perf writes it into recordings. */
struct tally_cpu_model {
	char name[128]; /* "AMD EPYC"; "" when unknown */
	char id[96]; /* "AuthenticAMD,25,17,1" on x86; the MIDR in hex on arm64; "" if unknown */
	int hypervisor; /* 1: x86's cpuid reports a hypervisor; 0 on other architectures */
};

/* Reads the model from the text of /proc/cpuinfo. */
void tally_cpu_model_parse(const char *cpuinfo, struct tally_cpu_model *out);
void tally_cpu_model_read(struct tally_cpu_model *out);

struct tally_cpu_cache {
	unsigned level, line_size, sets, ways;
	const char *type; /* "Data", "Instruction", "Unified" */
	const char *size; /* "32K" */
	const char *cpus; /* CPUs that share it: "0-1" */
};

struct tally_cpu_location {
	unsigned cpu;
	int core, die, package; /* -1: unknown */
};

struct tally_cpu_topology {
	struct tally_cpu_location *places; /* one for each online CPU */
	size_t place_count;
	/* Distinct lists of CPUs ("0-7") that share a package, a die, a core. */
	const char **packages, **dies, **cores;
	size_t package_count, die_count, core_count;
	struct tally_cpu_cache *caches; /* each cache once, ordered by level as in perf */
	size_t cache_count;
};

/* Reads the place of one CPU, and the NUMA node next to it; -1 if sysfs doesn't say. */
void tally_cpu_location_read(const char *root, unsigned cpu, struct tally_cpu_location *out,
			     int *node);

/* Reads the topology; data that sysfs lacks is left out.  `root` NULL means the machine's own
 * (/sys/devices/system/cpu).  Returns 0 or -ENOMEM. */
int tally_cpu_topology_read(const char *root, const struct tally_cpu_list *cpus,
			    struct tally_arena *arena, struct tally_cpu_topology *out);

/* CPUs that come and go, as the kernel reports them: uevents by netlink(7).
 *
 * In a network namespace other than the initial one, no uevents arrive.  So a caller that must know
 * also reads the list of CPUs (cpu.c) from time to time. */

/* Returns a descriptor to poll, or -errno. */
int tally_hotplug_open(void);

/* Reads the pending uevents.  Returns true if one of them was about a CPU.  Never waits. */
bool tally_hotplug_has_news(int fd);

/* Tasks as /proc shows them: proc(5).
 *
 * Parsers take text.  Readers read /proc, and return -ESRCH for a task that has ended and -EACCES
 * for one that may not be inspected.  A task can end between two reads: code that walks the list
 * must expect -ESRCH. */

enum {
	TALLY_PROC_PATH_MAX = 4096 + 16, /* PATH_MAX, and " (deleted)" behind it */
	/* 16, except for kernel workers: the name of their work follows */
	TALLY_PROC_COMM_MAX = 64
};

struct tally_proc_map {
	uint64_t start, end, offset; /* end: the first byte behind it */
	int protection;              /* PROT_* of mmap(2) */
	bool shared;
	uint32_t major, minor;
	uint64_t inode;
	/* As in the kernel's MMAP2 records: "/usr/bin/a b", "[heap]", "/memfd:x (deleted)", "" for
	 * anonymous memory.  Newlines are those of the file's name, not escaped. */
	char path[TALLY_PROC_PATH_MAX];
};

/* Parses the line at *text, which ends at `end` or at a newline, and moves *text behind it.  Skips
 * lines that are no mapping.  Returns false at the end of the text. */
bool tally_proc_maps_next(const char **text, const char *end, struct tally_proc_map *out);

/* Returns a thread of the process that still has the process's memory, root and mappings in /proc:
 * `pid` itself, or another thread when the main thread has ended.  Returns `pid` if there is none.
 * `pid` may also be a thread's id. */
pid_t tally_proc_living_thread(pid_t pid);

/* Calls `visit` for each mapping of `pid`, in order of address, until it returns non-zero.  Returns
 * that value, 0 at the end, or -errno. */
int tally_proc_maps(pid_t pid, int (*visit)(void *context, const struct tally_proc_map *map),
		    void *context);

struct tally_proc_status {
	pid_t tgid, parent;             /* -1: not in the text */
	uid_t uid;                      /* effective */
	int seccomp;                    /* 0 off, 1 strict, 2 filter, -1 not in the text */
	char name[TALLY_PROC_COMM_MAX]; /* unescaped */
};

void tally_proc_status_parse(const char *text, struct tally_proc_status *out);
/* `pid` may also be a thread's id.  Returns 0 or -errno. */
int tally_proc_status(pid_t pid, struct tally_proc_status *out);

/* Reads the name of a task (process or thread).  Returns its length, or -errno. */
int tally_proc_comm(pid_t tid, char *out, size_t size);
/* True if the process has this name: as the kernel keeps it, or the last part of its argv[0]. */
bool tally_proc_is_named(pid_t pid, const char *name);

struct tally_pid_list {
	pid_t *items; /* ascending; malloc'd */
	size_t count, capacity;
};

int tally_proc_pids(struct tally_pid_list *out);               /* all processes */
/* the threads of a process, the main one included */
int tally_proc_threads(pid_t pid, struct tally_pid_list *out);
void tally_pid_list_release(struct tally_pid_list *list);

/* The loaded kernel modules: proc(5), /proc/modules.  The parser takes text; it keeps nothing
 * between calls. */

enum { TALLY_LOADED_MODULE_NAME_BYTES = 64 };

struct tally_loaded_module {
	char name[TALLY_LOADED_MODULE_NAME_BYTES]; /* "nf_tables" */
	uint64_t start, end; /* end: the first byte behind the module, or the next module's start */
};

struct tally_loaded_modules {
	/* by start; the caller frees it with tally_vector_release() */
	struct tally_loaded_module *items;
	size_t count, capacity;
};

/* Adds the modules of a NUL-terminated text, except those whose addresses the kernel hides from the
 * reader (kptr_restrict).  The kernel gives the size of all of a module's memory, which need not be
 * in one piece: so an end is cut where another module begins.  Returns 0 or -ENOMEM. */
int tally_loaded_modules_parse(const char *text, struct tally_loaded_modules *out);

/* PMUs as sysfs shows them: Documentation/ABI/testing/sysfs-bus-event_source-devices-*.
 *
 * All strings are in the caller's arena.  `root` NULL means the machine's own directory. */

#define TALLY_SYSFS_PMUS "/sys/bus/event_source/devices"

struct tally_sysfs_format { /* format/NAME: "config:0-7,32-35" */
	const char *name;
	uint8_t field;
	uint64_t mask;
};

struct tally_sysfs_event { /* events/NAME, NAME.unit, NAME.scale */
	const char *name;
	const char *terms; /* "event=0x3c,umask=0x0", without the newline */
	const char *unit;  /* "" if there is none */
	double scale;      /* 1 if there is none */
};

struct tally_sysfs_pmu {
	const char *name;
	uint32_t type;
	const char *cpus; /* cpumask, or cpus (of a core type), or "" */
	struct tally_sysfs_format *formats; /* sorted by name, like the events */
	size_t format_count;
	struct tally_sysfs_event *events;
	size_t event_count;
	bool is_core; /* it has `cpus`: a PMU of the cores of one type */
};

/* Parses the text of a format file.  Returns false if it isn't one ("config4:0", "config:70"). */
bool tally_sysfs_format_parse(const char *text, uint8_t *field, uint64_t *mask);

/* Reads one PMU.  Leaves out files that can't be parsed.  Returns 0 or -errno: -ENOENT if there is
 * no such PMU. */
int tally_sysfs_pmu_read(const char *root, const char *name, struct tally_arena *arena,
			 struct tally_sysfs_pmu *out);

/* Returns the names of all PMUs, sorted, in *names.  Returns 0 or -errno. */
int tally_sysfs_pmu_names(const char *root, struct tally_arena *arena, const char ***names,
			  size_t *count);

/* Returns the CPUs of each kind of core ("0-3"): the file `cpus` of each core's PMU.  A machine with
 * one kind has one list or, on x86, none.  Returns 0 or -errno. */
int tally_sysfs_core_cpus(const char *root, struct tally_arena *arena, const char ***out,
			  size_t *count);

/* True if the CPUs are of several types: two PMUs or more have a file `cpus` (cpu_core and cpu_atom
 * of Intel's hybrid CPUs, one armv8_* a type on Arm).  Looks at names alone, so it is cheap: one
 * system call on a machine with a PMU "cpu". */
bool tally_sysfs_has_core_types(const char *root);

/* Tracepoints as tracefs shows them: Documentation/trace/events.rst. */

/* Returns a descriptor of tracefs's root directory, which is for openat(2) and which the caller
 * closes; or -errno, with advice in `err`.  Changes nothing that others see: if tracefs is mounted
 * nowhere, it makes a mount that no path leads to and that ends with the descriptor. */
int tally_tracefs_open(struct tally_error *err);

/* Returns the id of one tracepoint (attr.config), or -errno: -ENOENT if there is none. */
int64_t tally_tracefs_tracepoint_id(int tracefs, const char *system, const char *name);

/* Appends the text of events/SYSTEM/NAME/format.  Returns 0 or -errno. */
int tally_tracefs_format(int tracefs, const char *system, const char *name,
			 struct tally_buffer *out);

/* Calls `visit` for each tracepoint of `system` (NULL: of all), in no particular order, until it
 * returns non-zero.  Returns that value, 0 at the end, or -errno. */
int tally_tracefs_walk(int tracefs, const char *system,
		       int (*visit)(void *context, const char *system, const char *name),
		       void *context);

/* The privileges that perf events need: capabilities(7), perf_event_open(2).
 *
 * The kernel requires them in the *initial* user namespace: root in `unshare -r` or in a rootless
 * container has every bit, but none of them counts. */

struct tally_capabilities {
	bool perfmon, sys_admin, sys_ptrace, syslog, ipc_lock; /* effective */
	/* this process is in the initial user namespace, where the bits count */
	bool initial_namespace;
};

void tally_capabilities_read(struct tally_capabilities *out);

/* True with CAP_PERFMON, or CAP_SYS_ADMIN, which gave the same power before Linux 5.8. */
bool tally_capabilities_monitor(const struct tally_capabilities *capabilities);

/* A user's limits for events: descriptors, and memory for rings.
 *
 * Every event on every CPU (or of every thread) needs a descriptor.  A mapped ring is locked
 * memory.  The kernel charges its header page and its data to the *user*, up to
 * kernel.perf_event_mlock_kb for each online CPU, which all of the user's programs share.  The rest
 * is charged to the process, up to RLIMIT_MEMLOCK.  With CAP_IPC_LOCK, or at paranoid level -1,
 * there is no limit.  (perf_mmap() in the kernel's events/core.c.) */

/* The kernel settings that decide what perf events may do:
 * Documentation/admin-guide/sysctl/kernel.rst. */

enum { TALLY_SYSCTL_UNKNOWN = INT_MIN }; /* the file doesn't exist or can't be read */

struct tally_sysctls {
	/* kernel.perf_event_paranoid; no file if the kernel has no perf events */
	int paranoid;
	int mlock_kb; /* kernel.perf_event_mlock_kb, per online CPU */
	/* kernel.perf_event_max_sample_rate, Hz; the kernel may lower it by itself */
	int max_sample_rate;
	int max_stack;            /* kernel.perf_event_max_stack, frames */
	int cpu_time_max_percent; /* kernel.perf_cpu_time_max_percent */
	int kptr_restrict;        /* kernel.kptr_restrict */
	int ptrace_scope;         /* kernel.yama.ptrace_scope */
	int user_access;          /* kernel.perf_user_access (arm64, riscv) */
	/* kernel.nmi_watchdog; 1: it may hold a hardware counter on every CPU */
	int nmi_watchdog;
};

void tally_sysctls_read(struct tally_sysctls *out);

/* Reads one setting by its file below /proc/sys ("kernel/perf_event_paranoid").  Returns its value,
 * or TALLY_SYSCTL_UNKNOWN. */
int tally_sysctl_read(const char *name);

#define TALLY_LIMIT_NONE UINT64_MAX

struct tally_limits {
	uint64_t memlock_bytes;                 /* RLIMIT_MEMLOCK: soft, the one in force */
	uint64_t memlock_bytes_max;             /* RLIMIT_MEMLOCK: hard */
	uint64_t descriptors, descriptors_max;  /* RLIMIT_NOFILE, soft and hard */
};

void tally_limits_read(struct tally_limits *out);

/* Raises the soft limit of descriptors to the hard one.  Returns the new limit.  Children inherit
 * it, so set it back in a profiled command: some programs close every descriptor up to the
 * limit. */
uint64_t tally_limits_raise_descriptors(void);

struct tally_ring_budget {
	bool unlimited;
	uint64_t bytes;       /* header pages and data of all rings together */
	uint32_t page_bytes;
};

/* Computes the budget from these numbers.  Rings that the user's other programs have mapped are
 * unknown, and not subtracted. */
struct tally_ring_budget tally_ring_budget_make(const struct tally_sysctls *sysctls,
						const struct tally_capabilities *capabilities,
						const struct tally_limits *limits,
						size_t online_cpus, uint32_t page_bytes);

/* The same for this process, with numbers read now. */
struct tally_ring_budget tally_machine_ring_budget(void);

/* Returns how many data pages each of `rings` rings can have within the budget: a power of two, at
 * most `pages_max`; 0 if not even one page fits. */
size_t tally_machine_ring_pages(const struct tally_ring_budget *budget, size_t rings,
				size_t pages_max);

/* Subtracts `rings` rings of `data_pages` from the budget: for rings of several sizes. */
void tally_ring_budget_spend(struct tally_ring_budget *budget, size_t rings, size_t data_pages);

/* NUMA nodes and their memory: sysfs, Documentation/ABI/stable/sysfs-devices-node and
 * Documentation/ABI/testing/sysfs-devices-memory.
 *
 * Everything is in the caller's arena. */

struct tally_memory_node {
	unsigned number;
	uint64_t total_kib, free_kib;
	const char *cpus;       /* "0-3"; "" for memory without CPUs */
	/* the node's blocks of memory, a bit each; NULL: unknown */
	const uint64_t *blocks;
	size_t block_count;     /* number of these bits */
};

struct tally_memory {
	uint64_t block_bytes; /* 0: unknown */
	struct tally_memory_node *nodes; /* the online nodes */
	size_t node_count;
};

/* Reads the nodes; data that sysfs lacks is left out.  `root` NULL means the machine's own
 * (/sys/devices/system).  Returns 0 or -ENOMEM. */
int tally_memory_read(const char *root, struct tally_arena *arena, struct tally_memory *out);

/* Reduces the delay before this thread runs after a wake-up. */

/* The thread's earlier scheduling.  Zeroed: nothing to restore. */
struct tally_latency {
	bool is_raised;
	int nice;
};

/* Makes this thread run soon after it wakes.  With the privilege (CAP_SYS_NICE, RLIMIT_RTPRIO) it
 * becomes a real-time thread of the lowest priority (SCHED_FIFO, priority 1; sched(7)). nice alone
 * is not enough: a thousand runnable tasks delay a thread that has run longer than its share by the
 * better part of a second (Linux 6.12 and later).  Without the privilege it requests short slices:
 * beside tasks with longer slices it then runs sooner after waking, but gets no larger share in all
 * (sched_setattr(2); since Linux 6.12 sched_runtime is the slice of an ordinary task, at least 0.1
 * ms).  A thread that already has another policy stays unchanged, as does one that gets neither
 * real-time priority nor short slices.  Children forked later are ordinary ones.  The earlier state
 * is stored in *before, for tally_latency_end(). */
void tally_latency_begin(struct tally_latency *before);

/* Restores the earlier state.  Called by the same thread. */
void tally_latency_end(const struct tally_latency *before);

/* The machine code of BPF programs that is in the kernel now.
 *
 * With CAP_SYS_ADMIN, bpf(2) describes each program: its functions and their lengths, its id and
 * tag.  Without it, /proc/kallsyms gives the functions' names and start addresses, if the kernel
 * shows addresses to this user.  Trampolines and dispatchers, which are not programs, are only in
 * /proc/kallsyms. */

struct tally_bpf_code {
	uint64_t start;
	uint32_t size;
	/* the program's id; 0: unknown.  A program has one item for each of its functions; they
	 * are adjacent */
	uint32_t program;
	uint8_t tag[8];   /* the program's tag */
	char name[256];   /* "bpf_prog_0123456789abcdef_name", as in KSYMBOL records */
};

struct tally_bpf_codes {
	struct tally_bpf_code *items; /* the caller frees it with tally_vector_release() */
	size_t count, capacity;
};

/* Adds all code that is in the kernel now.  Returns 0, -ENOMEM, or another -errno (such as -EPERM)
 * if neither source can be read. */
int tally_bpf_codes_read(struct tally_bpf_codes *out);

/* Adds the trampolines and dispatchers in `kallsyms`, the NUL-terminated text of /proc/kallsyms.
 * `programs`: also adds the programs' functions.  The text has no sizes: an item ends where the
 * next symbol begins, or after a plausible maximum.  Returns 0 or -ENOMEM. */
int tally_bpf_codes_parse(const char *kallsyms, bool programs, struct tally_bpf_codes *out);

/* BTF, the types of BPF programs (Documentation/bpf/btf.rst): reads only the names of functions.
 * Pure: bytes in, names out.  The bytes are in this machine's byte order, and untrusted. */

/* Looks up the names of `count` types by their ids: NULL for those without one.  The names point
 * into the bytes. */
void tally_bpf_type_names(const void *types, size_t size, const uint32_t *ids, size_t count,
			  const char **names);

/* Finds out whether this process is in a container, and its kind: the advice depends on it.
 *
 * No system call returns this.  Files left in an image (/.dockerenv) outlive the container, so
 * marks count only where a namespace differs from the initial one, whose inode numbers are fixed
 * (linux/proc_ns.h), or where the cgroup's path names a runtime. */

enum tally_container_kind {
	TALLY_CONTAINER_NONE,
	TALLY_CONTAINER_DOCKER,
	TALLY_CONTAINER_PODMAN,
	TALLY_CONTAINER_KUBERNETES,
	TALLY_CONTAINER_LXC,
	TALLY_CONTAINER_NSPAWN,
	TALLY_CONTAINER_OTHER
};

/* The marks found: the input of the pure part. */
struct tally_container_marks {
	bool foreign_pid_namespace, foreign_user_namespace;
	bool dockerenv, containerenv, kubernetes_environment;
	/* /run/systemd/container or $container: "podman", "lxc", "systemd-nspawn", … */
	char manager[32];
	char cgroup[1024]; /* /proc/1/cgroup or /proc/self/cgroup */
};

void tally_container_marks_read(struct tally_container_marks *out);
enum tally_container_kind tally_container_kind_of(const struct tally_container_marks *marks);
const char *tally_container_kind_text(enum tally_container_kind kind); /* "docker", …; "none" */

/* Tries which perf events work here, rather than guessing it from settings.
 *
 * Each probe opens a real event on this process (or CPU) and returns the errno of the refusal.  The
 * most informative one is tally_probe_reach(): perf_event_open(2) with flags that no kernel knows.
 * A kernel that gets the call returns EINVAL before it looks at the caller's privileges.  Any other
 * answer comes from something in front of the kernel.  This distinguishes the EPERM of a seccomp
 * filter from the kernel's own. */

enum {
	TALLY_PROBE_NOT_TRIED = -1,
	TALLY_PROBE_KILLED = -2 /* the call kills the process: seccomp's SECCOMP_RET_KILL */
};

/* Returns the errno of the call described above; EINVAL is the good answer.  With `in_child` a
 * child makes the call, so that a filter that kills does no harm; then it may also return
 * TALLY_PROBE_KILLED. */
int tally_probe_reach(bool in_child);

/* Returns the kernel's answer to the least that can be asked for: to count this process's time in user
 * mode.  0 if it allows that, or fails for a reason that is no refusal; EPERM, EACCES, ENOSYS or
 * ENODEV if it, or a filter or sandbox in front of it, refuses perf events; TALLY_PROBE_KILLED. */
int tally_probe_refusal(void);
/* True for those answers except 0. */
bool tally_probe_is_refusal(int answer);

/* Each returns 0 if the event could be opened, else errno. */
int tally_probe_own(bool with_kernel); /* a clock on this process */
int tally_probe_system_wide(int cpu);
int tally_probe_hardware(void); /* cycles of this process in user mode */
int tally_probe_breakpoint(void);
int tally_probe_tracepoint(uint64_t id, bool raw); /* on this process; raw: with its data */

/* Samples for real: runs a busy loop of some milliseconds under a sampling event with a mapped
 * ring. */
struct tally_overflow_probe {
	int open_errno;      /* 0, errno, or TALLY_PROBE_NOT_TRIED */
	int map_errno;       /* 0 or errno */
	uint64_t count;      /* the event's count */
	uint64_t running_ns; /* 0: it was never on the PMU */
	uint64_t samples;    /* number of samples that arrived in the ring */
};

void tally_probe_overflow(bool hardware, struct tally_overflow_probe *out);

/* Addresses in /proc/kallsyms: returns 1 if shown, 0 if hidden (all zeros), -1 if there is no such
 * file. */
int tally_probe_kallsyms(void);

struct tally_tracefs_state {
	/* mount point of tracefs; "": not mounted (privileged users don't need it
	 * mounted) */
	char path[128];
	bool in_kernel;  /* the kernel has tracefs */
	/* of opening tracefs as tally does and reading a tracepoint's id: 0 or errno */
	int read_errno;
	uint64_t id;     /* id of sched:sched_switch, if read_errno is 0 */
};

void tally_probe_tracefs(struct tally_tracefs_state *out);

/* All that `tally doctor` knows about this machine and user, gathered once.  The findings are a
 * pure function of it. */

/* The cost of simulating (docs/simulated.md has the measurements). */
#define TALLY_SIMULATED_COST "2 to 40 times slower, and 0.1 to 3 s to start"

struct tally_machine_facts {
	char kernel[128]; /* release */
	char arch[32];
	uint32_t user;    /* effective user id */
	size_t online_cpus;
	uint32_t page_bytes;
	struct tally_cpu_model cpu;
	/* kinds of CPU PMUs in sysfs, separated by blanks: "cpu"; "" if there are none */
	char pmus[256];

	struct tally_sysctls sysctls;
	struct tally_capabilities capabilities;
	struct tally_limits limits;
	enum tally_container_kind container;
	bool lockdown;    /* kernel_lockdown(7) at "confidentiality": no perf events */
	int seccomp;      /* as in /proc/self/status: 0 off, 1 strict, 2 filter, -1 unknown */

	/* Results of probes: 0, errno, or TALLY_PROBE_NOT_TRIED / _KILLED. */
	int reach;
	int own, own_kernel, system_wide, hardware, breakpoint, tracepoint, tracepoint_raw;
	struct tally_overflow_probe clock_overflow, hardware_overflow;
	struct tally_tracefs_state tracefs;
	/* why there is no simulated PMU, or no process provider; "": there is one; NULL: unknown (the
	 * caller sets them) */
	const char *simulated, *process;
	int kallsyms;     /* 1 addresses shown, 0 hidden, -1 no such file */
};

/* Returns the refusal of perf events as a whole (as tally_probe_refusal()), or 0. */
int tally_machine_facts_refusal(const struct tally_machine_facts *facts);
/* Returns the provider that commands' events come from: "kernel", "process", or NULL if there is
 * none. */
const char *tally_machine_facts_provider(const struct tally_machine_facts *facts);

/* Gathers everything, with all probes.  Takes some 60 ms, most of it in busy loops that sample
 * themselves. */
void tally_machine_facts_read(struct tally_machine_facts *out);

/* Gathers only what explains a refusal, and opens no event: well below a millisecond.  All probes
 * but `reach` stay NOT_TRIED. */
void tally_machine_facts_read_quickly(struct tally_machine_facts *out);

/* Findings about the machine for the user: each limitation with its cause and its cure.
 *
 * They are a pure function of the facts.  `tally doctor` shows all of them; other commands use the
 * same causes and cures to explain a refused event. */

enum tally_finding_state { TALLY_FINDING_OK, TALLY_FINDING_LIMITED, TALLY_FINDING_MISSING };

enum tally_finding_group {
	TALLY_FINDING_VERDICT,   /* usable features, by task */
	TALLY_FINDING_PRIVILEGE, /* permission to open events */
	TALLY_FINDING_HARDWARE,
	TALLY_FINDING_KERNEL,    /* its symbols and tracepoints */
	TALLY_FINDING_LIMIT,
	TALLY_FINDING_GROUPS
};

struct tally_finding {
	const char *id;    /* "mlock": stable, scripts may rely on it */
	enum tally_finding_group group;
	enum tally_finding_state state;
	const char *title; /* "ring memory" */
	char detail[192];  /* the present state; one line */
	char cause[320];   /* why something is missing; one line; empty if nothing is */
	/* commands to type or settings to change, a line each; empty if there is none or nothing to
	 * cure */
	char cure[640];
};

enum { TALLY_FINDINGS_MAX = 32 };

struct tally_findings {
	struct tally_finding items[TALLY_FINDINGS_MAX];
	size_t count;
};

/* Makes all findings, group by group. */
void tally_findings_make(const struct tally_machine_facts *facts, struct tally_findings *out);

const struct tally_finding *tally_findings_find(const struct tally_findings *findings,
						const char *id);

const char *tally_finding_state_text(
	enum tally_finding_state state); /* "ok", "limited", "missing" */
const char *tally_finding_group_text(enum tally_finding_group group); /* "verdict", … */

/* ---- one refusal --------------------------------------------------------- */

/* A request that failed, in perf_event_open(2) or in mapping its ring. */
struct tally_refusal {
	int errno_code;       /* positive, or -errno */
	bool mapping;         /* mapping the ring was refused, not the event */
	bool kernel_included; /* the event didn't exclude the kernel */
	bool system_wide;     /* pid -1 */
	bool other_task;      /* a task other than this process and its children */
	bool hardware;        /* hardware, cache or raw event */
	bool tracepoint_data; /* a tracepoint with SAMPLE_RAW */
};

/* Sets cause and cure in `out`.  Returns false if the machine's settings don't explain the refusal:
 * then the event itself is at fault (EINVAL, ESRCH, …). */
bool tally_refusal_explain(const struct tally_refusal *refusal,
			   const struct tally_machine_facts *facts, struct tally_finding *out);

/* Reads the facts (well below a millisecond), then calls tally_refusal_explain(). */
bool tally_machine_refusal(const struct tally_refusal *refusal, struct tally_finding *out);

#endif
