/* C3: call chains. */
#include "ring_walk.h"

#include <errno.h>

struct chain {
	unsigned kernel, user, user_markers, kernel_markers;
	uint64_t first, leaf; /* the first word of the chain; the address after it */
	uint64_t length;
};

static struct chain chain_of(const struct tally_sample *sample)
{
	struct chain chain = { .length = sample->chain_length };
	unsigned *counted = NULL;
	chain.first = chain.length > 0 ? sample->chain[0] : 0;
	chain.leaf = chain.length > 1 ? sample->chain[1] : 0;
	for (uint64_t i = 0; i < sample->chain_length; i++) {
		uint64_t word = sample->chain[i];
		if (word == TALLY_CONTEXT_KERNEL) {
			counted = &chain.kernel;
			chain.kernel_markers++;
		} else if (word == TALLY_CONTEXT_USER) {
			counted = &chain.user;
			chain.user_markers++;
		} else if (counted) {
			++*counted;
		}
	}
	return chain;
}

static int chain_of_switch(struct surface *surface, uint64_t flags, uint16_t max_stack,
			   struct chain *chain)
{
	struct tally_attr attr = ring_switch_attr(surface, 1,
						  TALLY_SAMPLE_IP | TALLY_SAMPLE_CALLCHAIN);
	struct ring ring;
	struct tally_record record;
	attr.flags |= flags;
	attr.sample_max_stack = max_stack;
	CHECK_RING(&ring, surface, &attr, 0, -1, 8);
	ring_run_switch(surface, ring.fd);
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	*chain = chain_of(&record.sample);
	return 0;
}

static int user_chain_begins_with_its_marker_and_the_ip(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	FAULT_SAMPLES(&ring, ring_faults_attr(1, TALLY_SAMPLE_IP | TALLY_SAMPLE_CALLCHAIN));
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	struct chain chain = chain_of(&record.sample);
	CHECK_EQUAL(chain.first, TALLY_CONTEXT_USER);
	CHECK_EQUAL(chain.leaf, record.sample.ip);
	CHECK_EQUAL(chain.kernel_markers, 0);
	CHECK_EQUAL(chain.length, 1 + chain.user);
	return 0;
}

static int kernel_chain_comes_before_the_users(struct surface *surface)
{
	struct chain chain;
	CHECK_EQUAL(chain_of_switch(surface, 0, 0, &chain), 0);
	CHECK_EQUAL(chain.first, TALLY_CONTEXT_KERNEL);
	CHECK(chain.leaf >> 63);
	CHECK_EQUAL(chain.kernel_markers, 1);
	CHECK_EQUAL(chain.user_markers, 1);
	CHECK_BETWEEN(chain.user, 1, 127);
	return 0;
}

static int exclude_callchain_kernel(struct surface *surface)
{
	struct chain chain;
	CHECK_EQUAL(chain_of_switch(surface, TALLY_ATTR_EXCLUDE_CALLCHAIN_KERNEL, 0, &chain), 0);
	CHECK_EQUAL(chain.kernel_markers, 0);
	CHECK_EQUAL(chain.first, TALLY_CONTEXT_USER);
	CHECK_BETWEEN(chain.user, 1, 127);
	return 0;
}

static int exclude_callchain_user(struct surface *surface)
{
	struct chain chain;
	CHECK_EQUAL(chain_of_switch(surface, TALLY_ATTR_EXCLUDE_CALLCHAIN_USER, 0, &chain), 0);
	CHECK_EQUAL(chain.user_markers, 0);
	CHECK_EQUAL(chain.kernel_markers, 1);
	CHECK_BETWEEN(chain.kernel, 1, 127);
	return 0;
}

static int exclude_both_callchains(struct surface *surface)
{
	struct chain chain;
	CHECK_EQUAL(chain_of_switch(surface,
				    TALLY_ATTR_EXCLUDE_CALLCHAIN_USER |
					    TALLY_ATTR_EXCLUDE_CALLCHAIN_KERNEL,
				    0, &chain),
		    0);
	CHECK_EQUAL(chain.length, 0);
	return 0;
}

static int max_stack_limits_the_frames(struct surface *surface)
{
	struct chain one, all;
	CHECK_EQUAL(chain_of_switch(surface, 0, 1, &one), 0);
	CHECK_EQUAL(chain_of_switch(surface, 0, 0, &all), 0);
	CHECK_EQUAL(one.kernel + one.user, 1);
	CHECK(all.kernel + all.user > 1);
	return 0;
}

static int max_stack_above_the_limit(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_CALLCHAIN);
	long most = CALL(sysctl, "perf_event_max_stack");
	CHECK_BETWEEN(most, 1, 65534);
	attr.sample_max_stack = (uint16_t)(most + 1);
	CHECK_ERROR(CALL(open, &attr, 0, -1, -1, 0), EOVERFLOW);
	attr.sample_max_stack = (uint16_t)most;
	CHECK(CALL(open, &attr, 0, -1, -1, 0) >= 0);
	return 0;
}

enum { KERNEL_HITS = SURFACE_TRACEPOINTS | SURFACE_PRIVILEGED };

const struct clause clauses_c_chain[] = {
	{ "C3.user_chain", "A chain of user mode is a marker, the IP, the callers.", 0,
	  user_chain_begins_with_its_marker_and_the_ip },
	{ "C3.kernel_chain_is_first",
	  "The kernel's part comes before the user's, each behind its marker.", KERNEL_HITS,
	  kernel_chain_comes_before_the_users },
	{ "C3.exclude_callchain_kernel", "exclude_callchain_kernel leaves the user's part.",
	  KERNEL_HITS, exclude_callchain_kernel },
	{ "C3.exclude_callchain_user", "exclude_callchain_user leaves the kernel's part.",
	  KERNEL_HITS, exclude_callchain_user },
	{ "C3.exclude_both", "Both leave an empty chain.", KERNEL_HITS, exclude_both_callchains },
	{ "C3.max_stack", "sample_max_stack limits the frames, markers not counted.", KERNEL_HITS,
	  max_stack_limits_the_frames },
	{ "C3.max_stack_above_the_limit", "sample_max_stack above perf_event_max_stack: EOVERFLOW.",
	  0, max_stack_above_the_limit },
	{ NULL, NULL, 0, NULL },
};
