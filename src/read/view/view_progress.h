/* Shows on a terminal how fetching debug files proceeds; Ctrl-C ends only the fetching. */
#ifndef TALLY_VIEW_PROGRESS_H
#define TALLY_VIEW_PROGRESS_H

#include "naming/names.h"

void tally_fetch_progress_use(struct tally_name_sources *sources);

#endif
