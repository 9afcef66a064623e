/* docs/list.md describes the schema. */
#include "output/output.h"

#include "base/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SCHEMA_VERSION = 1 };

static void put_pmu(struct tally_json *json, const struct tally_pmu *pmu)
{
	struct tally_buffer bits = { 0 };
	tally_json_object(json, "pmu");
	tally_json_text(json, "name", pmu->name);
	tally_json_u64(json, "type", pmu->type);
	tally_json_text_or_null(json, "cpus", pmu->cpus);
	tally_json_array(json, "terms");
	for (size_t i = 0; i < pmu->term_count; i++) {
		static const char *const fields[] = { "config", "config1", "config2", "config3" };
		tally_buffer_clear(&bits);
		tally_event_list_bits(pmu->terms[i].mask, &bits);
		tally_json_object(json, NULL);
		tally_json_text(json, "name", pmu->terms[i].name);
		tally_json_text(json, "field", fields[pmu->terms[i].field & 3]);
		tally_json_text(json, "bits", tally_buffer_string(&bits));
		tally_json_end(json);
	}
	tally_json_end(json);
	tally_json_end(json);
	tally_buffer_release(&bits);
}

static void put_fields(struct tally_json *json, const struct tally_listed_event *event)
{
	tally_json_array(json, "fields");
	for (size_t i = 0; i < event->field_count; i++) {
		const struct tally_listed_field *field = &event->fields[i];
		tally_json_object(json, NULL);
		tally_json_text(json, "name", field->name);
		tally_json_text(json, "type", field->type);
		tally_json_u64(json, "offset", field->offset);
		tally_json_u64(json, "size", field->size);
		tally_json_bool(json, "signed", field->is_signed);
		tally_json_end(json);
	}
	tally_json_end(json);
}

static void put_event(struct tally_json *json, const struct tally_listed_event *event)
{
	tally_json_object(json, NULL);
	tally_json_text(json, "name", event->name);
	tally_json_text(json, "kind", tally_event_kind_text(event->kind));
	tally_json_bool(json, "form", event->is_form);
	if (event->alias)
		tally_json_text(json, "alias", event->alias);
	if (event->description)
		tally_json_text(json, "description", event->description);
	if (event->unavailable)
		tally_json_text(json, "unavailable", event->unavailable);
	if (event->parent && event->kind == TALLY_EVENT_TRACEPOINT)
		tally_json_text(json, "system", event->parent);
	if (event->pmu_event) {
		tally_json_text(json, "pmu", event->parent);
		tally_json_text(json, "terms", event->pmu_event->terms);
		tally_json_text(json, "unit", event->pmu_event->unit);
		tally_json_double(json, "scale", event->pmu_event->scale);
	} else if (event->pmu) {
		put_pmu(json, event->pmu);
	}
	if (event->fields)
		put_fields(json, event);
	tally_json_end(json);
}

void tally_event_list_json(const struct tally_event_listing *listing, struct tally_buffer *out)
{
	struct tally_json json = { .out = out, .indent = true };
	tally_json_object(&json, NULL);
	tally_json_u64(&json, "version", SCHEMA_VERSION);
	tally_json_text(&json, "tracepoints_unavailable", listing->tracepoints_unavailable);
	tally_json_array(&json, "events");
	for (size_t i = 0; i < listing->count; i++)
		put_event(&json, &listing->events[i]);
	tally_json_end(&json);
	tally_json_end(&json);
}

/* Returns the number behind the first `label` in the text, or 0 if there is no label. */
static unsigned number_behind(const char *text, const char *label)
{
	const char *at = strstr(text, label);
	if (!at)
		return 0;
	return (unsigned)strtoul(at + strlen(label), NULL, 10);
}

/* "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;" */
static int take_field(const char *line, size_t length, struct tally_arena *arena,
		      struct tally_listed_field *out)
{
	static const char start[] = "\tfield:";
	char *text = tally_arena_copy(arena, line, length);
	if (!text)
		return -ENOMEM;
	char *semicolon = strchr(text, ';');
	if (strncmp(text, start, strlen(start)) || !semicolon)
		return 0;
	*semicolon = '\0';
	char *type = text + strlen(start), *name = strrchr(type, ' ');
	if (!name || !strncmp(name + 1, "common_", strlen("common_")))
		return 0;
	*name++ = '\0';
	size_t bare = strcspn(name, "[");
	out->type = tally_arena_printf(arena, "%s%s", type, name + bare);
	out->name = tally_arena_copy(arena, name, bare);
	out->offset = number_behind(semicolon + 1, "offset:");
	out->size = number_behind(semicolon + 1, "size:");
	out->is_signed = strstr(semicolon + 1, "signed:1") != NULL;
	if (!out->type || !out->name)
		return -ENOMEM;
	return 1;
}

int tally_event_list_fields(const char *format, struct tally_arena *arena,
			    struct tally_listed_event *event)
{
	size_t lines = 1, count = 0;
	for (const char *at = format; (at = strchr(at, '\n')); at++)
		lines++;
	struct tally_listed_field *fields = tally_arena_array(arena, lines, sizeof(*fields));
	if (!fields)
		return -ENOMEM;
	for (const char *line = format; *line;) {
		size_t length = strcspn(line, "\n");
		int taken = take_field(line, length, arena, &fields[count]);
		if (taken < 0)
			return taken;
		count += (size_t)taken;
		line += length + (line[length] == '\n');
	}
	event->fields = fields;
	event->field_count = count;
	return 0;
}
