/* The dumps that JITs write while they are recorded: rules to unwind their code by.
 *
 * Dumps are found as in jit.h, by MMAP records, and read as they grow, a bounded piece in each pass
 * over the rings, when a sample of their process comes.  Names and lines are read afterwards, from
 * the whole dump.  Not thread-safe.
 */
#ifndef TALLY_TASK_LIVE_JITS_H
#define TALLY_TASK_LIVE_JITS_H

#include "task/tasks.h"
#include "unwind/unwind.h"

struct tally_live_jits;

struct tally_live_jits *tally_live_jits_new(void);       /* NULL: no memory */
void tally_live_jits_free(struct tally_live_jits *jits); /* NULL is fine */

/* Takes each record, after the tasks have: opens the dump that it names, and forgets those
 * of a process that runs another program. */
void tally_live_jits_record(struct tally_live_jits *jits, const struct tally_record *record);

/* A new pass over the rings begins.  Forgets the dumps of processes that the tasks have
 * forgotten. */
void tally_live_jits_pass(struct tally_live_jits *jits, const struct tally_tasks *tasks);

/* Reads what the process's dumps have grown by since the last pass.  New code gives the process's
 * mappings a new generation. */
void tally_live_jits_look(struct tally_live_jits *jits, struct tally_tasks *tasks, uint32_t pid);

/* Returns true when the process has a dump. */
bool tally_live_jits_has(const struct tally_live_jits *jits, uint32_t pid);

struct tally_live_rules {
	struct tally_unwind_table *table; /* until the next tally_live_jits_look() or _see() */
	uint64_t address;                 /* in the table */
	/* The code behind the address as the dump has it.  The caller compares: the JIT may have
	 * replaced the code without having written that yet. */
	uint8_t code[8];
	size_t code_size;
};

/* Finds the rules for an address of the process at a time (CLOCK_MONOTONIC; UINT64_MAX: now).
 * Returns false when no dump has rules for it that make sense. */
bool tally_live_jits_find(struct tally_live_jits *jits, uint32_t pid, uint64_t address,
			  uint64_t time_ns, struct tally_live_rules *out);

#endif
