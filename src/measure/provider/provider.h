/* Where events come from: the providers, and what each can count. */
#ifndef TALLY_PROVIDER_H
#define TALLY_PROVIDER_H

#include "abi/abi.h"
#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

struct tally_catalogue;
struct tally_event;
struct tally_simulated_options;

/* Sources of events: one interface over the kernel, scripted playback (tests), and the engine in
 * its hosts.  providers.c has the table of those that a user can choose.
 *
 * Handles are not descriptors, but small non-negative numbers of the provider.  The calls mirror
 * perf_event_open(2) and the operations on its descriptors. */

/* ioctl requests, numbered as in linux/perf_event.h; the argument is a value or a pointer. */
enum tally_ioctl {
	TALLY_IOCTL_ENABLE,
	TALLY_IOCTL_DISABLE,
	TALLY_IOCTL_REFRESH,
	TALLY_IOCTL_RESET,
	TALLY_IOCTL_PERIOD,     /* const uint64_t * */
	TALLY_IOCTL_SET_OUTPUT, /* handle, or -1 */
	TALLY_IOCTL_SET_FILTER, /* const char * */
	TALLY_IOCTL_ID,         /* uint64_t * */
	TALLY_IOCTL_PAUSE_OUTPUT
};

struct tally_wait_item {
	int handle;
	short revents; /* POLLIN, POLLHUP, POLLERR */
};

struct tally_provider {
	const struct tally_provider_ops *ops;
};

/* Capabilities of providers.  Callers ask for a capability, never for one provider. */
enum tally_provider_capability {
	TALLY_PROVIDER_SAMPLES = 1 << 0,        /* has rings: `record` can use it */
	TALLY_PROVIDER_CATALOGUE = 1 << 1,      /* its catalogue is complete: `list` shows it */
	TALLY_PROVIDER_ANY_TARGET = 1 << 2,     /* not only commands that tally starts */
	TALLY_PROVIDER_THIS_MACHINE = 1 << 3,   /* its events, limits and refusals are this machine's */
	TALLY_PROVIDER_LIVE_TASKS = 1 << 4,     /* the tasks' memory and files can be read meanwhile */
	TALLY_PROVIDER_KERNEL_MODE = 1 << 5,    /* also sees what runs in the kernel */
	TALLY_PROVIDER_FRAME_POINTERS = 1 << 6, /* its chains follow these: callers may be missing */
	TALLY_PROVIDER_COMMAND_TIME = 1 << 7,   /* its times agree with the command's resource usage */
	TALLY_PROVIDER_SIMULATED_TIME = 1 << 8, /* its times say nothing about the command's own */
	TALLY_PROVIDER_HOTPLUG = 1 << 9,        /* its CPUs may come online and go offline */
	TALLY_PROVIDER_ONE_CPU = 1 << 10,       /* all events are opened on CPU 0 */
	TALLY_PROVIDER_SLOW_CLOSE = 1 << 11,    /* closing many tracepoints takes long */
	TALLY_PROVIDER_CPU_MODEL = 1 << 12,     /* takes --sim-cpu, --region and --toggle */
	TALLY_PROVIDER_DESCRIPTORS = 1 << 13,   /* its handles are this process's descriptors */
	TALLY_PROVIDER_NO_CHAINS = 1 << 14      /* its chains are the sampled place alone */
};

/* The user's choice, for a provider's constructor. */
struct tally_provider_choice {
	const char *argument; /* FILE of "NAME:FILE", for providers with `takes_argument` */
	const struct tally_simulated_options *simulated;
};

struct tally_provider_ops {
	/* "kernel", "scripted": printed beside figures that did not come from hardware */
	const char *name;
	unsigned capabilities;  /* bits of enum tally_provider_capability */

	/* Makes a provider, which release() frees.  The strings and options in `choice` must outlive
	 * the provider.  Returns 0 or -errno.  NULL: the user can't choose it. */
	int (*make)(const struct tally_provider_choice *choice, struct tally_provider **out,
		    struct tally_error *err);
	/* Adds the provider's events to a catalogue made by tally_catalogue_init(), or to a zeroed
	 * one.  `provider` may be NULL, unless it is an engine's.  Returns 0 or -errno. */
	int (*catalogue)(struct tally_provider *provider, struct tally_catalogue *catalogue,
			 struct tally_error *err);

