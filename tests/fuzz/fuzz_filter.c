/* A filter, then (after the first NUL) a record.  Any text gives a program that reads only the
 * record, or an error whose position is in the text. */
#include "fuzz.h"

#include "filter/filter.h"

#include <stdlib.h>
#include <string.h>

static const struct tally_filter_field filter_fields[] = {
	{ "pid", 4, 4, true, TALLY_FILTER_NUMBER },
	{ "flags", 8, 8, false, TALLY_FILTER_NUMBER },
	{ "b", 16, 1, false, TALLY_FILTER_NUMBER },
	{ "s", 18, 2, true, TALLY_FILTER_NUMBER },
	{ "comm", 20, 8, false, TALLY_FILTER_STRING },
	{ "name", 28, 4, false, TALLY_FILTER_DYNAMIC_STRING },
	{ "mask", 32, 4, false, TALLY_FILTER_CPUMASK },
	{ "list", 36, 12, false, TALLY_FILTER_OTHER },
};

static void run(const char *text, const uint8_t *record, size_t size)
{
	const struct tally_filter_fields fields = {
		filter_fields, sizeof(filter_fields) / sizeof(filter_fields[0]), 70
	};
	const struct tally_filter_context context = { .cpu = 65, .comm = "fuzz" };
	struct tally_filter_error error;
	long needed = tally_filter_compile(text, &fields, NULL, 0, &error);
	if (needed < 0) {
		if (needed != -22 || error.position > strlen(text) || !error.reason[0])
			abort();
		return;
	}
	/* exact size, so that the sanitizer sees reads beyond it */
	struct tally_filter *filter = malloc((size_t)needed);
	if (!filter)
		return;
	if (tally_filter_compile(text, &fields, filter, (size_t)needed, NULL) != needed)
		abort();
	tally_filter_match(filter, record, size, &context);
	free(filter);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const uint8_t *nul = size ? memchr(bytes, 0, size) : NULL;
	size_t length = nul ? (size_t)(nul - bytes) : size,
	       record_size = nul ? size - length - 1 : 0;
	char *text = strndup((const char *)bytes, length);
	uint8_t *record = malloc(record_size ? record_size : 1);
	if (text && record) {
		if (record_size)
			memcpy(record, nul + 1, record_size);
		run(text, record, record_size);
	}
	free(text);
	free(record);
	return 0;
}
