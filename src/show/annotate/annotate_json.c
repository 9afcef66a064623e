/* An annotated function as JSON: its totals, then its instructions, then its source lines. */
#include "annotate/annotate.h"

static void put_weight(const struct tally_annotation *annotation,
		       const struct tally_annotation_weight *weight, struct tally_json *json)
{
	tally_json_u64(json, "samples", weight->samples);
	tally_json_u64(json, "period", weight->period);
	tally_json_double(json, "percent", tally_annotation_percent(annotation, weight));
	tally_json_double(json, "error", tally_annotation_error(annotation, weight));
}

static void put_name(const struct tally_annotation *annotation, const char *name, uint32_t id,
		     struct tally_json *json)
{
	if (id != TALLY_STRING_NONE)
		tally_json_text(json, name, tally_strings_text(&annotation->strings, id));
}

static void put_instruction(const struct tally_annotation *annotation,
			    const struct tally_annotated_instruction *one, struct tally_json *json)
{
	static const char *const KINDS[] = { "plain", "jump", "call", "data" };
	tally_json_object(json, NULL);
	tally_json_u64(json, "address", one->address);
	tally_json_u64(json, "size", one->size);
	tally_json_text(json, "text", tally_strings_text(&annotation->strings, one->text));
	tally_json_text(json, "kind", KINDS[one->kind]);
	if (one->target)
		tally_json_u64(json, "target", one->target);
	put_name(annotation, "target_name", one->target_name, json);
	if (one->line != UINT32_MAX) {
		put_name(annotation, "file", annotation->lines.items[one->line].file, json);
		tally_json_u64(json, "line", annotation->lines.items[one->line].line);
	}
	put_name(annotation, "inlined", one->inlined, json);
	put_weight(annotation, &one->weight, json);
	tally_json_end(json);
}

static void put_line(const struct tally_annotation *annotation,
		     const struct tally_annotated_line *line, struct tally_source_files *sources,
		     struct tally_json *json)
{
	const char *path = tally_strings_text(&annotation->strings, line->file);
	struct tally_buffer text = { 0 };
	tally_json_object(json, NULL);
	tally_json_text(json, "file", path);
	tally_json_u64(json, "line", line->line);
	if (tally_source_line(tally_source_file(sources, path), line->line, 0, &text))
		tally_json_text(json, "text", tally_buffer_string(&text));
	put_weight(annotation, &line->weight, json);
	if (line->inlined.samples) {
		tally_json_object(json, "inlined");
		put_weight(annotation, &line->inlined, json);
		tally_json_end(json);
	}
	tally_json_end(json);
	tally_buffer_release(&text);
}

void tally_annotate_json(const struct tally_annotation *annotation,
			 struct tally_source_files *sources, struct tally_json *json)
{
	static const char *const AIMS[] = { "exact", "next", "skid" };
	tally_json_object(json, NULL);
	tally_json_text(json, "function", annotation->function);
	if (annotation->inlined_into)
		tally_json_text(json, "inlined_into", annotation->inlined_into);
	tally_json_text(json, "object", annotation->object);
	tally_json_text(json, "event", annotation->event);
	tally_json_u64(json, "start", annotation->start);
	tally_json_u64(json, "end", annotation->end);
	tally_json_u64(json, "samples", annotation->weight.samples);
	tally_json_u64(json, "period", annotation->weight.period);
	if (annotation->is_saturated)
		tally_json_bool(json, "saturated", true);
	tally_json_u64(json, "self_samples", annotation->self.samples);
	tally_json_u64(json, "self_period", annotation->self.period);
	tally_json_u64(json, "event_samples", annotation->total.samples);
	tally_json_double(json, "percent", tally_annotation_total_percent(annotation));
	tally_json_double(json, "error", tally_annotation_total_error(annotation));
	tally_json_text(json, "samples_name", AIMS[annotation->aim]);
	tally_json_text(json, "charged", annotation->is_charged ? "before" : "address");
	tally_json_text(json, "missing", annotation->missing[0] ? annotation->missing : NULL);
	tally_json_u64(json, "patched_bytes", annotation->poked);
	tally_json_array(json, "instructions");
	for (size_t i = 0; i < annotation->instructions.count; i++)
		put_instruction(annotation, &annotation->instructions.items[i], json);
	tally_json_end(json);
	tally_json_array(json, "lines");
	for (size_t i = 0; i < annotation->lines.count; i++)
		put_line(annotation, &annotation->lines.items[i], sources, json);
	tally_json_end(json);
	tally_json_end(json);
}