	/* Like perf_event_open(2): returns a handle or -errno.  `group` is a handle or -1. */
	int (*open)(struct tally_provider *provider, const struct tally_attr *attr, pid_t pid,
		    int cpu, int group, unsigned long flags);
	/* Like read(2): returns a number of bytes or -errno. */
	ssize_t (*read)(struct tally_provider *provider, int handle, void *bytes, size_t size);
	/* Like ioctl(2): `argument` is a pointer, or a number cast to one; `whole_group` is
	 * PERF_IOC_FLAG_GROUP.  Returns 0 or -errno. */
	int (*ioctl)(struct tally_provider *provider, int handle, enum tally_ioctl request,
		     void *argument, int whole_group);
	/* Maps 1 + `data_pages` pages.  Returns NULL with errno set if that fails.  `overwrite`:
	 * read-only. */
	struct tally_user_page *(*map)(struct tally_provider *provider, int handle,
				       size_t data_pages, int overwrite);
	void (*unmap)(struct tally_provider *provider, struct tally_user_page *page,
		      size_t data_pages);
	/* Waits until a handle has data, or `extra_fd` (-1: none) is readable.  Returns the number
	 * of those that are ready, 0 after `timeout_ms`, or -errno (-EINTR, …). */
	int (*wait)(struct tally_provider *provider, struct tally_wait_item *items, size_t count,
		    int extra_fd, int timeout_ms);
	void (*close)(struct tally_provider *provider, int handle);
	void (*release)(struct tally_provider *provider);

	/* The members below are NULL or 0 in providers that don't need them. */

	/* For providers that run a command in a way of their own.  Called before each start, ahead
	 * of the first open().  `path` is the file that execvp(3) would run for `command`.  Sets
	 * *out to the command to execute instead, which belongs to the provider and is valid until
	 * the next call.  Returns 0 or -errno. */
	int (*command)(struct tally_provider *provider, const char *path, char **command,
		       char ***out, struct tally_error *err);
	/* Returns 0 if the provider can measure the program at `path` (as for `command`), or -errno
	 * with the reason and the way out.  Looks at the file, and starts nothing. */
	int (*check_program)(const char *path, struct tally_error *err);
	/* Returns the reason why the provider can't be used on this machine, or "".  Static. */
	const char *(*lack)(void);
	/* In the command's process, before it is executed: sets the variables and descriptors that the
	 * provider needs there.  Returns 0 or -errno. */
	int (*before_exec)(struct tally_provider *provider);
	/* Sends signal `number` to the calling thread at each sample and wake-up of the event; 0 stops
	 * that.  Returns 0 or -errno. */
	int (*signal)(struct tally_provider *provider, int handle, int number);
	/* Moves records from where they are written to the mapped rings, as far as these have room.
	 * Returns the number of bytes, or -errno. */
	ssize_t (*gather)(struct tally_provider *provider);
	/* Returns a short reason for open()'s error `code`.  Sets *hint (may be NULL) to the way
	 * out, or NULL.  Static texts. */
	const char *(*reason)(struct tally_provider *provider, const struct tally_attr *attr,
			      int code, const char **hint);
	/* Returns how far a figure can be trusted: "model".  Static. */
	const char *(*quality)(struct tally_provider *provider, const struct tally_attr *attr);
	/* Returns the reason why nothing has been counted so far though all events were on; NULL if
	 * something was.  Static.  May be NULL. */
	const char *(*uncounted)(struct tally_provider *provider);
	/* Describes the CPU that counted, in one line: completely, or, with `is_short`, so that it
	 * fits beside figures. */
	const char *(*machine)(struct tally_provider *provider, bool is_short);
	/* Adds notes for the user after a command has ended (`signal`: the signal that ended it, or
	 * 0).  The texts are in `arena`.  Returns the number of notes. */
	size_t (*notes)(struct tally_provider *provider, int signal, struct tally_arena *arena,
			const char **notes, size_t maximum);
	/* Returns the reason why the provider can never count the event, with the way out in *hint
	 * (may be NULL); NULL if it may.  Static texts. */
	const char *(*refuses)(const struct tally_attr *attr, const char **hint);
	/* Returns a description of the event for `list`, in the arena; NULL if there is none. */
	const char *(*describe)(const struct tally_attr *attr, struct tally_arena *arena);
	/* Changes a parsed event to the one to count. */
	void (*prepare_count)(struct tally_event *event);
	/* Changes a parsed event to the one to record.  Returns 0 or -ENOMEM. */
	int (*prepare_record)(struct tally_event *event, struct tally_arena *arena);

