/* Reads strings, functions and places, then the optional parts.  A part refers to earlier ones by
 * number, and these numbers are checked while it is read.  Look-ups find an object by hash and a
 * place in it by binary search. */
#include "naming/packed.h"

#include "base/reader.h"
#include "base/vector.h"
#include "perfdata/perfdata.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Maximum number of objects with equal hashes; further ones are ignored.  This bounds the time that
 * a crafted recording can cost. */
enum { ALIKE_MAX = 64 };

/* ---- reading ------------------------------------------------------------- */

/* An item of a table is larger than what it takes in the section. */
static bool tables_fit(const struct tally_packed_names *packed)
{
	return tally_own_tables_fit(packed->strings.count * sizeof(*packed->strings.items) +
					    packed->functions.count *
						    sizeof(*packed->functions.items) +
					    packed->frames.count * sizeof(*packed->frames.items) +
					    packed->places.count * sizeof(*packed->places.items) +
					    packed->objects.count *
						    sizeof(*packed->objects.items) +
					    packed->partial.count * sizeof(*packed->partial.items),
				    packed->tables_max);
}

static int read_strings(struct tally_packed_names *packed)
{
	struct tally_reader reader;
	tally_reader_init(&reader, packed->text.bytes, packed->text.length, false);
	while (tally_reader_left(&reader)) {
		const char *text = tally_reader_string(&reader);
		if (!text)
			return -EBADMSG;
		if (!tables_fit(packed))
			return -EFBIG;
		if (tally_vector_push(&packed->strings, text) < 0)
			return -ENOMEM;
	}
	return 0;
}

static const char *take_string(const struct tally_packed_names *packed, struct tally_reader *reader)
{
	uint64_t id = tally_reader_uleb(reader);
	if (id < packed->strings.count)
		return packed->strings.items[id];
	tally_reader_fail(reader);
	return "";
}

const char *tally_packed_names_string(const struct tally_packed_names *packed,
				      struct tally_reader *reader)
{
	uint64_t id = tally_reader_uleb(reader);
	if (id > packed->strings.count)
		tally_reader_fail(reader);
	if (!id || id > packed->strings.count)
		return NULL;
	return packed->strings.items[id - 1];
}

static int read_functions(struct tally_packed_names *packed, struct tally_reader *reader)
{
	while (tally_reader_left(reader)) {
		struct tally_packed_function function = { .known = UINT32_MAX };
		uint64_t kind = tally_reader_uleb(reader);
		function.kind = TALLY_FRAME_PROGRAM;
		if (kind < TALLY_FRAME_KINDS)
			function.kind = (enum tally_frame_kind)kind;
		function.name = tally_packed_names_string(packed, reader);
		function.object = take_string(packed, reader);
		function.start = tally_reader_uleb(reader) - 1;
		if (reader->failed)
			return -EBADMSG;
		if (!tables_fit(packed))
			return -EFBIG;
		if (tally_vector_push(&packed->functions, function) < 0)
			return -ENOMEM;
	}
	if (packed->functions.count >= UINT32_MAX)
		return -EBADMSG;
	return 0;
}

static int read_frames(struct tally_packed_names *packed, struct tally_reader *reader,
		       uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		struct tally_packed_frame frame = { .function = tally_reader_uleb32(reader) };
		frame.file = tally_packed_names_string(packed, reader);
		frame.line = tally_reader_uleb32(reader);
		if (reader->failed || frame.function >= packed->functions.count)
			return -EBADMSG;
		if (!tables_fit(packed))
			return -EFBIG;
		if (tally_vector_push(&packed->frames, frame) < 0)
			return -ENOMEM;
	}
	if (packed->frames.count >= UINT32_MAX)
		return -EBADMSG;
	return 0;
}

/* Places must be sorted by address and `before`, without duplicates, because they are found by
 * binary search. */
