/* E6: opening tracepoints.  E7: sampling them, and filters. */
#include "ring_walk.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* --- E6 ------------------------------------------------------------------- */

static int unknown_id_einval(struct surface *surface)
{
	struct tally_attr attr = ring_hits_attr(surface, 0, 0);
	attr.config = 0xfffffe;
	CHECK_ERROR(CALL(open, &attr, 0, -1, -1, 0), EINVAL);
	attr.config = 0;
	CHECK_ERROR(CALL(open, &attr, 0, -1, -1, 0), EINVAL);
	return 0;
}

static int branch_stack_eopnotsupp(struct surface *surface)
{
	struct tally_attr attr = ring_hits_attr(surface, 1, TALLY_SAMPLE_BRANCH_STACK);
	attr.branch_sample_type = 1u << 3; /* ANY */
	CHECK_ERROR(CALL(open, &attr, 0, -1, -1, 0), EOPNOTSUPP);
	return 0;
}

/* The attributes that a task of another user opens: user mode only, with RAW or without. */
struct unprivileged {
	uint64_t id, sample_type;
	int result;
};

static int opens_unprivileged(struct surface *surface, void *argument)
{
	struct unprivileged *wish = argument;
	struct tally_attr attr = ring_attr(TALLY_TYPE_TRACEPOINT, wish->id, 1, wish->sample_type);
	if (CALL(drop_privileges))
		return 1;
	wish->result = CALL(open, &attr, 0, -1, -1, 0);
	return 0;
}

static int open_unprivileged(struct surface *surface, const char *name, uint64_t sample_type,
			     int *result)
{
	struct unprivileged *wish = CALL(shared, sizeof(*wish));
	CHECK(wish);
	*wish = (struct unprivileged){ (uint64_t)CALL(tracepoint, name), sample_type, 0 };
	pid_t task = CALL(spawn, SURFACE_PROCESS, opens_unprivileged, wish);
	CHECK(task > 0);
	CHECK_EQUAL(CALL(wait, task), 0);
	*result = wish->result;
	return 0;
}

static int raw_needs_privilege(struct surface *surface)
{
	int result = 0;
	if (CALL(sysctl, "perf_event_paranoid") < 0)
		return CLAUSE_NOT_APPLICABLE + NA_NOT_PRIVILEGED;
	CHECK_EQUAL(open_unprivileged(surface, "sched:sched_switch", TALLY_SAMPLE_RAW, &result), 0);
	CHECK_ERROR(result, EPERM);
	return 0;
}

static int counting_needs_no_privilege(struct surface *surface)
{
	int result = 0;
	CHECK_EQUAL(open_unprivileged(surface, "sched:sched_switch", TALLY_SAMPLE_IP, &result), 0);
	CHECK(result >= 0);
	return 0;
}

static int raw_of_own_calls_needs_no_privilege(struct surface *surface)
{
	int result = 0;
	CHECK_EQUAL(open_unprivileged(surface, "hit", TALLY_SAMPLE_RAW, &result), 0);
	CHECK(result >= 0);
	return 0;
}

/* --- E7 ------------------------------------------------------------------- */

static int counting(struct surface *surface)
{
	struct tally_attr attr = ring_hits_attr(surface, 0, 0);
	int fd = CALL(open, &attr, 0, -1, -1, 0);
	CHECK(fd >= 0);
	CALL(hit, 5);
	ring_run_hits(surface, fd, 12);
	CALL(hit, 5);
	CHECK_EQUAL(ring_event_count(surface, fd), 12);
	return 0;
}

static int sampling_by_period(struct surface *surface)
{
	struct tally_attr attr = ring_hits_attr(surface, 7, TALLY_SAMPLE_TID);
	struct ring ring;
	struct tally_record record;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	ring_run_hits(surface, ring.fd, 100);
	for (unsigned i = 0; i < 14; i++) {
		CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
		CHECK_EQUAL(record.sample.tid, CALL(self));
	}
	CHECK_EQUAL(ring_count(&ring, 0), 0);
	return 0;
}

static int sampling_by_frequency(struct surface *surface)
{
	struct tally_attr attr = ring_hits_attr(surface, 100, TALLY_SAMPLE_PERIOD);
	struct ring ring;
	struct tally_record record;
	uint64_t most = 0, end = CALL(now) + 2000000000;
	attr.flags |= TALLY_ATTR_FREQ;
	CHECK_RING(&ring, surface, &attr, 0, -1, 64);
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	while (most < 50 && CALL(now) < end) {
		CALL(hit, 1000);
		while (ring_find(&ring, TALLY_RECORD_SAMPLE, &record) == 1)
			most = record.sample.period > most ? record.sample.period : most;
	}
	CHECK_BETWEEN(most, 50, UINT64_MAX);
	return 0;
}

