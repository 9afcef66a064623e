/* Resolves a path's links, opens it part by part, and checks the modes on the way.  Then it reads
 * the whole file and notes where lines begin.  A file that can't be read is remembered as well. */
#include "annotate/annotate_internal.h"

#include "base/characters.h"
#include "base/extremes.h"
#include "base/input_limits.h"
#include "base/vector.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TAB = 8, LINE_COLUMNS_MAX = 2000 };

/* ---- who may read a file -------------------------------------------------- */

static bool is_below(const char *path, const char *folder)
{
	size_t length = strlen(folder);
	return !strncmp(path, folder, length) && (length == 1 || path[length] == '/');
}

/* Returns the length of `folder`, made absolute, if the path is below it; or 0. */
static size_t length_above(const char *path, const char *folder)
{
	if (!folder)
		return 0;
	char *real = realpath(folder, NULL);
	size_t length = 0;
	if (real && is_below(path, real))
		length = strlen(real);
	free(real);
	return length;
}

/* Returns how many bytes of the path name folders whose modes don't matter; SIZE_MAX: the file's
 * mode doesn't matter either. */
static size_t trusted_length(const struct tally_source_files *files, const char *path)
{
	size_t here = length_above(path, "."), root = length_above(path, files->root);
	if (files->is_for_terminal || length_above(path, files->shared))
		return SIZE_MAX;
	return (size_t)tally_max_u64(here, root);
}

/* Opens one part of a path.  A device isn't opened: that alone may do something, as with a
 * watchdog. */
static int open_part(int folder, const char *name, bool is_file)
{
	struct stat status;
	if (!is_file)
		return openat(folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	errno = EINVAL;
	if (!S_ISREG(status.st_mode))
		return -1;
	return openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

/* Opens a path without links, part by part, so that each folder whose mode is checked is one that
 * leads to the file.  Returns the descriptor; -EACCES if the viewer may not read it, -EPERM if
 * other users may not, or another -errno. */
static int open_readable_by_all(const char *path, size_t trusted)
{
	int at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const char *name = path + 1;
	for (bool is_file = false; at >= 0 && !is_file;) {
		char part[NAME_MAX + 1];
		struct stat status;
		size_t length = strcspn(name, "/"), end = (size_t)(name - path) + length;
		is_file = !name[length];
		if (snprintf(part, sizeof(part), "%.*s", (int)length, name) >= (int)sizeof(part)) {
			close(at);
			return -ENAMETOOLONG;
		}
		int next = open_part(at, part, is_file), code = errno;
		close(at);
		at = next;
		errno = code;
		name += length + !is_file;
		if (at < 0 || end <= trusted)
			continue;
		if (fstat(at, &status) < 0 || !(status.st_mode & (is_file ? S_IROTH : S_IXOTH))) {
			close(at);
			return -EPERM;
		}
	}
	if (at < 0)
		return -errno;
	return at;
}

static int open_source(const struct tally_source_files *files, const char *path)
{
	char *real = realpath(path, NULL);
	if (!real)
		return -errno;
	int fd = open_readable_by_all(real, trusted_length(files, real));
	free(real);
	return fd;
}

/* ---- reading ------------------------------------------------------------- */

/* Returns 0 or -errno, as open_readable_by_all(). */
static int read_regular(struct tally_source_files *files, struct tally_source_file *file,
			const char *path)
{
	struct stat status;
	int fd = open_source(files, path);
	if (fd < 0)
		return fd;
	char *room = NULL;
	file->time_ns = 0;
	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
		goto out;
	if ((uint64_t)status.st_size > tally_input_limit(TALLY_INPUT_SOURCE)) {
		tally_input_note(TALLY_INPUT_SOURCE, path);
		goto out;
	}
	room = tally_buffer_room(&file->text, (size_t)status.st_size + 1);
	while (room && file->text.length < (size_t)status.st_size) {
		ssize_t got = read(fd, room + file->text.length,
				   (size_t)status.st_size - file->text.length);
		if (got <= 0)
			break;
		file->text.length += (size_t)got;
	}
	file->time_ns = (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec;
out:
	close(fd);
	if (!room)
		return -EINVAL;
	return 0;
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
		result = read_regular(files, &file, below);
	if (result < 0 && result != -EPERM)
		result = read_regular(files, &file, path);
	file.error = result;
	if (!result)
		find_lines(&file);
	if (result == -EPERM && !files->left_out_count++)
		files->left_out = strdup(path);
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
		unsigned next = column + tally_begins_character(text[i]);
		if (c == '\t')
			next = column + TAB - column % TAB;
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
		for (; text && i < length && (text[i] == ' ' || text[i] == '\t'); i++) {
			if (text[i] == '\t')
				column += TAB - column % TAB;
			else
				column++;
		}
		if (text && i < length && column < least)
			least = column;
	}
	if (least == UINT_MAX)
		return 0;
	return least;
}

void tally_source_files_release(struct tally_source_files *files)
{
	for (size_t i = 0; i < files->files.count; i++) {
		free(files->files.items[i].path);
		free(files->files.items[i].starts);
		tally_buffer_release(&files->files.items[i].text);
	}
	tally_vector_release(&files->files);
	free(files->left_out);
}
