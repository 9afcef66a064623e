/* Runs the commands that read recordings, on a recording of any bytes and the files that it names.
 *
 * The input is a folder (folder.h): "recording" (or "recording/data", "recording/data.0" … for a
 * recording that is a directory), and files below "root/", where --symfs lets the commands look for
 * programs and debug files.  "perf-map" becomes this process's perf map.  The fuzzer replaces
 * PID_MARK by its process's number and DIRECTORY by its directory, so that a recording can name
 * both.
 *
 * Command lines run in this process as main() runs them: all of them if a corpus is replayed, else
 * a few, which the input's `views` choose.  Then a browser of the report takes the bytes as keys,
 * and the profile is compared with itself.
 *
 * Besides what sanitizers find, these are faults: a command that fails without a message, JSON that
 * no reader takes, a second run that prints something else, and more time or memory than such an
 * input may cost. */
#include "folder.h"
#include "fuzz.h"

#include "base/buffer.h"
#include "base/vector.h"
#include "browse/browse.h"
#include "command/command.h"
#include "output/output.h"
#include "profile/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
/* Missing in builds without a sanitizer: they count no memory. */
__attribute__((weak)) int __sanitizer_install_malloc_and_free_hooks(
	void (*allocated)(const volatile void *, size_t), void (*freed)(const volatile void *));

enum {
	PID_MARK = 0x21444950, /* "PID!" */
	KEYS_MAX = 64,
	ROWS = 12,
	COLUMNS = 60,
	ARGUMENTS_MAX = 32,
	VIEWS_AT_ONCE = 3,
	/* Limits of one view.  A view of an honest input, some 10 KB, takes 20 ms and 20 MB in a
	 * sanitized build. */
	CPU_MS_MAX = 4000,
	ALLOCATED_MB_MAX = 1024,
};

/* ---- the command lines --------------------------------------------------- */

#define KEYS_OF_SAMPLES "comm,pid,tid,cpu,socket,cgroup,cgroup_id,time,dso,sym"
#define FIELDS "comm,tid,pid,time,cpu,event,period,trace,misc,ip,sym,symoff,dso,srcline,flags"
#define MORE_FIELDS \
	"comm,addr,weight,ins_lat,iregs,uregs,brstack,phys_addr,cgroup,data_src,data_page_size," \
	"code_page_size,bpf-output"

/* R: the recording; P: a packed copy of it; I: the recording as standard input; O: a file of JSON;
 * N: the options that say where to look for names. */
