/* Reads rusage and files of /proc into one structure, and takes the count of a software event from
 * it.  No source has all counts, so the structure notes which ones it has. */
#include "provider/provider.h"

#include "base/buffer.h"
#include "base/extremes.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROC_FILE_MAX = 1 << 20 };

static uint64_t timeval_ns(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_usec * 1000;
}

struct tally_resource_usage tally_resource_usage_of(const struct rusage *rusage)
{
	return (struct tally_resource_usage){
		.source = "wait4",
		.user_ns = timeval_ns(rusage->ru_utime),
		.system_ns = timeval_ns(rusage->ru_stime),
		.cpu_ns = timeval_ns(rusage->ru_utime) + timeval_ns(rusage->ru_stime),
		.minor_faults = (uint64_t)rusage->ru_minflt,
		.major_faults = (uint64_t)rusage->ru_majflt,
		.switches = (uint64_t)rusage->ru_nvcsw + (uint64_t)rusage->ru_nivcsw,
		.preemptions = (uint64_t)rusage->ru_nivcsw,
		.has_times = true,
		.has_faults = true,
		.has_switches = true,
	};
}

static const char *next_line(const char *line)
{
	const char *end = strchr(line, '\n');
	if (!end)
		return NULL;
	return end + 1;
}

bool tally_proc_key_number(const char *text, const char *key, uint64_t *out)
{
	size_t length = strlen(key);
	for (const char *line = text; line && *line; line = next_line(line)) {
		const char *at = line + length;
		if (strncmp(line, key, length) || (*at != ':' && !isblank((unsigned char)*at)))
			continue;
		at += strspn(at, ": \t");
		if (!isdigit((unsigned char)*at))
			return false;
		*out = strtoull(at, NULL, 10);
		return true;
	}
	return false;
}

/* proc_pid_stat(5): fields are counted from 1.  The second one is the command in parentheses, which
 * may contain any byte. */
bool tally_proc_stat_parse(const char *text, uint64_t tick_ns, struct tally_resource_usage *usage)
{
	enum { MINFLT = 10, CMINFLT, MAJFLT, CMAJFLT, UTIME, STIME, CUTIME, CSTIME, FIELDS };
	const char *at = strrchr(text, ')');
	uint64_t field[FIELDS] = { 0 };
	if (!at)
		return false;
	at++;
	for (int i = 3; i < FIELDS; i++) {
		at += strspn(at, " ");
		if (!*at)
			return false;
		field[i] = strtoull(at, NULL, 10);
		at += strcspn(at, " ");
	}
	usage->minor_faults += field[MINFLT] + field[CMINFLT];
	usage->major_faults += field[MAJFLT] + field[CMAJFLT];
	usage->user_ns += (field[UTIME] + field[CUTIME]) * tick_ns;
	usage->system_ns += (field[STIME] + field[CSTIME]) * tick_ns;
	usage->has_faults = usage->has_times = true;
	return true;
}

static uint64_t tick_ns(void)
{
	long ticks = sysconf(_SC_CLK_TCK);
	if (ticks <= 0)
		return 10000000;
	return 1000000000ull / (uint64_t)ticks;
}

static int add_stat(struct tally_resource_usage *usage, const char *directory)
{
	char path[64];
	struct tally_buffer text = { 0 };
	snprintf(path, sizeof(path), "%s/stat", directory);
	int result = tally_buffer_read_file(&text, AT_FDCWD, path, PROC_FILE_MAX);
	if (result >= 0 && !tally_proc_stat_parse(tally_buffer_string(&text), tick_ns(), usage))
		result = -EBADMSG;
	tally_buffer_release(&text);
	if (result == -ENOENT)
		return -ESRCH;
	return result;
}

static void add_scheduling(struct tally_resource_usage *usage, const char *directory)
{
	char path[64];
	uint64_t voluntary, involuntary, migrations;
	struct tally_buffer text = { 0 };
	snprintf(path, sizeof(path), "%s/status", directory);
	if (tally_buffer_read_file(&text, AT_FDCWD, path, PROC_FILE_MAX) >= 0 &&
	    tally_proc_key_number(tally_buffer_string(&text), "voluntary_ctxt_switches",
				  &voluntary) &&
	    tally_proc_key_number(tally_buffer_string(&text), "nonvoluntary_ctxt_switches",
				  &involuntary)) {
		usage->switches += voluntary + involuntary;
		usage->has_switches = true;
	}
	tally_buffer_clear(&text);
	snprintf(path, sizeof(path), "%s/sched", directory);
	if (tally_buffer_read_file(&text, AT_FDCWD, path, PROC_FILE_MAX) >= 0 &&
	    tally_proc_key_number(tally_buffer_string(&text), "se.nr_migrations", &migrations)) {
		usage->migrations += migrations;
		usage->has_migrations = true;
	}
	tally_buffer_clear(&text);
	snprintf(path, sizeof(path), "%s/schedstat", directory);
	if (tally_buffer_read_file(&text, AT_FDCWD, path, PROC_FILE_MAX) >= 0)
		usage->cpu_ns += strtoull(tally_buffer_string(&text), NULL, 10);
	tally_buffer_release(&text);
}

