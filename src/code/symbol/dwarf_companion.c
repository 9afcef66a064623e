/* Packages come first, then .dwo files, then dwz's common file.  The last two are tried in several
 * folders: files may have been moved together, or opened through a symbolic link. */
#include "symbol/lines_internal.h"

#include "object/object.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- packages ---- */

/* DWARF 5, 7.3.5.3; version 2 is GNU's earlier format. */
static bool read_package_index(struct tally_dwarf_package *package)
{
	struct tally_section index;
	if (!tally_object_section(package->file.object, ".debug_cu_index", &index) || !index.bytes)
		return false;
	struct tally_reader reader;
	tally_reader_init(&reader, index.bytes, index.size, package->file.swap);
	uint32_t version = tally_reader_u32(&reader);
	if (version != 2) {
		tally_reader_seek(&reader, 0);
		version = tally_reader_u16(&reader);
		tally_reader_u16(&reader);
		if (version != 5)
			return false;
	}
	package->version = (uint16_t)version;
	package->column_count = tally_reader_u32(&reader);
	package->row_count = tally_reader_u32(&reader);
	package->slot_count = tally_reader_u32(&reader);
	/* The number of slots must be a power of two; every count must fit the bytes that are
	 * left. */
	uint64_t left = tally_reader_left(&reader);
	if (package->slot_count == 0 || package->slot_count & (package->slot_count - 1) ||
	    package->slot_count > left / 12 || package->column_count > left / 4 ||
	    package->row_count > left / 4)
		return false;
	package->slots = reader.at;
	tally_reader_skip(&reader, 8 * (uint64_t)package->slot_count);
	package->rows = reader.at;
	tally_reader_skip(&reader, 4 * (uint64_t)package->slot_count);
	package->columns = reader.at;
	tally_reader_skip(&reader, 4 * (uint64_t)package->column_count);
	package->offsets = reader.at;
	tally_reader_skip(&reader, 4 * (uint64_t)package->column_count * package->row_count);
	return !reader.failed;
}

void tally_dwarf_package_open(struct tally_dwarf_package *package, const char *object_path)
{
	*package = (struct tally_dwarf_package){ 0 };
	char path[PATH_MAX];
	int length = snprintf(path, sizeof(path), "%s.dwp", object_path);
	struct tally_object *object;
	if (length < 0 || (size_t)length >= sizeof(path) ||
	    tally_object_open(AT_FDCWD, path, &object, NULL) < 0)
		return;
	tally_dwarf_file_init(&package->file, object, true);
	tally_object_unref(object);
	if (!read_package_index(package))
		tally_dwarf_package_release(package);
}

void tally_dwarf_package_release(struct tally_dwarf_package *package)
{
	tally_dwarf_file_release(&package->file);
	*package = (struct tally_dwarf_package){ 0 };
}

static uint32_t u32_at(const struct tally_dwarf_package *package, const uint8_t *table,
		       uint64_t index)
{
	struct tally_reader reader;
	tally_reader_init(&reader, table + 4 * index, 4, package->file.swap);
	return tally_reader_u32(&reader);
}

/* Finds the row of a unit's id, counted from 1; 0 when it isn't there. */
static uint32_t find_row(const struct tally_dwarf_package *package, uint64_t id)
{
	uint32_t mask = package->slot_count - 1;
	uint32_t slot = (uint32_t)id & mask, step = ((uint32_t)(id >> 32) & mask) | 1;
	for (uint32_t tried = 0; tried < package->slot_count;
	     tried++, slot = (slot + step) & mask) {
		struct tally_reader reader;
		tally_reader_init(&reader, package->slots + 8 * (uint64_t)slot, 8,
				  package->file.swap);
		uint64_t its_id = tally_reader_u64(&reader);
		uint32_t row = u32_at(package, package->rows, slot);
		if (row == 0)
			return 0;
		if (its_id == id)
			return row <= package->row_count ? row : 0;
	}
	return 0;
}

