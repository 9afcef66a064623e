/* How views show code that JITs made: one function is one row, however many processes ran it and
 * however often its JIT compiled it.  Pure. */
#ifndef TALLY_NAMING_JIT_NAMES_H
#define TALLY_NAMING_JIT_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* The object of all JIT code.  Its memory, its map and its dump belong to one process; whichever
 * process ran it, it is the same code. */
#define TALLY_JIT_OBJECT "[JIT]"

/* True for objects that perf and JITs name after a process: "/tmp/perf-7.map", "[JIT] tid 7",
 * "jit-7.dump", "jitted-7-3.so". */
bool tally_jit_is_object(const char *path);

/* Finds the part of a JIT's function name that says how it was compiled: V8's tiers, as in
 * "JS:*sort /x/list.js:3:9", and .NET's, as in "void Program::Sort()[OptimizedTier1]".  Returns its
 * length and sets `at`, its offset; 0: there is none. */
size_t tally_jit_tier(const char *name, size_t *at);

#endif
