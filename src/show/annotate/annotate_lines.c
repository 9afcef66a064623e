/* Texts and choices that the views of an annotation share: notes about samples, the instructions
 * and blocks of lines to show, and notes about sources that are missing or have changed. */
#include "annotate/annotate.h"

#include "base/extremes.h"
#include "base/number_text.h"
#include "base/terminal.h"
#include "base/text.h"
#include "naming/naming.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *tally_annotate_aim_text(const struct tally_annotation *annotation)
{
	if (annotation->aim == TALLY_AIM_EXACT)
		return "";
	if (annotation->is_charged)
		return "samples count for the instruction before their address, which took the "
		       "time (--raw-addresses: as recorded)";
	if (annotation->aim == TALLY_AIM_NEXT)
		return "samples count for their address, which is behind the instruction that "
		       "took the time";
	return "samples count for their address, which is some instructions behind their cause "
	       "(skid)";
}

void tally_annotate_copies_text(const struct tally_annotation *annotation,
				struct tally_buffer *out)
{
	const struct tally_annotation_weight *self = &annotation->self;
	uint64_t all = annotation->total.period, part = self->period;
	double percent = 0;
	if (!all) {
		all = annotation->total.samples;
		part = self->samples;
	}
	if (all)
		percent = 100 * (double)part / (double)all;
	if (self->samples != annotation->weight.samples)
		tally_buffer_printf(out, "; %s of them are in functions that were inlined into it",
				    tally_number(annotation->weight.samples - self->samples));
	if (annotation->whole_self > percent)
		tally_buffer_printf(out, "; with its other copies it has %.2f%%",
				    annotation->whole_self);
}

bool *tally_annotate_visible(const struct tally_annotation *annotation, double percent_min)
{
	enum { AROUND = 5 };
	size_t count = annotation->instructions.count;
	bool *visible = calloc(count + 1, sizeof(*visible));
	for (size_t i = 0; visible && i < count; i++) {
		const struct tally_annotated_instruction *one = &annotation->instructions.items[i];
		bool is_hot = percent_min <= 0 ||
			      (one->weight.samples &&
			       tally_annotation_percent(annotation, &one->weight) >= percent_min);
		if (!is_hot)
			continue;
		size_t first = (size_t)tally_saturating_sub_u64(i, AROUND),
		       last = (size_t)tally_min_u64(i + AROUND, count - 1);
		memset(visible + first, true, last - first + 1);
	}
	return visible;
}

bool tally_annotate_next_block(const struct tally_annotation *annotation,
			       struct tally_source_files *sources, size_t begin,
			       struct tally_line_block *out)
{
	enum { AROUND = 3, GAP = 12 };
	const struct tally_annotated_line *lines = annotation->lines.items;
	if (begin >= annotation->lines.count)
		return false;
	*out = (struct tally_line_block){ .file = lines[begin].file, .begin = begin, .end = begin };
	while (out->end < annotation->lines.count && lines[out->end].file == out->file &&
	       (out->end == begin || lines[out->end].line - lines[out->end - 1].line <= GAP))
		out->end++;
	const struct tally_source_file *file = tally_source_file(
		sources, tally_strings_text(&annotation->strings, out->file));
	uint32_t first = lines[begin].line, last = lines[out->end - 1].line;
	bool is_known = file && first <= file->count;
	out->first = first;
	out->last = last;
	if (is_known) {
		out->first = 1;
		if (first > AROUND)
			out->first = first - AROUND;
		if (last + AROUND <= file->count)
			out->last = last + AROUND;
		else if (last < file->count)
			out->last = file->count;
	}
	return true;
}

bool tally_annotate_has_samples(const struct tally_annotation *annotation,
				const struct tally_line_block *block)
{
	for (size_t i = block->begin; i < block->end; i++)
		if (annotation->lines.items[i].weight.samples ||
		    annotation->lines.items[i].inlined.samples)
			return true;
	return false;
}

/* ---- is it the source? --------------------------------------------------- */

/* Counts source files with something in common. `path` is the function's own file if it is among
 * them, otherwise the first. */
struct same_files {
	const char *path;
	size_t count;
};

static void add_file(struct same_files *files, const char *path, bool is_main)
{
	if (!files->count++ || is_main)
		files->path = path;
}

