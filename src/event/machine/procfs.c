/* Parses /proc/PID/maps and status, and undoes the kernel's escapes in them.  Then come the readers
 * of other files, the lists of processes and threads, and the parser of /proc/modules. */
#include "machine/machine.h"

#include "base/buffer.h"
#include "base/extremes.h"
#include "base/text.h"
#include "base/vector.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAPS_SIZE_MAX = 256 << 20, STATUS_SIZE_MAX = 1 << 20 };

/* /proc returns ENOENT before a task's directory is opened and ESRCH afterwards: both mean that the
 * task has ended. */
static int task_error(int code)
{
	if (code == -ENOENT)
		return -ESRCH;
	return code;
}

struct line {
	const char *at, *end;
	bool failed;
};

static int digit(char c, unsigned base)
{
	int value = -1;
	if (c >= '0' && c <= '9')
		value = c - '0';
	else if (c >= 'a' && c <= 'f')
		value = c - 'a' + 10;
	return value < (int)base ? value : -1;
}

/* Parses a number, and the one byte `behind` it (a blank also stands for the end of the line). */
static uint64_t take_number(struct line *line, unsigned base, char behind)
{
	uint64_t number = 0;
	const char *first = line->at;
	for (; line->at < line->end && digit(*line->at, base) >= 0; line->at++)
		number = number * base + (uint64_t)digit(*line->at, base);
	if (line->at == first || line->at - first > 20)
		line->failed = true;
	if (line->at < line->end && *line->at == behind)
		line->at++;
	else if (line->at < line->end || behind != ' ')
		line->failed = true;
	return number;
}

static void take_protection(struct line *line, struct tally_proc_map *out)
{
	if (line->end - line->at < 5 || line->at[4] != ' ') {
		line->failed = true;
		return;
	}
	out->protection = 0;
	if (line->at[0] == 'r')
		out->protection |= PROT_READ;
	if (line->at[1] == 'w')
		out->protection |= PROT_WRITE;
	if (line->at[2] == 'x')
		out->protection |= PROT_EXEC;
	out->shared = line->at[3] == 's';
	line->at += 5;
}

/* The kernel escapes only newlines (seq_path with "\n"). */
static void take_path(struct line *line, struct tally_proc_map *out)
{
	size_t length = 0;
	while (line->at < line->end && *line->at == ' ')
		line->at++;
	while (line->at < line->end && length < sizeof(out->path) - 1) {
		if (line->end - line->at >= 4 && !memcmp(line->at, "\\012", 4)) {
			out->path[length++] = '\n';
			line->at += 4;
		} else {
			out->path[length++] = *line->at++;
		}
	}
	out->path[length] = 0;
}

static bool parse_map(struct line *line, struct tally_proc_map *out)
{
	out->start = take_number(line, 16, '-');
	out->end = take_number(line, 16, ' ');
	take_protection(line, out);
	out->offset = take_number(line, 16, ' ');
	out->major = (uint32_t)take_number(line, 16, ':');
	out->minor = (uint32_t)take_number(line, 16, ' ');
	out->inode = take_number(line, 10, ' ');
	take_path(line, out);
	return !line->failed && out->start < out->end;
}

bool tally_proc_maps_next(const char **text, const char *end, struct tally_proc_map *out)
{
	while (*text < end) {
		struct line line = { .at = *text, .end = tally_line_end(*text, end) };
		*text = line.end + (line.end < end);
		if (parse_map(&line, out))
			return true;
	}
	return false;
}

static int read_task(struct tally_buffer *text, pid_t pid, const char *name, size_t maximum)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return task_error(tally_buffer_read_file(text, AT_FDCWD, path, maximum));
}

/* A task that has ended has no executable: the kernel has taken its memory away. */
static bool has_memory(pid_t tid)
{
	char path[64], target[1];
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)tid);
	return readlink(path, target, sizeof(target)) >= 0 || errno != ENOENT;
}

pid_t tally_proc_living_thread(pid_t pid)
{
	struct tally_pid_list threads;
	pid_t found = pid;
	if (has_memory(pid) || tally_proc_threads(pid, &threads) < 0)
		return pid;
	for (size_t i = 0; i < threads.count && found == pid; i++)
		if (threads.items[i] != pid && has_memory(threads.items[i]))
			found = threads.items[i];
	tally_pid_list_release(&threads);
	return found;
}

int tally_proc_maps(pid_t pid, int (*visit)(void *context, const struct tally_proc_map *map),
		    void *context)
{
	struct tally_buffer text = { 0 };
	struct tally_proc_map map;
	int code = read_task(&text, tally_proc_living_thread(pid), "maps", MAPS_SIZE_MAX);
	const char *at = tally_buffer_string(&text), *end = at + text.length;
	while (!code && tally_proc_maps_next(&at, end, &map))
		code = visit(context, &map);
	tally_buffer_release(&text);
	return code;
}

/* Returns the text behind "Key:" and blanks, or NULL. */
static const char *status_field(const char *text, const char *key)
{
	size_t length = strlen(key);
	for (const char *line = text; *line; line += *line == '\n') {
		if (!strncmp(line, key, length) && line[length] == ':')
			return line + length + 1 + strspn(line + length + 1, " \t");
		line += strcspn(line, "\n");
	}
	return NULL;
}

static int status_number(const char *text, const char *key)
{
	const char *field = status_field(text, key);
	if (field && isdigit((unsigned char)*field))
		return atoi(field);
	return -1;
}

