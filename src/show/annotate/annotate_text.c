/* An annotated function for a terminal, a pipe or a file: one instruction per line, with jumps
 * drawn to its left. */
#include "annotate/annotate.h"
#include "annotate/annotate_internal.h"
#include "output/output_text.h"

#include "base/extremes.h"
#include "base/number_text.h"
#include "base/terminal.h"
#include "base/text.h"
#include "naming/naming.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDE_COLUMNS = 100, HOT_LINES = 5 };

struct writer {
	const struct tally_annotation *annotation;
	const struct tally_annotate_view *view;
	struct tally_buffer *out;
	size_t *hottest;           /* see tally_annotate_text() */
	size_t hottest_row;        /* the heaviest instruction */
	struct tally_arrows arrows;
	bool with_error;           /* show a column of ± */
	unsigned indent;           /* columns of indentation removed from source lines */
	/* widths of an address, of a label, and of everything left of the address */
	int address_width, label_width, left_width;
};

static const char *const DIM = "\x1b[2m", *const BOLD = "\x1b[1m", *const SOURCE = "\x1b[36m",
			 *const INLINED = "\x1b[35m", *const PLAIN = "\x1b[0m";

static void colour(const struct writer *writer, const char *code)
{
	if (writer->view->colours)
		tally_buffer_text(writer->out, code);
}

static const char *heat(double percent)
{
	if (percent >= 10)
		return "\x1b[1;31m";
	if (percent >= 3)
		return "\x1b[31m";
	if (percent >= 0.5)
		return "\x1b[33m";
	return DIM;
}

/* Puts text that fits the rest of the line; `used` columns are taken already. */
static void put_text(const struct writer *writer, const char *text, int used)
{
	char clean[1024];
	int room = 0; /* no limit */
	if (writer->view->columns)
		room = (int)tally_max_i64((int64_t)writer->view->columns - used, 8);
	tally_terminal_clean_name(text, clean, sizeof(clean));
	tally_fit_text(writer->out, clean, room, writer->view->ascii);
}

static const char *text_of(const struct writer *writer, uint32_t id)
{
	return tally_strings_text(&writer->annotation->strings, id);
}

/* Returns the sign, or its stand-in if the terminal has only ASCII. */
static const char *sign(const struct writer *writer, const char *unicode, const char *ascii)
{
	if (writer->view->ascii)
		return ascii;
	return unicode;
}

static const char *plus_minus(const struct writer *writer)
{
	return sign(writer, "±", "+-");
}

static const char *dots(const struct writer *writer)
{
	return sign(writer, "⋮", "...");
}

/* Returns put_weight()'s width in columns. */
static int weight_width(const struct writer *writer)
{
	int width = 8;
	if (writer->view->with_samples)
		width = 18;
	if (writer->with_error)
		width += 6;
	if (writer->with_error && writer->view->ascii)
		width++; /* "+-" */
	return width;
}

/* ---- head ---------------------------------------------------------------- */

/* Puts the heaviest lines, each with the annotated function's own source. */
static void put_hot_lines(const struct writer *writer)
{
	const struct tally_annotation *annotation = writer->annotation;
	size_t count = (size_t)tally_min_u64(annotation->paths.count, HOT_LINES);
	int width = 0;
	struct tally_buffer place[HOT_LINES] = { 0 };
	char clean[HOT_LINES][160];
	for (size_t i = 0; i < count; i++) {
		tally_annotate_path_text(annotation, &annotation->paths.items[i],
					 writer->view->ascii, &place[i]);
		tally_terminal_clean_name(tally_buffer_string(&place[i]), clean[i],
					  sizeof(clean[i]));
		width = (int)tally_max_i64(width, tally_text_width(clean[i]));
		tally_buffer_release(&place[i]);
	}
	for (size_t i = 0; i < count; i++) {
		const struct tally_annotated_path *path = &annotation->paths.items[i];
		const struct tally_annotated_line *line =
			&annotation->lines.items[tally_annotated_own(path)];
		double percent = tally_annotation_percent(annotation, &path->weight);
		struct tally_buffer text = { 0 };
		tally_buffer_printf(writer->out, "  ");
		colour(writer, heat(percent));
		tally_buffer_printf(writer->out, "%6.2f%%", percent);
		colour(writer, PLAIN);
		tally_buffer_printf(writer->out, " %s%4.1f  %s%*s  ", plus_minus(writer),
				    tally_annotation_error(annotation, &path->weight), clean[i],
				    width - tally_text_width(clean[i]), "");
		const struct tally_source_file *file = tally_source_file(
			writer->view->sources, text_of(writer, line->file));
		tally_source_line(file, line->line,
				  tally_source_indent(file, line->line, line->line), &text);
		colour(writer, SOURCE);
		put_text(writer, tally_buffer_string(&text), 20 + width);
		colour(writer, PLAIN);
		tally_buffer_char(writer->out, '\n');
		tally_buffer_release(&text);
	}
}