static const char *const lines[] = {
	"report R N --stdio",
	"report R N --stdio -g caller --error --percent-limit 0",
	"report R N --stdio -g callee --children --no-demangle --no-inline",
	"report R N --stdio -b",
	"report R N --stdio --no-branch-stack --mem-mode -s mem,symbol_daddr,dso_daddr,dcacheline",
	"report R N --stdio -s " KEYS_OF_SAMPLES " --time-quantum 1us --percent-limit 0",
	"report R N --stdio -s srcfile,srcline,addr --raw-addresses --full-names",
	"report R N --stdio -s comm,trace",
	"report R N --stdio -s phys_daddr,data_page_size,snoop,tlb,locked,blocked,code_page_size",
	"report R N --stdio -s weight,ins_lat,p_stage_cyc,transaction --idle --scheduler",
	"report R N --stdio -s local_weight,local_ins_lat,local_p_stage_cyc --language-frames",
	"report R N -j -s dso_from,sym_from,srcline_from,addr_from,dso_to,sym_to,srcline_to",
	"report R N -j -s mispredict,in_tx,abort,cycles,addr_to",
	"report R N -j -g caller -s comm,dso,sym",
	"report R N --stdio --wakers -v",
	"report R N --stdio --header -I --time 10%-90% --comm *a* --dso *",
	"report R N --header-only -I",
	"report R N --stdio --max-stack 2 --cpu 0-3 --symbol *",
	"script R N --stdio",
	"script R N --stdio --records",
	"script R N --stdio -D --show-task-events --show-mmap-events --show-switch-events "
	"--show-namespace-events --show-cgroup-events --show-bpf-events --show-text-poke-events "
	"--show-lost-events --show-round-events",
	"script R N --stdio -F " FIELDS " --ns --reltime",
	"script R N --stdio -F " MORE_FIELDS,
	"script R N --stdio -F ip,sym,brstacksym,tod",
	"script R N --stdio --deltatime --show-task-events --show-mmap-events --show-lost-events "
	"--show-namespace-events --show-bpf-events --no-inline --no-demangle",
	"script R N -j",
	"script R N -j -F " MORE_FIELDS,
	"script R N --csv -F " FIELDS ",stack",
	"script R N --csv -F " MORE_FIELDS,
	"script R N --stdio --header -I -G --time 10%/2 --dso * --symbol *",
	"fold R N",
	"fold R N -a --pid --tid --full-names --weight samples",
	"fold R N --wakers --no-inline",
	"flamegraph R N --format svg",
	"flamegraph R N --format html --icicle --theme dark --width 700 --full-names",
	"flamegraph R N --format svg --off-cpu",
	"flamegraph R N --format html --wakers --scheduler",
	"flamegraph R N --format html --diff R",
	"annotate -i R N --stdio -l -n",
	"annotate -i R N --stdio --all-hot 4 -M intel --no-inline",
	"annotate -i R N --html --all-hot 3",
	"annotate -i R N -j --all-hot 3",
	"annotate -i R N --stdio --no-asm shop::leaf",
	"diff R R N --stdio",
	"diff R R N --markdown -s comm,dso,sym,srcline --children",
	"diff R R N -j --normalize samples",
	"diff R R N -j --normalize time --no-inline",
	"export -i R N -f firefox -o O",
	"export -i R N -f pprof -o -",
	"export -i R N -f speedscope -o -",
	"export -i R N -f chrome -o -",
	"timeline R --stdio -w 90",
	"timeline R --stdio --by task -n 3 -w 60",
	"timeline R -o O",
	"pack R N -o P",
	"report P N --stdio -g caller",
	"annotate -i P N --stdio",
	"script P N --stdio -F ip,sym,symoff,dso,srcline",
	"export -i P N -f pprof -o -",
	"script I N --stdio --records",
	"report I N --stdio",
	"timeline I --stdio",
};
enum { LINES = sizeof(lines) / sizeof(*lines) };

/* ---- the folder ---------------------------------------------------------- */

#define DIRECTORY "/tmp/tally-fuzz-XXXXXX"
static char directory[] = DIRECTORY;
static bool is_replay; /* -runs=0: each input of a corpus, once */
static char recording_path[64], packed_path[64], json_path[64], map_path[64], names_option[512];

static int delete_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
	(void)status, (void)type;
	return place->level ? remove(path) : 0;
}

static void delete_contents(void)
{
	nftw(directory, delete_one, 16, FTW_DEPTH | FTW_PHYS);
	unlink(map_path);
}

static void delete_directory(void)
{
	delete_contents();
	rmdir(directory);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	for (int i = 1; i < *argc; i++)
		is_replay |= !strcmp((*argv)[i], "-runs=0");
	require(mkdtemp(directory) != NULL);
	atexit(delete_directory);
	snprintf(recording_path, sizeof(recording_path), "%s/recording", directory);
	snprintf(packed_path, sizeof(packed_path), "%s/packed", directory);
	snprintf(json_path, sizeof(json_path), "%s/out.json", directory);
	snprintf(map_path, sizeof(map_path), "/tmp/perf-%d.map", (int)getpid());
	snprintf(names_option, sizeof(names_option),
		 "--symfs %s/root --kallsyms %s/root/kallsyms --buildid-dir %s/root/debug",
		 directory, directory, directory);
	/* No input's result may be another's: nothing is cached.  No terminal, no pager. */
	setenv("TALLY_CACHE_BYTES", "0", 1);
	unsetenv("DEBUGINFOD_URLS");
	int null = open("/dev/null", O_RDWR);
	require(null >= 0 && dup2(null, STDIN_FILENO) == 0 && dup2(null, STDOUT_FILENO) == 1);
	close(null);
	return 0;
}