static int read_places(struct tally_packed_names *packed, struct tally_reader *reader,
		       uint64_t count)
{
	uint64_t address = 0;
	int result = 0;
	for (uint64_t i = 0; !result && i < count; i++) {
		struct tally_packed_place place = { .first = (uint32_t)packed->frames.count };
		uint64_t delta = tally_reader_uleb(reader), shape = tally_reader_uleb(reader);
		const struct tally_packed_place *last = NULL;
		if (i)
			last = &packed->places.items[packed->places.count - 1];
		place.offset = tally_reader_uleb(reader);
		place.before = shape & 1;
		place.count = (uint32_t)(shape >> 1) + 1;
		place.address = address + delta;
		if (reader->failed || shape >> 1 >= tally_reader_left(reader) ||
		    place.address < address || (last && !delta && place.before <= last->before))
			return -EBADMSG;
		address = place.address;
		result = read_frames(packed, reader, place.count);
		if (!result && tally_vector_push(&packed->places, place) < 0)
			result = -ENOMEM;
	}
	if (packed->places.count >= UINT32_MAX)
		return -EBADMSG;
	return result;
}

static uint64_t hash_text(const char *text)
{
	uint64_t hash = 0;
	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * 0x100000001b3ull;
	return hash;
}

/* Hashes the path and ids; objects with equal hashes are compared in full. */
static uint64_t object_key(const char *path, uint32_t pid, uint64_t inode,
			   uint64_t inode_generation)
{
	return tally_hash64(hash_text(path) ^ tally_hash64(inode) ^
			    tally_hash64(inode_generation + 1) ^ pid);
}

static int index_object(struct tally_packed_names *packed, uint32_t number)
{
	const struct tally_packed_object *object = &packed->objects.items[number];
	bool added = false;
	if (object->is_kernel) {
		packed->kernel = number;
		return 0;
	}
	uint64_t key = object_key(object->path, object->pid, object->inode,
				  object->inode_generation);
	for (unsigned tries = 0; !added && tries < ALIKE_MAX; tries++) {
		uint64_t *slot = tally_map_put(&packed->object_index, key + tries, &added);
		if (!slot)
			return -ENOMEM;
		if (added)
			*slot = number;
	}
	return 0;
}

static int read_object(struct tally_packed_names *packed, struct tally_reader *reader)
{
	struct tally_packed_object object = { .first = (uint32_t)packed->places.count };
	uint64_t flags = tally_reader_uleb(reader);
	object.is_kernel = flags & 1;
	object.is_inherited = flags & TALLY_PACKED_INHERITED;
	object.path = take_string(packed, reader);
	object.pid = tally_reader_uleb32(reader);
	object.major = tally_reader_uleb32(reader);
	object.minor = tally_reader_uleb32(reader);
	object.inode = tally_reader_uleb(reader);
	object.inode_generation = tally_reader_uleb(reader);
	uint64_t size = tally_reader_uleb(reader);
	const void *id = NULL;
	if (size <= sizeof(object.build_id.bytes))
		id = tally_reader_bytes(reader, (size_t)size);
	uint64_t count = tally_reader_uleb(reader);
	if (reader->failed || !id || count > tally_reader_left(reader))
		return -EBADMSG;
	object.build_id.size = (uint8_t)size;
	memcpy(object.build_id.bytes, id, (size_t)size);
	int result = read_places(packed, reader, count);
	object.count = (uint32_t)packed->places.count - object.first;
	if (result)
		return result;
	if (!tables_fit(packed))
		return -EFBIG;
	if (tally_vector_push(&packed->objects, object) < 0)
		return -ENOMEM;
	return index_object(packed, (uint32_t)packed->objects.count - 1);
}

/* Reads part 7 or 8: a text for some of the functions.  Older recordings don't have these parts,
 * nor do recordings that don't need them. */
