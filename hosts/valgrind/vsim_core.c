/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Ways of Valgrind's core that are not ours, and for which it has no options.  The linker's --wrap leads its calls here;
 * in a core without these functions it does nothing.
 *
 * It reads debug information that nothing here needs: source lines, and the separate files with
 * them.  tally finds those by itself, afterwards and once; here it would be for each program, before its first
 * instruction (with libc6-dbg installed, more than all the rest of a start).  Symbols and call-frame information of the
 * objects themselves are still read: chains and --toggle need them.
 *
 * And it writes to stderr what users of Valgrind want to know, such as why a signal kills the program; but stderr is the
 * program's, which doesn't run under the tool to be debugged.  Its fatal errors and failed assertions go other ways. */
#include "pub_tool_basics.h"
#include "pub_tool_libcbase.h"

struct _DiImage *__real_vgModuleLocal_img_from_local_file(const HChar *path);
struct _DiImage *__wrap_vgModuleLocal_img_from_local_file(const HChar *path);
void __wrap_vgModuleLocal_read_debuginfo_dwarf3(void);
UInt __wrap_vgPlain_umsg(const HChar *format, ...);
UInt __wrap_vgPlain_message(Int kind, const HChar *format, ...);

struct _DiImage *__wrap_vgModuleLocal_img_from_local_file(const HChar *path)
{
	Bool separate = VG_(strstr)(path, "/.build-id/") || VG_(strstr)(path, "/usr/lib/debug/") || VG_(strstr)(path, ".debug/");
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