/* Puts a sentence, wrapped at blanks to the terminal's width. */
static void put_note(const struct writer *writer, const char *text)
{
	char clean[1400];
	tally_terminal_clean_name(text, clean, sizeof(clean));
	colour(writer, DIM);
	int columns = 120;
	if (writer->view->columns)
		columns = (int)writer->view->columns;
	tally_wrap_text(writer->out, clean, columns);
	colour(writer, PLAIN);
	tally_buffer_char(writer->out, '\n');
}

/* Returns the width of "transpose (inlined into main)". */
static int put_name(const struct writer *writer)
{
	const struct tally_annotation *annotation = writer->annotation;
	struct tally_buffer into = { 0 };
	int width = tally_text_width(annotation->function);
	colour(writer, BOLD);
	put_text(writer, annotation->function, 0);
	colour(writer, PLAIN);
	if (annotation->inlined_into) {
		tally_buffer_printf(&into, " (inlined into %s)", annotation->inlined_into);
		put_text(writer, tally_buffer_string(&into), 0);
		width += tally_text_width(tally_buffer_string(&into));
	}
	writer->out->failed |= into.failed;
	tally_buffer_release(&into);
	return width;
}

static void put_head(const struct writer *writer)
{
	const struct tally_annotation *annotation = writer->annotation;
	struct tally_buffer note = { 0 };
	int name_width = put_name(writer), object_width = tally_text_width(annotation->object);
	bool fits = !writer->view->columns ||
		    name_width + 2 + object_width <= (int)writer->view->columns;
	if (fits) {
		tally_buffer_text(writer->out, "  ");
		put_text(writer, annotation->object, name_width + 2);
	} else {
		tally_buffer_char(writer->out, '\n');
		put_text(writer, annotation->object, 0);
	}
	tally_buffer_char(writer->out, '\n');
	tally_buffer_printf(
		&note,
		"%.2f%% %s%.1f of the %s sample%s of %s (95%% confidence); %s %s in it, "
		"and the percentages below are of those",
		tally_annotation_total_percent(annotation), plus_minus(writer),
		tally_annotation_total_error(annotation), tally_number(annotation->total.samples),
		tally_plural(annotation->total.samples), annotation->event,
		tally_number(annotation->weight.samples),
		annotation->weight.samples == 1 ? "is" : "are");
	tally_annotate_copies_text(annotation, &note);
	put_note(writer, tally_buffer_string(&note));
	if (annotation->is_saturated)
		put_note(writer, TALLY_SATURATED_TEXT);
	if (annotation->aim != TALLY_AIM_EXACT)
		put_note(writer, tally_annotate_aim_text(annotation));
	if (writer->view->taken) {
		tally_buffer_clear(&note);
		tally_buffer_printf(&note, "samples other than %s are left out",
				    writer->view->taken);
		put_note(writer, tally_buffer_string(&note));
	}
	tally_buffer_clear(&note);
	tally_annotate_source_notes(annotation, writer->view, &note);
	char *rest = NULL;
	if (note.length)
		rest = note.bytes;
	for (char *line; (line = strsep(&rest, "\n")) && rest;)
		put_note(writer, line);
	put_hot_lines(writer);
	if (annotation->missing[0]) {
		tally_buffer_clear(&note);
		tally_buffer_printf(&note, "no disassembly: %s", annotation->missing);
		put_note(writer, tally_buffer_string(&note));
		tally_buffer_clear(&note);
		tally_buffer_printf(&note, "hint: %s", annotation->hint);
		if (annotation->hint[0])
			put_note(writer, tally_buffer_string(&note));
	}
	tally_buffer_release(&note);
}

