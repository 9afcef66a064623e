/* Gathers an arrow for each target, sorts arrows by length, and gives each one the first column
 * that is free along its span.  `there` is a grid of columns and instructions; the views draw its
 * cells. */
#include "annotate/annotate_internal.h"

#include "base/extremes.h"
#include "base/vector.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

static int shorter_first(const void *a_, const void *b_)
{
	const struct tally_arrow *a = a_, *b = b_;
	uint32_t a_length = a->high - a->low, b_length = b->high - b->low;
	if (a_length != b_length)
		return tally_compare_u64(a_length, b_length);
	return tally_compare_u64(a->low, b->low);
}

static int gather(const struct tally_annotation *annotation, struct tally_arrows *out)
{
	/* arrow's index + 1, by target instruction; 0: none yet */
	uint32_t *of_target = calloc(annotation->instructions.count + 1, sizeof(*of_target));
	int result = 0;
	if (!of_target)
		return -ENOMEM;
	for (uint32_t from = 0; from < annotation->instructions.count; from++) {
		uint32_t to = annotation->instructions.items[from].destination;
		if (to == UINT32_MAX)
			continue;
		if (!of_target[to]) {
			result = tally_vector_push(
				&out->arrows,
				(struct tally_arrow){ .low = to, .high = to, .to = to });
			if (result < 0)
				break;
			of_target[to] = (uint32_t)out->arrows.count;
		}
		struct tally_arrow *arrow = &out->arrows.items[of_target[to] - 1];
		if (from < arrow->low)
			arrow->low = from;
		if (from > arrow->high)
			arrow->high = from;
	}
	free(of_target);
	return result;
}

static bool is_free(const struct tally_arrows *arrows, const struct tally_arrow *arrow,
		    unsigned column)
{
	const uint32_t *there = arrows->there + column * arrows->rows;
	for (size_t row = arrow->low; row <= arrow->high; row++)
		if (there[row])
			return false;
	return true;
}

int tally_arrows_make(const struct tally_annotation *annotation, unsigned columns_max,
		      struct tally_arrows *out)
{
	*out = (struct tally_arrows){ .rows = annotation->instructions.count };
	out->there = calloc(out->rows * columns_max + 1, sizeof(*out->there));
	if (!out->there || gather(annotation, out) < 0)
		return -ENOMEM;
	if (out->arrows.count)
		qsort(out->arrows.items, out->arrows.count, sizeof(*out->arrows.items),
		      shorter_first);
	for (size_t i = 0; i < out->arrows.count; i++) {
		struct tally_arrow *arrow = &out->arrows.items[i];
		unsigned column = 0;
		while (column < columns_max && !is_free(out, arrow, column))
			column++;
		arrow->column = column;
		if (column == columns_max)
			arrow->column = UINT_MAX;
		for (size_t row = arrow->low; column < columns_max && row <= arrow->high; row++)
			out->there[column * out->rows + row] = (uint32_t)i + 1;
		if (column < columns_max && column >= out->columns)
			out->columns = column + 1;
	}
	return 0;
}

void tally_arrows_release(struct tally_arrows *arrows)
{
	tally_vector_release(&arrows->arrows);
	free(arrows->there);
	arrows->there = NULL;
}

static const struct tally_arrow *arrow_at(const struct tally_arrows *arrows, size_t row,
					  unsigned column)
{
	if (row >= arrows->rows)
		return NULL;
	uint32_t there = arrows->there[column * arrows->rows + row];
	if (!there)
		return NULL;
	return &arrows->arrows.items[there - 1];
}

static bool ends_here(const struct tally_arrow *arrow, const struct tally_annotation *annotation,
		      size_t row)
{
	return arrow &&
	       (arrow->to == row || annotation->instructions.items[row].destination == arrow->to);
}

unsigned tally_arrow_cell(const struct tally_arrows *arrows,
			  const struct tally_annotation *annotation, size_t row, unsigned column,
			  bool above)
{
	const struct tally_arrow *arrow = arrow_at(arrows, row, column);
	unsigned cell = 0;
	if (above) {
		if (arrow && arrow->low < row)
			return TALLY_ARROW_UP | TALLY_ARROW_DOWN;
		return 0;
	}
	if (arrow && arrow->low < row)
		cell |= TALLY_ARROW_UP;
	if (arrow && arrow->high > row)
		cell |= TALLY_ARROW_DOWN;
	if (arrow && ends_here(arrow, annotation, row))
		cell |= TALLY_ARROW_RIGHT;
	for (unsigned outer = column + 1; outer < arrows->columns; outer++)
		if (ends_here(arrow_at(arrows, row, outer), annotation, row))
			return cell | TALLY_ARROW_LEFT | TALLY_ARROW_RIGHT;
	return cell;
}

bool tally_arrow_arrives(const struct tally_arrows *arrows, size_t row)
{
	for (unsigned column = 0; column < arrows->columns; column++) {
		const struct tally_arrow *arrow = arrow_at(arrows, row, column);
		if (arrow && arrow->to == row)
			return true;
	}
	return false;
}

bool tally_arrow_leaves(const struct tally_arrows *arrows,
			const struct tally_annotation *annotation, size_t row)
{
	for (unsigned column = 0; column < arrows->columns; column++)
		if (ends_here(arrow_at(arrows, row, column), annotation, row))
			return true;
	return false;
}
