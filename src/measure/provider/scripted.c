/* Parses the script into lines, and plays them back.  Each handle has a line and the number of its
 * next reading.  Closed handles stay in the list: their number tells which line the next opening of
 * an event takes. */
#include "provider/scripted.h"

#include "base/buffer.h"
#include "base/vector.h"
#include "event/event.h"
#include "provider/provider.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct script_reading {
	uint64_t value, enabled_ns, running_ns;
	bool is_error;
};

struct script_line {
	bool is_any; /* '*' */
	uint32_t type;
	uint64_t config;
	int cpu;    /* −1: all */
	int refuse; /* errno; 0: it opens */
	TALLY_VECTOR(struct script_reading) readings;
};

struct script_handle {
	bool is_open;
	size_t line;
	size_t next;
	uint64_t read_format;
	uint32_t type;
	uint64_t config;
	int cpu;
	int leader; /* index of its group's leader; its own for a leader */
	bool is_trial; /* on the calling thread */
	bool is_pinned;
};

struct scripted {
	struct tally_provider provider;
	TALLY_VECTOR(struct script_line) lines;
	TALLY_VECTOR(struct script_handle) handles;
	unsigned long counters; /* 0: no limit */
	unsigned long held;     /* of them, by another user; at most `counters` */
	bool needs_exclude_kernel, refuses_all;
	struct tally_catalogue catalogue; /* for names, while parsing */
};

static const struct { const char *name; int code;
} errnos[] = {
	{ "ENOENT", ENOENT }, { "EOPNOTSUPP", EOPNOTSUPP }, { "EINVAL", EINVAL },
	{ "EACCES", EACCES }, { "EPERM", EPERM },           { "ENOSYS", ENOSYS },
	{ "EBUSY", EBUSY },   { "EMFILE", EMFILE },         { "ENODEV", ENODEV },
	{ "ESRCH", ESRCH },   { "ENXIO", ENXIO },           { "ENOSPC", ENOSPC },
};

static const struct { const char *name; uint32_t type; } types[] = {
	{ "hardware", TALLY_TYPE_HARDWARE },     { "software", TALLY_TYPE_SOFTWARE },
	{ "tracepoint", TALLY_TYPE_TRACEPOINT }, { "cache", TALLY_TYPE_HW_CACHE },
	{ "raw", TALLY_TYPE_RAW },               { "breakpoint", TALLY_TYPE_BREAKPOINT },
};

static int parse_number(const char *text, const char **end, uint64_t *out)
{
	char *stop;
	errno = 0;
	*out = strtoull(text, &stop, 0);
	if (end)
		*end = stop;
	if (stop == text || errno || (!end && *stop))
		return -EINVAL;
	return 0;
}

static int parse_typed(const char *word, const char *colon, struct script_line *line)
{
	uint64_t number;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strlen(types[i].name) == (size_t)(colon - word) &&
		    !strncmp(types[i].name, word, (size_t)(colon - word))) {
			line->type = types[i].type;
			return parse_number(colon + 1, NULL, &line->config);
		}
	const char *end;
	if (parse_number(word, &end, &number) < 0 || end != colon)
		return -EINVAL;
	line->type = (uint32_t)number;
	return parse_number(colon + 1, NULL, &line->config);
}

static int parse_event(const struct tally_catalogue *catalogue, char *word,
		       struct script_line *line)
{
	char *at = strchr(word, '@');
	uint64_t cpu;
	line->cpu = -1;
	if (at) {
		if (parse_number(at + 1, NULL, &cpu) < 0)
			return -EINVAL;
		line->cpu = (int)cpu;
		*at = 0;
	}
	if (!strcmp(word, "*")) {
		line->is_any = true;
		return 0;
	}
	const char *colon = strchr(word, ':');
	if (colon)
		return parse_typed(word, colon, line);
	for (size_t i = 0; i < catalogue->named_count; i++) {
		const struct tally_named_event *named = &catalogue->named[i];
		if (!strcmp(named->name, word) || (named->alias && !strcmp(named->alias, word))) {
			line->type = named->type;
			line->config = named->config;
			return 0;
		}
	}
	return -ENOENT;
}

