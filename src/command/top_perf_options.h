/* Options of `perf top` that tally lacks; see record_perf_options.h. */
#ifndef TALLY_COMMAND_TOP_PERF_OPTIONS_H
#define TALLY_COMMAND_TOP_PERF_OPTIONS_H

#include "base/error.h"

#define TOP_PERF_CODE "tally record -a -- sleep 5, and then tally annotate, shows code"
#define TOP_PERF_COUNTS \
	"tally record -a -- sleep 5, and then tally report -j, has the samples and periods of each row"

#define TOP_PERF_OPTIONS(X) \
	X(VERBOSE, 'v', "verbose", NONE, NULL, NULL) \
	X(FORCE, 0, "force", NONE, NULL, NULL) \
	X(CGROUPS, 0, "all-cgroups", NONE, NULL, NULL) \
	X(NAMESPACES, 0, "namespaces", NONE, NULL, NULL) \
	X(SYNTHESIZE_THREADS, 0, "num-thread-synthesize", REQUIRED, "N", NULL) \
	X(MAP_TIMEOUT, 0, "proc-map-timeout", REQUIRED, "MS", NULL) \
	X(BRANCH_ANY, 'b', "branch-any", NONE, NULL, \
	  "tally record -b, and then tally report -b, has a row for each branch") \
	X(BRANCH_FILTER, 'j', "branch-filter", REQUIRED, "KINDS", \
	  "tally record -j KINDS, and then tally report -b, has a row for each branch") \
	X(DUMP_SYMBOLS, 'D', "dump-symtab", NONE, NULL, "nm -D and /proc/kallsyms show symbols") \
	X(COUNT_FILTER, 'f', "count-filter", REQUIRED, "N", \
	  "--percent-limit P leaves out rows of little weight") \
	X(CGROUP, 'G', "cgroup", REQUIRED, "NAME", \
	  "tally record -a -e EVENT -G NAME samples a control group") \
	X(VMLINUX, 'k', "vmlinux", REQUIRED, "FILE", \
	  "names come from the running kernel; tally report --vmlinux FILE uses a file") \
	X(KALLSYMS, 0, "kallsyms", REQUIRED, "FILE", \
	  "names come from the running kernel; tally report --kallsyms FILE uses a file") \
	X(DISASSEMBLER, 'M', "disassembler-style", REQUIRED, "STYLE", TOP_PERF_CODE) \
	X(NUMBERS, 0, "show-nr-samples", NONE, NULL, TOP_PERF_COUNTS) \
	X(REALTIME, 'r', "realtime", REQUIRED, "N", "chrt -f N tally top gives it that priority") \
	X(WIDTHS, 'w', "column-widths", REQUIRED, "WIDTHS", \
	  "columns are as wide as their contents") \
	X(ASM_RAW, 0, "asm-raw", NONE, NULL, TOP_PERF_CODE) \
	X(COMMS, 0, "comms", REQUIRED, "LIST", \
	  "-p, -t and -u select tasks; on the terminal f filters rows by a word") \
	X(DSOS, 0, "dsos", REQUIRED, "LIST", \
	  "on the terminal d shows one object's rows, and f filters rows by a word") \
	X(SYMBOLS, 0, "symbols", REQUIRED, "LIST", \
	  "on the terminal f filters rows by a word") \
	X(DEMANGLE_KERNEL, 0, "demangle-kernel", NONE, NULL, \
	  "kernel names are shown unchanged") \
	X(FIELDS, 0, "fields", REQUIRED, "KEYS", "-s sets the keys that group rows") \
	X(INHERIT, 0, "inherit", NONE, NULL, \
	  "children are sampled as well, unless -i is given") \
	X(GROUP, 0, "group", NONE, NULL, \
	  "each event has a list of its own; on the terminal Tab shows the next") \
	X(GROUP_SORT, 0, "group-sort-idx", REQUIRED, "N", \
	  "each event has a list of its own; on the terminal Tab shows the next") \
	X(HIERARCHY, 0, "hierarchy", NONE, NULL, "-s dso has a row for each object") \
	X(IGNORE_CALLEES, 0, "ignore-callees", REQUIRED, "REGEX", \
	  "on the terminal f filters rows by a word") \
	X(IGNORE_VMLINUX, 0, "ignore-vmlinux", NONE, NULL, "names come from the running kernel") \
	X(OBJDUMP, 0, "objdump", REQUIRED, "PATH", TOP_PERF_CODE) \
	X(OVERWRITE, 0, "overwrite", NONE, NULL, \
	  "rings are drained ten times a second; -m sets larger ones") \
	X(PERCENTAGE, 0, "percentage", REQUIRED, "relative|absolute", \
	  "shares are of all samples") \
	X(PREFIX, 0, "prefix", REQUIRED, "PREFIX", TOP_PERF_CODE) \
	X(PREFIX_STRIP, 0, "prefix-strip", REQUIRED, "N", TOP_PERF_CODE) \
	X(RAW_TRACE, 0, "raw-trace", NONE, NULL, \
	  "tally record -a -e EVENT, and then tally script, shows fields of tracepoints") \
	X(SHOW_ON_OFF, 0, "show-on-off-events", NONE, NULL, \
	  "on the terminal p pauses, z clears") \
	X(TOTAL_PERIOD, 0, "show-total-period", NONE, NULL, TOP_PERF_COUNTS) \
	X(SOURCE, 0, "source", NONE, NULL, TOP_PERF_CODE) \
	X(STITCH_LBR, 0, "stitch-lbr", NONE, NULL, "stacks are by frame pointers") \
	X(SWITCH_OFF, 0, "switch-off", REQUIRED, "EVENT", \
	  "on the terminal p pauses, z clears") \
	X(SWITCH_ON, 0, "switch-on", REQUIRED, "EVENT", \
	  "on the terminal p pauses, z clears") \
	X(ANNOTATE, 0, "sym-annotate", REQUIRED, "FUNCTION", TOP_PERF_CODE)

enum { TOP_PERF_FIRST = 1000, TOP_PERF_BEFORE = TOP_PERF_FIRST - 1,
#define ROW(id_, ...) TOP_PERF_##id_,
       TOP_PERF_OPTIONS(ROW)
#undef ROW
};

/* Returns 1 if the option is accepted, 0 if `id` is another option, -EINVAL with an alternative. */
int top_take_perf_option(int id, struct tally_error *err);

#endif
