/* Parses argv by a table of options; help_text.c prints the same table.
 *
 * getopt_long(3) is not used: here an optional argument may be the next word if it is one of the
 * option's choices (perf's `report -g caller`), an unknown option gets a suggestion, and there is
 * no global state.
 */
#include "command/command.h"
#include "command/help_text.h"

#include "base/buffer.h"
#include "base/suggest.h"
#include "base/terminal.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The result of one step through argv: options->option and ->value are the next ones; the options
 * have ended; the help or an error was printed. */
enum step { STEP_OPTION, STEP_END, STEP_HELP, STEP_ERROR };

static bool is_end(const struct tally_option *option)
{
	return !option->letter && !option->name;
}

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
	size_t length = word ? strcspn(word, ",") : 0;
	while (choices && *choices && length) {
		size_t one = strcspn(choices, " ");
		if (one == length && !strncmp(choices, word, length))
			return true;
		choices += one + (choices[one] == ' ');
	}
	return false;
}

bool tally_option_takes_path(const struct tally_option *option)
{
	const char *name = option->argument ? option->argument : "";
	return strstr(name, "FILE") || !strcmp(name, "DIR") || !strcmp(name, "OLD");
}

/* True for "/usr/src", ".", "./src" and "../src". */
static bool looks_like_a_folder(const char *word)
{
	size_t dots = word ? strspn(word, ".") : 0;
	return word && dots <= 2 && (word[dots] == '/' || (dots && !word[dots]));
}

