/* Annotated functions as one HTML page: source on the left, instructions on the right, with arrows
 * for jumps. The page loads nothing from the network. It is complete without its script, which only
 * highlights related lines. */
#include "annotate/annotate.h"
#include "annotate/annotate_internal.h"
#include "base/extremes.h"
#include "base/number_text.h"
#include "output/output_text.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

extern const char tally_annotate_css[], tally_annotate_js[];

enum { ROW_PX = 18, COLUMN_PX = 7, HEAD_PX = 6, ARROWS_MAX = 16, HOT_LINES = 12 };

struct page {
	const struct tally_annotation *annotation;
	const struct tally_annotate_view *view;
	struct tally_buffer *out;
	size_t number; /* the function's number on the page */
	struct tally_arrows arrows;
	uint32_t *hottest; /* by line: its heaviest instruction; UINT32_MAX: none */
};

static const char *text_of(const struct page *page, uint32_t id)
{
	return tally_strings_text(&page->annotation->strings, id);
}

/* A cell with a percentage; larger shares are redder. The colour follows the square root, so that
 * small shares differ visibly as well. */
static void put_share(const struct page *page, const struct tally_annotation_weight *weight)
{
	const struct tally_annotation *annotation = page->annotation;
	double percent = tally_annotation_percent(annotation, weight);
	if (!weight->samples) {
		tally_buffer_text(page->out, "<i></i>");
		return;
	}
	tally_buffer_printf(
		page->out, "<i style=\"--h:%.3f\" title=\"%.2f%% ±%.1f, %s samples\">%.2f</i>",
		sqrt(percent / 100), percent, tally_annotation_error(annotation, weight),
		tally_number(weight->samples), percent);
}

static void put_source_text(const struct page *page, const struct tally_source_file *file,
			    uint32_t number, unsigned without)
{
	struct tally_buffer text = { 0 };
	tally_source_line(file, number, without, &text);
	tally_flame_markup_text(page->out, tally_buffer_string(&text));
	tally_buffer_release(&text);
}

/* ---- head ---------------------------------------------------------------- */

static void put_hot_lines(const struct page *page)
{
	const struct tally_annotation *annotation = page->annotation;
	size_t count = (size_t)tally_min_u64(annotation->paths.count, HOT_LINES);
	if (!count)
		return;
	tally_buffer_text(page->out, "<ol class=\"hot\">\n");
	for (size_t i = 0; i < count; i++) {
		const struct tally_annotated_path *path = &annotation->paths.items[i];
		const struct tally_annotated_line *line =
			&annotation->lines.items[tally_annotated_own(path)];
		const struct tally_source_file *file = tally_source_file(page->view->sources,
									 text_of(page, line->file));
		struct tally_buffer place = { 0 };
		tally_annotate_path_text(annotation, path, false, &place);
		tally_buffer_text(page->out, "<li>");
		put_share(page, &path->weight);
		tally_buffer_printf(page->out, "<span>±%.1f</span><a href=\"#f%zul%u\">",
				    tally_annotation_error(annotation, &path->weight), page->number,
				    tally_annotated_own(path));
		tally_flame_markup_text(page->out, tally_buffer_string(&place));
		tally_buffer_text(page->out, "</a><span>");
		put_source_text(page, file, line->line,
				tally_source_indent(file, line->line, line->line));
		tally_buffer_text(page->out, "</span></li>\n");
		page->out->failed |= place.failed;
		tally_buffer_release(&place);
	}
	tally_buffer_text(page->out, "</ol>\n");
}

