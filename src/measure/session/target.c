/* Collects the target from options, resolves it into threads or CPUs, and describes it in words.
 * Each refresh lists the threads from /proc again, and adds those that are new. */
#include "session/session.h"

#include "base/vector.h"

#include <errno.h>
#include <limits.h>
#include <mntent.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int add_list(struct tally_pid_list *out, const char *list, const char *what,
		    struct tally_error *err)
{
	const char *at = list;
	do {
		char *end;
		errno = 0;
		long pid = strtol(at, &end, 10);
		if (end == at || errno || pid <= 0 || pid > INT_MAX || (*end && *end != ','))
			return tally_error_set(err, -EINVAL,
					       "'%s' is not a list of %s numbers like 12,34", list,
					       what);
		if (tally_vector_push(out, (pid_t)pid) < 0)
			return tally_error_set(err, -ENOMEM, "out of memory");
		at = *end ? end + 1 : end;
	} while (*at);
	return 0;
}

/* ---- processes by name --------------------------------------------------- */

static bool has_pid(const struct tally_pid_list *list, pid_t pid)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i] == pid)
			return true;
	return false;
}

/* Lists the processes of that name whose parents have another: of a server with workers, the
 * master.  Ourselves excluded. */
static int find_named(const char *name, struct tally_pid_list *out)
{
	struct tally_pid_list all = { 0 }, named = { 0 };
	int result = tally_proc_pids(&all);
	for (size_t i = 0; i < all.count && result >= 0; i++)
		if (all.items[i] != getpid() && tally_proc_is_named(all.items[i], name))
			result = tally_vector_push(&named, all.items[i]);
	for (size_t i = 0; i < named.count && result >= 0; i++) {
		struct tally_proc_status status;
		if (tally_proc_status(named.items[i], &status) < 0 ||
		    !has_pid(&named, status.parent))
			result = tally_vector_push(out, named.items[i]);
	}
	tally_pid_list_release(&all);
	tally_pid_list_release(&named);
	return result;
}

static int several_are_named(const char *name, const struct tally_pid_list *found,
			     struct tally_error *err)
{
	enum { SHOWN_MAX = 8 };
	char list[SHOWN_MAX * 12 + 8] = "";
	size_t used = 0;
	for (size_t i = 0; i < found->count && i < SHOWN_MAX; i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%d", i ? "," : "",
					 found->items[i]);
	return tally_error_set(err, -EINVAL,
			       "%zu processes are named '%s': choose by number, of %s%s",
			       found->count, name, list, found->count > SHOWN_MAX ? " …" : "");
}

static int add_named(struct tally_target *target, const char *name, struct tally_error *err)
{
	struct tally_pid_list found = { 0 };
	int result = find_named(name, &found);
	if (result < 0)
		tally_error_set(err, result, "listing processes: %s", tally_errno_text(result));
	else if (found.count > 1)
		result = several_are_named(name, &found, err);
	else if (found.count)
		result = tally_vector_push(&target->pids, found.items[0]);
	else
		result = tally_error_set(err, -ESRCH, "no process is named '%s'", name);
	tally_pid_list_release(&found);
	return result;
}

/* True for a list of numbers, or what was meant to be one. */
static bool is_of_numbers(const char *list)
{
	return !list[strspn(list, "0123456789,+- ")];
}

int tally_target_add_pids(struct tally_target *target, const char *list, struct tally_error *err)
{
	char name[256];
	if (target->container.name)
		return tally_error_set(err, -EINVAL, "-p and --container exclude each other");
	if (is_of_numbers(list))
		return add_list(&target->pids, list, "process", err);
	for (int result, length; *list; list += length + (list[length] == ',')) {
		length = (int)strcspn(list, ",");
		snprintf(name, sizeof(name), "%.*s", length, list);
		if (is_of_numbers(name))
			result = add_list(&target->pids, name, "process", err);
		else
			result = add_named(target, name, err);
		if (result < 0)
			return result;
	}
	return 0;
}

int tally_target_add_threads(struct tally_target *target, const char *list, struct tally_error *err)
{
	return add_list(&target->threads, list, "thread", err);
}

/* ---- containers ---------------------------------------------------------- */

