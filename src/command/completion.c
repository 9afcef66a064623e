/* Shell completion, generated from the option tables so that it is never out of date.
 *
 * An option's table entry says how to complete its argument. Words come from `choices` or an
 * argument like "fp|dwarf|none"; files, events and processes follow from the argument's name. If a
 * command runs a program ("command" in its usage), the rest is completed like a command line.
 */
#include "base/text.h"
#include "command/command.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* The fixed parts: src/command/completion.bash and others. */
extern const char tally_completion_bash[], tally_completion_zsh[], tally_completion_fish[];

enum { WORDS_BYTES_MAX = 1024 }; /* of the words that an option takes */

enum argument {
	ARGUMENT_NOTHING,
	ARGUMENT_WORDS,
	ARGUMENT_FILES,
	ARGUMENT_EVENTS,
	ARGUMENT_PROCESSES
};

/* Skips options without help, which are hidden. */
static const struct tally_option *next_shown(const struct tally_command *command,
					     const struct tally_option *last)
{
	do
		last = tally_option_next(command, last);
	while (last && !last->help);
	return last;
}

static bool runs_programs(const struct tally_command *command)
{
	return strstr(command->usage, "command [argument") != NULL;
}

static bool takes_files(const struct tally_command *command)
{
	static const char *const names[] = { "FILE", "file", "OLD", "scenario" };
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strstr(command->usage, names[i]))
			return true;
	return false;
}

/* "fp|dwarf[,SIZE]|none" → "fp dwarf none"; empty if the argument is not a list of words. */
static void words_of(const struct tally_option *option, char *words, size_t size)
{
	size_t length = 0;
	bool inside = false, several = option->argument && strchr(option->argument, '|');
	words[0] = '\0';
	if (option->choices) {
		snprintf(words, size, "%s", option->choices);
		return;
	}
	for (const char *c = option->argument; several && *c && length + 1 < size; c++) {
		inside |= *c == '[';
		if (isupper((unsigned char)*c) && !inside) {
			words[0] = '\0';
			return;
		}
		if (!inside && *c == '|')
			words[length++] = ' ';
		else if (!inside)
			words[length++] = *c;
		inside &= *c != ']';
		words[length] = '\0';
	}
}

static enum argument argument_of(const struct tally_command *command,
				 const struct tally_option *option)
{
	char words[WORDS_BYTES_MAX];
	words_of(option, words, sizeof(words));
	if (words[0])
		return ARGUMENT_WORDS;
	const char *name = tally_text_or(option->argument, "");
	if (tally_option_takes_path(option))
		return ARGUMENT_FILES;
	if (!strcmp(name, "EVENTS"))
		return ARGUMENT_EVENTS;
	if (runs_programs(command) && (!strcmp(name, "PIDS") || !strcmp(name, "TIDS")))
		return ARGUMENT_PROCESSES;
	return ARGUMENT_NOTHING;
}

static void print_names(void)
{
	for (size_t i = 0; tally_commands[i]; i++)
		printf("%s%s", i ? " " : "", tally_commands[i]->name);
}

/* Prints the commands that pass `wanted` as a pattern of case: "stat|record". */
static void print_pattern(bool (*wanted)(const struct tally_command *))
{
	bool first = true;
	for (size_t i = 0; tally_commands[i]; i++)
		if (wanted(tally_commands[i])) {
			printf("%s%s", first ? "" : "|", tally_commands[i]->name);
			first = false;
		}
	if (first)
		printf("-"); /* matches no command */
}

static void bash_words(const struct tally_command *command)
{
	printf("\t%s) words='--help", command->name);
	for (const struct tally_option *o = NULL; (o = next_shown(command, o));) {
		if (o->letter)
			printf(" -%c", o->letter);
		if (o->name)
			printf(" --%s", o->name);
	}
	printf("' ;;\n");
}

/* Prints how to complete the arguments of options. */
static void bash_arguments(const struct tally_command *command)
{
	static const char *const kinds[] = { [ARGUMENT_NOTHING] = "nothing",
					     [ARGUMENT_WORDS] = "words",
					     [ARGUMENT_FILES] = "files",
					     [ARGUMENT_EVENTS] = "events",
					     [ARGUMENT_PROCESSES] = "processes" };
	for (const struct tally_option *o = NULL; (o = next_shown(command, o));) {
		char words[WORDS_BYTES_MAX];
		enum argument kind = argument_of(command, o);
		if (o->kind == TALLY_ARGUMENT_NONE ||
		    (o->kind == TALLY_ARGUMENT_OPTIONAL && kind != ARGUMENT_WORDS))
			continue;
		words_of(o, words, sizeof(words));
		printf("\t");
		if (o->letter)
			printf("'%s -%c'%s", command->name, o->letter, o->name ? "|" : "");
		if (o->name)
			printf("'%s --%s'", command->name, o->name);
		printf(") takes=%s", kinds[kind]);
		if (kind == ARGUMENT_WORDS)
			printf(" choices='%s'", words);
		if (o->kind == TALLY_ARGUMENT_OPTIONAL)
			printf(" optional=1");
		printf(" ;;\n");
	}
}

