#include "annotate/source_text.h"

#include "base/vector.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SOURCE_BYTES_MAX = 32 << 20, TAB = 8, LINE_COLUMNS_MAX = 2000 };

/* O_NONBLOCK: the path may name a FIFO or a device, which must not block. */
static int read_regular(struct tally_source_file *file, const char *path)
{
	struct stat status;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	int result = fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) ||
				     status.st_size > SOURCE_BYTES_MAX
			     ? -EINVAL
			     : 0;
	char *room = result ? NULL : tally_buffer_room(&file->text, (size_t)status.st_size + 1);
	while (room && file->text.length < (size_t)status.st_size) {
		ssize_t got = read(fd, room + file->text.length,
				   (size_t)status.st_size - file->text.length);
		if (got <= 0)
			break;
		file->text.length += (size_t)got;
	}
	file->time_ns = result ? 0
			       : (int64_t)status.st_mtim.tv_sec * 1000000000 +
					 status.st_mtim.tv_nsec;
	close(fd);
	return room ? 0 : -EINVAL;
}

static void find_lines(struct tally_source_file *file)
{
	const char *text = file->text.bytes;
	size_t length = file->text.length;
	uint32_t count = 0, line = 0;
	for (size_t i = 0; i < length; i++)
		count += text[i] == '\n';
	count += length && text[length - 1] != '\n';
	file->starts = malloc(((size_t)count + 1) * sizeof(*file->starts));
	if (!file->starts)
		return;
	file->count = count;
	file->starts[0] = 0;
	for (size_t i = 0; i < length; i++)
		if (text[i] == '\n')
			file->starts[++line] = (uint32_t)i + 1;
	file->starts[count] = (uint32_t)length;
}

const struct tally_source_file *tally_source_file(struct tally_source_files *files,
						  const char *path)
{
	char below[PATH_MAX];
	for (size_t i = 0; i < files->files.count; i++)
		if (!strcmp(files->files.items[i].path, path))
			return &files->files.items[i];
	struct tally_source_file file = { .path = strdup(path) };
	if (!file.path)
		return NULL;
	int result = -ENOENT;
	if (files->root &&
	    snprintf(below, sizeof(below), "%s/%s", files->root, path) < (int)sizeof(below))
		result = read_regular(&file, below);
	if (result < 0)
		result = read_regular(&file, path);
	if (!result)
		find_lines(&file);
	if (tally_vector_push(&files->files, file) < 0) {
		free(file.path);
		free(file.starts);
		tally_buffer_release(&file.text);
		return NULL;
	}
	return &files->files.items[files->files.count - 1];
}

static const char *line_text(const struct tally_source_file *file, uint32_t line, size_t *length)
{
	if (!file || !line || line > file->count)
		return NULL;
	const char *text = file->text.bytes + file->starts[line - 1];
	*length = file->starts[line] - file->starts[line - 1];
	while (*length && (text[*length - 1] == '\n' || text[*length - 1] == '\r'))
		--*length;
	return text;
}

bool tally_source_line(const struct tally_source_file *file, uint32_t line, unsigned without,
		       struct tally_buffer *out)
{
	size_t length;
	const char *text = line_text(file, line, &length);
	unsigned column = 0;
	if (!text)
		return false;
	for (size_t i = 0; i < length && column < LINE_COLUMNS_MAX; i++) {
		unsigned char c = (unsigned char)text[i];
		unsigned next = c == '\t' ? column + TAB - column % TAB
					  : column + ((c & 0xc0) != 0x80);
		for (; c == '\t' && column < next; column++)
			if (column >= without)
				tally_buffer_char(out, ' ');
		if (c != '\t' && column >= without)
			tally_buffer_char(out, c < ' ' || c == 0x7f ? '?' : (char)c);
		column = next;
	}
	return true;
}

unsigned tally_source_indent(const struct tally_source_file *file, uint32_t first, uint32_t last)
{
	unsigned least = UINT_MAX;
	for (uint32_t line = first; line <= last && file && line <= file->count; line++) {
		size_t length, i = 0;
		const char *text = line_text(file, line, &length);
		unsigned column = 0;
		for (; text && i < length && (text[i] == ' ' || text[i] == '\t'); i++)
			column = text[i] == '\t' ? column + TAB - column % TAB : column + 1;
		if (text && i < length && column < least)
			least = column;
	}
	return least == UINT_MAX ? 0 : least;
}

void tally_source_files_release(struct tally_source_files *files)
{
	for (size_t i = 0; i < files->files.count; i++) {
		free(files->files.items[i].path);
		free(files->files.items[i].starts);
		tally_buffer_release(&files->files.items[i].text);
	}
	tally_vector_release(&files->files);
}