static int add_new(struct tally_pid_list *to, struct tally_pid_list *found);

/* Adds the processes that are in the container's cgroups now. */
static int add_contained(struct tally_target *target)
{
	struct tally_pid_list found = { 0 };
	int result = tally_container_pids(&target->container, &found);
	if (result >= 0)
		result = add_new(&target->pids, &found);
	tally_pid_list_release(&found);
	return result;
}

int tally_target_add_container(struct tally_target *target, const char *name,
			       struct tally_error *err)
{
	if (target->pids.count && !target->container.name)
		return tally_error_set(err, -EINVAL, "-p and --container exclude each other");
	int result = tally_container_find(&tally_container_places, name, &target->container, err);
	if (result < 0)
		return result;
	if (add_contained(target) < 0)
		return tally_error_set(err, -ENOMEM, "out of memory");
	return 0;
}

/* True if the process or one of its ancestors was listed, so that its events were inherited. */
static bool is_of_listed(const struct tally_target *target, pid_t pid)
{
	enum { ANCESTORS_MAX = 64 };
	struct tally_proc_status status;
	for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
		if (has_pid(&target->pids, pid))
			return true;
		if (tally_proc_status(pid, &status) < 0)
			return true; /* it has ended: unknown */
		pid = status.parent;
	}
	return false;
}

size_t tally_target_late_count(const struct tally_target *target)
{
	struct tally_pid_list now = { 0 };
	size_t count = 0;
	if (target->container.name && !tally_container_pids(&target->container, &now))
		for (size_t i = 0; i < now.count; i++)
			count += !is_of_listed(target, now.items[i]);
	tally_pid_list_release(&now);
	return count;
}

/* Leaves out the processes that ended since they were listed. */
static int check_contained(struct tally_target *target, struct tally_error *err)
{
	size_t kept = 0;
	for (size_t i = 0; i < target->pids.count; i++) {
		struct tally_proc_status status;
		if (tally_proc_status(target->pids.items[i], &status) >= 0)
			target->pids.items[kept++] = target->pids.items[i];
	}
	target->pids.count = kept;
	if (kept)
		return 0;
	tally_error_set(err, -ESRCH, "container or service '%s' has no processes",
			target->container.name);
	tally_error_hint(err, "it has ended, or another PID namespace hides them");
	return -ESRCH;
}

int tally_target_set_user(struct tally_target *target, const char *name, struct tally_error *err)
{
	char room[4096], *end;
	struct passwd entry, *found = NULL;
	getpwnam_r(name, &entry, room, sizeof(room), &found);
	errno = 0;
	unsigned long number = strtoul(name, &end, 10);
	bool is_number = *name >= '0' && *name <= '9' && !*end && !errno && number < UINT_MAX;
	if (!found && !is_number)
		return tally_error_set(err, -EINVAL, "there is no user '%s'", name);
	target->user = found ? found->pw_uid : (uid_t)number;
	target->has_user = true;
	return 0;
}

int tally_target_set_cpus(struct tally_target *target, const char *list, struct tally_error *err)
{
	struct tally_cpu_list cpus = { 0 };
	int result = tally_cpu_list_asked(list, &cpus, err);
	if (result < 0)
		return result;
	tally_cpu_list_release(&target->cpus);
	target->cpus = cpus;
	target->has_cpu_list = true;
	return 0;
}

static int by_number(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;
	return x < y ? -1 : x > y;
}

/* Adds those of `found` that `to` lacks, each once.  Sorts, since a machine may have 30,000
 * threads. */
static int add_new(struct tally_pid_list *to, struct tally_pid_list *found)
{
	struct tally_pid_list old = { 0 };
	int result = 0;
	for (size_t i = 0; i < to->count && result >= 0; i++)
		result = tally_vector_push(&old, to->items[i]);
	if (result >= 0 && found->count) {
		if (old.count)
			qsort(old.items, old.count, sizeof(*old.items), by_number);
		qsort(found->items, found->count, sizeof(*found->items), by_number);
	}
	for (size_t i = 0; i < found->count && result >= 0; i++) {
		const pid_t *tid = &found->items[i];
		bool is_known = (i && tid[-1] == *tid) ||
				(old.count &&
				 bsearch(tid, old.items, old.count, sizeof(*tid), by_number));
		if (!is_known)
			result = tally_vector_push(to, *tid);
	}
	tally_vector_release(&old);
	return result;
}

