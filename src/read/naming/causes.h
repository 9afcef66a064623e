/* Which instructions late samples are charged to.
 *
 * A clock's sample, and one of a hardware event with skid, has the address of the next instruction
 * to run.  Lines and inlined functions are those of the instruction before, which took the time
 * (unwind/code_cause.h).  A sample never leaves its function by this. */
#ifndef TALLY_NAMING_CAUSES_H
#define TALLY_NAMING_CAUSES_H

#include "naming/function_code.h"

/* A late address. */
struct tally_late {
	uint64_t address; /* in the terms of its file's symbols */
	const struct tally_place *place;
	uint32_t index;   /* for the caller */
	int64_t moved;    /* from the address to the instruction that is charged, in bytes */
	bool is_charged;  /* its code was read, so `moved` is known */
	bool is_jump;     /* a jump is charged */
};

/* Finds the causes of addresses in one function, in ascending order.  Returns 0 or -ENOMEM. */
int tally_causes_in(const struct tally_function_code *code, struct tally_late *late, size_t count);

/* Finds the causes of addresses in one file, in ascending order; its tables have been read.  Uses
 * nothing of other files.  Returns 0 or -ENOMEM. */
int tally_causes_find(struct tally_names *names, struct tally_late *late, size_t count);

#endif
