/* The SVG and the HTML file, which share the picture, the data, the style and the script. */
#include "base/text.h"
#include "flamegraph/flamegraph_internal.h"

#include "base/number_text.h"
#include "output/output_text.h"

#include <errno.h>
#include <string.h>

static const struct tally_flamegraph_options defaults = { .width_px = 1200,
							  .min_width_px = 0.5,
							  .nodes_max = 300000 };

static void write_title(struct tally_flame_drawing *drawing)
{
	if (drawing->options.title) {
		tally_buffer_text(&drawing->title, drawing->options.title);
		return;
	}
	const char *title = "Flame graph", *old = "";
	if (drawing->stacks->title[0])
		title = drawing->stacks->title;
	if (drawing->old.stacks)
		old = drawing->old.stacks->title;
	if (old[0] && strcmp(old, title))
		tally_buffer_printf(&drawing->title, "%s \u2192 ", old);
	tally_buffer_text(&drawing->title, title);
}

static void write_size(const struct tally_stacks *stacks, struct tally_buffer *out)
{
	bool has_both = stacks->total_samples && strcmp(stacks->unit, "samples");
	if (has_both || !stacks->total_samples) {
		/* The event's name precedes this text, which is escaped when it is written. */
		if (stacks->weights_cut)
			tally_buffer_text(out, "at least ");
		tally_flame_weight(out, (double)stacks->total_weight, stacks->unit, "");
	}
	if (stacks->total_samples) {
		if (has_both)
			tally_buffer_text(out, " in ");
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
	tally_buffer_printf(out, " thread%s", tally_plural(stacks->thread_count));
}

/* Returns 0, -ENOMEM or -ENODATA. */
static int drawing_init(struct tally_flame_drawing *drawing, const struct tally_stacks *stacks,
			const struct tally_flamegraph_options *options, struct tally_error *err)
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
	uint64_t total = filled->by_samples ? stacks->total_samples : stacks->total_weight;
	if (!total || (old && !old->total_weight)) {
		tally_error_set(err, -ENODATA,
				"there is nothing to draw: the stacks have no weight");
		tally_error_hint(err, "a recording needs samples: `tally record -g COMMAND`");
		return -ENODATA;
	}
	write_title(drawing);
	write_subtitle(drawing);
	return 0;
}

/* Builds the trees. Returns 0 or -ENOMEM. */
static int drawing_trees(struct tally_flame_drawing *drawing, struct tally_error *err)
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

static void drawing_release(struct tally_flame_drawing *drawing)
{
	tally_flame_tree_release(&drawing->by_thread);
	tally_flame_tree_release(&drawing->by_comm);
	tally_flame_old_release(&drawing->old);
	tally_buffer_release(&drawing->title);
	tally_buffer_release(&drawing->subtitle);
}

struct flame_parts {
	struct tally_buffer data, picture;
	unsigned height_px;
};

static int make_parts(struct tally_flame_drawing *drawing, struct flame_parts *parts,
		      struct tally_error *err)
{
	int status = drawing_trees(drawing, err);
	if (!status && tally_flame_data(drawing, &parts->data) < 0)
		status = tally_error_set(err, -ENOMEM,
					 "out of memory while writing the flame graph");
	if (!status)
		tally_flame_picture(drawing, &parts->picture, &parts->height_px);
	if (!status && parts->picture.failed)
		status = tally_error_set(err, -ENOMEM,
					 "out of memory while drawing the flame graph");
	return status;
}

static void release_parts(struct flame_parts *parts)
{
	tally_buffer_release(&parts->data);
	tally_buffer_release(&parts->picture);
}

static const char *theme_attribute(const struct tally_flame_drawing *drawing)
{
	static const char *const attributes[] = { "", " data-theme=\"light\"",
						  " data-theme=\"dark\"" };
	return attributes[drawing->options.theme];
}

static void append_part(struct tally_buffer *out, const struct tally_buffer *part)
{
	tally_buffer_append(out, tally_buffer_string(part), part->length);
}

