/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The simulated PMU as a Valgrind tool: registration, options, start and end.  vsim.h lists the
 * files of this folder. */
#include "valgrind/vsim.h"

#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_options.h"
#include "pub_tool_tooliface.h"

/* All state of the folder.  The plan's path is an option; a program that is executed gets it
 * too. */
static struct vsim simulation;
static const HChar *plan_path;

struct vsim *vsim(void)
{
	return &simulation;
}

static Bool take_option(const HChar *argument)
{
	if VG_STR_CLO(argument, "--plan", plan_path) {}
	else
		return False;
	return True;
}

static void say_nothing(void)
{
}

static void give_up(const char *what, int error)
{
	VG_(fmsg)("tally: the simulated PMU %s: error %d\n", what, -error);
	VG_(exit)(126);
}

static void after_options(void)
{
	/* Blocks end at jumps: see vsim_instrument.c. */
	VG_(clo_vex_control).guest_chase = False;
	if (!plan_path)
		return;
	vsim_core_restore();
	int error = vsim_host_open(&simulation, plan_path);
	if (error)
		give_up("can't open its plan", error);
	vsim_cpu_start(&simulation);
	error = vsim_host_start(&simulation);
	if (error)
		give_up("can't open the plan's events", error);
}

static void finish(Int exit_code)
{
	(void)exit_code;
	vsim_host_finish(&simulation);
}

static void register_tool(void)
{
	VG_(details_name)("tally");
	VG_(details_version)(TALLY_VERSION);
	VG_(details_description)("a simulated PMU");
	VG_(details_copyright_author)("the tally authors");
	VG_(details_bug_reports_to)("the tally authors");
	VG_(details_avg_translation_sizeB)(400);
	VG_(basic_tool_funcs)(after_options, vsim_instrument, finish);
	VG_(needs_command_line_options)(take_option, say_nothing, say_nothing);
	VG_(needs_superblock_discards)(vsim_instrument_discard);
	vsim_host_register();
}

VG_DETERMINE_INTERFACE_VERSION(register_tool)
