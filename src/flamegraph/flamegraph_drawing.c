#include "flamegraph/flamegraph_parts.h"

#include "base/number_text.h"
#include "output/flamegraph_text.h"

#include <errno.h>
#include <string.h>

static const struct tally_flamegraph_options defaults = { .width_px = 1200,
							  .min_width_px = 0.5,
							  .nodes_max = 300000 };

static void write_title(struct tally_flame_drawing *drawing)
{
	const char *title = drawing->options.title;
	if (!title)
		title = drawing->stacks->title[0] ? drawing->stacks->title : "Flame graph";
	const char *old = drawing->old.stacks && !drawing->options.title
				  ? drawing->old.stacks->title
				  : "";
	if (old[0] && strcmp(old, title))
		tally_buffer_printf(&drawing->title, "%s \u2192 ", old);
	tally_buffer_text(&drawing->title, title);
}

static void write_size(const struct tally_stacks *stacks, struct tally_buffer *out)
{
	bool has_both = stacks->total_samples && strcmp(stacks->unit, "samples");
	if (has_both || !stacks->total_samples) {
		/* The event's name precedes this text, which is escaped when it is written. */
		tally_flame_weight(out, (double)stacks->total_weight, stacks->unit, "");
	}
	if (stacks->total_samples) {
		tally_buffer_text(out, has_both ? " in " : "");
		tally_flame_weight(out, (double)stacks->total_samples, "samples", "");
	}
}

/* "cpu-clock · 1.24 s in 618 samples · 12 threads", or, compared, "cpu-clock · 1.24 s in 618
 * samples, before: 1.10 s in 550 samples" */
static void write_subtitle(struct tally_flame_drawing *drawing)
{
	const struct tally_stacks *stacks = drawing->stacks;
	struct tally_buffer *out = &drawing->subtitle;
	if (drawing->options.subtitle) {
		tally_buffer_text(out, drawing->options.subtitle);
		return;
	}
	if (stacks->event[0])
		tally_buffer_printf(out, "%s \u00b7 ", stacks->event);
	write_size(stacks, out);
	if (drawing->old.stacks) {
		tally_buffer_text(out, ", before: ");
		write_size(drawing->old.stacks, out);
		return;
	}
	tally_buffer_text(out, " \u00b7 ");
	tally_buffer_text(out, tally_number(stacks->thread_count));
	tally_buffer_text(out, stacks->thread_count == 1 ? " thread" : " threads");
}

int tally_flame_drawing_init(struct tally_flame_drawing *drawing, const struct tally_stacks *stacks,
			     const struct tally_flamegraph_options *options,
			     struct tally_error *err)
{
	*drawing = (struct tally_flame_drawing){ .stacks = stacks,
						 .options = *options,
						 .unit = stacks->unit,
						 .old.stacks = options->old };
	struct tally_flamegraph_options *filled = &drawing->options;
	if (!filled->width_px)
		filled->width_px = defaults.width_px;
	if (!(filled->min_width_px > 0))
		filled->min_width_px = defaults.min_width_px;
	if (!filled->nodes_max)
		filled->nodes_max = defaults.nodes_max;
	filled->by_samples = filled->by_samples && stacks->total_samples;
	const struct tally_stacks *old = options->old;
	if (filled->by_samples || !stacks->unit[0])
		drawing->unit = "samples";
	if (!(filled->by_samples ? stacks->total_samples : stacks->total_weight) ||
	    (old && !old->total_weight)) {
		tally_error_set(err, -ENODATA,
				"there is nothing to draw: the stacks have no weight");
		tally_error_hint(err, "a recording needs samples: `tally record -g COMMAND`");
		return -ENODATA;
	}
	write_title(drawing);
	write_subtitle(drawing);
	return 0;
}

int tally_flame_drawing_trees(struct tally_flame_drawing *drawing, struct tally_error *err)
{
	const struct tally_flame_tree_options options = {
		.by_samples = drawing->options.by_samples,
		.nodes_max = { drawing->options.nodes_max, TALLY_FLAME_BOXES_MAX },
	};
	if (tally_flame_trees_build(&drawing->by_thread, &drawing->by_comm, drawing->stacks,
				    &options) < 0)
		return tally_error_set(err, -ENOMEM, "out of memory while building the call tree");
	struct tally_flame_old *old = &drawing->old;
	if (old->stacks &&
	    (tally_flame_trees_build(&old->by_thread, &old->by_comm, old->stacks, &options) < 0 ||
	     tally_flame_old_pair(old, drawing->stacks, &drawing->by_comm) < 0))
		return tally_error_set(err, -ENOMEM,
				       "out of memory while comparing the call trees");
	return 0;
}

void tally_flame_drawing_release(struct tally_flame_drawing *drawing)
{
	tally_flame_tree_release(&drawing->by_thread);
	tally_flame_tree_release(&drawing->by_comm);
	tally_flame_old_release(&drawing->old);
	tally_buffer_release(&drawing->title);
	tally_buffer_release(&drawing->subtitle);
}