	/* the event of `record` without -e, and a note about it.  NULL: cycles, or a clock if the
	 * CPU can't count them */
	const char *default_event, *default_event_note;
	/* the events of `stat` without -e, and those that -d adds.  NULL: the usual ones */
	const char *standard_events, *detailed_events;
	unsigned max_rate_hz;   /* of samples; 0: the kernel's limit */
	bool takes_argument;    /* its name is "NAME:ARGUMENT" */
	/* for messages of a provider without ANY_TARGET: its command is "simulated" */
	const char *treatment;
	/* why the events may miss some of a command's CPU time: a row's reason, and a note with the
	 * way out; the ends of sentences.  NULL: the kernel's reason */
	const char *missed_reason, *missed_note;
	/* the message that refuses options for samples by the kernel (--overwrite, -d, …) */
	const char *no_kernel_samples;
	/* describes the call chains that the provider makes itself: no stack copies are needed; or
	 * NULL */
	const char *call_graph;
	/* the provider's own PMU, whose type isn't one of the machine's */
	const char *pmu_name;
	uint32_t pmu_type;
};

/* True if the provider has the capability. */
static inline bool tally_provider_can(const struct tally_provider *provider,
				      enum tally_provider_capability capability)
{
	return provider->ops->capabilities & capability;
}

/* The running kernel's perf events.  One per process is enough; it has no state of its own. */
struct tally_provider *tally_provider_kernel(void);

/* The providers that --provider chooses, all in one table. */

/* The table: a provider's name, and its part of the option's help, which the rows make together;
 * "": only for tests, not shown.  The provider's file defines tally_provider_NAME_ops.  The first
 * row is the default. */
#define TALLY_PROVIDERS(PROVIDER) \
	PROVIDER(kernel, "kernel (the default)") \
	PROVIDER(simulated, "; simulated: the command runs on a\n" \
			    "simulated CPU, several times slower (docs/simulated.md)") \
	PROVIDER(process, "; or\nprocess: it counts and samples itself, without the kernel's\n" \
			  "perf events (docs/process.md)") \
	PROVIDER(scripted, "")

#define TALLY_PROVIDER_HELPED(name, help) help
#define TALLY_PROVIDER_HELP TALLY_PROVIDERS(TALLY_PROVIDER_HELPED)

#define TALLY_PROVIDER_DECLARE(name, help) \
	extern const struct tally_provider_ops tally_provider_##name##_ops;
TALLY_PROVIDERS(TALLY_PROVIDER_DECLARE)

/* Finds a provider by the argument of --provider: "NAME", "NAME:ARGUMENT", or NULL for the default.
 * It has all capabilities in `needs` (bits, or 0).  Returns NULL if there is none. */
const struct tally_provider_ops *tally_provider_find(const char *text, unsigned needs);

/* Returns the provider that takes the kernel's place for commands if perf events are refused, or NULL
 * if this machine has none with these capabilities. */
const struct tally_provider_ops *tally_provider_substitute(unsigned needs);

/* Sets an error that lists the providers.  Returns -EINVAL. */
int tally_provider_unknown(const char *text, struct tally_error *err);

/* Makes the provider that `text` names; `ops` is what tally_provider_find() returned for it.
 * `simulated` and its strings must outlive the provider.  Returns 0 or -errno. */
int tally_provider_make(const struct tally_provider_ops *ops, const char *text,
			const struct tally_simulated_options *simulated,
			struct tally_provider **out, struct tally_error *err);

/* Advice for events that the kernel refuses. */

/* Turns the errno of a failed perf_event_open(2) (either sign) for `event` on `pid` and `cpu` into
 * a message, and a hint that names the cure.  Considers the machine's settings and this process's
 * privileges.  `command` is the command that the task will run, which the user knows rather than
 * its pid; NULL if the user, or the library's caller, named the task. */
void tally_provider_open_error(const struct tally_event *event, int errno_code, pid_t pid, int cpu,
			       const char *command, struct tally_error *err);

/* The events that the running kernel can count, from sysfs and tracefs, loaded on demand. */

/* Adds the machine's PMUs and tracepoints to a catalogue made by tally_catalogue_init(), or to a
 * zeroed one, which it then makes.  Reads nothing yet: each PMU and tracepoint is looked up when
 * an expression names it.  Returns 0 or -errno. */
int tally_kernel_catalogue(struct tally_catalogue *catalogue, struct tally_error *err);

