/* A simulated CPU's text.  Any text gives either a valid geometry, which writes a text that parses
 * to the same geometry, or an error on one of its lines. */
#include "fuzz.h"

#include "valgrind/vsim_geometry.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vsim_geometry geometry, again;
	struct vsim_geometry_error error;
	char text[VSIM_GEOMETRY_TEXT];
	/* exact size, so that the sanitizer sees reads beyond it */
	char *exact = malloc(size ? size : 1);
	if (!exact)
		return 0;
	memcpy(exact, data, size);
	unsigned lines = 1;
	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	if (vsim_geometry_parse(exact, size, &geometry, &error)) {
		if (!error.message[0] || error.line > lines)
			abort();
	} else {
		size_t length = vsim_geometry_format(&geometry, text, sizeof(text));
		if (vsim_geometry_problem(&geometry) || length >= sizeof(text) ||
		    vsim_geometry_parse(text, length, &again, &error) ||
		    memcmp(&geometry, &again, sizeof(geometry)))
			abort();
	}
	free(exact);
	return 0;
}
