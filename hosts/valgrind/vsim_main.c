/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The simulated PMU as a Valgrind tool: registration, options, life.  The map of this folder is in vsim.h. */
#include "valgrind/vsim.h"

#include "pub_tool_libcassert.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_options.h"
#include "pub_tool_tooliface.h"

static IRSB *instrument(VgCallbackClosure *closure, IRSB *in, const VexGuestLayout *layout,
			const VexGuestExtents *extents, const VexArchInfo *arch, IRType guest_word, IRType host_word)
{
	(void)closure, (void)layout, (void)extents, (void)arch, (void)guest_word, (void)host_word;
	return in;
}

static void after_options(void)
{
}

static void finish(Int exit_code)
{
	(void)exit_code;
}

static void register_tool(void)
{
	VG_(details_name)("tally");
	VG_(details_version)(TALLY_VERSION);
	VG_(details_description)("a simulated PMU");
	VG_(details_copyright_author)("the tally authors");
	VG_(details_bug_reports_to)("the tally authors");
	VG_(details_avg_translation_sizeB)(400);
	VG_(basic_tool_funcs)(after_options, instrument, finish);
}

VG_DETERMINE_INTERFACE_VERSION(register_tool)
