#include "naming/packed_jits.h"

#include "base/reader.h"
#include "base/vector.h"
#include "perfdata/own_feature.h"
#include "task/jit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { HAS_CYCLE_TIMES = 1, HAS_DEVICE = 2 };

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
static bool has_dump(const struct tally_tasks *tasks)
{
	return tasks->jits && tasks->jits->items.count;
}

void tally_packed_jits_write(const struct tally_tasks *tasks, struct tally_buffer *section)
{
	struct tally_buffer out = { 0 };
	if (!has_dump(tasks))
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
		place.address += move & 1 ? ~(move >> 1) : move >> 1;
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

/* Reads the next dump of the part. *is_wanted: it is the file's. */
static int read_dump(struct tally_reader *reader, uint64_t tables_max,
		     const struct tally_mapped_file *file, const char *path,
		     struct tally_jit_dump **out, bool *is_wanted)
{
	struct tally_jit_dump *dump = *out = calloc(1, sizeof(*dump));
	if (!dump)
		return -ENOMEM;
	const char *name = tally_reader_string(reader);
	uint64_t inode = tally_reader_uleb(reader), generation = tally_reader_uleb(reader);
	uint64_t flags = tally_reader_uleb(reader), major = file->major, minor = file->minor;
	dump->has_cycle_times = flags & HAS_CYCLE_TIMES;
	if (flags & HAS_DEVICE) {
		major = tally_reader_uleb(reader);
		minor = tally_reader_uleb(reader);
	}
	if (reader->failed)
		return -EBADMSG;
	*is_wanted = !strcmp(name, path) && inode == file->inode && major == file->major &&
		     minor == file->minor && generation == file->inode_generation;
	int result = read_functions(reader, dump, tables_max);
	return result ? result : read_places(reader, dump, tables_max);
}

static int find_dump(struct tally_reader *reader, uint64_t tables_max,
		     const struct tally_tasks *tasks, uint32_t file, struct tally_jit_dump **out)
{
	while (tally_reader_left(reader)) {
		bool is_wanted = false;
		int result = read_dump(reader, tables_max, &tasks->files.items[file],
				       tally_tasks_path(tasks, file), out, &is_wanted);
		if (!result && is_wanted)
			(*out)->index = tally_jit_index_new(*out, 0);
		if (!result && is_wanted)
			return (*out)->index ? 1 : -ENOMEM;
		if (result)
			return result;
		tally_jit_dump_free(*out);
		*out = NULL;
	}
	return 0;
}

int tally_packed_jits_read(const void *section, size_t size, const struct tally_tasks *tasks,
			   uint32_t file, struct tally_jit_dump **out)
{
	struct tally_buffer part = { 0 };
	struct tally_reader reader;
	*out = NULL;
	int result = tally_own_feature_get(section, size, TALLY_OWN_JITS, &part);
	if (result > 0) {
		tally_reader_init(&reader, part.bytes, part.length, false);
		result = find_dump(&reader, tally_own_tables_max(size), tasks, file, out);
	}
	if (result <= 0) {
		tally_jit_dump_free(*out);
		*out = NULL;
	}
	tally_buffer_release(&part);
	return result;
}
