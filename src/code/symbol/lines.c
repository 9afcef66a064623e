/* Source lines and inlined functions: the interface.
 *
 * The debug information of a large program is a thousand times what a profile needs, so it is read
 * on demand only.  First come the addresses of each unit's code: all units' roots are read.
 * (.debug_aranges is not enough, since some compilers leave it out; it serves units whose roots
 * give no addresses.)  A unit that contains an address of a query is then compiled (lines_unit.c),
 * once and whole, since other addresses in it soon follow.  Units don't depend on each other, so
 * several threads compile many units, each with its own scratch; the result doesn't depend on the
 * threads.
 */
#include "symbol/lines.h"

#include "base/threads.h"
#include "object/cache.h"
#include "object/object.h"
#include "symbol/lines_internal.h"
#include "symbol/symbol.h"

#include <dwarf.h>
#include <errno.h>
#include <gelf.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum tally_lines_unit_state { TALLY_LINES_UNREAD, TALLY_LINES_WANTED, TALLY_LINES_COMPILED };

struct tally_lines_slot {
	uint8_t state; /* enum tally_lines_unit_state */
	struct tally_lines_unit compiled;
};

struct tally_lines {
	struct tally_object *object, *debug;
	/* whichever of the two has debug information; NULL: neither */
	struct tally_object *source;
	struct tally_arena frames;
	/* The index, once the first query came; from the file or from the cache. */
	bool is_indexed;
	TALLY_VECTOR(struct tally_nested_item) index; /* address → unit */
	struct tally_lines_slot *units;
	size_t unit_count;
	/* The file, once a unit must be compiled. */
	bool is_open;
	struct tally_dwarf_file file; /* has `unit_count` units */
	/* What compiling may still cost (lines_internal.h).  Each of several threads may use all of
	 * it; the least that is left counts. */
	_Atomic uint64_t budget;
	struct tally_lines_program program;
	struct tally_disk_cache *cache; /* NULL: none */
	struct tally_cache_blob cached;
	struct tally_lines_blob blob; /* in `cached` */
	bool has_news;                /* some units are not in the cache */
	/* Go's own table, for addresses without DWARF; version 0: none. */
	struct tally_go_table go;
	uint8_t *go_copy;
	bool go_tried;
	/* Names may overlap in a crafted string table: names that answers have, by address → 1 or
	 * 0: refused; bytes that further ones may have. */
	struct tally_map named;
	uint64_t name_bytes_left;
	const char *missing; /* a companion file that some unit lacked, or NULL */
	bool is_refused; /* some of the file was not read, because it exceeds its budget */
	bool has_no_memory; /* for `named` */
};

struct tally_lines_wanted {
	uint32_t *items;
	size_t count, capacity;
}; /* a vector of units */

/* Opens a file and finds the addresses of each unit's code, before any unit is compiled. */

static int compare_ranges(const void *a, const void *b)
{
	const struct tally_dwarf_range *left = a, *right = b;
	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	if (left->end < right->end)
		return -1;
	return left->end > right->end;
}

/* Reads the addresses of the executable sections.  A separate debug file also has these sections'
 * headers. */
static int read_code(struct tally_lines *lines)
{
	Elf *elf = tally_object_elf(lines->object);
	Elf_Scn *scn = NULL;
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr header;
		uint64_t end;
		if (!gelf_getshdr(scn, &header) || !(header.sh_flags & SHF_EXECINSTR) ||
		    !(header.sh_flags & SHF_ALLOC) || header.sh_size == 0 ||
		    __builtin_add_overflow(header.sh_addr, header.sh_size, &end))
			continue;
		struct tally_dwarf_range range = { header.sh_addr, end };
		if (tally_vector_push(&lines->program.code.ranges, range) < 0)
			return -ENOMEM;
	}
	struct tally_dwarf_range *ranges = lines->program.code.ranges.items;
	size_t count = lines->program.code.ranges.count, kept = 0;
	if (count == 0)
		return 0;
	qsort(ranges, count, sizeof(*ranges), compare_ranges);
	for (size_t i = 1; i < count; i++) {
		if (ranges[i].start > ranges[kept].end)
			ranges[++kept] = ranges[i];
		else if (ranges[i].end > ranges[kept].end)
			ranges[kept].end = ranges[i].end;
	}
	lines->program.code.ranges.count = kept + 1;
	return 0;
}

