/* How views show code that JITs made: one function is one row, however many processes ran it and
 * however often its JIT compiled it.  Pure. */
#ifndef TALLY_NAMING_JIT_NAMES_H
#define TALLY_NAMING_JIT_NAMES_H

#include <stddef.h>

/* The object of JIT code: what names it, without the number of a process; or nothing names it. */
#define TALLY_JIT_MAP "perf.map"
#define TALLY_JIT_DUMP "jit.dump"
#define TALLY_JIT_UNNAMED "[JIT]"

/* Returns one of these for objects that perf and JITs name after a process: "/tmp/perf-7.map" or
 * "[JIT] tid 7", "jit-7.dump" or perf inject's "jitted-7-3.so"; also for the objects above.  NULL:
 * it is another object. */
const char *tally_jit_object(const char *path);

/* Finds the part of a JIT's function name that says how it was compiled: V8's tiers, as in
 * "JS:*sort /x/list.js:3:9", and .NET's, as in "void Program::Sort()[OptimizedTier1]".  Returns its
 * length and sets `at`, its offset; 0: there is none. */
size_t tally_jit_tier(const char *name, size_t *at);

#endif
