/* Flame graphs: turns stacks into one self-contained file, SVG or HTML.
 *
 * Both contain a static picture (for viewers without scripts) and the call tree as data, which the
 * embedded script draws: zoom, search, filters, themes. The same stacks and options give the same
 * bytes.
 */
#ifndef TALLY_FLAMEGRAPH_H
#define TALLY_FLAMEGRAPH_H

#include "base/buffer.h"
#include "base/error.h"
#include "profile/stacks.h"

#include <stdbool.h>

enum tally_flamegraph_theme { TALLY_THEME_AUTO, TALLY_THEME_LIGHT, TALLY_THEME_DARK };

struct tally_flamegraph_options {
	const char *title;    /* NULL: the stacks' title, else "Flame graph" */
	const char *subtitle; /* NULL: event, samples, weight and threads */
	bool icicle;          /* root at the top */
	bool by_samples;      /* weigh by samples instead of periods, where samples are counted */
	enum tally_flamegraph_theme theme;
	unsigned width_px;    /* width of the static picture; 0: 1200 */
	double min_width_px;  /* narrower frames are merged in the static picture; 0: 0.5 */
	/* The stacks to compare with; boxes are then coloured by how their shares changed. Both
	 * sides must have the same frames and commands (tally_match_side). NULL: no comparison,
	 * colours show kinds of code. */
	const struct tally_stacks *old;
	size_t nodes_max;     /* boxes in the file; 0: as many as fit in about 4 MB */
};

/* Append to `out`. Return 0, -ENOMEM, or -ENODATA when the stacks' total weight is 0. */
int tally_flamegraph_svg(const struct tally_stacks *stacks,
			 const struct tally_flamegraph_options *options, struct tally_buffer *out,
			 struct tally_error *err);
int tally_flamegraph_html(const struct tally_stacks *stacks,
			  const struct tally_flamegraph_options *options, struct tally_buffer *out,
			  struct tally_error *err);

#endif
