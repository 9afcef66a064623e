/* Clauses of docs/spec.md as tests: "B7.member_einval" is a clause of row B7.
 *
 * A clause's function runs as a task of the surface.  It reports with CHECK and the similar macros,
 * which print the values seen and end the clause.  It skips only for conditions that appear while
 * it runs, with a reason from the fixed list. */
#ifndef TALLY_CONFORMANCE_SUITE_H
#define TALLY_CONFORMANCE_SUITE_H

#include "surface.h"

/* Why a surface can't run a clause: the fixed list of docs/conformance.md. */
enum not_applicable {
	NA_NONE,
	NA_NO_HARDWARE,       /* this machine has no hardware PMU */
	NA_NO_TRACEPOINTS,    /* tracefs is not readable */
	NA_NO_BREAKPOINTS,
	NA_NOT_PRIVILEGED,    /* this user lacks the privilege */
	NA_ONE_CPU,
	NA_CHANGES_HOST,      /* would change a machine that others use (sysctls, hotplug) */
	NA_NEEDS_VFS,         /* only a VFS can show it */
	NA_NEEDS_BPF,         /* needs the kernel's BPF */
	NA_NEEDS_TEXT_PATCHING, /* needs kernel text to be patched */
	NA_OTHER_ARCHITECTURE, /* the clause is for another PMU model */
	NA_NO_VIRTUALISATION,  /* no guest can be entered */
	/* this kernel is known to differ: docs/conformance.md names the quirk */
	NA_KERNEL_QUIRK,
	NA_OLD_KERNEL,        /* the feature is newer than this kernel */
	NA_NO_AUX,            /* no tracing PMU */
	NA_NO_SUCH_EVENT,     /* this kernel has no tracepoint of that kind */
	NA_REAL_TIME          /* needs a machine whose time the test controls: the simulated one */
};

struct clause {
	const char *id;   /* "A2.size_zero_means_64" */
	const char *holds; /* the clause, as a sentence */
	unsigned needs;   /* enum surface_feature */
	int (*run)(struct surface *surface);
};

/* The arrays of clauses, one for each file, in the order of running.  Each ends with an entry
 * without id. */
#define CLAUSE_ARRAYS(X) \
	X(clauses_a) \
	X(clauses_a_events) \
	X(clauses_a_targets) \
	X(clauses_b) \
	X(clauses_b_control) \
	X(clauses_b_groups) \
	X(clauses_b_inherit) \
	X(clauses_b_life) \
	X(clauses_c) \
	X(clauses_c_fields) \
	X(clauses_c_copies) \
	X(clauses_c_chain) \
	X(clauses_c_trailer) \
	X(clauses_c_records) \
	X(clauses_c_wakeup) \
	X(clauses_d) \
	X(clauses_d_output) \
	X(clauses_d_aux) \
	X(clauses_d_page) \
	X(clauses_e) \
	X(clauses_e_filter) \
	X(clauses_f) \
	X(clauses_differences) /* found by differential.c */ \
	X(clauses_hardware) /* rows of B, C and D for hardware events */ \
	X(clauses_hardware_sampling) \

#define DECLARE_CLAUSES(name) extern const struct clause name[];
CLAUSE_ARRAYS(DECLARE_CLAUSES)

/* Results of a clause's function: 0 for passed, or one of these. */
enum { CLAUSE_FAILED = 1, CLAUSE_NOT_APPLICABLE = 64 /* + enum not_applicable */ };

/* Prints "file:line: …" and returns CLAUSE_FAILED. */
int clause_failed(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#define CHECK(condition) \
	do { \
		if (!(condition)) \
			return clause_failed(__FILE__, __LINE__, "%s", #condition); \
	} while (0)
#define CHECK_EQUAL(seen, wanted) \
	do { \
		long long seen_ = (long long)(seen), wanted_ = (long long)(wanted); \
		if (seen_ != wanted_) \
			return clause_failed(__FILE__, __LINE__, "%s is %lld, not %lld", #seen, \
					     seen_, wanted_); \
	} while (0)
/* `seen` is a result, 0 or -errno.  Prints the names of both on a mismatch. */
#define CHECK_ERROR(seen, wanted) \
	do { \
		long seen_ = (long)(seen); \
		if (seen_ != -(long)(wanted)) \
			return clause_failed(__FILE__, __LINE__, "%s gives %ld, not -%s", #seen, \
					     seen_, #wanted); \
	} while (0)
#define CHECK_BETWEEN(seen, least, most) \
	do { \
		unsigned long long seen_ = (unsigned long long)(seen), least_ = (least), \
				   most_ = (most); \
		if (seen_ < least_ || seen_ > most_) \
			return clause_failed(__FILE__, __LINE__, \
					     "%s is %llu, not within %llu and %llu", #seen, seen_, \
					     least_, most_); \
	} while (0)

/* Shorthands for the table's functions, so that clauses read like the man page. */
#define CALL(name, ...) (surface->ops->name(surface __VA_OPT__(,) __VA_ARGS__))

/* A task that does nothing. */
static inline int exits_at_once(struct surface *surface, void *argument)
{
	(void)surface, (void)argument;
	return 0;
}

#endif
