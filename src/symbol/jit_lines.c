/* Lines of a JIT's dump, and a repair of V8's file names.
 *
 * V8 of Node.js 16 to 20 copies the name of the function's script, frees the copy, and then writes
 * it, entry by entry. malloc has overwritten the name's beginning, as a rule two words, with
 * anything, NULs included; only the length is right.  (Names of Node's own scripts are not copied,
 * and are whole.  A copy sometimes stays whole as well.)
 *
 * So a name's length comes from where the next entry begins, which is recognised by an address
 * inside the code.  A damaged name is taken to be that of the function's own script, which ends the
 * function's name ("JS:*name FILE:LINE:COLUMN"), if it has the same length.  Otherwise there is no
 * file, and so no line: a wrong one would be worse.  (For code inlined from another script V8 also
 * writes the function's own script, damaged or not.  Those lines are wrong, and nothing in the dump
 * shows it.)
 */
#include "symbol/jit_lines.h"

#include "base/vector.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* perf puts code behind an ELF header of this size, so JITs add it to the lines' addresses. */
enum { ELF_HEADER_BYTES = 0x40, ENTRY_BYTES = 16, LINES_MAX = 1 << 24 };

/* Means "the same as before"; the format has it since 2021. */
static const char SAME_FILE[] = "\xff";

/* True for UTF-8 without control characters.  Overwritten names hardly ever pass. */
static bool is_readable(const char *text)
{
	const uint8_t *at = (const uint8_t *)text;
	while (*at) {
		unsigned more = *at < 0x80       ? 0
				: *at >> 5 == 6  ? 1
				: *at >> 4 == 14 ? 2
				: *at >> 3 == 30 ? 3
						 : 4;
		if (more == 4 || *at < 0x20 || *at == 0x7f)
			return false;
		for (at++; more; more--, at++)
			if (*at >> 6 != 2)
				return false;
	}
	return at != (const uint8_t *)text;
}

/* Returns where the file ends in "JS:*name FILE:LINE:COLUMN", V8's form of a function's name; NULL
 * for other names. */
static const char *end_of_file(const char *name)
{
	const char *end = name + strlen(name);
	for (int numbers = 0; numbers < 2; numbers++) {
		const char *digits = end;
		while (digits > name && isdigit((unsigned char)digits[-1]))
			digits--;
		if (digits == end || digits == name || digits[-1] != ':')
			return NULL;
		end = digits - 1;
	}
	return memchr(name, ' ', (size_t)(end - name)) ? end : NULL;
}

struct walk {
	struct tally_jit_dump *dump;
	struct tally_reader *reader;
	const struct tally_jit_function *function;
	uint64_t address;
	const char *file_end; /* in the function's name; NULL: the name is not V8's */
	const char *own;      /* the function's own file, once it was used */
};

static bool is_entry(struct walk *walk, size_t at)
{
	if (at + ENTRY_BYTES >= (size_t)(walk->reader->end - walk->reader->start))
		return false;
	tally_reader_seek(walk->reader, at);
	uint64_t offset = tally_reader_u64(walk->reader) - walk->address;
	return offset <= walk->function->size + ELF_HEADER_BYTES &&
	       tally_reader_u32(walk->reader) < LINES_MAX;
}

/* Finds where the entry behind the name at `from` begins; 0: not found. */
static size_t find_next(struct walk *walk, size_t from)
{
	const uint8_t *bytes = walk->reader->start;
	size_t end = (size_t)(walk->reader->end - bytes),
	       at = from + strlen((const char *)bytes + from) + 1;
	while (at + ENTRY_BYTES < end && (bytes[at - 1] || !is_entry(walk, at)))
		at++;
	return at + ENTRY_BYTES < end ? at : 0;
}

/* ---- files of V8's ------------------------------------------------------- */

/* Returns the function's own file if it can have this length; NULL otherwise, and without
 * memory. */