static int parse_reading(const char *word, struct script_reading *reading)
{
	enum { DEFAULT_NS = 1000000 };
	*reading = (struct script_reading){ .enabled_ns = DEFAULT_NS };
	if (!strcmp(word, "error")) {
		reading->is_error = true;
		return 0;
	}
	const char *at;
	if (parse_number(word, &at, &reading->value) < 0)
		return -EINVAL;
	if (*at == '/' && parse_number(at + 1, &at, &reading->enabled_ns) < 0)
		return -EINVAL;
	reading->running_ns = reading->enabled_ns;
	if (*at == '/' && parse_number(at + 1, &at, &reading->running_ns) < 0)
		return -EINVAL;
	if (*at)
		return -EINVAL;
	return 0;
}

static int parse_refusal(const char *word, int *code)
{
	for (size_t i = 0; word && i < sizeof(errnos) / sizeof(errnos[0]); i++)
		if (!strcmp(errnos[i].name, word)) {
			*code = errnos[i].code;
			return 0;
		}
	return -EINVAL;
}

static int parse_event_line(struct scripted *script, char *word, char **rest)
{
	struct script_line line = { 0 };
	int result = parse_event(&script->catalogue, word, &line);
	bool has_more = false;
	while (result >= 0 && (word = strtok_r(NULL, " \t", rest))) {
		struct script_reading reading;
		if (!strcmp(word, "refuse"))
			result = parse_refusal(strtok_r(NULL, " \t", rest), &line.refuse);
		else if ((result = parse_reading(word, &reading)) >= 0)
			result = tally_vector_push(&line.readings, reading);
		has_more = true;
	}
	if (result >= 0 && (!has_more || (!line.refuse && !line.readings.count)))
		result = -EINVAL;
	if (result >= 0)
		result = tally_vector_push(&script->lines, line);
	if (result < 0)
		tally_vector_release(&line.readings);
	return result;
}

static int parse_line(struct scripted *script, char *text)
{
	char *rest, *word = strtok_r(text, " \t", &rest);
	uint64_t number;
	if (!word)
		return 0;
	if (!strcmp(word, "counters")) {
		word = strtok_r(NULL, " \t", &rest);
		if (!word || parse_number(word, NULL, &number) < 0)
			return -EINVAL;
		script->counters = (unsigned long)number;
		word = strtok_r(NULL, " \t", &rest);
		if (word && (strcmp(word, "held") != 0 || !(word = strtok_r(NULL, " \t", &rest)) ||
			     parse_number(word, NULL, &number) < 0 || number > script->counters))
			return -EINVAL;
		if (word)
			script->held = (unsigned long)number;
		return 0;
	}
	if (!strcmp(word, "privilege")) {
		word = strtok_r(NULL, " \t", &rest);
		script->needs_exclude_kernel = word && !strcmp(word, "user");
		script->refuses_all = word && !strcmp(word, "none");
		if (!script->needs_exclude_kernel && !script->refuses_all)
			return -EINVAL;
		return 0;
	}
	return parse_event_line(script, word, &rest);
}

static void scripted_release(struct tally_provider *provider)
{
	struct scripted *script = (struct scripted *)provider;
	for (size_t i = 0; i < script->lines.count; i++)
		tally_vector_release(&script->lines.items[i].readings);
	tally_vector_release(&script->lines);
	tally_vector_release(&script->handles);
	free(script);
}

/* Chooses the line for the next opening of this event on this CPU: the line after those that
 * earlier openings took. */
static int choose_line(const struct scripted *script, const struct tally_attr *attr, int cpu,
		       size_t *out)
{
	size_t earlier = 0, seen = 0;
	bool found = false, any = false;
	for (size_t i = 0; i < script->handles.count; i++) {
		const struct script_handle *h = &script->handles.items[i];
		earlier += h->type == attr->type && h->config == attr->config && h->cpu == cpu &&
			   !h->is_trial;
	}
	for (int want_cpu = 1; want_cpu >= 0 && !found; want_cpu--)
		for (size_t i = 0; i < script->lines.count; i++) {
			const struct script_line *line = &script->lines.items[i];
			if (line->is_any || line->type != attr->type ||
			    line->config != attr->config ||
			    (want_cpu ? line->cpu != cpu || cpu < 0 : line->cpu >= 0))
				continue;
			if (seen++ <= earlier)
				*out = i;
			found = true;
		}
	for (size_t i = 0; !found && i < script->lines.count; i++)
		if (script->lines.items[i].is_any) {
			*out = i;
			any = true;
		}
	if (!found && !any)
		return -ENOENT;
	return 0;
}

static bool is_hardware(uint32_t type)
{
	return type != TALLY_TYPE_SOFTWARE && type != TALLY_TYPE_TRACEPOINT &&
	       type != TALLY_TYPE_BREAKPOINT;
}

