/* The cache of rules returns the rule of exactly the address (unwind/unwind_internal.h), whatever was
 * entered and pushed out.  The test compares with artificial code in which each address has a known
 * rule. */
#include "test.h"

#include "unwind/unwind_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RULES = 64, STRETCH_MAX = 96, CODE = 1 << 22, SPACES = 5, ROUNDS = 400000 };

struct code {
	struct tally_unwind_rule rules[RULES];
	uint32_t start[CODE], end[CODE]; /* the stretch that contains an address: [start, end) */
	uint8_t rule[CODE];
};

static uint64_t draw(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 33;
}

static struct code *make_code(void)
{
	struct code *code = calloc(1, sizeof(*code));
	uint64_t state = 1;
	assert_non_null(code);
	for (uint32_t start = 0, end; start < CODE; start = end) {
		uint64_t size = draw(&state) % 7 ? 1 + draw(&state) % STRETCH_MAX
						 : 1000 + draw(&state) % 2000;
		end = start + (uint32_t)size < CODE ? start + (uint32_t)size : CODE;
		uint8_t rule = (uint8_t)(draw(&state) % RULES);
		for (uint32_t at = start; at < end; at++) {
			code->start[at] = start;
			code->end[at] = end;
			code->rule[at] = rule;
		}
	}
	return code;
}

/* Each space has the code in another place, so that neither address nor rule identifies the
 * space. */
static const struct tally_unwind_rule *rule_of(const struct code *code, uint64_t at, uint64_t space)
{
	return &code->rules[(code->rule[at] + space) % RULES];
}

static void a_rule_is_remembered_for_its_stretch_alone(void **state)
{
	const uint64_t base = 0x7f0000000000;
	struct code *code = make_code();
	struct tally_unwind_cache *cache = tally_unwind_cache_new();
	uint64_t random = 2, hits = 0;
	(void)state;
	assert_non_null(cache);
	assert_null(tally_unwind_cache_get(cache, 0, 0));
	assert_null(tally_unwind_cache_get(cache, base, 1));
	for (unsigned i = 0; i < ROUNDS; i++) {
		/* Half of the addresses are in a small part, which repeats often. */
		uint64_t at = draw(&random) % (i & 1 ? CODE : CODE / 64),
			 space = 1 + draw(&random) % SPACES;
		const struct tally_unwind_rule *rule = rule_of(code, at, space);
		const struct tally_unwind_rule *known = tally_unwind_cache_get(cache, base + at,
									       space);
		hits += !!known;
		if (known)
			assert_ptr_equal(known, rule);
		else
			tally_unwind_cache_put(cache, base + at, space, rule, at - code->start[at],
					       code->end[at] - 1 - at);
		assert_ptr_equal(tally_unwind_cache_get(cache, base + at, space), rule);
		assert_null(tally_unwind_cache_get(cache, base + at, SPACES + 1));
	}
	assert_true(hits > ROUNDS / 8); /* otherwise nothing was compared */
	assert_true(hits < ROUNDS);
	tally_unwind_cache_free(cache);
	free(code);
}

/* If an address's neighbours are unknown, nothing is assumed about them. */
static void an_address_may_stand_alone(void **state)
{
	static const struct tally_unwind_rule ONE, TWO;
	struct tally_unwind_cache *cache = tally_unwind_cache_new();
	(void)state;
	assert_non_null(cache);
	tally_unwind_cache_put(cache, 0x1200, 1, &ONE, 0, 0);
	tally_unwind_cache_put(cache, 0x13ff, 1, &TWO, 1, UINT64_MAX);
	assert_ptr_equal(tally_unwind_cache_get(cache, 0x1200, 1), &ONE);
	assert_null(tally_unwind_cache_get(cache, 0x1201, 1));
	assert_null(tally_unwind_cache_get(cache, 0x11ff, 1));
	assert_null(tally_unwind_cache_get(cache, 0x13fd, 1));
	assert_ptr_equal(tally_unwind_cache_get(cache, 0x13fe, 1), &TWO);
	assert_ptr_equal(tally_unwind_cache_get(cache, 0x13ff, 1), &TWO);
	/* the next region needs a lookup of its own */
	assert_null(tally_unwind_cache_get(cache, 0x1400, 1));
	tally_unwind_cache_free(cache);
}

/* A region's stretch has no room for all bits of a rule's address.  A rule that doesn't fit needs a
 * lookup each time. */
static void a_rule_elsewhere_is_not_remembered(void **state)
{
	const uint64_t largest = ((UINT64_C(1) << 46) - 1) * TALLY_UNWIND_RULE_ALIGN;
	const uint64_t others[] = { largest + TALLY_UNWIND_RULE_ALIGN, UINT64_C(1) << 63 | 0x1000,
				    UINT64_C(0x1004) };
	struct tally_unwind_cache *cache = tally_unwind_cache_new();
	(void)state;
	assert_non_null(cache);
	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		tally_unwind_cache_put(cache, 0x1234, 1, (const void *)(uintptr_t)others[i], 5, 5);
		assert_null(tally_unwind_cache_get(cache, 0x1234, 1));
	}
	tally_unwind_cache_put(cache, 0x1234, 1, (const void *)(uintptr_t)largest, 5, 5);
	for (uint64_t at = 0x122f; at <= 0x1239; at++)
		assert_true((uintptr_t)tally_unwind_cache_get(cache, at, 1) == largest);
	assert_null(tally_unwind_cache_get(cache, 0x122e, 1));
	assert_null(tally_unwind_cache_get(cache, 0x123a, 1));
	tally_unwind_cache_free(cache);
}

/* Reads the kernel's flags of the memory at an address: VmFlags of /proc/self/smaps (proc(5)). */
static bool is_asked_to_be_huge(const void *memory)
{
	char line[512];
	unsigned long start, end, at = (unsigned long)memory;
	bool is_there = false, is_huge = false;
	FILE *smaps = fopen("/proc/self/smaps", "r");
	assert_non_null(smaps);
	while (fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			is_there = start <= at && at < end;
		else if (is_there && !strncmp(line, "VmFlags:", 8))
			is_huge = strstr(line, " hg") != NULL;
	}
	fclose(smaps);
	return is_huge;
}

/* With small pages, each lookup costs a walk through page tables: a tenth of the unwinding time. */
static void it_is_one_huge_page(void **state)
{
	struct tally_unwind_cache *cache = tally_unwind_cache_new();
	(void)state;
	assert_non_null(cache);
	if (access("/sys/kernel/mm/transparent_hugepage/enabled", R_OK)) {
		tally_unwind_cache_free(cache);
		skip(); /* this kernel does not support it */
	}
	assert_true(is_asked_to_be_huge(cache));
	assert_true(is_asked_to_be_huge((const uint8_t *)cache + sizeof(*cache) - 1));
	tally_unwind_cache_free(cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rule_is_remembered_for_its_stretch_alone),
		cmocka_unit_test(an_address_may_stand_alone),
		cmocka_unit_test(a_rule_elsewhere_is_not_remembered),
		cmocka_unit_test(it_is_one_huge_page),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
