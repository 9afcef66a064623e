/* tally list metrics: the metrics of stat -M, and whether they can be computed here. */
#include "base/buffer.h"
#include "base/characters.h"
#include "base/json.h"
#include "command/list_command.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct metric_listing {
	const struct list_metrics_request *request;
	struct metric_places places;
	struct tally_json json;
	bool is_terminal;
	TALLY_VECTOR(const char *) names; /* of the metrics to show, each once */
};

static bool is_wanted(const struct list_metrics_request *request,
		      const struct tally_metric_definition *d)
{
	for (size_t i = 0; i < request->word_count; i++) {
		const char *word = request->words[i];
		if (strpbrk(word, "*?[") && !fnmatch(word, d->name, FNM_CASEFOLD))
			return true;
		if (strcasestr(d->name, word) || strcasestr(d->group, word))
			return true;
	}
	return !request->word_count;
}

/* Returns the reason why the kernel refuses one of the events, or NULL. */
static const char *refused(const struct metric_listing *listing, const struct tally_metric_use *use,
			   const struct metric_events *parsed)
{
	if (!(listing->places.provider->capabilities & TALLY_PROVIDER_THIS_MACHINE))
		return NULL;
	for (size_t i = 0; i < use->plan.events.count; i++) {
		const struct tally_metric_rows *range = &parsed->ranges[i];
		if (!range->count)
			continue;
		const struct tally_event *event = &parsed->events.items[range->first];
		int code = 0;
		if (event->kind != TALLY_EVENT_TOOL)
			code = tally_kernel_probe_available(&event->attr, 0);
		if (code < 0)
			return tally_arena_printf(
				listing->places.arena, "%s: %s", event->name,
				tally_kernel_unavailable_text(&event->attr, code));
	}
	return NULL;
}

static void show_text(struct metric_listing *listing, const struct tally_metric_definition *d,
		      const char *unavailable, struct tally_buffer *out)
{
	/* a line for each metric in a pipe */
	const char *separator = " | ";
	if (listing->is_terminal)
		separator = "\n                         ";
	tally_buffer_printf(out, "%-24s %s", d->name, d->description);
	if (d->unit[0])
		tally_buffer_printf(out, " [%s]", d->unit);
	if (listing->request->verbose)
		tally_buffer_printf(out, "%s= %s%sfrom %s", separator, d->expression, separator,
				    d->source);
	if (unavailable)
		tally_buffer_printf(out, "%snot available: %s", separator, unavailable);
	tally_buffer_char(out, '\n');
}

static void show_json(struct tally_json *json, const struct tally_metric_definition *d,
		      const char *unavailable)
{
	tally_json_object(json, NULL);
	tally_json_text(json, "name", d->name);
	tally_json_text(json, "unit", d->unit);
	tally_json_text(json, "description", d->description);
	tally_json_text(json, "expression", d->expression);
	tally_json_text(json, "group", d->group);
	tally_json_text(json, "source", d->source);
	tally_json_text(json, "unavailable", unavailable);
	tally_json_end(json);
}

/* Shows the metric of this name, once: by the definition that is used here. */
static int show(struct metric_listing *listing, const char *name, struct tally_buffer *out,
		struct tally_error *err)
{
	struct tally_metric_use use = { .name = name };
	struct metric_events parsed = { 0 };
	struct tally_error why = TALLY_ERROR_NONE;
	int result = metric_use_prepare(&listing->places, &use, &parsed, &why);
	const char *unavailable = use.unavailable;
	if (result < 0)
		unavailable = why.message;
	else if (!unavailable)
		unavailable = refused(listing, &use, &parsed);
	const struct tally_metric_definition *d = use.plan.definition;
	if (listing->request->is_json)
		show_json(&listing->json, d, unavailable);
	else
		show_text(listing, d, unavailable, out);
	tally_metric_plan_release(&use.plan);
	tally_event_list_release(&parsed.events);
	if (result == -ENOMEM)
		return tally_error_set(err, result, "out of memory");
	return 0;
}

