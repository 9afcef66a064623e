/* Folded text: one stack a line, root first, as stackcollapse scripts write it.
 *
 *     bash;main;execute_command;fork_[k] 12
 *
 * The number after the last blank is the weight.  If a weight has a fraction, all are kept in
 * millionths.  The first name is the
 * thread's command ("name-PID/TID" from `fold --tid`).  The other names are frames; a suffix gives
 * their kind. stackcollapse-perf.pl marks the vdso as kernel code, although it runs in user mode;
 * this is corrected.  An empty name becomes "[unknown]", so that views can show it.
 */
#include "profile/stacks.h"

#include "base/buffer.h"
#include "base/text.h"
#include "base/vector.h"

#include <errno.h>
#include <string.h>

enum { MILLION = 1000000 };

struct folded_reader {
	struct tally_stacks *stacks;
	uint64_t scale; /* of weights: 1 or MILLION */
	struct tally_buffer name; /* of the current frame, with a NUL after it */
	struct { uint32_t *items; size_t count, capacity; } frames;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* A weight at the end of a line, after a blank. */
struct weight_text {
	const char *stack_end;
	const char *whole, *point, *end; /* `point` is `end` in a whole number */
};

static bool find_weight(const char *line, const char *end, struct weight_text *weight)
{
	const char *at = end, *point = end;
	while (at > line && (is_digit(at[-1]) || at[-1] == '.')) {
		at--;
		if (*at == '.' && point != end)
			return false;
		if (*at == '.')
			point = at;
	}
	if (at == end || point == at || at == line || (at[-1] != ' ' && at[-1] != '\t'))
		return false;
	*weight = (struct weight_text){ .whole = at, .point = point, .end = end };
	while (at > line && (at[-1] == ' ' || at[-1] == '\t'))
		at--;
	weight->stack_end = at;
	return at > line;
}

static bool has_fraction(const struct weight_text *weight)
{
	for (const char *at = weight->point + 1; at < weight->end; at++)
		if (*at != '0')
			return true;
	return false;
}

/* Returns the weight times `scale`, rounded, or UINT64_MAX if it is larger. */
static uint64_t read_weight(const struct weight_text *text, uint64_t scale)
{
	uint64_t weight = 0, fraction = 0, place = scale;
	for (const char *at = text->whole; at < text->point; at++)
		if (__builtin_mul_overflow(weight, 10, &weight) ||
		    __builtin_add_overflow(weight, (uint64_t)(*at - '0'), &weight))
			return UINT64_MAX;
	for (const char *at = text->point + 1; at < text->end && place > 1; at++) {
		place /= 10;
		fraction += place * (uint64_t)(*at - '0');
	}
	/* the first digit that is not kept */
	const char *next = text->point + 1 + (scale == 1 ? 0 : 6);
	fraction += next < text->end && *next >= '5';
	if (__builtin_mul_overflow(weight, scale, &weight) ||
	    __builtin_add_overflow(weight, fraction, &weight))
		return UINT64_MAX;
	return weight;
}

/* Copies a name to reader->name; replaces NULs and an empty name. */
static const char *copy_name(struct folded_reader *reader, const char *text, size_t length)
{
	tally_buffer_clear(&reader->name);
	for (size_t i = 0; i < length; i++)
		tally_buffer_char(&reader->name, text[i] ? text[i] : '?');
	if (!length)
		tally_buffer_text(&reader->name, "[unknown]");
	if (reader->name.failed)
		return NULL;
	return tally_buffer_string(&reader->name);
}

/* Splits "name-PID/TID": sets the ids and returns the length of the name.  Without ids returns
 * `length`. */
static size_t take_ids(const char *text, size_t length, uint32_t *pid, uint32_t *tid)
{
	uint32_t value[2] = { 0, 0 }; /* tid, pid: read from the end */
	size_t at = length;
	*pid = *tid = 0;
	for (unsigned i = 0; i < 2; i++) {
		uint64_t scale = 1;
		size_t digits_end = at;
		while (at && is_digit(text[at - 1]) && digits_end - at < 9) {
			value[i] += (uint32_t)(scale * (uint64_t)(text[--at] - '0'));
			scale *= 10;
		}
		if (at == digits_end || at < 2 || text[at - 1] != (i ? '-' : '/'))
			return length;
		at--;
	}
	*pid = value[1];
	*tid = value[0];
	return at;
}

static enum tally_frame_kind kind_of(const char *name, size_t length, enum tally_frame_kind given)
{
	bool is_vdso = tally_object_is_user_page(name) || !strncmp(name, "__vdso_", 7);
	if (is_vdso && (given == TALLY_FRAME_KERNEL || *name == '['))
		return TALLY_FRAME_LIBRARY;
	/* "[libc.so.6]" is the name of a frame without a symbol */
	bool is_object = length > 2 && name[0] == '[' && name[length - 1] == ']';
	if (is_object && strstr(name, ".so"))
		return TALLY_FRAME_LIBRARY;
	return given;
}

static uint32_t add_frame(struct folded_reader *reader, const char *text, size_t length)
{
	static const struct { const char *suffix; enum tally_frame_kind kind;
	} suffixes[] = {
		{ "_[k]", TALLY_FRAME_KERNEL },
		{ "_[j]", TALLY_FRAME_JIT },
		{ "_[i]", TALLY_FRAME_INLINED },
	};
	enum tally_frame_kind kind = TALLY_FRAME_PROGRAM;
	for (unsigned i = 0; i < 3; i++)
		if (length >= 4 && !memcmp(text + length - 4, suffixes[i].suffix, 4)) {
			kind = suffixes[i].kind;
			length -= 4;
		}
	const char *name = copy_name(reader, text, length);
	if (!name)
		return UINT32_MAX;
	return tally_stacks_frame(reader->stacks, name, NULL, kind_of(name, length, kind));
}

static int add_line(struct folded_reader *reader, const char *line, const char *end,
		    uint64_t weight)
{
	const char *name = line, *semicolon = memchr(line, ';', (size_t)(end - line));
	uint32_t pid, tid;
	size_t length = (size_t)(tally_text_or(semicolon, end) - line);
	const char *comm = copy_name(reader, line, take_ids(line, length, &pid, &tid));
	if (!comm)
		return -ENOMEM;
	uint32_t thread = tally_stacks_thread(reader->stacks, comm, pid, tid);
	if (thread == UINT32_MAX)
		return -ENOMEM;
	reader->frames.count = 0;
	while (semicolon) {
		name = semicolon + 1;
		semicolon = memchr(name, ';', (size_t)(end - name));
		uint32_t frame = add_frame(reader, name,
					   (size_t)(tally_text_or(semicolon, end) - name));
		if (frame == UINT32_MAX || tally_vector_push(&reader->frames, frame) < 0)
			return -ENOMEM;
	}
	return tally_stacks_add(reader->stacks, thread, reader->frames.items, reader->frames.count,
				weight, 0);
}

/* Returns the end of the line without blanks behind it, and sets `next` to the next line. */
static const char *end_of_line(const char *line, const char *end, const char **next)
{
	const char *line_end = tally_line_end(line, end);
	*next = line_end + (line_end < end);
	while (line_end > line && (line_end[-1] == '\r' || line_end[-1] == ' '))
		line_end--;
	return line_end;
}

static uint64_t find_scale(const char *text, size_t length)
{
	const char *end = text + length;
	struct weight_text weight;
	for (const char *line = text, *next; line < end; line = next) {
		const char *line_end = end_of_line(line, end, &next);
		if (line < line_end && *line != '#' && find_weight(line, line_end, &weight) &&
		    has_fraction(&weight))
			return MILLION;
	}
	return 1;
}

int tally_stacks_read_folded(struct tally_stacks *stacks, const char *text, size_t length,
			     struct tally_error *err)
{
	struct folded_reader reader = { .stacks = stacks, .scale = find_scale(text, length) };
	const char *end = text + length;
	struct weight_text weight;
	uint64_t stacks_read = 0;
	int status = 0;
	for (const char *line = text, *next; line < end && !status; line = next) {
		const char *line_end = end_of_line(line, end, &next);
		stacks->lines_read++;
		if (line == line_end || *line == '#')
			continue;
		if (find_weight(line, line_end, &weight)) {
			status = add_line(&reader, line, weight.stack_end,
					  read_weight(&weight, reader.scale));
			stacks_read++;
		} else if (!stacks->lines_skipped++) {
			stacks->first_line_skipped = stacks->lines_read;
		}
	}
	tally_buffer_release(&reader.name);
	tally_vector_release(&reader.frames);
	if (status)
		return tally_error_set(err, status, "out of memory while reading stacks");
	if (!stacks_read && length) {
		tally_error_set(err, -EINVAL, "no stacks were found in this text");
		tally_error_hint(err,
				 "folded text has a line 'comm;root;…;leaf WEIGHT' for each stack; "
				 "text of `perf script` and recordings can be read as well");
		return -EINVAL;
	}
	if (!stacks->unit[0])
		strcpy(stacks->unit, reader.scale == 1 ? "samples" : TALLY_MILLIONTHS);
	return 0;
}

int tally_stacks_read_text(struct tally_stacks *stacks, const char *text, size_t length,
			   struct tally_error *err)
{
	int result;
	if (tally_text_is_perf_script(text, length))
		result = tally_stacks_read_perf_script(stacks, text, length, err);
	else
		result = tally_stacks_read_folded(stacks, text, length, err);
	if (!result && tally_stacks_make_readable(stacks) < 0)
		result = tally_error_set(err, -ENOMEM, "out of memory while reading stacks");
	return result;
}
