/* CPUs: the lists that the kernel writes ("0-3,7"), their model, how they share caches.
 *
 * sysfs: Documentation/ABI/testing/sysfs-devices-system-cpu.  Lists are on the heap, everything
 * else is in the caller's arena. */
#ifndef TALLY_MACHINE_CPU_H
#define TALLY_MACHINE_CPU_H

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

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
 * also reads the list of CPUs (cpu.h) from time to time. */

/* Returns a descriptor to poll, or -errno. */
int tally_hotplug_open(void);

/* Reads the pending uevents.  Returns true if one of them was about a CPU.  Never waits. */
bool tally_hotplug_has_news(int fd);

#endif
