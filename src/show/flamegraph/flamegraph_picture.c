/* The static picture, for viewers without scripts: at most TALLY_FLAME_BOXES_MAX boxes, each at
 * least min_width_px wide. Narrower neighbours are drawn as one grey box or left out. Deep rows
 * that hold almost no weight are left out. A line below the picture says how much is missing. */
#include "flamegraph/flamegraph_internal.h"

#include "base/number_text.h"
#include "output/output_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	ROWS_MAX = 400,
	/* beyond these, rows with less than 1 / SLENDER of the weight are left out … */
	ROWS_ALWAYS = 36,
	SLENDER = 100,      /* … so that one deep recursion doesn't make a tall empty picture */
	ROW_PX = 18,
	BOX_PX = 17,
	MARGIN_PX = 16,
	TOP_PX = 68,
	LEGEND_PX = 58,
};

static const double CELL_PX = 6.65; /* cell width of the labels' 11 px fixed-width font */

struct picture {
	const struct tally_flame_drawing *drawing;
	struct tally_buffer *out;
	uint64_t threshold, total;
	double px_per_weight;
	uint32_t rows, rows_max;
	uint64_t *next; /* by depth: start of the next node, in weight */
	/* adjacent narrow frames, not drawn yet */
	struct { uint32_t depth; uint64_t start, weight, frames; } narrow;
	uint64_t hidden_frames, hidden_weight;
};

/* Writes a length without trailing zeros: "12.3". */
static void append_px(struct tally_buffer *out, double px)
{
	char text[32];
	int length = snprintf(text, sizeof(text), "%.2f", px);
	while (length && text[length - 1] == '0')
		length--;
	if (length && text[length - 1] == '.')
		length--;
	tally_buffer_append(out, text, (size_t)length);
}

static void append_percent(struct tally_buffer *out, double part, double whole)
{
	tally_buffer_printf(out, "%.2f\u00a0%%", whole > 0 ? 100 * part / whole : 0);
}

static double row_y(const struct picture *picture, uint32_t depth)
{
	uint32_t row = picture->drawing->options.icicle ? depth : picture->rows - 1 - depth;
	return TOP_PX + (double)row * ROW_PX;
}

/* "…, 12.30 %, before 10.10 %: +2.20" */
static void append_change(struct picture *picture, size_t index, char *class, size_t size)
{
	const struct tally_flame_old *old = &picture->drawing->old;
	if (!old->stacks)
		return;
	double share = (double)picture->drawing->by_comm.nodes.items[index].total /
		       (double)picture->total;
	double before = tally_flame_old_share(old, index);
	tally_buffer_text(picture->out, ", before ");
	append_percent(picture->out, before, 1);
	tally_buffer_printf(picture->out, ": %+.2f", 100 * (share - before));
	snprintf(class, size, "d%d", tally_flame_step(old, before, share) + TALLY_FLAME_STEPS);
}

static void append_box(struct picture *picture, uint64_t start, uint64_t weight, uint32_t depth,
		       const char *class, double *x, double *width)
{
	struct tally_buffer *out = picture->out;
	*x = MARGIN_PX + (double)start * picture->px_per_weight;
	*width = (double)weight * picture->px_per_weight;
	/* Leaves a hairline between neighbours if there is room. */
	double drawn = *width;
	if (drawn > 2)
		drawn -= 0.6;
	tally_buffer_printf(out, "<rect class=\"%s\" x=\"", class);
	append_px(out, *x);
	tally_buffer_printf(out, "\" y=\"%.0f\" width=\"", row_y(picture, depth));
	append_px(out, drawn);
	tally_buffer_printf(out, "\" height=\"%d\"%s/>", BOX_PX, *width > 12 ? " rx=\"1.5\"" : "");
}

static void flush_narrow(struct picture *picture)
{
	double x, width;
	if (picture->narrow.frames && picture->narrow.depth < picture->rows &&
	    (double)picture->narrow.weight * picture->px_per_weight >=
		    picture->drawing->options.min_width_px) {
		tally_buffer_text(picture->out, "<g><title>narrow frames: ");
		tally_buffer_text(picture->out, tally_number(picture->narrow.frames));
		tally_buffer_text(picture->out, ", ");
		append_percent(picture->out, (double)picture->narrow.weight,
			       (double)picture->total);
		tally_buffer_text(picture->out, "</title>");
		append_box(picture, picture->narrow.start, picture->narrow.weight,
			   picture->narrow.depth, "p52", &x, &width);
		tally_buffer_text(picture->out, "</g>\n");
	}
	picture->narrow.frames = picture->narrow.weight = 0;
}

