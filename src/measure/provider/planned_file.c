/* The plan's file.  Each start of a command makes a new one, so that nothing that an earlier run
 * left behind can add to later counts.
 *
 * It has a name where possible, since programs that are executed later open it by name: descriptors
 * don't survive in programs that close those that they don't know.  All names have the same length:
 * a program's stack must not begin elsewhere because tally's pid has one digit more.  tmpfs
 * allocates pages when they are touched, so rings cost nothing until writers take them.  But it has
 * a limit, and touching a page beyond it is SIGBUS: so a small one (/dev/shm in containers) is
 * skipped.
 *
 * A tally that is killed leaves its file behind, in memory.  Each tally holds a lock on its own
 * file, so the next tally can recognize files without an owner. */
#include "provider/planned.h"

#include "base/environment.h"
#include "base/extremes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	SWEEP_AGE_S = 60,
	WAKEUP_BYTES = 512 << 10,
	ROOM_MS = 32,        /* how long a ring holds samples without being read */
	SAMPLE_BYTES = 1024, /* of a sample, beside its stack */
	RING_PAGES_MIN = 32, /* room for one sample with the largest stack, and a half */
	NS_PER_S = 1000000000
};

static uint64_t plan_bytes(const struct planned *planned)
{
	return (planned->host->plan_bytes + TALLY_PLAN_PAGE - 1) & ~(uint64_t)(TALLY_PLAN_PAGE - 1);
}

static uint64_t ring_stride(uint32_t ring_pages)
{
	return (1 + (uint64_t)ring_pages) * TALLY_PLAN_PAGE;
}

static bool has_room(const char *folder, uint64_t bytes)
{
	struct statvfs there;
	return !statvfs(folder, &there) && (uint64_t)there.f_bavail * there.f_frsize >= bytes &&
	       !access(folder, W_OK);
}

static const char *temporary_folder(uint64_t room_bytes)
{
	const char *temporary = tally_environment("TMPDIR");
	if (temporary && temporary[0] == '/' && has_room(temporary, room_bytes))
		return temporary;
	return "/tmp";
}

/* True if the file is this user's and its owner has gone.  Young files may not be locked yet. */
static bool is_left_behind(int folder, const char *name)
{
	struct stat st;
	int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool is_left = fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
		       st.st_uid == geteuid() && st.st_mtim.tv_sec + SWEEP_AGE_S < time(NULL) &&
		       !flock(fd, LOCK_EX | LOCK_NB);
	if (fd >= 0)
		close(fd);
	return is_left;
}

