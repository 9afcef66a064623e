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

#include "object/object.h"
#include "symbol/lines_state.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>

int tally_lines_new(struct tally_object *object, struct tally_object *debug,
		    struct tally_lines **out, struct tally_error *err)
{
	struct tally_lines *lines = calloc(1, sizeof(*lines));
	if (!lines)
		return tally_error_set(err, -ENOMEM, "out of memory for the lines of %s",
				       tally_object_path(object));
	lines->object = tally_object_ref(object);
	lines->debug = debug ? tally_object_ref(debug) : NULL;
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
	tally_lines_close(lines);
	tally_arena_release(&lines->frames);
	if (lines->cached.bytes)
		tally_cache_blob_release(&lines->cached);
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
		const char *name = gelf_getshdr(scn, &header)
					   ? elf_strptr(elf, names, header.sh_name)
					   : NULL;
		if (name && (strcmp(name, ".debug_info") == 0 || strcmp(name, ".zdebug_info") == 0))
			return header.sh_type != SHT_NOBITS;
	}
	return false;
}

static struct tally_cache_key key_of(const struct tally_lines *lines)
{
	return (struct tally_cache_key){ .id = *tally_object_build_id(lines->object),
					 .kind = "lines",
					 .version = TALLY_LINES_CACHE_VERSION };
}

/* Returns the size of the file that the answers come from.  It detects another file of the same
 * build-id, which may contain more or less. */
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
	return rc < 0 ? rc : 1;
}

static int find_units(struct tally_lines *lines)
{
	if (lines->is_indexed)
		return 0;
	lines->source = lines->debug && has_debug_information(lines->debug) ? lines->debug
			: has_debug_information(lines->object)		      ? lines->object
										      : NULL;
	if (!lines->source)
		return make_slots(lines, 0);
	int rc = take_from_cache(lines);
	if (rc == 0)
		rc = tally_lines_open(lines);
	if (rc == 0)
		rc = make_slots(lines, lines->file.units.count);
	return rc < 0 ? rc : 0;
}

/* Opens the file, for units that the cache lacks.  Returns -EAGAIN when the cache was made from
 * another file. */
static int open_file(struct tally_lines *lines)
{
	if (lines->is_open)
		return 0;
	int rc = tally_lines_open(lines);
	if (rc < 0 || lines->file.units.count == lines->unit_count)
		return rc;
	drop_units(lines);
	tally_lines_close(lines);
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
		if (slot->state == TALLY_LINES_COMPILED)
			units[i] = slot->compiled.is_partial ? NULL : &slot->compiled;
		else if (tally_lines_blob_unit(&lines->blob, i, &others[i]))
			units[i] = &others[i];
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

/* Returns 0 or -ENOMEM. */
static int make_answer(struct tally_lines *lines, const struct spot *spot,
		       struct tally_line_answer *answer)
{
	const struct tally_lines_unit *unit = spot->unit;
	const struct tally_lines_blob *blob = &lines->blob;
	*answer = (struct tally_line_answer){ 0 };
	uint32_t count = spot->row != TALLY_LINES_NONE ? 1 : 0;
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
	uint32_t node = spot->node;
	for (uint32_t i = 0; node != TALLY_LINES_NONE && i < count; i++) {
		const struct tally_lines_node *its = &unit->nodes[node];
		frames[i].function = tally_lines_unit_name(unit, blob, its->name);
		if (its->name < unit->name_count)
			frames[i].source = tally_lines_unit_file(unit, blob,
								 unit->name_sources[its->name]);
		if (i + 1 < count)
			frames[i + 1] = (struct tally_line_frame){
				.file = tally_lines_unit_file(unit, blob, its->call_file),
				.line = its->call_line, .column = its->call_column,
			};
		node = its->parent;
	}
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
		units[i] = at ? lines->index.items[at - 1].id : (uint32_t)TALLY_LINES_NONE;
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

static int find(struct tally_lines *lines, const uint64_t *addresses, size_t count,
		struct tally_line_answer *answers, uint32_t *units)
{
	int rc = find_units(lines);
	if (rc < 0)
		return rc;
	struct tally_lines_wanted wanted = { 0 };
	rc = choose_units(lines, addresses, count, units, &wanted);
	if (rc == 0 && wanted.count > 0)
		rc = open_file(lines);
	if (rc == 0 && wanted.count > 0) {
		rc = tally_lines_compile_wanted(lines, &wanted);
		lines->has_news = true;
	}
	/* Units that were not compiled may be tried again later. */
	for (size_t i = 0; i < wanted.count; i++)
		if (wanted.items[i] < lines->unit_count &&
		    lines->units[wanted.items[i]].state == TALLY_LINES_WANTED)
			lines->units[wanted.items[i]].state = TALLY_LINES_UNREAD;
	tally_vector_release(&wanted);
	return rc < 0 ? rc : answer_all(lines, addresses, units, count, answers);
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
	return rc;
}
