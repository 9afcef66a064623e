/* executes WAY CHILD: executes this program again in one of the `ways`, and exits with its status.
 * CHILD is "show", which prints all that it sees of its environment and its arguments, "burn", which
 * uses 60 ms of CPU, or another executable's path with its arguments.
 *
 * executes ways: prints their names.  executes errors: prints what failing calls return.  executes
 * streams: prints what system(3) and popen(3) do. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MANY = 4000 };

static char self[4096], folder[4096];

static double used_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void die(const char *what)
{
	printf("executes: %s: %s\n", what, strerror(errno));
	exit(99);
}

/* --- children --------------------------------------------------------------- */

static int show(int argc, char **argv, char **envp)
{
	for (int i = 0; i < argc; i++)
		printf("argument %s\n", argv[i]);
	for (char **entry = environ; *entry; entry++)
		printf("environ %s\n", *entry);
	/* main()'s third argument, and the walk over the stack that some runtimes make */
	printf("the same: %d %d\n", envp == environ, argv + argc + 1 == environ);
	for (int i = 0; i < 2; i++) {
		const char *name = i ? "LD_PRELOAD" : "TALLY_PLAN";
		const char *value = getenv(name);
		printf("%s %s\n", name, value ? value : "(absent)");
	}
	for (int fd = 0; fd < 64; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			printf("descriptor %d\n", fd);
	return 7;
}

static int burn(void)
{
	while (used_s() < 0.06)
		for (volatile unsigned i = 0; i < 10000; i++)
			;
	return 0;
}

/* --- ways -------------------------------------------------------------------- */

static int wait_for(pid_t pid)
{
	int status;
	if (waitpid(pid, &status, 0) != pid)
		die("waitpid");
	if (!WIFEXITED(status))
		return 98;
	return WEXITSTATUS(status);
}

static int spawned(int error, const pid_t *pid)
{
	errno = error;
	if (error)
		die("posix_spawn");
	return wait_for(*pid);
}

/* Returns the command line for a shell: the program and its arguments. */
static char *command(char **argv)
{
	static char line[8192];
	size_t length = (size_t)snprintf(line, sizeof(line), "%s", self);
	while (*++argv)
		length += (size_t)snprintf(line + length, sizeof(line) - length, " %s", *argv);
	return line;
}

static int read_all(FILE *stream)
{
	char text[8192];
	size_t size;
	while ((size = fread(text, 1, sizeof(text), stream)) > 0)
		fwrite(text, 1, size, stdout);
	int status = pclose(stream);
	return WEXITSTATUS(status);
}

/* Makes a script in the working directory, and returns its path. */
static char *script(const char *first_line, char **argv)
{
	static char path[] = "./script";
	FILE *file = fopen(path, "w");
	if (!file)
		die(path);
	fprintf(file, "%s%s \"$@\" script\n", first_line, command(argv));
	fclose(file);
	chmod(path, 0700);
	return path;
}

static char **many_variables(void)
{
	static char *variables[MANY + 1], text[MANY][16];
	for (int i = 0; i < MANY; i++) {
		snprintf(text[i], sizeof(text[i]), "V%d=%d", i, i);
		variables[i] = text[i];
	}
	return variables;
}

static int run(const char *way, char **argv)
{
	char *few[] = { (char *)(uintptr_t)"FIRST=1", (char *)(uintptr_t)"LAST=", NULL };
	pid_t pid;
	fflush(stdout);
	if (!strcmp(way, "execve"))
		execve(self, argv, environ);
	else if (!strcmp(way, "execve_null"))
		execve(self, argv, NULL);
	else if (!strcmp(way, "execve_few"))
		execve(self, argv, few);
	else if (!strcmp(way, "execve_many"))
		execve(self, argv, many_variables());
	else if (!strcmp(way, "execv"))
		execv(self, argv);
	else if (!strcmp(way, "execvp"))
		execvp("executes", argv);
	else if (!strcmp(way, "execvpe"))
		execvpe("executes", argv, few);
	else if (!strcmp(way, "execl"))
		execl(self, argv[0], argv[1], argv[2], (char *)NULL);
	else if (!strcmp(way, "execlp"))
		execlp("executes", argv[0], argv[1], argv[2], (char *)NULL);
	else if (!strcmp(way, "execle"))
		execle(self, argv[0], argv[1], (char *)NULL, few);
	else if (!strcmp(way, "execveat"))
		execveat(open(folder, O_DIRECTORY | O_PATH | O_CLOEXEC), "executes", argv, environ, 0);
	else if (!strcmp(way, "fexecve"))
		fexecve(open(self, O_RDONLY | O_CLOEXEC), argv, environ);
	else if (!strcmp(way, "fexecve_path"))
		fexecve(open(self, O_PATH | O_CLOEXEC), argv, environ);
	else if (!strcmp(way, "syscall"))
		syscall(SYS_execve, self, argv, environ);
	else if (!strcmp(way, "script"))
		execv(script("#!/bin/sh\n", argv), argv);
	else if (!strcmp(way, "formless"))
		execvp(script("", argv), argv);
	else if (!strcmp(way, "posix_spawn"))
		return spawned(posix_spawn(&pid, self, NULL, NULL, argv, environ), &pid);
	else if (!strcmp(way, "posix_spawn_null"))
		return spawned(posix_spawn(&pid, self, NULL, NULL, argv, NULL), &pid);
	else if (!strcmp(way, "posix_spawn_many"))
		return spawned(posix_spawn(&pid, self, NULL, NULL, argv, many_variables()), &pid);
	else if (!strcmp(way, "posix_spawnp"))
		return spawned(posix_spawnp(&pid, "executes", NULL, NULL, argv, few), &pid);
	else if (!strcmp(way, "fork")) {
		pid = fork();
		if (!pid)
			execv(self, argv);
		return wait_for(pid);
	} else if (!strcmp(way, "vfork")) {
		pid = vfork();
		if (!pid) {
			execve(self, argv, few);
			_exit(97);
		}
		return wait_for(pid);
	} else if (!strcmp(way, "system"))
		return WEXITSTATUS(system(command(argv)));
	else if (!strcmp(way, "popen"))
		return read_all(popen(command(argv), "r"));
	die(way);
	return 99;
}

static const char *const ways[] = {
	"execve", "execve_null", "execve_few", "execve_many", "execv", "execvp", "execvpe", "execl",
	"execlp", "execle", "execveat", "fexecve", "fexecve_path", "syscall", "script", "formless",
	"posix_spawn", "posix_spawn_null", "posix_spawn_many", "posix_spawnp", "fork", "vfork",
	"system", "popen",
};

/* --- errors ------------------------------------------------------------------ */

static void failed(const char *what, int result)
{
	printf("%s: %d %s\n", what, result, strerror(errno));
	errno = 0;
}

static int errors(void)
{
	char *argv[] = { (char *)(uintptr_t)"x", NULL }, path[512] = "./no_program";
	pid_t pid;
	unlink(path);
	FILE *file = fopen(path, "w");
	fputs("no program\n", file);
	fclose(file);
	failed("not executable", execv(path, argv));
	chmod(path, 0700);
	failed("no format", execv(path, argv));
	failed("missing", execv("/absent", argv));
	failed("missing name", execvp("absent-name", argv));
	failed("empty name", execvp("", argv));
	failed("a folder", execvp(folder, argv));
	failed("part is no folder", execlp("/dev/null/x", "x", (char *)NULL));
	memset(path, 'a', 300);
	path[300] = '\0';
	failed("long name", execvp(path, argv));
	failed("descriptor", fexecve(-1, argv, environ));
	failed("closed descriptor", fexecve(60, argv, environ));
	failed("execveat", execveat(60, "x", argv, environ, 0));
	printf("posix_spawn: %s\n", strerror(posix_spawn(&pid, "/absent", NULL, NULL, argv, environ)));
	printf("posix_spawnp: %s\n", strerror(posix_spawnp(&pid, "absent", NULL, NULL, argv, environ)));
	setenv("PATH", "/absent:/dev/null:/root/x", 1);
	failed("PATH", execvp("sh", argv));
	unsetenv("PATH");
	failed("no PATH", execvp("absent-name", argv));
	printf("no PATH: %d\n", WEXITSTATUS(system("exit 3")));
	return 0;
}

/* --- popen and system -------------------------------------------------------- */

static int streams(void)
{
	char text[256];
	FILE *many[8];
	printf("no shell: %d\n", system(NULL));
	printf("status %x\n", (unsigned)system("exit 9"));
	printf("signal %x\n", (unsigned)system("kill -15 $$"));
	printf("absent %x\n", (unsigned)system("absent-command 2>/dev/null"));
	fflush(stdout);
	FILE *writes = popen("cat; exit 4", "w");
	FILE *reads = popen("ls /proc/self/fd; exit 5", "re");
	while (fgets(text, sizeof(text), reads))
		printf("descriptor %s", text);
	printf("closes on exec: %d %d\n", fcntl(fileno(reads), F_GETFD), fcntl(fileno(writes), F_GETFD));
	printf("pclose %x\n", (unsigned)pclose(reads));
	fprintf(writes, "written\n");
	fflush(stdout);
	int (*volatile close_any)(FILE *) = fclose; /* in glibc it is pclose() */
	printf("fclose %x\n", (unsigned)close_any(writes));
	printf("nothing waits: %d\n", (int)waitpid(-1, NULL, WNOHANG));
	printf("wrong modes: %d %d %d\n", !popen("true", "rw"), !popen("true", ""), !popen("true", "x"));
	for (int i = 0; i < 8; i++)
		many[i] = popen("sleep 0.1; echo many", "r");
	for (int i = 0; i < 8; i++)
		printf("%s", fgets(text, sizeof(text), many[i]));
	for (int i = 7; i >= 0; i--)
		printf("pclose %d\n", pclose(many[i]));
	writes = popen("exec <&-; sleep 0.1", "w");
	signal(SIGPIPE, SIG_IGN);
	usleep(300000);
	fputs("lost", writes);
	printf("broken pipe %d\n", pclose(writes));
	fclose(fopen("/dev/null", "r"));
	struct sigaction interrupt;
	sigset_t mask;
	sigaction(SIGINT, NULL, &interrupt);
	sigprocmask(SIG_BLOCK, NULL, &mask);
	printf("signals are as before: %d %d\n", interrupt.sa_handler == SIG_DFL,
	       sigismember(&mask, SIGCHLD));
	return 0;
}

int main(int argc, char **argv, char **envp)
{
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (length < 0 || argc < 2)
		return 2;
	self[length] = '\0';
	strcpy(folder, self);
	*strrchr(folder, '/') = '\0';
	if (!strcmp(argv[1], "show"))
		return show(argc, argv, envp);
	if (!strcmp(argv[1], "burn"))
		return burn();
	if (!strcmp(argv[1], "errors"))
		return errors();
	if (!strcmp(argv[1], "streams"))
		return streams();
	if (!strcmp(argv[1], "ways")) {
		for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
			puts(ways[i]);
		return 0;
	}
	/* another executable, which gets the arguments behind it */
	if (argc > 2 && *argv[2] == '/') {
		strcpy(self, argv[2]);
		argv[2] = argv[1];
		argv++;
	}
	return run(argv[1], argv + 1);
}