static long set_filter(struct surface *surface, int fd, const char *filter)
{
	return CALL(ioctl, fd, TALLY_IOC_SET_FILTER, (uintptr_t)filter);
}

/* Counts 10 hits of ours under a filter; `%d` in it becomes our tid. */
static int filtered(struct surface *surface, const char *filter, unsigned passing)
{
	struct tally_attr attr = ring_hits_attr(surface, 0, 0);
	char text[256];
	int fd = CALL(open, &attr, 0, -1, -1, 0);
	CHECK(fd >= 0);
	snprintf(text, sizeof(text), filter, (int)CALL(self), (int)CALL(self));
	CHECK_EQUAL(set_filter(surface, fd, text), 0);
	ring_run_hits(surface, fd, 10);
	CHECK_EQUAL(ring_event_count(surface, fd), passing);
	return 0;
}

static int filter_on_a_field(struct surface *surface)
{
	CHECK_EQUAL(filtered(surface, "common_pid == %d", 10), 0);
	CHECK_EQUAL(filtered(surface, "common_pid != %d", 0), 0);
	return 0;
}

static int filter_compares(struct surface *surface)
{
	CHECK_EQUAL(filtered(surface, "common_pid >= %d", 10), 0);
	CHECK_EQUAL(filtered(surface, "common_pid <= %d", 10), 0);
	CHECK_EQUAL(filtered(surface, "common_pid > %d", 0), 0);
	CHECK_EQUAL(filtered(surface, "common_pid < %d", 0), 0);
	CHECK_EQUAL(filtered(surface, "common_pid > 0", 10), 0);
	CHECK_EQUAL(filtered(surface, "common_pid & %d", 10), 0);
	CHECK_EQUAL(filtered(surface, "common_pid == 0x0", 0), 0);
	return 0;
}

static int filter_joins(struct surface *surface)
{
	CHECK_EQUAL(filtered(surface, "common_pid == %d && common_type > 0", 10), 0);
	CHECK_EQUAL(filtered(surface, "common_pid == %d && common_type == 0", 0), 0);
	CHECK_EQUAL(filtered(surface, "common_pid != %d || common_type > 0", 10), 0);
	CHECK_EQUAL(filtered(surface, "common_pid != %d || common_type == 0", 0), 0);
	/* The filter is an `or` of two `and`s. */
	CHECK_EQUAL(
		filtered(surface, "common_pid == %d || common_type == 0 && common_pid != %d", 10),
		0);
	return 0;
}

static int filter_negates_and_nests(struct surface *surface)
{
	CHECK_EQUAL(filtered(surface, "!(common_pid == %d)", 0), 0);
	CHECK_EQUAL(filtered(surface, "!(common_pid != %d)", 10), 0);
	CHECK_EQUAL(filtered(surface, "!(!(common_pid == %d))", 10), 0);
	CHECK_EQUAL(filtered(surface, "(common_pid != %d || common_type > 0) && (common_pid == %d)",
			     10),
		    0);
	CHECK_EQUAL(filtered(surface, "((common_pid == %d))", 10), 0);
	return 0;
}

/* Counts forks, filtered by the parent's name. */
static int births_of(struct surface *surface, const char *filter, unsigned passing)
{
	struct tally_attr attr = ring_hits_attr(surface, 0, 0);
	attr.config = (uint64_t)CALL(tracepoint, "sched:sched_process_fork");
	int fd = CALL(open, &attr, 0, -1, -1, 0);
	CHECK(fd >= 0);
	CHECK_EQUAL(set_filter(surface, fd, filter), 0);
	CALL(ioctl, fd, TALLY_IOC_ENABLE, 0);
	CALL(wait, CALL(spawn, SURFACE_PROCESS, exits_at_once, NULL));
	CHECK_EQUAL(ring_event_count(surface, fd), passing);
	return 0;
}

static int filter_on_strings(struct surface *surface)
{
	CALL(set_comm, "mother");
	CHECK_EQUAL(births_of(surface, "parent_comm == \"mother\"", 1), 0);
	CHECK_EQUAL(births_of(surface, "parent_comm == 'mother'", 1), 0);
	CHECK_EQUAL(births_of(surface, "parent_comm != \"mother\"", 0), 0);
	CHECK_EQUAL(births_of(surface, "parent_comm == \"moth\"", 0), 0);
	return 0;
}