/* ---- instructions -------------------------------------------------------- */

static void put_weight(const struct writer *writer, const struct tally_annotation_weight *weight)
{
	const struct tally_annotation *annotation = writer->annotation;
	double percent = tally_annotation_percent(annotation, weight);
	if (!weight->samples) {
		tally_buffer_printf(writer->out, "%*s", weight_width(writer), "");
		return;
	}
	colour(writer, heat(percent));
	tally_buffer_printf(writer->out, "%7.2f%%", percent);
	if (writer->with_error) {
		colour(writer, PLAIN);
		colour(writer, DIM);
		tally_buffer_printf(writer->out, " %s%4.1f", plus_minus(writer),
				    tally_annotation_error(annotation, weight));
	}
	colour(writer, PLAIN);
	if (writer->view->with_samples)
		tally_buffer_printf(writer->out, " %9s", tally_number(weight->samples));
}

static const char *line_piece(unsigned cell, bool ascii)
{
	static const char *const LINES[16] = { " ", "╵", "╷", "│", "╴", "╯", "╮", "┤",
					       "╶", "╰", "╭", "├", "─", "┴", "┬", "┼" };
	static const char *const ASCII[16] = { " ", "|", "|", "|", "-", "'", ".", "+",
					       "-", "`", ".", "+", "-", "+", "+", "+" };
	if (ascii)
		return ASCII[cell & 15];
	return LINES[cell & 15];
}

static void put_arrows(const struct writer *writer, size_t row, bool above)
{
	const struct tally_arrows *arrows = &writer->arrows;
	bool ascii = writer->view->ascii;
	tally_buffer_char(writer->out, ' ');
	if (!arrows->columns)
		return;
	colour(writer, DIM);
	for (unsigned column = arrows->columns; column--;)
		tally_buffer_text(
			writer->out,
			line_piece(tally_arrow_cell(arrows, writer->annotation, row, column, above),
				   ascii));
	const char *end = " ";
	if (!above && tally_arrow_arrives(arrows, row))
		end = sign(writer, "▸", ">");
	else if (!above && tally_arrow_leaves(arrows, writer->annotation, row))
		end = sign(writer, "─", "-");
	tally_buffer_text(writer->out, end);
	colour(writer, PLAIN);
	tally_buffer_char(writer->out, ' ');
}

static size_t hottest_row(const struct tally_annotation *annotation)
{
	const struct tally_annotated_instruction *items = annotation->instructions.items;
	size_t hottest = 0;
	for (size_t i = 1; i < annotation->instructions.count; i++)
		if (items[i].weight.period > items[hottest].weight.period)
			hottest = i;
	return hottest;
}

static void put_label(const struct writer *writer, uint32_t label)
{
	char text[24] = "";
	if (!writer->label_width)
		return;
	if (label)
		snprintf(text, sizeof(text), "L%u:", label);
	colour(writer, BOLD);
	tally_buffer_printf(writer->out, "%-*s ", writer->label_width, text);
	colour(writer, PLAIN);
}

