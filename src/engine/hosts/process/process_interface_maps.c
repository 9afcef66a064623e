/* MMAP records of libraries that ld.so maps, for the program's own events.
 *
 * Mappings that the program makes by mmap(2) are told at once (interface_mapped()).  Those of ld.so
 * are found as process_maps.c finds them: before a sample, and when the thread makes a call on an
 * event, if ld.so's list of objects has changed, or if the sample's address is in no known mapping. */
#include "process/process_interface.h"

#include <link.h>
#include <string.h>
#include <sys/uio.h>

/* An unknown address is no reason to read again so soon: it may stay unknown. */
enum { PAUSE_NS = 20000000, OBJECTS_MOST = 4096 };

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
	maps->at[maps->count++] = (struct interface_place){
		mapping->address, mapping->address + mapping->length, mapping->file_offset,
		mapping->inode
	};
}