static int filter_by_patterns(struct surface *surface)
{
	CALL(set_comm, "mother");
	CHECK_EQUAL(births_of(surface, "parent_comm ~ \"moth*\"", 1), 0);
	CHECK_EQUAL(births_of(surface, "parent_comm ~ \"*othe*\"", 1), 0);
	CHECK_EQUAL(births_of(surface, "parent_comm ~ \"m?ther\"", 1), 0);
	CHECK_EQUAL(births_of(surface, "parent_comm ~ \"m[a-p]ther\"", 1), 0);
	CHECK_EQUAL(births_of(surface, "parent_comm ~ \"father*\"", 0), 0);
	return 0;
}

static int filter_by_the_end(struct surface *surface)
{
	CALL(set_comm, "mother");
	if (ring_kernel_is_old(surface) && births_of(surface, "parent_comm ~ \"*ther\"", 0) == 0)
		/* the old kernel compares to the end of the array, not of the string */
		return CLAUSE_NOT_APPLICABLE + NA_OLD_KERNEL;
	CHECK_EQUAL(births_of(surface, "parent_comm ~ \"*ther\"", 1), 0);
	CHECK_EQUAL(births_of(surface, "parent_comm ~ \"*father\"", 0), 0);
	return 0;
}

static int filter_keeps_samples_back(struct surface *surface)
{
	struct tally_attr attr = ring_hits_attr(surface, 1, TALLY_SAMPLE_IP);
	struct ring ring;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	CHECK_EQUAL(set_filter(surface, ring.fd, "common_pid == 1"), 0);
	ring_run_hits(surface, ring.fd, 10);
	CHECK_EQUAL(ring_count(&ring, 0), 0);
	CHECK_EQUAL(ring_event_count(surface, ring.fd), 0);
	return 0;
}

static int filter_is_each_listeners_own(struct surface *surface)
{
	struct tally_attr attr = ring_hits_attr(surface, 0, 0);
	int strict = CALL(open, &attr, 0, -1, -1, 0), open_ = CALL(open, &attr, 0, -1, -1, 0);
	CHECK(strict >= 0 && open_ >= 0);
	CHECK_EQUAL(set_filter(surface, strict, "common_pid == 1"), 0);
	CALL(ioctl, strict, TALLY_IOC_ENABLE, 0);
	ring_run_hits(surface, open_, 10);
	CHECK_EQUAL(ring_event_count(surface, strict), 0);
	CHECK_EQUAL(ring_event_count(surface, open_), 10);
	return 0;
}

static int second_filter_eexist(struct surface *surface)
{
	struct tally_attr attr = ring_hits_attr(surface, 0, 0);
	int fd = CALL(open, &attr, 0, -1, -1, 0);
	CHECK(fd >= 0);
	CHECK_EQUAL(set_filter(surface, fd, "common_pid == 1"), 0);
	CHECK_ERROR(set_filter(surface, fd, "common_pid != 1"), EEXIST);
	return 0;
}

/* Each filter is refused with `wanted` (0: any error), and the event then has no filter. */
static int refused(struct surface *surface, const char *const *filters, int wanted)
{
	struct tally_attr attr = ring_hits_attr(surface, 0, 0);
	int fd = CALL(open, &attr, 0, -1, -1, 0);
	CHECK(fd >= 0);
	for (; *filters; filters++) {
		long seen = set_filter(surface, fd, *filters);
		if (wanted ? seen != -wanted : seen >= 0)
			return clause_failed(__FILE__, __LINE__,
					     "the filter '%s' gives %ld, not %d", *filters, seen,
					     -wanted);
	}
	ring_run_hits(surface, fd, 10);
	CHECK_EQUAL(ring_event_count(surface, fd), 10);
	return 0;
}

static int bad_filters_einval(struct surface *surface)
{
	static const char *const filters[] = { "",
					       " ",
					       "0",
					       "()",
					       "nonesuch == 1",
					       "common_pid ==",
					       "common_pid",
					       "common_pid = 1",
					       "common_pid === 1",
					       "common_pid == word",
					       "common_pid == 'x'",
					       "common_pid ~ \"x*\"",
					       "common_pid == 99999999999999999999",
					       NULL };
	return refused(surface, filters, EINVAL);
}

/* The kernel's parser returns some of its internal codes as errno: quirks. */
static int misplaced_operators_are_refused(struct surface *surface)
{
	static const char *const filters[] = { "== 1",
					       "common_pid == 1)",
					       "common_pid == 1 common_pid == 2",
					       "&& common_pid == 1",
					       "common_pid == 1 && && common_pid == 1",
					       NULL };
	return refused(surface, filters, 0);
}

static int unclosed_parenthesis_is_refused(struct surface *surface)
{
	static const char *const filters[] = { "(common_pid == 1", "((common_pid == 1)", NULL };
	return refused(surface, filters, 0);
}

