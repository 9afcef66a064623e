/* SPEC part A: opening. */
#include "counting.h"

#include <errno.h>
#include <string.h>

/* An attribute with room behind it for what a later kernel might define. */
union large_attr {
	struct tally_attr attr;
	unsigned char bytes[8192];
};

static int open_of_size(struct surface *surface, union large_attr *large, uint32_t size)
{
	large->attr.size = size;
	int fd = open_self(surface, &large->attr);
	if (fd >= 0)
		CALL(close, fd);
	return fd;
}

static int size_zero_means_64(struct surface *surface)
{
	union large_attr large = { .attr = software_attr(surface, TALLY_SW_DUMMY) };
	large.attr.config3 = 1; /* beyond the 64 bytes that are read: it isn't seen */
	CHECK(open_of_size(surface, &large, 0) >= 0);
	return 0;
}

static int size_64_is_enough(struct surface *surface)
{
	union large_attr large = { .attr = software_attr(surface, TALLY_SW_DUMMY) };
	large.attr.config3 = 1;
	CHECK(open_of_size(surface, &large, 64) >= 0);
	return 0;
}

static int size_4096_with_zero_tail(struct surface *surface)
{
	union large_attr large = { .attr = software_attr(surface, TALLY_SW_DUMMY) };
	CHECK(open_of_size(surface, &large, 4096) >= 0);
	return 0;
}

static int size_below_64_e2big(struct surface *surface)
{
	union large_attr large = { .attr = software_attr(surface, TALLY_SW_DUMMY) };
	for (uint32_t size = 1; size < 64; size++)
		CHECK_ERROR(open_of_size(surface, &large, size), E2BIG);
	return 0;
}

static int size_above_4096_e2big(struct surface *surface)
{
	union large_attr large = { .attr = software_attr(surface, TALLY_SW_DUMMY) };
	CHECK_ERROR(open_of_size(surface, &large, 4097), E2BIG);
	CHECK_ERROR(open_of_size(surface, &large, UINT32_MAX), E2BIG);
	return 0;
}

const struct clause clauses_a[] = {
	{ "A2.size_zero_means_64", "a size of 0 means 64 bytes: what lies behind them is not read", 0, size_zero_means_64 },
	{ "A2.size_64", "64 bytes are enough", 0, size_64_is_enough },
	{ "A2.size_4096_with_zero_tail", "4096 bytes are accepted when the unknown ones are zero", 0,
	  size_4096_with_zero_tail },
	{ "A2.size_below_64_e2big", "a size below 64 gives E2BIG", 0, size_below_64_e2big },
	{ "A2.size_above_4096_e2big", "a size above 4096 gives E2BIG", 0, size_above_4096_e2big },
	{ NULL, NULL, 0, NULL }
};
