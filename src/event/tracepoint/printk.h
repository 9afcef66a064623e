/* tracefs' printk_formats: strings of the kernel that events point to, by address.
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
	/* without its quotes and a final \n; other escapes are unresolved, as in perf */
	const char *text;
};

struct tally_printk {
	struct tally_arena arena;
	struct tally_printk_string *strings; /* sorted by address */
	size_t count;
};

/* Parses the file; skips lines of another form.  Returns 0 or -ENOMEM.  A zero-initialised table is
 * empty. */
int tally_printk_parse(struct tally_printk *printk, const char *text, size_t length);

/* Returns the string at exactly `address`, or NULL.  `printk` is a struct tally_printk; the type
 * fits struct tally_print_names. */
const char *tally_printk_find(void *printk, uint64_t address);

void tally_printk_release(struct tally_printk *printk);

#endif
