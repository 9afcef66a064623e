/* libc's own functions behind those that this object replaces.
 *
 *     return PROCESS_NEXT(pthread_create)(thread, attr, start, argument);
 *
 * The table is filled by the constructor.  A function that is called before (by a constructor of
 * another library) finds its entry itself. */
#ifndef TALLY_PROCESS_NEXT_H
#define TALLY_PROCESS_NEXT_H

/* The functions, each a column of PROCESS_NEXT. */
#define PROCESS_NEXT_FUNCTIONS(F) \
	F(pthread_create) F(thrd_create) F(pthread_setname_np) F(prctl) F(_Fork)

enum process_next_index {
#define PROCESS_NEXT_INDEX(name) PROCESS_NEXT_##name,
	PROCESS_NEXT_FUNCTIONS(PROCESS_NEXT_INDEX)
#undef PROCESS_NEXT_INDEX
	PROCESS_NEXT_COUNT
};

void process_next_find(void);
/* Returns the function; never NULL: without it, one that sets errno to ENOSYS and returns -1. */
void *process_next(enum process_next_index index);

#define PROCESS_NEXT(name) ((__typeof__(&name))process_next(PROCESS_NEXT_##name))

#endif