static const char *own_file(struct walk *walk, size_t length)
{
	struct tally_jit_dump *dump = walk->dump;
	const char *name = walk->function->name, *start = walk->file_end - length;
	if (walk->own && strlen(walk->own) == length)
		return walk->own;
	if (!length || (size_t)(walk->file_end - name) <= length || start[-1] != ' ')
		return NULL;
	char *file = strndup(start, length);
	if (file && tally_vector_push(&dump->files, file) < 0) {
		free(file);
		file = NULL;
	}
	walk->own = file;
	return file;
}

/* Returns the file that the bytes stand for; NULL: unknown. */
static const char *file_of_bytes(struct walk *walk, const char *bytes, size_t length)
{
	/* an overwritten name contains pointers, which have NULs */
	bool is_name = length >= sizeof(void *) && strlen(bytes) == length && is_readable(bytes);
	return is_name && strpbrk(bytes, "/:") ? bytes : own_file(walk, length);
}

/* ---- entries ------------------------------------------------------------- */

/* Gets the last entry's file.  Zeros may pad the record behind the name, and may also have
 * overwritten the name's end. */
static const char *last_file(struct walk *walk, size_t at)
{
	const char *bytes = (const char *)walk->reader->start + at;
	size_t room = (size_t)(walk->reader->end - walk->reader->start) - at, length = room;
	while (length && !bytes[length - 1])
		length--;
	for (size_t most = length + 2 * sizeof(uint64_t); length < room && length <= most;
	     length++) {
		const char *file = file_of_bytes(walk, bytes, length);
		if (file)
			return file;
	}
	return NULL;
}

/* Gets the file of an entry, whose name begins at `at`.  Returns false when what follows can't be
 * read. */
static bool read_file(struct walk *walk, size_t at, bool is_last, const char **file)
{
	const char *bytes = (const char *)walk->reader->start + at;
	bool is_whole = !walk->file_end && is_readable(bytes);
	if (walk->file_end && is_last) {
		*file = last_file(walk, at);
		return false;
	}
	size_t next = is_whole ? at + strlen(bytes) + 1 : find_next(walk, at);
	*file = is_whole                 ? bytes
		: walk->file_end && next ? file_of_bytes(walk, bytes, next - at - 1)
					 : NULL;
	tally_reader_seek(walk->reader, next);
	return next;
}

int tally_jit_lines_read(struct tally_jit_dump *dump, struct tally_reader *reader,
			 const struct tally_jit_function *function, uint64_t address)
{
	struct walk walk = { .dump = dump,
			     .reader = reader,
			     .function = function,
			     .address = address,
			     .file_end = end_of_file(function->name) };
	uint64_t count = tally_reader_u64(reader);
	const char *last = NULL;
	bool goes_on = true;
	for (uint64_t i = 0; i < count && goes_on && tally_reader_left(reader) > ENTRY_BYTES; i++) {
		struct tally_jit_line line = { .offset = tally_reader_u64(reader) - address };
		line.line = tally_reader_u32(reader);
		line.column = tally_reader_u32(reader);
		size_t name_at = tally_reader_offset(reader);
		line.file = tally_reader_string(reader);
		if (line.offset > function->size + ELF_HEADER_BYTES || !line.file)
			break;
		if (!strcmp(line.file, SAME_FILE))
			line.file = last;
		else
			goes_on = read_file(&walk, name_at, i + 1 == count, &line.file);
		last = line.file;
		if (tally_vector_push(&dump->lines, line) < 0)
			return -ENOMEM;
	}
	return 0;
}

void tally_jit_lines_put_back(struct tally_jit_dump *dump)
{
	for (size_t i = 0; i < dump->lines.count; i++)
		if (dump->lines.items[i].offset < ELF_HEADER_BYTES)
			return;
	for (size_t i = 0; i < dump->lines.count; i++)
		dump->lines.items[i].offset -= ELF_HEADER_BYTES;
}
