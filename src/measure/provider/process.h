/* The preloaded object as a provider: commands count and sample themselves, by tally's engine
 * (docs/process.md). */
#ifndef TALLY_PROVIDER_PROCESS_H
#define TALLY_PROVIDER_PROCESS_H

#include "base/error.h"

/* Returns 0 if the preloaded object can enter the program, or its interpreter, at `path`; -ENOEXEC with
 * the reason and the way out if it can't.  A missing file is no error here: exec tells. */
int tally_process_check_program(const char *path, struct tally_error *err);

#endif
