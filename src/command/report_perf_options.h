/* Options of `perf report` that tally lacks; see record_perf_options.h. */
#ifndef TALLY_COMMAND_REPORT_PERF_OPTIONS_H
#define TALLY_COMMAND_REPORT_PERF_OPTIONS_H

#include "base/error.h"

#define REPORT_PERF_OPTIONS(X) \
	X(FORCE, 'f', "force", NONE, NULL, NULL) \
	X(VERBOSE, 'v', "verbose", NONE, NULL, NULL) \
	X(DEMANGLE, 0, "demangle", NONE, NULL, NULL) \
	X(INLINE, 0, "inline", NONE, NULL, NULL) \
	X(SKIP_EMPTY, 0, "skip-empty", NONE, NULL, NULL) \
	X(DUMP, 'D', "dump-raw-trace", NONE, NULL, "tally script --records shows every record") \
	X(FIELDS, 'F', "fields", REQUIRED, "KEYS", \
	  "-s sets the keys that group rows; -j has all figures") \
	X(DISASSEMBLER, 'M', "disassembler-style", REQUIRED, "STYLE", "tally annotate shows code") \
	X(NUMBERS, 0, "show-nr-samples", NONE, NULL, "-j has the samples of each row") \
	X(PARENT, 'p', "parent", REQUIRED, "REGEX", \
	  "-g callee shows who called; --symbol takes patterns") \
	X(QUIET, 'q', "quiet", NONE, NULL, "2>/dev/null hides warnings") \
	X(SEPARATOR, 't', "field-separator", REQUIRED, "SEP", \
	  "-j is for programs (docs/report-json.md)") \
	X(THREADS, 'T', "threads", NONE, NULL, \
	  "--sort tid has a row for each thread; tally stat --per-thread counts") \
	X(UNRESOLVED, 'U', "hide-unresolved", NONE, NULL, \
	  "code without names is one row per object") \
	X(WIDTHS, 'w', "column-widths", REQUIRED, "WIDTHS", \
	  "columns are as wide as their contents") \
	X(OTHER, 'x', "exclude-other", NONE, NULL, "--symbol takes patterns") \
	X(ASM_RAW, 0, "asm-raw", NONE, NULL, "tally annotate shows code") \
	X(BRANCH_HISTORY, 0, "branch-history", NONE, NULL, "-b has a row for each branch") \
	X(DEMANGLE_KERNEL, 0, "demangle-kernel", NONE, NULL, \
	  "kernel names are shown unchanged") \
	X(DISABLE_ORDER, 0, "disable-order", NONE, NULL, \
	  "records are read in time order") \
	X(SOURCE_PATH, 0, "full-source-path", NONE, NULL, "-j has whole paths") \
	X(GTK, 0, "gtk", NONE, NULL, \
	  "--tui browses on the terminal; tally flamegraph -o FILE.html draws for a browser") \
	X(GROUP, 0, "group", NONE, NULL, "each event has a table of its own; -e chooses one") \
	X(GROUP_SORT, 0, "group-sort-idx", REQUIRED, "N", \
	  "each event has a table of its own; -e chooses one") \
	X(HIERARCHY, 0, "hierarchy", NONE, NULL, \
	  "--sort dso, and then --dso NAME: a level at a time") \
	X(IGNORE_CALLEES, 0, "ignore-callees", REQUIRED, "REGEX", "--symbol takes patterns") \
	X(IGNORE_VMLINUX, 0, "ignore-vmlinux", NONE, NULL, \
	  "only the recorded kernel's own file is used") \
	X(ITRACE, 0, "itrace", OPTIONAL, "OPTIONS", \
	  "tally does not decode instruction traces; perf does") \
	X(MMAPS, 0, "mmaps", NONE, NULL, "tally script --show-mmap-events shows them") \
	X(NS, 0, "ns", NONE, NULL, "--time-quantum 1us makes the rows of --sort time that fine") \
	X(OBJDUMP, 0, "objdump", REQUIRED, "PATH", "tally annotate shows code, by libLLVM") \
	X(PERCENT_TYPE, 0, "percent-type", REQUIRED, "TYPE", \
	  "tally annotate says what its percentages are of") \
	X(PERCENTAGE, 0, "percentage", REQUIRED, "relative|absolute", \
	  "shares are of the samples that pass the filters") \
	X(PREFIX, 0, "prefix", REQUIRED, "PREFIX", "--symfs DIR looks for files below DIR") \
	X(PREFIX_STRIP, 0, "prefix-strip", REQUIRED, "N", "--symfs DIR looks for files below DIR") \
	X(PRETTY, 0, "pretty", REQUIRED, "KEY", "tally stat --per-thread counts thread by thread") \
	X(RAW_TRACE, 0, "raw-trace", NONE, NULL, \
	  "tally script shows tracepoints; -j has their fields") \
	X(SAMPLES, 0, "samples", REQUIRED, "N", "tally script shows each sample") \
	X(CPU_UTILIZATION, 0, "show-cpu-utilization", NONE, NULL, \
	  "--sort dso has the kernel in a row of its own") \
	X(SHOW_ON_OFF, 0, "show-on-off-events", NONE, NULL, \
	  "--time selects a part of the recording") \
	X(REF_CALL_GRAPH, 0, "show-ref-call-graph", NONE, NULL, \
	  "stacks are those of the event's own samples") \
	X(TOTAL_PERIOD, 0, "show-total-period", NONE, NULL, "-j has the period of each row") \
	X(SOCKET_FILTER, 0, "socket-filter", REQUIRED, "N", \
	  "--cpu selects CPUs; --sort socket groups by socket") \
	X(SOURCE, 0, "source", NONE, NULL, "tally annotate shows code with its source") \
	X(STATS, 0, "stats", NONE, NULL, "tally script --records shows every record") \
	X(COLOUR, 0, "stdio-color", REQUIRED, "MODE", \
	  "NO_COLOR=1 turns colours off; only terminals get any") \
	X(STITCH_LBR, 0, "stitch-lbr", NONE, NULL, \
	  "LBR stacks are shown as recorded") \
	X(SWITCH_OFF, 0, "switch-off", REQUIRED, "EVENT", "--time selects a part of the recording") \
	X(SWITCH_ON, 0, "switch-on", REQUIRED, "EVENT", "--time selects a part of the recording") \
	X(SYMBOL_FILTER, 0, "symbol-filter", REQUIRED, "TEXT", \
	  "--symbol takes patterns: '*TEXT*'") \
	X(TASKS, 0, "tasks", NONE, NULL, "tally script --show-task-events shows them") \
	X(TOTAL_CYCLES, 0, "total-cycles", NONE, NULL, \
	  "-b --sort srcline_from,srcline_to,cycles has the cycles between branches")

enum { REPORT_PERF_FIRST = 1000, REPORT_PERF_BEFORE = REPORT_PERF_FIRST - 1,
#define ROW(id_, ...) REPORT_PERF_##id_,
       REPORT_PERF_OPTIONS(ROW)
#undef ROW
};

/* Returns 1 if the option is accepted, 0 if `id` is another option, -EINVAL with an alternative. */
int report_take_perf_option(int id, struct tally_error *err);

#endif
