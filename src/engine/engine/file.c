/* Descriptors and files: the part that the VFS does in the kernel (H6). dup, fork and the mappings
 * of its event share a file.  The event closes when the last reference goes. */
#include "engine/engine_state.h"

/* asm-generic/fcntl.h */
enum {
	F_DUPFD_ = 0,
	F_GETFD_ = 1,
	F_SETFD_ = 2,
	F_GETFL_ = 3,
	F_SETFL_ = 4,
	F_SETOWN_ = 8,
	F_GETOWN_ = 9,
	F_SETSIG_ = 10,
	F_GETSIG_ = 11,
	F_SETOWN_EX_ = 15,
	F_GETOWN_EX_ = 16,
	F_DUPFD_CLOEXEC_ = 1030
};
enum { OWNER_TID, OWNER_PID, OWNER_PGRP, OWNER_TYPES };
enum { SIGNAL_MAX = 64 };
#define FD_CLOEXEC_FLAG 1u
#define O_APPEND_FLAG 02000u
#define O_NONBLOCK_FLAG 04000u
#define O_DIRECT_FLAG 040000u
#define O_NOATIME_FLAG 01000000u
#define SETFL_FLAGS (O_APPEND_FLAG | O_NONBLOCK_FLAG | ENGINE_FILE_ASYNC | O_NOATIME_FLAG)
enum { POLL_IN_BIT = 1, POLL_HUP_BIT = 16 };

/* Lower descriptors are a program's standard streams, never events. */
enum { FIRST_DESCRIPTOR = 3, TABLE_MIN = 16 };

/* --- tables --------------------------------------------------------------- */

static int grow(struct tally_engine_process *process, unsigned wanted)
{
	struct tally_engine *engine = process->engine;
	unsigned capacity = process->file_capacity ? process->file_capacity : TABLE_MIN;
	while (capacity < wanted)
		capacity *= 2;
	struct tally_engine_file **files = engine_allocate(engine, capacity * sizeof(*files));
	bool *close_on_exec = NULL;
	if (files)
		close_on_exec = engine_allocate(engine, capacity * sizeof(*close_on_exec));
	if (!close_on_exec) {
		engine_release(engine, files, capacity * sizeof(*files));
		return -ENGINE_ENOMEM;
	}
	for (unsigned i = 0; i < process->file_capacity; i++) {
		files[i] = process->files[i];
		close_on_exec[i] = process->close_on_exec[i];
	}
	engine_release(engine, process->files, process->file_capacity * sizeof(*files));
	engine_release(engine, process->close_on_exec,
		       process->file_capacity * sizeof(*close_on_exec));
	process->files = files;
	process->close_on_exec = close_on_exec;
	process->file_capacity = capacity;
	return 0;
}

/* Returns the lowest free descriptor from `from` on, with room in the table for it; or -EMFILE,
 * -ENOMEM. */
static int free_descriptor(struct tally_engine_process *process, unsigned from)
{
	unsigned least = process->used_below;
	if (least < FIRST_DESCRIPTOR)
		least = FIRST_DESCRIPTOR;
	unsigned fd = from > least ? from : least;
	while (fd < process->file_capacity && process->files[fd])
		fd++;
	if (from <= least)
		process->used_below = fd;
	if (fd >= process->descriptor_limit)
		return -ENGINE_EMFILE;
	if (fd < process->file_capacity)
		return (int)fd;
	int error = grow(process, fd + 1);
	if (error)
		return error;
	return (int)fd;
}

int engine_files_room(struct tally_engine_process *process)
{
	int fd = free_descriptor(process, 0);
	if (fd < 0)
		return fd;
	return 0;
}

static int install_from(struct tally_engine_process *process, struct tally_engine_file *file,
			unsigned from, bool close_on_exec)
{
	int fd = free_descriptor(process, from);
	if (fd < 0)
		return fd;
	process->files[fd] = file;
	process->close_on_exec[fd] = close_on_exec;
	return fd;
}

int engine_file_install(struct tally_engine_process *process, struct tally_engine_file *file,
			bool close_on_exec)
{
	return install_from(process, file, 0, close_on_exec);
}

static struct tally_engine_file *file_of(const struct tally_engine_process *process, int fd)
{
	if (fd >= 0 && (unsigned)fd < process->file_capacity)
		return process->files[fd];
	return NULL;
}

struct tally_engine_file *engine_file(struct tally_engine *engine, int fd)
{
	struct tally_engine_task *task = engine_current(engine);
	if (task)
		return file_of(task->process, fd);
	return NULL;
}

void engine_file_put(struct tally_engine_file *file)
{
	if (--file->references)
		return;
	file->event->closed_file = file;
	engine_event_close(file->event);
}