static void print_bash(void)
{
	printf("# bash completion for tally, made by: tally completion bash\n\n_tally_commands()\n"
	       "{\n\techo '");
	print_names();
	printf("'\n}\n\n_tally_words()\n{\n\tcase $1 in\n");
	for (size_t i = 0; tally_commands[i]; i++)
		bash_words(tally_commands[i]);
	printf("\t*) words= ;;\n\tesac\n}\n\n_tally_argument()\n{\n\ttakes= choices= optional=\n"
	       "\tcase \"$1 $2\" in\n");
	for (size_t i = 0; tally_commands[i]; i++)
		bash_arguments(tally_commands[i]);
	printf("\tesac\n}\n\n_tally_runs()\n{\n\tcase $1 in\n\t");
	print_pattern(runs_programs);
	printf(") return 0 ;;\n\tesac\n\treturn 1\n}\n\n_tally_files()\n{\n\tcase $1 in\n\t");
	print_pattern(takes_files);
	printf(") return 0 ;;\n\tesac\n\treturn 1\n}\n\n%s", tally_completion_bash);
}

/* Prints the first line of a text for use within '…': `quote` replaces a quote, and characters in
 * `also` get a backslash. */
static void print_quoted(const char *text, const char *also, const char *quote)
{
	for (; *text && *text != '\n'; text++)
		if (*text == '\'')
			printf("%s", quote);
		else if (strchr(also, *text))
			printf("\\%c", *text);
		else
			putchar(*text);
}

static void zsh_option(const struct tally_command *command, const struct tally_option *option)
{
	static const char *const actions[] = { [ARGUMENT_NOTHING] = " ",
					       [ARGUMENT_FILES] = "_files",
					       [ARGUMENT_EVENTS] = "_tally_events",
					       [ARGUMENT_PROCESSES] = "_pids" };
	enum argument kind = argument_of(command, option);
	const char *forms[2] = { NULL, NULL };
	char letter[3] = { '-', (char)option->letter, '\0' }, name[64], words[WORDS_BYTES_MAX];
	snprintf(name, sizeof(name), "--%s", tally_text_or(option->name, ""));
	if (option->letter)
		forms[0] = letter;
	if (option->name)
		forms[1] = name;
	words_of(option, words, sizeof(words));
	for (unsigned f = 0; f < 2; f++) {
		if (!forms[f])
			continue;
		/* A letter's argument may follow directly or as the next word; a name's also after
		 * "=". */
		const char *joint = "";
		if (option->kind == TALLY_ARGUMENT_REQUIRED)
			joint = f ? "=" : "+";
		else if (option->kind == TALLY_ARGUMENT_OPTIONAL)
			joint = f ? "=-" : "-";
		printf("\t\t'*%s%s[", forms[f], joint);
		print_quoted(option->help, "[]\\:", "'\\''");
		printf("]");
		if (option->kind != TALLY_ARGUMENT_NONE) {
			printf("%s", option->kind == TALLY_ARGUMENT_OPTIONAL ? "::" : ":");
			print_quoted(tally_text_or(option->argument, "VALUE"), "\\:", "'\\''");
			if (kind == ARGUMENT_WORDS)
				printf(":(%s)", words);
			else
				printf(":%s", actions[kind]);
		}
		printf("' \\\n");
	}
}

static void zsh_command(const struct tally_command *command)
{
	printf("\t%s)\n\t\t_arguments -s -S \\\n\t\t'(- *)--help[help]' \\\n", command->name);
	for (const struct tally_option *o = NULL; (o = next_shown(command, o));)
		zsh_option(command, o);
	if (runs_programs(command))
		printf("\t\t'(-)1:command:_command_names -e' '*::argument:_normal'\n");
	else if (!strcmp(command->name, "help"))
		printf("\t\t'1:command:_tally_commands'\n");
	else if (!strcmp(command->name, "list"))
		printf("\t\t'*:event:_tally_events'\n");
	else if (takes_files(command))
		printf("\t\t'*:file:_files'\n");
	else
		printf("\t\t''\n");
	printf("\t\t;;\n");
}

static void print_zsh(void)
{
	printf("#compdef tally\n# zsh completion for tally, made by: tally completion zsh\n\n"
	       "_tally_commands()\n{\n\tlocal commands=(\n");
	for (size_t i = 0; tally_commands[i]; i++) {
		printf("\t\t'%s:", tally_commands[i]->name);
		print_quoted(tally_commands[i]->summary, "\\:", "'\\''");
		printf("'\n");
	}
	printf("\t)\n\t_describe command commands\n}\n\n_tally_arguments()\n{\n\tcase $1 in\n");
	for (size_t i = 0; tally_commands[i]; i++)
		zsh_command(tally_commands[i]);
	printf("\tesac\n}\n\n%s", tally_completion_zsh);
}

