/* SPEC part B: counting. */
#include "counting.h"

#include <errno.h>

static int faults_are_exact(struct surface *surface)
{
	struct tally_attr attr = software_attr(surface, TALLY_SW_PAGE_FAULTS);
	int fd = open_self(surface, &attr);
	CHECK(fd >= 0);
	int64_t before = count_of(surface, fd);
	CALL(fault, 100);
	CHECK_EQUAL(count_of(surface, fd) - before, 100);
	return 0;
}

static int add_hits(struct surface *surface, void *argument)
{
	(void)argument;
	CALL(touch, TALLY_BREAKPOINT_W, 7);
	return 0;
}

static int child_counts_fold(struct surface *surface)
{
	struct tally_attr attr = breakpoint_attr(surface, TALLY_BREAKPOINT_W);
	attr.flags |= TALLY_ATTR_INHERIT;
	int fd = open_self(surface, &attr);
	CHECK(fd >= 0);
	pid_t child = CALL(spawn, SURFACE_PROCESS, add_hits, NULL);
	CHECK_EQUAL(CALL(wait, child), 0);
	pid_t thread = CALL(spawn, SURFACE_THREAD, add_hits, NULL);
	CHECK_EQUAL(CALL(wait, thread), 0);
	CHECK_EQUAL(count_of(surface, fd), 14);
	return 0;
}

static int exec_body(struct surface *surface, void *argument)
{
	CALL(touch, TALLY_BREAKPOINT_W, 3);
	uint32_t *word = *(uint32_t **)argument;
	CALL(post, word, (uint32_t)CALL(self));
	return 9;
}

static int exec_child(struct surface *surface, void *argument)
{
	return CALL(exec, "another", exec_body, &argument, sizeof(argument));
}

static int exec_works(struct surface *surface)
{
	uint32_t *word = CALL(shared, 64);
	pid_t child = CALL(spawn, SURFACE_PROCESS, exec_child, word);
	CALL(wait_while, word, 0);
	CHECK_EQUAL(*word, child);
	CHECK_EQUAL(CALL(wait, child), 9);
	return 0;
}

const struct clause clauses_b[] = {
	{ "B1.faults_are_exact", "as many faults are counted as there were", 0, faults_are_exact },
	{ "B9.child_counts_fold", "a child's count is its parent's", SURFACE_BREAKPOINTS, child_counts_fold },
	{ "B9.exec", "exec", 0, exec_works },
	{ NULL, NULL, 0, NULL }
};
