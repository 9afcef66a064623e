/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Ways of Valgrind's core that are not ours, and for which it has no options.  The linker's --wrap
 * leads its calls here; in a core without these functions it does nothing.
 *
 * It reads debug information that nothing here needs: source lines, and the separate files with
 * them.  tally finds those by itself, afterwards and once; here it would be for each program,
 * before its first instruction (with libc6-dbg installed, more than all the rest of a start).
 * Symbols and call-frame information of the objects themselves are still read: chains and --toggle
 * need them.
 *
 * And it writes to stderr what users of Valgrind want to know, such as why a signal kills the
 * program; but stderr is the program's, which doesn't run under the tool to be debugged.  Its fatal
 * errors and failed assertions go other ways.
 *
 * When stderr is closed, its log is descriptor 2 all the same, which it then keeps from the
 * program: what the program opens as 2, such as a library, would fail.  And its preloaded object,
 * in which is nothing here, is in the program's LD_PRELOAD where some look (AddressSanitizer must
 * come first): both are put right before the program begins. */
#include "valgrind/vsim.h"

#include "pub_tool_basics.h"
#include "pub_tool_libcbase.h"

/* In the core's library, and in none of the public headers.  The second's first member is a
 * descriptor. */
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
	return separate ? NULL : __real_vgModuleLocal_img_from_local_file(path);
}

/* Its arguments are the caller's to clean up. */
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

/* From the program's environment as it lies on its stack, with the auxiliary vector behind it. */
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

/* "LD_PRELOAD=/…/vgpreload_core-amd64-linux.so:what the user asks for". */
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
