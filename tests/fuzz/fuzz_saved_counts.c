/* Saved counts are read, or refused with a message.  Counts that were read can be compared with
 * themselves, and are equal.  An unterminated comment behind them changes nothing. */
#include "fuzz.h"

#include "base/arena.h"
#include "counts/counts.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void check(const struct tally_saved_counts *counts, struct tally_arena *arena)
{
	struct tally_saved_comparison comparison;
	require(tally_saved_compare(counts, counts, arena, &comparison) == 0);
	require(comparison.rows.count == counts->rows.count);
	for (size_t i = 0; i < comparison.rows.count; i++) {
		const struct tally_compared_row *row = &comparison.rows.items[i];
		require(row->new == &counts->rows.items[i] && row->old == row->new);
		require(!row->has_change || row->change.difference == 0 ||
			!isfinite(row->new->figure.mean));
		struct tally_condition condition;
		if (tally_condition_parse(row->name, &condition, NULL) == 0)
			tally_saved_compare_judge(&comparison, &condition, false, NULL);
	}
	tally_saved_comparison_release(&comparison);
}

static void check_commented(const uint8_t *bytes, size_t size,
			    const struct tally_saved_counts *plain)
{
	static const char comment[] = "\n# ended";
	struct tally_arena arena = TALLY_ARENA_INIT;
	struct tally_saved_counts counts;
	char *text = malloc(size + sizeof(comment));
	require(text);
	if (size)
		memcpy(text, bytes, size);
	memcpy(text + size, comment, sizeof(comment));
	int result = tally_saved_counts_read("input", text, size + sizeof(comment) - 1, &arena,
					     &counts, NULL);
	require((result == 0) == (plain != NULL) &&
		(!plain || counts.rows.count == plain->rows.count));
	if (!result)
		tally_saved_counts_release(&counts);
	tally_arena_release(&arena);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct tally_arena arena = TALLY_ARENA_INIT;
	struct tally_saved_counts counts;
	struct tally_error err = TALLY_ERROR_NONE;
	int result = tally_saved_counts_read("input", (const char *)bytes, size, &arena, &counts,
					     &err);
	require(result == 0 || (result == err.code && err.message[0]));
	check_commented(bytes, size, result ? NULL : &counts);
	if (!result) {
		check(&counts, &arena);
		tally_saved_counts_release(&counts);
	}
	tally_arena_release(&arena);
	return 0;
}