static void hide_node(struct picture *picture, const struct tally_flame_node *node, uint64_t start,
		      uint64_t frames)
{
	if (picture->narrow.frames && (picture->narrow.depth != node->depth ||
				       picture->narrow.start + picture->narrow.weight != start))
		flush_narrow(picture);
	if (!picture->narrow.frames) {
		picture->narrow.depth = node->depth;
		picture->narrow.start = start;
	}
	picture->narrow.weight += node->total;
	picture->narrow.frames += frames;
	picture->hidden_frames += frames;
	picture->hidden_weight += node->total;
}

static void draw_node(struct picture *picture, size_t index, uint64_t start)
{
	const struct tally_flame_drawing *drawing = picture->drawing;
	const struct tally_flame_node *node = &drawing->by_comm.nodes.items[index];
	const struct tally_stacks *stacks = drawing->stacks;
	struct tally_buffer *out = picture->out;
	const char *name = tally_flame_node_name(&drawing->by_comm, stacks, node);
	char class[16];
	double x, width;
	unsigned kind = tally_flame_node_kind(stacks, node);
	snprintf(class, sizeof(class), "p%u%u", kind, tally_flame_shade(name));
	tally_buffer_text(out, "<g><title>");
	tally_flame_markup_text(out, name);
	if (kind < TALLY_FRAME_KINDS &&
	    stacks->frames.items[node->id].object != TALLY_STRING_NONE) {
		const char *object = tally_strings_text(&stacks->strings,
							stacks->frames.items[node->id].object);
		tally_buffer_text(out, " (");
		tally_flame_markup_text(out, tally_object_basename(object));
		tally_buffer_text(out, ")");
	}
	tally_buffer_text(out, ": ");
	append_percent(out, (double)node->total, (double)picture->total);
	tally_buffer_text(out, ", ");
	tally_flame_weight(out, (double)node->total * (double)drawing->by_comm.unit, drawing->unit,
			   stacks->event);
	append_change(picture, index, class, sizeof(class));
	tally_buffer_text(out, "</title>");
	append_box(picture, start, node->total, node->depth, class, &x, &width);
	unsigned cells = 0;
	if (width > 8)
		cells = (unsigned)((width - 6) / CELL_PX);
	if (cells >= 4) {
		tally_buffer_text(out, "<text class=\"pi\" x=\"");
		append_px(out, x + 3);
		tally_buffer_printf(out, "\" y=\"%.0f\">", row_y(picture, node->depth) + 12.5);
		tally_flame_label(out, name, cells);
		tally_buffer_text(out, "</text>");
	}
	tally_buffer_text(out, "</g>\n");
}

static bool is_drawn(const struct picture *picture, const struct tally_flame_node *node)
{
	return node->id != TALLY_FLAME_RUN && node->total >= picture->threshold &&
	       node->depth < picture->rows_max;
}

static void draw_nodes(struct picture *picture)
{
	const struct tally_flame_tree *tree = &picture->drawing->by_comm;
	for (size_t i = 0; i < tree->nodes.count;) {
		const struct tally_flame_node *node = &tree->nodes.items[i];
		uint64_t start = picture->next[node->depth];
		picture->next[node->depth] += node->total;
		picture->next[node->depth + 1] = start;
		if (is_drawn(picture, node)) {
			flush_narrow(picture);
			draw_node(picture, i, start);
			i++;
		} else {
			hide_node(picture, node, start, tally_flame_tree_frames(tree, i));
			i = node->end;
		}
	}
	flush_narrow(picture);
}

static void draw_text(struct picture *picture, const char *class, double x, double y,
		      unsigned size_px, const char *text)
{
	tally_buffer_printf(picture->out,
			    "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" font-size=\"%u\">", class, x,
			    y, size_px);
	tally_flame_markup_text(picture->out, text);
	tally_buffer_text(picture->out, "</text>\n");
}

/* Draws the colours from shrank most to grew most. */
static void draw_scale(struct picture *picture, double y)
{
	enum { STEP_PX = 20 };
	const double largest = 100 * picture->drawing->old.largest;
	char text[96];
	double x = MARGIN_PX + 120;
	snprintf(text, sizeof(text), "shrank by %.1f", largest);
	draw_text(picture, "pm", MARGIN_PX, y, 12, text);
	for (int i = 0; i <= 2 * TALLY_FLAME_STEPS; i++, x += STEP_PX)
		tally_buffer_printf(
			picture->out,
			"<rect class=\"d%d\" x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"12\"/>", i,
			x, y - 10, STEP_PX);
	snprintf(text, sizeof(text),
		 "grew by %.1f percentage points; in the middle: within the sampling error",
		 largest);
	draw_text(picture, "pm", x + 10, y, 12, text);
}

