/* Explains why the preloaded object can't enter a program, and what to do about it.  The look at the
 * file is the host's (process_program.c), since the object itself needs it before an exec. */
#include "provider/process.h"

#include "process/process_program.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static const char *way_out(const struct process_program *program)
{
	if (program->is_go)
		return "build it with cgo and the system's linker (CGO_ENABLED=1 go build "
		       "-ldflags=-linkmode=external)";
	switch (program->kind) {
	case PROCESS_PROGRAM_STATIC:
		return "link it without -static, so that it has a dynamic linker";
	case PROCESS_PROGRAM_NO_LIBC:
		return "link it with libc";
	case PROCESS_PROGRAM_OTHER_LIBC:
		return "build it for glibc, or have the kernel's perf events opened ('tally doctor' "
		       "tells how)";
	case PROCESS_PROGRAM_32_BITS:
		return "build it for 64 bits";
	case PROCESS_PROGRAM_OTHER_MACHINE:
		return "build it for this machine";
	case PROCESS_PROGRAM_PRIVILEGED:
		return "copy it (cp drops its rights) and run the copy, as a user who needs none";
	case PROCESS_PROGRAM_SANITIZER:
		return "build it without -fsanitize";
	case PROCESS_PROGRAM_UNREADABLE:
		return "make it readable, or run a copy of it";
	default:
		return "have the kernel's perf events opened ('tally doctor' tells how)";
	}
}

int tally_process_check_program(const char *path, struct tally_error *err)
{
	struct process_program program = { 0 };
	process_program_look(AT_FDCWD, path, 0, &program);
	/* execvp(3) gives the second kind to /bin/sh; what else it may be, exec tells. */
	if (program.kind == PROCESS_PROGRAM_ENTERED || program.kind == PROCESS_PROGRAM_NO_FORMAT ||
	    access(path, F_OK) < 0)
		return 0;
	const char *reason = process_program_reason(program.kind);
	if (program.interpreter[0])
		tally_error_set(err, -ENOEXEC,
				"'%s' can't be entered by the process provider: its interpreter %s "
				"%s",
				path, program.interpreter, reason);
	else
		tally_error_set(err, -ENOEXEC,
				"'%s' can't be entered by the process provider: it %s", path,
				reason);
	tally_error_hint(err, "%s", way_out(&program));
	return -ENOEXEC;
}
