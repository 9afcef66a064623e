/* Loads metrics from the places that metric_sources.h lists. */
#include "command/metric_sources.h"

#include "base/buffer.h"
#include "base/environment.h"
#include "base/text.h"
#include "machine/machine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { FILE_MAX_BYTES = 64 << 20, FACT_MAX_BYTES = 64, PATH_MAX_BYTES = 4096, DEPTH_MAX = 3 };

static int read_text(const char *path, size_t maximum, struct tally_buffer *text)
{
	*text = (struct tally_buffer){ 0 };
	return tally_buffer_read_file(text, AT_FDCWD, path, maximum);
}

/* --- the CPU's id, as perf's mapfile.csv has it --------------------------- */

/* On Arm without the variant and the revision of the MIDR. */
static void read_cpuid(char *out, size_t size)
{
	struct tally_cpu_model model;
	char vendor[32];
	unsigned family, number, stepping;
	out[0] = 0;
	tally_cpu_model_read(&model);
	if (sscanf(model.id, "%31[^,],%u,%u,%u", vendor, &family, &number, &stepping) == 4) {
		snprintf(out, size, "%s-%u-%X-%X", vendor, family, number, stepping);
		return;
	}
	char *end;
	unsigned long long midr = strtoull(model.id, &end, 16);
	if (model.id[0] && !*end)
		snprintf(out, size, "0x%016llx", midr & ~0xf0000full);
}

/* --- perf's folders ------------------------------------------------------- */

static int add_json(struct tally_metric_set *set, const char *path, struct tally_error *err)
{
	struct tally_buffer text;
	int result = read_text(path, FILE_MAX_BYTES, &text);
	if (result < 0)
		tally_error_set(err, result, "%s: %s", path, tally_errno_text(result));
	else
		result = tally_metric_set_add_json(set, path, tally_buffer_string(&text),
						   text.length, err);
	tally_buffer_release(&text);
	return result;
}

static bool is_json(const char *name)
{
	size_t length = strlen(name);
	return length > 5 && !strcmp(name + length - 5, ".json");
}

/* Adds the files of a folder, and of those in it down to `depth`.  Returns their number or
 * -errno. */
static int add_folder(struct tally_metric_set *set, const char *path, unsigned depth,
		      struct tally_error *err)
{
	struct dirent **names;
	int count = scandir(path, &names, NULL, alphasort), files = 0, result = 0;
	if (count < 0)
		return tally_error_set(err, -errno, "%s: %s", path, tally_errno_text(errno));
	for (int i = 0; i < count; i++) {
		char inner[PATH_MAX_BYTES];
		bool fits = snprintf(inner, sizeof(inner), "%s/%s", path, names[i]->d_name) <
			    (int)sizeof(inner);
		if (fits && result >= 0 && is_json(names[i]->d_name)) {
			result = add_json(set, inner, err);
			files++;
		} else if (fits && result >= 0 && names[i]->d_type == DT_DIR && depth &&
			   names[i]->d_name[0] != '.') {
			result = add_folder(set, inner, depth - 1, err);
			if (result > 0)
				files += result;
		}
		free(names[i]);
	}
	free(names);
	if (result < 0)
		return result;
	return files;
}

/* Adds the files that a mapfile.csv has for the CPU, after those of the whole architecture, which
 * describe its common events. */
static int add_mapped(struct tally_metric_set *set, const char *root, const char *cpuid,
		      struct tally_error *err)
{
	char path[PATH_MAX_BYTES], folder[256];
	struct tally_buffer map;
	snprintf(path, sizeof(path), "%.3800s/mapfile.csv", root);
	int result = read_text(path, FILE_MAX_BYTES, &map);
	if (result < 0) {
		tally_error_set(err, result, "%s: %s", path, tally_errno_text(result));
	} else {
		result = tally_metric_map_find(tally_buffer_string(&map), map.length, cpuid, folder,
					       sizeof(folder));
		if (result < 0) {
			tally_error_set(err, result, "%s has no metrics for this CPU (%s)", path,
					cpuid[0] ? cpuid : "unknown");
			tally_error_hint(err, "--metrics-dir also takes the folder of one CPU");
		}
	}
	tally_buffer_release(&map);
	if (result < 0)
		return result;
	result = add_folder(set, root, 0, err);
	if (result < 0)
		return result;
	snprintf(path, sizeof(path), "%.3800s/%s", root, folder);
	return add_folder(set, path, DEPTH_MAX, err);
}

/* Returns perf's name of this architecture. */
static void architecture(char *out, size_t size)
{
	struct utsname name = { .machine = "" };
	uname(&name);
	const char *machine = name.machine;
	if (!strcmp(machine, "x86_64") || (machine[0] == 'i' && !strcmp(machine + 2, "86")))
		machine = "x86";
	else if (!strcmp(machine, "aarch64"))
		machine = "arm64";
	else if (!strncmp(machine, "ppc", 3))
		machine = "powerpc";
	else if (!strncmp(machine, "riscv", 5))
		machine = "riscv";
	else if (!strcmp(machine, "s390x"))
		machine = "s390";
	snprintf(out, size, "%.60s", machine);
}

