/* The plan's file.  Each start of a command makes a new one, so that nothing that an earlier run
 * left behind can add to later counts.
 *
 * It has a name, since programs that are executed later open it by name: descriptors don't survive
 * in programs that close those that they don't know.  All names have the same length: a program's
 * stack must not begin elsewhere because tally's pid has one digit more. tmpfs allocates pages when
 * they are touched, so the 512 rings cost nothing until processes take them.  But it has a limit,
 * and touching a page beyond it is SIGBUS: so a small one (/dev/shm in containers) is skipped.
 *
 * A tally that is killed leaves its file behind, in memory.  Each tally holds a lock on its own
 * file, so the next tally can recognize files without an owner. */
#include "provider/provider_internal.h"

#include "base/environment.h"

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

static const char NAME[] = "tally-vsim-";
enum { RING_PAGES = 128, SWEEP_AGE_S = 60 };
#define ROOM_BYTES ((uint64_t)48 << 20)

static uint64_t plan_bytes(void)
{
	return (sizeof(struct vsim_plan) + VSIM_PAGE - 1) & ~(uint64_t)(VSIM_PAGE - 1);
}

static bool has_room(const char *folder)
{
	struct statvfs there;
	return !statvfs(folder, &there) &&
	       (uint64_t)there.f_bavail * there.f_frsize >= ROOM_BYTES && !access(folder, W_OK);
}

