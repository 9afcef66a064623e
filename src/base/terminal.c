#include "base/terminal.h"

#include "base/environment.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

void tally_terminal_clean(const char *text, char *out, size_t size)
{
	size_t n = 0;
	unsigned more = 0; /* missing bytes of the present UTF-8 character */
	for (; *text && n + 1 < size; text++) {
		unsigned char c = (unsigned char)*text;
		bool continues = more && (c & 0xc0) == 0x80;
		/* C1 controls: 0xc2 0x80…0x9f, and, for an 8-bit terminal, such bytes outside of
		 * valid UTF-8. */
		bool c1 = c >= 0x80 && c < 0xa0 &&
			  (!continues || (unsigned char)out[n - 1] == 0xc2);
		bool control = (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f;
		if (c1 && continues)
			n--;
		out[n++] = control || c1 ? '?' : (char)c;
		if (continues)
			more--;
		else if (c >= 0xf0 && c < 0xf8)
			more = 3;
		else if (c >= 0xe0 && c < 0xf0)
			more = 2;
		else
			more = c >= 0xc2 && c < 0xe0;
	}
	if (size)
		out[n] = '\0';
}

void tally_terminal_clean_name(const char *name, char *out, size_t size)
{
	tally_terminal_clean(name, out, size);
	for (; size && *out; out++)
		if (*out == '\n' || *out == '\t')
			*out = '?';
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

unsigned tally_terminal_columns(int fd, unsigned otherwise)
{
	struct winsize size;
	if (!ioctl(fd, TIOCGWINSZ, &size) && size.ws_col)
		return size.ws_col;
	const char *text = tally_environment("COLUMNS");
	int value = text ? atoi(text) : 0;
	return value > 0 ? (unsigned)value : otherwise;
}