static void fish_option(const struct tally_command *command, const struct tally_option *option)
{
	char words[WORDS_BYTES_MAX];
	words_of(option, words, sizeof(words));
	printf("complete -c tally -n '__tally_options_of %s'", command->name);
	if (option->letter)
		printf(" -s %c", option->letter);
	if (option->name)
		printf(" -l %s", option->name);
	if (option->kind == TALLY_ARGUMENT_REQUIRED)
		switch (argument_of(command, option)) {
		case ARGUMENT_NOTHING: printf(" -x"); break;
		case ARGUMENT_WORDS: printf(" -x -a '%s'", words); break;
		case ARGUMENT_FILES: printf(" -r -F"); break;
		case ARGUMENT_EVENTS: printf(" -x -a '(__tally_events)'"); break;
		case ARGUMENT_PROCESSES: printf(" -x -a '(__fish_complete_pids)'"); break;
		}
	printf(" -d '");
	print_quoted(option->help, "\\", "\\'");
	printf("'\n");
	if (option->kind == TALLY_ARGUMENT_OPTIONAL && words[0])
		printf("complete -c tally -n '__tally_in %s; and __tally_behind -%c --%s' -a "
		       "'%s'\n",
		       command->name, option->letter ? option->letter : '-',
		       tally_text_or(option->name, ""), words);
}

/* Prints which options need an argument. */
static void fish_takes(void)
{
	printf("function __tally_takes\n\tswitch $argv[1]\n");
	for (size_t i = 0; tally_commands[i]; i++)
		for (const struct tally_option *o = NULL;
		     (o = next_shown(tally_commands[i], o));) {
			if (o->kind != TALLY_ARGUMENT_REQUIRED)
				continue;
			printf("\t\tcase");
			if (o->letter)
				printf(" '%s -%c'", tally_commands[i]->name, o->letter);
			if (o->name)
				printf(" '%s --%s'", tally_commands[i]->name, o->name);
			printf("\n\t\t\treturn 0\n");
		}
	printf("\tend\n\treturn 1\nend\n\n");
}

static void print_fish(void)
{
	printf("# fish completion for tally, made by: tally completion fish\n\n");
	fish_takes();
	printf("%s", tally_completion_fish);
	for (size_t i = 0; tally_commands[i]; i++) {
		printf("complete -c tally -n '__fish_use_subcommand' -a %s -d '",
		       tally_commands[i]->name);
		print_quoted(tally_commands[i]->summary, "\\", "\\'");
		printf("'\n");
	}
	for (size_t i = 0; tally_commands[i]; i++) {
		const struct tally_command *command = tally_commands[i];
		printf("complete -c tally -n '__tally_in %s' -l help -d 'help'\n", command->name);
		for (const struct tally_option *o = NULL; (o = next_shown(command, o));)
			fish_option(command, o);
		if (runs_programs(command))
			printf("complete -c tally -n '__fish_seen_subcommand_from %s' -x -a "
			       "'(__tally_program)'\n",
			       command->name);
		else if (!strcmp(command->name, "list"))
			printf("complete -c tally -n '__tally_in list' -a '(__tally_events)'\n");
		else if (takes_files(command))
			printf("complete -c tally -n '__tally_in %s' -F\n", command->name);
	}
	printf("complete -c tally -n '__tally_in help' -a '");
	print_names();
	printf("'\n");
}

static int run(const struct tally_command *command, int argc, char **argv)
{
	static const struct { const char *shell; void (*print)(void); } shells[] = {
		{ "bash", print_bash }, { "zsh", print_zsh }, { "fish", print_fish },
	};
	struct tally_options walk = TALLY_OPTIONS_INIT(command, argc, argv);
	if (!tally_options_parse(&walk, NULL))
		return walk.status;
	if (argc - walk.index != 1)
		return tally_command_misuse(command, "name a shell: bash, zsh or fish");
	for (unsigned i = 0; i < sizeof(shells) / sizeof(shells[0]); i++)
		if (!strcmp(argv[walk.index], shells[i].shell)) {
			shells[i].print();
			return TALLY_EXIT_OK;
		}
	return tally_command_misuse(command, "no completion for '%s': use bash, zsh or fish",
				    argv[walk.index]);
}

const struct tally_command tally_command_completion = {
	.name = "completion",
	.summary = "print shell completion for commands, options and events",
	.usage = "bash|zsh|fish",
	.details =
		"It is installed with tally, where shells look for it.  Without an installation:\n"
		"\n"
		"  source <(tally completion bash)      in ~/.bashrc\n"
		"  source <(tally completion zsh)       in ~/.zshrc, behind compinit\n"
		"  tally completion fish | source       in ~/.config/fish/config.fish",
	.rarely_reads_files = true,
	.run = run,
};
