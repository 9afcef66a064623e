/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What Valgrind's core reads of debug information that nothing here needs: source lines, and the separate files with
 * them.  tally finds those by itself, afterwards and once; here it would be for each program, before its first
 * instruction (with libc6-dbg installed, more than all the rest of a start).  Symbols and call-frame information of the
 * objects themselves are still read: chains and --toggle need them.
 *
 * The core has no option for that.  The linker's --wrap leads its calls here; in a core without these functions it does
 * nothing. */
#include "pub_tool_basics.h"
#include "pub_tool_libcbase.h"

struct _DiImage *__real_vgModuleLocal_img_from_local_file(const HChar *path);
struct _DiImage *__wrap_vgModuleLocal_img_from_local_file(const HChar *path);
void __wrap_vgModuleLocal_read_debuginfo_dwarf3(void);

struct _DiImage *__wrap_vgModuleLocal_img_from_local_file(const HChar *path)
{
	Bool separate = VG_(strstr)(path, "/.build-id/") || VG_(strstr)(path, "/usr/lib/debug/") || VG_(strstr)(path, ".debug/");
	return separate ? NULL : __real_vgModuleLocal_img_from_local_file(path);
}

/* Its arguments are the caller's to clean up. */
void __wrap_vgModuleLocal_read_debuginfo_dwarf3(void)
{
}
