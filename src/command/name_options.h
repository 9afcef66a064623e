/* Options that say where names come from; every view of a recording has them. */
#ifndef TALLY_COMMAND_NAME_OPTIONS_H
#define TALLY_COMMAND_NAME_OPTIONS_H

#include "command/command.h"
#include "naming/names.h"

/* For views that shorten names, all but `script`. `member` is the request's struct
 * tally_name_sources. */
#define TALLY_FULL_NAMES_OPTION(type, member) \
	{ 0, "full-names", TALLY_ARGUMENT_NONE, NULL, \
	  "show functions' parameters even if the name is unique", \
	  TALLY_SET(type, member.full_names) }

/* For views with lines or inlined functions, all but `script`. */
#define TALLY_RAW_ADDRESSES_OPTION(type, member) \
	{ 0, "raw-addresses", TALLY_ARGUMENT_NONE, NULL, \
	  "lines of the recorded addresses, not of the instructions before them", \
	  TALLY_SET(type, member.raw_addresses) }

/* Rows of an option table. `kernel` is the letter of --vmlinux, perf's 'k' or 0 if the command uses
 * that otherwise. */
#define TALLY_NAME_OPTIONS(kernel, type, member) \
	{ 0, "symfs", TALLY_ARGUMENT_REQUIRED, "DIR", \
	  "look for programs, libraries and debug files below DIR", \
	  TALLY_TEXT(type, member.search.root), TALLY_TAKE(tally_name_take_folder) }, \
	{ 0, "buildid-dir", TALLY_ARGUMENT_REQUIRED, "DIR", \
	  "perf's cache of copies by build-id (~/.debug)", \
	  TALLY_TEXT(type, member.search.build_ids), TALLY_TAKE(tally_name_take_folder) }, \
	{ kernel, "vmlinux", TALLY_ARGUMENT_REQUIRED, "FILE", \
	  "the recorded kernel, for its functions' names and lines", \
	  TALLY_TEXT(type, member.vmlinux), TALLY_TAKE(tally_name_take_vmlinux) }, \
	{ 0, "kallsyms", TALLY_ARGUMENT_REQUIRED, "FILE", \
	  "a copy of the recorded kernel's /proc/kallsyms", \
	  TALLY_TEXT(type, member.kallsyms), TALLY_TAKE(tally_name_take_file) }, \
	{ 'm', "modules", TALLY_ARGUMENT_NONE, NULL, \
	  "name kernel modules' functions by their files, not by kallsyms", \
	  TALLY_SET(type, member.modules) }, \
	{ 0, "debuginfod", TALLY_ARGUMENT_OPTIONAL, "URLS", \
	  "fetch the debug files of hot objects from these servers\n" \
	  "(DEBUGINFOD_URLS); without this option nothing is fetched", \
	  TALLY_TAKE_MEMBER(tally_name_take_debuginfod, type, member) }, \
	{ 'v', "verbose", TALLY_ARGUMENT_NONE, NULL, \
	  "details of warnings: each file without names, each kind of\n" \
	  "incomplete stack", \
	  TALLY_SET(type, member.verbose) }

/* Check what the options name, and store it. */
tally_take_option tally_name_take_folder, tally_name_take_vmlinux, tally_name_take_file,
	tally_name_take_debuginfod;

#endif