static bool group_is_full(const struct scripted *script, int leader, uint32_t type)
{
	unsigned long used = 1;
	if (!script->counters || leader < 0 || !is_hardware(type))
		return false;
	for (size_t i = 0; i < script->handles.count; i++) {
		const struct script_handle *h = &script->handles.items[i];
		used += h->is_open && h->leader == leader && is_hardware(h->type);
	}
	return used > script->counters;
}

/* True if the handle's group is pinned, and the counters are taken by the pinned groups before it
 * and by its own members. */
static bool is_starved(const struct scripted *script, size_t number)
{
	const struct script_handle *items = script->handles.items;
	int leader = items[number].leader;
	unsigned long used = 0;
	if (!script->counters || !items[leader].is_pinned)
		return false;
	for (size_t i = 0; i < script->handles.count; i++)
		used += items[i].is_open && is_hardware(items[i].type) &&
			items[items[i].leader].is_pinned && items[i].leader <= leader;
	return used > script->counters - script->held;
}

static int scripted_open(struct tally_provider *provider, const struct tally_attr *attr, pid_t pid,
			 int cpu, int group, unsigned long flags)
{
	struct scripted *script = (struct scripted *)provider;
	size_t line;
	(void)flags;
	if (script->refuses_all ||
	    (script->needs_exclude_kernel && !(attr->flags & TALLY_ATTR_EXCLUDE_KERNEL)))
		return -EACCES;
	int result = choose_line(script, attr, cpu, &line);
	if (result < 0)
		return result;
	if (script->lines.items[line].refuse)
		return -script->lines.items[line].refuse;
	if (group >= 0 &&
	    ((size_t)group >= script->handles.count || !script->handles.items[group].is_open))
		return -EBADF;
	if (group_is_full(script, group, attr->type))
		return -EINVAL;
	int number = (int)script->handles.count;
	struct script_handle handle = { .is_open = true,
					.line = line,
					.read_format = attr->read_format,
					.type = attr->type,
					.config = attr->config,
					.cpu = cpu,
					.leader = group >= 0 ? group : number,
					.is_trial = !pid,
					.is_pinned = attr->flags & TALLY_ATTR_PINNED };
	if (tally_vector_push(&script->handles, handle) < 0)
		return -ENOMEM;
	return number;
}

static struct script_reading next_reading(struct scripted *script, struct script_handle *handle)
{
	const struct script_line *line = &script->lines.items[handle->line];
	if (handle->next == line->readings.count)
		return line->readings.items[line->readings.count - 1];
	return line->readings.items[handle->next++];
}

static ssize_t scripted_read(struct tally_provider *provider, int number, void *bytes, size_t size)
{
	struct scripted *script = (struct scripted *)provider;
	if (number < 0 || (size_t)number >= script->handles.count ||
	    !script->handles.items[number].is_open)
		return -EBADF;
	if (is_starved(script, (size_t)number))
		return 0;
	struct script_handle *handle = &script->handles.items[number];
	uint64_t format = handle->read_format, *words = bytes;
	struct script_reading first = next_reading(script, handle);
	size_t used = 0, room = size / sizeof(*words), members = 0;
	if (first.is_error)
		return 0;
	for (size_t i = 0; i < script->handles.count; i++)
		members += script->handles.items[i].is_open &&
			   script->handles.items[i].leader == number;
	if (!(format & TALLY_FORMAT_GROUP))
		members = 1;
	if (room < 3 + 2 * members)
		return -ENOSPC;
	if (format & TALLY_FORMAT_GROUP)
		words[used++] = members;
	else
		words[used++] = first.value;
	if (format & TALLY_FORMAT_TOTAL_TIME_ENABLED)
		words[used++] = first.enabled_ns;
	if (format & TALLY_FORMAT_TOTAL_TIME_RUNNING)
		words[used++] = first.running_ns;
	if (!(format & TALLY_FORMAT_GROUP) && (format & TALLY_FORMAT_ID))
		words[used++] = (uint64_t)number + 1;
	for (size_t i = 0; (format & TALLY_FORMAT_GROUP) && i < script->handles.count; i++) {
		struct script_handle *member = &script->handles.items[i];
		if (!member->is_open || member->leader != number)
			continue;
		words[used++] = (int)i == number ? first.value : next_reading(script, member).value;
		if (format & TALLY_FORMAT_ID)
			words[used++] = i + 1;
	}
	return (ssize_t)(used * sizeof(*words));
}