static int add_process(struct tally_pid_list *found, pid_t pid)
{
	struct tally_pid_list threads = { 0 };
	int result = 0;
	if (tally_proc_threads(pid, &threads) >= 0)
		for (size_t i = 0; i < threads.count && result >= 0; i++)
			result = tally_vector_push(found, threads.items[i]);
	tally_pid_list_release(&threads);
	return result;
}

/* ---- descendants --------------------------------------------------------- */

struct parenthood {
	pid_t pid, parent;
};

struct family {
	struct parenthood *items;
	size_t count, capacity;
};

/* Lists all running processes except ourselves: our own children are not part of the target. */
static int list_family(struct family *family)
{
	struct tally_pid_list pids = { 0 };
	int result = tally_proc_pids(&pids);
	for (size_t i = 0; i < pids.count && result >= 0; i++) {
		struct tally_proc_status status;
		if (pids.items[i] == getpid() || tally_proc_status(pids.items[i], &status) < 0)
			continue;
		const struct parenthood one = { .pid = pids.items[i], .parent = status.parent };
		result = tally_vector_push(family, one);
	}
	tally_pid_list_release(&pids);
	return result;
}

static bool is_asked_for(const struct tally_target *target, pid_t pid)
{
	for (size_t i = 0; i < target->pids.count; i++)
		if (target->pids.items[i] == pid)
			return true;
	return false;
}

/* Adds the children of known processes.  Returns 1 if there were new ones: a child's pid may be
 * below its parent's, so another pass is needed.  Returns 0, or -ENOMEM. */
static int add_children(struct tally_target *target, const struct family *family)
{
	bool found_more = false;
	for (size_t i = 0; i < family->count; i++) {
		const struct parenthood *one = &family->items[i];
		bool is_meant = is_asked_for(target, one->parent) ||
				tally_map_get(&target->descendants, (uint64_t)one->parent);
		bool is_new = false;
		if (!is_meant || is_asked_for(target, one->pid))
			continue;
		if (!tally_map_put(&target->descendants, (uint64_t)one->pid, &is_new))
			return -ENOMEM;
		found_more |= is_new;
	}
	return found_more;
}

static int list_descendants(struct tally_target *target)
{
	struct family family = { 0 };
	int result = target->pids.count ? list_family(&family) : 0;
	while (result >= 0 && (result = add_children(target, &family)) > 0)
		;
	tally_vector_release(&family);
	return result;
}

static int add_descendants(struct tally_target *target, struct tally_pid_list *found)
{
	int result = list_descendants(target);
	for (size_t i = 0; i < target->descendants.capacity && result >= 0; i++) {
		const struct tally_map_slot *slot = &target->descendants.slots[i];
		size_t before = found->count;
		if (!slot->used)
			continue;
		result = add_process(found, (pid_t)slot->key);
		for (size_t k = before; k < found->count && result >= 0; k++)
			if (!tally_map_put(&target->descendant_tids, (uint64_t)found->items[k],
					   NULL))
				result = -ENOMEM;
	}
	return result;
}

/* ---- listing ------------------------------------------------------------- */

/* Adds the running processes of the user, or all.  The user's exclude ourselves: a recording must
 * not record itself. */
static int add_running(const struct tally_target *target, struct tally_pid_list *found)
{
	struct tally_pid_list pids = { 0 };
	int result = tally_proc_pids(&pids);
	for (size_t i = 0; i < pids.count && result >= 0; i++) {
		struct tally_proc_status status;
		bool is_meant = target->every_thread ||
				(pids.items[i] != getpid() &&
				 !tally_proc_status(pids.items[i], &status) &&
				 status.uid == target->user);
		if (is_meant)
			result = add_process(found, pids.items[i]);
	}
	tally_pid_list_release(&pids);
	return result;
}

/* What a container's process started is the container's as long as it is in its cgroup: sshd starts
 * the users' sessions, which systemd moves to theirs. */