static int read_texts(struct tally_packed_names *packed, const void *section, size_t size,
		      enum tally_own_part part)
{
	struct tally_reader reader;
	tally_buffer_clear(&packed->scratch);
	int result = tally_own_feature_get(section, size, part, &packed->scratch);
	if (result <= 0)
		return result;
	tally_reader_init(&reader, packed->scratch.bytes, packed->scratch.length, false);
	while (tally_reader_left(&reader)) {
		uint32_t function = tally_reader_uleb32(&reader);
		const char *text = take_string(packed, &reader);
		if (reader.failed || function >= packed->functions.count)
			return -EBADMSG;
		if (part == TALLY_OWN_SOURCES)
			packed->functions.items[function].source = text;
		else
			packed->functions.items[function].declared = text;
	}
	return 0;
}

/* Reads part 10: the causes of late places. */
static int read_causes(struct tally_packed_names *packed, const void *section, size_t size)
{
	struct tally_reader reader;
	uint64_t number = 0;
	tally_buffer_clear(&packed->scratch);
	int result = tally_own_feature_get(section, size, TALLY_OWN_CAUSES, &packed->scratch);
	if (result <= 0)
		return result;
	tally_reader_init(&reader, packed->scratch.bytes, packed->scratch.length, false);
	while (tally_reader_left(&reader)) {
		uint64_t further = tally_reader_uleb(&reader), step = tally_reader_uleb(&reader),
			 inner = tally_reader_uleb(&reader);
		if (reader.failed || further >= packed->places.count - number ||
		    inner >= tally_reader_left(&reader))
			return -EBADMSG;
		number += further;
		struct tally_packed_place *place = &packed->places.items[number];
		place->moved = (int64_t)tally_packed_step(step);
		place->late_first = (uint32_t)packed->frames.count;
		place->late_count = (uint32_t)inner + 1;
		result = read_frames(packed, &reader, place->late_count);
		if (result < 0)
			return result;
	}
	return 0;
}