static int add_range(const struct tally_lines *lines, struct tally_nested *nested, uint64_t start,
		     uint64_t end, uint32_t unit)
{
	if (start >= end || !tally_lines_is_code(&lines->program.code, start))
		return 0;
	return tally_vector_push(&nested->ranges, (struct tally_nested_range){ start, end, unit });
}

/* Adds the ranges in the units' roots. has_ranges[i]: unit i's root has some. */
static int add_root_ranges(struct tally_lines *lines, struct tally_dwarf_scratch *scratch,
			   struct tally_nested *nested, bool *has_ranges)
{
	for (uint32_t i = 0; i < lines->file.units.count; i++) {
		const struct tally_dwarf_unit *unit = &lines->file.units.items[i];
		if (unit->tag != DW_TAG_compile_unit && unit->tag != DW_TAG_skeleton_unit)
			continue;
		scratch->ranges.count = 0;
		if (tally_dwarf_unit_ranges(scratch, unit) < 0)
			return -ENOMEM;
		for (size_t k = 0; k < scratch->ranges.count; k++)
			if (add_range(lines, nested, scratch->ranges.items[k].start,
				      scratch->ranges.items[k].end, i) < 0)
				return -ENOMEM;
		has_ranges[i] = scratch->ranges.count > 0;
	}
	return 0;
}

