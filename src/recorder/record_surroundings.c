/* Writes records for namespaces and control groups that existed before the recording: the kernel
 * reports only later changes. */
#include "recorder/recorder_synthesis.h"

#include "session/cgroup.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

static bool is_wanted(const struct tally_synthesis *synthesis, uint64_t side_band)
{
	return tally_recorder_side_band(synthesis->recorder)->attr.flags & side_band;
}

static int write_namespaces(struct tally_synthesis *synthesis, pid_t pid, pid_t tid,
			    const struct tally_namespace_set *set)
{
	tally_synthesis_begin(synthesis);
	tally_synthesis_u32(synthesis, (uint32_t)pid);
	tally_synthesis_u32(synthesis, (uint32_t)tid);
	tally_synthesis_u64(synthesis, TALLY_NAMESPACE_KINDS);
	for (int kind = 0; kind < TALLY_NAMESPACE_KINDS; kind++) {
		tally_synthesis_u64(synthesis, set->of[kind].device);
		tally_synthesis_u64(synthesis, set->of[kind].inode);
	}
	return tally_synthesis_finish(synthesis, TALLY_RECORD_NAMESPACES, 0, pid, tid);
}

static int write_cgroup(struct tally_synthesis *synthesis, uint64_t id, const char *path)
{
	tally_synthesis_begin(synthesis);
	tally_synthesis_u64(synthesis, id);
	tally_synthesis_string(synthesis, path);
	return tally_synthesis_finish(synthesis, TALLY_RECORD_CGROUP, 0, 0, 0);
}

/* Namespaces that this user may not read are 0, as in perf's records. */
int tally_synthesize_namespaces(struct tally_synthesis *synthesis, pid_t pid, pid_t tid)
{
	static const char *const names[TALLY_NAMESPACE_KINDS] = { "net",  "uts", "ipc",   "pid",
								  "user", "mnt", "cgroup" };
	struct tally_namespace_set set = { 0 };
	if (!is_wanted(synthesis, TALLY_ATTR_NAMESPACES))
		return 0;
	for (int kind = 0; kind < TALLY_NAMESPACE_KINDS; kind++) {
		char path[64];
		struct stat file;
		snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)tid, names[kind]);
		if (!stat(path, &file))
			set.of[kind] = (struct tally_namespace){ file.st_dev, file.st_ino };
	}
	return write_namespaces(synthesis, pid, tid, &set);
}

int tally_synthesize_known_namespaces(struct tally_synthesis *synthesis,
				      const struct tally_thread *thread)
{
	const struct tally_namespaces *known = &synthesis->recorder->tasks.namespaces;
	if (thread->namespaces == TALLY_NAMESPACES_NONE)
		return 0;
	return write_namespaces(synthesis, (pid_t)thread->pid, (pid_t)thread->tid,
				&known->sets.items[thread->namespaces]);
}

static int visit_cgroup(void *context, uint64_t id, const char *path)
{
	return write_cgroup(context, id, path);
}

/* When no hierarchy is mounted or readable, the recording lacks the cgroups' names. */
int tally_synthesize_cgroups(struct tally_synthesis *synthesis)
{
	int result = is_wanted(synthesis, TALLY_ATTR_CGROUP)
			     ? tally_cgroup_list(visit_cgroup, synthesis)
			     : 0;
	return result == -ENOENT || result == -EACCES ? 0 : result;
}

int tally_synthesize_known_cgroups(struct tally_synthesis *synthesis)
{
	const struct tally_tasks *tasks = &synthesis->recorder->tasks;
	int result = 0;
	for (size_t i = 0; !result && i < tasks->cgroups.capacity; i++) {
		const struct tally_map_slot *slot = &tasks->cgroups.slots[i];
		if (slot->used)
			result = write_cgroup(
				synthesis, slot->key,
				tally_strings_text(&tasks->strings, (uint32_t)slot->value));
	}
	return result;
}
