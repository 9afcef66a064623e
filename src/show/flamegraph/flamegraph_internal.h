/* What the files of this room share: the call tree, the palette, the comparison with an old side,
 * and the parts of a file. */
#ifndef TALLY_FLAMEGRAPH_INTERNAL_H
#define TALLY_FLAMEGRAPH_INTERNAL_H

#include "flamegraph/flamegraph.h"

#include "base/buffer.h"
#include "profile/stacks.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- flamegraph_tree.c: the call tree ------------------------------------- */

/* Nodes are in preorder: a node's first child is the next node, its next sibling is at `end`. Node
 * 0 is the root, its children are threads or commands, and all nodes below are frames. Siblings are
 * sorted by name.
 *
 * Frames that are too light for the largest `nodes_max` may be left out. A run of such neighbours,
 * with everything below them, is then one node without children.
 */
struct tally_flame_node {
	/* id of a frame; at depth 1, of a slot; 0 for the root; or TALLY_FLAME_RUN */
	uint32_t id;
	uint32_t depth; /* 0 for the root */
	uint32_t end;   /* index after the last descendant */
	uint64_t self;  /* of a run: the number of frames in it */
	uint64_t total;
};

#define TALLY_FLAME_RUN UINT32_MAX

/* A node at depth 1: a thread or a command. */
struct tally_flame_slot {
	uint32_t comm; /* string id */
	uint32_t pid, tid;
	uint32_t threads; /* threads in this slot */
};

struct tally_flame_tree {
	struct {
		struct tally_flame_node *items;
		size_t count, capacity;
	} nodes;
	/* in the nodes' order */
	struct {
		struct tally_flame_slot *items;
		size_t count, capacity;
	} slots;
	uint32_t *frame_ranks; /* by frame id: rank in the order of names */
	/* greatest common divisor of the weights; all weights below were divided by it */
	uint64_t unit;
	bool unit_is_sample; /* each sample weighs `unit`, so weights count samples */
	uint32_t depth_max;
	uint64_t *level_weights;       /* total of all nodes, by depth up to depth_max */
	bool kinds[TALLY_FRAME_KINDS]; /* kinds of frames in the tree */
	uint64_t least;                /* frames lighter than this may be in runs */
};

enum {
	/* the heaviest threads have slots of their own; others share their command's */
	TALLY_FLAME_THREADS_MAX = 256,
	TALLY_FLAME_DEPTH_MAX = 2000, /* deeper frames count as self weight of their ancestor */
};

/* Limits of the trees to build. */
struct tally_flame_tree_options {
	bool by_samples;
	/* For the tree by thread and by command: the heaviest nodes that are kept; others may be in
	 * runs. */
	size_t nodes_max[2];
	/* minimum stacks of a command to use a second thread; 0: default */
	size_t threads_from;
};

/* Builds the tree of threads and the tree of commands. The caller releases both, also after an
 * error. Returns 0 or -ENOMEM. */
int tally_flame_trees_build(struct tally_flame_tree *by_thread, struct tally_flame_tree *by_comm,
			    const struct tally_stacks *stacks,
			    const struct tally_flame_tree_options *options);

/* Returns the number of frames in the node's subtree, itself included. */
uint64_t tally_flame_tree_frames(const struct tally_flame_tree *tree, size_t index);

/* Returns the smallest total, at least 1, that at most `nodes_max` nodes reach. `nodes_max` must
 * not exceed the value that the tree was built with. */
uint64_t tally_flame_tree_threshold(const struct tally_flame_tree *tree, size_t nodes_max);

void tally_flame_tree_release(struct tally_flame_tree *tree);

/* Returns the box's name: a frame's, a command's, or "all". */
const char *tally_flame_node_name(const struct tally_flame_tree *tree,
				  const struct tally_stacks *stacks,
				  const struct tally_flame_node *node);

/* Returns the index into the palette: the frame's kind, or TALLY_FRAME_KINDS for threads and the
 * root. */
unsigned tally_flame_node_kind(const struct tally_stacks *stacks,
			       const struct tally_flame_node *node);
/* The same for a frame.  "[woken by …]", which is no code, looks like a thread: the waker's stack
 * begins there. */