static void close_descriptor(struct tally_engine_process *process, unsigned fd)
{
	struct tally_engine_file *file = process->files[fd];
	process->files[fd] = NULL;
	if (fd < process->used_below)
		process->used_below = fd;
	engine_file_put(file);
}

void engine_files_release(struct tally_engine_process *process)
{
	for (unsigned fd = 0; fd < process->file_capacity; fd++)
		if (process->files[fd])
			close_descriptor(process, fd);
	engine_release(process->engine, process->files,
		       process->file_capacity * sizeof(*process->files));
	engine_release(process->engine, process->close_on_exec,
		       process->file_capacity * sizeof(*process->close_on_exec));
	process->files = NULL;
	process->close_on_exec = NULL;
	process->file_capacity = process->used_below = 0;
}

int engine_files_fork(const struct tally_engine_process *parent, struct tally_engine_process *child)
{
	int error = 0;
	if (parent->file_capacity)
		error = grow(child, parent->file_capacity);
	for (unsigned fd = 0; !error && fd < parent->file_capacity; fd++) {
		child->files[fd] = parent->files[fd];
		child->close_on_exec[fd] = parent->close_on_exec[fd];
		if (child->files[fd])
			child->files[fd]->references++;
	}
	return error;
}

void engine_files_exec(struct tally_engine_process *process)
{
	for (unsigned fd = 0; fd < process->file_capacity; fd++)
		if (process->files[fd] && process->close_on_exec[fd])
			close_descriptor(process, fd);
}

/* --- fcntl ---------------------------------------------------------------- */

static int duplicate(struct tally_engine_process *process, struct tally_engine_file *file,
		     uintptr_t from, bool close_on_exec)
{
	if (from >= process->descriptor_limit)
		return -ENGINE_EINVAL;
	int fd = install_from(process, file, (unsigned)from, close_on_exec);
	if (fd >= 0)
		file->references++;
	return fd;
}

static int set_flags(struct tally_engine_file *file, int fd, unsigned flags)
{
	if (flags & O_DIRECT_FLAG)
		return -ENGINE_EINVAL;
	if (flags & ENGINE_FILE_ASYNC)
		file->signal_fd = fd;
	file->flags = (file->flags & ~SETFL_FLAGS) | (flags & SETFL_FLAGS);
	return 0;
}

static int set_owner(struct tally_engine *engine, struct tally_engine_file *file, int type,
		     int32_t owner)
{
	if (owner && type != OWNER_PGRP && !engine_find_task(engine, owner))
		return -ENGINE_ESRCH;
	file->owner = type == OWNER_PGRP ? -owner : owner;
	file->owner_type = type;
	return 0;
}

static int set_owner_or_group(struct tally_engine *engine, struct tally_engine_file *file,
			      int32_t owner)
{
	if (owner == INT32_MIN)
		return -ENGINE_EINVAL;
	if (owner < 0)
		return set_owner(engine, file, OWNER_PGRP, -owner);
	return set_owner(engine, file, OWNER_PID, owner);
}

struct owner_ex { int32_t type, owner; }; /* struct f_owner_ex */

static int set_owner_ex(struct tally_engine *engine, struct tally_engine_file *file,
			uintptr_t argument)
{
	struct owner_ex ex;
	int error = engine_copy_in(engine, &ex, (const void *)argument, sizeof(ex));
	if (error)
		return error;
	if (ex.type < 0 || ex.type >= OWNER_TYPES)
		return -ENGINE_EINVAL;
	return set_owner(engine, file, ex.type, ex.owner);
}

static int get_owner_ex(struct tally_engine *engine, const struct tally_engine_file *file,
			uintptr_t argument)
{
	struct owner_ex ex = { .type = file->owner_type,
			       .owner = file->owner < 0 ? -file->owner : file->owner };
	return engine_copy_out(engine, (void *)argument, &ex, sizeof(ex));
}

static int set_signal(struct tally_engine_file *file, uintptr_t number)
{
	if (number > SIGNAL_MAX)
		return -ENGINE_EINVAL;
	file->signal_number = (int)number;
	return 0;
}

