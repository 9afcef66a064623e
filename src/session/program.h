/* The program that a target runs: found as execvp(3) finds it, and probed for frame pointers. */
#ifndef TALLY_SESSION_PROGRAM_H
#define TALLY_SESSION_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct tally_program_probe {
	char name[128];  /* of the executable, or of the script's interpreter */
	size_t functions, with_frame_pointer; /* 0: it tells nothing */
};

/* Whether execvp(3) would find it. */
bool tally_program_is_there(const char *command);

void tally_program_probe_command(const char *command, struct tally_program_probe *probe);
void tally_program_probe_pid(pid_t pid, struct tally_program_probe *probe);

#endif