/* Removes what other tallies left in the folder. */
static void sweep(const struct tally_output_path *path, const char *prefix)
{
	int fd = openat(path->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = NULL;
	if (fd >= 0)
		folder = fdopendir(fd);
	struct dirent *entry;
	while (folder && (entry = readdir(folder)))
		if (!strncmp(entry->d_name, prefix, strlen(prefix)) &&
		    is_left_behind(dirfd(folder), entry->d_name))
			unlinkat(dirfd(folder), entry->d_name, 0);
	if (folder)
		closedir(folder);
	else if (fd >= 0)
		close(fd);
}

static int make_file(struct planned_file *file, const char *prefix, const char *folder,
		     struct tally_error *err)
{
	char text[PATH_MAX], name[NAME_MAX + 1];
	tally_output_path_random(prefix, "", name);
	if (snprintf(text, sizeof(text), "%s/%s", folder, name) >= (int)sizeof(text))
		return tally_error_set(err, -ENAMETOOLONG, "the path in TMPDIR is too long");
	int fd = tally_output_path_open(&file->path, text, err);
	if (fd >= 0) {
		sweep(&file->path, prefix);
		fd = tally_output_path_write(&file->path, O_RDWR, 0600, err);
	}
	if (fd < 0) {
		tally_error_hint(err, "set TMPDIR to a directory of your own");
		return fd;
	}
	flock(fd, LOCK_EX | LOCK_NB);
	file->fd = fd;
	return 0;
}

/* Opens the file, by name or without.  Returns 0 or -errno. */
static int open_file(struct planned *planned, const char *folder, struct tally_error *err)
{
	struct planned_file *file = &planned->file;
	const struct planned_host *host = planned->host;
	if (!folder && has_room("/dev/shm", host->room_bytes))
		folder = "/dev/shm";
	if (!folder && host->may_be_unnamed) {
		file->fd = memfd_create(host->prefix, MFD_CLOEXEC);
		if (file->fd >= 0)
			return 0;
	}
	if (!folder)
		folder = temporary_folder(host->room_bytes);
	return make_file(file, host->prefix, folder, err);
}

/* For messages. */
static const char *name_of(const struct planned_file *file)
{
	if (file->path.path[0])
		return file->path.path;
	return "memory shared with the command";
}

int planned_file_make(struct planned *planned, const char *folder, struct tally_error *err)
{
	struct planned_file *file = &planned->file;
	uint64_t bytes = plan_bytes(planned);
	planned_discard(planned);
	int result = open_file(planned, folder, err);
	if (result < 0)
		return result;
	/* Allocate all of it, so that a full file system is detected here and not by a signal. */
	int code = posix_fallocate(file->fd, 0, (off_t)bytes);
	void *map = MAP_FAILED;
	if (!code) {
		map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
		if (map == MAP_FAILED)
			code = errno;
	}
	if (code) {
		tally_error_set(err, -code, "%s: %s", name_of(file), tally_errno_text(-code));
		planned_discard(planned);
		return -code;
	}
	file->slice_ms = 1;
	file->shared = map;
	*file->shared = (struct tally_plan){
		.magic = TALLY_PLAN_MAGIC,
		.version = TALLY_PLAN_VERSION,
		.size = bytes,
		.rings_offset = bytes,
		.tally_pid = getpid(),
	};
	return 0;
}

bool planned_has_begun(const struct planned *planned)
{
	const struct tally_plan *shared = planned->file.shared;
	return shared && __atomic_load_n(&shared->processes, __ATOMIC_SEQ_CST);
}

struct tally_plan_event *planned_in_file(const struct planned *planned, int handle)
{
	if (!planned->file.shared)
		return NULL;
	return &planned->file.shared->events[handle];
}

/* Returns the plan's event for a handle.  A handle that was closed before the start gets an event
 * that counts nothing, so that the other handles keep their places and ids. */
static struct tally_plan_event event_for_plan(const struct planned *planned, int handle)
{
	const struct planned_event *event = &planned->events[handle];
	struct tally_plan_event out = { .id = planned_id(handle), .leader = -1 };
	out.attr = (struct tally_attr){ .type = TALLY_TYPE_SOFTWARE,
					.config = TALLY_SW_DUMMY,
					.size = sizeof(out.attr),
					.flags = TALLY_ATTR_DISABLED };
	if (!event->is_open)
		return out;
	out.attr = event->attr;
	out.leader = event->leader == handle ? -1 : event->leader;
	out.enabled = event->is_enabled;
	out.waits_for_exec = event->waits_for_exec;
	out.sampled = planned->events[event->output].page != NULL;
	/* tally is woken early enough to empty the ring while the rest is written. */
	out.attr.flags |= TALLY_ATTR_WATERMARK;
	out.attr.wakeup_events = (uint32_t)tally_min_u64(
		(uint64_t)planned->file.shared->ring_pages * TALLY_PLAN_PAGE / 2, WAKEUP_BYTES);
	return out;
}

void planned_publish(struct planned *planned)
{
	struct tally_plan *shared = planned->file.shared;
	if (!shared || planned_has_begun(planned))
		return;
	shared->event_count = 0;
	for (int i = 0; i < TALLY_PLAN_EVENTS; i++) {
		shared->events[i] = event_for_plan(planned, i);
		if (planned->events[i].is_open)
			shared->event_count = (uint32_t)i + 1;
	}
}

/* True if the file system has that much free: not needed for memory without a name. */
static bool has_space(const struct planned_file *file, uint64_t bytes)
{
	struct statvfs there;
	return !file->path.path[0] ||
	       (!fstatvfs(file->fd, &there) && (uint64_t)there.f_bavail * there.f_frsize >= bytes);
}

/* Returns how many bytes the samples of one writer take in ROOM_MS, if it runs all the while.  Of the
 * events that sample, one at a time has stacks: their sizes differ. */
static uint64_t bytes_needed(const struct planned *planned)
{
	uint64_t most = 0;
	for (int i = 0; i < TALLY_PLAN_EVENTS; i++) {
		const struct tally_attr *attr = &planned->events[i].attr;
		uint64_t rate = attr->sample_period;
		if (!planned->events[i].is_open || !rate ||
		    !(attr->sample_type & TALLY_SAMPLE_STACK_USER))
			continue;
		if (!(attr->flags & TALLY_ATTR_FREQ))
			rate = NS_PER_S / rate; /* of a clock */
		uint64_t size = SAMPLE_BYTES + (uint64_t)attr->sample_stack_user;
		most = tally_max_u64(most, rate * size * ROOM_MS / 1000);
	}
	return most;
}

/* Returns the size of writers' rings, in data pages: as large as the samples need, and at most as
 * large as tally's rings of `limit` pages.  Each writer has one, and in time touches all of it. */
static uint32_t choose_ring_pages(const struct planned *planned, size_t limit)
{
	const struct planned_host *host = planned->host;
	uint64_t needed = bytes_needed(planned) / TALLY_PLAN_PAGE;
	uint32_t pages = host->ring_pages;
	while (pages < limit && pages < needed && pages < host->max_ring_pages &&
	       has_space(&planned->file, TALLY_PLAN_RINGS * ring_stride(2 * pages)))
		pages *= 2;
	return pages;
}

static void unmap_rings(struct planned_file *file)
{
	if (file->rings)
		munmap(file->rings, TALLY_PLAN_RINGS * ring_stride(file->shared->ring_pages));
	file->rings = NULL;
}

static int map_rings(struct planned_file *file, uint64_t offset, uint32_t pages)
{
	uint64_t bytes = TALLY_PLAN_RINGS * ring_stride(pages);
	if (ftruncate(file->fd, (off_t)(offset + bytes)) < 0)
		return -errno;
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file->fd,
			 (off_t)offset);
	if (map == MAP_FAILED)
		return -errno;
	file->rings = map;
	file->shared->ring_pages = pages;
	file->shared->size = offset + bytes;
	return 0;
}

