/* Wraps text from the bottom up: words, then one option in two columns, then paragraphs.  Lines
 * that begin with a blank are printed as they are. */
#include "command/help_text.h"

#include "base/characters.h"
#include "base/extremes.h"
#include "base/terminal.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	OPTION_COLUMNS = 26, /* width of an option's names with two blanks on each side */
	MARGIN = OPTION_COLUMNS + 4,
	WIDTH_MIN = 60,
	WIDTH_MAX = 100,
};

static unsigned help_width(void)
{
	unsigned width = tally_terminal_columns(STDOUT_FILENO, WIDTH_MAX);
	if (width < WIDTH_MIN)
		return WIDTH_MIN;
	if (width > WIDTH_MAX)
		return WIDTH_MAX;
	return width;
}

static unsigned columns_of(const char *text, size_t length)
{
	unsigned columns = 0;
	for (size_t i = 0; i < length; i++)
		columns += tally_begins_character(text[i]);
	return columns;
}

/* Wraps words at `width`, with lines that start at `margin`; newlines count as blanks. */
static void print_wrapped(const char *text, size_t length, unsigned margin, unsigned width)
{
	unsigned at = margin;
	for (size_t i = 0; i < length;) {
		size_t word = tally_min_u64(strcspn(text + i, " \n"), length - i), next = i + word;
		printf("%.*s", (int)word, text + i);
		at += columns_of(text + i, word);
		unsigned gap = next && text[next - 1] == '.' && next < length && text[next] == '\n';
		for (; next < length && (text[next] == ' ' || text[next] == '\n'); next++)
			gap++;
		i = next;
		if (i == length)
			break;
		word = tally_min_u64(strcspn(text + i, " \n"), length - i);
		if (at + gap + columns_of(text + i, word) > width) {
			printf("\n%*s", (int)margin, "");
			at = margin;
		} else {
			printf("%*s", (int)gap, "");
			at += gap;
		}
	}
	putchar('\n');
}

static void print_option(const struct tally_option *option, unsigned width)
{
	if (!option->help) /* hidden options work but are not in the help */
		return;
	char left[64];
	const char *argument = tally_text_or(option->argument, "");
	int n = 0;
	if (option->letter)
		n = snprintf(left, sizeof(left), "-%c%s", option->letter, option->name ? ", " : "");
	else
		n = snprintf(left, sizeof(left), "    ");
	if (option->name)
		n += snprintf(left + n, sizeof(left) - (size_t)n, "--%s", option->name);
	if (option->kind == TALLY_ARGUMENT_REQUIRED)
		snprintf(left + n, sizeof(left) - (size_t)n, " %s", argument);
	else if (option->kind == TALLY_ARGUMENT_OPTIONAL)
		snprintf(left + n, sizeof(left) - (size_t)n, option->name ? "[=%s]" : "[%s]",
			 argument);
	if (strlen(left) > OPTION_COLUMNS)
		printf("  %s\n%*s", left, MARGIN, "");
	else
		printf("  %-*s  ", OPTION_COLUMNS, left);
	print_wrapped(option->help, strlen(option->help), MARGIN, width);
}

/* Wraps paragraphs. Lines that begin with a blank (examples, tables) are printed unchanged. */
static void print_details(const char *text, unsigned width)
{
	while (*text) {
		size_t length = strcspn(text, "\n");
		if (*text == ' ' || !length) {
			printf("%.*s\n", (int)length, text);
		} else {
			while (text[length] && text[length + 1] && text[length + 1] != ' ' &&
			       text[length + 1] != '\n')
				length += 1 + strcspn(text + length + 1, "\n");
			print_wrapped(text, length, 0, width);
		}
		text += length + (text[length] == '\n');
	}
}

void tally_help_print(const struct tally_command *command)
{
	unsigned width = help_width();
	bool has_options = command->options && !tally_option_is_end(command->options);
	printf("usage: tally %s %s\n\n%s\n", command->name, command->usage, command->summary);
	if (has_options)
		printf("\noptions:\n");
	for (const struct tally_option *o = NULL; (o = tally_option_next(command, o));)
		print_option(o, width);
	if (command->details) {
		printf("\n");
		print_details(command->details, width);
	}
}