/* Writes this process's number for PID_MARK, and its directory for DIRECTORY. */
static uint8_t *make_ours(const struct folder_file *file)
{
	static const uint32_t mark = PID_MARK;
	const uint32_t pid = (uint32_t)getpid();
	uint8_t *copy = malloc(file->size + 1), *at;
	require(copy != NULL);
	memcpy(copy, file->bytes, file->size);
	for (at = copy; (at = memmem(at, file->size - (size_t)(at - copy), &mark, sizeof(mark)));)
		memcpy(at, &pid, sizeof(pid));
	for (at = copy;
	     (at = memmem(at, file->size - (size_t)(at - copy), DIRECTORY, sizeof(DIRECTORY) - 1));)
		memcpy(at, directory, sizeof(directory) - 1);
	return copy;
}

/* Makes what the options name, unless the input has it. */
static void make_places(void)
{
	char path[sizeof(directory) + 16];
	static const char *const places[] = { "root", "root/debug" };
	for (unsigned i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, places[i]);
		mkdir(path, 0700);
	}
	snprintf(path, sizeof(path), "%s/root/kallsyms", directory);
	int fd = open(path, O_WRONLY | O_CREAT, 0600);
	if (fd >= 0)
		close(fd);
}

static void write_file(const struct folder_file *file)
{
	char path[sizeof(directory) + FOLDER_NAME_MAX + 1];
	if (!strcmp(file->name, "perf-map"))
		snprintf(path, sizeof(path), "%s", map_path);
	else
		snprintf(path, sizeof(path), "%s/%s", directory, file->name);
	for (char *slash = path + sizeof("/tmp"); (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = '\0';
		mkdir(path, 0700);
	}
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0)
		return; /* a file of the input is where a folder of it should be, or the reverse */
	uint8_t *bytes = make_ours(file);
	require(write(fd, bytes, file->size) == (ssize_t)file->size);
	free(bytes);
	close(fd);
}

/* ---- JSON ---------------------------------------------------------------- */

/* Reads one value of RFC 8259; returns where it ends, or NULL. */
static const char *json_value(const char *at, const char *end, unsigned depth);

static const char *json_blank(const char *at, const char *end)
{
	while (at < end && memchr(" \t\r\n", *at, 4))
		at++;
	return at;
}

static const char *json_text(const char *at, const char *end)
{
	for (at++; at < end && *at != '"'; at++) {
		if ((unsigned char)*at < ' ')
			return NULL;
		if (*at == '\\' && (++at == end || !memchr("\"\\/bfnrtu", *at, 9)))
			return NULL;
	}
	return at < end ? at + 1 : NULL;
}

static const char *json_list(const char *at, const char *end, char closing, unsigned depth)
{
	at = json_blank(at + 1, end);
	if (at < end && *at == closing)
		return at + 1;
	for (;; at++) {
		at = json_blank(at, end);
		if (closing == '}') {
			if (at == end || *at != '"' || !(at = json_text(at, end)))
				return NULL;
			at = json_blank(at, end);
			if (at == end || *at++ != ':')
				return NULL;
		}
		if (!(at = json_value(at, end, depth)))
			return NULL;
		at = json_blank(at, end);
		if (at == end || (*at != ',' && *at != closing))
			return NULL;
		if (*at == closing)
			return at + 1;
	}
}

static const char *json_number(const char *at, const char *end)
{
	const char *start = at += at < end && *at == '-';
	while (at < end && *at >= '0' && *at <= '9')
		at++;
	if (at == start || (*start == '0' && at > start + 1))
		return NULL;
	while (at < end && memchr("0123456789.eE+-", *at, 15))
		at++;
	return at;
}

static const char *json_value(const char *at, const char *end, unsigned depth)
{
	static const char *const words[] = { "true", "false", "null" };
	at = json_blank(at, end);
	if (at == end || depth > 4096)
		return NULL;
	if (*at == '{' || *at == '[')
		return json_list(at, end, *at == '{' ? '}' : ']', depth + 1);
	if (*at == '"')
		return json_text(at, end);
	for (unsigned i = 0; i < 3; i++)
		if ((size_t)(end - at) >= strlen(words[i]) &&
		    !memcmp(at, words[i], strlen(words[i])))
			return at + strlen(words[i]);
	return json_number(at, end);
}

