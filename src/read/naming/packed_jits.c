/* Writes each dump as differences between neighbours.  A reader first notes where each dump begins,
 * and decodes a dump when its file is met. */
#include "naming/packed.h"

#include "base/map.h"
#include "base/reader.h"
#include "base/vector.h"
#include "perfdata/perfdata.h"
#include "task/jit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	HAS_CYCLE_TIMES = 1,
	HAS_DEVICE = 2,
	ALIKE_MAX = 64 /* dumps with equal keys */
};

struct tally_packed_jits {
	struct tally_buffer part;
	struct tally_map offsets; /* key of a dump's file → where the dump begins in the part */
	uint64_t tables_max;
};

/* ---- writing ------------------------------------------------------------- */

static void put_dump(struct tally_buffer *out, const struct tally_tasks *tasks,
		     const struct tally_jit *jit)
{
	const struct tally_mapped_file *file = &tasks->files.items[jit->file];
	const struct tally_jit_dump *dump = jit->dump;
	const char *path = tally_tasks_path(tasks, jit->file);
	uint64_t end = 0, time_ns = 0, address = 0;
	tally_buffer_append(out, path, strlen(path) + 1);
	tally_own_put_number(out, file->inode);
	tally_own_put_number(out, file->inode_generation);
	tally_own_put_number(out, HAS_DEVICE | (dump->has_cycle_times ? HAS_CYCLE_TIMES : 0));
	tally_own_put_number(out, file->major);
	tally_own_put_number(out, file->minor);
	tally_own_put_number(out, dump->functions.count);
	for (size_t i = 0; i < dump->functions.count; i++) {
		const struct tally_jit_function *function = &dump->functions.items[i];
		tally_own_put_number(out, function->base - end);
		tally_own_put_number(out, function->size);
		end = function->base + function->size;
	}
	tally_own_put_number(out, dump->places.count);
	for (size_t i = 0; i < dump->places.count; i++) {
		const struct tally_jit_place *place = &dump->places.items[i];
		tally_own_put_number(out, place->time_ns - time_ns);
		tally_own_put_step(out, place->address - address);
		tally_own_put_number(out, place->function);
		time_ns = place->time_ns;
		address = place->address;
	}
}

/* True if the tasks' recording has any dump. */
void tally_packed_jits_write(const struct tally_tasks *tasks, struct tally_buffer *section)
{
	struct tally_buffer out = { 0 };
	if (!tasks->jits || !tasks->jits->items.count)
		return;
	for (size_t i = 0; i < tasks->jits->items.count; i++)
		if (!tasks->jits->items.items[i].is_inherited)
			put_dump(&out, tasks, &tasks->jits->items.items[i]);
	section->failed |= out.failed;
	if (!out.failed)
		tally_own_feature_add(section, TALLY_OWN_JITS, out.bytes, out.length);
	tally_buffer_release(&out);
}

/* ---- reading ------------------------------------------------------------- */

static bool tables_fit(const struct tally_jit_dump *dump, uint64_t tables_max)
{
	enum { INDEX_BYTES = 40 }; /* for a place */
	return tally_own_tables_fit(dump->functions.count * sizeof(*dump->functions.items) +
					    dump->places.count *
						    (sizeof(*dump->places.items) + INDEX_BYTES),
				    tables_max);
}