static void put_head(const struct page *page)
{
	const struct tally_annotation *annotation = page->annotation;
	tally_buffer_printf(page->out, "<section id=\"f%zu\">\n<h1>", page->number);
	tally_flame_markup_text(page->out, annotation->function);
	if (annotation->inlined_into) {
		tally_buffer_text(page->out, " (inlined into ");
		tally_flame_markup_text(page->out, annotation->inlined_into);
		tally_buffer_text(page->out, ")");
	}
	tally_buffer_text(page->out, "</h1>\n<p>");
	tally_flame_markup_text(page->out, annotation->object);
	tally_buffer_printf(page->out, " · %.2f%% ±%.1f of the ",
			    tally_annotation_total_percent(annotation),
			    tally_annotation_total_error(annotation));
	tally_buffer_text(page->out, tally_number(annotation->total.samples));
	tally_buffer_text(page->out,
			  annotation->total.samples == 1 ? " sample of " : " samples of ");
	tally_flame_markup_text(page->out, annotation->event);
	tally_buffer_text(page->out, " (95% confidence); ");
	tally_buffer_text(page->out, tally_number(annotation->weight.samples));
	if (annotation->weight.samples == 1)
		tally_buffer_text(page->out, " is in it, and the percentages below are of that");
	else
		tally_buffer_text(page->out, " are in it, and the percentages below are of those");
	tally_annotate_copies_text(annotation, page->out);
	tally_buffer_char(page->out, '.');
	if (annotation->is_saturated)
		tally_buffer_text(page->out, " Note: " TALLY_SATURATED_TEXT ".");
	if (annotation->aim != TALLY_AIM_EXACT)
		tally_buffer_printf(page->out, " Note: %s.", tally_annotate_aim_text(annotation));
	if (page->view->taken) {
		tally_buffer_text(page->out, " Other samples than ");
		tally_flame_markup_text(page->out, page->view->taken);
		tally_buffer_text(page->out, " are left out.");
	}
	tally_buffer_text(page->out, "</p>\n");
	struct tally_buffer notes = { 0 };
	tally_annotate_source_notes(annotation, page->view, &notes);
	char *rest = NULL;
	if (notes.length)
		rest = notes.bytes;
	for (char *line; (line = strsep(&rest, "\n")) && rest;) {
		tally_buffer_text(page->out, "<p class=\"why\">");
		tally_flame_markup_text(page->out, line);
		tally_buffer_text(page->out, "</p>\n");
	}
	tally_buffer_release(&notes);
	if (annotation->missing[0]) {
		tally_buffer_text(page->out, "<p class=\"why\">No disassembly: ");
		tally_flame_markup_text(page->out, annotation->missing);
		if (annotation->hint[0])
			tally_buffer_text(page->out, "; ");
		tally_flame_markup_text(page->out, annotation->hint);
		tally_buffer_text(page->out, "</p>\n");
	}
	put_hot_lines(page);
}

/* ---- source -------------------------------------------------------------- */

static void put_source_row(const struct page *page, const struct tally_source_file *file,
			   uint32_t number, uint32_t line)
{
	const struct tally_annotation *annotation = page->annotation;
	struct tally_annotation_weight weight = { 0 };
	bool has = line != UINT32_MAX,
	     is_hottest = has && annotation->paths.count &&
			  line == tally_annotated_own(annotation->paths.items);
	if (has) {
		weight = annotation->lines.items[line].weight;
		tally_annotation_add(&weight, &annotation->lines.items[line].inlined);
	}
	tally_buffer_printf(page->out, "<div class=\"r%s\"", is_hottest ? " hottest" : "");
	if (has)
		tally_buffer_printf(page->out, " id=\"f%zul%u\" data-l=\"%u\"", page->number, line,
				    line);
	tally_buffer_char(page->out, '>');
	put_share(page, &weight);
	tally_buffer_text(page->out, "<span class=\"n\">");
	if (has && page->hottest[line] != UINT32_MAX)
		tally_buffer_printf(page->out, "<a href=\"#f%zui%u\">%u</a>", page->number,
				    page->hottest[line], number);
	else
		tally_buffer_printf(page->out, "%u", number);
	tally_buffer_text(page->out, "</span><span>");
	put_source_text(page, file, number, 0);
	tally_buffer_text(page->out, "</span></div>\n");
}

/* Puts the file name first, because the end of a long path may be cut off. */
static void put_path(const struct page *page, const char *path,
		     const struct tally_source_file *file)
{
	const char *slash = strrchr(path, '/'), *name = path;
	const char *title = " title=\"the file is not here\"", *why = "not here: ";
	if (slash)
		name = slash + 1;
	if (file)
		title = why = "";
	tally_buffer_printf(page->out, "<h2%s><b>", title);
	tally_flame_markup_text(page->out, name);
	tally_buffer_printf(page->out, "</b><span>%s", why);
	tally_flame_markup_text(page->out, path);
	tally_buffer_text(page->out, "</span></h2>\n");
}

static bool has_any_source(const struct page *page)
{
	for (size_t i = 0; i < page->annotation->lines.count; i++) {
		const char *path = text_of(page, page->annotation->lines.items[i].file);
		const struct tally_source_file *file = tally_source_file(page->view->sources, path);
		if (file && file->count)
			return true;
	}
	return false;
}

