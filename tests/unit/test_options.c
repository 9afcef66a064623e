/* The option tables: where values go, and that docs/compatibility.md lists perf's options as the
 * tables have them. */
#include "test.h"

#include "base/buffer.h"
#include "command/command.h"

#include <fcntl.h>
#include <stdbool.h>

enum colour { RED, GREEN, BLUE };

struct inner {
	uint16_t frames;
	uint64_t bits;
};

struct request {
	const char *text, *taken;
	bool is_set, is_clear, is_given;
	size_t number;
	int small;
	double seconds, percent;
	enum colour colour;
	struct inner inner, shared;
};

static int take(void *taker, const struct tally_option *option, const char *value,
		struct tally_error *err)
{
	struct request *request = taker;
	if (!strcmp(value, "bad"))
		return tally_error_set(err, -22, "%s is bad", option->name);
	request->taken = value;
	return 0;
}

static const struct tally_option shared[] = {
	{ 'd', "deep", TALLY_ARGUMENT_REQUIRED, "N", "", TALLY_FRAMES(struct inner, frames) },
	{ 0, "bit", TALLY_ARGUMENT_NONE, NULL, "", TALLY_BITS(struct inner, bits, 2) },
	TALLY_OPTIONS_END,
};

static const struct tally_option options[] = {
	{ 't', "text", TALLY_ARGUMENT_REQUIRED, "TEXT", "", TALLY_TEXT(struct request, text) },
	{ 'p', "place", TALLY_ARGUMENT_OPTIONAL, "WHERE", "", "here there",
	  TALLY_TEXT(struct request, text), TALLY_ALSO(struct request, is_given) },
	{ TALLY_INCLUDE(shared, struct request, shared) },
	{ 's', "set", TALLY_ARGUMENT_NONE, NULL, "", TALLY_SET(struct request, is_set) },
	{ 'c', "clear", TALLY_ARGUMENT_NONE, NULL, "", TALLY_CLEAR(struct request, is_clear) },
	{ 'n', "number", TALLY_ARGUMENT_REQUIRED, "N", "",
	  TALLY_NUMBER(struct request, number, 3, 1ull << 40) },
	{ 0, "small", TALLY_ARGUMENT_REQUIRED, "N", "",
	  TALLY_NUMBER(struct request, small, 0, 22) },
	{ 0, "frames", TALLY_ARGUMENT_REQUIRED, "N", "",
	  TALLY_FRAMES(struct request, inner.frames) },
	{ 0, "seconds", TALLY_ARGUMENT_REQUIRED, "TIME", "",
	  TALLY_SECONDS(struct request, seconds) },
	{ 0, "percent", TALLY_ARGUMENT_REQUIRED, "P", "", TALLY_PERCENT(struct request, percent) },
	{ 0, "colour", TALLY_ARGUMENT_REQUIRED, "COLOUR", "",
	  TALLY_WORD(struct request, colour, "red green blue") },
	{ 0, "blue", TALLY_ARGUMENT_NONE, NULL, "", TALLY_CONSTANT(struct request, colour, BLUE) },
	{ 0, "low", TALLY_ARGUMENT_NONE, NULL, "", TALLY_BITS(struct request, inner.bits, 1) },
	{ 0, "high", TALLY_ARGUMENT_NONE, NULL, "",
	  TALLY_BITS(struct request, inner.bits, 1ull << 63) },
	{ 0, "take", TALLY_ARGUMENT_REQUIRED, "WHAT", "", TALLY_TAKE(take) },
	{ 0, "no-trees", TALLY_ARGUMENT_NONE, NULL, "", TALLY_SET(struct request, is_given) },
	{ 'v', "verbose", TALLY_ARGUMENT_NONE, NULL, NULL, TALLY_IGNORED },
	{ 0, "perf", TALLY_ARGUMENT_NONE, NULL, NULL, TALLY_INSTEAD("use tally") },
	TALLY_OPTIONS_END,
};

static const struct tally_command command = { .name = "test", .options = options };

enum { ARGUMENTS_MAX = 16 };

/* Parses words that blanks separate.  Returns the index of the first argument, or -1 - status. */
static int parse(const char *words, struct request *request)
{
	static char text[256]; /* the request points into it */
	char *argv[ARGUMENTS_MAX + 1], *rest = NULL;
	int argc = 0;
	snprintf(text, sizeof(text), "%s", words);
	for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		assert_true(argc < ARGUMENTS_MAX);
		argv[argc++] = word;
	}
	struct tally_options walk = TALLY_OPTIONS_INIT(&command, argc, argv);
	*request = (struct request){ .is_clear = true, .inner.bits = 2 };
	return tally_options_parse(&walk, request) ? walk.index : -1 - walk.status;
}

