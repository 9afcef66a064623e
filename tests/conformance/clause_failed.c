/* Reports a failed check of a clause. */
#include "suite.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int clause_failed(const char *file, int line, const char *format, ...)
{
	char text[512];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	/* Writes without stdio: several tasks may report, and a killed task's report must not stay
	 * in a buffer. */
	const char *name = strrchr(file, '/');
	dprintf(STDOUT_FILENO, "# %s:%d: %s\n", name ? name + 1 : file, line, text);
	return CLAUSE_FAILED;
}