unsigned tally_flame_frame_kind(const struct tally_stacks *stacks, uint32_t frame);

/* --- flamegraph_colours.c: the palette ------------------------------------ */

/* The hue shows the kind of code, shades separate neighbours. */
enum { TALLY_FLAME_KINDS = TALLY_FRAME_KINDS + 1, TALLY_FLAME_SHADES = 4 };

struct tally_flame_theme {
	uint32_t fills[TALLY_FLAME_KINDS][TALLY_FLAME_SHADES]; /* 0xrrggbb */
	uint32_t ink;                                          /* text on fills */
	uint32_t background;
	uint32_t text, muted; /* text colours on the background */
};

extern const struct tally_flame_theme tally_flame_light, tally_flame_dark;

/* "program", …, "thread" */
extern const char *const tally_flame_kind_names[TALLY_FLAME_KINDS];

/* Returns a name's shade, which is the same in every graph. */
unsigned tally_flame_shade(const char *name);

/* Writes style rules for the static picture, in both themes: .pKS (kind, shade) and texts. */
void tally_flame_colour_rules(struct tally_buffer *out);

/* Writes the "palette" member of the data. */
void tally_flame_colour_json(struct tally_buffer *out);

/* --- flamegraph_change.c: how a box's share changed ----------------------- */

enum { TALLY_FLAME_STEPS = 5 }; /* colours for growth, and as many for shrinking */

/* The old side.  Its stacks and the new side's use the same frame numbers. */
struct tally_flame_old {
	const struct tally_stacks *stacks; /* NULL: no comparison */
	struct tally_flame_tree by_thread, by_comm;
	/* by node of the new side's by_comm: the old side's node, or UINT32_MAX */
	uint32_t *others;
	double samples, new_samples;
	double largest; /* largest change of a node's share, 0 to 1 */
};

/* Pairs the nodes of two trees by their names. Returns 0 or -ENOMEM. */
int tally_flame_old_pair(struct tally_flame_old *old, const struct tally_stacks *new,
			 const struct tally_flame_tree *new_tree);
void tally_flame_old_release(struct tally_flame_old *old);

/* Returns the node's share of the old side's total. */
double tally_flame_old_share(const struct tally_flame_old *old, size_t node);

/* Returns −TALLY_FLAME_STEPS (shrank most) to TALLY_FLAME_STEPS (grew most); 0: the change is
 * within the sampling error. */
int tally_flame_step(const struct tally_flame_old *old, double old_share, double new_share);

/* Writes the CSS rules for both themes: the colours of the classes .d0 to
 * .d(2 × TALLY_FLAME_STEPS), one for each step, and the layout of the page's colour scale. */
void tally_flame_change_rules(struct tally_buffer *out);

/* Writes the "change" member of the data. */
void tally_flame_change_json(const struct tally_flame_old *old, struct tally_buffer *out);

/* --- the parts of SVG and HTML files -------------------------------------- */

enum { TALLY_FLAME_BOXES_MAX = 6000 /* in the picture */ };

struct tally_flame_drawing {
	const struct tally_stacks *stacks;
	struct tally_flamegraph_options options;    /* with defaults filled in */
	struct tally_flame_tree by_thread, by_comm; /* for the data; for the picture */
	struct tally_flame_old old;
	struct tally_buffer title, subtitle; /* plain text */
	/* unit of a weight after it is multiplied by the trees' `unit` */
	const char *unit;
};

/* Writes the call tree as JSON for flamegraph.js; flamegraph_data.c documents it. */
int tally_flame_data(const struct tally_flame_drawing *drawing, struct tally_buffer *out);

/* Writes the static picture: the contents of an <svg> of the height in `*height_px`. */
void tally_flame_picture(const struct tally_flame_drawing *drawing, struct tally_buffer *out,
			 unsigned *height_px);

/* flamegraph.css and flamegraph.js, which the build embeds; tally_flamegraph_diff_js is the script
 * with the code for differential graphs. */
extern const char tally_flamegraph_css[], tally_flamegraph_js[], tally_flamegraph_diff_js[];

#endif
