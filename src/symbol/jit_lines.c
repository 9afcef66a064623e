#include "symbol/jit_lines.h"

#include "base/vector.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Where perf has the code in the file that it makes of it, and so what JITs add. */
enum { ELF_HEADER_BYTES = 0x40, ENTRY_BYTES = 16, LINES_MAX = 1 << 24 };

/* "the same as before", an addition to the format of 2021. */
static const char SAME_FILE[] = "\xff";

/* UTF-8 without control characters: names that were overwritten hardly ever are. */
static bool is_readable(const char *text)
{
	const uint8_t *at = (const uint8_t *)text;
	while (*at) {
		unsigned more = *at < 0x80 ? 0 : *at >> 5 == 6 ? 1 : *at >> 4 == 14 ? 2 : *at >> 3 == 30 ? 3 : 4;
		if (more == 4 || *at < 0x20 || *at == 0x7f)
			return false;
		for (at++; more; more--, at++)
			if (*at >> 6 != 2)
				return false;
	}
	return at != (const uint8_t *)text;
}

/* "JS:*name FILE:LINE:COLUMN", as V8 calls its functions; NULL: no such name, or no memory. */
static char *file_of_name(const char *name)
{
	const char *start = strchr(name, ' '), *end = name + strlen(name);
	for (int numbers = 0; start && numbers < 2; numbers++) {
		const char *digits = end;
		while (digits > start && isdigit((unsigned char)digits[-1]))
			digits--;
		if (digits == end || digits == start || digits[-1] != ':')
			return NULL;
		end = digits - 1;
	}
	return start && end > start + 1 ? strndup(start + 1, (size_t)(end - start) - 1) : NULL;
}

/* The entry behind a name that can't be read: by an address in the code and a line that may be one. */
static bool find_next(struct tally_reader *reader, size_t from, uint64_t address, uint64_t size)
{
	size_t end = (size_t)(reader->end - reader->start);
	for (size_t at = from + 1; at + ENTRY_BYTES < end; at++) {
		tally_reader_seek(reader, at);
		uint64_t offset = tally_reader_u64(reader) - address;
		uint32_t line = tally_reader_u32(reader);
		if (offset <= size + ELF_HEADER_BYTES && line < LINES_MAX) {
			tally_reader_seek(reader, at);
			return true;
		}
	}
	return false;
}

/* What stands for file names that can't be read: made once for a function. */
static const char *made_file(struct tally_jit_dump *dump, const char *name, bool *is_made)
{
	char *file = *is_made ? NULL : file_of_name(name);
	if (file && tally_vector_push(&dump->files, file) < 0) {
		free(file);
		file = NULL;
	}
	*is_made = true;
	return file;
}

int tally_jit_lines_read(struct tally_jit_dump *dump, struct tally_reader *reader, const struct tally_jit_function *function,
			 uint64_t address)
{
	uint64_t count = tally_reader_u64(reader);
	const char *last = NULL, *made = NULL;
	bool is_made = false;
	for (uint64_t i = 0; i < count && tally_reader_left(reader) > ENTRY_BYTES; i++) {
		struct tally_jit_line line = { .offset = tally_reader_u64(reader) - address };
		line.line = tally_reader_u32(reader);
		line.column = tally_reader_u32(reader);
		size_t name_at = tally_reader_offset(reader);
		line.file = tally_reader_string(reader);
		bool is_same = line.file && !strcmp(line.file, SAME_FILE);
		if (line.offset > function->size + ELF_HEADER_BYTES || !line.file)
			break;
		if (is_same) {
			line.file = last;
		} else if (!is_readable(line.file)) {
			if (!is_made)
				made = made_file(dump, function->name, &is_made);
			line.file = made;
			if (!find_next(reader, name_at, address, function->size))
				i = count - 1;
		}
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