/* Under a limit of memory (ulimit -v), rings are smaller. */
int planned_add_rings(struct planned *planned, size_t data_pages)
{
	struct planned_file *file = &planned->file;
	if (!file->shared)
		return -EINVAL;
	uint32_t pages = choose_ring_pages(planned, data_pages);
	if (pages <= file->shared->ring_pages)
		return 0;
	unmap_rings(file);
	file->shared->ring_pages = 0;
	int result;
	while ((result = map_rings(file, plan_bytes(planned), pages)) == -ENOMEM &&
	       pages > RING_PAGES_MIN)
		pages /= 2;
	return result;
}

void planned_drop_ring(struct planned *planned, unsigned ring)
{
	const struct planned_file *file = &planned->file;
	uint64_t at = tally_plan_ring_offset(file->shared, ring);
	if (fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at,
		      (off_t)ring_stride(file->shared->ring_pages)) < 0)
		memset(file->rings + (at - file->shared->rings_offset), 0, TALLY_PLAN_PAGE);
}

void planned_stop(struct planned *planned)
{
	struct tally_plan *shared = planned->file.shared;
	if (!shared)
		return;
	__atomic_store_n(&shared->closed, 1, __ATOMIC_SEQ_CST);
	for (int i = 0; i < TALLY_PLAN_RINGS; i++)
		if (__atomic_exchange_n(&shared->rings[i].room_wanted, 0, __ATOMIC_SEQ_CST))
			syscall(SYS_futex, &shared->rings[i].room_wanted, FUTEX_WAKE, INT_MAX, NULL,
				NULL, 0);
}

void planned_discard(struct planned *planned)
{
	struct planned_file *file = &planned->file;
	planned_stop(planned);
	unmap_rings(file);
	if (file->shared)
		munmap(file->shared, plan_bytes(planned));
	if (file->fd >= 0 && file->path.path[0])
		unlinkat(file->path.folder, file->path.name, 0);
	if (file->fd >= 0)
		close(file->fd);
	tally_output_path_close(&file->path);
	*file = (struct planned_file){ .fd = -1, .path = TALLY_OUTPUT_PATH_INIT };
}