static int filter_bad_pointer_efault(struct surface *surface)
{
	struct tally_attr attr = ring_hits_attr(surface, 0, 0);
	int fd = CALL(open, &attr, 0, -1, -1, 0);
	CHECK(fd >= 0);
	CHECK_ERROR(set_filter(surface, fd, SURFACE_BAD_POINTER), EFAULT);
	return 0;
}

static int filter_of_a_page_einval(struct surface *surface)
{
	struct tally_attr attr = ring_hits_attr(surface, 0, 0);
	int fd = CALL(open, &attr, 0, -1, -1, 0);
	char *text = CALL(shared, surface->page_size + 64);
	CHECK(fd >= 0 && text);
	memset(text, ' ', surface->page_size + 32);
	memcpy(text, "common_pid == 1", strlen("common_pid == 1"));
	CHECK_ERROR(set_filter(surface, fd, text), EINVAL);
	return 0;
}

static int filter_of_another_type_einval(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(0, 0);
	int fd = CALL(open, &attr, 0, -1, -1, 0);
	CHECK(fd >= 0);
	CHECK_ERROR(set_filter(surface, fd, "common_pid == 1"), EINVAL);
	return 0;
}

enum { KERNEL_HITS = SURFACE_TRACEPOINTS | SURFACE_PRIVILEGED };

const struct clause clauses_e_filter[] = {
	{ "E6.unknown_id_einval", "A tracepoint that nobody defined: EINVAL.", KERNEL_HITS,
	  unknown_id_einval },
	{ "E6.branch_stack_eopnotsupp", "BRANCH_STACK: EOPNOTSUPP.", KERNEL_HITS,
	  branch_stack_eopnotsupp },
	{ "E6.raw_needs_privilege", "RAW of the kernel's tracepoints without privilege: EPERM.",
	  KERNEL_HITS, raw_needs_privilege },
	{ "E6.counting_needs_no_privilege", "Counting without RAW needs no privilege.", KERNEL_HITS,
	  counting_needs_no_privilege },
	{ "E6.raw_of_own_calls", "RAW of the task's own system calls needs no privilege.",
	  KERNEL_HITS, raw_of_own_calls_needs_no_privilege },
	{ "E7.counting", "Hits are counted while the event is enabled.", KERNEL_HITS, counting },
	{ "E7.period", "Each n-th hit is a sample.", KERNEL_HITS, sampling_by_period },
	{ "E7.frequency", "The period adapts to a frequency.", KERNEL_HITS, sampling_by_frequency },
	{ "E7.filter_on_a_field", "A filter lets hits pass by a field's value.", KERNEL_HITS,
	  filter_on_a_field },
	{ "E7.filter_compares", "A filter compares by < <= > >= and &.", KERNEL_HITS,
	  filter_compares },
	{ "E7.filter_joins", "A filter joins by && and ||.", KERNEL_HITS, filter_joins },
	{ "E7.filter_negates_and_nests", "A filter negates by ! and nests by parentheses.",
	  KERNEL_HITS, filter_negates_and_nests },
	{ "E7.filter_on_strings", "A filter compares strings, in quotes of either kind.",
	  KERNEL_HITS, filter_on_strings },
	{ "E7.filter_by_patterns", "A filter matches patterns of * ? and [].", KERNEL_HITS,
	  filter_by_patterns },
	{ "E7.filter_by_the_end", "A filter matches the end of a string: *end.", KERNEL_HITS,
	  filter_by_the_end },
	{ "E7.filter_keeps_samples_back",
	  "What a filter keeps back is neither sampled nor counted.", KERNEL_HITS,
	  filter_keeps_samples_back },
	{ "E7.filter_is_each_listeners_own", "A filter is its listener's alone.", KERNEL_HITS,
	  filter_is_each_listeners_own },
	{ "E7.second_filter_eexist", "A second filter: EEXIST.", KERNEL_HITS,
	  second_filter_eexist },
	{ "E7.bad_filters_einval", "A bad filter: EINVAL, and none is set.", KERNEL_HITS,
	  bad_filters_einval },
	{ "E7.misplaced_operators", "Operators and parentheses where none may be are refused.",
	  KERNEL_HITS, misplaced_operators_are_refused },
	{ "E7.unclosed_parenthesis", "A parenthesis that isn't closed is refused.", KERNEL_HITS,
	  unclosed_parenthesis_is_refused },
	{ "E7.filter_bad_pointer_efault", "A filter at a bad pointer: EFAULT.", KERNEL_HITS,
	  filter_bad_pointer_efault },
	{ "E7.filter_of_a_page_einval", "A filter longer than a page: EINVAL.", KERNEL_HITS,
	  filter_of_a_page_einval },
	{ "E7.filter_of_another_type_einval", "A filter on an event that is no tracepoint: EINVAL.",
	  0, filter_of_another_type_einval },
	{ NULL, NULL, 0, NULL },
};