static void find_in_package(struct tally_dwarf_split *split, struct tally_dwarf_scratch *scratch,
			    const struct tally_dwarf_unit *skeleton,
			    struct tally_dwarf_package *package)
{
	enum { INFO = 1, ABBREV = 3, STR_OFFSETS = 6, RNGLISTS = 8 };
	if (!package->file.object)
		return;
	uint32_t row = find_row(package, skeleton->dwo_id);
	if (row == 0)
		return;
	struct tally_dwarf_contribution contribution = { 0 };
	uint64_t info = UINT64_MAX;
	for (uint32_t column = 0; column < package->column_count; column++) {
		uint32_t offset = u32_at(package, package->offsets,
					 (uint64_t)(row - 1) * package->column_count + column);
		uint32_t kind = u32_at(package, package->columns, column);
		if (kind == INFO)
			info = offset;
		else if (kind == ABBREV)
			contribution.abbrev = offset;
		else if (kind == STR_OFFSETS)
			contribution.str_offsets = offset;
		else if (kind == RNGLISTS && package->version >= 5)
			contribution.rnglists = offset;
	}
	if (tally_dwarf_read_unit(&package->file, scratch, info, &contribution, skeleton,
				  &split->packed) &&
	    split->packed.dwo_id == skeleton->dwo_id)
		split->unit = &split->packed;
}

/* ---- .dwo files ---- */

static bool join(char path[PATH_MAX], const char *directory, size_t directory_length,
		 const char *name)
{
	int precision = PATH_MAX;
	if (directory_length < PATH_MAX)
		precision = (int)directory_length;
	int length;
	if (name[0] == '/' || directory_length == 0)
		length = snprintf(path, PATH_MAX, "%s", name);
	else
		length = snprintf(path, PATH_MAX, "%.*s/%s", precision, directory, name);
	return length > 0 && length < PATH_MAX;
}

/* Opens a .dwo file and keeps it if it has the skeleton's unit.  Returns 0 or -ENOMEM. */
static int try_dwo(struct tally_dwarf_split *split, struct tally_dwarf_scratch *scratch,
		   const struct tally_dwarf_unit *skeleton, const char *path)
{
	struct tally_object *object;
	if (tally_object_open(AT_FDCWD, path, &object, NULL) < 0)
		return 0;
	tally_dwarf_file_init(&split->file, object, true);
	tally_object_unref(object);
	if (tally_dwarf_read_units(&split->file, scratch, skeleton) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < split->file.units.count && !split->unit; i++)
		if (split->file.units.items[i].dwo_id == skeleton->dwo_id)
			split->unit = &split->file.units.items[i];
	if (split->unit)
		tally_dwarf_allow(scratch, &split->file);
	else
		tally_dwarf_split_release(split, scratch);
	return 0;
}

/* Looks for a skeleton's .dwo file.  Returns 0 or -ENOMEM. */
static int find_dwo(struct tally_dwarf_split *split, struct tally_dwarf_scratch *scratch,
		    const struct tally_dwarf_unit *skeleton, const char *object_path)
{
	const char *name = skeleton->dwo_name, *directory = skeleton->directory;
	const char *slash = strrchr(object_path, '/');
	size_t beside = 0;
	if (slash)
		beside = (size_t)(slash - object_path) + 1;
	const char *last = strrchr(name, '/');
	if (last)
		last++;
	else
		last = name;
	char path[PATH_MAX];
	if (join(path, directory, directory ? strnlen(directory, PATH_MAX) : 0, name) &&
	    try_dwo(split, scratch, skeleton, path) < 0)
		return -ENOMEM;
	/* The program and its .dwo files may have been moved together. */
	if (!split->unit && name[0] != '/' && join(path, object_path, beside, name) &&
	    try_dwo(split, scratch, skeleton, path) < 0)
		return -ENOMEM;
	if (!split->unit && last != name && join(path, object_path, beside, last))
		return try_dwo(split, scratch, skeleton, path);
	return 0;
}

int tally_dwarf_split_open(struct tally_dwarf_split *split, struct tally_dwarf_scratch *scratch,
			   const struct tally_dwarf_unit *skeleton,
			   struct tally_dwarf_package *package, const char *object_path)
{
	*split = (struct tally_dwarf_split){ 0 };
	find_in_package(split, scratch, skeleton, package);
	if (scratch->out_of_memory)
		return -ENOMEM;
	if (split->unit)
		return 0;
	int rc = find_dwo(split, scratch, skeleton, object_path);
	if (rc < 0)
		tally_dwarf_split_release(split, scratch);
	return rc;
}

