/* Memory runs out while symbols are read: either all symbols are there in order, or there is an
 * error. */
#include "test.h"

#include "symbol/symbol.h"

#include <errno.h>
#include <stdlib.h>

void *__real_calloc(size_t count, size_t size);
void *__real_malloc(size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_realloc(void *old, size_t size);

static unsigned asked, refused; /* number of the allocation that fails; 0: none */

static bool is_refused(void)
{
	return ++asked == refused;
}

void *__wrap_calloc(size_t count, size_t size)
{
	return is_refused() ? NULL : __real_calloc(count, size);
}

void *__wrap_malloc(size_t size)
{
	return is_refused() ? NULL : __real_malloc(size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return is_refused() ? NULL : __real_realloc(old, size);
}

/* Descending, so that they must be sorted. */
static const char text[] =
	"5000 100 fifth\n4000 100 fourth\n3000 100 third\n2000 100 second\n1000 100 first\n";
enum { SYMBOLS = 5, RUNS_MAX = 100 };

static void all_symbols_are_found_or_there_is_an_error(void **state)
{
	(void)state;
	unsigned errors = 0, without = 0;
	for (refused = 1; refused < RUNS_MAX; refused++) {
		struct tally_symbols *symbols = NULL;
		size_t skipped;
		asked = 0;
		int result = tally_symbols_from_perf_map(text, sizeof(text) - 1, &skipped, &symbols,
							 NULL);
		bool ran_out = asked >= refused;
		if (result < 0) {
			assert_int_equal(result, -ENOMEM);
			errors++;
			continue;
		}
		for (uint64_t at = 1; at <= SYMBOLS; at++) {
			const struct tally_symbol *symbol = tally_symbols_find(symbols,
									       at * 0x1000 + 5);
			assert_non_null(symbol);
			assert_int_equal(symbol->start, at * 0x1000);
		}
		tally_symbols_free(symbols);
		without += ran_out;
		if (!ran_out)
			break;
	}
	assert_true(refused < RUNS_MAX);
	assert_true(errors > 0 && without > 0); /* some allocations are optional */
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(
		all_symbols_are_found_or_there_is_an_error) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
