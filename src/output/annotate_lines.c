#include "output/annotate_view.h"

#include <stdlib.h>
#include <string.h>

const char *tally_annotate_aim_text(const struct tally_annotation *annotation)
{
	switch (annotation->aim) {
	case TALLY_AIM_NEXT: return "a clock's sample names the instruction that was next: what took the time may be the one before it";
	case TALLY_AIM_SKID: return "samples name an instruction some way behind their cause (skid); EVENT:pp is more precise";
	case TALLY_AIM_EXACT: break;
	}
	return "";
}

static bool is_heavier(const struct tally_annotated_line *a, const struct tally_annotated_line *b)
{
	return a->weight.period != b->weight.period ? a->weight.period > b->weight.period : a->weight.samples > b->weight.samples;
}

size_t tally_annotate_hot_lines(const struct tally_annotation *annotation, uint32_t *out, size_t max)
{
	size_t count = 0;
	for (uint32_t i = 0; i < annotation->lines.count; i++) {
		const struct tally_annotated_line *line = &annotation->lines.items[i];
		size_t at = count;
		if (!line->weight.samples)
			continue;
		while (at && is_heavier(line, &annotation->lines.items[out[at - 1]]))
			at--;
		if (at == max)
			continue;
		if (count < max)
			count++;
		memmove(&out[at + 1], &out[at], (count - at - 1) * sizeof(*out));
		out[at] = i;
	}
	return count;
}

bool *tally_annotate_visible(const struct tally_annotation *annotation, double percent_min)
{
	enum { AROUND = 5 };
	size_t count = annotation->instructions.count;
	bool *visible = calloc(count + 1, sizeof(*visible));
	for (size_t i = 0; visible && i < count; i++) {
		const struct tally_annotated_instruction *one = &annotation->instructions.items[i];
		bool is_hot = percent_min <= 0 || (one->weight.samples && tally_annotation_percent(annotation, &one->weight) >= percent_min);
		if (!is_hot)
			continue;
		size_t first = i < AROUND ? 0 : i - AROUND, last = count - i > AROUND ? i + AROUND : count - 1;
		memset(visible + first, true, last - first + 1);
	}
	return visible;
}

bool tally_annotate_next_block(const struct tally_annotation *annotation, struct tally_source_files *sources, size_t begin,
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
	const struct tally_source_file *file = tally_source_file(sources, tally_strings_text(&annotation->strings, out->file));
	uint32_t first = lines[begin].line, last = lines[out->end - 1].line;
	bool is_known = file && first <= file->count;
	out->first = is_known && first > AROUND ? first - AROUND : is_known ? 1 : first;
	out->last = is_known && last + AROUND <= file->count ? last + AROUND : is_known && last < file->count ? file->count : last;
	return true;
}

bool tally_annotate_is_newer(const struct tally_annotation *annotation, struct tally_source_files *sources)
{
	if (annotation->main_file == TALLY_STRING_NONE || !annotation->object_time_s)
		return false;
	const struct tally_source_file *file =
		tally_source_file(sources, tally_strings_text(&annotation->strings, annotation->main_file));
	return file && file->count && file->time_s > annotation->object_time_s;
}

bool tally_annotate_has_samples(const struct tally_annotation *annotation, const struct tally_line_block *block)
{
	for (size_t i = block->begin; i < block->end; i++)
		if (annotation->lines.items[i].weight.samples)
			return true;
	return false;
}