/* The kernel escapes newline and backslash: string_escape_str(ESCAPE_SPACE | ESCAPE_SPECIAL,
 * "\n\\"). */
static void status_name(const char *field, char *out, size_t size)
{
	size_t length = 0;
	for (; *field && *field != '\n' && length < size - 1; field++) {
		char c = *field;
		if (c == '\\' && (field[1] == 'n' || field[1] == '\\'))
			c = *++field == 'n' ? '\n' : '\\';
		out[length++] = c;
	}
	out[length] = 0;
}

void tally_proc_status_parse(const char *text, struct tally_proc_status *out)
{
	const char *uid = status_field(text, "Uid"), *name = status_field(text, "Name");
	*out = (struct tally_proc_status){
		.tgid = status_number(text, "Tgid"),
		.parent = status_number(text, "PPid"),
		.uid = (uid_t)-1,
		.seccomp = status_number(text, "Seccomp"),
	};
	if (uid && (uid = strpbrk(uid, " \t\n")) && *uid != '\n')
		out->uid = (uid_t)strtoul(uid, NULL, 10);
	if (name)
		status_name(name, out->name, sizeof(out->name));
}

int tally_proc_status(pid_t pid, struct tally_proc_status *out)
{
	struct tally_buffer text = { 0 };
	int code = read_task(&text, pid, "status", STATUS_SIZE_MAX);
	if (!code)
		tally_proc_status_parse(tally_buffer_string(&text), out);
	tally_buffer_release(&text);
	return code;
}

int tally_proc_comm(pid_t tid, char *out, size_t size)
{
	struct tally_buffer text = { 0 };
	int code = read_task(&text, tid, "comm", STATUS_SIZE_MAX);
	if (!code) {
		size_t length = text.length;
		if (length && text.bytes[length - 1] == '\n')
			length--;
		code = snprintf(out, size, "%.*s", (int)length, tally_buffer_string(&text));
		if (code >= (int)size)
			code = (int)size - 1;
	}
	tally_buffer_release(&text);
	return code;
}

bool tally_proc_is_named(pid_t pid, const char *name)
{
	enum { KEPT = 15, ARGUMENT_BYTES = 4096 };
	char comm[TALLY_PROC_COMM_MAX];
	struct tally_buffer text = { 0 };
	if (tally_proc_comm(pid, comm, sizeof(comm)) >= 0 && !strncmp(comm, name, KEPT) &&
	    strlen(comm) == strnlen(name, KEPT))
		return true;
	bool is_named = false;
	if (!read_task(&text, pid, "cmdline", ARGUMENT_BYTES) && text.length) {
		const char *first = tally_buffer_string(&text), *slash = strrchr(first, '/');
		is_named = !strcmp(slash ? slash + 1 : first, name);
	}
	tally_buffer_release(&text);
	return is_named;
}

static int by_number(const void *left, const void *right)
{
	return tally_compare_i64(*(const pid_t *)left, *(const pid_t *)right);
}

static int read_numbers(const char *path, struct tally_pid_list *out)
{
	struct dirent *entry;
	int code = 0;
	*out = (struct tally_pid_list){ 0 };
	DIR *directory = opendir(path);
	if (!directory)
		return task_error(-errno);
	while (!code && (entry = readdir(directory)))
		if (isdigit((unsigned char)entry->d_name[0]))
			code = tally_vector_push(out, (pid_t)atoi(entry->d_name));
	closedir(directory);
	if (code)
		tally_pid_list_release(out);
	else if (out->count)
		qsort(out->items, out->count, sizeof(*out->items), by_number);
	return code;
}

int tally_proc_pids(struct tally_pid_list *out)
{
	return read_numbers("/proc", out);
}

int tally_proc_threads(pid_t pid, struct tally_pid_list *out)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	return read_numbers(path, out);
}

void tally_pid_list_release(struct tally_pid_list *list)
{
	free(list->items);
	*list = (struct tally_pid_list){ 0 };
}

static int by_start(const void *a_, const void *b_)
{
	const struct tally_loaded_module *a = a_, *b = b_;
	if (a->start != b->start)
		return tally_compare_u64(a->start, b->start);
	return strcmp(a->name, b->name);
}

/* Adds the module of "nf_tables 303104 3 nft_ct,nft_chain_nat, Live 0xffffffffc0a5d000 (E)". */
static int take_line(const char *line, size_t length, struct tally_loaded_modules *out)
{
	struct tally_loaded_module module;
	int read = 0;
	uint64_t size;
	if (sscanf(line, "%63s %" SCNu64 " %*s %*s %*s 0x%" SCNx64 "%n", module.name, &size,
		   &module.start, &read) != 3 ||
	    (size_t)read > length || /* sscanf went on into the next line */
	    !module.start || !size || module.start + size < module.start)
		return 0;
	module.end = module.start + size;
	return tally_vector_push(out, module);
}

int tally_loaded_modules_parse(const char *text, struct tally_loaded_modules *out)
{
	for (const char *line = text; *line; line += *line == '\n') {
		size_t length = strcspn(line, "\n");
		if (take_line(line, length, out) < 0)
			return -ENOMEM;
		line += length;
	}
	if (out->count)
		qsort(out->items, out->count, sizeof(*out->items), by_start);
	for (size_t i = 0; i + 1 < out->count; i++)
		if (out->items[i].end > out->items[i + 1].start)
			out->items[i].end = out->items[i + 1].start;
	return 0;
}
