/* Symbols that a recording lists by file, as simpleperf's recordings do. */
#ifndef TALLY_PROFILE_LISTED_NAMES_H
#define TALLY_PROFILE_LISTED_NAMES_H

#include "naming/name_tables.h"

/* If the recording lists the symbols of a mapped file or of the kernel (TALLY_FILE_KERNEL), fills
 * the table with them.  Files of this machine are not used then.  Returns 0 or -ENOMEM. */
int tally_listed_names_fill(struct tally_names *names, struct tally_name_table *table,
			    uint32_t file);

#endif