static void put_source(const struct page *page)
{
	const struct tally_annotation *annotation = page->annotation;
	struct tally_line_block block;
	uint32_t last = TALLY_STRING_NONE;
	tally_buffer_text(page->out, "<div class=\"pane\">\n");
	for (size_t at = 0; tally_annotate_next_block(annotation, page->view->sources, at, &block);
	     at = block.end) {
		const struct tally_source_file *file = tally_source_file(
			page->view->sources, text_of(page, block.file));
		if (file && !file->count)
			file = NULL;
		if (!file && !tally_annotate_has_samples(annotation, &block))
			continue;
		if (block.file != last) {
			put_path(page, text_of(page, block.file), file);
		} else if (file) {
			tally_buffer_text(page->out, "<div class=\"r gap\">⋮</div>\n");
		}
		last = block.file;
		size_t line = block.begin;
		for (uint32_t number = block.first; number <= block.last; number++) {
			bool has = line < block.end && annotation->lines.items[line].line == number;
			const struct tally_annotated_line *there = NULL;
			if (has)
				there = &annotation->lines.items[line];
			bool has_samples = there &&
					   (there->weight.samples || there->inlined.samples);
			bool has_text = file && (has || number <= file->count);
			if (has_text || (!file && has_samples))
				put_source_row(page, file, number,
					       has ? (uint32_t)line : UINT32_MAX);
			line += has;
		}
	}
	tally_buffer_text(page->out, "</div>\n");
}

/* ---- instructions -------------------------------------------------------- */

static unsigned arrows_px(const struct page *page)
{
	if (!page->arrows.columns)
		return 0;
	return page->arrows.columns * COLUMN_PX + 2 * HEAD_PX;
}

static void put_arrows(const struct page *page)
{
	const struct tally_annotation *annotation = page->annotation;
	unsigned right = arrows_px(page) - 2;
	if (!page->arrows.columns)
		return;
	tally_buffer_printf(page->out, "<svg width=\"%u\" height=\"%zu\" aria-hidden=\"true\">",
			    right + 2, annotation->instructions.count * ROW_PX);
	for (size_t i = 0; i < page->arrows.arrows.count; i++) {
		const struct tally_arrow *arrow = &page->arrows.arrows.items[i];
		if (arrow->column == UINT_MAX)
			continue;
		unsigned x = (page->arrows.columns - 1 - arrow->column) * COLUMN_PX + 4,
			 middle = ROW_PX / 2;
		tally_buffer_printf(page->out, "<path d=\"M%u %uV%u", x,
				    arrow->low * ROW_PX + middle, arrow->high * ROW_PX + middle);
		for (uint32_t row = arrow->low; row <= arrow->high; row++)
			if (row == arrow->to ||
			    annotation->instructions.items[row].destination == arrow->to)
				tally_buffer_printf(page->out, "M%u %uH%u", x,
						    row * ROW_PX + middle,
						    row == arrow->to ? right - HEAD_PX : right);
		unsigned y = arrow->to * ROW_PX + middle;
		tally_buffer_printf(page->out, "\"/><polygon points=\"%u,%u %u,%u %u,%u\"/>\n",
				    right - HEAD_PX, y - 4, right, y, right - HEAD_PX, y + 4);
	}
	tally_buffer_text(page->out, "</svg>\n");
}

static void put_target(const struct page *page, const struct tally_annotated_instruction *one)
{
	if (one->destination != UINT32_MAX)
		tally_buffer_printf(page->out, "<a href=\"#f%zui%u\">L%u</a>", page->number,
				    one->destination,
				    page->annotation->instructions.items[one->destination].label);
	else if (one->kind == TALLY_INSTRUCTION_JUMP || one->kind == TALLY_INSTRUCTION_CALL)
		tally_buffer_printf(page->out, "%" PRIx64, one->target);
	else if (one->target)
		tally_buffer_printf(page->out, "<span class=\"x\">  # %" PRIx64 "</span>",
				    one->target);
	if (one->target_name == TALLY_STRING_NONE)
		return;
	tally_buffer_text(page->out, " <span class=\"t\">");
	tally_flame_markup_text(page->out, text_of(page, one->target_name));
	tally_buffer_text(page->out, "</span>");
}

static void put_instruction(const struct page *page, size_t row, unsigned label_width)
{
	const struct tally_annotation *annotation = page->annotation;
	const struct tally_annotated_instruction *one = &annotation->instructions.items[row];
	const char *body = text_of(page, one->text);
	int mnemonic = (int)strcspn(body, " ");
	tally_buffer_printf(page->out, "<div class=\"r\" id=\"f%zui%zu\"", page->number, row);
	if (one->line != UINT32_MAX)
		tally_buffer_printf(page->out, " data-l=\"%u\"", one->line);
	tally_buffer_char(page->out, '>');
	put_share(page, &one->weight);
	tally_buffer_printf(page->out,
			    "<span class=\"x\" style=\"padding-left:calc(1ch + %upx)\">%" PRIx64
			    "</span>",
			    arrows_px(page), one->address);
	tally_buffer_printf(page->out, "<span class=\"b\" style=\"width:%uch\">", label_width);
	if (one->label)
		tally_buffer_printf(page->out, "L%u:", one->label);
	tally_buffer_printf(page->out, "</span><span>%-7.*s", mnemonic, body);
	tally_flame_markup_text(page->out, body + mnemonic);
	put_target(page, one);
	tally_buffer_text(page->out, "</span>");
	if (one->line != UINT32_MAX) {
		tally_buffer_text(page->out, "<span class=\"w\">");
		if (one->inlined != TALLY_STRING_NONE) {
			tally_buffer_text(page->out, "<span class=\"t\">");
			tally_flame_markup_text(page->out, text_of(page, one->inlined));
			tally_buffer_text(page->out, "</span> ");
		}
		tally_buffer_printf(page->out, "<a href=\"#f%zul%u\">%u</a></span>", page->number,
				    one->line, annotation->lines.items[one->line].line);
	}
	tally_buffer_text(page->out, "</div>\n");
}

