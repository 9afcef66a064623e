/* What is shown on a terminal while debug files come, and Ctrl-C, which ends that alone. */
#ifndef TALLY_COMMAND_FETCH_PROGRESS_H
#define TALLY_COMMAND_FETCH_PROGRESS_H

#include "naming/names.h"

void tally_fetch_progress_use(struct tally_name_sources *sources);

#endif