static void value_goes_to_the_member_of_the_row(void **state)
{
	(void)state;
	struct request request;
	assert_int_equal(
		parse("test -t one -sc -n5 --small=22 --frames 7 --seconds 3ms rest -t two",
		      &request),
		10);
	assert_string_equal(request.text, "one");
	assert_true(request.is_set && !request.is_clear && !request.is_given);
	assert_int_equal(request.number, 5);
	assert_int_equal(request.small, 22);
	assert_int_equal(request.inner.frames, 7);
	assert_true(request.seconds == 0.003);
	assert_int_equal(
		parse("test --percent 12.5 --colour green --low --high --take this -v", &request),
		10);
	assert_true(request.percent == 12.5);
	assert_int_equal(request.colour, GREEN);
	assert_true(request.inner.bits == (3 | 1ull << 63));
	assert_string_equal(request.taken, "this");
}

static void what_is_on_or_off_can_be_taken_back(void **state)
{
	(void)state;
	struct request request;
	assert_int_equal(parse("test --set --no-set --clear --no-clear --no-trees x", &request), 6);
	assert_true(!request.is_set && request.is_clear && request.is_given);
	assert_int_equal(parse("test --no-trees --trees --no-set --set x", &request), 5);
	assert_true(request.is_set && !request.is_given);
	/* an option that tally lacks is off */
	assert_int_equal(parse("test --no-perf x", &request), 2);
	/* what tally always does, options with values, and negations with one can't be taken back */
	assert_int_equal(parse("test --no-verbose x", &request), -3);
	assert_int_equal(parse("test --no-text x", &request), -3);
	assert_int_equal(parse("test --no-place x", &request), -3);
	assert_int_equal(parse("test --no-set=1 x", &request), -3);
	assert_int_equal(parse("test --no-such x", &request), -3);
}

static void included_table_stands_at_its_row(void **state)
{
	(void)state;
	static const char *const order[] = { "text", "place", "deep", "bit", "set" };
	const struct tally_option *option = NULL;
	for (unsigned i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		option = tally_option_next(&command, option);
		assert_non_null(option);
		assert_string_equal(option->name, order[i]);
	}
	struct request request;
	assert_int_equal(parse("test -d 7 --bit -s", &request), 5);
	assert_int_equal(request.shared.frames, 7);
	assert_int_equal(request.shared.bits, 2);
	assert_int_equal(request.inner.frames, 0);
	assert_true(request.is_set);
}

static void later_option_wins(void **state)
{
	(void)state;
	struct request request;
	assert_true(parse("test --blue --colour red --te a -tb -t c", &request) > 0);
	assert_int_equal(request.colour, RED);
	assert_string_equal(request.text, "c");
	assert_true(parse("test --colour red --blue", &request) > 0);
	assert_int_equal(request.colour, BLUE);
}

static void optional_argument_may_be_a_word_of_its_choices(void **state)
{
	(void)state;
	struct request request;
	assert_int_equal(parse("test -p there", &request), 3);
	assert_string_equal(request.text, "there");
	assert_true(request.is_given);
	assert_int_equal(parse("test -p elsewhere", &request), 2);
	assert_null(request.text);
	assert_int_equal(parse("test --place=elsewhere", &request), 2);
	assert_string_equal(request.text, "elsewhere");
}

static void wrong_values_are_misuse(void **state)
{
	static const char *const wrong[] = {
		"-n 2",        "-n x",   "-n 0x20000000000", "--small -1", "--frames 65535",
		"--seconds y", "-z",     "--percent 101",    "--percent=", "--colour yellow",
		"--colour re", "-t",     "--take bad",       "--perf",     "--set=1",
		"--p",         "--none", "--seconds=-1",
	};
	(void)state;
	struct request request;
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char line[64];
		snprintf(line, sizeof(line), "test %s", wrong[i]);
		assert_int_equal(parse(line, &request), -1 - TALLY_EXIT_USAGE);
	}
}

static void wrong_word_lists_all_words(void **state)
{
	(void)state;
	char words[340] = "";
	for (unsigned i = 0; i < 40; i++)
		snprintf(words + strlen(words), sizeof(words) - strlen(words), "%sword-%02u",
			 i ? " " : "", i);
	const struct tally_option option = { .name = "long",
					     TALLY_WORD(struct request, colour, words) };
	struct tally_error err = TALLY_ERROR_NONE;
	struct request request = { .colour = GREEN };
	assert_int_equal(tally_option_store(&request, &option, "none", &err), -22);
	assert_non_null(strstr(err.message, "'none' is none of word-00, word-01, "));
	assert_non_null(strstr(err.message, ", word-39"));
	assert_int_equal(request.colour, GREEN);
}