static bool takes_descendants(const struct tally_target *target)
{
	return target->takes_descendants && !target->container.name;
}

long tally_target_refresh(struct tally_target *target)
{
	size_t before = target->tids.count;
	struct tally_pid_list found = { 0 };
	int result = target->container.name ? add_contained(target) : 0;
	for (size_t i = 0; i < target->threads.count && result >= 0; i++)
		result = tally_vector_push(&found, target->threads.items[i]);
	for (size_t i = 0; i < target->pids.count && result >= 0; i++)
		result = add_process(&found, target->pids.items[i]);
	if (takes_descendants(target) && result >= 0)
		result = add_descendants(target, &found);
	if ((target->has_user || target->every_thread) && result >= 0)
		result = add_running(target, &found);
	if (result >= 0)
		result = add_new(&target->tids, &found);
	tally_pid_list_release(&found);
	return result < 0 ? result : (long)(target->tids.count - before);
}

static int check_processes(const struct tally_target *target, struct tally_error *err)
{
	for (size_t i = 0; i < target->pids.count; i++) {
		struct tally_pid_list threads = { 0 };
		int result = tally_proc_threads(target->pids.items[i], &threads);
		if (result >= 0 && !threads.count)
			result = -ESRCH;
		tally_pid_list_release(&threads);
		if (result < 0) {
			bool is_absent = result == -ESRCH || result == -ENOENT;
			if (is_absent && access("/proc/self", F_OK) < 0)
				return tally_error_set(err, result,
						       "process %d can't be seen: there is no /proc",
						       target->pids.items[i]);
			if (is_absent)
				return tally_error_set(err, result, "no process %d",
						       target->pids.items[i]);
			return tally_error_set(err, result, "process %d: %s",
					       target->pids.items[i], tally_errno_text(result));
		}
	}
	return 0;
}

/* proc(5): hidepid=1, 2 and 4 hide other users' processes. */
static bool hides_processes(void)
{
	struct mntent *entry;
	bool hides = false;
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	while (mounts && (entry = getmntent(mounts))) {
		const char *option = hasmntopt(entry, "hidepid");
		if (!strcmp(entry->mnt_dir, "/proc"))
			hides = option && strncmp(option, "hidepid=0", 9) != 0 &&
				strncmp(option, "hidepid=off", 11) != 0;
	}
	if (mounts)
		endmntent(mounts);
	return hides;
}

static int no_processes_of(uid_t user, struct tally_error *err)
{
	if (user == geteuid() || !geteuid() || !hides_processes())
		return tally_error_set(err, -ESRCH, "user %u has no processes", (unsigned)user);
	tally_error_set(err, -EPERM,
			"the processes of user %u are hidden: /proc is mounted with hidepid",
			(unsigned)user);
	tally_error_hint(err, "run tally as root");
	return -EPERM;
}

static int check_cpus(const struct tally_target *target, struct tally_error *err)
{
	struct tally_cpu_list online = { 0 };
	struct tally_arena arena = TALLY_ARENA_INIT;
	int result = tally_cpu_list_read(TALLY_CPU_ONLINE, &online, err);
	for (size_t i = 0; i < target->cpus.count && result >= 0; i++)
		if (!tally_cpu_list_contains(&online, target->cpus.cpus[i])) {
			const char *text = tally_cpu_list_text(&online, &arena);
			result = tally_error_set(err, -ENODEV, "there is no CPU %u online",
						 target->cpus.cpus[i]);
			tally_error_hint(err, "online CPUs: %s", text ? text : "others");
		}
	tally_arena_release(&arena);
	tally_cpu_list_release(&online);
	return result;
}

