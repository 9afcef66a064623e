/* exec and posix_spawn: they lend the variables of process_environment.c to the next program.
 *
 * They look at the program's file first (process_program.c).  A program that can't be entered
 * gets its environment as it is.  So does every program that can't open the object's file or the
 * plan, as after chroot(2) or setuid(2): the loader would complain, or nothing would be counted.
 *
 * All of this may run after fork(2) or vfork(2) in a program with threads, so it allocates
 * nothing and takes no lock.  The new environment is on the stack, or, if it is large, in a
 * mapping of its own.  A child of vfork(2) can't unmap that once the program runs, so its parent
 * keeps it: a leak is better than an overflow of the stack.
 *
 * execvp(3) and its kin search PATH here, as glibc does, to look at each candidate. */
#include "process/process_exec.h"

#include "process/process_agent.h"
#include "process/process_call.h"
#include "process/process_environment.h"
#include "process/process_next.h"
#include "process/process_program.h"
#include "process/process_signals.h"

#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <paths.h>
#include <spawn.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	ROOM_ON_STACK = 16384,
	LARGEST_ERROR = 4095,
	LARGEST_DESCRIPTOR = 1 << 24,
	LONGEST_WAY = 512 /* bytes of a way to open the plan */
};

/* A program as execveat(2) names it. */
struct target {
	int directory;
	const char *path;
	int flags;
	enum { BY_PATH, BY_DIRECTORY, BY_DESCRIPTOR } how;
};

/* An environment with tally's variables. */
struct loan {
	size_t room; /* bytes; 0: nothing is lent */
	void *map;   /* NULL: the room is on the stack */
	bool is_uncounted;
};

/* True if the next program can open the plan in this way: a path, or "fd:N". */
static bool is_open_way(const char *way)
{
	if (!strncmp(way, "fd:", 3)) {
		int fd = 0;
		for (way += 3; *way >= '0' && *way <= '9' && fd < LARGEST_DESCRIPTOR; way++)
			fd = fd * 10 + (*way - '0');
		return process_call(SYS_fcntl, fd, F_GETFD) == 0; /* not closed by exec */
	}
	int fd = (int)process_call(SYS_openat, AT_FDCWD, way, O_RDWR | O_CLOEXEC, 0);
	if (fd < 0)
		return false;
	/* a capability that permits this may end with the exec: the owner and root don't need one */
	struct stat file;
	uint32_t user = (uint32_t)process_call(SYS_geteuid);
	bool is_mine = !process_call(SYS_fstat, fd, &file) && (file.st_uid == user || !user);
	process_call(SYS_close, fd);
	return is_mine;
}

/* False after the program has changed its user, or its root. */
static bool reaches_plan(void)
{
	char way[LONGEST_WAY];
	for (const char *from = process_agent.plan_name; *from;) {
		size_t length = strcspn(from, "|");
		if (length < sizeof(way)) {
			memcpy(way, from, length);
			way[length] = '\0';
			if (is_open_way(way))
				return true;
		}
		from += length + (from[length] == '|');
	}
	return false;
}

static bool can_enter(const struct target *target)
{
	struct process_program program;
	process_program_look(target->directory, target->path, target->flags, &program);
	return program.kind == PROCESS_PROGRAM_ENTERED &&
	       process_call(SYS_faccessat, AT_FDCWD, process_agent.object, R_OK) == 0 &&
	       reaches_plan();
}

static bool is_traced(void)
{
	return process_agent.traced_pid &&
	       process_agent.traced_pid == (int32_t)process_call(SYS_getpid);
}

/* Decides what is lent to the program. */
static struct loan prepare(const struct target *target, char *const *envp)
{
	struct loan loan = { 0 };
	/* fexecve(3) refuses NULL; other functions take it for an empty environment */
	if (!process_agent.plan || (target->how == BY_DESCRIPTOR && !envp))
		return loan;
	if (process_agent.is_ending || is_traced() || !can_enter(target)) {
		loan.is_uncounted = true;
		return loan;
	}
	loan.room = process_environment_room(envp);
	if (loan.room <= ROOM_ON_STACK)
		return loan;
	long map = process_call(SYS_mmap, NULL, loan.room, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map < 0 && map >= -LARGEST_ERROR)
		loan = (struct loan){ .is_uncounted = true };
	else
		loan.map = (void *)map;
	return loan;
}