static void put_instruction(const struct writer *writer, size_t row)
{
	const struct tally_annotation *annotation = writer->annotation;
	const struct tally_annotated_instruction *one = &annotation->instructions.items[row];
	struct tally_buffer text = { 0 };
	const char *body = text_of(writer, one->text);
	int mnemonic = (int)strcspn(body, " ");
	bool has_operands = body[mnemonic] || one->target || one->target_name != TALLY_STRING_NONE;
	tally_buffer_printf(&text, "%-*.*s%s", has_operands ? 7 : 0, mnemonic, body,
			    body + mnemonic);
	if (one->destination != UINT32_MAX)
		tally_buffer_printf(&text, "L%u",
				    annotation->instructions.items[one->destination].label);
	else if (one->kind == TALLY_INSTRUCTION_JUMP || one->kind == TALLY_INSTRUCTION_CALL)
		tally_buffer_printf(&text, "%" PRIx64, one->target);
	else if (one->target)
		tally_buffer_printf(&text, "  # %" PRIx64, one->target);
	if (one->target_name != TALLY_STRING_NONE)
		tally_buffer_printf(&text, " <%s>", text_of(writer, one->target_name));
	if (writer->hottest && row == writer->hottest_row)
		*writer->hottest = writer->out->length;
	put_weight(writer, &one->weight);
	put_arrows(writer, row, false);
	colour(writer, DIM);
	tally_buffer_printf(writer->out, "%*" PRIx64 "  ", writer->address_width, one->address);
	colour(writer, PLAIN);
	put_label(writer, one->label);
	int used = writer->left_width + writer->address_width + 2;
	if (writer->label_width)
		used += writer->label_width + 1;
	put_text(writer, tally_buffer_string(&text), used);
	tally_buffer_char(writer->out, '\n');
	tally_buffer_release(&text);
}

static void put_left(const struct writer *writer, size_t row)
{
	tally_buffer_printf(writer->out, "%*s", weight_width(writer), "");
	put_arrows(writer, row, true);
}

/* Puts the source line of the instructions from `row` on, if it differs from that of the
 * instruction before. */
static void put_source(const struct writer *writer, size_t row)
{
	const struct tally_annotation *annotation = writer->annotation;
	const struct tally_annotated_instruction *one = &annotation->instructions.items[row],
						 *before = NULL;
	if (row)
		before = one - 1;
	struct tally_buffer text = { 0 };
	char where[96], clean[64];
	bool is_same = before && before->inlined == one->inlined && before->own == one->own;
	if (one->line == UINT32_MAX || (is_same && before->line == one->line))
		return;
	if (one->inlined != TALLY_STRING_NONE && !is_same) {
		put_left(writer, row);
		colour(writer, INLINED);
		if (one->own != UINT32_MAX) {
			const struct tally_annotated_line *own =
				&annotation->lines.items[one->own];
			tally_buffer_printf(&text, "%s:%u  ", tally_object_basename(text_of(writer, own->file)),
					    own->line);
		}
		tally_buffer_text(&text, "inlined: ");
		tally_buffer_text(&text, text_of(writer, one->inlined));
		put_text(writer, tally_buffer_string(&text), writer->left_width);
		colour(writer, PLAIN);
		tally_buffer_char(writer->out, '\n');
		tally_buffer_clear(&text);
	}
	const struct tally_annotated_line *line = &annotation->lines.items[one->line];
	const struct tally_source_file *file = tally_source_file(writer->view->sources,
								 text_of(writer, line->file));
	tally_terminal_clean_name(tally_object_basename(text_of(writer, line->file)), clean, sizeof(clean));
	snprintf(where, sizeof(where), "%s:%u  ", clean, line->line);
	if (writer->view->with_numbers || !file || line->line > file->count)
		tally_buffer_text(&text, where);
	unsigned indent = tally_source_indent(file, line->line, line->line);
	tally_source_line(file, line->line, (unsigned)tally_min_u64(indent, writer->indent), &text);
	put_left(writer, row);
	colour(writer, SOURCE);
	put_text(writer, tally_buffer_string(&text), writer->left_width);
	colour(writer, PLAIN);
	tally_buffer_char(writer->out, '\n');
	tally_buffer_release(&text);
}

/* Puts a line that says how many instructions from `row` on are left out. Returns the next visible
 * row. */
static size_t put_gap(const struct writer *writer, const bool *visible, size_t row)
{
	const struct tally_annotation *annotation = writer->annotation;
	struct tally_annotation_weight weight = { 0 };
	char text[96];
	size_t first = row;
	for (; row < annotation->instructions.count && !visible[row]; row++) {
		weight.samples += annotation->instructions.items[row].weight.samples;
		weight.period += annotation->instructions.items[row].weight.period;
	}
	put_weight(writer, &weight);
	put_arrows(writer, row < annotation->instructions.count ? row : 0, true);
	snprintf(text, sizeof(text), "%s %s instruction%s", dots(writer),
		 tally_number(row - first), tally_plural(row - first));
	colour(writer, DIM);
	put_text(writer, text, writer->left_width);
	colour(writer, PLAIN);
	tally_buffer_char(writer->out, '\n');
	return row;
}

