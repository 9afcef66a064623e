#include "machine/loaded_modules.h"

#include "base/vector.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_start(const void *a_, const void *b_)
{
	const struct tally_loaded_module *a = a_, *b = b_;
	return a->start != b->start ? (a->start > b->start) - (a->start < b->start)
				    : strcmp(a->name, b->name);
}

/* Adds the module of "nf_tables 303104 3 nft_ct,nft_chain_nat, Live 0xffffffffc0a5d000 (E)". */
static int take_line(const char *line, size_t length, struct tally_loaded_modules *out)
{
	struct tally_loaded_module module;
	int read = 0;
	uint64_t size;
	if (sscanf(line, "%63s %" SCNu64 " %*s %*s %*s 0x%" SCNx64 "%n", module.name, &size,
		   &module.start, &read) != 3 ||
	    (size_t)read > length || /* sscanf went on into the next line */
	    !module.start || !size || module.start + size < module.start)
		return 0;
	module.end = module.start + size;
	return tally_vector_push(out, module);
}

int tally_loaded_modules_parse(const char *text, struct tally_loaded_modules *out)
{
	for (const char *line = text; *line; line += *line == '\n') {
		size_t length = strcspn(line, "\n");
		if (take_line(line, length, out) < 0)
			return -ENOMEM;
		line += length;
	}
	if (out->count)
		qsort(out->items, out->count, sizeof(*out->items), by_start);
	for (size_t i = 0; i + 1 < out->count; i++)
		if (out->items[i].end > out->items[i + 1].start)
			out->items[i].end = out->items[i + 1].start;
	return 0;
}