/* Tries to open such an event.  Returns 0 or -errno.  Tries it on this process, then on `cpu` (-1:
 * on no CPU). */
int tally_kernel_probe_available(const struct tally_attr *attr, int cpu);

/* Returns the reason why an event that the probe refused can't be counted: "no hardware PMU on this
 * machine (ENOENT)". */
const char *tally_kernel_unavailable_text(const struct tally_attr *attr, int code);

/* Sets `unavailable` of every named event by the probe. */
void tally_kernel_probe_named(struct tally_catalogue *catalogue);

/* Names that a CPU's vendor gives to its events, by libpfm4: "MEM_LOAD_RETIRED:L3_MISS",
 * "inst_retired.any:u", "skl::UOPS_ISSUED:ANY:c=1".
 *
 * libpfm4 knows thousands of names, so it is loaded only for a name that nothing else knows.  The
 * result is an ordinary attribute. libpfm4's environment variables apply: LIBPFM_FORCE_PMU=skl
 * encodes for a CPU other than this one. */

/* Looks up `text`, a name with its unit masks and modifiers.  Sets type, config, config1, config2,
 * precise_ip and the exclude flags for user, kernel and hypervisor.  Returns 0; -ENOENT if libpfm
 * does not know the name or has no events for this CPU; -ELIBACC if it is not installed; otherwise
 * -errno with a message that says what is wrong with the name. */
int tally_vendor_event(const char *text, struct tally_attr *attr, struct tally_error *err);

struct tally_vendor_name {
	const char *pmu;         /* "skl" */
	const char *name;        /* "MEM_LOAD_RETIRED:L3_MISS" */
	const char *description; /* or NULL */
};

/* Lists the events of the existing (or forced) PMUs, each with each of its unit masks, in `arena`.
 * Returns 0 or -errno: -ELIBACC if the library is not installed.  No PMU is no error. */
int tally_vendor_events(struct tally_arena *arena, struct tally_vendor_name **out, size_t *count,
			struct tally_error *err);

/* Counts that the kernel keeps for every task without perf events: times, faults, switches.
 *
 * This is `stat`'s last resort if perf_event_open(2) is refused, and for counts that a restriction
 * to user mode leaves empty.  Sources: wait4(2)'s rusage for a command and the children that it has
 * waited for; /proc/PID/{stat,task/TID/...} for running processes (switches and migrations only of
 * living threads); /proc/{stat,vmstat} for the whole system.  A task's user and system times are in
 * ticks there; their sum comes from its schedstat if there is one.  Of the whole system no times
 * are taken: ticks of busy time differ from the time that a clock event counts. */

struct tally_resource_usage {
	const char *source; /* "wait4", "/proc" */
	uint64_t user_ns, system_ns;
	/* user and system time together, if the kernel reports it in ns; otherwise 0 */
	uint64_t cpu_ns;
	uint64_t minor_faults, major_faults, switches, migrations;
	/* involuntary switches; only from wait4 */
	uint64_t preemptions;
	bool has_times, has_faults, has_switches, has_migrations;
};

struct tally_resource_usage tally_resource_usage_of(const struct rusage *rusage);

/* Add a running process (all its threads, and children that it has waited for), or one thread.
 * Return 0 or -errno: -ESRCH if it has ended. */
int tally_resource_usage_add_process(struct tally_resource_usage *usage, pid_t pid);
int tally_resource_usage_add_thread(struct tally_resource_usage *usage, pid_t tid);

/* Adds the whole system's faults and switches.  Returns 0 or -errno. */
int tally_resource_usage_system(struct tally_resource_usage *usage);

/* Returns now − before.  A value that either lacks is absent. */
struct tally_resource_usage tally_resource_usage_since(struct tally_resource_usage now,
						       struct tally_resource_usage before);

/* Sets the value for such an event.  Returns false if there is none.  Clocks are in ns.  Faults are
 * those of user and kernel together, so there is no value for an event that excludes either. */
bool tally_resource_usage_value(const struct tally_resource_usage *usage,
				const struct tally_attr *attr, uint64_t *value);

/* Pure parsers: of /proc/PID/stat's line, and of lines "KEY: NUMBER" or "KEY NUMBER" in /proc's
 * tables. */
bool tally_proc_stat_parse(const char *text, uint64_t tick_ns, struct tally_resource_usage *usage);
bool tally_proc_key_number(const char *text, const char *key, uint64_t *out);

#endif