/* Returns the environment for the program.  A macro, because the room is in the caller's frame. */
#define LEND(loan, envp) \
	lend(loan, envp, (loan)->room && !(loan)->map ? alloca((loan)->room) : NULL)

static char *const *lend(const struct loan *loan, char *const *envp, void *stack)
{
	if (!loan->room)
		return envp;
	return process_environment_lend(envp, loan->map ? loan->map : stack);
}

static void take_back(const struct loan *loan)
{
	if (loan->map)
		process_call(SYS_munmap, loan->map, loan->room);
}

static void count_uncounted(const struct loan *loan, int number)
{
	if (loan->is_uncounted)
		__atomic_fetch_add(&process_agent.plan->uncounted, (uint32_t)number,
				   __ATOMIC_SEQ_CST);
}

/* --- exec ------------------------------------------------------------------ */

static int call(const struct target *target, char *const *argv, char *const *envp)
{
	switch (target->how) {
#if __GLIBC_PREREQ(2, 34)
	case BY_DIRECTORY:
		return PROCESS_NEXT(execveat)(target->directory, target->path, argv, envp,
					      target->flags);
#endif
	case BY_DESCRIPTOR:
		return PROCESS_NEXT(fexecve)(target->directory, argv, envp);
	default:
		return PROCESS_NEXT(execve)(target->path, argv, envp);
	}
}

/* Executes the program, after process_exec_begins().  Returns if that fails, with errno set. */
static void execute(const struct target *target, char *const *argv, char *const *envp)
{
	struct loan loan = prepare(target, envp);
	count_uncounted(&loan, 1);
	process_signals_exec_begins(loan.room > 0);
	call(target, argv, LEND(&loan, envp));
	int error = errno;
	count_uncounted(&loan, -1);
	take_back(&loan);
	if (error == E2BIG && loan.room) {
		/* without the variables it may fit */
		loan = (struct loan){ .is_uncounted = true };
		count_uncounted(&loan, 1);
		process_signals_exec_begins(false);
		call(target, argv, envp);
		error = errno;
		count_uncounted(&loan, -1);
	}
	errno = error;
}

static int execute_once(const struct target *target, char *const *argv, char *const *envp)
{
	process_exec_begins();
	execute(target, argv, envp);
	int error = errno;
	process_exec_failed();
	errno = error;
	return -1;
}

static void execute_path(const char *path, char *const *argv, char *const *envp)
{
	const struct target target = { AT_FDCWD, path, 0, BY_PATH };
	execute(&target, argv, envp);
}

/* A file that has no format is a script for the shell: execvp(3). */
static void execute_script(const char *path, char *const *argv, char *const *envp)
{
	size_t count = 0;
	while (argv[count])
		count++;
	char **arguments = alloca((count + 3) * sizeof(char *));
	size_t rest = count > 1 ? count - 1 : 0;
	arguments[0] = (char *)(uintptr_t)_PATH_BSHELL;
	arguments[1] = (char *)(uintptr_t)path;
	memcpy(arguments + 2, argv + 1, rest * sizeof(char *));
	arguments[2 + rest] = NULL;
	execute_path(arguments[0], arguments, envp);
}

static void execute_file(const char *path, char *const *argv, char *const *envp)
{
	execute_path(path, argv, envp);
	if (errno == ENOEXEC)
		execute_script(path, argv, envp);
}

/* --- PATH ------------------------------------------------------------------ */

/* The candidates for a name, in their order. */
struct search {
	const char *file, *path; /* the rest of PATH; NULL: the end */
	char candidate[PATH_MAX + NAME_MAX + 2];
};

