/* Tells whether the preloaded object can enter a program.  The object asks before the program that
 * it is in executes another one; tally asks before it starts a command.
 *
 * Only the file that the kernel would run is read: the program, or the interpreter that a script
 * names in its first line.  Freestanding; raw system calls, no memory but the stack (about 2
 * KiB), so it may be called in a signal handler and in a child of vfork(2).  MIT, since it is
 * part of tally too.  Formats: elf(5), the gABI (hash tables: DT_HASH, and GNU's). */
#ifndef TALLY_PROCESS_PROGRAM_H
#define TALLY_PROCESS_PROGRAM_H

#include <stdbool.h>

enum { PROCESS_PROGRAM_PATH = 256 };

enum process_program_kind {
	PROCESS_PROGRAM_ENTERED,       /* it takes the object in */
	/* There is no such file, or the caller may not read it. */
	PROCESS_PROGRAM_UNREADABLE,
	/* It is neither ELF nor a script with "#!": execvp(3) gives it to /bin/sh. */
	PROCESS_PROGRAM_NO_FORMAT,
	PROCESS_PROGRAM_STATIC,        /* it has no dynamic loader */
	PROCESS_PROGRAM_OTHER_LIBC,    /* its loader isn't glibc's (musl, bionic) */
	/* It has a loader and no library (Go's -buildmode=pie): it starts threads and ends without
	 * libc, so the object would see neither. */
	PROCESS_PROGRAM_NO_LIBC,
	PROCESS_PROGRAM_32_BITS,
	PROCESS_PROGRAM_OTHER_MACHINE, /* it is for another architecture */
	/* It runs with other rights than the caller's (set-user-ID, set-group-ID, file capabilities,
	 * or the caller's effective user isn't the real one), so the loader ignores LD_PRELOAD. */
	PROCESS_PROGRAM_PRIVILEGED,
	/* It is built with AddressSanitizer, MemorySanitizer, ThreadSanitizer or the like, which
	 * must be the first library. */
	PROCESS_PROGRAM_SANITIZER
};

struct process_program {
	enum process_program_kind kind;
	/* The Go compiler made it, so it makes system calls without libc. */
	bool is_go;
	/* If the program is a script, its interpreter: `kind` is the interpreter's.  "": it is no
	 * script. */
	char interpreter[PROCESS_PROGRAM_PATH];
};

/* Looks at the program as execveat(2) would find it: `directory` is a descriptor or AT_FDCWD,
 * `flags` are AT_EMPTY_PATH and AT_SYMLINK_NOFOLLOW.  Fills in *program.  Accepts any file: a
 * damaged one, or one beyond a limit, is PROCESS_PROGRAM_NO_FORMAT, which is not entered. */
void process_program_look(int directory, const char *path, int flags,
			  struct process_program *program);

/* Returns why a program of this kind can't be entered, to follow its name: "is linked statically".
 * Returns NULL for PROCESS_PROGRAM_ENTERED. */
const char *process_program_reason(enum process_program_kind kind);

#endif