static const char *choose_folder(const struct simulated *simulated)
{
	const char *temporary = tally_environment("TMPDIR");
	if (simulated->options.memory)
		return simulated->options.memory;
	if (has_room("/dev/shm"))
		return "/dev/shm";
	if (temporary && temporary[0] == '/' && has_room(temporary))
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
static void sweep(const struct tally_output_path *path)
{
	int fd = openat(path->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = NULL;
	if (fd >= 0)
		folder = fdopendir(fd);
	struct dirent *entry;
	while (folder && (entry = readdir(folder)))
		if (!strncmp(entry->d_name, NAME, sizeof(NAME) - 1) &&
		    is_left_behind(dirfd(folder), entry->d_name))
			unlinkat(dirfd(folder), entry->d_name, 0);
	if (folder)
		closedir(folder);
	else if (fd >= 0)
		close(fd);
}

static int make_file(struct simulated_plan *plan, const char *folder, struct tally_error *err)
{
	char text[PATH_MAX], name[NAME_MAX + 1];
	tally_output_path_random(NAME, "", name);
	if (snprintf(text, sizeof(text), "%s/%s", folder, name) >= (int)sizeof(text))
		return tally_error_set(err, -ENAMETOOLONG, "the path in TMPDIR is too long");
	int fd = tally_output_path_open(&plan->path, text, err);
	if (fd >= 0) {
		sweep(&plan->path);
		fd = tally_output_path_write(&plan->path, O_RDWR, 0600, err);
	}
	if (fd < 0) {
		tally_error_hint(err, "set TMPDIR to a directory of your own");
		return fd;
	}
	flock(fd, LOCK_EX | LOCK_NB);
	plan->fd = fd;
	return 0;
}

static void choose_region(struct vsim_plan *shared, const struct tally_simulated_options *options)
{
	_Static_assert(TALLY_SIMULATED_FUNCTIONS <= (int)VSIM_FUNCTIONS,
		       "as many as are checked for");
	_Static_assert(TALLY_SIMULATED_FUNCTION_NAME < (int)VSIM_FUNCTION_NAME,
		       "as long as is checked for");
	shared->region_only = options->region || options->function_count;
	shared->function_count = options->function_count;
	for (unsigned i = 0; i < options->function_count; i++)
		snprintf(shared->functions[i], sizeof(shared->functions[i]), "%s",
			 options->functions[i]);
}

int simulated_plan_make(struct simulated *simulated, struct tally_error *err)
{
	struct simulated_plan *plan = &simulated->plan;
	const char *folder = choose_folder(simulated);
	simulated_plan_discard(simulated);
	int result = make_file(plan, folder, err);
	if (result < 0)
		return result;
	/* Allocate all of it, so that a full file system is detected here and not by a signal. */
	int code = posix_fallocate(plan->fd, 0, (off_t)plan_bytes());
	void *map = MAP_FAILED;
	if (!code) {
		map = mmap(NULL, plan_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, plan->fd, 0);
		if (map == MAP_FAILED)
			code = errno;
	}
	if (code) {
		tally_error_set(err, -code, "%s: %s", plan->path.path,
				tally_errno_text(-code));
		simulated_plan_discard(simulated);
		return -code;
	}
	plan->shared = map;
	*plan->shared = (struct vsim_plan){
		.magic = VSIM_PLAN_MAGIC,
		.version = VSIM_PLAN_VERSION,
		.size = plan_bytes(),
		.rings_offset = plan_bytes(),
		.tally_pid = getpid(),
		.geometry = simulated->geometry,
	};
	choose_region(plan->shared, &simulated->options);
	return 0;
}

bool simulated_plan_has_begun(const struct simulated *simulated)
{
	const struct vsim_plan *shared = simulated->plan.shared;
	return shared && __atomic_load_n(&shared->processes, __ATOMIC_SEQ_CST);
}

struct vsim_event *simulated_planned(const struct simulated *simulated, int handle)
{
	if (!simulated->plan.shared)
		return NULL;
	return &simulated->plan.shared->events[handle];
}

/* Returns the plan's event for a handle.  A handle that was closed before the start gets an event
 * that counts nothing, so that the other handles keep their places and ids. */
static struct vsim_event planned_event(const struct simulated *simulated, int handle)
{
	const struct simulated_event *event = &simulated->events[handle];
	struct vsim_event planned = { .id = simulated_id(handle), .leader = -1 };
	planned.attr = (struct tally_attr){ .type = TALLY_TYPE_SOFTWARE,
					    .config = TALLY_SW_DUMMY,
					    .size = sizeof(planned.attr),
					    .flags = TALLY_ATTR_DISABLED };
	if (!event->is_open)
		return planned;
	planned.attr = event->attr;
	planned.leader = event->leader == handle ? -1 : event->leader;
	planned.enabled = event->is_enabled;
	planned.waits_for_exec = event->waits_for_exec;
	planned.sampled = simulated->events[event->output].page != NULL;
	/* tally is woken early enough to empty the ring while the other half is written. */
	planned.attr.flags |= TALLY_ATTR_WATERMARK;
	planned.attr.wakeup_events = RING_PAGES * VSIM_PAGE / 2;
	return planned;
}

void simulated_plan_publish(struct simulated *simulated)
{
	struct vsim_plan *shared = simulated->plan.shared;
	if (!shared || simulated_plan_has_begun(simulated))
		return;
	shared->event_count = 0;
	for (int i = 0; i < VSIM_EVENTS; i++) {
		shared->events[i] = planned_event(simulated, i);
		if (simulated->events[i].is_open)
			shared->event_count = (uint32_t)i + 1;
	}
}

int simulated_plan_add_rings(struct simulated *simulated)
{
	struct simulated_plan *plan = &simulated->plan;
	uint64_t bytes = (uint64_t)VSIM_RINGS * (1 + RING_PAGES) * VSIM_PAGE;
	if (plan->rings)
		return 0;
	if (!plan->shared)
		return -EINVAL;
	if (ftruncate(plan->fd, (off_t)(plan_bytes() + bytes)) < 0)
		return -errno;
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, plan->fd,
			 (off_t)plan_bytes());
	if (map == MAP_FAILED)
		return -errno;
	plan->rings = map;
	plan->shared->ring_pages = RING_PAGES;
	plan->shared->size = plan_bytes() + bytes;
	return 0;
}

void simulated_plan_close(struct simulated *simulated)
{
	struct vsim_plan *shared = simulated->plan.shared;
	if (!shared)
		return;
	__atomic_store_n(&shared->closed, 1, __ATOMIC_SEQ_CST);
	for (int i = 0; i < VSIM_RINGS; i++)
		if (__atomic_exchange_n(&shared->rings[i].room_wanted, 0, __ATOMIC_SEQ_CST))
			syscall(SYS_futex, &shared->rings[i].room_wanted, FUTEX_WAKE, INT_MAX, NULL,
				NULL, 0);
}

void simulated_plan_discard(struct simulated *simulated)
{
	struct simulated_plan *plan = &simulated->plan;
	simulated_plan_close(simulated);
	if (plan->rings)
		munmap(plan->rings, (size_t)VSIM_RINGS * (1 + RING_PAGES) * VSIM_PAGE);
	if (plan->shared)
		munmap(plan->shared, plan_bytes());
	if (plan->fd >= 0) {
		unlinkat(plan->path.folder, plan->path.name, 0);
		close(plan->fd);
	}
	tally_output_path_close(&plan->path);
	*plan = (struct simulated_plan){ .fd = -1, .path = TALLY_OUTPUT_PATH_INIT };
}