/* Begins a search.  Returns 0, or the errno for a name that can't be found. */
static int search_begin(struct search *search, const char *file)
{
	const char *path = process_environment_path();
	search->file = file;
	search->path = path ? path : "/bin:/usr/bin"; /* confstr(_CS_PATH) */
	if (!*file)
		return ENOENT;
	if (strnlen(file, NAME_MAX + 1) > NAME_MAX)
		return ENAMETOOLONG;
	return 0;
}

static const char *search_next(struct search *search)
{
	while (search->path) {
		const char *from = search->path, *end = strchrnul(from, ':');
		size_t length = (size_t)(end - from);
		search->path = *end ? end + 1 : NULL;
		if (length >= PATH_MAX)
			continue;
		memcpy(search->candidate, from, length);
		search->candidate[length] = '/';
		/* an empty element is the working directory */
		strcpy(search->candidate + length + (length > 0), search->file);
		return search->candidate;
	}
	return NULL;
}

/* True if the search goes on after this error of exec. */
static bool is_elsewhere(int error)
{
	return error == EACCES || error == ENOENT || error == ESTALE || error == ENOTDIR ||
	       error == ENODEV || error == ETIMEDOUT;
}

static void execute_found(const char *file, char *const *argv, char *const *envp)
{
	struct search search;
	bool was_refused = false;
	int error = search_begin(&search, file);
	while (!error && search_next(&search)) {
		execute_file(search.candidate, argv, envp);
		was_refused |= errno == EACCES;
		if (!is_elsewhere(errno))
			return;
	}
	if (error)
		errno = error;
	else if (was_refused)
		errno = EACCES;
}

/* Returns the file that posix_spawnp(3) will execute, or `file`. */
static const char *find(struct search *search, const char *file)
{
	struct stat status;
	if (strchr(file, '/') || search_begin(search, file))
		return file;
	while (search_next(search))
		if (!process_call(SYS_faccessat, AT_FDCWD, search->candidate, X_OK) &&
		    !process_call(SYS_newfstatat, AT_FDCWD, search->candidate, &status, 0) &&
		    S_ISREG(status.st_mode))
			return search->candidate;
	return file;
}

/* --- libc's functions ------------------------------------------------------- */

PROCESS_EXPORT int execve(const char *path, char *const *argv, char *const *envp)
{
	const struct target target = { AT_FDCWD, path, 0, BY_PATH };
	return execute_once(&target, argv, envp);
}

PROCESS_EXPORT int execv(const char *path, char *const *argv)
{
	return execve(path, argv, process_environment());
}

PROCESS_EXPORT int fexecve(int fd, char *const *argv, char *const *envp)
{
	const struct target target = { fd, "", AT_EMPTY_PATH, BY_DESCRIPTOR };
	return execute_once(&target, argv, envp);
}

#if __GLIBC_PREREQ(2, 34)
PROCESS_EXPORT int execveat(int directory, const char *path, char *const *argv, char *const *envp,
			    int flags)
{
	const struct target target = { directory, path, flags, BY_DIRECTORY };
	return execute_once(&target, argv, envp);
}
#endif

PROCESS_EXPORT int execvpe(const char *file, char *const *argv, char *const *envp)
{
	process_exec_begins();
	if (strchr(file, '/'))
		execute_file(file, argv, envp);
	else
		execute_found(file, argv, envp);
	int error = errno;
	process_exec_failed();
	errno = error;
	return -1;
}

PROCESS_EXPORT int execvp(const char *file, char *const *argv)
{
	return execvpe(file, argv, process_environment());
}

/* Makes an array of a list of arguments that NULL ends.  A macro: the array is in the caller's
 * frame. */
#define ARGUMENTS(list, first, argv) \
	do { \
		va_list counted; \
		size_t count = 1, at = 0; \
		va_copy(counted, list); \
		while (va_arg(counted, char *)) \
			count++; \
		va_end(counted); \
		(argv) = alloca((count + 1) * sizeof(char *)); \
		(argv)[0] = (char *)(uintptr_t)(first); \
		while ((argv)[at]) \
			(argv)[++at] = va_arg(list, char *); \
	} while (0)

