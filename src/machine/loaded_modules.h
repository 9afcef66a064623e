/* The loaded kernel modules: proc(5), /proc/modules.  The parser takes text; it keeps nothing
 * between calls. */
#ifndef TALLY_MACHINE_LOADED_MODULES_H
#define TALLY_MACHINE_LOADED_MODULES_H

#include <stddef.h>
#include <stdint.h>

enum { TALLY_LOADED_MODULE_NAME_BYTES = 64 };

struct tally_loaded_module {
	char name[TALLY_LOADED_MODULE_NAME_BYTES]; /* "nf_tables" */
	uint64_t start, end; /* end: the first byte behind the module, or the next module's start */
};

struct tally_loaded_modules {
	/* by start; the caller frees it with tally_vector_release() */
	struct tally_loaded_module *items;
	size_t count, capacity;
};

/* Adds the modules of a NUL-terminated text, except those whose addresses the kernel hides from the
 * reader (kptr_restrict).  The kernel gives the size of all of a module's memory, which need not be
 * in one piece: so an end is cut where another module begins.  Returns 0 or -ENOMEM. */
int tally_loaded_modules_parse(const char *text, struct tally_loaded_modules *out);

#endif