static int control_file(struct tally_engine *engine, int fd, int command, uintptr_t argument)
{
	struct tally_engine_file *file = engine_file(engine, fd);
	if (!file)
		return -ENGINE_EBADF;
	struct tally_engine_process *process = engine_current(engine)->process;
	switch (command) {
	case F_DUPFD_:
	case F_DUPFD_CLOEXEC_:
		return duplicate(process, file, argument, command == F_DUPFD_CLOEXEC_);
	case F_GETFD_:
		if (process->close_on_exec[fd])
			return (int)FD_CLOEXEC_FLAG;
		return 0;
	case F_SETFD_:
		process->close_on_exec[fd] = argument & FD_CLOEXEC_FLAG;
		return 0;
	case F_GETFL_:
		return (int)file->flags;
	case F_SETFL_:
		return set_flags(file, fd, (unsigned)argument);
	case F_SETOWN_:
		return set_owner_or_group(engine, file, (int32_t)argument);
	case F_GETOWN_:
		return file->owner;
	case F_SETSIG_:
		return set_signal(file, argument);
	case F_GETSIG_:
		return file->signal_number;
	case F_SETOWN_EX_:
		return set_owner_ex(engine, file, argument);
	case F_GETOWN_EX_:
		return get_owner_ex(engine, file, argument);
	default:
		return -ENGINE_EINVAL;
	}
}

int tally_engine_fcntl(struct tally_engine *engine, int fd, int command, uintptr_t argument)
{
	engine_enter(engine);
	int result = control_file(engine, fd, command, argument);
	engine_leave(engine);
	return result;
}

/* --- the other calls ------------------------------------------------------ */

/* True if the event's task and all that inherited it have exited, or the event is pinned and found
 * no room. */
static bool hangs_up(const struct engine_event *event)
{
	bool over = engine_event_state(event) <= ENGINE_EVENT_EXIT &&
		    engine_list_empty(&event->children);
	bool starved = engine_event_state(event) == ENGINE_EVENT_ERROR &&
		       engine_event_flag(event, TALLY_ATTR_PINNED);
	return over || starved;
}

int tally_engine_poll(struct tally_engine *engine, int fd, struct tally_engine_file **out)
{
	engine_enter(engine);
	struct tally_engine_file *file = engine_file(engine, fd);
	int result = -ENGINE_EBADF;
	if (file) {
		bool hup = hangs_up(file->event) || !file->event->ring;
		result = 0;
		if (hup)
			result = POLL_HUP_BIT;
		else if (engine_ring_has_data(file->event))
			result = POLL_IN_BIT;
		if (out)
			*out = file;
	}
	engine_leave(engine);
	return result;
}

long tally_engine_read(struct tally_engine *engine, int fd, void *bytes, size_t size)
{
	engine_enter(engine);
	struct tally_engine_file *file = engine_file(engine, fd);
	long result = -ENGINE_EBADF;
	if (file)
		result = engine_event_read(file->event, bytes, size);
	engine_leave(engine);
	return result;
}

long tally_engine_ioctl(struct tally_engine *engine, int fd, unsigned long request,
			uintptr_t argument)
{
	engine_enter(engine);
	struct tally_engine_file *file = engine_file(engine, fd);
	long result = -ENGINE_EBADF;
	if (file)
		result = engine_event_ioctl(file->event, request, argument);
	engine_leave(engine);
	return result;
}

int tally_engine_mmap(struct tally_engine *engine, int fd, size_t size, bool writable, bool shared,
		      uint64_t offset, void **address)
{
	engine_enter(engine);
	struct tally_engine_file *file = engine_file(engine, fd);
	int result = -ENGINE_EBADF;
	if (file)
		result = engine_event_map(file->event, size, writable, shared, offset, address);
	engine_leave(engine);
	return result;
}

int tally_engine_munmap(struct tally_engine *engine, void *address, size_t size)
{
	engine_enter(engine);
	int result = engine_event_unmap(engine, address, size);
	engine_leave(engine);
	return result;
}

int tally_engine_close(struct tally_engine *engine, int fd)
{
	engine_enter(engine);
	struct tally_engine_file *file = engine_file(engine, fd);
	if (file)
		close_descriptor(engine_current(engine)->process, (unsigned)fd);
	engine_leave(engine);
	if (!file)
		return -ENGINE_EBADF;
	return 0;
}

/* B10: concerns the events that the caller opened, on any task, members of groups included. */
int tally_engine_prctl(struct tally_engine *engine, int option)
{
	if (option != TALLY_PR_TASK_PERF_EVENTS_ENABLE &&
	    option != TALLY_PR_TASK_PERF_EVENTS_DISABLE)
		return -ENGINE_EINVAL;
	engine_enter(engine);
	struct tally_engine_task *caller = engine_current(engine);
	if (!caller)
		goto out;
	ENGINE_LIST_EACH(event, &caller->owned, struct engine_event, owner_link) {
		if (option == TALLY_PR_TASK_PERF_EVENTS_ENABLE)
			engine_event_enable(event);
		else
			engine_event_disable(event);
	}
out:
	engine_leave(engine);
	return 0;
}