static int read_functions(struct tally_reader *reader, struct tally_jit_dump *dump,
			  uint64_t tables_max)
{
	uint64_t end = 0;
	for (uint64_t left = tally_reader_uleb(reader); left; left--) {
		uint64_t gap = tally_reader_uleb(reader), size = tally_reader_uleb(reader);
		struct tally_jit_function function = { .name = "[unknown]",
						       .base = end + gap,
						       .size = size };
		if (reader->failed || !size || function.base < end ||
		    size > UINT64_MAX - function.base)
			return -EBADMSG;
		end = function.base + size;
		if (!tables_fit(dump, tables_max))
			return -EFBIG;
		if (tally_vector_push(&dump->functions, function) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int read_places(struct tally_reader *reader, struct tally_jit_dump *dump,
		       uint64_t tables_max)
{
	struct tally_jit_place place = { 0 };
	for (uint64_t left = tally_reader_uleb(reader); left; left--) {
		uint64_t step = tally_reader_uleb(reader), move = tally_reader_uleb(reader),
			 function = tally_reader_uleb(reader);
		if (reader->failed || function >= dump->functions.count ||
		    step > UINT64_MAX - place.time_ns)
			return -EBADMSG;
		place.time_ns += step;
		place.address += tally_packed_step(move);
		place.function = (uint32_t)function;
		if (place.address > UINT64_MAX - dump->functions.items[function].size)
			return -EBADMSG;
		if (!tables_fit(dump, tables_max))
			return -EFBIG;
		if (dump->places.count == UINT32_MAX - 1 ||
		    tally_vector_push(&dump->places, place) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* What a dump in the part begins with. */
struct head {
	const char *path;
	uint64_t inode, generation, flags, major, minor;
};

static void read_head(struct tally_reader *reader, struct head *head)
{
	head->path = tally_reader_string(reader);
	head->inode = tally_reader_uleb(reader);
	head->generation = tally_reader_uleb(reader);
	head->flags = tally_reader_uleb(reader);
	if (head->flags & HAS_DEVICE) {
		head->major = tally_reader_uleb(reader);
		head->minor = tally_reader_uleb(reader);
	}
}

static bool is_of(const struct head *head, const struct tally_mapped_file *file, const char *path)
{
	bool is_device = !(head->flags & HAS_DEVICE) ||
			 (head->major == file->major && head->minor == file->minor);
	return is_device && head->inode == file->inode &&
	       head->generation == file->inode_generation && !strcmp(head->path, path);
}

static uint64_t key_of(const char *path, uint64_t inode, uint64_t generation)
{
	uint64_t hash = 0;
	for (; *path; path++)
		hash = (hash ^ (uint8_t)*path) * 0x100000001b3ull;
	return tally_hash64(hash ^ tally_hash64(inode) ^ tally_hash64(generation + 1));
}

/* Skips a list whose items have `numbers` numbers each. */
static void skip_list(struct tally_reader *reader, unsigned numbers)
{
	for (uint64_t left = tally_reader_uleb(reader); left && !reader->failed; left--)
		for (unsigned i = 0; i < numbers; i++)
			tally_reader_uleb(reader);
}

/* Notes where each dump begins.  Further dumps with equal keys are ignored. */
static int index_dumps(struct tally_packed_jits *jits)
{
	struct tally_reader reader;
	tally_reader_init(&reader, jits->part.bytes, jits->part.length, false);
	while (tally_reader_left(&reader)) {
		uint64_t offset = (uint64_t)(reader.at - reader.start);
		struct head head = { 0 };
		bool added = false;
		read_head(&reader, &head);
		skip_list(&reader, 2); /* functions */
		skip_list(&reader, 3); /* places */
		if (reader.failed)
			return -EBADMSG;
		uint64_t key = key_of(head.path, head.inode, head.generation);
		for (unsigned tries = 0; !added && tries < ALIKE_MAX; tries++) {
			uint64_t *slot = tally_map_put(&jits->offsets, key + tries, &added);
			if (!slot)
				return -ENOMEM;
			if (added)
				*slot = offset;
		}
	}
	return 0;
}

int tally_packed_jits_new(const void *section, size_t size, struct tally_packed_jits **out)
{
	struct tally_packed_jits *jits = *out = calloc(1, sizeof(*jits));
	if (!jits)
		return -ENOMEM;
	jits->tables_max = tally_own_tables_max(size);
	int result = tally_own_feature_get(section, size, TALLY_OWN_JITS, &jits->part);
	if (result > 0)
		result = index_dumps(jits);
	if (result >= 0)
		return 0;
	tally_packed_jits_free(jits);
	*out = NULL;
	return result;
}

void tally_packed_jits_free(struct tally_packed_jits *jits)
{
	if (!jits)
		return;
	tally_buffer_release(&jits->part);
	tally_map_release(&jits->offsets);
	free(jits);
}

/* Makes the dump whose functions begin at the reader. */
static int make_dump(const struct tally_packed_jits *jits, struct tally_reader *reader,
		     const struct head *head, struct tally_jit_dump **out)
{
	struct tally_jit_dump *dump = calloc(1, sizeof(*dump));
	if (!dump)
		return -ENOMEM;
	dump->has_cycle_times = head->flags & HAS_CYCLE_TIMES;
	int result = read_functions(reader, dump, jits->tables_max);
	if (!result)
		result = read_places(reader, dump, jits->tables_max);
	if (!result && !(dump->index = tally_jit_index_new(dump, 0)))
		result = -ENOMEM;
	if (result < 0) {
		tally_jit_dump_free(dump);
		return result;
	}
	*out = dump;
	return 1;
}

int tally_packed_jits_find(const struct tally_packed_jits *jits, const struct tally_tasks *tasks,
			   uint32_t file, struct tally_jit_dump **out)
{
	const struct tally_mapped_file *mapped = &tasks->files.items[file];
	const char *path = tally_tasks_path(tasks, file);
	uint64_t key = key_of(path, mapped->inode, mapped->inode_generation);
	const uint64_t *offset;
	*out = NULL;
	for (unsigned tries = 0;
	     tries < ALIKE_MAX && (offset = tally_map_get(&jits->offsets, key + tries)); tries++) {
		struct tally_reader reader;
		struct head head = { 0 };
		tally_reader_init(&reader, jits->part.bytes, jits->part.length, false);
		tally_reader_seek(&reader, (size_t)*offset);
		read_head(&reader, &head);
		if (is_of(&head, mapped, path))
			return make_dump(jits, &reader, &head, out);
	}
	return 0;
}