/* Says how many instructions of other functions come before this one. */
static void put_left_out(const struct writer *writer, size_t row)
{
	const struct tally_annotation *annotation = writer->annotation;
	uint32_t count = annotation->instructions.items[row].left_out;
	struct tally_buffer text = { 0 };
	if (!count)
		return;
	put_left(writer, row);
	tally_buffer_printf(&text, "%s %s instruction%s of %s or of others inlined into it",
			    dots(writer), tally_number(count), tally_plural(count),
			    annotation->inlined_into);
	colour(writer, DIM);
	put_text(writer, tally_buffer_string(&text), writer->left_width);
	colour(writer, PLAIN);
	tally_buffer_char(writer->out, '\n');
	writer->out->failed |= text.failed;
	tally_buffer_release(&text);
}

static int put_instructions(const struct writer *writer)
{
	bool *visible = tally_annotate_visible(writer->annotation, writer->view->percent_min);
	if (!visible)
		return -ENOMEM;
	for (size_t row = 0; row < writer->annotation->instructions.count;) {
		if (!visible[row]) {
			row = put_gap(writer, visible, row);
			continue;
		}
		put_left_out(writer, row);
		if (writer->view->with_source)
			put_source(writer, row);
		put_instruction(writer, row++);
	}
	free(visible);
	return 0;
}

/* ---- source alone -------------------------------------------------------- */

/* Returns the block's source file, or NULL if it cannot be read. Without it, lines without samples
 * are not shown. */
static const struct tally_source_file *source_of(const struct writer *writer,
						 const struct tally_line_block *block)
{
	const struct tally_source_file *file = tally_source_file(writer->view->sources,
								 text_of(writer, block->file));
	if (!file || !file->count)
		return NULL;
	return file;
}

static const char *inlined_mark(const struct writer *writer)
{
	return sign(writer, "→", ">");
}

/* Explains the mark of lines where code is inlined. */
static void explain_inlined(const struct writer *writer)
{
	const struct tally_annotation *annotation = writer->annotation;
	for (size_t i = 0; i < annotation->lines.count; i++) {
		char note[128];
		if (!annotation->lines.items[i].inlined.samples)
			continue;
		snprintf(
			note, sizeof(note),
			"a line with %s includes what was inlined there, which has lines of its own, "
			"too",
			inlined_mark(writer));
		put_note(writer, note);
		return;
	}
}

static void put_block(const struct writer *writer, const struct tally_line_block *block,
		      bool with_name)
{
	const struct tally_annotation *annotation = writer->annotation;
	const struct tally_source_file *file = source_of(writer, block);
	size_t at = block->begin;
	if (with_name) {
		colour(writer, BOLD);
		put_text(writer, text_of(writer, block->file), 0);
		colour(writer, PLAIN);
		if (!file)
			tally_buffer_text(writer->out, "  (the file is not here)");
		tally_buffer_char(writer->out, '\n');
	} else if (file) {
		tally_buffer_printf(writer->out, "%*s%s\n", writer->left_width, "", dots(writer));
	}
	for (uint32_t number = block->first; number <= block->last; number++) {
		struct tally_buffer text = { 0 };
		bool has = at < block->end && annotation->lines.items[at].line == number;
		struct tally_annotation_weight weight = { 0 };
		if (has)
			weight = annotation->lines.items[at].weight;
		bool has_inlined = has && annotation->lines.items[at].inlined.samples;
		if (writer->hottest && has && annotation->paths.count &&
		    at == tally_annotated_own(annotation->paths.items))
			*writer->hottest = writer->out->length;
		if (has)
			tally_annotation_add(&weight, &annotation->lines.items[at++].inlined);
		if (file && !has && number > file->count)
			continue;
		if (!file && !weight.samples)
			continue;
		put_weight(writer, &weight);
		colour(writer, DIM);
		tally_buffer_printf(writer->out, " %6u%s ", number,
				    has_inlined ? inlined_mark(writer) : " ");
		colour(writer, PLAIN);
		tally_source_line(file, number, 0, &text);
		put_text(writer, tally_buffer_string(&text), writer->left_width + 8);
		tally_buffer_char(writer->out, '\n');
		tally_buffer_release(&text);
	}
}