void tally_dwarf_split_release(struct tally_dwarf_split *split, struct tally_dwarf_scratch *scratch)
{
	tally_dwarf_scratch_forget(scratch, &split->file);
	tally_dwarf_file_release(&split->file);
	split->unit = NULL;
}

/* ---- dwz's common file ---- */

struct supplement_link {
	const char *name;
	struct tally_build_id id;
};

/* Reads .gnu_debugaltlink, or .debug_sup of DWARF 5: a file's name and its build-id. */
static bool read_supplement_link(const struct tally_dwarf_file *file, struct supplement_link *link)
{
	struct tally_section section;
	struct tally_reader reader;
	uint64_t size;
	if (tally_object_section(file->object, ".gnu_debugaltlink", &section) && section.bytes) {
		tally_reader_init(&reader, section.bytes, section.size, file->swap);
		link->name = tally_reader_string(&reader);
		size = tally_reader_left(&reader);
	} else if (tally_object_section(file->object, ".debug_sup", &section) && section.bytes) {
		tally_reader_init(&reader, section.bytes, section.size, file->swap);
		uint16_t version = tally_reader_u16(&reader);
		bool is_supplement = tally_reader_u8(&reader);
		if (version != 5 || is_supplement)
			return false;
		link->name = tally_reader_string(&reader);
		size = tally_reader_uleb(&reader);
	} else {
		return false;
	}
	if (!size || size > TALLY_BUILD_ID_MAX)
		return false;
	const void *id = tally_reader_bytes(&reader, size);
	if (!id)
		return false;
	link->id.size = (uint8_t)size;
	memcpy(link->id.bytes, id, size);
	return true;
}

static struct tally_object *try_supplement(const struct supplement_link *link, const char *path)
{
	struct tally_object *object;
	if (tally_object_open(AT_FDCWD, path, &object, NULL) < 0)
		return NULL;
	if (tally_build_id_equal(&link->id, tally_object_build_id(object)))
		return object;
	/* In version 5 the link's checksum is that in the other file's .debug_sup. */
	struct tally_section section;
	if (tally_object_section(object, ".debug_sup", &section) && section.bytes &&
	    section.size >= link->id.size &&
	    memcmp(section.bytes + section.size - link->id.size, link->id.bytes, link->id.size) ==
		    0)
		return object;
	tally_object_unref(object);
	return NULL;
}

static struct tally_object *find_supplement(const struct tally_dwarf_file *file,
					    const struct supplement_link *link)
{
	char path[PATH_MAX], hex[2 * TALLY_BUILD_ID_MAX + 1];
	/* The file may have been opened through a symbolic link in another folder. */
	char *real = realpath(tally_object_path(file->object), NULL);
	const char *own = real;
	if (!own)
		own = tally_object_path(file->object);
	const char *slash = strrchr(own, '/');
	struct tally_object *found = NULL;
	if (join(path, own, slash ? (size_t)(slash - own) + 1 : 0, link->name))
		found = try_supplement(link, path);
	tally_build_id_format(&link->id, hex);
	/* libdebuginfod stores both files as ID/debuginfo. */
	int folder = 0;
	if (slash)
		folder = (int)(slash - own);
	while (folder > 0 && own[folder - 1] != '/')
		folder--;
	if (!found && folder &&
	    snprintf(path, sizeof(path), "%.*s%s/debuginfo", folder, own, hex) < PATH_MAX)
		found = try_supplement(link, path);
	free(real);
	snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%.2s/%s.debug", hex, hex + 2);
	if (found)
		return found;
	return try_supplement(link, path);
}

int tally_dwarf_open_supplement(struct tally_dwarf_file *file, struct tally_dwarf_scratch *scratch,
				const char **missing)
{
	struct supplement_link link = { 0 };
	*missing = NULL;
	if (!read_supplement_link(file, &link))
		return 0;
	struct tally_object *object = find_supplement(file, &link);
	if (!object) {
		*missing = link.name;
		return 0;
	}
	struct tally_dwarf_file *supplement = calloc(1, sizeof(*supplement));
	if (supplement) {
		tally_dwarf_file_init(supplement, object, false);
		file->supplement = supplement;
	}
	tally_object_unref(object);
	if (!supplement)
		return -ENOMEM;
	tally_dwarf_allow(scratch, supplement);
	return tally_dwarf_read_units(supplement, scratch, NULL);
}