/* True if the definition is the one with precedence of its name. */
static bool is_first(const struct tally_metric_set *set, size_t index)
{
	return tally_metric_set_find(set, set->definitions.items[index].name, SIZE_MAX) == index;
}

/* Finds the metrics to show: from the first of the table on; metrics of files come after the built-in
 * ones. */
static int find_names(struct metric_listing *listing, struct tally_error *err)
{
	const struct tally_metric_set *set = listing->places.set;
	size_t builtin;
	tally_metric_table(&builtin);
	for (size_t i = 0; i < set->definitions.count; i++) {
		size_t index = i;
		if (i < builtin)
			index = builtin - 1 - i;
		const struct tally_metric_definition *d = &set->definitions.items[index];
		if (d->is_passed_over || !is_first(set, index) || !is_wanted(listing->request, d))
			continue;
		if (tally_vector_push(&listing->names, d->name) < 0)
			return tally_error_set(err, -ENOMEM, "out of memory");
	}
	return 0;
}

/* Prints the text; names of foreign files can't do anything to a terminal. */
static void print(const struct metric_listing *listing, struct tally_buffer *out)
{
	struct tally_buffer clean = { 0 };
	const char *at = tally_buffer_string(out);
	while (*at && !listing->request->is_json) {
		size_t length = strcspn(at, "\n");
		char line[4096];
		snprintf(line, sizeof(line), "%.*s", (int)length, at);
		tally_put_name(&clean, line);
		tally_buffer_char(&clean, '\n');
		at += length + (at[length] == '\n');
	}
	if (listing->request->is_json)
		tally_buffer_append(&clean, out->bytes, out->length);
	fwrite(tally_buffer_string(&clean), 1, clean.length, stdout);
	fflush(stdout);
	tally_buffer_release(&clean);
}

int list_metrics(const struct tally_command *command, const struct list_metrics_request *request,
		 const struct tally_provider_ops *provider, struct tally_catalogue *catalogue)
{
	struct tally_metric_set set = { .arena = TALLY_ARENA_INIT };
	struct tally_buffer out = { 0 };
	struct tally_error err = TALLY_ERROR_NONE;
	struct metric_listing listing = {
		.request = request,
		.places = { &set, catalogue, provider, &catalogue->arena },
		.json = { .out = &out },
		.is_terminal = isatty(STDOUT_FILENO),
	};
	int result = metric_sources_load(&request->sources, &set, &err);
	if (result >= 0)
		metric_sources_load_usual(&request->sources, &set);
	if (result >= 0)
		result = provider->catalogue(NULL, catalogue, &err);
	catalogue->has_tools = true;
	if (request->is_json) {
		tally_json_object(&listing.json, NULL);
		tally_json_text(&listing.json, "schema", "tally-list-metrics");
		tally_json_u64(&listing.json, "version", 1);
		tally_json_array(&listing.json, "metrics");
	}
	if (result >= 0)
		result = find_names(&listing, &err);
	for (size_t i = 0; i < listing.names.count && result >= 0; i++)
		result = show(&listing, listing.names.items[i], &out, &err);
	if (request->is_json) {
		tally_json_end(&listing.json);
		tally_json_end(&listing.json);
	}
	if (result >= 0 && out.failed)
		result = tally_error_set(&err, -ENOMEM, "out of memory");
	if (result >= 0 && !listing.names.count) {
		result = tally_error_set(&err, -ENOENT, "no metric matches '%.200s'",
					 request->words[0]);
		tally_error_hint(&err, "'tally list metrics' shows all of them");
	}
	int status = TALLY_EXIT_OK;
	if (result < 0)
		status = tally_command_fail(command, &err);
	else
		print(&listing, &out);
	tally_buffer_release(&out);
	tally_vector_release(&listing.names);
	tally_metric_set_release(&set);
	return status;
}
