/* Options of `perf record` that tally lacks. Options for tally's default behaviour are accepted;
 * the others are refused with an alternative. docs/compatibility.md lists them.
 *
 *     X(ID, letter, "name", argument kind, "argument", "what to use instead", or NULL if accepted)
 */
#ifndef TALLY_COMMAND_RECORD_PERF_OPTIONS_H
#define TALLY_COMMAND_RECORD_PERF_OPTIONS_H

#define RECORD_PERF_OPTIONS(X) \
	X(NO_BUILDID, 'B', "no-buildid", NONE, NULL, NULL) \
	X(NO_BUILDID_CACHE, 'N', "no-buildid-cache", NONE, NULL, NULL) \
	X(PERIOD, 'P', "period", NONE, NULL, NULL) \
	X(TIMESTAMP, 'T', "timestamp", NONE, NULL, NULL) \
	X(VERBOSE, 'v', "verbose", NONE, NULL, NULL) \
	X(BUILDID_ALL, 0, "buildid-all", NONE, NULL, NULL) \
	X(MMAP_FLUSH, 0, "mmap-flush", REQUIRED, "BYTES", NULL) \
	X(NO_BUFFERING, 0, "no-buffering", NONE, NULL, NULL) \
	X(SYNTHESIZE_THREADS, 0, "num-thread-synthesize", REQUIRED, "N", NULL) \
	X(MAP_TIMEOUT, 0, "proc-map-timeout", REQUIRED, "MS", NULL) \
	X(SAMPLE_CPU, 0, "sample-cpu", NONE, NULL, NULL) \
	X(SAMPLE_IDENTIFIER, 0, "sample-identifier", NONE, NULL, NULL) \
	X(STRICT_FREQ, 0, "strict-freq", NONE, NULL, NULL) \
	X(TAIL_SYNTHESIZE, 0, "tail-synthesize", NONE, NULL, NULL) \
	X(TIMESTAMP_BOUNDARY, 0, "timestamp-boundary", NONE, NULL, NULL) \
	X(NO_SAMPLES, 'n', "no-samples", NONE, NULL, "tally stat counts without sampling") \
	X(SNAPSHOT, 'S', "snapshot", OPTIONAL, "OPTIONS", \
	  "tally records no AUX areas (Intel PT, Arm SPE and CoreSight); --overwrite is the flight recorder of other events") \
	X(STAT, 's', "stat", NONE, NULL, "tally stat --per-thread counts thread by thread") \
	X(AFFINITY, 0, "affinity", REQUIRED, "NODE|CPU", \
	  "one thread drains all rings; place it with taskset(1) or numactl(8)") \
	X(AIO, 0, "aio", OPTIONAL, "N", \
	  "records are compressed before writing, which spares the disk; -m sets larger rings") \
	X(AUX_SAMPLE, 0, "aux-sample", OPTIONAL, "OPTIONS", \
	  "tally records no AUX areas (Intel PT, Arm SPE and CoreSight); perf does") \
	X(BUILDID_MMAP, 0, "buildid-mmap", NONE, NULL, \
	  "each recording has the build-ids of sampled files; records of mappings keep inodes") \
	X(CLANG_OPT, 0, "clang-opt", REQUIRED, "OPTIONS", \
	  "tally runs no BPF programs; --filter selects hits of tracepoints by their fields") \
	X(CLANG_PATH, 0, "clang-path", REQUIRED, "PATH", \
	  "tally runs no BPF programs; --filter selects hits of tracepoints by their fields") \
	X(DEBUGINFOD, 0, "debuginfod", OPTIONAL, "URLS", \
	  "tally report --debuginfod fetches the debug files of hot objects") \
	X(GROUP, 0, "group", NONE, NULL, "braces make groups: -e '{cycles,instructions}'") \
	X(KCORE, 0, "kcore", NONE, NULL, \
	  "tally annotate reads the running kernel's code itself, on the machine that was recorded") \
	X(SYNTH, 0, "synth", REQUIRED, "KINDS", \
	  "existing tasks and mappings are always recorded; names need them") \
	X(THREADS, 0, "threads", OPTIONAL, "SPEC", \
	  "one thread drains all rings; -m sets larger ones, -F and -c take fewer samples") \
	X(VMLINUX, 0, "vmlinux", REQUIRED, "FILE", \
	  "tally report --vmlinux FILE names the kernel's functions")

#endif