static void put_code(const struct page *page)
{
	unsigned label_width = 0;
	if (page->annotation->labels)
		label_width = 3;
	for (uint32_t most = page->annotation->labels; most; most /= 10)
		label_width++;
	tally_buffer_text(page->out, "<div class=\"pane\">\n<div class=\"code\">\n");
	put_arrows(page);
	for (size_t row = 0; row < page->annotation->instructions.count; row++)
		put_instruction(page, row, label_width);
	tally_buffer_text(page->out, "</div>\n</div>\n");
}

/* ---- all of it ----------------------------------------------------------- */

static uint32_t *hottest_of_lines(const struct tally_annotation *annotation)
{
	uint32_t *hottest = malloc((annotation->lines.count + 1) * sizeof(*hottest));
	for (size_t i = 0; hottest && i < annotation->lines.count; i++)
		hottest[i] = UINT32_MAX;
	for (uint32_t i = 0; hottest && i < annotation->instructions.count; i++) {
		uint32_t line = annotation->instructions.items[i].line;
		if (line != UINT32_MAX &&
		    (hottest[line] == UINT32_MAX ||
		     annotation->instructions.items[i].weight.period >
			     annotation->instructions.items[hottest[line]].weight.period))
			hottest[line] = i;
	}
	for (size_t i = 0; hottest && i < annotation->paths.count; i++) {
		const struct tally_annotated_path *path = &annotation->paths.items[i];
		if (hottest[tally_annotated_own(path)] == UINT32_MAX)
			hottest[tally_annotated_own(path)] = hottest[path->inner];
	}
	return hottest;
}

static int put_function(struct page *page)
{
	const struct tally_annotation *annotation = page->annotation;
	bool with_source = annotation->lines.count &&
			   (page->view->with_source || !annotation->instructions.count);
	bool with_code = annotation->instructions.count;
	page->hottest = hottest_of_lines(annotation);
	int result = -ENOMEM;
	if (page->hottest)
		result = tally_arrows_make(annotation, ARROWS_MAX, &page->arrows);
	if (!result) {
		put_head(page);
		const char *shape = "";
		if (!with_source || !with_code)
			shape = " one";
		else if (!has_any_source(page))
			shape = " bare";
		tally_buffer_printf(page->out, "<div class=\"panes%s\">\n", shape);
		if (with_source)
			put_source(page);
		if (with_code)
			put_code(page);
		tally_buffer_text(page->out, "</div>\n</section>\n");
	}
	tally_arrows_release(&page->arrows);
	free(page->hottest);
	return result;
}

static void put_contents(const struct tally_annotation *annotations, size_t count,
			 struct tally_buffer *out)
{
	tally_buffer_text(out, "<nav>\n");
	for (size_t i = 0; i < count; i++) {
		tally_buffer_printf(out, "<a href=\"#f%zu\">%.2f%% ", i,
				    tally_annotation_total_percent(&annotations[i]));
		tally_flame_markup_text(out, annotations[i].function);
		tally_buffer_text(out, "</a>\n");
	}
	tally_buffer_text(out, "</nav>\n");
}

int tally_annotate_html(const struct tally_annotation *annotations, size_t count,
			const struct tally_annotate_view *view, struct tally_buffer *out)
{
	int result = 0;
	tally_buffer_text(
		out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		     "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		     "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
		     "<meta name=\"viewport\" content=\"width=device-width\">\n<title>");
	tally_flame_markup_text(out, count ? annotations[0].function : "");
	tally_buffer_printf(out, "</title>\n<style>\n%s</style>\n</head>\n<body>\n",
			    tally_annotate_css);
	if (count > 1)
		put_contents(annotations, count, out);
	for (size_t i = 0; !result && i < count; i++) {
		struct page page = {
			.annotation = &annotations[i], .view = view, .out = out, .number = i
		};
		result = put_function(&page);
	}
	tally_buffer_printf(out, "<script>\n%s</script>\n</body>\n</html>\n", tally_annotate_js);
	if (result < 0 || out->failed)
		return -ENOMEM;
	return 0;
}
