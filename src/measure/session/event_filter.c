/* Filters on tracepoints' fields.  The kernel runs them (PERF_EVENT_IOC_SET_FILTER).  It answers a
 * bad filter with EINVAL and no position; then the filter is compiled here by the event's format to
 * find the position.
 */
#include "session/session.h"

#include "base/buffer.h"
#include "base/terminal.h"
#include "filter/filter.h"
#include "machine/machine.h"
#include "tracepoint/tracepoint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CPUS_MAX = 8192 };

int tally_event_filter_add(struct tally_arena *arena, const char **filter, const char *condition,
			   struct tally_error *err)
{
	if (*filter)
		condition = tally_arena_printf(arena, "(%s) && (%s)", *filter, condition);
	*filter = condition;
	if (!condition)
		return tally_error_set(err, -ENOMEM, "out of memory");
	return 0;
}

int tally_event_filter_assign(struct tally_event_list *events, size_t first, const char *filter,
			      struct tally_error *err)
{
	for (size_t i = first; i < events->count; i++) {
		struct tally_event *event = &events->items[i];
		if (event->kind != TALLY_EVENT_TRACEPOINT) {
			tally_error_set(
				err, -EINVAL,
				"--filter: '%s' is not a tracepoint and has no fields to filter by",
				event->name);
			tally_error_hint(
				err,
				"address filters ('start …') need a tracing PMU, which tally "
				"doesn't record; ':u' and ':k' select user mode or the kernel");
			return -EINVAL;
		}
		event->filter = filter;
	}
	return 0;
}

static enum tally_filter_kind kind_of(const struct tally_tracepoint_field *field)
{
	bool is_text = field->is_string || (field->is_pointer && !strcmp(field->type, "char *"));
	bool is_dynamic = field->place == TALLY_FIELD_DATA_LOC;
	if (is_text)
		return is_dynamic ? TALLY_FILTER_DYNAMIC_STRING : TALLY_FILTER_STRING;
	if (is_dynamic)
		return strstr(field->type, "cpumask") ? TALLY_FILTER_CPUMASK : TALLY_FILTER_OTHER;
	return field->is_array || field->size_bytes > 8 ? TALLY_FILTER_OTHER : TALLY_FILTER_NUMBER;
}

static struct tally_tracepoint *read_format(const struct tally_event *event)
{
	struct tally_tracepoint *tracepoint = NULL;
	struct tally_buffer text = { 0 };
	char system[128], name[128];
	if (sscanf(event->name, "%127[^:]:%127[^:]", system, name) != 2)
		return NULL;
	int tracefs = tally_tracefs_open(NULL);
	if (tracefs >= 0 && !tally_tracefs_format(tracefs, system, name, &text))
		tally_tracepoint_parse((const char *)text.bytes, text.length, NULL, &tracepoint,
				       NULL);
	if (tracefs >= 0)
		close(tracefs);
	tally_buffer_release(&text);
	return tracepoint;
}

/* Writes the names of the event's fields, for a hint. */
static void list_fields(const struct tally_tracepoint *tracepoint, char *out, size_t size)
{
	size_t used = 0;
	for (size_t i = tracepoint->common_count; i < tracepoint->field_count && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "",
					 tracepoint->fields[i].name);
}

static void find_reason(const struct tally_event *event, const struct tally_tracepoint *tracepoint,
			struct tally_error *err)
{
	struct tally_filter_error wrong = { .problem = TALLY_FILTER_GOOD };
	struct tally_filter_field *fields = calloc(tracepoint->field_count, sizeof(*fields));
	char names[400] = "";
	if (!fields)
		return;
	for (size_t i = 0; i < tracepoint->field_count; i++) {
		const struct tally_tracepoint_field *field = &tracepoint->fields[i];
		fields[i] = (struct tally_filter_field){
			.name = field->name,
			.offset = (uint16_t)field->offset,
			.size = (uint16_t)field->size_bytes,
			.is_signed = field->is_signed,
			.kind = kind_of(field),
		};
	}
	const struct tally_filter_fields all = { fields, tracepoint->field_count, CPUS_MAX };
	if (tally_filter_compile(event->filter, &all, NULL, 0, &wrong) < 0) {
		list_fields(tracepoint, names, sizeof(names));
		char name[128], filter[512];
		tally_terminal_clean_name(event->name, name, sizeof(name));
		tally_terminal_clean_name(event->filter, filter, sizeof(filter));
		tally_error_set(err, -EINVAL, "the filter of '%s' is wrong: %s\n  %s\n  %*s^", name,
				wrong.reason, filter, (int)wrong.position, "");
		tally_error_hint(err, "its fields are %s",
				 *names ? names : "those that all events have: common_pid");
	}
	free(fields);
}

int tally_event_filter_put(struct tally_provider *provider, const struct tally_event *event,
			   int handle)
{
	return provider->ops->ioctl(provider, handle, TALLY_IOCTL_SET_FILTER,
				    (void *)(uintptr_t)event->filter, 0);
}

int tally_event_filter_explain(const struct tally_event *event, int code, struct tally_error *err)
{
	tally_error_set(err, code, "the kernel refuses the filter '%s' of '%s': %s", event->filter,
			event->name, tally_errno_text(code));
	struct tally_tracepoint *tracepoint = code == -EINVAL ? read_format(event) : NULL;
	if (tracepoint)
		find_reason(event, tracepoint, err);
	tally_tracepoint_free(tracepoint);
	return code;
}
