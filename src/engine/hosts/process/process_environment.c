/* tally comes into a program by two variables: TALLY_PLAN says how to open the plan, and
 * LD_PRELOAD begins with the path of this object.
 *
 * The constructor takes both out of the environment, so the program sees what it would see
 * without tally: getenv(3), environ, and the third argument of main() are the same.  The array is
 * changed in place, and freed entries at its end become NULL, since some runtimes (Go) walk over
 * it from argv.  The strings are zeroed, so /proc/PID/environ shows empty strings in their place;
 * only its length tells that they were there.
 *
 * The wrappers of exec lend both to the next program, in a copy of its environment.  The copy is
 * made in memory of the caller's: exec is called after fork(2) and vfork(2) in programs with
 * threads, where nothing may be allocated, locked, or changed in memory that is shared. */
#include "process/process_environment.h"

#include "process/process_agent.h"

#include <string.h>
#include <unistd.h>

#define PLAN "TALLY_PLAN="
#define PRELOAD "LD_PRELOAD="
#define OBJECT "libtally-process.so"

static bool is_variable(const char *entry, const char *name)
{
	return !strncmp(entry, name, strlen(name));
}

static bool is_separator(char c)
{
	return c == ':' || c == ' ';
}

/* Returns the element of LD_PRELOAD's value that is this object, or NULL. */
static char *find_object(char *value, size_t *length)
{
	while (*value) {
		size_t size = strcspn(value, ": ");
		size_t name = sizeof(OBJECT) - 1;
		if (size > name && value[size - name - 1] == '/' &&
		    !memcmp(value + size - name, OBJECT, name)) {
			*length = size;
			return value;
		}
		value += size;
		value += is_separator(*value);
	}
	return NULL;
}

/* Takes bytes out of a string, and zeroes what becomes free behind it. */
static void cut(char *from, size_t size)
{
	size_t rest = strlen(from + size);
	memmove(from, from + size, rest);
	memset(from + rest, 0, size);
}

/* Takes this object out of LD_PRELOAD's value.  Returns true if nothing else was there. */
static bool take_object(char *value)
{
	size_t length;
	char *object = find_object(value, &length);
	if (!object)
		return false;
	if (length < sizeof(process_agent.object)) {
		memcpy(process_agent.object, object, length);
		process_agent.object[length] = '\0';
	}
	if (object == value && !value[length]) {
		memset(value, 0, length);
		return true;
	}
	/* the separator behind it belongs to it, or the one before it if it is the last */
	if (object[length])
		cut(object, length + 1);
	else
		cut(object - 1, length + 1);
	return false;
}

static void take_plan(char *value)
{
	size_t length = strlen(value);
	if (length < sizeof(process_agent.plan_name))
		memcpy(process_agent.plan_name, value, length + 1);
	memset(value, 0, length);
}

char **process_environment(void)
{
	return environ;
}

const char *process_environment_path(void)
{
	for (char **entry = environ; entry && *entry; entry++)
		if (is_variable(*entry, "PATH="))
			return *entry + strlen("PATH=");
	return NULL;
}

bool process_environment_take(char **environment)
{
	char **kept = environment, **entry;
	bool has_plan = false;
	/* libc sets it later to the same; until then a library may miss it (libfakeroot) */
	if (!environ)
		environ = environment;
	for (entry = environment; entry && *entry; entry++)
		has_plan |= is_variable(*entry, PLAN);
	if (!has_plan)
		return false;
	for (entry = environment; *entry; entry++) {
		bool goes = false;
		if (is_variable(*entry, PLAN)) {
			take_plan(*entry + strlen(PLAN));
			goes = true;
		} else if (is_variable(*entry, PRELOAD)) {
			goes = take_object(*entry + strlen(PRELOAD));
		}
		if (goes)
			memset(*entry, 0, strlen(*entry));
		else
			*kept++ = *entry;
	}
	while (kept < entry)
		*kept++ = NULL;
	return process_agent.plan_name[0];
}

/* --- lending -------------------------------------------------------------- */

/* Returns the position of the last LD_PRELOAD, which counts for the loader, or `count`. */
static size_t find_preload(char *const *envp, size_t count)
{
	for (size_t i = count; i; i--)
		if (is_variable(envp[i - 1], PRELOAD))
			return i - 1;
	return count;
}

static size_t count_entries(char *const *envp)
{
	size_t count = 0;
	while (envp && envp[count])
		count++;
	return count;
}

size_t process_environment_room(char *const *envp)
{
	size_t count = count_entries(envp), length;
	if (!process_agent.object[0] || !process_agent.plan_name[0])
		return 0;
	for (size_t i = 0; i < count; i++)
		if (is_variable(envp[i], PLAN))
			return 0;
	size_t preload = find_preload(envp, count);
	size_t room = (count + 3) * sizeof(char *) + sizeof(PLAN) + sizeof(PRELOAD) +
		      strlen(process_agent.plan_name) + strlen(process_agent.object);
	if (preload == count)
		return room;
	if (find_object(envp[preload] + strlen(PRELOAD), &length))
		return 0;
	return room + 1 + strlen(envp[preload] + strlen(PRELOAD));
}

char **process_environment_lend(char *const *envp, void *room)
{
	size_t count = count_entries(envp), preload = find_preload(envp, count);
	char **lent = room;
	char *text = (char *)(lent + count + 3);
	if (count)
		memcpy(lent, envp, count * sizeof(char *));
	lent[preload] = text;
	text = stpcpy(stpcpy(text, PRELOAD), process_agent.object);
	if (preload < count)
		text = stpcpy(stpcpy(text, ":"), envp[preload] + strlen(PRELOAD));
	else
		count++;
	lent[count] = ++text;
	stpcpy(stpcpy(text, PLAN), process_agent.plan_name);
	lent[count + 1] = NULL;
	return lent;
}
