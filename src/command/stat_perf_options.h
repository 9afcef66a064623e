/* Options of `perf stat` that tally lacks; see record_perf_options.h. */
#ifndef TALLY_COMMAND_STAT_PERF_OPTIONS_H
#define TALLY_COMMAND_STAT_PERF_OPTIONS_H

#include "base/error.h"

#define STAT_PERF_OPTIONS(X) \
	X(VERBOSE, 'v', "verbose", NONE, NULL, NULL) \
	X(SCALE, 0, "scale", NONE, NULL, NULL) \
	X(NO_MERGE, 0, "no-merge", NONE, NULL, NULL) \
	X(GROUP, 'g', "group", NONE, NULL, "braces make groups: -e '{cycles,instructions}'") \
	X(METRICS, 'M', "metrics", REQUIRED, "NAMES", \
	  "perf's metrics are formulas for single CPU models; tally shows ratios of the events " \
	  "in -e, such as {cycles,instructions}") \
	X(SYNC, 'S', "sync", NONE, NULL, "run sync(1) before it") \
	X(TRANSACTION, 'T', "transaction", NONE, NULL, \
	  "-e names the events of transactions, where the CPU has them: '{cpu/tx-start/,cpu/cycles-t/}'") \
	X(ALL_KERNEL, 0, "all-kernel", NONE, NULL, \
	  "':k' after an event counts only the kernel: -e cycles:k") \
	X(ALL_USER, 0, "all-user", NONE, NULL, \
	  "':u' after an event counts only user mode: -e cycles:u") \
	X(CPUTYPE, 0, "cputype", REQUIRED, "TYPE", \
	  "the PMU's name says which CPUs: -e cpu_core/cycles/") \
	X(HYBRID_MERGE, 0, "hybrid-merge", NONE, NULL, \
	  "the events of each PMU have rows of their own") \
	X(IOSTAT, 0, "iostat", OPTIONAL, "PORTS", \
	  "'tally list pmu' shows the PMUs that count such traffic, where there are any") \
	X(LOG_FD, 0, "log-fd", REQUIRED, "N", "-o /dev/fd/N writes there") \
	X(METRIC_NO_GROUP, 0, "metric-no-group", NONE, NULL, "there are no metrics by name (-M)") \
	X(METRIC_NO_MERGE, 0, "metric-no-merge", NONE, NULL, "there are no metrics by name (-M)") \
	X(METRIC_ONLY, 0, "metric-only", NONE, NULL, "-j has each event's metrics separately") \
	X(NO_CSV_SUMMARY, 0, "no-csv-summary", NONE, NULL, \
	  "rows of --summary begin with \"summary\"; -j has them in a document of their own") \
	X(NO_SCALE, 0, "no-scale", NONE, NULL, "-j has the raw counts beside those scaled") \
	X(PERCORE_SHOW_THREAD, 0, "percore-show-thread", NONE, NULL, \
	  "--per-core sums up cores, -A shows each CPU") \
	X(POST, 0, "post", REQUIRED, "COMMAND", \
	  "run tally stat --append -j -o FILE in a shell loop: tally compare joins the runs") \
	X(PRE, 0, "pre", REQUIRED, "COMMAND", \
	  "run tally stat --append -j -o FILE in a shell loop: tally compare joins the runs") \
	X(QUIET, 0, "quiet", NONE, NULL, "-o /dev/null discards the counts") \
	X(SMI_COST, 0, "smi-cost", NONE, NULL, \
	  "-a -e msr/smi/,msr/aperf/ counts them, where the CPU does") \
	X(TABLE, 0, "table", NONE, NULL, \
	  "-j has minimum, maximum and deviation over the runs of -r") \
	X(TD_LEVEL, 0, "td-level", REQUIRED, "N", \
	  "-e names the events, where the CPU has them: '{slots,topdown-retiring,topdown-bad-spec}'") \
	X(TOPDOWN, 0, "topdown", NONE, NULL, \
	  "-e names the events, where the CPU has them: '{slots,topdown-retiring,topdown-bad-spec}'")

enum { STAT_PERF_FIRST = 1000, STAT_PERF_BEFORE = STAT_PERF_FIRST - 1,
#define ROW(id_, ...) STAT_PERF_##id_,
       STAT_PERF_OPTIONS(ROW)
#undef ROW
};

/* Returns 1 if the option is accepted, 0 if `id` is another option, -EINVAL with an alternative. */
int stat_take_perf_option(int id, struct tally_error *err);

#endif