/* Adds what a folder has: a Linux tree, pmu-events, one architecture, or one CPU. */
static int add_perf(struct tally_metric_set *set, const char *folder, struct tally_error *err)
{
	static const char *const below[] = { "", "arch/", "pmu-events/arch/",
					     "tools/perf/pmu-events/arch/" };
	char cpuid[128], arch[64], path[PATH_MAX_BYTES], map[PATH_MAX_BYTES + 16];
	read_cpuid(cpuid, sizeof(cpuid));
	architecture(arch, sizeof(arch));
	snprintf(map, sizeof(map), "%.3800s/mapfile.csv", folder);
	if (!access(map, R_OK))
		return add_mapped(set, folder, cpuid, err);
	for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
		snprintf(path, sizeof(path), "%.3800s/%s%s", folder, below[i], arch);
		snprintf(map, sizeof(map), "%s/mapfile.csv", path);
		if (!access(map, R_OK))
			return add_mapped(set, path, cpuid, err);
	}
	int result = add_folder(set, folder, DEPTH_MAX, err);
	if (result)
		return result;
	tally_error_set(err, -ENOENT, "%s has no JSON files", folder);
	tally_error_hint(err, "--metrics-dir takes tools/perf/pmu-events of a Linux tree, or a "
			      "folder of such files");
	return -ENOENT;
}

static const char *named_folder(const struct metric_sources *sources)
{
	if (sources->folder)
		return sources->folder;
	return tally_environment("TALLY_METRICS_DIR");
}

bool metric_sources_load_usual(const struct metric_sources *sources, struct tally_metric_set *set)
{
	struct utsname name;
	char path[sizeof(name.release) + 64];
	size_t before = set->definitions.count;
	if (named_folder(sources) || uname(&name) < 0)
		return false;
	snprintf(path, sizeof(path), "/lib/modules/%s/source", name.release);
	if (access(path, R_OK) < 0)
		snprintf(path, sizeof(path), "/usr/src/linux");
	if (access(path, R_OK) < 0)
		return false;
	add_perf(set, path, NULL);
	return set->definitions.count > before;
}

/* --- all sources ---------------------------------------------------------- */

static int add_user_file(struct tally_metric_set *set, const char *path, bool is_optional,
			 struct tally_error *err)
{
	struct tally_buffer text;
	int result = read_text(path, FILE_MAX_BYTES, &text);
	if (result < 0 && is_optional)
		result = 0;
	else if (result < 0)
		tally_error_set(err, result, "%s: %s", path, tally_errno_text(result));
	else
		result = tally_metric_set_add_file(set, path, tally_buffer_string(&text),
						   text.length, err);
	tally_buffer_release(&text);
	return result;
}

static int add_usual_file(struct tally_metric_set *set, struct tally_error *err)
{
	char path[PATH_MAX_BYTES];
	const char *config = tally_environment("XDG_CONFIG_HOME"),
		   *home = tally_environment("HOME");
	if (config && config[0] == '/')
		snprintf(path, sizeof(path), "%.3800s/tally/metrics", config);
	else if (home && home[0] == '/')
		snprintf(path, sizeof(path), "%.3800s/.config/tally/metrics", home);
	else
		return 0;
	return add_user_file(set, path, true, err);
}

int metric_sources_load(const struct metric_sources *sources, struct tally_metric_set *set,
			struct tally_error *err)
{
	char cpuid[128];
	read_cpuid(cpuid, sizeof(cpuid));
	int result = tally_metric_set_init(set, cpuid);
	if (result < 0)
		return tally_error_set(err, result, "out of memory");
	if (named_folder(sources))
		result = add_perf(set, named_folder(sources), err);
	if (result < 0)
		return result;
	if (sources->file)
		return add_user_file(set, sources->file, false, err);
	return add_usual_file(set, err);
}

/* --- the machine ---------------------------------------------------------- */

/* Reads a number from a file of sysfs; NAN if there is none. */
static double read_fact(const char *path)
{
	struct tally_buffer text;
	double value = NAN;
	char *end;
	if (read_text(path, FACT_MAX_BYTES, &text) >= 0 && text.length) {
		unsigned long long number = strtoull(tally_buffer_string(&text), &end, 0);
		if (end > text.bytes)
			value = (double)number;
	}
	tally_buffer_release(&text);
	return value;
}

static double count_cpus(enum tally_cpu_set set)
{
	struct tally_cpu_list list = { 0 };
	double count = NAN;
	if (tally_cpu_list_read(set, &list, NULL) >= 0)
		count = (double)list.count;
	tally_cpu_list_release(&list);
	return count;
}

void metric_machine_read(struct tally_metric_machine *machine, bool is_core_wide,
			 struct tally_arena *arena)
{
	struct tally_cpu_list online = { 0 };
	struct tally_cpu_topology topology = { 0 };
	char cpuid[128];
	*machine = (struct tally_metric_machine){
		.cpus = count_cpus(TALLY_CPU_PRESENT),
		.cpus_online = count_cpus(TALLY_CPU_ONLINE),
		.cores = NAN,
		.dies = NAN,
		.packages = NAN,
		.tsc_hz = NAN,
		.smt_on = read_fact("/sys/devices/system/cpu/smt/active"),
		.slots = read_fact("/sys/bus/event_source/devices/armv8_pmuv3_0/caps/slots"),
		.cpuid = "",
	};
	if (isnan(machine->slots))
		machine->slots = read_fact("/sys/bus/event_source/devices/armv8_pmuv3/caps/slots");
	if (machine->slots == 0) /* the CPU doesn't say */
		machine->slots = NAN;
	machine->core_wide = is_core_wide || machine->smt_on == 0;
	if (tally_cpu_list_read(TALLY_CPU_ONLINE, &online, NULL) >= 0 &&
	    tally_cpu_topology_read(NULL, &online, arena, &topology) >= 0) {
		if (topology.core_count)
			machine->cores = (double)topology.core_count;
		if (topology.package_count)
			machine->dies = machine->packages = (double)topology.package_count;
		if (topology.die_count)
			machine->dies = (double)topology.die_count;
	}
	tally_cpu_list_release(&online);
	read_cpuid(cpuid, sizeof(cpuid));
	machine->cpuid = tally_text_or(tally_arena_string(arena, cpuid), "");
}
