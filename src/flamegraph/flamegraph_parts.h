/* What the SVG and the HTML flame graph are put together from.  For flamegraph_*.c. */
#ifndef TALLY_OUTPUT_FLAMEGRAPH_PARTS_H
#define TALLY_OUTPUT_FLAMEGRAPH_PARTS_H

#include "flamegraph/flamegraph.h"
#include "flamegraph/flamegraph_change.h"
#include "flamegraph/flamegraph_tree.h"

enum { TALLY_FLAME_BOXES_MAX = 6000 /* in the picture */ };

struct tally_flame_drawing {
	const struct tally_stacks *stacks;
	struct tally_flamegraph_options options; /* defaults filled in */
	struct tally_flame_tree by_thread, by_comm; /* the data's, the picture's */
	struct tally_flame_old old;
	struct tally_buffer title, subtitle;     /* plain text */
	const char *unit;                        /* of weight × the trees' unit */
};

/* 0, -ENOMEM, -ENODATA. */
int tally_flame_drawing_init(struct tally_flame_drawing *drawing, const struct tally_stacks *stacks,
			     const struct tally_flamegraph_options *options,
			     struct tally_error *err);
void tally_flame_drawing_release(struct tally_flame_drawing *drawing);

/* Builds the trees, once.  0 or -ENOMEM. */
int tally_flame_drawing_trees(struct tally_flame_drawing *drawing, struct tally_error *err);

/* The call tree as JSON for flamegraph.js, which documents it. */
int tally_flame_data(const struct tally_flame_drawing *drawing, struct tally_buffer *out);

/* The static picture: the contents of an <svg> of the given height. */
void tally_flame_picture(const struct tally_flame_drawing *drawing, struct tally_buffer *out,
			 unsigned *height_px);

/* flamegraph.css and flamegraph.js, put into the program by the build; the script as it is of
 * differential graphs, too. */
extern const char tally_flamegraph_css[], tally_flamegraph_js[], tally_flamegraph_diff_js[];

#endif