static void rows_of_all_commands_are_sound(void **state)
{
	(void)state;
	for (size_t i = 0; tally_commands[i]; i++)
		for (const struct tally_option *o = NULL;
		     (o = tally_option_next(tally_commands[i], o));) {
			bool takes_none = o->store == TALLY_STORE_TRUE ||
					  o->store == TALLY_STORE_FALSE ||
					  o->store == TALLY_STORE_CONSTANT ||
					  o->store == TALLY_STORE_BITS;
			bool takes_any = o->take || o->instead || o->store == TALLY_STORE_NOTHING ||
					 o->store == TALLY_STORE_TEXT;
			if (o->kind != TALLY_ARGUMENT_NONE && !o->argument)
				fail_msg("%s --%s: its argument has no name",
					 tally_commands[i]->name, o->name);
			if (!takes_any && takes_none != (o->kind == TALLY_ARGUMENT_NONE))
				fail_msg("%s --%s: the argument does not fit what is stored",
					 tally_commands[i]->name, o->name);
			if (o->instead && o->help)
				fail_msg("%s --%s: the help has an option that is refused",
					 tally_commands[i]->name, o->name);
		}
}

/* Finds the end of the row that begins with these words, in a section of the document. */
static const char *find_row(const char *section, const char *end, const char *words,
			    const char **row_end)
{
	const char *row = strstr(section, words);
	if (!row || row > end)
		return NULL;
	*row_end = row + strcspn(row, "\n");
	return row;
}

static bool lists(const char *row, const char *end, const char *name)
{
	char quoted[80];
	snprintf(quoted, sizeof(quoted), "`--%s`", name);
	const char *found = row ? strstr(row, quoted) : NULL;
	return found && found < end;
}

static const struct tally_option *find_option(const struct tally_command *of, const char *name,
					      size_t length)
{
	for (const struct tally_option *o = NULL; (o = tally_option_next(of, o));)
		if (o->name && strlen(o->name) == length && !strncmp(o->name, name, length))
			return o;
	return NULL;
}

static bool is_ignored(const struct tally_option *option)
{
	return option->store == TALLY_STORE_NOTHING && !option->take && !option->instead &&
	       !option->help && option->name;
}

/* Every option of the document's row must be refused, or ignored. */
static void check_row(const struct tally_command *of, const char *row, const char *end,
		      bool is_refused)
{
	for (const char *at = row; (at = strstr(at, "`--")) && at < end;) {
		at += 3;
		size_t length = strcspn(at, "`");
		const struct tally_option *option = find_option(of, at, length);
		if (!option || (is_refused ? !option->instead : !is_ignored(option)))
			fail_msg("docs/compatibility.md: %s --%.*s is not %s", of->name,
				 (int)length, at, is_refused ? "refused" : "ignored");
		at += length + 1;
	}
}

static void compatibility_lists_the_options_of_perf(void **state)
{
	(void)state;
	struct tally_buffer document = { 0 };
	char path[512];
	unsigned checked = 0;
	snprintf(path, sizeof(path), "%s/docs/compatibility.md", getenv("TALLY_SOURCE_ROOT"));
	assert_int_equal(tally_buffer_read_file(&document, AT_FDCWD, path, 1 << 20), 0);
	for (size_t i = 0; tally_commands[i]; i++) {
		const struct tally_command *of = tally_commands[i];
		char title[64];
		snprintf(title, sizeof(title), "\n## `%s`: perf's options\n", of->name);
		const char *section = strstr(tally_buffer_string(&document), title);
		if (!section)
			continue;
		const char *end = strstr(section + 2, "\n## "), *ignored_end = NULL,
			   *refused_end = NULL;
		const char *ignored = find_row(section, end, "| accepted, ", &ignored_end);
		const char *refused = find_row(section, end, "| refused, with advice",
					       &refused_end);
		for (const struct tally_option *o = NULL; (o = tally_option_next(of, o));) {
			if (o->instead && !lists(refused, refused_end, o->name))
				fail_msg("docs/compatibility.md: %s --%s is refused", of->name,
					 o->name);
			if (is_ignored(o) && !lists(section, end, o->name))
				fail_msg("docs/compatibility.md: %s --%s is ignored", of->name,
					 o->name);
		}
		check_row(of, ignored, ignored_end, false);
		check_row(of, refused, refused_end, true);
		checked++;
	}
	assert_int_equal(checked, 8);
	tally_buffer_release(&document);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(value_goes_to_the_member_of_the_row),
		cmocka_unit_test(what_is_on_or_off_can_be_taken_back),
		cmocka_unit_test(included_table_stands_at_its_row),
		cmocka_unit_test(later_option_wins),
		cmocka_unit_test(optional_argument_may_be_a_word_of_its_choices),
		cmocka_unit_test(wrong_values_are_misuse),
		cmocka_unit_test(wrong_word_lists_all_words),
		cmocka_unit_test(rows_of_all_commands_are_sound),
		cmocka_unit_test(compatibility_lists_the_options_of_perf),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
