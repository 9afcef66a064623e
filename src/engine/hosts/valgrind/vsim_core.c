/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Changes behaviour of Valgrind's core that no option can change.  The linker's --wrap redirects
 * the core's calls to the functions here.  In a core without the wrapped functions, this has no
 * effect.
 *
 * The core reads debug information that nothing here needs: source lines, and the separate files
 * with them.  tally finds those itself, once, after the run.  The core would read them for each
 * program, before its first instruction; with libc6-dbg installed, that takes longer than the rest
 * of the start.  The core still reads the symbols and call-frame information of the objects
 * themselves: call chains and --toggle need them.
 *
 * The core writes messages for Valgrind's users to stderr, such as why a signal kills the program.
 * But stderr is the program's, and the program does not run under the tool to be debugged.  So
 * these messages are dropped.  Fatal errors and failed assertions take other paths and still
 * appear.
 *
 * When stderr is closed, the core's log still uses descriptor 2 and withholds it from the program:
 * the program then could not open a file, such as a library, as descriptor 2.  And LD_PRELOAD names
 * the core's preloaded object, which is empty here, where some programs look (AddressSanitizer must
 * come first).  Both are corrected before the program begins.
 *
 * The core also lacks memcmp(), which compilers call implicitly. */
#include "valgrind/vsim.h"

#include "pub_tool_basics.h"
#include "pub_tool_libcbase.h"

/* These are in the core's library, but in none of its public headers.  The first member of the
 * second's type is a descriptor. */
extern HChar **VG_(client_envp);
extern Int VG_(log_output_sink);

struct _DiImage *__real_vgModuleLocal_img_from_local_file(const HChar *path);
struct _DiImage *__wrap_vgModuleLocal_img_from_local_file(const HChar *path);
void __wrap_vgModuleLocal_read_debuginfo_dwarf3(void);
UInt __wrap_vgPlain_umsg(const HChar *format, ...);
UInt __wrap_vgPlain_message(Int kind, const HChar *format, ...);

struct _DiImage *__wrap_vgModuleLocal_img_from_local_file(const HChar *path)
{
	Bool separate = VG_(strstr)(path, "/.build-id/") || VG_(strstr)(path, "/usr/lib/debug/") ||
			VG_(strstr)(path, ".debug/");
	if (separate)
		return NULL;
	return __real_vgModuleLocal_img_from_local_file(path);
}

/* The original has parameters, which its caller removes. */
void __wrap_vgModuleLocal_read_debuginfo_dwarf3(void)
{
}

UInt __wrap_vgPlain_umsg(const HChar *format, ...)
{
	(void)format;
	return 0;
}

UInt __wrap_vgPlain_message(Int kind, const HChar *format, ...)
{
	(void)kind, (void)format;
	return 0;
}

/* Removes a variable from the program's environment, on its stack, and moves up what follows: the
 * rest of the environment and the auxiliary vector. */
static void remove_variable(HChar **at)
{
	for (; *at; at++)
		at[0] = at[1];
	UWord *to = (UWord *)at;
	do {
		to[0] = to[1];
		to[1] = to[2];
		to += 2;
	} while (to[-2] /* AT_NULL */);
}

static Bool begins(const HChar *text, const HChar *with)
{
	return !VG_(strncmp)(text, with, VG_(strlen)(with));
}

/* The variable is "LD_PRELOAD=/…/vgpreload_core-amd64-linux.so:what the user wants".  Returns True
 * if it names only our object; otherwise removes our object from it. */
static Bool is_ours_alone(HChar *variable)
{
	static const HChar preload[] = "LD_PRELOAD=", object[] = "/vgpreload_core-amd64-linux.so";
	if (!begins(variable, preload))
		return False;
	HChar *rest = VG_(strstr)(variable, object);
	if (!rest)
		return False;
	rest += sizeof(object) - 1;
	if (!*rest)
		return True;
	HChar *to = variable + sizeof(preload) - 1;
	if (*rest == ':')
		for (rest++; (*to = *rest); to++)
			rest++;
	return False;
}

void vsim_core_restore(void)
{
	if (VG_(log_output_sink) == 2)
		VG_(log_output_sink) = -1;
	for (HChar **variable = VG_(client_envp); *variable;)
		if (begins(*variable, "VALGRIND_LIB=") || is_ours_alone(*variable))
			remove_variable(variable);
		else
			variable++;
}

int memcmp(const void *a, const void *b, SizeT size);

int memcmp(const void *a, const void *b, SizeT size)
{
	return VG_(memcmp)(a, b, size);
}
