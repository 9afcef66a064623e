/* Gives each test a directory of its own, and runs commands of binutils there that make objects. */
#ifndef TALLY_TEST_OBJECT_FIXTURE_H
#define TALLY_TEST_OBJECT_FIXTURE_H

#include "test.h"

#include "object/object.h"

#include <fcntl.h>
#include <stdbool.h>

/* Returns false if the command failed or can't run here. */
static inline bool run(const char *directory, const char *command)
{
	char line[4096];
	snprintf(line, sizeof(line), "cd %s && (%s) >/dev/null 2>&1", directory, command);
	return system(line) == 0;
}

static inline int make_directory(void **state)
{
	static char directory[64];
	snprintf(directory, sizeof(directory), "/tmp/tally-object-XXXXXX");
	*state = mkdtemp(directory);
	return *state ? 0 : -1;
}

static inline int remove_directory(void **state)
{
	char line[128];
	snprintf(line, sizeof(line), "rm -rf %s", (const char *)*state);
	return system(line);
}

static inline struct tally_object *open_in(const char *directory, const char *name)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	struct tally_object *object = NULL;
	struct tally_error err = TALLY_ERROR_NONE;
	if (tally_object_open(AT_FDCWD, path, &object, &err) < 0)
		fail_msg("%s", err.message);
	return object;
}

#endif