static void append_svg_open(const struct tally_flame_drawing *drawing, unsigned height_px,
			    const char *attributes, struct tally_buffer *out)
{
	unsigned width = drawing->options.width_px;
	tally_buffer_printf(out,
			    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
			    "viewBox=\"0 0 %u %u\"%s>\n",
			    width, height_px, width, height_px, attributes);
}

static void append_title(const struct tally_flame_drawing *drawing, struct tally_buffer *out)
{
	tally_buffer_text(out, "<title>");
	tally_flame_markup_text(out, tally_buffer_string(&drawing->title));
	tally_buffer_text(out, "</title>\n");
}

static void write_rules(const struct tally_flame_drawing *drawing, struct tally_buffer *out)
{
	tally_flame_colour_rules(out);
	if (drawing->old.stacks)
		tally_flame_change_rules(out);
}

static const char *script_of(const struct tally_flame_drawing *drawing)
{
	if (drawing->old.stacks)
		return tally_flamegraph_diff_js;
	return tally_flamegraph_js;
}

static void write_svg(const struct tally_flame_drawing *drawing, const struct flame_parts *parts,
		      struct tally_buffer *out)
{
	tally_buffer_text(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
	append_svg_open(drawing, parts->height_px, theme_attribute(drawing), out);
	append_title(drawing, out);
	/* Neither the script nor its data contains "]]>"; a test checks the script. */
	tally_buffer_printf(out, "<style><![CDATA[\n%s", tally_flamegraph_css);
	write_rules(drawing, out);
	tally_buffer_text(out, "]]></style>\n<g id=\"tally-picture\">\n");
	append_part(out, &parts->picture);
	tally_buffer_text(out, "</g>\n<script type=\"application/json\" id=\"tally-data\">");
	append_part(out, &parts->data);
	tally_buffer_printf(out, "</script>\n<script><![CDATA[\n%s]]></script>\n</svg>\n",
			    script_of(drawing));
}

static void write_html(const struct tally_flame_drawing *drawing, const struct flame_parts *parts,
		       struct tally_buffer *out)
{
	tally_buffer_printf(
		out,
		"<!DOCTYPE html>\n<html lang=\"en\"%s>\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		"style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
		"<meta name=\"viewport\" content=\"width=device-width\">\n",
		theme_attribute(drawing));
	append_title(drawing, out);
	tally_buffer_printf(out, "<style>\n%s", tally_flamegraph_css);
	write_rules(drawing, out);
	tally_buffer_text(out, "</style>\n</head>\n<body>\n<noscript>\n");
	append_svg_open(drawing, parts->height_px, "", out);
	append_part(out, &parts->picture);
	tally_buffer_text(
		out, "</svg>\n</noscript>\n<script type=\"application/json\" id=\"tally-data\">");
	append_part(out, &parts->data);
	tally_buffer_printf(out, "</script>\n<script>\n%s</script>\n</body>\n</html>\n",
			    script_of(drawing));
}

typedef void write_function(const struct tally_flame_drawing *drawing,
			    const struct flame_parts *parts, struct tally_buffer *out);

static int draw(const struct tally_stacks *stacks, const struct tally_flamegraph_options *options,
		write_function *write, struct tally_buffer *out, struct tally_error *err)
{
	struct tally_flame_drawing drawing;
	struct flame_parts parts = { 0 };
	int status = drawing_init(&drawing, stacks, options, err);
	if (!status)
		status = make_parts(&drawing, &parts, err);
	if (!status)
		write(&drawing, &parts, out);
	if (!status && out->failed)
		status = tally_error_set(err, -ENOMEM,
					 "out of memory while writing the flame graph");
	release_parts(&parts);
	drawing_release(&drawing);
	return status;
}

int tally_flamegraph_svg(const struct tally_stacks *stacks,
			 const struct tally_flamegraph_options *options, struct tally_buffer *out,
			 struct tally_error *err)
{
	return draw(stacks, options, write_svg, out, err);
}

int tally_flamegraph_html(const struct tally_stacks *stacks,
			  const struct tally_flamegraph_options *options, struct tally_buffer *out,
			  struct tally_error *err)
{
	return draw(stacks, options, write_html, out, err);
}
