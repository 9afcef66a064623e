/* An annotated function as text, as one HTML file, as JSON. */
#ifndef TALLY_ANNOTATE_H
#define TALLY_ANNOTATE_H

#include "annotate/annotate_internal.h"
#include "base/json.h"
#include "report/report.h"

struct tally_annotate_view {
	unsigned columns;     /* terminal width; 0: unlimited */
	bool colours, ascii;
	bool with_source;     /* source lines between instructions */
	bool with_numbers;    /* file and line number with each source line */
	bool with_samples;    /* sample counts beside percentages */
	const char
		*taken; /* options that selected the samples ("--comm cc1"); NULL: none */
	int64_t recorded_ns;  /* wall-clock time of the last sample, in ns; 0: unknown */
	/* Instructions below this percentage and not near a heavier one are left out; 0: none
	 * are. */
	double percent_min;
	struct tally_source_files *sources;
};

/* Sets `*hottest` (may be NULL) to the offset in `out` of the line with the heaviest instruction or
 * source line; stays as it is if there is none.  Returns 0 or -ENOMEM. */
int tally_annotate_text(const struct tally_annotation *annotation,
			const struct tally_annotate_view *view, struct tally_buffer *out,
			size_t *hottest);

/* Writes one member of an array. */
void tally_annotate_json(const struct tally_annotation *annotation,
			 struct tally_source_files *sources, struct tally_json *json);

/* Writes a complete page with all the functions. Returns 0 or -ENOMEM. */
int tally_annotate_html(const struct tally_annotation *annotations, size_t count,
			const struct tally_annotate_view *view, struct tally_buffer *out);

/* annotate_lines.c: shared by the views. */

/* Returns a sentence that explains how a sample's address relates to this event's cause (skid,
 * precision); "" if it needs no explanation. */
const char *tally_annotate_aim_text(const struct tally_annotation *annotation);

/* Appends "; 5 of them are in functions that were inlined into it" and what its other copies have,
 * as far as this is so. */
void tally_annotate_copies_text(const struct tally_annotation *annotation,
				struct tally_buffer *out);

/* Appends "main.rs:31", or "main.rs:31 → cmp.rs:20" where cmp.rs's code is inlined. */
void tally_annotate_path_text(const struct tally_annotation *annotation,
			      const struct tally_annotated_path *path, bool ascii,
			      struct tally_buffer *out);

/* Returns for each instruction whether it is shown: instructions of at least `percent_min` are, and
 * those near them. The caller frees the array. NULL: out of memory. */
bool *tally_annotate_visible(const struct tally_annotation *annotation, double percent_min);

/* A run of a function's source lines from one file, shown as one piece. */
struct tally_line_block {
	uint32_t file; /* string id */
	uint32_t first, last;
	size_t begin, end; /* range of the annotation's lines */
};

/* Finds the next block at or after `begin`: 0 for the first, then the previous block's `end`. A
 * block includes a few lines around those with code or samples. Returns false after the last. */
bool tally_annotate_next_block(const struct tally_annotation *annotation,
			       struct tally_source_files *sources, size_t begin,
			       struct tally_line_block *out);

/* True if any of the block's lines has samples. */
bool tally_annotate_has_samples(const struct tally_annotation *annotation,
				const struct tally_line_block *block);

/* Appends warnings about the source text, one sentence a line: a file cannot be read, or has
 * changed since it was compiled. */
void tally_annotate_source_notes(const struct tally_annotation *annotation,
				 const struct tally_annotate_view *view, struct tally_buffer *out);

#endif
