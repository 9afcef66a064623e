#include "command/name_options.h"

#include "command/fetch_progress.h"
#include "object/debuginfod.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int take_folder(const char *option, const char *value, const char **out,
		       struct tally_error *err)
{
	struct stat status;
	*out = value;
	if (stat(value, &status) < 0)
		return tally_error_set(err, -errno, "option --%s: %s: %s", option, value,
				       tally_errno_text(-errno));
	if (!S_ISDIR(status.st_mode))
		return tally_error_set(err, -ENOTDIR, "option --%s: %s is not a directory", option,
				       value);
	return 1;
}

/* Checks the file: /boot has compressed images, which are not usable. */
static int take_vmlinux(const char *value, const char **out, struct tally_error *err)
{
	struct tally_error why = TALLY_ERROR_NONE;
	struct tally_object *object;
	int rc = tally_object_open(AT_FDCWD, value, &object, &why);
	*out = value;
	if (rc < 0)
		return tally_error_set(
			err, rc, "option --vmlinux: %s%s", why.message,
			rc != -ENOEXEC
				? ""
				: " (use the uncompressed kernel; Debian: package "
				  "linux-image-RELEASE-dbg)");
	tally_object_unref(object);
	return 1;
}

static int take_file(const char *option, const char *value, const char **out,
		     struct tally_error *err)
{
	*out = value;
	if (access(value, R_OK) < 0)
		return tally_error_set(err, -errno, "option --%s: %s can't be read: %s", option,
				       value, tally_errno_text(-errno));
	return 1;
}

static int take_debuginfod(const char *value, struct tally_name_sources *sources,
			   struct tally_error *err)
{
	struct tally_debuginfod *server;
	struct tally_error why = TALLY_ERROR_NONE;
	int rc = tally_debuginfod_open(value, NULL, NULL, &server, &why);
	if (rc < 0)
		return tally_error_set(err, rc, "option --debuginfod: %s (%s)", why.message,
				       why.hint);
	tally_debuginfod_close(server);
	sources->asks_debuginfod = true;
	sources->debuginfod_urls = value;
	tally_fetch_progress_use(sources);
	return 1;
}

int tally_name_option(int id, const char *value, struct tally_name_sources *sources,
		      struct tally_error *err)
{
	switch (id) {
	case TALLY_OPTION_SYMFS: return take_folder("symfs", value, &sources->search.root, err);
	case TALLY_OPTION_BUILD_IDS:
		return take_folder("buildid-dir", value, &sources->search.build_ids, err);
	case TALLY_OPTION_VMLINUX: return take_vmlinux(value, &sources->vmlinux, err);
	case TALLY_OPTION_KALLSYMS: return take_file("kallsyms", value, &sources->kallsyms, err);
	case TALLY_OPTION_MODULES: sources->modules = true; return 1;
	case TALLY_OPTION_FULL_NAMES: sources->full_names = true; return 1;
	case TALLY_OPTION_DEBUGINFOD: return take_debuginfod(value, sources, err);
	default: return 0;
	}
}