static bool is_json(const char *text, size_t length, bool is_lines)
{
	const char *end = text + length;
	if (is_lines && !length)
		return true;
	do {
		if (!(text = json_value(text, end, 0)))
			return false;
		text = json_blank(text, end);
	} while (is_lines && text < end);
	return text == end;
}

/* ---- running a command line ---------------------------------------------- */

static uint64_t allocated; /* bytes, by this process since the view began */

static void count_allocation(const volatile void *memory, size_t size)
{
	(void)memory;
	__atomic_fetch_add(&allocated, size, __ATOMIC_RELAXED);
}

static void ignore_free(const volatile void *memory)
{
	(void)memory;
}

static uint64_t cpu_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Commands print to stdout and stderr, which are variables in glibc.  The streams live as long as
 * the process: a library that is loaded on demand may keep them. */
struct printed {
	FILE *stream;
	struct tally_buffer text;
};
static struct printed out, messages;

static ssize_t take_bytes(void *cookie, const char *bytes, size_t size)
{
	struct printed *printed = cookie;
	tally_buffer_append(&printed->text, bytes, size);
	return (ssize_t)size;
}

static FILE *redirect(FILE **stream, struct printed *to)
{
	FILE *old = *stream;
	if (!to->stream)
		to->stream = fopencookie(to, "w", (cookie_io_functions_t){ .write = take_bytes });
	require(to->stream != NULL);
	tally_buffer_clear(&to->text);
	to->text.maximum = 1 << 30;
	*stream = to->stream;
	return old;
}

static bool has_word(char **argv, const char *word)
{
	for (; *argv; argv++)
		if (!strcmp(*argv, word))
			return true;
	return false;
}

static bool prints_json(char **argv)
{
	return has_word(argv, "-j") || has_word(argv, "speedscope") || has_word(argv, "chrome") ||
	       has_word(argv, json_path);
}

/* Takes what the command wrote into the file as what it printed. */
static void take_file(void)
{
	tally_buffer_clear(&out.text);
	require(tally_buffer_read_file(&out.text, AT_FDCWD, json_path, 64 << 20) == 0);
	unlink(json_path);
}

static void complain(const char *what, const char *line, const struct printed *printed)
{
	fprintf(stderr, "==ERROR: view: %s: tally %s\n%.4000s\n", what, line,
		tally_buffer_string(&printed->text));
	abort();
}

/* Leaves what the command printed in `out`. */
static void run_arguments(const char *line, int argc, char **argv)
{
	const struct tally_command *command = tally_command_find(argv[0]);
	FILE *old_out = redirect(&stdout, &out), *old_messages = redirect(&stderr, &messages);
	uint64_t began = cpu_ms();
	__atomic_store_n(&allocated, 0, __ATOMIC_RELAXED);
	int status = command->run(command, argc, argv);
	uint64_t took = cpu_ms() - began, took_mb = allocated >> 20;
	fflush(stdout);
	fflush(stderr);
	stdout = old_out;
	stderr = old_messages;
	if (getenv("FUZZ_VIEWS_TELL"))
		fprintf(stderr, "%d %5u ms %5u MB %8zu bytes: tally %s\n%s", status, (unsigned)took,
			(unsigned)took_mb, out.text.length, line,
			tally_buffer_string(&messages.text));
	if (!status && has_word(argv, json_path))
		take_file();
	if (status && !messages.text.length)
		complain("it failed and said nothing", line, &out);
	if (!status && prints_json(argv) &&
	    !is_json(tally_buffer_string(&out.text), out.text.length, !strcmp(argv[0], "script")))
		complain("this is not JSON", line, &out);
	if (took > CPU_MS_MAX)
		complain("it took too long", line, &messages);
	if (took_mb > ALLOCATED_MB_MAX)
		complain("it allocated too much", line, &messages);
}

