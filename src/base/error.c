/* Formats messages and hints into the error's fixed arrays, and cleans them afterwards, since their
 * arguments may come from outside. */
#include "base/error.h"

#include "base/terminal.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Names in a message can't control a terminal.  They begin no lines either: only the format does. */
static void put(char *text, size_t size, const char *format, va_list args)
{
	vsnprintf(text, size, format, args);
	if (strchr(format, '\n'))
		tally_terminal_clean(text, text, size);
	else
		tally_terminal_clean_name(text, text, size);
}

int tally_error_set(struct tally_error *err, int code, const char *format, ...)
{
	if (!err)
		return code;
	va_list args;
	va_start(args, format);
	put(err->message, sizeof(err->message), format, args);
	va_end(args);
	err->code = code;
	err->position = TALLY_NO_POSITION;
	err->hint[0] = '\0';
	return code;
}

void tally_error_hint(struct tally_error *err, const char *format, ...)
{
	if (!err)
		return;
	va_list args;
	va_start(args, format);
	put(err->hint, sizeof(err->hint), format, args);
	va_end(args);
}

const char *tally_errno_text(int code)
{
	const char *text = strerrordesc_np(code < 0 ? -code : code);
	return tally_text_or(text, "unknown error");
}
