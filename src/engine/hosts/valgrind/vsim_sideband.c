/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Reports mappings as records.  The core keeps the file of each segment, from the time it was
 * mapped.  A callback gets an address range, which may cover several segments. */
#include "valgrind/vsim_host.h"

#include "pub_tool_aspacemgr.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_tooliface.h"

enum { PRIVATE = 2, READ = 1, WRITE = 2, EXECUTE = 4 };

static bool anyone_wants(const struct vsim *sim, bool executable)
{
	uint64_t wanted = TALLY_ATTR_MMAP_DATA;
	if (executable)
		wanted |= TALLY_ATTR_MMAP | TALLY_ATTR_MMAP2;
	for (unsigned i = 0; i < sim->plan->shared.event_count; i++)
		if (sim->plan->shared.events[i].attr.flags & wanted)
			return true;
	return false;
}

static const char *name_of(const NSegment *segment)
{
	if (segment->kind == SkFileC) {
		const char *path = VG_(am_get_filename)(segment);
		if (path)
			return path;
	}
	if (segment->isCH)
		return "[heap]";
	return "//anon";
}

/* Sets the device from st_dev, as the kernel packs it for 64-bit user code. */
static void set_device(struct tally_engine_mapping *mapping, uint64_t device)
{
	mapping->major = (uint32_t)((device >> 8 & 0xfff) | (device >> 32 & ~0xfffull));
	mapping->minor = (uint32_t)((device & 0xff) | (device >> 12 & ~0xffull));
}

/* Stores the entry point of a program or of the dynamic linker: call chains end there. */
static void note_entry(struct vsim_host *host, const NSegment *segment)
{
	const uint8_t *image = (const uint8_t *)segment->start;
	if (segment->kind != SkFileC || segment->offset || !segment->hasR ||
	    host->entry_count == sizeof(host->entries) / sizeof(host->entries[0]))
		return;
	if (VG_(memcmp)(image, "\177ELF\2", 5))
		return;
	uint64_t entry;
	VG_(memcpy)(&entry, &image[24], sizeof(entry));
	bool fixed = image[16] == 2; /* ET_EXEC */
	if (!fixed)
		entry += segment->start;
	host->entries[host->entry_count++] = entry;
}

static void record(struct vsim *sim, const NSegment *segment, Addr from, Addr to)
{
	struct tally_engine_mapping mapping = {
		.address = from,
		.length = to - from,
		.flags = PRIVATE,
		.path = name_of(segment),
	};
	if (segment->hasR)
		mapping.protection |= READ;
	if (segment->hasW)
		mapping.protection |= WRITE;
	if (segment->hasX)
		mapping.protection |= EXECUTE;
	if (segment->kind == SkFileC) {
		mapping.inode = segment->ino;
		mapping.file_offset = (uint64_t)segment->offset + (from - segment->start);
		set_device(&mapping, segment->dev);
	}
	vsim_host_make_room(sim);
	tally_engine_mmap_record(sim->host->current, &mapping);
}

static void mapped(Addr start, SizeT length, Bool executable, Bool beginning)
{
	struct vsim *sim = vsim();
	/* A range that doesn't begin at a page is the core reporting its own trampolines; it has
	 * reported their page before. */
	if (!sim->engine || !sim->host->current || start % TALLY_PLAN_PAGE)
		return;
	bool wanted = anyone_wants(sim, executable);
	Addr end = (start + length + TALLY_PLAN_PAGE - 1) & ~(Addr)(TALLY_PLAN_PAGE - 1);
	while ((wanted || beginning) && start < end) {
		const NSegment *segment = VG_(am_find_nsegment)(start);
		if (!segment)
			return;
		Addr stop = segment->end + 1 < end ? segment->end + 1 : end;
		bool client = segment->kind == SkFileC || segment->kind == SkAnonC ||
			      segment->kind == SkShmC;
		if (beginning && client)
			note_entry(sim->host, segment);
		if (wanted && client)
			record(sim, segment, start, stop);
		start = stop;
	}
}

static void at_start(Addr start, SizeT length, Bool r, Bool w, Bool x, ULong handle)
{
	(void)r, (void)w, (void)handle;
	mapped(start, length, x, True);
}

static void by_mmap(Addr start, SizeT length, Bool r, Bool w, Bool x, ULong handle)
{
	(void)r, (void)w, (void)handle;
	mapped(start, length, x, False);
}

static void by_mprotect(Addr start, SizeT length, Bool r, Bool w, Bool x)
{
	(void)r, (void)w;
	mapped(start, length, x, False);
}

void vsim_sideband_register(void)
{
	VG_(track_new_mem_startup)(at_start);
	VG_(track_new_mem_mmap)(by_mmap);
	VG_(track_change_mem_mprotect)(by_mprotect);
}
