/* Lines of `perf script` are made for the eye:
 *
 *     V8 Worker 24636/25607 [000] 94564.109216:     100 cycles:u: …
 *     	    7f32bb36c1f8 std::map<int, (anonymous namespace)::T>::find(int)+0x18 (/usr/libx.so)
 *
 * The header's line may go on with one frame or a tracepoint's text.  `-F` chooses the fields,
 * nothing is quoted, and commands, symbols and paths may contain blanks, digits, colons and
 * parentheses.  So a header is found by its least ambiguous part: the leftmost number that is
 * followed by "[cpu]" and a time "digits.digits:".  Only if there is none in the line, it is the
 * leftmost number followed by "[period] event:" or by nothing.  A frame is parsed from its end: the
 * last matching parentheses hold the object.
 */
#include "profile/profile_internal.h"

#include "base/text.h"

#include <string.h>

struct cursor {
	const char *at, *end;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static void skip_blanks(struct cursor *cursor)
{
	while (cursor->at < cursor->end && is_blank(*cursor->at))
		cursor->at++;
}

static bool take_char(struct cursor *cursor, char c)
{
	bool there = cursor->at < cursor->end && *cursor->at == c;
	cursor->at += there;
	return there;
}

static bool take_number(struct cursor *cursor, uint64_t *value)
{
	const char *start = cursor->at;
	*value = 0;
	while (cursor->at < cursor->end && is_digit(*cursor->at)) {
		if (__builtin_mul_overflow(*value, 10, value) ||
		    __builtin_add_overflow(*value, (uint64_t)(*cursor->at - '0'), value))
			*value = UINT64_MAX;
		cursor->at++;
	}
	return cursor->at > start;
}

static bool at_blank_or_end(const struct cursor *cursor)
{
	return cursor->at == cursor->end || is_blank(*cursor->at);
}

/* Takes "1336", "1336/1337" or "-1", up to a blank or the end of the line. */
static bool take_ids(struct cursor *cursor, struct tally_script_header *header)
{
	uint64_t first = 0, second = 0;
	bool unknown = take_char(cursor, '-');
	if (!take_number(cursor, &first))
		return false;
	bool both = take_char(cursor, '/');
	if (both) {
		take_char(cursor, '-');
		if (!take_number(cursor, &second))
			return false;
	}
	if (!at_blank_or_end(cursor) || first > UINT32_MAX || second > UINT32_MAX)
		return false;
	header->pid = both && !unknown ? (uint32_t)first : 0;
	if (!both)
		second = first;
	header->tid = unknown ? 0 : (uint32_t)second;
	return true;
}

/* Skips "[003]" and the letters of `-F misc`; both are optional. */
static void skip_cpu_and_misc(struct cursor *cursor)
{
	uint64_t cpu;
	struct cursor ahead = *cursor;
	if (take_char(&ahead, '[') && take_number(&ahead, &cpu) && take_char(&ahead, ']')) {
		skip_blanks(&ahead);
		*cursor = ahead;
	}
	ahead = *cursor;
	while (ahead.at < ahead.end && is_letter(*ahead.at) && ahead.at - cursor->at < 8)
		ahead.at++;
	if (ahead.at > cursor->at && ahead.at < ahead.end && is_blank(*ahead.at)) {
		skip_blanks(&ahead);
		if (ahead.at < ahead.end && is_digit(*ahead.at))
			*cursor = ahead;
	}
}

static bool take_time(struct cursor *cursor)
{
	uint64_t part;
	struct cursor ahead = *cursor;
	if (!take_number(&ahead, &part) || !take_char(&ahead, '.') || !take_number(&ahead, &part) ||
	    !take_char(&ahead, ':') || !at_blank_or_end(&ahead))
		return false;
	*cursor = ahead;
	return true;
}

/* Takes a word that ends in a colon. */
static bool take_event(struct cursor *cursor, struct tally_text_piece *event)
{
	const char *at = cursor->at;
	while (at < cursor->end && !is_blank(*at))
		at++;
	if (at - cursor->at < 2 || at[-1] != ':')
		return false;
	*event = (struct tally_text_piece){ cursor->at, (size_t)(at - cursor->at - 1) };
	cursor->at = at;
	return true;
}

static void take_period(struct cursor *cursor, struct tally_script_header *header)
{
	uint64_t period;
	struct cursor ahead = *cursor;
	if (!take_number(&ahead, &period) || !at_blank_or_end(&ahead))
		return;
	skip_blanks(&ahead);
	/* In "3595.1: 4004 main", 4004 is an address, because no event follows.  But with "-F
	 * period" alone the period ends the line. */
	struct tally_text_piece event;
	struct cursor behind = ahead;
	if (ahead.at < ahead.end && !take_event(&behind, &event))
		return;
	header->has_period = true;
	header->period = period;
	*cursor = ahead;
}

/* Parses a header whose ids begin at `at`. */
static bool parse_from(const char *line, const char *at, const char *end, bool want_time,
		       struct tally_script_header *header)
{
	struct cursor cursor = { at, end };
	*header = (struct tally_script_header){ 0 };
	if (!take_ids(&cursor, header))
		return false;
	skip_blanks(&cursor);
	skip_cpu_and_misc(&cursor);
	header->has_time = take_time(&cursor);
	if (header->has_time != want_time)
		return false;
	skip_blanks(&cursor);
	take_period(&cursor, header);
	bool has_event = take_event(&cursor, &header->event);
	skip_blanks(&cursor);
	/* Without time and event, only "gcc 1336" and nothing more is a header, as with `-F
	 * comm,tid,ip,sym`. */
	if (!has_event && !want_time && (cursor.at < end || at == line))
		return false;
	while (at > line && is_blank(at[-1]))
		at--;
	header->comm = (struct tally_text_piece){ line, (size_t)(at - line) };
	header->rest = (struct tally_text_piece){ cursor.at, (size_t)(end - cursor.at) };
	return true;
}

bool tally_script_header_parse(const char *line, size_t length, struct tally_script_header *header)
{
	const char *end = line + length;
	/* The kernel's commands have 15 bytes, but merged or foreign text may have longer ones. */
	enum { COMM_MAX = 256 };
	while (line < end && is_blank(*line))
		line++;
	for (int want_time = 1; want_time >= 0; want_time--)
		for (const char *at = line; at < end && at - line < COMM_MAX; at++)
			if ((at == line || is_blank(at[-1])) && (is_digit(*at) || *at == '-') &&
			    parse_from(line, at, end, want_time, header))
				return true;
	return false;
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Returns the start of "+0x1f" at the end of [start, end), or `end` if there is none. */
static const char *offset_start(const char *start, const char *end)
{
	const char *at = end;
	while (at > start && is_hex(at[-1]))
		at--;
	if (at < end && at - start >= 3 && !memcmp(at - 3, "+0x", 3))
		return at - 3;
	return end;
}

static bool is_balanced(const char *at, const char *end)
{
	long depth = 0;
	for (; at < end && depth >= 0; at++)
		depth += (*at == '(') - (*at == ')');
	return depth == 0;
}

/* Returns the "(" before the object in "symbol+0x12 (object)": the one after an offset; else the
 * one before a path or a bracket; else the last one that leaves the parentheses balanced. */
static const char *object_start(const char *start, const char *end)
{
	const char *by_path = NULL, *by_balance = NULL;
	for (const char *at = end - 1; at > start; at--) {
		if (*at != '(' || at[-1] != ' ')
			continue;
		if (offset_start(start, at - 1) != at - 1)
			return at;
		if (!by_path && (at[1] == '/' || at[1] == '['))
			by_path = at;
		if (!by_balance && is_balanced(at + 1, end - 1))
			by_balance = at;
		if (end - at > 8192)
			break; /* no path is longer; this keeps crafted lines in linear time */
	}
	return tally_text_or(by_path, by_balance);
}

static bool equals(struct tally_text_piece piece, const char *text)
{
	return piece.length == strlen(text) && !memcmp(piece.at, text, piece.length);
}

static struct tally_text_piece piece_of(const char *at, const char *end)
{
	while (at < end && is_blank(end[-1]))
		end--;
	return (struct tally_text_piece){ at, (size_t)(end - at) };
}

bool tally_script_frame_parse(const char *line, size_t length, struct tally_script_frame *frame)
{
	struct cursor cursor = { line, line + length };
	*frame = (struct tally_script_frame){ 0 };
	while (cursor.end > cursor.at && is_blank(cursor.end[-1]))
		cursor.end--;
	skip_blanks(&cursor);
	const char *address = cursor.at;
	while (cursor.at < cursor.end && is_hex(*cursor.at))
		cursor.at++;
	if (cursor.at == address || !at_blank_or_end(&cursor))
		return false;
	skip_blanks(&cursor);
	const char *start = cursor.at, *end = cursor.end;
	if (end > start && end[-1] == ')') {
		/* Begin one byte earlier: in "ip (object)", an object without a symbol, the blank
		 * is there. */
		const char *open = object_start(start > line ? start - 1 : start, end);
		if (open) {
			frame->object = piece_of(open + 1, end - 1);
			end = open;
		}
	}
	if (end < start)
		end = start;
	frame->symbol = piece_of(start, end);
	end = frame->symbol.at + frame->symbol.length;
	frame->symbol.length = (size_t)(offset_start(start, end) - start);
	if (equals(frame->symbol, "[unknown]"))
		frame->symbol.length = 0;
	frame->inlined = equals(frame->object, "inlined");
	if (frame->inlined || equals(frame->object, "[unknown]"))
		frame->object.length = 0;
	return true;
}
