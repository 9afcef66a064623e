/* The libraries of the command `tally` that are loaded at their first use. */
#ifndef TALLY_COMMAND_LATE_LIBRARIES_H
#define TALLY_COMMAND_LATE_LIBRARIES_H

/* Loads libelf and libzstd now.  If one can't be loaded, says so and ends the process with
 * TALLY_EXIT_FAILURE. */
void tally_late_libraries_load(void);

#endif
