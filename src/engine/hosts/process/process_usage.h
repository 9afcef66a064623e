/* What the kernel says that a thread or the process has used: see struct tally_plan_usage. */
#ifndef TALLY_PROCESS_USAGE_H
#define TALLY_PROCESS_USAGE_H

#include "plan/plan.h"

/* For the handler, too. */
void process_usage_of_thread(struct tally_plan_usage *usage);
void process_usage_of_process(struct tally_plan_usage *usage);
/* Returns how often the calling thread has given up its CPU by itself.  For the handler, too. */
uint64_t process_usage_voluntary_switches(void);
/* Returns later − earlier; a member that would be negative is 0. */
struct tally_plan_usage process_usage_since(const struct tally_plan_usage *later,
					    const struct tally_plan_usage *earlier);
/* Add to and read a sum that threads share. */
void process_usage_add(struct tally_plan_usage *sum, const struct tally_plan_usage *more);
void process_usage_load(const struct tally_plan_usage *sum, struct tally_plan_usage *out);
/* Returns how often the calling thread has changed its CPU, by /proc; `seen` if that is not there.
 * Opens a file. */
uint64_t process_usage_migrations(uint64_t seen);

#endif