static int scripted_ioctl(struct tally_provider *provider, int number, enum tally_ioctl request,
			  void *argument, int whole_group)
{
	struct scripted *script = (struct scripted *)provider;
	(void)whole_group;
	if (number < 0 || (size_t)number >= script->handles.count ||
	    !script->handles.items[number].is_open)
		return -EBADF;
	if (request == TALLY_IOCTL_ID)
		*(uint64_t *)argument = (uint64_t)number + 1;
	return 0;
}

static struct tally_user_page *scripted_map(struct tally_provider *provider, int handle,
					    size_t data_pages, int overwrite)
{
	(void)provider, (void)handle, (void)data_pages, (void)overwrite;
	errno = EOPNOTSUPP;
	return NULL;
}

static void scripted_unmap(struct tally_provider *provider, struct tally_user_page *page,
			   size_t data_pages)
{
	(void)provider, (void)page, (void)data_pages;
}

static int scripted_wait(struct tally_provider *provider, struct tally_wait_item *items,
			 size_t count, int extra_fd, int timeout_ms)
{
	struct pollfd fd = { .fd = extra_fd, .events = POLLIN };
	(void)provider;
	for (size_t i = 0; i < count; i++)
		items[i].revents = 0;
	int ready = poll(&fd, extra_fd >= 0, timeout_ms);
	if (ready < 0)
		return -errno;
	return ready;
}

static void scripted_close(struct tally_provider *provider, int number)
{
	struct scripted *script = (struct scripted *)provider;
	if (number >= 0 && (size_t)number < script->handles.count)
		script->handles.items[number].is_open = false;
}

static int scripted_catalogue(struct tally_provider *provider, struct tally_catalogue *catalogue,
			      struct tally_error *err)
{
	/* the fixed names are in the catalogue already */
	(void)provider, (void)catalogue, (void)err;
	return 0;
}

static int parse_script(struct scripted *script, const char *text, struct tally_error *err)
{
	char *copy = strdup(text), *rest = copy;
	int result = 0;
	if (!copy)
		return -ENOMEM;
	for (unsigned number = 1; result >= 0 && rest; number++) {
		char *line = strsep(&rest, "\n");
		line[strcspn(line, "#\r")] = 0;
		char shown[128] = "";
		strncat(shown, line, sizeof(shown) - 1);
		result = parse_line(script, line);
		if (result == -ENOENT)
			tally_error_set(err, result, "script line %u: no event of that name: %s",
					number, shown);
		else if (result < 0)
			tally_error_set(err, result, "script line %u can't be understood: %s",
					number, shown);
	}
	free(copy);
	return result;
}

int tally_provider_scripted_parse(const char *text, struct tally_provider **out,
				  struct tally_error *err)
{
	struct scripted *script = calloc(1, sizeof(*script));
	if (!script || tally_catalogue_init(&script->catalogue) < 0) {
		free(script);
		return tally_error_set(err, -ENOMEM, "out of memory");
	}
	script->provider.ops = &tally_provider_scripted_ops;
	int result = parse_script(script, text, err);
	tally_catalogue_release(&script->catalogue);
	if (result < 0) {
		scripted_release(&script->provider);
		return result;
	}
	*out = &script->provider;
	return 0;
}

static int scripted_make(const struct tally_provider_choice *choice, struct tally_provider **out,
			 struct tally_error *err)
{
	enum { LARGEST = 1 << 20 };
	struct tally_buffer text = { 0 };
	int result = tally_buffer_read_file(&text, AT_FDCWD, choice->argument, LARGEST);
	if (result < 0)
		tally_error_set(err, result, "the script %s: %s", choice->argument,
				tally_errno_text(result));
	else
		result = tally_provider_scripted_parse(tally_buffer_string(&text), out, err);
	tally_buffer_release(&text);
	return result;
}

const struct tally_provider_ops tally_provider_scripted_ops = {
	.name = "scripted",
	.capabilities = TALLY_PROVIDER_ANY_TARGET,
	.takes_argument = true,
	.make = scripted_make,
	.catalogue = scripted_catalogue,
	.open = scripted_open,
	.read = scripted_read,
	.ioctl = scripted_ioctl,
	.map = scripted_map,
	.unmap = scripted_unmap,
	.wait = scripted_wait,
	.close = scripted_close,
	.release = scripted_release,
};