/* Adds one set of .debug_aranges; `reader` begins at the set and stands behind its length. */
static int add_aranges_set(struct tally_lines *lines, struct tally_nested *nested,
			   const bool *has_ranges, struct tally_reader *reader,
			   const uint8_t *begin, uint8_t offset_size)
{
	uint16_t version = tally_reader_u16(reader);
	uint64_t offset = tally_reader_fixed(reader, offset_size);
	unsigned address_size = tally_reader_u8(reader), segment_size = tally_reader_u8(reader);
	const struct tally_dwarf_unit *unit = tally_dwarf_unit_at(&lines->file, offset);
	if (reader->failed || version != 2 || segment_size ||
	    (address_size != 4 && address_size != 8) || !unit || unit->offset != offset)
		return 0;
	uint32_t index = (uint32_t)(unit - lines->file.units.items);
	if (has_ranges[index])
		return 0;
	size_t header = (size_t)(reader->at - begin);
	tally_reader_skip(reader,
			  (2 * address_size - header % (2 * address_size)) % (2 * address_size));
	while (reader->at < reader->end) {
		uint64_t start = tally_reader_fixed(reader, address_size);
		uint64_t size = tally_reader_fixed(reader, address_size);
		if (!reader->failed && add_range(lines, nested, start, start + size, index) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int add_aranges(struct tally_lines *lines, struct tally_nested *nested,
		       const bool *has_ranges)
{
	struct tally_reader reader = tally_dwarf_reader_at(&lines->file, TALLY_DWARF_ARANGES, 0);
	while (!reader.failed && reader.at < reader.end) {
		struct tally_reader set = reader;
		uint8_t offset_size;
		if (!tally_dwarf_enter_length(&set, &offset_size))
			return 0;
		const uint8_t *begin = reader.at;
		reader.at = set.end;
		if (add_aranges_set(lines, nested, has_ranges, &set, begin, offset_size) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int read_index(struct tally_lines *lines, struct tally_dwarf_scratch *scratch)
{
	struct tally_nested nested = { 0 };
	bool *has_ranges = calloc(lines->file.units.count + 1, sizeof(*has_ranges));
	int rc = -ENOMEM;
	lines->index.count = 0;
	if (!has_ranges || add_root_ranges(lines, scratch, &nested, has_ranges) < 0 ||
	    add_aranges(lines, &nested, has_ranges) < 0 || tally_nested_flatten(&nested) < 0)
		goto out;
	for (size_t i = 0; i < nested.items.count; i++)
		if (tally_vector_push(&lines->index, nested.items.items[i]) < 0)
			goto out;
	rc = 0;
out:
	tally_nested_release(&nested);
	free(has_ranges);
	return rc;
}

static int read_file(struct tally_lines *lines, struct tally_dwarf_scratch *scratch)
{
	tally_dwarf_file_init(&lines->file, lines->source, false);
	tally_dwarf_allow(scratch, &lines->file);
	/* The common file first: the roots have strings there. */
	if (read_code(lines) < 0 ||
	    tally_dwarf_open_supplement(&lines->file, scratch, &lines->program.missing) < 0 ||
	    tally_dwarf_read_units(&lines->file, scratch, NULL) < 0 ||
	    read_index(lines, scratch) < 0)
		return -ENOMEM;
	lines->is_refused |= scratch->is_exhausted;
	lines->program.path = tally_object_path(lines->object);
	struct tally_object_identity identity;
	lines->program.is_changeable =
		lines->file.supplement &&
		!tally_object_identity(lines->file.supplement->object, &identity);
	for (size_t i = 0; i < lines->file.units.count; i++)
		if (lines->file.units.items[i].dwo_name) {
			tally_dwarf_package_open(&lines->program.package, lines->program.path);
			tally_dwarf_allow(scratch, &lines->program.package.file);
			break;
		}
	lines->budget = scratch->budget;
	return 0;
}

static void lines_close(struct tally_lines *lines)
{
	tally_dwarf_package_release(&lines->program.package);
	tally_dwarf_file_release(&lines->file);
	tally_vector_release(&lines->program.code.ranges);
	lines->is_open = false;
}

/* Opens the file and fills the members above: its units and the index.  Returns 0 or -ENOMEM. */
static int lines_open(struct tally_lines *lines)
{
	struct tally_dwarf_scratch *scratch = calloc(1, sizeof(*scratch));
	int rc = -ENOMEM;
	if (scratch) {
		rc = read_file(lines, scratch);
		tally_dwarf_scratch_release(scratch);
	}
	free(scratch);
	if (rc < 0)
		lines_close(lines);
	else
		lines->is_open = true;
	return rc;
}

/* Compiles many units with several threads. */

enum {
	THREADS_MAX = 16,
	/* in .debug_info: a millisecond of work, against 50 µs to start a thread */
	BYTES_PER_THREAD = 1 << 18,
};

struct work {
	struct tally_lines *lines;
	const uint32_t *units;
	size_t count;
	atomic_size_t next;
	atomic_bool out_of_memory;
};

/* Takes what a thread has read from the budget that all share. */
static void spend(struct tally_lines *lines, uint64_t spent)
{
	uint64_t left = atomic_load(&lines->budget);
	while (!atomic_compare_exchange_weak(&lines->budget, &left, left > spent ? left - spent : 0))
		;
}

static void *run(void *context)
{
	struct work *work = context;
	struct tally_lines_scratch *scratch = calloc(1, sizeof(*scratch));
	if (!scratch) {
		atomic_store(&work->out_of_memory, true);
		return NULL;
	}
	const uint64_t budget = atomic_load(&work->lines->budget);
	scratch->dwarf.budget = budget;
	size_t at;
	while ((at = atomic_fetch_add(&work->next, 1)) < work->count &&
	       !atomic_load(&work->out_of_memory)) {
		uint32_t unit = work->units[at];
		struct tally_lines_slot *slot = &work->lines->units[unit];
		if (tally_lines_compile(scratch, &work->lines->file.units.items[unit],
					&work->lines->program, &slot->compiled) == 0) {
			slot->state = TALLY_LINES_COMPILED;
		} else {
			tally_lines_unit_release(&slot->compiled);
			atomic_store(&work->out_of_memory, true);
		}
	}
	if (scratch->dwarf.budget < budget) /* split units bring budgets of their own */
		spend(work->lines, budget - scratch->dwarf.budget);
	tally_lines_scratch_release(scratch);
	free(scratch);
	return NULL;
}

struct sized {
	uint64_t size;
	uint32_t unit;
};

static int compare_sizes(const void *a, const void *b)
{
	const struct sized *left = a, *right = b;
	if (left->size != right->size)
		return left->size > right->size ? -1 : 1;
	if (left->unit < right->unit)
		return -1;
	return left->unit > right->unit;
}

/* Sorts large units first, so that no thread begins a large one when the others are done.  Sets the
 * sum of sizes.  Returns 0 or -ENOMEM. */
static int order(const struct tally_lines *lines, struct tally_lines_wanted *wanted,
		 uint64_t *bytes)
{
	struct sized *sized = calloc(wanted->count + 1, sizeof(*sized));
	if (!sized)
		return -ENOMEM;
	*bytes = 0;
	for (size_t i = 0; i < wanted->count; i++) {
		const struct tally_dwarf_unit *unit = &lines->file.units.items[wanted->items[i]];
		sized[i] = (struct sized){ unit->end - unit->offset, wanted->items[i] };
		*bytes += sized[i].size;
	}
	qsort(sized, wanted->count, sizeof(*sized), compare_sizes);
	for (size_t i = 0; i < wanted->count; i++)
		wanted->items[i] = sized[i].unit;
	free(sized);
	return 0;
}

static size_t threads_for(size_t units, uint64_t bytes)
{
	cpu_set_t cpus;
	size_t threads = 1;
	if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0)
		threads = (size_t)CPU_COUNT(&cpus);
	uint64_t useful = 1 + bytes / BYTES_PER_THREAD;
	if (threads > useful)
		threads = (size_t)useful;
	if (threads > units)
		threads = units;
	if (threads > THREADS_MAX)
		return THREADS_MAX;
	return threads;
}

/* Compiles units, in several threads where that is faster.  Returns 0 or -ENOMEM. */
static int lines_compile_wanted(struct tally_lines *lines, struct tally_lines_wanted *wanted)
{
	if (wanted->count == 0)
		return 0;
	uint64_t bytes;
	if (order(lines, wanted, &bytes) < 0)
		return -ENOMEM;
	struct work work = { .lines = lines, .units = wanted->items, .count = wanted->count };
	pthread_t threads[THREADS_MAX];
	size_t want = threads_for(wanted->count, bytes), started = 0;
	while (started + 1 < want && !tally_thread_start(&threads[started], run, &work))
		started++;
	run(&work);
	while (started > 0)
		pthread_join(threads[--started], NULL);
	if (atomic_load(&work.out_of_memory))
		return -ENOMEM;
	return 0;
}

int tally_lines_new(struct tally_object *object, struct tally_object *debug,
		    struct tally_lines **out, struct tally_error *err)
{
	struct tally_lines *lines = calloc(1, sizeof(*lines));
	if (!lines)
		return tally_error_set(err, -ENOMEM, "out of memory for the lines of %s",
				       tally_object_path(object));
	lines->object = tally_object_ref(object);
	if (debug)
		lines->debug = tally_object_ref(debug);
	*out = lines;
	return 0;
}

void tally_lines_use_cache(struct tally_lines *lines, struct tally_disk_cache *cache)
{
	lines->cache = cache;
}

/* Drops the units and their index. */
static void drop_units(struct tally_lines *lines)
{
	for (size_t i = 0; i < lines->unit_count; i++)
		tally_lines_unit_release(&lines->units[i].compiled);
	free(lines->units);
	lines->units = NULL;
	lines->unit_count = 0;
	tally_vector_release(&lines->index);
	lines->is_indexed = false;
}

void tally_lines_free(struct tally_lines *lines)
{
	if (!lines)
		return;
	drop_units(lines);
	lines_close(lines);
	tally_arena_release(&lines->frames);
	tally_map_release(&lines->named);
	if (lines->cached.bytes)
		tally_cache_blob_release(&lines->cached);
	free(lines->go_copy);
	tally_object_unref(lines->object);
	tally_object_unref(lines->debug);
	free(lines);
}

/* ---- finding the units ---- */

/* Looks at the section's header only: loading may mean inflating.  An unlinked object has no
 * addresses. */
static bool has_debug_information(const struct tally_object *object)
{
	if (tally_object_type(object) == ET_REL)
		return false;
	Elf *elf = tally_object_elf(object);
	Elf_Scn *scn = NULL;
	size_t names;
	if (elf_getshdrstrndx(elf, &names) < 0)
		return false;
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr header;
		const char *name = NULL;
		if (gelf_getshdr(scn, &header))
			name = elf_strptr(elf, names, header.sh_name);
		if (name && (strcmp(name, ".debug_info") == 0 || strcmp(name, ".zdebug_info") == 0))
			return header.sh_type != SHT_NOBITS;
	}
	return false;
}

static struct tally_cache_key key_of(const struct tally_lines *lines)
{
	struct tally_cache_key key = { .id = *tally_object_build_id(lines->object),
				       .kind = "lines",
				       .version = TALLY_LINES_CACHE_VERSION };
	tally_cache_key_add(&key, lines->object);
	if (lines->source != lines->object)
		tally_cache_key_add(&key, lines->source);
	return key;
}

/* Returns the size of the file that the answers come from. */
static uint64_t source_size(const struct tally_lines *lines)
{
	size_t size;
	tally_object_image(lines->source, &size);
	return size;
}

static int make_slots(struct tally_lines *lines, size_t count)
{
	lines->units = calloc(count + 1, sizeof(*lines->units));
	if (!lines->units)
		return -ENOMEM;
	lines->unit_count = count;
	lines->is_indexed = true;
	return 0;
}

/* Takes the index from the cache.  Returns 1 if it was there, 0, or -ENOMEM. */
static int take_from_cache(struct tally_lines *lines)
{
	struct tally_cache_key key = key_of(lines);
	if (!lines->cache || lines->cached.bytes ||
	    !tally_cache_get(lines->cache, &key, &lines->cached))
		return 0;
	struct tally_lines_blob *blob = &lines->blob;
	if (!tally_lines_blob_open(blob, lines->cached.bytes, lines->cached.size,
				   source_size(lines))) {
		*blob = (struct tally_lines_blob){ 0 };
		return 0;
	}
	if (tally_vector_reserve(&lines->index, (size_t)blob->index_count + 1) < 0)
		return -ENOMEM;
	memcpy(lines->index.items, blob->index, blob->index_count * sizeof(*blob->index));
	lines->index.count = blob->index_count;
	int rc = make_slots(lines, blob->unit_count);
	if (rc < 0)
		return rc;
	return 1;
}

static int find_units(struct tally_lines *lines)
{
	if (lines->is_indexed)
		return 0;
	if (lines->debug && has_debug_information(lines->debug))
		lines->source = lines->debug;
	else
		lines->source = has_debug_information(lines->object) ? lines->object : NULL;
	if (!lines->source)
		return make_slots(lines, 0);
	lines->name_bytes_left = tally_lines_names_max(source_size(lines));
	int rc = take_from_cache(lines);
	if (rc < 0)
		return rc;
	if (rc > 0)
		return 0;
	rc = lines_open(lines);
	if (rc < 0)
		return rc;
	return make_slots(lines, lines->file.units.count);
}

/* Opens the file, for units that the cache lacks.  Returns -EAGAIN when the cache was made from
 * another file. */
static int open_file(struct tally_lines *lines)
{
	if (lines->is_open)
		return 0;
	int rc = lines_open(lines);
	if (rc < 0 || lines->file.units.count == lines->unit_count)
		return rc;
	drop_units(lines);
	lines_close(lines);
	lines->blob.unit_count = 0;
	return -EAGAIN;
}

void tally_lines_keep(struct tally_lines *lines)
{
	if (!lines->cache || !lines->has_news || !lines->is_indexed)
		return;
	struct tally_cache_key key = key_of(lines);
	const struct tally_lines_unit **units = calloc(lines->unit_count + 1, sizeof(*units));
	struct tally_lines_unit *others = calloc(lines->unit_count + 1, sizeof(*others));
	for (uint32_t i = 0; units && others && i < lines->unit_count; i++) {
		const struct tally_lines_slot *slot = &lines->units[i];
		if (slot->state != TALLY_LINES_COMPILED) {
			if (tally_lines_blob_unit(&lines->blob, i, &others[i]))
				units[i] = &others[i];
		} else if (!slot->compiled.is_partial && !slot->compiled.is_changeable) {
			units[i] = &slot->compiled;
		}
	}
	struct tally_buffer buffer = { 0 };
	if (units && others) {
		tally_lines_blob_write(&buffer, source_size(lines), lines->index.items,
				       lines->index.count, units, lines->unit_count, &lines->blob);
		if (!buffer.failed)
			tally_cache_put(lines->cache, &key, tally_object_path(lines->object),
					buffer.bytes, buffer.length);
	}
	tally_buffer_release(&buffer);
	free(others);
	free(units);
	lines->has_news = false;
}

/* ---- answers ---- */

/* Addresses with equal spots have equal answers. */
struct spot {
	const struct tally_lines_unit *unit;
	uint32_t row, node;
};

static struct spot spot_of(const struct tally_lines_unit *unit, uint64_t address)
{
	struct spot spot = { unit, TALLY_LINES_NONE, TALLY_LINES_NONE };
	uint64_t distance = address - unit->base;
	if (address < unit->base || distance > UINT32_MAX)
		return spot;
	spot.row = tally_lines_last_at(unit->row_starts, unit->row_count, (uint32_t)distance);
	if (spot.row != TALLY_LINES_NONE && unit->rows[spot.row].file == TALLY_LINES_GAP)
		spot.row = TALLY_LINES_NONE;
	uint32_t range = tally_lines_last_at(unit->range_starts, unit->range_count,
					     (uint32_t)distance);
	if (range != TALLY_LINES_NONE && unit->range_nodes[range] < unit->node_count)
		spot.node = unit->range_nodes[range];
	return spot;
}

/* Returns a function's name, or NULL. */
static const char *name_of(struct tally_lines *lines, const struct tally_lines_unit *unit,
			   uint32_t index)
{
	const char *name = tally_lines_unit_name(unit, &lines->blob, index);
	bool is_new;
	uint64_t *allowed = NULL;
	if (name)
		allowed = tally_map_put(&lines->named, (uintptr_t)name, &is_new);
	if (allowed && is_new) {
		size_t length = strlen(name);
		*allowed = length <= lines->name_bytes_left;
		if (*allowed)
			lines->name_bytes_left -= length;
		lines->is_refused |= !*allowed;
	}
	lines->has_no_memory |= name && !allowed;
	if (allowed && *allowed)
		return name;
	return NULL;
}

static void set_call(const struct tally_lines_unit *unit, const struct tally_lines_blob *blob,
		     const struct tally_lines_node *inlined, struct tally_line_frame *frame)
{
	*frame = (struct tally_line_frame){
		.file = tally_lines_unit_file(unit, blob, inlined->call_file),
		.line = inlined->call_line,
		.column = inlined->call_column,
	};
}

/* Returns 0 or -ENOMEM. */
static int make_answer(struct tally_lines *lines, const struct spot *spot,
		       struct tally_line_answer *answer)
{
	const struct tally_lines_unit *unit = spot->unit;
	const struct tally_lines_blob *blob = &lines->blob;
	*answer = (struct tally_line_answer){ 0 };
	uint32_t count = 0;
	if (spot->row != TALLY_LINES_NONE)
		count = 1;
	if (spot->node != TALLY_LINES_NONE) {
		count = 1;
		for (uint32_t node = spot->node; unit->nodes[node].parent < node;
		     node = unit->nodes[node].parent)
			count++;
	}
	if (count == 0)
		return 0;
	struct tally_line_frame *frames = tally_arena_array(&lines->frames, count, sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	if (spot->row != TALLY_LINES_NONE) {
		const struct tally_lines_row *row = &unit->rows[spot->row];
		frames[0] = (struct tally_line_frame){ .file = tally_lines_unit_file(unit, blob,
										     row->file),
						       .line = row->line,
						       .column = row->column };
	}
	uint32_t node = spot->node, i = 0;
	for (; node != TALLY_LINES_NONE && i < count; i++) {
		const struct tally_lines_node *its = &unit->nodes[node];
		while (i + 1 < count && !name_of(lines, unit, its->name)) {
			/* An inlined function whose name is in a missing file is left out.  The
			 * function around it keeps the line of the code. */
			if (i)
				set_call(unit, blob, its, &frames[i]);
			count--;
			its = &unit->nodes[its->parent];
		}
		frames[i].function = name_of(lines, unit, its->name);
		if (its->name < unit->name_count)
			frames[i].source = tally_lines_unit_file(unit, blob,
								 unit->name_sources[its->name]);
		if (i + 1 < count)
			set_call(unit, blob, its, &frames[i + 1]);
		node = its->parent;
	}
	if (lines->has_no_memory)
		return -ENOMEM;
	*answer = (struct tally_line_answer){ frames, count };
	return 0;
}

static int answer_all(struct tally_lines *lines, const uint64_t *addresses, const uint32_t *units,
		      size_t count, struct tally_line_answer *answers)
{
	struct spot last = { 0 };
	struct tally_line_answer answer = { 0 };
	for (size_t i = 0; i < count; i++) {
		answers[i] = (struct tally_line_answer){ 0 };
		if (units[i] == TALLY_LINES_NONE)
			continue;
		struct spot spot = spot_of(&lines->units[units[i]].compiled, addresses[i]);
		bool is_same = last.unit == spot.unit && last.row == spot.row &&
			       last.node == spot.node;
		if (!is_same && make_answer(lines, &spot, &answer) < 0)
			return -ENOMEM;
		last = spot;
		answers[i] = answer;
	}
	return 0;
}

/* Returns how many items of the index begin at or before an address.  `at` is the result for the
 * address before: addresses ascend, so the next one is usually near.  A single address may be
 * anywhere. */
static size_t begun_at(const struct tally_lines *lines, size_t at, uint64_t address)
{
	const struct tally_nested_item *items = lines->index.items;
	size_t count = lines->index.count, stride = 1;
	if (at && items[at - 1].start > address)
		at = 0; /* the addresses don't ascend, as they should */
	/* All items before `at` begin at or before the address.  Strides double until one goes too
	 * far, and are then halved. */
	while (at + stride <= count && items[at + stride - 1].start <= address) {
		at += stride;
		stride *= 2;
	}
	for (; stride; stride /= 2)
		if (at + stride <= count && items[at + stride - 1].start <= address)
			at += stride;
	return at;
}

/* Finds the unit of each address, and lists the units that aren't compiled yet. */
static int choose_units(struct tally_lines *lines, const uint64_t *addresses, size_t count,
			uint32_t *units, struct tally_lines_wanted *wanted)
{
	size_t at = 0;
	for (size_t i = 0; i < count; i++) {
		at = begun_at(lines, at, addresses[i]);
		units[i] = TALLY_LINES_NONE;
		if (at)
			units[i] = lines->index.items[at - 1].id;
		if (units[i] >= lines->unit_count) {
			units[i] = TALLY_LINES_NONE;
			continue;
		}
		struct tally_lines_slot *slot = &lines->units[units[i]];
		if (slot->state != TALLY_LINES_UNREAD)
			continue;
		if (tally_lines_blob_unit(&lines->blob, units[i], &slot->compiled)) {
			slot->state = TALLY_LINES_COMPILED;
			continue;
		}
		slot->state = TALLY_LINES_WANTED;
		if (tally_vector_push(wanted, units[i]) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Notes the first companion file that a unit just compiled lacks. */
static void note_missing(struct tally_lines *lines, const struct tally_lines_wanted *wanted)
{
	for (size_t i = 0; i < wanted->count; i++)
		lines->is_refused |= lines->units[wanted->items[i]].compiled.is_refused;
	for (size_t i = 0; !lines->missing && i < wanted->count; i++) {
		if (!lines->units[wanted->items[i]].compiled.is_partial)
			continue;
		lines->missing = lines->program.missing;
		if (!lines->missing)
			lines->missing = lines->file.units.items[wanted->items[i]].dwo_name;
	}
}

const char *tally_lines_missing(const struct tally_lines *lines)
{
	return lines->missing;
}

bool tally_lines_is_refused(const struct tally_lines *lines)
{
	return lines->is_refused;
}

static int find(struct tally_lines *lines, const uint64_t *addresses, size_t count,
		struct tally_line_answer *answers, uint32_t *units)
{
	int rc = find_units(lines);
	if (rc < 0)
		return rc;
	struct tally_lines_wanted wanted = { 0 };
	rc = choose_units(lines, addresses, count, units, &wanted);
	if (rc)
		goto out;
	if (wanted.count > 0) {
		rc = open_file(lines);
		if (rc)
			goto out;
		rc = lines_compile_wanted(lines, &wanted);
		lines->has_news = true;
		if (rc)
			goto out;
	}
	note_missing(lines, &wanted);
out:
	/* Units that were not compiled may be tried again later. */
	for (size_t i = 0; i < wanted.count; i++)
		if (wanted.items[i] < lines->unit_count &&
		    lines->units[wanted.items[i]].state == TALLY_LINES_WANTED)
			lines->units[wanted.items[i]].state = TALLY_LINES_UNREAD;
	tally_vector_release(&wanted);
	if (rc < 0)
		return rc;
	return answer_all(lines, addresses, units, count, answers);
}

/* Answers by Go's table where there is no DWARF.  Returns 0 or -ENOMEM. */
static int answer_by_go_table(struct tally_lines *lines, const uint64_t *addresses, size_t count,
			      struct tally_line_answer *answers)
{
	struct tally_line_frame frames[TALLY_GO_FRAMES_MAX];
	for (size_t i = 0; i < count; i++) {
		if (answers[i].count)
			continue;
		if (!lines->go_tried) {
			int rc = tally_go_object_open(lines->object, &lines->go, &lines->go_copy);
			if (rc < 0)
				return rc;
			if (!rc)
				lines->go.version = 0;
			lines->go_tried = true;
		}
		size_t found = 0;
		if (lines->go.version)
			found = tally_go_table_frames(&lines->go, addresses[i], frames);
		if (!found)
			continue;
		struct tally_line_frame *kept = tally_arena_array(&lines->frames, found,
								  sizeof(*kept));
		if (!kept)
			return -ENOMEM;
		memcpy(kept, frames, found * sizeof(*kept));
		answers[i] = (struct tally_line_answer){ kept, (uint32_t)found };
	}
	return 0;
}

int tally_lines_find(struct tally_lines *lines, const uint64_t *addresses, size_t count,
		     struct tally_line_answer *answers)
{
	uint32_t *units = malloc((count + 1) * sizeof(*units));
	if (!units)
		return -ENOMEM;
	int rc = find(lines, addresses, count, answers, units);
	if (rc == -EAGAIN)
		rc = find(lines, addresses, count, answers, units); /* now without the cache */
	free(units);
	if (rc < 0)
		return rc;
	return answer_by_go_table(lines, addresses, count, answers);
}