/* Sets the option's argument: `attached` (after the letter or =), or the next word of argv. */
static enum step take_argument(struct tally_options *options, const struct tally_option *option,
			       const char *attached, const char *shown)
{
	const char *next = options->index < options->argc ? options->argv[options->index] : NULL;
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

static const struct tally_option *end_of(const struct tally_option *option)
{
	while (!is_end(option))
		option++;
	return option;
}

const struct tally_option *tally_option_next(const struct tally_command *command,
					     const struct tally_option *last)
{
	const struct tally_option *perf = tally_perf_options(command->name);
	const struct tally_option *next = last ? last + 1 : command->options;
	if (next && is_end(next) && perf && next != end_of(perf))
		next = perf;
	return next && !is_end(next) ? next : NULL;
}

/* Prints an error for an unknown option, `shown`, with the option nearest to `typed`; NULL:
 * none. */
static enum step unknown_option(const struct tally_options *options, const char *shown,
				const char *typed)
{
	struct tally_nearest nearest;
	tally_nearest_init(&nearest, typed ? typed : "");
	for (const struct tally_option *o = NULL;
	     typed && (o = tally_option_next(options->command, o));)
		if (o->name)
			tally_nearest_try(&nearest, o->name);
	if (*nearest.name)
		return option_error(options, "there is no option %s; did you mean --%s?", shown,
				    nearest.name);
	return option_error(options, "there is no option %s", shown);
}

static enum step take_long(struct tally_options *options, const char *word)
{
	const char *name = word + 2, *equals = strchr(name, '=');
	size_t length = equals ? (size_t)(equals - name) : strlen(name);
	const struct tally_option *found = NULL;
	unsigned matches = 0;
	char typed[64], shown[72];
	snprintf(typed, sizeof(typed), "%.*s", (int)(length < 60 ? length : 60), name);
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
			found = found ? found : o;
		}
	}
	if (matches == 1)
		return take_argument(options, found, equals ? equals + 1 : NULL, shown);
	if (matches > 1)
		return option_error(options, "option %s is ambiguous; write it out", shown);
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
	if (options->cluster) {
		result = take_letter(options);
	} else {
		const char *word = options->index < options->argc ? options->argv[options->index]
								  : NULL;
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

static int bad_value(const char *option, const char *value, const char *wanted,
		     struct tally_error *err)
{
	return tally_error_set(err, -EINVAL, "option %s: '%s' is not %s", option, value, wanted);
}

int tally_option_u64(const char *option, const char *value, unsigned long long minimum,
		     unsigned long long maximum, unsigned long long *out, struct tally_error *err)
{
	char *end, wanted[96];
	errno = 0;
	unsigned long long number = strtoull(value, &end, 0);
	if (maximum == ~0ull)
		snprintf(wanted, sizeof(wanted), "a number from %llu up", minimum);
	else
		snprintf(wanted, sizeof(wanted), "a number from %llu to %llu", minimum, maximum);
	if (errno || end == value || *end || strchr(value, '-') || number < minimum ||
	    number > maximum)
		return bad_value(option, value, wanted, err);
	*out = number;
	return 0;
}

int tally_option_percent(const char *option, const char *value, double *out,
			 struct tally_error *err)
{
	char *end;
	*out = strtod(value, &end);
	if (end == value || *end || !(*out >= 0 && *out <= 100))
		return bad_value(option, value, "a percentage", err);
	return 0;
}

int tally_option_sort(const char *value, const struct tally_option_key *keys, size_t count,
		      const char *choices, const char *others, struct tally_error *err)
{
	for (size_t i = 0; i < count; i++)
		*keys[i].is_chosen = false;
	do {
		size_t length = strcspn(value, ","), k = 0;
		while (k < count &&
		       (strlen(keys[k].name) != length || strncmp(keys[k].name, value, length)))
			k++;
		if (k == count) {
			tally_error_set(err, -EINVAL, "option --sort: there is no key '%.*s'",
					(int)length, value);
			tally_hint_word(err, value, length, choices, others);
			return -EINVAL;
		}
		*keys[k].is_chosen = true;
		value += length;
	} while (*value++ == ',');
	return 0;
}

int tally_option_size(const char *option, const char *value, unsigned long long *out,
		      struct tally_error *err)
{
	static const char units[] = "KMGT";
	char *end;
	errno = 0;
	unsigned long long number = strtoull(value, &end, 0);
	const char *unit = *end ? strchr(units, *end & ~0x20) : NULL;
	unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
	if (unit)
		end++;
	if (unit && (*end == 'B' || *end == 'b'))
		end++;
	if (errno || end == value || *end || strchr(value, '-') || number > (~0ull >> shift))
		return bad_value(option, value, "a size like 512K, 8M or 1G", err);
	*out = number << shift;
	return 0;
}

int tally_option_seconds(const char *option, const char *value, double *out,
			 struct tally_error *err)
{
	static const struct { const char *unit; double seconds; } units[] = {
		{ "", 1 }, { "s", 1 }, { "ms", 1e-3 }, { "us", 1e-6 }, { "m", 60 }, { "h", 3600 },
	};
	char *end;
	double number = strtod(value, &end);
	for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (end != value && !strcmp(end, units[i].unit) && number >= 0 &&
		    isfinite(number)) {
			*out = number * units[i].seconds;
			return 0;
		}
	return bad_value(option, value, "a time like 2, 1.5s, 500ms or 3m", err);
}

int tally_option_duration(const char *option, const char *value, double *out,
			  struct tally_error *err)
{
	int result = tally_option_seconds(option, value, out, err);
	if (result < 0 || (*out >= 0.001 && *out <= 1e9))
		return result;
	return bad_value(option, value, "a time of 1ms or more, like 2, 500ms or 3m", err);
}

void *tally_option_member(void *request, const struct tally_option *option)
{
	return (char *)request + option->offset;
}

/* Integers of 1, 2, 4 or 8 bytes; enums and bools as well. */
static unsigned long long integer_at(const void *member, size_t size)
{
	switch (size) {
	case sizeof(uint8_t): return *(const uint8_t *)member;
	case sizeof(uint16_t): return *(const uint16_t *)member;
	case sizeof(uint32_t): return *(const uint32_t *)member;
	default: return *(const uint64_t *)member;
	}
}

static void put_integer(void *member, size_t size, unsigned long long number)
{
	switch (size) {
	case sizeof(uint8_t): *(uint8_t *)member = (uint8_t)number; break;
	case sizeof(uint16_t): *(uint16_t *)member = (uint16_t)number; break;
	case sizeof(uint32_t): *(uint32_t *)member = (uint32_t)number; break;
	default: *(uint64_t *)member = number;
	}
}

/* Finds one of the words that blanks separate; otherwise lists them in `wanted`: "a, b". */
static int find_word(const char *words, const char *value, unsigned long long *index,
		     struct tally_buffer *wanted)
{
	*index = 0;
	for (const char *word = words; *word; ++*index) {
		size_t length = strcspn(word, " ");
		if (strlen(value) == length && !strncmp(word, value, length))
			return 0;
		tally_buffer_text(wanted, *index ? ", " : "");
		tally_buffer_append(wanted, word, length);
		word += length + (word[length] == ' ');
	}
	return -EINVAL;
}

int tally_option_store(void *request, const struct tally_option *option, const char *value,
		       struct tally_error *err)
{
	void *member = tally_option_member(request, option);
	unsigned long long number = option->constant;
	struct tally_buffer wanted = { 0 };
	char shown[72];
	int result = 0;
	if (option->letter)
		snprintf(shown, sizeof(shown), "-%c", option->letter);
	else
		snprintf(shown, sizeof(shown), "--%s", option->name);
	switch (option->store) {
	case TALLY_STORE_NOTHING: return 0;
	case TALLY_STORE_TRUE: *(bool *)member = true; return 0;
	case TALLY_STORE_FALSE: *(bool *)member = false; return 0;
	case TALLY_STORE_TEXT: *(const char **)member = value; return 0;
	case TALLY_STORE_SECONDS: return tally_option_seconds(shown, value, member, err);
	case TALLY_STORE_DURATION: return tally_option_duration(shown, value, member, err);
	case TALLY_STORE_PERCENT: return tally_option_percent(shown, value, member, err);
	case TALLY_STORE_CONSTANT: break;
	case TALLY_STORE_BITS: number |= integer_at(member, option->size); break;
	case TALLY_STORE_SIZE: result = tally_option_size(shown, value, &number, err); break;
	case TALLY_STORE_NUMBER:
		result = tally_option_u64(shown, value, option->minimum, option->maximum, &number,
					  err);
		break;
	case TALLY_STORE_WORD:
		if (find_word(option->words, value, &number, &wanted) < 0)
			result = tally_error_set(err, -EINVAL, "option %s: '%s' is none of %s",
						 shown, value, tally_buffer_string(&wanted));
		tally_buffer_release(&wanted);
	}
	if (!result)
		put_integer(member, option->size, number);
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
	return option->take ? option->take(request, option, value, err) :
			      tally_option_store(request, option, value, err);
}

bool tally_options_parse(struct tally_options *options, void *request)
{
	struct tally_error err = TALLY_ERROR_NONE;
	enum step result;
	while ((result = take_step(options)) == STEP_OPTION)
		if (take_option(request, options->option, options->value, &err) < 0) {
			options->status = tally_command_misused(options->command, &err);
			return false;
		}
	if (result != STEP_END)
		options->status = result == STEP_HELP ? TALLY_EXIT_OK : TALLY_EXIT_USAGE;
	return result == STEP_END;
}

void tally_say(const char *format, ...)
{
	struct tally_buffer line = { 0 };
	va_list args;
	va_start(args, format);
	tally_buffer_vprintf(&line, format, args);
	va_end(args);
	tally_clean_name_from(&line, 0);
	tally_buffer_char(&line, '\n');
	fputs(line.failed ? "out of memory\n" : tally_buffer_string(&line), stderr);
	tally_buffer_release(&line);
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