static void put_no_lines(const struct writer *writer)
{
	const struct tally_annotation *annotation = writer->annotation;
	const char *why = annotation->no_lines;
	struct tally_buffer note = { 0 };
	if (!why && annotation->object[0] != '[')
		why = "it has no debug information (compile with -g)";
	tally_buffer_text(&note, "no source lines");
	if (annotation->missing[0])
		tally_buffer_text(&note, " either");
	if (why)
		tally_buffer_printf(&note, ": %s", why);
	put_note(writer, tally_buffer_string(&note));
	tally_buffer_release(&note);
}

static void put_lines(const struct writer *writer)
{
	struct tally_line_block block = { .file = TALLY_STRING_NONE };
	uint32_t last = TALLY_STRING_NONE;
	explain_inlined(writer);
	for (size_t at = 0;
	     tally_annotate_next_block(writer->annotation, writer->view->sources, at, &block);
	     at = block.end) {
		if (!source_of(writer, &block) &&
		    !tally_annotate_has_samples(writer->annotation, &block))
			continue;
		put_block(writer, &block, block.file != last);
		last = block.file;
	}
	if (!writer->annotation->lines.count)
		put_no_lines(writer);
}

/* ---- all of it ----------------------------------------------------------- */

/* Returns how many columns of indentation all source lines can lose: their common indentation,
 * less two.  Function bodies are indented as a whole, which would waste room. */
static unsigned common_indent(const struct writer *writer)
{
	enum { KEPT = 2 };
	unsigned least = 0;
	for (size_t i = 0; i < writer->annotation->lines.count; i++) {
		const struct tally_annotated_line *line = &writer->annotation->lines.items[i];
		unsigned indent = tally_source_indent(
			tally_source_file(writer->view->sources, text_of(writer, line->file)),
			line->line, line->line);
		if (indent && (!least || indent < least))
			least = indent;
	}
	return (unsigned)tally_saturating_sub_u64(least, KEPT);
}

static void measure(struct writer *writer)
{
	const struct tally_annotation *annotation = writer->annotation;
	char text[32];
	writer->with_error = !writer->view->columns || writer->view->columns >= WIDE_COLUMNS;
	writer->indent = common_indent(writer);
	writer->address_width = snprintf(text, sizeof(text), "%" PRIx64, annotation->end);
	writer->label_width = 0;
	if (annotation->labels)
		writer->label_width = snprintf(text, sizeof(text), "L%u:", annotation->labels);
	writer->left_width = weight_width(writer) + 1;
	if (writer->arrows.columns)
		writer->left_width += (int)writer->arrows.columns + 2;
}

int tally_annotate_text(const struct tally_annotation *annotation,
			const struct tally_annotate_view *view, struct tally_buffer *out,
			size_t *hottest)
{
	enum { NARROW_ARROWS = 6, WIDE_ARROWS = 12 };
	struct writer writer = { .annotation = annotation,
				 .view = view,
				 .out = out,
				 .hottest = hottest,
				 .hottest_row = hottest_row(annotation) };
	bool is_narrow = view->columns && view->columns < WIDE_COLUMNS;
	int result = tally_arrows_make(annotation, is_narrow ? NARROW_ARROWS : WIDE_ARROWS,
				       &writer.arrows);
	measure(&writer);
	if (!result) {
		put_head(&writer);
		tally_buffer_char(out, '\n');
		if (annotation->instructions.count)
			result = put_instructions(&writer);
		else
			put_lines(&writer);
	}
	tally_arrows_release(&writer.arrows);
	if (result < 0 || out->failed)
		return -ENOMEM;
	return 0;
}
