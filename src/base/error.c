#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int tally_error_set(struct tally_error *err, int code, const char *format, ...)
{
	if (!err)
		return code;
	va_list args;
	va_start(args, format);
	vsnprintf(err->message, sizeof(err->message), format, args);
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
	vsnprintf(err->hint, sizeof(err->hint), format, args);
	va_end(args);
}

const char *tally_errno_text(int code)
{
	const char *text = strerrordesc_np(code < 0 ? -code : code);
	return text ? text : "unknown error";
}