/* Runs one of the lines, with paths in place of the single letters. */
static void run_line(const char *line, bool is_repeated)
{
	char words[2048], names[sizeof(names_option)], *argv[ARGUMENTS_MAX + 1], *at, *name;
	int argc = 0, input = -1, saved = -1;
	require(snprintf(words, sizeof(words), "%s", line) < (int)sizeof(words));
	memcpy(names, names_option, sizeof(names));
	for (char *word = strtok_r(words, " ", &at); word; word = strtok_r(NULL, " ", &at)) {
		require(argc + 8 < ARGUMENTS_MAX);
		if (!strcmp(word, "N"))
			for (char *part = strtok_r(names, " ", &name); part;
			     part = strtok_r(NULL, " ", &name))
				argv[argc++] = part;
		else if (!strcmp(word, "I"))
			input = open(recording_path, O_RDONLY);
		else
			argv[argc++] = !strcmp(word, "R")   ? recording_path
				       : !strcmp(word, "P") ? packed_path
				       : !strcmp(word, "O") ? json_path
							    : word;
	}
	if (input >= 0) {
		argv[argc++] = (char *)"-";
		saved = dup(STDIN_FILENO);
		dup2(input, STDIN_FILENO);
		close(input);
	}
	argv[argc] = NULL;
	run_arguments(line, argc, argv);
	if (is_repeated && saved < 0) { /* nothing of a run may be left for the next */
		struct tally_buffer first = { .maximum = 1 << 30 };
		tally_buffer_append(&first, tally_buffer_string(&out.text), out.text.length);
		run_arguments(line, argc, argv);
		if (first.length != out.text.length ||
		    memcmp(tally_buffer_string(&first), tally_buffer_string(&out.text),
			   first.length) != 0)
			complain("it printed something else before", line, &out);
		tally_buffer_release(&first);
	}
	if (saved >= 0) {
		dup2(saved, STDIN_FILENO);
		close(saved);
	}
}

/* A few lines that the number chooses; all in the replay of a corpus. */
static void run_lines(uint64_t views)
{
	static bool is_hooked;
	if (!is_hooked && __sanitizer_install_malloc_and_free_hooks)
		__sanitizer_install_malloc_and_free_hooks(count_allocation, ignore_free);
	is_hooked = true;
	for (size_t i = 0; is_replay && i < LINES; i++)
		run_line(lines[i], false);
	for (unsigned i = 0; !is_replay && i < VIEWS_AT_ONCE; i++) {
		views = (views + 1) * 0x9e3779b97f4a7c15ull;
		const char *line = lines[(views >> 32) % LINES];
		if (strstr(line, " P"))
			run_line("pack R N -o P", false);
		run_line(line, (views >> 28) % 16 == 0);
	}
}
/* ---- browsing ------------------------------------------------------------ */

static void screen_size(struct tally_screen *screen, int *rows, int *columns)
{
	(void)screen;
	*rows = ROWS;
	*columns = COLUMNS;
}

static void screen_nothing(struct tally_screen *screen)
{
	(void)screen;
}

static void screen_put(struct tally_screen *screen, int row, int column, unsigned style,
		       const char *text)
{
	(void)screen;
	(void)style;
	int width = 0;
	for (; *text; text++) {
		require((unsigned char)*text >= ' ' && *text != 127);
		width += ((unsigned char)*text & 0xc0) != 0x80;
	}
	require(row >= 0 && row < ROWS && column >= 0 && column + width <= COLUMNS);
}

static const struct tally_screen_ops screen_ops = {
	.size = screen_size,
	.clear = screen_nothing,
	.put = screen_put,
	.show = screen_nothing,
};

static int build(const struct tally_profile *profile, struct tally_browser *browser,
		 struct tally_report *report)
{
	struct tally_report old = *report;
	if (tally_report_build(profile, browser->options, report) < 0)
		return -1;
	int result = tally_browse_set(&browser->browse, report, browser->options);
	tally_report_release(&old);
	return result;
}

