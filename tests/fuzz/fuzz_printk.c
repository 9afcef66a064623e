/* printk_formats: each format is found by its address, and by no other. */
#include "fuzz.h"

#include "tracepoint/tracepoint.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tally_printk printk;
	char *text = malloc(size ? size : 1); /* no NUL follows */
	if (!text)
		abort();
	memcpy(text, data, size);
	if (tally_printk_parse(&printk, text, size) == 0) {
		for (size_t i = 0; i < printk.count; i++) {
			const char *found = tally_printk_find(&printk, printk.strings[i].address);
			if (!found || strlen(found) > size ||
			    (i && printk.strings[i - 1].address > printk.strings[i].address))
				abort();
		}
		tally_printk_release(&printk);
	}
	free(text);
	return 0;
}
