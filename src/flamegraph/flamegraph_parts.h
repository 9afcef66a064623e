/* The parts of SVG and HTML flame graphs. For flamegraph_*.c. */
#ifndef TALLY_OUTPUT_FLAMEGRAPH_PARTS_H
#define TALLY_OUTPUT_FLAMEGRAPH_PARTS_H

#include "flamegraph/flamegraph.h"
#include "flamegraph/flamegraph_change.h"
#include "flamegraph/flamegraph_tree.h"

enum { TALLY_FLAME_BOXES_MAX = 6000 /* in the picture */ };

struct tally_flame_drawing {
	const struct tally_stacks *stacks;
	struct tally_flamegraph_options options; /* with defaults filled in */
	struct tally_flame_tree by_thread, by_comm; /* for the data; for the picture */
	struct tally_flame_old old;
	struct tally_buffer title, subtitle;     /* plain text */
	const char *unit;                        /* the unit of weight × the trees' `unit` */
};

/* Returns 0, -ENOMEM or -ENODATA. */
int tally_flame_drawing_init(struct tally_flame_drawing *drawing, const struct tally_stacks *stacks,
			     const struct tally_flamegraph_options *options,
			     struct tally_error *err);
void tally_flame_drawing_release(struct tally_flame_drawing *drawing);

/* Builds the trees unless they are built. Returns 0 or -ENOMEM. */
int tally_flame_drawing_trees(struct tally_flame_drawing *drawing, struct tally_error *err);

/* Writes the call tree as JSON for flamegraph.js; flamegraph_data.c documents it. */
int tally_flame_data(const struct tally_flame_drawing *drawing, struct tally_buffer *out);

/* Writes the static picture: the contents of an <svg> of the height in `*height_px`. */
void tally_flame_picture(const struct tally_flame_drawing *drawing, struct tally_buffer *out,
			 unsigned *height_px);

/* flamegraph.css and flamegraph.js, which the build embeds; tally_flamegraph_diff_js is the script
 * with the code for differential graphs. */
extern const char tally_flamegraph_css[], tally_flamegraph_js[], tally_flamegraph_diff_js[];

#endif
