/* Most processes that make code write no map.  So the recorder looks for a missing map less and
 * less often: the pause grows from 50 ms to two seconds, until the process makes more code.  A map
 * that is held is checked in the same way, because it may be replaced.  A process that ends without
 * a map is forgotten. */
#include "task/jit.h"

#include "base/buffer.h"
#include "base/vector.h"
#include "machine/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A JIT in a container writes the map into the container's /tmp, under the pid that it has there.
 * /proc leads to both while the process runs.  Tools outside of the container may have written the
 * map to our /tmp, under our pid, so that place comes second.
 *
 * Maps stay when their processes end, and pids are reused.  A map that is older than the process
 * belongs to an earlier one.
 *
 * The container may have put anything at the path.  So no symbolic link is followed, and the folder
 * must be a folder. */

enum { STATUS_BYTES_MAX = 1 << 16 };

/* Starts are known to a tick, and the clock may have been set since boot. */
static const uint64_t SLACK_NS = 1000000000;

static uint64_t nanoseconds(struct timespec time)
{
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* The kernel gives the start in ticks since boot (proc_pid_stat(5), field 22). */
uint64_t tally_process_start_ns(uint32_t pid)
{
	char path[32];
	struct tally_buffer text = { 0 };
	uint64_t ticks = 0;
	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	if (!tally_buffer_read_file(&text, AT_FDCWD, path, STATUS_BYTES_MAX)) {
		const char *field = strrchr(tally_buffer_string(&text), ')'); /* ends field 2 */
		for (unsigned i = 2; field && i < 22; i++)
			field = strchr(field + 1, ' ');
		ticks = field ? strtoull(field, NULL, 10) : 0;
	}
	tally_buffer_release(&text);
	struct timespec real, boot;
	if (!ticks || clock_gettime(CLOCK_REALTIME, &real) || clock_gettime(CLOCK_BOOTTIME, &boot))
		return 0;
	uint64_t booted_ns = nanoseconds(real) - nanoseconds(boot);
	return booted_ns + ticks * (1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* True if the map was last written before the process began: it is that of an earlier process with
 * the same number.  The inode's change time counts, which no program sets back. */
static bool is_older(const struct stat *map, uint32_t pid, uint64_t not_before_ns)
{
	uint64_t start_ns = tally_process_start_ns(pid);
	if (!start_ns)
		start_ns = not_before_ns;
	return nanoseconds(map->st_ctim) + SLACK_NS < start_ns;
}

/* True if the process's owner, root or this user wrote the map. */
static bool is_trusted(const struct stat *map, uint32_t pid)
{
	char proc[32];
	struct stat process;
	if (!S_ISREG(map->st_mode))
		return false;
	snprintf(proc, sizeof(proc), "/proc/%u", pid);
	return map->st_uid == geteuid() || !map->st_uid ||
	       (!stat(proc, &process) && process.st_uid == map->st_uid);
}

static int open_in(int folder, uint32_t pid)
{
	char name[32];
	snprintf(name, sizeof(name), "perf-%u.map", pid);
	return openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
}

/* Returns the pid in the innermost namespace: the last number of "NStgid:". */
static uint32_t own_pid(uint32_t pid)
{
	char path[32];
	struct tally_buffer status = { 0 };
	uint32_t own = pid;
	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	if (!tally_buffer_read_file(&status, AT_FDCWD, path, STATUS_BYTES_MAX)) {
		const char *line = strstr(tally_buffer_string(&status), "\nNStgid:");
		for (char *at = line ? (char *)line + sizeof("\nNStgid:") - 1 : NULL;
		     at && *at == '\t';)
			own = (uint32_t)strtoul(at, &at, 10);
	}
	tally_buffer_release(&status);
	return own;
}

static int open_in_root(uint32_t pid)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/%d/root", tally_proc_living_thread((pid_t)pid));
	int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int folder = -1, fd = -1;
	if (root >= 0)
		folder = openat(root, "tmp", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder >= 0)
		fd = open_in(folder, own_pid(pid));
	if (folder >= 0)
		close(folder);
	if (root >= 0)
		close(root);
	return fd;
}

static int open_in_tmp(uint32_t pid)
{
	int folder = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return -1;
	int fd = open_in(folder, pid);
	close(folder);
	return fd;
}

static int checked(int fd, uint32_t pid, uint64_t not_before_ns)
{
	struct stat map;
	if (fd < 0)
		return -ENOENT;
	bool is_its = !fstat(fd, &map) && !is_older(&map, pid, not_before_ns);
	if (is_its && is_trusted(&map, pid))
		return fd;
	close(fd);
	if (is_its)
		return -EPERM;
	return -ENOENT;
}

int tally_perf_map_open(uint32_t pid, uint64_t not_before_ns)
{
	int own = checked(open_in_root(pid), pid, not_before_ns);
	if (own >= 0)
		return own;
	int fd = checked(open_in_tmp(pid), pid, not_before_ns);
	if (fd == -ENOENT)
		return own;
	return fd;
}

enum { HELD_MAX = 256 };
static const uint64_t PAUSE_NS_MIN = 50000000, PAUSE_NS_MAX = 2000000000;

static bool is_same(int a, int b)
{
	struct stat one, other;
	return !fstat(a, &one) && !fstat(b, &other) && one.st_dev == other.st_dev &&
	       one.st_ino == other.st_ino;
}

/* Opens the map.  Returns true if it is new: the first one, or another than the one held last. */
static bool take(struct tally_perf_maps *maps, struct tally_perf_map_watch *watch)
{
	bool is_full = watch->count == TALLY_PERF_MAPS_OF_PROCESS || maps->held == HELD_MAX;
	if (is_full)
		return false;
	int fd = tally_perf_map_open(watch->pid, maps->began_ns);
	if (fd < 0)
		return false;
	if (watch->count && is_same(fd, watch->fds[watch->count - 1])) {
		close(fd);
		return false;
	}
	watch->fds[watch->count++] = fd;
	watch->seen[0] = watch->seen[1] = 0;
	maps->held++;
	return true;
}

static uint64_t size_of(const struct tally_perf_map_watch *watch)
{
	struct stat status;
	if (watch->count && !fstat(watch->fds[watch->count - 1], &status))
		return (uint64_t)status.st_size;
	return 0;
}

static void note_size(struct tally_perf_map_watch *watch)
{
	if (!watch->count)
		return;
	watch->seen[0] = watch->seen[1];
	watch->seen[1] = size_of(watch);
}

static void look(struct tally_perf_maps *maps, struct tally_perf_map_watch *watch, uint64_t now_ns)
{
	bool is_new = take(maps, watch);
	if (is_new || !watch->pause_ns)
		watch->pause_ns = PAUSE_NS_MIN;
	else
		watch->pause_ns += watch->pause_ns / 2;
	if (watch->pause_ns > PAUSE_NS_MAX)
		watch->pause_ns = PAUSE_NS_MAX;
	watch->next_ns = now_ns + watch->pause_ns;
}

static struct tally_perf_map_watch *find(const struct tally_perf_maps *maps, uint32_t pid)
{
	const uint64_t *at = tally_map_get(&maps->of_process, pid);
	if (!at)
		return NULL;
	return &maps->watches.items[*at];
}

static void forget(struct tally_perf_maps *maps, struct tally_perf_map_watch *watch)
{
	struct tally_perf_map_watch *last = &maps->watches.items[maps->watches.count - 1];
	tally_map_remove(&maps->of_process, watch->pid);
	if (watch != last) {
		*tally_map_get(&maps->of_process,
			       last->pid) = (uint64_t)(watch - maps->watches.items);
		*watch = *last;
	}
	maps->watches.count--;
}

static bool is_made_code(const struct tally_tasks *tasks, const struct tally_record_mmap *mmap)
{
	const struct tally_mapping *mapping = tally_tasks_find(tasks, mmap->pid, false,
							       mmap->start);
	return mapping && mapping->executable && tasks->files.items[mapping->file].pid == mmap->pid;
}

static int note_code(struct tally_perf_maps *maps, uint32_t pid)
{
	bool added = false;
	uint64_t *at = tally_map_put(&maps->of_process, pid, &added);
	if (!at)
		return -ENOMEM;
	if (added) {
		*at = maps->watches.count;
		if (tally_vector_push(&maps->watches, (struct tally_perf_map_watch){ .pid = pid }) <
		    0) {
			tally_map_remove(&maps->of_process, pid);
			return -ENOMEM;
		}
	}
	struct tally_perf_map_watch *watch = &maps->watches.items[*at];
	watch->has_ended = false; /* the number may belong to another process now */
	watch->pause_ns = 0;
	if (watch->next_ns > maps->next_ns)
		watch->next_ns = maps->next_ns;
	return 0;
}

static void note_end(struct tally_perf_maps *maps, uint32_t pid)
{
	struct tally_perf_map_watch *watch = find(maps, pid);
	if (!watch)
		return;
	take(maps, watch);
	watch->has_ended = true;
	watch->ended_size = size_of(watch);
	if (!watch->count)
		forget(maps, watch);
}

int tally_perf_maps_record(struct tally_perf_maps *maps, const struct tally_tasks *tasks,
			   const struct tally_record *record)
{
	struct timespec now;
	if (!maps->began_ns && !clock_gettime(CLOCK_REALTIME, &now))
		maps->began_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	switch (record->header.type) {
	case TALLY_RECORD_MMAP:
	case TALLY_RECORD_MMAP2:
		if (is_made_code(tasks, &record->mmap))
			return note_code(maps, record->mmap.pid);
		return 0;
	case TALLY_RECORD_FORK:
		if (record->task.pid != record->task.parent_pid &&
		    tally_tasks_has_made_code(tasks, record->task.pid))
			return note_code(maps, record->task.pid);
		return 0;
	case TALLY_RECORD_EXIT:
		if (record->task.pid == record->task.tid)
			note_end(maps, record->task.pid);
		return 0;
	default: return 0;
	}
}

void tally_perf_maps_look(struct tally_perf_maps *maps, uint64_t now_ns, bool last)
{
	if (!maps->watches.count || (now_ns < maps->next_ns && !last))
		return;
	for (size_t i = 0; i < maps->watches.count; i++) {
		struct tally_perf_map_watch *watch = &maps->watches.items[i];
		if (watch->has_ended && size_of(watch) != watch->ended_size)
			watch->has_ended = false; /* its leader has ended, but threads still run */
		if (!watch->has_ended && !last)
			note_size(watch);
		if (!watch->has_ended && (last || now_ns >= watch->next_ns))
			look(maps, watch, now_ns);
	}
	maps->next_ns = now_ns + PAUSE_NS_MIN;
}

/* Puts the lines of the last moments in front of the older ones. */
static void put_in_order(const struct tally_buffer *text, uint64_t seen, struct tally_buffer *out)
{
	size_t before = seen < text->length ? (size_t)seen : text->length;
	while (before && text->bytes[before - 1] != '\n')
		before--;
	tally_buffer_append(out, text->bytes + before, text->length - before);
	tally_buffer_char(out, '\n'); /* the last line may be incomplete */
	tally_buffer_append(out, text->bytes, before);
}

int tally_perf_maps_text(const struct tally_perf_maps *maps, uint32_t pid, struct tally_buffer *out,
			 size_t maximum)
{
	const struct tally_perf_map_watch *watch = find(maps, pid);
	if (!watch)
		return 0;
	for (uint32_t i = 0; i < watch->count; i++) {
		struct tally_buffer text = { .maximum = maximum + TALLY_BUFFER_READ_ROOM };
		if (lseek(watch->fds[i], 0, SEEK_SET) < 0)
			return -errno;
		int result = tally_buffer_read_descriptor(&text, watch->fds[i], maximum);
		if (!result && text.length)
			put_in_order(&text, i + 1 == watch->count ? watch->seen[0] : text.length,
				     out);
		tally_buffer_release(&text);
		if (result)
			return result;
	}
	return watch->count > 0;
}

void tally_perf_maps_release(struct tally_perf_maps *maps)
{
	for (size_t i = 0; i < maps->watches.count; i++)
		for (uint32_t f = 0; f < maps->watches.items[i].count; f++)
			close(maps->watches.items[i].fds[f]);
	tally_vector_release(&maps->watches);
	tally_map_release(&maps->of_process);
	*maps = (struct tally_perf_maps){ 0 };
}
