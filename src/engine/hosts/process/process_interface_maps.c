/* MMAP records of libraries that ld.so maps, for the program's own events.
 *
 * Mappings that the program makes by mmap(2) are told at once (interface_mapped()).  Those of ld.so
 * are found as process_maps.c finds them: before a sample, and when the thread makes a call on an
 * event, if ld.so's list of objects has changed, or if the sample's address is in no known mapping. */
#include "process/process_interface.h"

#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>

/* An unknown address is no reason to read again so soon: it may stay unknown. */
enum { PAUSE_NS = 20000000, OBJECTS_MOST = 4096, PAGE = 4096 };

/* Copies memory that may be unmapped meanwhile.  Returns false if it is. */
static bool copy(uint64_t from, void *to, size_t size)
{
	const struct iovec local = { to, size }, remote = { (void *)(uintptr_t)from, size };
	return process_call(SYS_process_vm_readv, process_agent.pid, &local, 1, &remote, 1, 0) ==
	       (long)size;
}

static bool list_has_changed(const struct interface_maps *maps)
{
	struct interface_object now;
	if (!maps->last_object)
		return false;
	return !copy(maps->last_object, &now, sizeof(now)) ||
	       memcmp(&now, &maps->last, sizeof(now));
}

static void find_last_object(struct interface_maps *maps)
{
	uint64_t address = (uint64_t)(uintptr_t)_r_debug.r_map;
	struct interface_object object;
	maps->last_object = 0;
	for (unsigned i = 0; i < OBJECTS_MOST && address; i++) {
		if (!copy(address, &object, sizeof(object)))
			return;
		maps->last_object = address;
		maps->last = object;
		address = object.next;
	}
}

static bool is_told(const struct interface_maps *maps, const struct interface_place *place)
{
	for (unsigned i = 0; i < maps->count; i++)
		if (!memcmp(&maps->at[i], place, sizeof(*place)))
			return true;
	return false;
}

static bool is_known(const struct interface_maps *maps, uint64_t address)
{
	for (unsigned i = 0; i < maps->count; i++)
		if (address >= maps->at[i].start && address < maps->at[i].end)
			return true;
	return false;
}

struct reading {
	struct process_interface *interface;
	bool tells;
	unsigned count;
};

static void take(void *data, const struct tally_engine_mapping *mapping)
{
	struct reading *reading = data;
	struct interface_maps *maps = &reading->interface->maps;
	const struct interface_place place = { mapping->address, mapping->address + mapping->length,
					       mapping->file_offset, mapping->inode };
	/* the kernel's own, as [vsyscall], is no mapping of the process */
	if (mapping->address >> 63 || reading->count == INTERFACE_PLACES)
		return;
	maps->next[reading->count++] = place;
	if (reading->tells && !is_told(maps, &place))
		tally_engine_mmap_record(reading->interface->task, mapping);
}

/* Data is told only when an event asks for it: there may be many mappings of it. */
static bool wants_data(const struct process_interface *interface)
{
	for (unsigned i = 0; i < INTERFACE_OPEN; i++)
		if (interface->events[i] &&
		    interface_pool->events[interface->events[i] - 1].flags & TALLY_ATTR_MMAP_DATA)
			return true;
	return false;
}

void interface_maps_read(struct process_interface *interface, bool tells)
{
	struct interface_maps *maps = &interface->maps;
	struct reading reading = { .interface = interface, .tells = tells };
	maps->read_ns = process_clock_ns(interface->thread);
	/* before reading, so that the next look finds objects that come meanwhile */
	find_last_object(maps);
	process_maps_list(take, &reading, wants_data(interface));
	if (!reading.count)
		return;
	memcpy(maps->at, maps->next, reading.count * sizeof(maps->at[0]));
	maps->count = reading.count;
}

void interface_maps_look(struct process_interface *interface, uint64_t address)
{
	const struct interface_maps *maps = &interface->maps;
	bool is_late = process_clock_ns(interface->thread) - maps->read_ns >= PAUSE_NS;
	if (list_has_changed(maps) || (address && is_late && !is_known(maps, address)))
		interface_maps_read(interface, true);
}

void interface_maps_add(struct process_interface *interface,
			const struct tally_engine_mapping *mapping)
{
	struct interface_maps *maps = &interface->maps;
	if (maps->count == INTERFACE_PLACES)
		return;
	maps->at[maps->count++] = (struct interface_place){ mapping->address,
							    mapping->address + mapping->length,
							    mapping->file_offset, mapping->inode };
}

/* --- records of mappings --------------------------------------------------- */

static size_t path_of(int fd, char *path, size_t size)
{
	char link[32] = "/proc/self/fd/", digits[12];
	unsigned count = 0, at = sizeof("/proc/self/fd/") - 1;
	for (int left = fd; left || !count; left /= 10)
		digits[count++] = (char)('0' + left % 10);
	while (count)
		link[at++] = digits[--count];
	link[at] = '\0';
	long length = process_call(SYS_readlinkat, AT_FDCWD, link, path, size - 1);
	path[length > 0 ? length : 0] = '\0';
	return length > 0 ? (size_t)length : 0;
}

/* What the kernel backs by memory files: anonymous memory that is shared, also /dev/zero's. */
static bool is_shared_memory(int flags, const struct stat *about)
{
	enum { MEMORY_DEVICES = 1, ZERO = 5 };
	if ((flags & MAP_TYPE) == MAP_PRIVATE)
		return false;
	return flags & MAP_ANONYMOUS ||
	       (S_ISCHR(about->st_mode) && about->st_rdev == makedev(MEMORY_DEVICES, ZERO));
}

/* Names the mapping's file, as the kernel does. */
static void name_mapping(struct tally_engine_mapping *mapping, int fd, char *path, size_t size)
{
	struct stat about = { 0 };
	int flags = (int)mapping->flags;
	mapping->path = "//anon";
	if (!(flags & MAP_ANONYMOUS) && process_call(SYS_fstat, fd, &about))
		return;
	if (is_shared_memory(flags, &about)) {
		mapping->path = "/dev/zero (deleted)";
		return;
	}
	if (flags & MAP_ANONYMOUS || !path_of(fd, path, size))
		return;
	mapping->path = path;
	mapping->major = major(about.st_dev);
	mapping->minor = minor(about.st_dev);
	mapping->inode = about.st_ino;
}

void interface_mapped(void *address, size_t size, int protection, int flags, int fd,
		      uint64_t offset)
{
	struct interface_turn turn;
	struct process_thread *thread = process_self();
	struct process_interface *interface = thread ? thread->interface : NULL;
	if (!interface || !interface->mapping_events)
		return;
	char *path = interface->path;
	struct tally_engine_mapping mapping = {
		.address = (uintptr_t)address,
		.length = (size + PAGE - 1) & ~(size_t)(PAGE - 1),
		.file_offset = offset,
		.protection = (uint32_t)protection,
		.flags = (uint32_t)flags,
		.path = "anon_inode:[perf_event]",
	};
	interface_begin(&turn);
	if (flags & MAP_ANONYMOUS || !interface_event_of(fd))
		name_mapping(&mapping, fd, path, sizeof(interface->path));
	tally_engine_mmap_record(interface->task, &mapping);
	if (protection & PROT_EXEC)
		interface_maps_add(interface, &mapping);
	interface_end(&turn);
}