void tally_annotate_path_text(const struct tally_annotation *annotation,
			      const struct tally_annotated_path *path, bool ascii,
			      struct tally_buffer *out)
{
	const uint32_t ends[2] = { tally_annotated_own(path), path->inner };
	for (unsigned i = 0; i < (ends[0] == ends[1] ? 1u : 2u); i++) {
		const struct tally_annotated_line *line = &annotation->lines.items[ends[i]];
		const char *arrow = ascii ? " -> " : " → ";
		tally_buffer_printf(out, "%s%s:%u", i ? arrow : "",
				    tally_object_basename(tally_strings_text(&annotation->strings,
									     line->file)),
				    line->line);
	}
}

static void and_others(const struct same_files *files, struct tally_buffer *out)
{
	if (files->count > 1)
		tally_buffer_printf(out, " and %zu more file%s", files->count - 1,
				    tally_plural(files->count - 1));
}

/* Sorts files that cannot be read into `absent`, and those changed after the recording into
 * `changed`. Files without samples are never reported as absent: no reader expects to see them. */
static void sort_files(const struct tally_annotation *annotation,
		       const struct tally_annotate_view *view, struct same_files *absent,
		       struct same_files *changed)
{
	const struct tally_annotated_line *lines = annotation->lines.items;
	for (size_t i = 0, end; i < annotation->lines.count; i = end) {
		struct tally_line_block block = { .begin = i };
		for (end = i; end < annotation->lines.count && lines[end].file == lines[i].file;)
			end++;
		block.end = end;
		const char *path = tally_strings_text(&annotation->strings, lines[i].file);
		const struct tally_source_file *file = tally_source_file(view->sources, path);
		bool is_main = lines[i].file == annotation->main_file,
		     is_here = file && file->count;
		if (!is_here && tally_annotate_has_samples(annotation, &block))
			add_file(absent, path, is_main);
		if (is_here && view->recorded_ns && file->time_ns > view->recorded_ns)
			add_file(changed, path, is_main);
	}
}

void tally_annotate_source_notes(const struct tally_annotation *annotation,
				 const struct tally_annotate_view *view, struct tally_buffer *out)
{
	struct same_files absent = { 0 }, changed = { 0 };
	const char *path = NULL;
	if (annotation->main_file != TALLY_STRING_NONE)
		path = tally_strings_text(&annotation->strings, annotation->main_file);
	sort_files(annotation, view, &absent, &changed);
	if (changed.count) {
		tally_put_name(out, tally_object_basename(changed.path));
		and_others(&changed, out);
		if (changed.count > 1)
			tally_buffer_text(out, " have changed since the recording: their lines may "
					       "be wrong\n");
		else
			tally_buffer_text(out, " has changed since the recording: its lines may be "
					       "wrong\n");
	} else if (path) {
		const struct tally_source_file *file = tally_source_file(view->sources, path);
		bool is_here = file && file->count;
		if (is_here && annotation->is_rebuilt) {
			tally_put_name(out, tally_object_basename(annotation->object));
			tally_buffer_text(out, " was rebuilt since the recording: lines of ");
			tally_put_name(out, tally_object_basename(path));
			tally_buffer_text(out, " may be wrong\n");
		} else if (is_here && annotation->object_time_s &&
			   file->time_ns / 1000000000 > annotation->object_time_s)
			tally_buffer_text(
				out, "the source is newer than the program: lines may be off\n");
	}
	if (annotation->poked)
		tally_buffer_printf(
			out,
			"the kernel changed %s byte%s of this code while recording: its final "
			"state is shown\n",
			tally_number(annotation->poked), tally_plural(annotation->poked));
	if (absent.count) {
		const struct tally_source_file *file = tally_source_file(view->sources, absent.path);
		int code = -ENOMEM;
		if (file)
			code = file->error;
		if (code == -ENOMEM || code == -EMFILE || code == -ENFILE || code == -EIO)
			tally_buffer_printf(out, "source not read (%s): ", tally_errno_text(code));
		else
			tally_buffer_text(out, "source not found: ");
		tally_put_name(out, absent.path);
		and_others(&absent, out);
		tally_buffer_char(out, '\n');
	}
}