/* Draws a swatch and a word for each kind in the tree. */
static void draw_legend(struct picture *picture, double y)
{
	const struct tally_flame_tree *tree = &picture->drawing->by_comm;
	double x = MARGIN_PX;
	if (picture->drawing->old.stacks) {
		draw_scale(picture, y);
		return;
	}
	for (unsigned kind = 0; kind < TALLY_FRAME_KINDS; kind++) {
		if (!tree->kinds[kind])
			continue;
		tally_buffer_printf(
			picture->out,
			"<rect class=\"p%u0\" x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" "
			"rx=\"3\"/>",
			kind, x, y - 10);
		draw_text(picture, "pm", x + 18, y, 12, tally_flame_kind_names[kind]);
		x += 34 + 7.0 * (double)strlen(tally_flame_kind_names[kind]);
	}
}

static void draw_note(struct picture *picture, double y)
{
	struct tally_buffer text = { 0 };
	if (!picture->hidden_frames)
		return;
	tally_buffer_text(&text, tally_number(picture->hidden_frames));
	if (picture->hidden_frames == 1)
		tally_buffer_text(&text, " frame is");
	else
		tally_buffer_text(&text, " frames are");
	tally_buffer_text(&text, " too narrow or too deep to be drawn here: ");
	append_percent(&text, (double)picture->hidden_weight, (double)picture->total);
	tally_buffer_text(&text, " of the weight");
	draw_text(picture, "pm", MARGIN_PX, y, 12, tally_buffer_string(&text));
	tally_buffer_release(&text);
}

/* Returns the number of rows that hold enough weight to be drawn. */
static uint32_t count_rows(const struct picture *picture)
{
	const struct tally_flame_tree *tree = &picture->drawing->by_comm;
	uint32_t rows = 0;
	while (rows <= tree->depth_max && rows < ROWS_MAX &&
	       (rows < ROWS_ALWAYS || tree->level_weights[rows] >= picture->total / SLENDER))
		rows++;
	return rows;
}

static void measure(struct picture *picture)
{
	const struct tally_flame_drawing *drawing = picture->drawing;
	const struct tally_flame_tree *tree = &drawing->by_comm;
	double width = (double)drawing->options.width_px - 2 * MARGIN_PX;
	picture->total = tree->nodes.items[0].total;
	picture->px_per_weight = width / (double)picture->total;
	double least = drawing->options.min_width_px / picture->px_per_weight;
	picture->threshold = tally_flame_tree_threshold(tree, TALLY_FLAME_BOXES_MAX);
	if (least > (double)picture->threshold)
		picture->threshold = least < 1e19 ? (uint64_t)least : UINT64_MAX;
	if (picture->threshold > picture->total)
		picture->threshold = picture->total;
	picture->rows_max = count_rows(picture);
	for (size_t i = 0; i < tree->nodes.count; i++)
		if (is_drawn(picture, &tree->nodes.items[i]) &&
		    tree->nodes.items[i].depth >= picture->rows)
			picture->rows = tree->nodes.items[i].depth + 1;
	if (picture->rows < picture->rows_max && picture->rows <= tree->depth_max)
		picture->rows++; /* a row for narrow frames on top of the deepest */
}

void tally_flame_picture(const struct tally_flame_drawing *drawing, struct tally_buffer *out,
			 unsigned *height_px)
{
	struct picture picture = { .drawing = drawing, .out = out };
	picture.next = calloc((size_t)drawing->by_comm.depth_max + 2, sizeof(*picture.next));
	if (!picture.next) {
		out->failed = true;
		return;
	}
	measure(&picture);
	double bottom = TOP_PX + (double)picture.rows * ROW_PX;
	*height_px = (unsigned)bottom + LEGEND_PX;
	tally_buffer_printf(out, "<rect class=\"pb\" width=\"%u\" height=\"%u\"/>\n",
			    drawing->options.width_px, *height_px);
	tally_buffer_text(out, "<g class=\"picture-words\">\n");
	draw_text(&picture, "pt picture-title", MARGIN_PX, 32, 19,
		  tally_buffer_string(&drawing->title));
	draw_text(&picture, "pm", MARGIN_PX, 52, 12, tally_buffer_string(&drawing->subtitle));
	draw_legend(&picture, bottom + 24);
	tally_buffer_text(out, "</g>\n<g class=\"picture-frames\">\n");
	draw_nodes(&picture);
	tally_buffer_text(out, "</g>\n<g class=\"picture-words\">\n");
	draw_note(&picture, bottom + 44);
	tally_buffer_text(out, "</g>\n");
	free(picture.next);
}
