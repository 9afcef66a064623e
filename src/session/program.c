#include "session/program.h"

#include "object/object.h"
#include "unwind/unwind.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, INTERPRETER_DEPTH = 4 };

/* The file that execvp(3) would run; false when there is none. */
static int find_program(const char *command, char *out, size_t size)
{
	const char *path = getenv("PATH");
	if (strchr(command, '/'))
		return snprintf(out, size, "%s", command) < (int)size && !access(out, X_OK);
	if (!path)
		path = "/bin:/usr/bin";
	while (*path) {
		int length = (int)strcspn(path, ":");
		int need = snprintf(out, size, "%.*s/%s", length ? length : 1, length ? path : ".", command);
		if (need < (int)size && !access(out, X_OK))
			return 1;
		path += length + (path[length] == ':');
	}
	return 0;
}

bool tally_program_is_there(const char *command)
{
	char path[PATH_BYTES];
	return find_program(command, path, sizeof(path));
}

/* The interpreter of a "#!" script, also through /usr/bin/env; 0 when the file is no script. */
static int find_interpreter(const char *path, char *out, size_t size)
{
	char line[512];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
	if (fd >= 0)
		close(fd);
	if (got < 3 || line[0] != '#' || line[1] != '!')
		return 0;
	line[got] = '\0';
	line[strcspn(line, "\n")] = '\0';
	char *rest = NULL, *first = strtok_r(line + 2, " \t", &rest), *second = strtok_r(NULL, " \t", &rest);
	if (!first)
		return 0;
	const char *slash = strrchr(first, '/');
	if (second && !strcmp(slash ? slash + 1 : first, "env"))
		return find_program(second, out, size);
	return snprintf(out, size, "%s", first) < (int)size;
}

static void probe_file(const char *path, struct tally_program_probe *probe)
{
	struct tally_object *object;
	struct tally_unwind_table *table;
	if (tally_object_open(AT_FDCWD, path, &object, NULL) < 0)
		return;
	if (!tally_unwind_table_new(object, NULL, &table, NULL)) {
		tally_unwind_table_uses_frame_pointers(table, &probe->functions, &probe->with_frame_pointer);
		tally_unwind_table_free(table);
	}
	tally_object_unref(object);
}

static void set_name(struct tally_program_probe *probe, const char *path)
{
	const char *slash = strrchr(path, '/');
	snprintf(probe->name, sizeof(probe->name), "%.*s", (int)sizeof(probe->name) - 1, slash ? slash + 1 : path);
}

void tally_program_probe_command(const char *command, struct tally_program_probe *probe)
{
	char path[PATH_BYTES], interpreter[PATH_BYTES];
	*probe = (struct tally_program_probe){ 0 };
	set_name(probe, command);
	if (!find_program(command, path, sizeof(path)))
		return;
	/* What a script of a shell spends its time in is another program (pyenv's "python" is one): the shell's own
	 * build is the best hint at how this system's programs are built. */
	for (int i = 0; i < INTERPRETER_DEPTH && find_interpreter(path, interpreter, sizeof(interpreter)); i++) {
		memcpy(path, interpreter, sizeof(path));
		set_name(probe, path);
	}
	probe_file(path, probe);
}

void tally_program_probe_pid(pid_t pid, struct tally_program_probe *probe)
{
	char link[64], path[PATH_BYTES];
	*probe = (struct tally_program_probe){ 0 };
	snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	ssize_t length = readlink(link, path, sizeof(path) - 1);
	path[length < 0 ? 0 : length] = '\0';
	set_name(probe, length < 0 ? "the target" : path);
	probe_file(link, probe);
}
