/* Symbols that a recording lists by file, as simpleperf's do. */
#ifndef TALLY_PROFILE_LISTED_NAMES_H
#define TALLY_PROFILE_LISTED_NAMES_H

#include "profile/name_tables.h"

/* Fills the table of a mapped file, or of the kernel (TALLY_FILE_KERNEL), where the recording
 * lists its symbols: then no file of this machine is asked.  0 or -ENOMEM. */
int tally_listed_names_fill(struct tally_names *names, struct tally_name_table *table,
			    uint32_t file);

#endif
