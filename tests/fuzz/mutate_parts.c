/* JIT dumps, lists of lines (perf maps, kallsyms), and folders of files. */
#include "folder.h"
#include "mutate.h"

#include <string.h>

/* ---- JIT dumps ----------------------------------------------------------- */

enum {
	JIT_MAGIC = 0x4a695444,
	JIT_HEADER = 40,
	JIT_SIZE_AT = 8, /* of the header, in the header */
	JIT_RECORD = 16, /* type, size, time */
};

static bool take_jit_apart(struct mutation *mutation, struct bytes input, struct pieces *out)
{
	*out = (struct pieces){ 0 };
	if (input.size < JIT_HEADER)
		return false;
	mutation->swap = false;
	mutation->swap = mutate_get(mutation, input.at, 4) != JIT_MAGIC;
	if (mutate_get(mutation, input.at, 4) != JIT_MAGIC)
		return false;
	for (size_t at = 0, size; at < input.size; at += size) {
		size = input.size - at;
		if (size >= JIT_RECORD) {
			uint64_t meant = mutate_get(mutation,
						    input.at + at + (at ? 4 : JIT_SIZE_AT), 4);
			size = meant >= JIT_RECORD && meant <= size ? (size_t)meant : size;
		}
		pieces_add(mutation, out,
			   (struct piece){ mutate_copy(mutation, input.at + at, size), 0, false });
	}
	return true;
}

struct bytes mutate_jit_dump(struct mutation *mutation, struct bytes input, struct bytes other)
{
	struct pieces pieces, others;
	bool has_other = other.size && take_jit_apart(mutation, other, &others);
	if (!take_jit_apart(mutation, input, &pieces))
		return (struct bytes){ 0 };
	struct piece head = pieces.items[0];
	struct pieces records = { pieces.items + 1, pieces.count - 1, pieces.count - 1 };
	for (size_t turns = 1 + mutate_random(mutation, 3); turns-- > 0;) {
		if (!records.count || mutate_once_in(mutation, 3)) {
			pieces_shuffle(mutation, &records, has_other ? &others : NULL);
			continue;
		}
		struct piece *piece = &records.items[mutate_random(mutation, records.count)];
		piece->bytes = mutate_bytes(mutation, piece->bytes);
		if (piece->bytes.size >= JIT_RECORD && !mutate_once_in(mutation, 8))
			mutate_put(mutation, piece->bytes.at + 4, 4, piece->bytes.size);
	}
	if (mutate_once_in(mutation, 12))
		mutate_number(mutation, head.bytes);
	return mutate_join(mutation, head.bytes, pieces_join(mutation, &records));
}

/* ---- lines --------------------------------------------------------------- */

static bool take_lines_apart(struct mutation *mutation, struct bytes input, struct pieces *out)
{
	*out = (struct pieces){ 0 };
	/* "7f00 80 name", "ffffffff81000000 T _text" */
	if (input.size < 8 || !strchr("0123456789abcdef", input.at[0] ? input.at[0] : '!') ||
	    !memchr(input.at, '\n', input.size))
		return false;
	for (size_t at = 0, size; at < input.size; at += size) {
		const uint8_t *end = memchr(input.at + at, '\n', input.size - at);
		size = end ? (size_t)(end + 1 - (input.at + at)) : input.size - at;
		pieces_add(mutation, out,
			   (struct piece){ mutate_copy(mutation, input.at + at, size), 0, false });
	}
	return true;
}

struct bytes mutate_lines(struct mutation *mutation, struct bytes input, struct bytes other)
{
	struct pieces lines, others;
	bool has_other = other.size && take_lines_apart(mutation, other, &others);
	if (!take_lines_apart(mutation, input, &lines))
		return (struct bytes){ 0 };
	if (mutate_once_in(mutation, 2)) {
		pieces_shuffle(mutation, &lines, has_other ? &others : NULL);
	} else {
		struct piece *line = &lines.items[mutate_random(mutation, lines.count)];
		line->bytes = mutate_bytes(mutation, line->bytes);
	}
	return pieces_join(mutation, &lines);
}

/* ---- folders ------------------------------------------------------------- */

static struct folder_file *any_file(struct mutation *mutation, struct folder *folder)
{
	/* half of the time the recording, which is first */
	size_t which = mutate_once_in(mutation, 2) ? 0 : mutate_random(mutation, folder->count);
	return &folder->files[which];
}

/* Finds a file of the same name, or any. */
static struct bytes file_like(struct mutation *mutation, const struct folder *folder,
			      const char *name)
{
	const struct folder_file *file = NULL;
	for (size_t i = 0; i < folder->count; i++)
		if (!strcmp(folder->files[i].name, name))
			file = &folder->files[i];
	if (!file || mutate_once_in(mutation, 8))
		file = &folder->files[mutate_random(mutation, folder->count)];
	return (struct bytes){ (uint8_t *)file->bytes, file->size };
}

static struct bytes write_folder(struct mutation *mutation, const struct folder *folder)
{
	size_t size = folder_bytes(folder);
	struct bytes out = { mutate_alloc(mutation, size), size };
	folder_write(folder, out.at);
	return out;
}

struct bytes mutate_folder(struct mutation *mutation, struct bytes input, struct bytes other)
{
	struct folder folder, others;
	if (!folder_read(input.at, input.size, &folder) || !folder.count || folder.is_plain)
		return (struct bytes){ 0 };
	bool has_other = other.size && folder_read(other.at, other.size, &others) && others.count;
	folder.views = mutate_random(mutation, UINT64_MAX);
	struct folder_file *file = any_file(mutation, &folder);
	struct bytes bytes = { (uint8_t *)file->bytes, file->size };
	struct bytes from = { 0 };
	if (mutate_once_in(mutation, 50) && folder.count > 1) {
		*file = folder.files[--folder.count];
		return write_folder(mutation, &folder);
	}
	if (has_other)
		from = file_like(mutation, &others, file->name);
	bytes = has_other && mutate_once_in(mutation, 4) ? from : mutate_any(mutation, bytes, from);
	file->bytes = bytes.at;
	file->size = bytes.size;
	return write_folder(mutation, &folder);
}