PROCESS_EXPORT int execl(const char *path, const char *argument, ...)
{
	va_list list;
	char **argv;
	va_start(list, argument);
	ARGUMENTS(list, argument, argv);
	va_end(list);
	return execve(path, argv, process_environment());
}

PROCESS_EXPORT int execlp(const char *file, const char *argument, ...)
{
	va_list list;
	char **argv;
	va_start(list, argument);
	ARGUMENTS(list, argument, argv);
	va_end(list);
	return execvpe(file, argv, process_environment());
}

PROCESS_EXPORT int execle(const char *path, const char *argument, ...)
{
	va_list list;
	char **argv;
	va_start(list, argument);
	ARGUMENTS(list, argument, argv);
	char *const *envp = va_arg(list, char *const *);
	va_end(list);
	return execve(path, argv, envp);
}

/* --- posix_spawn ------------------------------------------------------------ */

typedef int spawn(pid_t *, const char *, const posix_spawn_file_actions_t *,
		  const posix_spawnattr_t *, char *const *, char *const *);

/* Calls libc's function.  `found`: the file that it will execute. */
static int spawn_program(spawn *next, const char *found, pid_t *pid, const char *file,
			 const posix_spawn_file_actions_t *actions,
			 const posix_spawnattr_t *attributes, char *const *argv, char *const *envp)
{
	const struct target target = { AT_FDCWD, found, 0, BY_PATH };
	struct loan loan = prepare(&target, envp);
	process_signals_exec_begins(false);
	int error = next(pid, file, actions, attributes, argv, LEND(&loan, envp));
	take_back(&loan);
	if (error == E2BIG && loan.room) {
		loan = (struct loan){ .is_uncounted = true };
		error = next(pid, file, actions, attributes, argv, envp);
	}
	process_signals_exec_failed();
	if (!error)
		count_uncounted(&loan, 1);
	return error;
}

PROCESS_EXPORT int posix_spawn(pid_t *pid, const char *path,
			       const posix_spawn_file_actions_t *actions,
			       const posix_spawnattr_t *attributes, char *const *argv,
			       char *const *envp)
{
	return spawn_program(PROCESS_NEXT(posix_spawn), path, pid, path, actions, attributes, argv,
			     envp);
}

PROCESS_EXPORT int posix_spawnp(pid_t *pid, const char *file,
				const posix_spawn_file_actions_t *actions,
				const posix_spawnattr_t *attributes, char *const *argv,
				char *const *envp)
{
	struct search search;
	return spawn_program(PROCESS_NEXT(posix_spawnp), find(&search, file), pid, file, actions,
			     attributes, argv, envp);
}

#if __GLIBC_PREREQ(2, 39)
PROCESS_EXPORT int pidfd_spawn(int *pidfd, const char *path,
			       const posix_spawn_file_actions_t *actions,
			       const posix_spawnattr_t *attributes, char *const *argv,
			       char *const *envp)
{
	return spawn_program(PROCESS_NEXT(pidfd_spawn), path, pidfd, path, actions, attributes,
			     argv, envp);
}

PROCESS_EXPORT int pidfd_spawnp(int *pidfd, const char *file,
				const posix_spawn_file_actions_t *actions,
				const posix_spawnattr_t *attributes, char *const *argv,
				char *const *envp)
{
	struct search search;
	return spawn_program(PROCESS_NEXT(pidfd_spawnp), find(&search, file), pidfd, file, actions,
			     attributes, argv, envp);
}
#endif

int process_exec_spawn_shell(pid_t *pid, const posix_spawn_file_actions_t *actions,
			     const posix_spawnattr_t *attributes, char *const *argv)
{
	return posix_spawn(pid, _PATH_BSHELL, actions, attributes, argv, process_environment());
}
