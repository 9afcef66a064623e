/* Options of `perf script` that tally lacks; see record_perf_options.h. */
#ifndef TALLY_COMMAND_SCRIPT_PERF_OPTIONS_H
#define TALLY_COMMAND_SCRIPT_PERF_OPTIONS_H

#include "base/error.h"

#define SCRIPT_PERF_OPTIONS(X) \
	X(ALL_CPUS, 'a', "all-cpus", NONE, NULL, NULL) \
	X(FORCE, 'f', "force", NONE, NULL, NULL) \
	X(VERBOSE, 'v', "verbose", NONE, NULL, NULL) \
	X(DEMANGLE, 0, "demangle", NONE, NULL, NULL) \
	X(INLINE, 0, "inline", NONE, NULL, NULL) \
	X(DEBUG, 'd', "debug-mode", NONE, NULL, \
	  "damage and losses are always reported; --show-lost-events shows where") \
	X(GENERATE, 'g', "gen-script", REQUIRED, "LANGUAGE", \
	  "-j and --csv are for programs in any language (docs/script-json.md)") \
	X(LATENCY, 'L', "Latency", NONE, NULL, \
	  "tally timeline shows when tasks ran and when they waited") \
	X(LIST, 'l', "list", NONE, NULL, \
	  "tally runs no scripts; -j and --csv are for programs (docs/script-json.md)") \
	X(SCRIPT, 's', "script", REQUIRED, "NAME", \
	  "tally runs no scripts; -j and --csv are for programs (docs/script-json.md)") \
	X(ADDRESSES, 0, "addr-range", REQUIRED, "N", \
	  "--symbol selects functions; filter addresses of -j or --csv") \
	X(CALL_RETURN, 0, "call-ret-trace", OPTIONAL, "OPTIONS", \
	  "tally does not decode instruction traces; perf does") \
	X(CALLS, 0, "call-trace", OPTIONAL, "OPTIONS", \
	  "tally does not decode instruction traces; perf does") \
	X(DEMANGLE_KERNEL, 0, "demangle-kernel", NONE, NULL, \
	  "kernel names are shown unchanged") \
	X(FILTER_ARGUMENT, 0, "dlarg", REQUIRED, "ARGUMENT", \
	  "tally loads no filters; --comm, --dso, --symbol, --pid and --time select samples") \
	X(FILTER, 0, "dlfilter", REQUIRED, "FILE", \
	  "tally loads no filters; --comm, --dso, --symbol, --pid and --time select samples") \
	X(FILTERS, 0, "list-dlfilters", NONE, NULL, \
	  "tally loads no filters; --comm, --dso, --symbol, --pid and --time select samples") \
	X(DUMP_UNSORTED, 0, "dump-unsorted-raw-trace", NONE, NULL, \
	  "--records shows every record, with its offset in the file") \
	X(SOURCE_PATH, 0, "full-source-path", NONE, NULL, "-j -F +srcline has whole paths") \
	X(GRAPH_FUNCTION, 0, "graph-function", REQUIRED, "LIST", \
	  "tally does not decode instruction traces; perf does") \
	X(GUEST_CODE, 0, "guest-code", NONE, NULL, \
	  "tally does not name guests' code; perf kvm does") \
	X(GUEST_SYMBOLS, 0, "guestkallsyms", REQUIRED, "FILE", \
	  "tally does not name guests' code; perf kvm does") \
	X(GUEST_MODULES, 0, "guestmodules", REQUIRED, "FILE", \
	  "tally does not name guests' code; perf kvm does") \
	X(GUEST_MOUNT, 0, "guestmount", REQUIRED, "DIR", \
	  "tally does not name guests' code; perf kvm does") \
	X(GUEST_VMLINUX, 0, "guestvmlinux", REQUIRED, "FILE", \
	  "tally does not name guests' code; perf kvm does") \
	X(INSTRUCTIONS, 0, "insn-trace", OPTIONAL, "OPTIONS", \
	  "tally does not decode instruction traces; perf does") \
	X(ITRACE, 0, "itrace", OPTIONAL, "OPTIONS", \
	  "tally does not decode instruction traces; perf does") \
	X(MAX_BLOCKS, 0, "max-blocks", REQUIRED, "N", \
	  "-F +brstacksym shows the branches before each sample") \
	X(PER_EVENT, 0, "per-event-dump", NONE, NULL, \
	  "-e EVENT shows one; its output can go to a file of its own") \
	X(KERNEL_PATH, 0, "show-kernel-path", NONE, NULL, \
	  "the kernel is [kernel.kallsyms]; --vmlinux FILE provides its names") \
	X(SHOW_ON_OFF, 0, "show-on-off-events", NONE, NULL, \
	  "--time selects a part of the recording") \
	X(STITCH_LBR, 0, "stitch-lbr", NONE, NULL, \
	  "LBR stacks are shown as recorded") \
	X(STOP, 0, "stop-bt", REQUIRED, "LIST", \
	  "tally report -g has trees that open as far as needed") \
	X(SWITCH_OFF, 0, "switch-off", REQUIRED, "EVENT", "--time selects a part of the recording") \
	X(SWITCH_ON, 0, "switch-on", REQUIRED, "EVENT", "--time selects a part of the recording") \
	X(XED, 0, "xed", OPTIONAL, "OPTIONS", "tally does not decode instruction traces; perf does")

enum { SCRIPT_PERF_FIRST = 1000, SCRIPT_PERF_BEFORE = SCRIPT_PERF_FIRST - 1,
#define ROW(id_, ...) SCRIPT_PERF_##id_,
       SCRIPT_PERF_OPTIONS(ROW)
#undef ROW
};

/* Returns 1 if the option is accepted, 0 if `id` is another option, -EINVAL with an alternative. */
int script_take_perf_option(int id, struct tally_error *err);

#endif