int tally_target_resolve(struct tally_target *target, struct tally_error *err)
{
	bool tasks = tally_target_has_tasks(target);
	if (tasks && (target->all || target->has_cpu_list)) {
		tally_error_set(
			err, -EINVAL,
			"processes (-p, -t, -u) and CPUs (-a, -C) can't be counted together");
		tally_error_hint(err, "leave one of them out");
		return -EINVAL;
	}
	if (!tasks && (!target->command || target->has_cpu_list))
		target->all = true;
	if (target->all && !target->has_cpu_list)
		return tally_cpu_list_read(TALLY_CPU_ONLINE, &target->cpus, err);
	if (target->all)
		return check_cpus(target, err);
	if (!tasks)
		return 0;
	/* every_thread needs no check: threads may come and go */
	int result = 0;
	if (target->container.name)
		result = check_contained(target, err);
	else if (!target->every_thread)
		result = check_processes(target, err);
	if (result < 0)
		return result;
	long listed = tally_target_refresh(target);
	if (listed >= 0 && !target->takes_descendants && !target->container.name &&
	    list_descendants(target) < 0)
		listed = -ENOMEM;
	if (listed < 0)
		return tally_error_set(err, (int)listed, "listing threads: %s",
				       tally_errno_text((int)listed));
	return !listed && target->has_user ? no_processes_of(target->user, err) : 0;
}

static void list_text(const struct tally_pid_list *list, const char *one, const char *many,
		      char *out, size_t size)
{
	size_t used = (size_t)snprintf(out, size, "%s ", list->count == 1 ? one : many);
	for (size_t i = 0; i < list->count && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s%d", i ? ", " : "",
					 list->items[i]);
}

static void add_descendants_text(const struct tally_target *target, char *out, size_t size)
{
	size_t count = target->descendants.count, used = strlen(out);
	if (target->takes_descendants && count && used < size)
		snprintf(out + used, size - used, " and %zu child process%s", count,
			 count == 1 ? "" : "es");
}

static void command_text(char **command, char *out, size_t size)
{
	size_t used = (size_t)snprintf(out, size, "'");
	for (; *command && used < size; command++)
		used += (size_t)snprintf(out + used, size - used, "%s%s", *command,
					 command[1] ? " " : "'");
	for (; *out; out++) /* put a script's lines on one */
		if (*out == '\n' || *out == '\t')
			*out = ' ';
}

void tally_target_text(const struct tally_target *target, char *out, size_t size)
{
	bool is_command = false;
	if (target->all && target->has_cpu_list) {
		struct tally_arena arena = TALLY_ARENA_INIT;
		const char *list = tally_cpu_list_text(&target->cpus, &arena);
		snprintf(out, size, "CPU%s %s", target->cpus.count == 1 ? "" : "s",
			 list ? list : "");
		tally_arena_release(&arena);
	} else if (target->all) {
		snprintf(out, size, "the whole system (%zu CPU%s)", target->cpus.count,
			 target->cpus.count == 1 ? "" : "s");
	} else if (target->every_thread) {
		snprintf(out, size, "all threads (%zu)", target->tids.count);
	} else if (target->container.name) {
		snprintf(out, size, "container %s (%zu process%s)", target->container.name,
			 target->pids.count, target->pids.count == 1 ? "" : "es");
	} else if (target->pids.count) {
		list_text(&target->pids, "process", "processes", out, size);
		add_descendants_text(target, out, size);
	} else if (target->threads.count) {
		list_text(&target->threads, "thread", "threads", out, size);
	} else if (target->has_user) {
		snprintf(out, size, "user %u", (unsigned)target->user);
	} else if (target->command) {
		command_text(target->command, out, size);
		is_command = true;
	}
	size_t used = strlen(out);
	if (target->command && !is_command && used + 16 < size) {
		used += (size_t)snprintf(out + used, size - used, " during ");
		command_text(target->command, out + used, size - used);
	}
}

void tally_target_descendants_text(const struct tally_target *target, char *out, size_t size)
{
	size_t count = target->descendants.count, used;
	*out = '\0';
	if (!count)
		return;
	list_text(&target->pids, "process", "processes", out, size);
	used = strlen(out);
	if (used < size)
		snprintf(out + used, size - used, " ha%s %zu child process%s",
			 target->pids.count == 1 ? "s" : "ve", count,
			 count == 1 ? ", which is" : "es, which are");
}

void tally_target_release(struct tally_target *target)
{
	tally_container_release(&target->container);
	tally_pid_list_release(&target->pids);
	tally_pid_list_release(&target->threads);
	tally_pid_list_release(&target->tids);
	tally_map_release(&target->descendants);
	tally_map_release(&target->descendant_tids);
	tally_cpu_list_release(&target->cpus);
}
