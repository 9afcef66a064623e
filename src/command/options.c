/* Parses argv by a table of options; help_text.c prints the same table.
 *
 * getopt_long(3) is not used: here an optional argument may be the next word if it is one of the
 * option's choices (perf's `report -g caller`), an unknown option gets a suggestion, and there is
 * no global state.
 */
#include "command/command.h"
#include "command/help_text.h"

#include "base/extremes.h"
#include "base/suggest.h"
#include "base/terminal.h"
#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The result of one step through argv: options->option and ->value are the next ones; the options
 * have ended; the help or an error was printed. */
enum step { STEP_OPTION, STEP_END, STEP_HELP, STEP_ERROR };

static enum step option_error(const struct tally_options *options, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static enum step option_error(const struct tally_options *options, const char *format, ...)
{
	char text[512];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	tally_command_misuse(options->command, "%s", text);
	return STEP_ERROR;
}

/* True if the word, up to a comma, is in `choices`. */
static bool is_choice(const char *choices, const char *word)
{
	if (!word || !*word || *word == ',')
		return false;
	size_t length = strcspn(word, ",");
	while (choices && *choices) {
		size_t one = strcspn(choices, " ");
		if (one == length && !strncmp(choices, word, length))
			return true;
		choices += one + (choices[one] == ' ');
	}
	return false;
}

/* True for "/usr/src", ".", "./src" and "../src". */
static bool looks_like_a_folder(const char *word)
{
	if (!word)
		return false;
	size_t dots = strspn(word, ".");
	return dots <= 2 && (word[dots] == '/' || (dots && !word[dots]));
}

/* Returns the next word of argv, or NULL. */
static const char *next_word(const struct tally_options *options)
{
	if (options->index < options->argc)
		return options->argv[options->index];
	return NULL;
}

/* Sets the option's argument: `attached` (after the letter or =), or the next word of argv. */
static enum step take_argument(struct tally_options *options, const struct tally_option *option,
			       const char *attached, const char *shown)
{
	const char *next = next_word(options);
	options->value = attached;
	if (option->kind == TALLY_ARGUMENT_NONE && attached)
		return option_error(options, "option %s takes no argument", shown);
	if (option->kind == TALLY_ARGUMENT_REQUIRED && !attached) {
		if (!next)
			return option_error(options, "option %s needs %s", shown, option->argument);
		options->value = next;
		options->index++;
	}
	if (option->kind == TALLY_ARGUMENT_OPTIONAL && !attached &&
	    (is_choice(option->choices, next) ||
	     (tally_option_takes_path(option) && looks_like_a_folder(next)))) {
		options->value = next;
		options->index++;
	}
	if (options->value && !*options->value && tally_option_takes_path(option))
		return option_error(
			options,
			"option %s: the name is empty (a variable that is not set?); give one, or "
			"leave %s out",
			shown, shown);
	options->option = option;
	return STEP_OPTION;
}

bool tally_options_take_file(struct tally_options *options, const char **files, unsigned most,
			     const char *excess)
{
	const char *name = options->argv[options->index++];
	unsigned count = 0;
	while (count < most && files[count])
		count++;
	if (count == most) {
		options->status = tally_command_misuse(options->command, excess, name);
	} else if (!*name) {
		option_error(options,
			     "a file's name is empty (a variable that is not set?); give one");
		options->status = TALLY_EXIT_USAGE;
	} else {
		files[count] = name;
	}
	return options->status < 0;
}

/* Returns the option behind `*last` in a table and the tables that it includes; NULL after the last
 * one.  `*last` becomes NULL once it is passed. */
static const struct tally_option *next_in(const struct tally_option *table,
					  const struct tally_option **last)
{
	for (const struct tally_option *row = table; row && !tally_option_is_end(row); row++) {
		const struct tally_option *found = NULL;
		if (row->included)
			found = next_in(row->included, last);
		else if (!*last)
			found = row;
		else if (row == *last)
			*last = NULL;
		if (found)
			return found;
	}
	return NULL;
}

const struct tally_option *tally_option_next(const struct tally_command *command,
					     const struct tally_option *last)
{
	const struct tally_option *next = next_in(command->options, &last);
	if (next)
		return next;
	return next_in(tally_perf_options(command->name), &last);
}

/* Stores where in the request the member begins that the option's table fills.  Returns false if
 * the option is in none of the tables. */
static bool find_member(const struct tally_option *table, const struct tally_option *option,
			size_t *offset)
{
	for (const struct tally_option *row = table; row && !tally_option_is_end(row); row++) {
		if (row == option)
			return true;
		if (!row->included || !find_member(row->included, option, offset))
			continue;
		*offset += row->offset;
		return true;
	}
	return false;
}

/* Prints an error for an unknown option, `shown`, with the option nearest to `typed`; NULL:
 * none. */
static enum step unknown_option(const struct tally_options *options, const char *shown,
				const char *typed)
{
	struct tally_nearest nearest;
	tally_nearest_init(&nearest, tally_text_or(typed, ""));
	for (const struct tally_option *o = NULL;
	     typed && (o = tally_option_next(options->command, o));)
		if (o->name)
			tally_nearest_try(&nearest, o->name);
	if (*nearest.name)
		return option_error(options, "there is no option %s; did you mean --%s?", shown,
				    nearest.name);
	return option_error(options, "there is no option %s", shown);
}

/* True for an option that is on or off, nothing else. */
static bool is_switch(const struct tally_option *option)
{
	return !option->take && !option->also &&
	       (option->store == TALLY_STORE_TRUE || option->store == TALLY_STORE_FALSE);
}

/* Finds the option that `typed` negates: as in perf, --no-NAME takes back --NAME, and --NAME an
 * option no-NAME.  Returns NULL if there is none. */
static const struct tally_option *find_negated(const struct tally_command *command,
					       const char *typed)
{
	char opposite[72];
	snprintf(opposite, sizeof(opposite), "no-%s", typed);
	const char *name = opposite;
	if (!strncmp(typed, "no-", 3))
		name = typed + 3;
	for (const struct tally_option *o = NULL; (o = tally_option_next(command, o));)
		if (o->name && !strcmp(o->name, name))
			return o;
	return NULL;
}

/* Takes the negation of an option.  Of options that tally lacks it is the default. */
static enum step take_negated(struct tally_options *options, const struct tally_option *option,
			      const char *shown)
{
	bool is_off = option->instead && option->kind == TALLY_ARGUMENT_NONE;
	if (!is_switch(option) && !is_off) {
		if (option->store == TALLY_STORE_NOTHING && !option->take && !option->instead)
			return option_error(options,
					    "there is no option %s: tally always works as with "
					    "--%s",
					    shown, option->name);
		return option_error(options,
				    "there is no option %s: leave out --%s, which it would take "
				    "back",
				    shown, option->name);
	}
	options->option = option;
	options->negated = true;
	return STEP_OPTION;
}

static enum step take_long(struct tally_options *options, const char *word)
{
	const char *name = word + 2, *equals = strchr(name, '=');
	size_t length = strcspn(name, "=");
	const struct tally_option *found = NULL;
	unsigned matches = 0;
	char typed[64], shown[72];
	snprintf(typed, sizeof(typed), "%.*s", (int)tally_min_u64(length, 60), name);
	snprintf(shown, sizeof(shown), "--%s", typed);

	if (!strcmp(typed, "help"))
		return STEP_HELP;
	for (const struct tally_option *o = NULL; (o = tally_option_next(options->command, o));) {
		if (!o->name)
			continue;
		if (!strcmp(o->name, typed)) {
			found = o;
			matches = 1;
			break;
		}
		/* an unambiguous prefix is enough */
		if (!strncmp(o->name, typed, strlen(typed))) {
			matches += !found || strcmp(found->name, o->name) != 0;
			if (!found)
				found = o;
		}
	}
	if (matches == 1)
		return take_argument(options, found, equals ? equals + 1 : NULL, shown);
	if (matches > 1)
		return option_error(options, "option %s is ambiguous; write it out", shown);
	found = equals ? NULL : find_negated(options->command, typed);
	if (found)
		return take_negated(options, found, shown);
	return unknown_option(options, shown, typed);
}

static enum step take_letter(struct tally_options *options)
{
	const char *word = options->cluster;
	char letter = *options->cluster++;
	char shown[3] = { '-', letter, 0 };
	if (!*options->cluster)
		options->cluster = NULL;
	for (const struct tally_option *o = NULL; (o = tally_option_next(options->command, o));) {
		if (o->letter != letter)
			continue;
		const char *attached = NULL;
		if (o->kind != TALLY_ARGUMENT_NONE) {
			attached = options->cluster;
			options->cluster = NULL;
		}
		return take_argument(options, o, attached, shown);
	}
	if (letter == 'h')
		return STEP_HELP;
	/* Other tools accept -freq as a long option: suggest one. */
	return unknown_option(options, shown, strlen(word) > 2 ? word : NULL);
}

/* Goes to the next option. */
static enum step take_step(struct tally_options *options)
{
	enum step result;
	options->value = NULL;
	options->negated = false;
	if (options->cluster) {
		result = take_letter(options);
	} else {
		const char *word = next_word(options);
		if (!word || options->dashes || word[0] != '-' || !word[1])
			return STEP_END;
		options->index++;
		if (!strcmp(word, "--")) {
			options->dashes = true;
			return STEP_END;
		}
		if (word[1] == '-') {
			result = take_long(options, word);
		} else {
			options->cluster = word + 1;
			result = take_letter(options);
		}
	}
	if (result == STEP_HELP)
		tally_help_print(options->command);
	return result;
}

static int take_option(void *request, const struct tally_option *option, const char *value,
		       struct tally_error *err)
{
	if (option->instead)
		return tally_error_set(err, -EINVAL, "--%s is not an option of tally's: %s",
				       option->name, option->instead);
	if (option->also)
		*(bool *)((char *)request + option->also - 1) = true;
	if (option->take)
		return option->take(request, option, value, err);
	return tally_option_store(request, option, value, err);
}

/* Takes an option into the request, or into the member of it that the option's table fills. */
static int take_into(void *request, const struct tally_options *options, struct tally_error *err)
{
	size_t offset = 0;
	find_member(options->command->options, options->option, &offset);
	request = (char *)request + offset;
	if (!options->negated)
		return take_option(request, options->option, options->value, err);
	if (is_switch(options->option))
		*(bool *)tally_option_member(request, options->option) =
			options->option->store == TALLY_STORE_FALSE;
	return 0;
}

bool tally_options_parse(struct tally_options *options, void *request)
{
	struct tally_error err = TALLY_ERROR_NONE;
	enum step result;
	while ((result = take_step(options)) == STEP_OPTION)
		if (take_into(request, options, &err) < 0) {
			options->status = tally_command_misused(options->command, &err);
			return false;
		}
	if (result == STEP_END)
		return true;
	options->status = TALLY_EXIT_USAGE;
	if (result == STEP_HELP)
		options->status = TALLY_EXIT_OK;
	return false;
}

bool tally_recording_arguments(const struct tally_command *command, int argc, char **argv,
			       void *request, const char **input, int *status)
{
	struct tally_options walk = TALLY_OPTIONS_INIT(command, argc, argv);
	while (tally_options_parse(&walk, request) && walk.index < argc &&
	       tally_options_take_file(&walk, input, 1,
				       "one recording at a time: '%s' is too many"))
		;
	*status = walk.status;
	return walk.status < 0;
}

/* The message was cleaned when it was made (error.h), and may have lines. */
int tally_command_fail(const struct tally_command *command, const struct tally_error *err)
{
	fprintf(stderr, "tally %s: %s\n", command->name, err->message);
	if (err->hint[0])
		fprintf(stderr, "hint: %s\n", err->hint);
	return TALLY_EXIT_FAILURE;
}

static int say_misuse(const struct tally_command *command, const char *message, const char *hint)
{
	fprintf(stderr, "tally %s: %s\n", command->name, message);
	if (*hint)
		fprintf(stderr, "hint: %s\n", hint);
	else
		fprintf(stderr, "hint: see 'tally %s --help'\n", command->name);
	return TALLY_EXIT_USAGE;
}

int tally_command_misuse(const struct tally_command *command, const char *format, ...)
{
	char text[512];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	tally_terminal_clean_name(text, text, sizeof(text));
	return say_misuse(command, text, "");
}

int tally_command_misused(const struct tally_command *command, const struct tally_error *err)
{
	return say_misuse(command, err->message, err->hint);
}
