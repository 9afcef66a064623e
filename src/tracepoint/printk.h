/* tracefs' printk_formats: the kernel's strings that events point at, by address.
 *
 *     0xffffffff82522880 : "mas_find"
 *
 * Pure; untrusted text.  The table doesn't change after parsing.
 */
#ifndef TALLY_TRACEPOINT_PRINTK_H
#define TALLY_TRACEPOINT_PRINTK_H

#include "base/arena.h"

#include <stddef.h>
#include <stdint.h>

struct tally_printk_string {
	uint64_t address;
	/* without its quotes and a last \n; other escapes as they stand, as in perf */
	const char *text;
};

struct tally_printk {
	struct tally_arena arena;
	struct tally_printk_string *strings; /* by address */
	size_t count;
};

/* Parses the file; lines of another shape are passed over.  0 or -ENOMEM.  Zero-initialised is
 * empty. */
int tally_printk_parse(struct tally_printk *printk, const char *text, size_t length);

/* The string at exactly `address`, or NULL.  `printk` is a struct tally_printk: fits struct
 * tally_print_names. */
const char *tally_printk_find(void *printk, uint64_t address);

void tally_printk_release(struct tally_printk *printk);

#endif