int tally_resource_usage_add_process(struct tally_resource_usage *usage, pid_t pid)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d", pid);
	usage->source = "/proc";
	int result = add_stat(usage, path);
	if (result < 0)
		return result;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	DIR *directory = opendir(path);
	if (!directory)
		return -ESRCH;
	for (struct dirent *entry; (entry = readdir(directory));) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%.16s", pid, entry->d_name);
		add_scheduling(usage, path);
	}
	closedir(directory);
	return 0;
}

int tally_resource_usage_add_thread(struct tally_resource_usage *usage, pid_t tid)
{
	char path[64];
	/* For a group's leader, /proc/TID is the whole group; task/TID is the thread alone. */
	snprintf(path, sizeof(path), "/proc/%d/task/%d", tid, tid);
	usage->source = "/proc";
	int result = add_stat(usage, path);
	if (result >= 0)
		add_scheduling(usage, path);
	return result;
}

int tally_resource_usage_system(struct tally_resource_usage *usage)
{
	struct tally_buffer text = { 0 };
	uint64_t faults = 0, major = 0;
	*usage = (struct tally_resource_usage){ .source = "/proc" };
	int result = tally_buffer_read_file(&text, AT_FDCWD, "/proc/stat", PROC_FILE_MAX);
	if (result >= 0)
		usage->has_switches = tally_proc_key_number(tally_buffer_string(&text), "ctxt",
							    &usage->switches);
	tally_buffer_clear(&text);
	if (tally_buffer_read_file(&text, AT_FDCWD, "/proc/vmstat", PROC_FILE_MAX) >= 0 &&
	    tally_proc_key_number(tally_buffer_string(&text), "pgfault", &faults) &&
	    tally_proc_key_number(tally_buffer_string(&text), "pgmajfault", &major)) {
		usage->minor_faults = tally_saturating_sub_u64(faults, major);
		usage->major_faults = major;
		usage->has_faults = true;
	}
	tally_buffer_release(&text);
	if (result < 0)
		return result;
	return 0;
}

/* Ticks include ended threads and children; schedstat measures shorter times. */
static uint64_t cpu_time(const struct tally_resource_usage *usage)
{
	uint64_t ticks_ns = usage->user_ns + usage->system_ns;
	return tally_max_u64(usage->cpu_ns, ticks_ns);
}

struct tally_resource_usage tally_resource_usage_since(struct tally_resource_usage now,
						       struct tally_resource_usage before)
{
	return (struct tally_resource_usage){
		.source = now.source,
		.user_ns = tally_saturating_sub_u64(now.user_ns, before.user_ns),
		.system_ns = tally_saturating_sub_u64(now.system_ns, before.system_ns),
		.cpu_ns = tally_saturating_sub_u64(cpu_time(&now), cpu_time(&before)),
		.minor_faults = tally_saturating_sub_u64(now.minor_faults, before.minor_faults),
		.major_faults = tally_saturating_sub_u64(now.major_faults, before.major_faults),
		.switches = tally_saturating_sub_u64(now.switches, before.switches),
		.preemptions = tally_saturating_sub_u64(now.preemptions, before.preemptions),
		.migrations = tally_saturating_sub_u64(now.migrations, before.migrations),
		.has_times = now.has_times && before.has_times,
		.has_faults = now.has_faults && before.has_faults,
		.has_switches = now.has_switches && before.has_switches,
		.has_migrations = now.has_migrations && before.has_migrations,
	};
}

bool tally_resource_usage_value(const struct tally_resource_usage *usage,
				const struct tally_attr *attr, uint64_t *value)
{
	bool is_partial = attr->flags & (TALLY_ATTR_EXCLUDE_USER | TALLY_ATTR_EXCLUDE_KERNEL);
	if (attr->type != TALLY_TYPE_SOFTWARE)
		return false;
	switch (attr->config) {
	case TALLY_SW_TASK_CLOCK:
	case TALLY_SW_CPU_CLOCK:
		*value = usage->cpu_ns;
		if (!usage->cpu_ns)
			*value = usage->user_ns + usage->system_ns;
		return usage->has_times;
	case TALLY_SW_PAGE_FAULTS:
		*value = usage->minor_faults + usage->major_faults;
		return usage->has_faults && !is_partial;
	case TALLY_SW_PAGE_FAULTS_MIN:
		*value = usage->minor_faults;
		return usage->has_faults && !is_partial;
	case TALLY_SW_PAGE_FAULTS_MAJ:
		*value = usage->major_faults;
		return usage->has_faults && !is_partial;
	case TALLY_SW_CONTEXT_SWITCHES:
		*value = usage->switches;
		return usage->has_switches;
	case TALLY_SW_CPU_MIGRATIONS:
		*value = usage->migrations;
		return usage->has_migrations;
	default:
		return false;
	}
}
