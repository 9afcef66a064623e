/* CPUs: the lists that the kernel writes ("0-3,7"), what they are, how they share caches.
 *
 * sysfs: Documentation/ABI/testing/sysfs-devices-system-cpu.  Lists live on the heap, the rest in
 * the caller's arena.
 */
#ifndef TALLY_MACHINE_CPU_H
#define TALLY_MACHINE_CPU_H

#include "base/arena.h"
#include "base/error.h"

#include <stddef.h>

enum { TALLY_CPU_MAX = 65536 }; /* larger numbers in a list are a mistake */

struct tally_cpu_list {
	unsigned *cpus; /* ascending, each once; malloc'd */
	size_t count;
};

/* Parses "0-3,7" (blanks around and a comma at the end allowed; empty text is an empty list): 0, or
 * -EINVAL with the position. */
int tally_cpu_list_parse(const char *text, struct tally_cpu_list *out, struct tally_error *err);
/* The same of what somebody asked for, which is not empty. */
int tally_cpu_list_asked(const char *text, struct tally_cpu_list *out, struct tally_error *err);
/* Adds one that may be there already: 0 or -ENOMEM. */
int tally_cpu_list_add(struct tally_cpu_list *list, unsigned cpu);
void tally_cpu_list_release(struct tally_cpu_list *list);

/* "0-3,7" again; NULL when memory is out. */
char *tally_cpu_list_text(const struct tally_cpu_list *list, struct tally_arena *arena);

int tally_cpu_list_contains(const struct tally_cpu_list *list, unsigned cpu);

enum tally_cpu_set { TALLY_CPU_ONLINE, TALLY_CPU_POSSIBLE, TALLY_CPU_PRESENT };

/* The machine's list; where sysfs is hidden, 0 … sysconf's number − 1. */
int tally_cpu_list_read(enum tally_cpu_set set, struct tally_cpu_list *out,
			struct tally_error *err);

/* What the CPU is, as perf puts it into a recording. */
struct tally_cpu_model {
	char name[128]; /* "AMD EPYC"; "" when unknown */
	char id[96]; /* "AuthenticAMD,25,17,1" on x86; the MIDR in hex on arm64; "" when unknown */
	int hypervisor; /* 1: x86's cpuid says that a hypervisor runs below; 0 elsewhere */
};

/* From the text of /proc/cpuinfo. */
void tally_cpu_model_parse(const char *cpuinfo, struct tally_cpu_model *out);
void tally_cpu_model_read(struct tally_cpu_model *out);

struct tally_cpu_cache {
	unsigned level, line_size, sets, ways;
	const char *type; /* "Data", "Instruction", "Unified" */
	const char *size; /* "32K" */
	const char *cpus; /* that share it: "0-1" */
};

struct tally_cpu_place {
	unsigned cpu;
	int core, die, package; /* -1: not known */
};

struct tally_cpu_topology {
	struct tally_cpu_place *places; /* per online CPU */
	size_t place_count;
	/* Distinct lists of CPUs that share a package, a die, a core: "0-7". */
	const char **packages, **dies, **cores;
	size_t package_count, die_count, core_count;
	struct tally_cpu_cache *caches; /* each once, ordered by level as perf does */
	size_t cache_count;
};

/* Where one CPU is, and the NUMA node that it is next to; −1 where sysfs doesn't say. */
void tally_cpu_place_read(const char *root, unsigned cpu, struct tally_cpu_place *out, int *node);

/* `root` is NULL for the machine's own (/sys/devices/system/cpu).  What sysfs doesn't say is left
 * out. 0 or -ENOMEM. */
int tally_cpu_topology_read(const char *root, const struct tally_cpu_list *cpus,
			    struct tally_arena *arena, struct tally_cpu_topology *out);

#endif
