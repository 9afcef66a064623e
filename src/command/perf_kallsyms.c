/* perf mode's `kallsyms NAME…`: prints the addresses of functions of the running kernel. */
#include "base/buffer.h"
#include "base/terminal.h"
#include "command/command.h"
#include "command/perf_mode.h"
#include "symbol/symbol.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES_MAX = 256 << 20 };

static const struct tally_option options[] = {
	{ 'v', "verbose", TALLY_ARGUMENT_NONE, NULL, NULL, TALLY_IGNORED },
	TALLY_OPTIONS_END,
};

static int load(struct tally_symbols **out, struct tally_error *err)
{
	struct tally_buffer text = { .maximum = TEXT_BYTES_MAX };
	int result = tally_buffer_read_file(&text, AT_FDCWD, "/proc/kallsyms", TEXT_BYTES_MAX);
	if (!result)
		result = tally_symbols_from_kallsyms(tally_buffer_string(&text), text.length, out,
						     NULL);
	tally_buffer_release(&text);
	if (result < 0) {
		tally_error_set(err, result, "the kernel's functions can't be read: %s",
				tally_errno_text(result));
		tally_error_hint(err, "root may read the addresses in /proc/kallsyms");
	}
	return result;
}

static void print_symbol(const struct tally_symbols *symbols, const char *name)
{
	size_t count;
	const struct tally_symbol *list = tally_symbols_list(symbols, &count);
	char shown[256];
	tally_terminal_clean_name(name, shown, sizeof(shown));
	for (size_t i = 0; i < count; i++) {
		size_t length = strcspn(list[i].name, "\t ");
		if (strlen(name) != length || strncmp(list[i].name, name, length) != 0)
			continue;
		const char *module = tally_symbol_module(symbols, &list[i]);
		char object[80] = "[kernel]", path[80] = "[kernel.kallsyms]";
		if (module) {
			snprintf(object, sizeof(object), "[%s]", module);
			snprintf(path, sizeof(path), "[%s]", module);
		}
		printf("%s: %s %s %#" PRIx64 "-%#" PRIx64 " (%#" PRIx64 "-%#" PRIx64 ")\n", shown,
		       object, path, list[i].start, list[i].end, list[i].start, list[i].end);
		return;
	}
	printf("%s: not found\n", shown);
}

static int run(const struct tally_command *command, int argc, char **argv)
{
	struct tally_options walk = TALLY_OPTIONS_INIT(command, argc, argv);
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_symbols *symbols;
	char request = 0;
	if (!tally_options_parse(&walk, &request))
		return walk.status;
	if (walk.index == argc)
		return tally_command_misuse(command, "name a function of the kernel");
	if (load(&symbols, &err) < 0)
		return tally_command_fail(command, &err);
	for (int i = walk.index; i < argc; i++)
		print_symbol(symbols, argv[i]);
	tally_symbols_free(symbols);
	return TALLY_EXIT_OK;
}

const struct tally_command tally_perf_kallsyms = {
	.name = "perf kallsyms",
	.summary = "print where the running kernel has functions",
	.usage = "[options] NAME…",
	.options = options,
	.rarely_reads_files = true,
	.run = run,
};