static void browse(const struct tally_profile *profile, uint32_t event, uint64_t facts,
		   const uint8_t *keys, size_t count)
{
	struct tally_screen screen = { .ops = &screen_ops };
	struct tally_report report = { 0 };
	struct tally_report_options options = {
		.by = { [TALLY_SORT_OBJECT] = true, [TALLY_SORT_SYMBOL] = true },
		.event = event,
		.children = true,
		.tree = TALLY_TREE_CALLER
	};
	struct tally_browser browser = {
		.screen = &screen, .options = &options, .has_stacks = true, .has_threads = true
	};
	for (unsigned key = 0; key < TALLY_SORT_KEYS; key++)
		options.by[key] |= (facts & TALLY_SORT_BIT(key)) != 0;
	tally_browse_init(&browser.browse, &profile->recording->names);
	require(build(profile, &browser, &report) == 0);
	tally_browser_draw(&browser);
	for (size_t i = 0; i < count && i < KEYS_MAX; i++) {
		uint32_t key = keys[i] < 128 ? keys[i] : TALLY_KEY_UP + (uint32_t)(keys[i] % 12);
		if (tally_browser_key(&browser, key) == TALLY_REQUEST_REPORT)
			require(build(profile, &browser, &report) == 0);
		tally_browser_draw(&browser);
	}
	tally_browse_release(&browser.browse);
	tally_report_release(&report);
}

/* ---- diff ---------------------------------------------------------------- */

/* Compares the profile with itself: nothing has changed. */
static void diff(struct tally_profile *profile, uint32_t event)
{
	struct tally_stacks stacks = { 0 };
	struct tally_match match = { 0 };
	struct tally_diff diff = { 0 };
	struct tally_buffer text = { 0 };
	const char *paths[] = { "a" };
	const struct tally_diff_options options = { .by_object = true,
						    .by_symbol = true,
						    .by_comm = true };
	const struct tally_diff_view view = { .match = &match,
					      .options = &options,
					      .old_paths = paths,
					      .new_paths = paths,
					      .columns = 80 };
	if (tally_profile_stacks(profile, event, true, false, &stacks) < 0)
		return;
	require(tally_match_stacks(&stacks, 1, &stacks, 1, &match) == 0);
	require(tally_diff_build(&match, &options, &diff) == 0 && diff.changes == 0);
	tally_diff_table(&diff, &view, &text);
	tally_diff_markdown(&diff, &view, &text);
	tally_diff_json(&diff, &view, &text);
	require(!text.failed);
	tally_buffer_release(&text);
	tally_diff_release(&diff);
	tally_match_release(&match);
	tally_stacks_release(&stacks);
}

/* Opens what the folder has; a browser takes the keys, and the profile is compared with itself. */
static void look_at_profile(const struct folder *folder)
{
	const struct folder_file *keys = &folder->files[folder->count - 1];
	struct tally_recording *recording;
	struct tally_profile *profile;
	uint32_t event;
	if (tally_recording_open(recording_path, &recording, NULL) < 0)
		return;
	tally_names_omit_kernel(&recording->names); /* without the names of this machine's kernel */
	recording->names.sources.search.root = directory;
	/* If the data has an odd size, rows are made for everything that samples contain. */
	const struct tally_profile_options options = {
		.facts = folder->files[0].size % 2 ? TALLY_SORT_OF_FACTS & ~TALLY_SORT_OF_BRANCHES
						   : 0
	};
	if (tally_profile_new(recording, &options, &profile, NULL) < 0)
		return;
	if (tally_profile_event(profile, NULL, &event, NULL) == 0) {
		browse(profile, event, options.facts, keys->bytes, keys->size);
		browse(profile, event, options.facts, keys->bytes + keys->size / 2,
		       keys->size - keys->size / 2);
		diff(profile, event); /* last, since it consumes the rows */
	}
	tally_profile_free(profile);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct folder folder;
	if (!folder_read(bytes, size, &folder) || !folder.count)
		return 0;
	for (size_t i = 0; i < folder.count; i++)
		write_file(&folder.files[i]);
	make_places();
	uint64_t views = folder.views;
	for (size_t i = 0; folder.is_plain && i < size; i++)
		views = views * 31 + bytes[i];
	run_lines(views);
	if (is_replay || views % 4 == 0)
		look_at_profile(&folder);
	delete_contents();
	return 0;
}