/* Reads part 11: objects without inlined functions.  It is left out if there are none. */
static int read_partial(struct tally_packed_names *packed, const void *section, size_t size)
{
	struct tally_reader reader;
	tally_buffer_clear(&packed->scratch);
	int result = tally_own_feature_get(section, size, TALLY_OWN_PARTIAL, &packed->scratch);
	if (result <= 0)
		return result;
	tally_reader_init(&reader, packed->scratch.bytes, packed->scratch.length, false);
	while (tally_reader_left(&reader)) {
		struct tally_packed_partial partial = { .object = take_string(packed, &reader) };
		partial.companion = take_string(packed, &reader);
		if (reader.failed)
			return -EBADMSG;
		if (!tables_fit(packed))
			return -EFBIG;
		if (tally_vector_push(&packed->partial, partial) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int read_part(struct tally_packed_names *packed, const void *section, size_t size,
		     enum tally_own_part part)
{
	struct tally_reader reader;
	tally_buffer_clear(&packed->scratch);
	int result = tally_own_feature_get(section, size, part, &packed->scratch);
	if (!result)
		return -EBADMSG;
	if (result < 0)
		return result;
	tally_reader_init(&reader, packed->scratch.bytes, packed->scratch.length, false);
	if (part == TALLY_OWN_FUNCTIONS)
		return read_functions(packed, &reader);
	for (result = 0; !result && tally_reader_left(&reader);)
		result = read_object(packed, &reader);
	if (reader.failed)
		return -EBADMSG;
	return result;
}

int tally_packed_names_read(const void *section, size_t size, struct tally_packed_names **out)
{
	struct tally_packed_names *packed = *out = calloc(1, sizeof(*packed));
	if (!packed)
		return -ENOMEM;
	packed->kernel = UINT32_MAX;
	packed->tables_max = tally_own_tables_max(size);
	int result = tally_own_feature_get(section, size, TALLY_OWN_STRINGS, &packed->text);
	if (result <= 0)
		goto out;
	result = read_strings(packed);
	if (result)
		goto out;
	result = read_part(packed, section, size, TALLY_OWN_FUNCTIONS);
	if (result)
		goto out;
	result = read_part(packed, section, size, TALLY_OWN_PLACES);
	if (result)
		goto out;
	result = read_texts(packed, section, size, TALLY_OWN_SOURCES);
	if (result)
		goto out;
	result = read_texts(packed, section, size, TALLY_OWN_DECLARED);
	if (result)
		goto out;
	result = read_causes(packed, section, size);
	if (result)
		goto out;
	result = read_partial(packed, section, size);
	if (!result)
		result = 1;
out:
	tally_buffer_release(&packed->scratch);
	if (result > 0)
		return 1;
	tally_packed_names_free(packed);
	*out = NULL;
	return result;
}

void tally_packed_names_free(struct tally_packed_names *packed)
{
	if (!packed)
		return;
	tally_buffer_release(&packed->text);
	tally_buffer_release(&packed->scratch);
	tally_vector_release(&packed->strings);
	tally_vector_release(&packed->functions);
	tally_vector_release(&packed->frames);
	tally_vector_release(&packed->places);
	tally_vector_release(&packed->objects);
	tally_vector_release(&packed->partial);
	tally_vector_release(&packed->object_of_file);
	tally_map_release(&packed->object_index);
	free(packed);
}

/* ---- looking up ---------------------------------------------------------- */

static bool is_object_of(const struct tally_packed_object *object,
			 const struct tally_mapped_file *file, const char *path)
{
	bool ids_differ = object->build_id.size && file->build_id.size &&
			  !tally_build_id_equal(&object->build_id, &file->build_id);
	return object->pid == file->pid && object->is_inherited == (file->origin != 0) &&
	       object->inode == file->inode && object->major == file->major &&
	       object->minor == file->minor && object->inode_generation == file->inode_generation &&
	       !ids_differ && !strcmp(object->path, path);
}

/* Returns the object's number, or UINT32_MAX. */
static uint32_t find_object(const struct tally_packed_names *packed,
			    const struct tally_tasks *tasks, uint32_t id)
{
	const struct tally_mapped_file *file = &tasks->files.items[id];
	const char *path = tally_tasks_path(tasks, id);
	const uint64_t *number;
	uint64_t key = object_key(path, file->pid, file->inode, file->inode_generation);
	for (; (number = tally_map_get(&packed->object_index, key)); key++)
		if (is_object_of(&packed->objects.items[*number], file, path))
			return (uint32_t)*number;
	return UINT32_MAX;
}

static uint32_t object_of(struct tally_packed_names *packed, const struct tally_tasks *tasks,
			  uint32_t file)
{
	if (file == TALLY_FILE_KERNEL)
		return packed->kernel;
	if (file >= tasks->files.count)
		return UINT32_MAX;
	while (packed->object_of_file.count <= file)
		if (tally_vector_push(&packed->object_of_file, 0) < 0)
			return UINT32_MAX;
	uint32_t *known = &packed->object_of_file.items[file];
	if (!*known) {
		uint32_t number = find_object(packed, tasks, file);
		*known = UINT32_MAX;
		if (number != UINT32_MAX)
			*known = number + 1;
	}
	if (*known == UINT32_MAX)
		return UINT32_MAX;
	return *known - 1;
}

const struct tally_packed_object *tally_packed_names_object(struct tally_packed_names *packed,
							    const struct tally_tasks *tasks,
							    uint32_t file)
{
	uint32_t number = object_of(packed, tasks, file);
	if (number == UINT32_MAX)
		return NULL;
	return &packed->objects.items[number];
}

const struct tally_packed_place *tally_packed_names_find(struct tally_packed_names *packed,
							 const struct tally_tasks *tasks,
							 uint32_t file,
							 const struct tally_place *place)
{
	const struct tally_packed_object *object = tally_packed_names_object(packed, tasks, file);
	if (!object)
		return NULL;
	const struct tally_packed_place *places = packed->places.items + object->first;
	size_t low = 0, high = object->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct tally_packed_place *there = &places[middle];
		if (there->address == place->address && there->before == place->before)
			return there;
		if (there->address < place->address ||
		    (there->address == place->address && there->before < place->before))
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}
