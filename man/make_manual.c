/* Run by the build: `make_manual COMMAND <man/tally-COMMAND.1.in`, a manual page on standard
 * output.
 *
 * A page is what its writer says (the .in file, in man(7)'s macros) and what the option tables say,
 * so that the manual can't name an option that is not there, or forget one.  Title, name and
 * synopsis are made; in the text the lines
 *
 *     @OPTIONS@    become the options with their help
 *     @DETAILS@    what --help says below the options: paragraphs, and examples as they stand
 *     @COMMANDS@   all commands with their summaries
 *
 * COMMAND "tally" is the page of tally itself.
 */
#include "command/command.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Text for roff: nothing in it is a request, hyphens are those that one types.  `length` bytes. */
static void put(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		bool first = !i || text[i - 1] == '\n';
		if (text[i] == '\\')
			printf("\\e");
		else if (text[i] == '-')
			printf("\\-");
		else if (text[i] == '\'')
			printf("\\(aq");
		else if (text[i] == '`')
			printf("\\(ga");
		else if (text[i] == '^')
			printf("\\(ha");
		else if (text[i] == '~')
			printf("\\(ti");
		else
			printf("%s%c", first && text[i] == '.' ? "\\&" : "", text[i]);
	}
}

static void put_text(const char *text)
{
	put(text, strlen(text));
}

/* "[options] [--] command": words in upper case are what the user fills in. */
static void put_usage(const char *text)
{
	while (*text) {
		size_t length = 0;
		while (text[length] &&
		       (isupper((unsigned char)text[length]) || (length && text[length] == '_')))
			length++;
		if (length > 1) {
			printf("\\fI");
			put(text, length);
			printf("\\fR");
		} else {
			length = 1;
			put(text, length);
		}
		text += length;
	}
}

static void put_upper(const char *text)
{
	for (; *text; text++)
		putchar(toupper((unsigned char)*text));
}

static void put_options(const struct tally_command *command)
{
	for (const struct tally_option *o = NULL; (o = tally_option_next(command, o));) {
		if (!o->help)
			continue;
		printf(".TP\n");
		if (o->letter)
			printf("\\fB\\-%c\\fR%s", o->letter, o->name ? ", " : "");
		if (o->name) {
			printf("\\fB\\-\\-");
			put_text(o->name);
			printf("\\fR");
		}
		if (o->kind == TALLY_ARGUMENT_OPTIONAL)
			printf(o->name ? "[=" : "[");
		else if (o->kind == TALLY_ARGUMENT_REQUIRED)
			printf(" ");
		if (o->kind != TALLY_ARGUMENT_NONE) {
			printf("\\fI");
			put_text(o->argument);
			printf("\\fR%s", o->kind == TALLY_ARGUMENT_OPTIONAL ? "]" : "");
		}
		printf("\n");
		put_text(o->help);
		printf("\n");
	}
}

/* Lines that begin with a blank are examples. */
static void put_details(const char *text)
{
	bool example = false, paragraph = true;
	while (text && *text) {
		size_t length = strcspn(text, "\n");
		bool indented = *text == ' ';
		if (indented != example && length)
			printf(indented ? ".PP\n.RS 2\n.nf\n" : ".fi\n.RE\n");
		if (paragraph && length && !indented)
			printf(".PP\n");
		example = length ? indented : example;
		paragraph = !length;
		if (length || example) {
			size_t margin = length < 2 || !indented ? 0 : 2;
			put(text + margin, length - margin);
			printf("\n");
		}
		text += length + (text[length] == '\n');
	}
	if (example)
		printf(".fi\n.RE\n");
}

static void put_commands(void)
{
	for (size_t i = 0; tally_commands[i]; i++) {
		printf(".TP\n\\fBtally\\-%s\\fR(1)\n", tally_commands[i]->name);
		put_text(tally_commands[i]->summary);
		printf("\n");
	}
}

static void put_head(const struct tally_command *command, const char *name)
{
	printf(".\\\" Made of man/%s%s.1.in and of the option tables.\n.TH \"TALLY",
	       command ? "tally-" : "", name);
	if (command)
		printf("\\-");
	if (command)
		put_upper(name);
	printf("\" 1 \"\" \"tally %s\" \"The tally manual\"\n.SH NAME\n", TALLY_VERSION);
	if (command) {
		printf("tally\\-%s \\- ", name);
		put_text(command->summary);
		printf("\n.SH SYNOPSIS\n\\fBtally %s\\fR ", name);
		put_usage(command->usage);
		printf("\n");
	} else {
		printf("tally \\- count, sample and trace what programs do\n"
		       ".SH SYNOPSIS\n\\fBtally\\fR \\fICOMMAND\\fR [options] ...\n");
	}
}

int main(int argc, char **argv)
{
	const struct tally_command *command = NULL;
	char line[4096];
	if (argc != 2)
		return 2;
	if (strcmp(argv[1], "tally") && !(command = tally_command_find(argv[1])))
		return 1;
	put_head(command, argv[1]);
	while (fgets(line, sizeof(line), stdin)) {
		if (command && !strcmp(line, "@OPTIONS@\n"))
			put_options(command);
		else if (command && !strcmp(line, "@DETAILS@\n"))
			put_details(command->details);
		else if (!strcmp(line, "@COMMANDS@\n"))
			put_commands();
		else
			fputs(line, stdout);
	}
	return ferror(stdin) || fflush(stdout) || ferror(stdout);
}
