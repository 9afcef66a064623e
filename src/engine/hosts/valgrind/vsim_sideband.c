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
	const uint64_t code = TALLY_ATTR_MMAP | TALLY_ATTR_MMAP2;
	for (unsigned i = 0; i < sim->plan->event_count; i++) {
		uint64_t flags = sim->plan->events[i].attr.flags;
		if (flags & (executable ? code | TALLY_ATTR_MMAP_DATA : TALLY_ATTR_MMAP_DATA))
			return true;
	}
	return false;
}

static const char *name_of(const NSegment *segment)
{
	const char *path = segment->kind == SkFileC ? VG_(am_get_filename)(segment) : NULL;
	if (path)
		return path;
	return segment->isCH ? "[heap]" : "//anon";
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
	host->entries[host->entry_count++] = entry + (fixed ? 0 : segment->start);
}

static void record(struct vsim *sim, const NSegment *segment, Addr from, Addr to)
{
	bool is_file = segment->kind == SkFileC;
	struct tally_engine_mapping mapping = {
		.address = from,
		.length = to - from,
		.inode = is_file ? segment->ino : 0,
		.file_offset = is_file ? (uint64_t)segment->offset + (from - segment->start) : 0,
		.protection = (segment->hasR ? READ : 0) | (segment->hasW ? WRITE : 0) |
			      (segment->hasX ? EXECUTE : 0),
		.flags = PRIVATE,
		.path = name_of(segment),
	};
	if (is_file)
		set_device(&mapping, segment->dev);
	vsim_host_make_room(sim);
	tally_engine_mmap_record(sim->host->current, &mapping);
}

static void mapped(Addr start, SizeT length, Bool executable, Bool beginning)
{
	struct vsim *sim = vsim();
	/* A range that doesn't begin at a page is the core reporting its own trampolines; it has
	 * reported their page before. */
	if (!sim->engine || !sim->host->current || start % VSIM_PAGE)
		return;
	bool wanted = anyone_wants(sim, executable);
	Addr end = (start + length + VSIM_PAGE - 1) & ~(Addr)(VSIM_PAGE - 1);
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
