/* Decides whether to trust the environment from the process's capabilities, AT_SECURE, the
 * variables of sudo and similar programs, and the owner of HOME.  Then reads variables, replaces an
 * untrusted environment, and gives the caller's own environment back to commands. */
#include "base/environment.h"

#include <linux/capability.h>
#include <linux/securebits.h>
#include <pwd.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Variables that only change how text looks, and the caller's own limits.  libc refuses names of
 * locales with a slash, and ncurses such names of terminals. */
static const char *const HARMLESS[] = {
	"TERM",   "COLUMNS",  "NO_COLOR",  "LANG",
	"LC_ALL", "LC_CTYPE", "LC_NUMERIC", "container", "KUBERNETES_SERVICE_HOST",
	"TALLY_LIMITS"
};
enum { HARMLESS_COUNT = sizeof(HARMLESS) / sizeof(HARMLESS[0]) };

#define SYSTEM_PATH "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* State of the process, as `environ` is. */
static struct {
	bool has_begun;
	const char *distrust;
	char **of_caller;
	char *clean[HARMLESS_COUNT + 3]; /* PATH, HOME, NULL */
	char home[4096];
} state;

/* ---- the decision -------------------------------------------------------- */

static bool get_capabilities(struct __user_cap_data_struct *data)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	return !syscall(SYS_capget, &header, data);
}

/* True if the process has a capability that is neither ambient (the caller had it too) nor root's.
 */
static bool has_gained_capabilities(void)
{
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };
	bool is_root = !getuid() && !(prctl(PR_GET_SECUREBITS) & SECBIT_NOROOT);
	if (is_root || !get_capabilities(data))
		return false;
	uint64_t permitted = data[0].permitted | (uint64_t)data[1].permitted << 32;
	for (unsigned bit = 0; bit < 64; bit++)
		if (permitted >> bit & 1 &&
		    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, bit, 0, 0) != 1)
			return true;
	return false;
}

static bool has_gained_rights(void)
{
	return getauxval(AT_SECURE) || has_gained_capabilities();
}

/* sudo, pkexec and doas name the user who ran them.  A shell that kept a user's HOME, as su -m
 * does, is recognised by the folder's owner. */
static bool is_root_for_another(void)
{
	static const struct {
		const char *variable, *root;
	} CALLERS[] = { { "SUDO_UID", "0" }, { "PKEXEC_UID", "0" }, { "DOAS_USER", "root" } };
	struct stat folder;
	if (geteuid())
		return false;
	for (size_t i = 0; i < sizeof(CALLERS) / sizeof(CALLERS[0]); i++) {
		const char *caller = getenv(CALLERS[i].variable);
		if (caller && strcmp(caller, CALLERS[i].root))
			return true;
	}
	const char *home = getenv("HOME");
	return home && !stat(home, &folder) && folder.st_uid;
}

const char *tally_environment_distrust(void)
{
	if (state.has_begun)
		return state.distrust;
	if (has_gained_rights())
		return "tally has rights that its caller lacks";
	if (is_root_for_another())
		return "root runs tally for another user";
	return NULL;
}

/* ---- reading ------------------------------------------------------------- */

static bool is_harmless(const char *name)
{
	for (size_t i = 0; i < HARMLESS_COUNT; i++)
		if (!strcmp(name, HARMLESS[i]))
			return true;
	return false;
}

const char *tally_environment(const char *name)
{
	bool is_clean = state.has_begun || !tally_environment_distrust();
	if (is_clean || is_harmless(name))
		return getenv(name);
	return NULL;
}

static char *entry_of(char **environment, const char *name)
{
	size_t length = strlen(name);
	for (; environment && *environment; environment++)
		if (!strncmp(*environment, name, length) && (*environment)[length] == '=')
			return *environment;
	return NULL;
}

const char *tally_environment_of_caller(const char *name)
{
	const char *entry = entry_of(state.of_caller ? state.of_caller : environ, name);
	if (!entry)
		return NULL;
	return entry + strlen(name) + 1;
}

/* ---- replacing ----------------------------------------------------------- */

/* Reads /etc/passwd itself: getpwuid(3) would load the libraries that nsswitch.conf names. */
static bool find_home_of_root(char *out, size_t size)
{
	FILE *file = fopen("/etc/passwd", "re");
	struct passwd *entry = NULL;
	while (file && (entry = fgetpwent(file)) && entry->pw_uid)
		;
	int length = 0;
	if (entry)
		length = snprintf(out, size, "HOME=%s", entry->pw_dir);
	if (file)
		fclose(file);
	return length > 0 && length < (int)size;
}

void tally_environment_begin(void)
{
	size_t count = 0;
	state.distrust = tally_environment_distrust();
	state.has_begun = true;
	if (!state.distrust)
		return;
	state.of_caller = environ;
	for (size_t i = 0; i < HARMLESS_COUNT; i++) {
		char *entry = entry_of(state.of_caller, HARMLESS[i]);
		if (entry)
			state.clean[count++] = entry;
	}
	state.clean[count++] = (char *)(uintptr_t)SYSTEM_PATH;
	/* Without a HOME nothing is kept for, or read from, the caller's folders. */
	if (!has_gained_rights() && find_home_of_root(state.home, sizeof(state.home)))
		state.clean[count++] = state.home;
	environ = state.clean;
}

/* ---- commands that tally starts ------------------------------------------ */

void tally_environment_drop_rights(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };
	if (!has_gained_rights())
		return;
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	/* Both fail only where they could give nothing: the group and user before this one are the
	 * real ones. */
	if (setresgid(getgid(), getgid(), getgid()) < 0 ||
	    setresuid(getuid(), getuid(), getuid()) < 0 || syscall(SYS_capset, &header, none) < 0)
		_exit(127);
}

void tally_environment_give_back(void)
{
	tally_environment_drop_rights();
	if (state.of_caller)
		environ = state.of_caller;
}
