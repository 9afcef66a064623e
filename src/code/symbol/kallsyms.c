/* Parses the text of /proc/kallsyms, and keeps only functions.  Text with nothing but zero
 * addresses is an error, because the kernel hides them from users without privileges. */
#include "base/digits.h"
#include "base/vector.h"
#include "symbol/symbol_internal.h"

#include <errno.h>
#include <string.h>

/* A line: "ffffffff81000000 T _stext" or "ffffffffc0201000 t ext4_sync\t[ext4]". */
struct line {
	uint64_t address;
	char type;
	const char *name, *module;
	size_t name_length, module_length; /* module_length 0: in the kernel itself */
};

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static bool parse_line(const char *at, const char *end, struct line *line)
{
	*line = (struct line){ 0 };
	size_t digits = 0;
	for (; at < end && tally_hexadecimal_value(*at) >= 0; at++, digits++)
		line->address = line->address << 4 | (uint64_t)tally_hexadecimal_value(*at);
	if (digits == 0 || digits > 16 || end - at < 4 || *at != ' ' || at[2] != ' ')
		return false;
	line->type = at[1];
	line->name = at += 3;
	while (at < end && !is_space(*at) && *at)
		at++;
	line->name_length = (size_t)(at - line->name);
	while (at < end && is_space(*at))
		at++;
	if (at < end && *at == '[') {
		line->module = ++at;
		while (at < end && *at != ']' && *at)
			at++;
		line->module_length = (size_t)(at - line->module);
	}
	return line->name_length > 0;
}

/* Gets the module's 1-based index.  Searches from the last one, since a module's lines are
 * adjacent. */
static int module_index(struct tally_symbols_builder *builder, const struct line *line,
			uint16_t *index)
{
	*index = 0;
	if (line->module_length == 0)
		return 0;
	for (size_t i = builder->module_count; i-- > 0;)
		if (strncmp(builder->modules[i], line->module, line->module_length) == 0 &&
		    builder->modules[i][line->module_length] == '\0') {
			*index = (uint16_t)(i + 1);
			return 0;
		}
	if (builder->module_count == UINT16_MAX)
		return 0;
	if (builder->module_count == builder->module_capacity &&
	    tally_vector_reserve_((void **)&builder->modules, &builder->module_capacity,
				  builder->module_count + 1, sizeof(*builder->modules)) < 0)
		return -ENOMEM;
	const char *name = tally_arena_copy(&builder->names, line->module, line->module_length);
	if (!name)
		return -ENOMEM;
	builder->modules[builder->module_count++] = name;
	*index = (uint16_t)builder->module_count;
	return 0;
}

static int add_line(struct tally_symbols_builder *builder, const struct line *line)
{
	struct tally_symbol_entry entry = {
		.start = line->address,
		.end = line->address,
		.name = tally_arena_copy(&builder->names, line->name, line->name_length),
		.binding = line->type == 'T' ? TALLY_SYMBOL_GLOBAL : TALLY_SYMBOL_LOCAL,
	};
	if (line->type == 'w' || line->type == 'W')
		entry.binding = TALLY_SYMBOL_WEAK;
	if (!entry.name || module_index(builder, line, &entry.module) < 0)
		return -ENOMEM;
	return tally_symbols_add(builder, &entry);
}

int tally_symbols_from_kallsyms(const char *text, size_t length, struct tally_symbols **out,
				struct tally_error *err)
{
	struct tally_symbols_builder builder = { .is_kernel = true };
	const char *end = text + length;
	bool has_address = false, has_lines = false;
	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *line_end = end;
		if (newline)
			line_end = newline;
		struct line line;
		if (parse_line(text, line_end, &line)) {
			has_lines = true;
			has_address |= line.address != 0;
			/* 'a' and 'A' are per-CPU offsets, other letters are data. */
			bool is_function = strchr("tTwW", line.type) && line.type;
			if (is_function && line.address != 0 && add_line(&builder, &line) < 0) {
				tally_symbols_abandon(&builder);
				return tally_error_set(err, -ENOMEM,
						       "out of memory for the kernel's symbols");
			}
		}
		if (newline)
			text = newline + 1;
		else
			text = end;
	}
	if (has_lines && !has_address) {
		tally_symbols_abandon(&builder);
		tally_error_set(err, -EPERM, "the kernel hides the addresses of its symbols");
		tally_error_hint(err,
				 "run as root, or allow it for all: sysctl kernel.kptr_restrict=0");
		return -EPERM;
	}
	return tally_symbols_finish(&builder, out, err);
}
