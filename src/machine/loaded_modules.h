/* The kernel modules that are loaded: proc(5), /proc/modules.  The parser takes text; nothing here
 * is kept between calls. */
#ifndef TALLY_MACHINE_LOADED_MODULES_H
#define TALLY_MACHINE_LOADED_MODULES_H

#include <stddef.h>
#include <stdint.h>

enum { TALLY_LOADED_MODULE_NAME_BYTES = 64 };

struct tally_loaded_module {
	char name[TALLY_LOADED_MODULE_NAME_BYTES]; /* "nf_tables" */
	uint64_t start, end; /* end: first byte behind, or where the next one starts */
};

struct tally_loaded_modules {
	struct tally_loaded_module *items; /* by start; to be freed with tally_vector_release() */
	size_t count, capacity;
};

/* Adds the modules of a text, which is terminated; those whose addresses the reader may not know
 * (kptr_restrict) are not in it.  The size that the kernel tells is that of all a module's memory,
 * which need not lie in one piece: an end is cut where another begins.  0 or -ENOMEM. */
int tally_loaded_modules_parse(const char *text, struct tally_loaded_modules *out);

#endif
