/* Options of `perf annotate` that tally lacks; see record_perf_options.h. */
#ifndef TALLY_COMMAND_ANNOTATE_PERF_OPTIONS_H
#define TALLY_COMMAND_ANNOTATE_PERF_OPTIONS_H

#include "base/error.h"

#define ANNOTATE_PERF_OPTIONS(X) \
	X(FORCE, 'f', "force", NONE, NULL, NULL) \
	X(VERBOSE, 'v', "verbose", NONE, NULL, NULL) \
	X(DEMANGLE, 0, "demangle", NONE, NULL, NULL) \
	X(DUMP, 'D', "dump-raw-trace", NONE, NULL, "tally script --records shows every record") \
	X(FULL_PATHS, 'P', "full-paths", NONE, NULL, "-j has whole paths") \
	X(QUIET, 'q', "quiet", NONE, NULL, "2>/dev/null hides warnings") \
	X(ASM_RAW, 0, "asm-raw", NONE, NULL, \
	  "-j has each instruction's address and size; objdump -d shows its bytes") \
	X(DEMANGLE_KERNEL, 0, "demangle-kernel", NONE, NULL, \
	  "kernel names are shown unchanged") \
	X(GTK, 0, "gtk", NONE, NULL, "--html writes a page for a browser") \
	X(GROUP, 0, "group", NONE, NULL, "-e chooses one event of a group") \
	X(IGNORE_VMLINUX, 0, "ignore-vmlinux", NONE, NULL, \
	  "only the recorded kernel's own file is used") \
	X(ITRACE, 0, "itrace", OPTIONAL, "OPTIONS", \
	  "tally does not decode instruction traces; perf does") \
	X(OBJDUMP, 0, "objdump", REQUIRED, "PATH", "libLLVM disassembles; objdump is not used") \
	X(PREFIX, 0, "prefix", REQUIRED, "PREFIX", "--symfs DIR looks for files below DIR") \
	X(PREFIX_STRIP, 0, "prefix-strip", REQUIRED, "N", "--symfs DIR looks for files below DIR") \
	X(TOTAL_PERIOD, 0, "show-total-period", NONE, NULL, \
	  "-j has the period of each instruction") \
	X(SKIP_MISSING, 0, "skip-missing", NONE, NULL, \
	  "-j says for each function why its code is missing") \
	X(COLOUR, 0, "stdio-color", REQUIRED, "MODE", \
	  "NO_COLOR=1 turns colours off; only terminals get any") \
	X(TUI, 0, "tui", NONE, NULL, \
	  "tally report --tui browses functions; its key a annotates one")

enum { ANNOTATE_PERF_FIRST = 1000, ANNOTATE_PERF_BEFORE = ANNOTATE_PERF_FIRST - 1,
#define ROW(id_, ...) ANNOTATE_PERF_##id_,
       ANNOTATE_PERF_OPTIONS(ROW)
#undef ROW
};

/* Returns 1 if the option is accepted, 0 if `id` is another option, -EINVAL with an alternative. */
int annotate_take_perf_option(int id, struct tally_error *err);

#endif
