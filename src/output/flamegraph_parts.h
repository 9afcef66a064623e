/* What the SVG and the HTML flame graph are put together from.  For flamegraph_*.c. */
#ifndef TALLY_OUTPUT_FLAMEGRAPH_PARTS_H
#define TALLY_OUTPUT_FLAMEGRAPH_PARTS_H

#include "output/flamegraph.h"
#include "output/flamegraph_tree.h"

struct tally_flame_drawing {
	const struct tally_stacks *stacks;
	struct tally_flamegraph_options options; /* defaults filled in */
	struct tally_flame_tree tree;            /* by thread in the data, by command in the picture */
	struct tally_buffer title, subtitle;     /* plain text */
	const char *unit;                        /* of weight × tree.unit */
};

/* 0, -ENOMEM, -ENODATA. */
int tally_flame_drawing_init(struct tally_flame_drawing *drawing, const struct tally_stacks *stacks,
			     const struct tally_flamegraph_options *options, struct tally_error *err);
void tally_flame_drawing_release(struct tally_flame_drawing *drawing);

/* Rebuilds the tree.  0 or -ENOMEM. */
int tally_flame_drawing_tree(struct tally_flame_drawing *drawing, bool by_thread, struct tally_error *err);

/* The call tree as JSON for flamegraph.js, which documents it.  Needs the tree by thread. */
int tally_flame_data(const struct tally_flame_drawing *drawing, struct tally_buffer *out);

/* The static picture: the contents of an <svg> of the given height.  Needs the tree by command. */
void tally_flame_picture(const struct tally_flame_drawing *drawing, struct tally_buffer *out, unsigned *height_px);

/* flamegraph.css and flamegraph.js, put into the program by the build. */
extern const char tally_flamegraph_css[], tally_flamegraph_js[];

#endif
