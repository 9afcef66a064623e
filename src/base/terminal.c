/* One function cleans text for all others: it replaces what is not plain by question marks, except
 * the control characters that its caller keeps.  Queries about the terminal follow. */
#include "base/terminal.h"

#include "base/characters.h"
#include "base/environment.h"
#include "base/extremes.h"

#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Copies `length` bytes of text; `kept` has the control characters that may stay. */
static size_t clean(const char *text, size_t length, const char *kept, char *out, size_t size)
{
	size_t n = 0;
	for (const char *end = text + length; text < end && n + 1 < size;) {
		size_t left = (size_t)(end - text), room = size - n - 1;
		size_t plain = tally_plain_ascii(text, tally_min_u64(left, room));
		if (plain) {
			memmove(out + n, text, plain);
			n += plain;
			text += plain;
			continue;
		}
		uint32_t c = 0;
		unsigned bytes = tally_character_decode(text, &c);
		bool is_whole = bytes && left >= bytes;
		bool is_kept = is_whole && (tally_character_is_plain(c) ||
					    (c && c < ' ' && strchr(kept, (int)c)));
		if (is_kept && n + bytes >= size)
			break;
		if (is_kept) {
			memmove(out + n, text, bytes);
			n += bytes;
		} else {
			out[n++] = '?';
		}
		text += is_whole ? bytes : 1;
	}
	if (size)
		out[n] = '\0';
	return n;
}

void tally_terminal_clean(const char *text, char *out, size_t size)
{
	clean(text, strlen(text), "\n\t", out, size);
}

void tally_terminal_clean_name(const char *name, char *out, size_t size)
{
	clean(name, strlen(name), "", out, size);
}

void tally_put_name_bytes(struct tally_buffer *out, const char *name, size_t length)
{
	char *room = tally_buffer_room(out, length);
	if (room)
		out->length += clean(name, length, "", room, length + 1);
}

void tally_put_name(struct tally_buffer *out, const char *name)
{
	if (name)
		tally_put_name_bytes(out, name, strlen(name));
}

static void clean_from(struct tally_buffer *out, size_t start, const char *kept)
{
	if (out->length <= start)
		return;
	char *text = out->bytes + start;
	size_t length = out->length - start;
	out->length = start + clean(text, length, kept, text, length + 1);
}

void tally_clean_name_from(struct tally_buffer *out, size_t start)
{
	clean_from(out, start, "");
}

void tally_clean_line_from(struct tally_buffer *out, size_t start)
{
	clean_from(out, start, "\t");
}

void tally_put_name_right(struct tally_buffer *out, const char *name, size_t width)
{
	struct tally_buffer text = { 0 };
	tally_put_name(&text, name);
	for (size_t blanks = text.length; blanks < width; blanks++)
		tally_buffer_char(out, ' ');
	tally_buffer_append(out, tally_buffer_string(&text), text.length);
	out->failed |= text.failed;
	tally_buffer_release(&text);
}

bool tally_terminal_knows_escapes(int fd)
{
	const char *term = tally_environment("TERM");
	return term && *term && strcmp(term, "dumb") != 0 && isatty(fd);
}

bool tally_terminal_colours(int fd)
{
	const char *no = tally_environment("NO_COLOR");
	return !(no && *no) && tally_terminal_knows_escapes(fd);
}

bool tally_terminal_is_utf8(void)
{
	static bool is_set; /* state of the process, as the locale is */
	if (!is_set)
		setlocale(LC_CTYPE, "");
	is_set = true;
	return !strcmp(nl_langinfo(CODESET), "UTF-8");
}

bool tally_terminal_groups_digits(int fd)
{
	static const char *const variables[] = { "LC_ALL", "LC_NUMERIC", "LANG" };
	const char *name = NULL;
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		if (!name || !*name)
			name = tally_environment(variables[i]);
	if (!name || !*name || !strcmp(name, "POSIX") || !strcmp(name, "C"))
		return false;
	return strncmp(name, "C.", 2) != 0 && isatty(fd);
}

unsigned tally_terminal_columns(int fd, unsigned otherwise)
{
	struct winsize size;
	if (!ioctl(fd, TIOCGWINSZ, &size) && size.ws_col)
		return size.ws_col;
	const char *text = tally_environment("COLUMNS");
	if (!text || atoi(text) <= 0)
		return otherwise;
	return (unsigned)atoi(text);
}

void tally_say(const char *format, ...)
{
	struct tally_buffer line = { 0 };
	va_list args;
	va_start(args, format);
	tally_buffer_vprintf(&line, format, args);
	va_end(args);
	tally_clean_name_from(&line, 0);
	tally_buffer_char(&line, '\n');
	fputs(line.failed ? "out of memory\n" : tally_buffer_string(&line), stderr);
	tally_buffer_release(&line);
}
