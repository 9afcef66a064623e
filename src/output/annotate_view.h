/* An annotated function as text, as one HTML file, as JSON. */
#ifndef TALLY_OUTPUT_ANNOTATE_VIEW_H
#define TALLY_OUTPUT_ANNOTATE_VIEW_H

#include "base/json.h"
#include "output/source_text.h"
#include "report/annotation.h"

struct tally_annotate_view {
	unsigned columns;     /* of the terminal; 0: as wide as it gets */
	bool colours, ascii;
	bool with_source;     /* source lines between the instructions */
	bool with_numbers;    /* … and where they are */
	bool with_samples;    /* samples beside percentages */
	const char
		*taken; /* "--comm cc1": by what options the samples were taken; NULL: all were */
	int64_t recorded_ns;  /* when the last sample was taken, by time(2); 0: not known */
	/* instructions of less, and far from others, are left out; 0: none are */
	double percent_min;
	struct tally_source_files *sources;
};

/* 0 or -ENOMEM. */
int tally_annotate_text(const struct tally_annotation *annotation,
			const struct tally_annotate_view *view, struct tally_buffer *out);

/* One member of an array. */
void tally_annotate_json(const struct tally_annotation *annotation,
			 struct tally_source_files *sources, struct tally_json *json);

/* A whole page of them. */
int tally_annotate_html(const struct tally_annotation *annotations, size_t count,
			const struct tally_annotate_view *view, struct tally_buffer *out);

/* annotate_lines.c: what the views have in common. */

/* What a sample's address means for this event, as a sentence; "" where it is what everybody
 * expects. */
const char *tally_annotate_aim_text(const struct tally_annotation *annotation);

/* The heaviest lines, at most `max`, as indices into lines; how many. */
size_t tally_annotate_hot_lines(const struct tally_annotation *annotation, uint32_t *out,
				size_t max);

/* Of each instruction: is it shown?  Those that weigh enough and their surroundings are.  NULL: no
 * memory. */
bool *tally_annotate_visible(const struct tally_annotation *annotation, double percent_min);

/* A run of lines of one file that belong to the function, to be shown in one piece. */
struct tally_line_block {
	uint32_t file; /* string id */
	uint32_t first, last;
	size_t begin, end; /* of the annotation's lines */
};

/* The blocks, in order; some lines around those that have code or samples belong to them.  The next
 * one behind `begin` (0 at first: `out->end` later); false: no more. */
bool tally_annotate_next_block(const struct tally_annotation *annotation,
			       struct tally_source_files *sources, size_t begin,
			       struct tally_line_block *out);

/* Whether samples are of any of a block's lines. */
bool tally_annotate_has_samples(const struct tally_annotation *annotation,
				const struct tally_line_block *block);

/* How far to trust the source text that is shown, a sentence a line: it isn't here, or is not what
 * was compiled. */
void tally_annotate_source_notes(const struct tally_annotation *annotation,
				 const struct tally_annotate_view *view, struct tally_buffer *out);

#endif
