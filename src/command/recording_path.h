/* Which recording a command reads when it is told of none. */
#ifndef TALLY_COMMAND_RECORDING_PATH_H
#define TALLY_COMMAND_RECORDING_PATH_H

/* `given`, or "-" where standard input is a pipe or a file (as perf has it), or tally.data in the working directory, or perf.data where there is only that. */
const char *tally_recording_path(const char *given);

#endif
