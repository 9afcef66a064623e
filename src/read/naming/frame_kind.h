/* The kind of code that a frame is in, by the name of its object. */
#ifndef TALLY_NAMING_FRAME_KIND_H
#define TALLY_NAMING_FRAME_KIND_H

#include <stdbool.h>

enum tally_frame_kind {
	TALLY_FRAME_PROGRAM, /* the main executable, or not known */
	TALLY_FRAME_LIBRARY,
	TALLY_FRAME_KERNEL,
	TALLY_FRAME_JIT,
	TALLY_FRAME_INLINED,
	TALLY_FRAME_KINDS
};

/* Returns the kind of frames by their object's name.  Kernel: "[kernel.kallsyms]",
 * "/lib/modules/…", "vmlinux".  Library: "libc.so.6", "[vdso]".  JIT: "perf-PID.map", "[JIT] tid
 * 7", "jitted-7-0.so", "//anon".  All else is the program. */
enum tally_frame_kind tally_frame_kind_of_object(const char *object);

/* True if the kernel provides the object's code, but it runs in user mode: "[vdso]", 32-bit ARM's
 * "[vectors]". */
bool tally_object_is_user_page(const char *object);

/* Returns the part of an object's path after the last slash, with a "(deleted)" if it has one. */
const char *tally_object_basename(const char *object);

#endif
