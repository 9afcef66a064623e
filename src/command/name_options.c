/* Checks folders, files and servers when options are parsed: a mistake is reported before a
 * recording is read. */
#include "command/name_options.h"

#include "view/view_progress.h"
#include "object/debuginfod.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int tally_name_take_folder(void *request, const struct tally_option *option, const char *value,
			   struct tally_error *err)
{
	struct stat status;
	if (stat(value, &status) < 0)
		return tally_error_set(err, -errno, "option --%s: %s: %s", option->name, value,
				       tally_errno_text(-errno));
	if (!S_ISDIR(status.st_mode))
		return tally_error_set(err, -ENOTDIR, "option --%s: %s is not a directory",
				       option->name, value);
	return tally_option_store(request, option, value, err);
}

/* Checks the file: /boot has compressed images, which are not usable. */
int tally_name_take_vmlinux(void *request, const struct tally_option *option, const char *value,
			    struct tally_error *err)
{
	struct tally_error why = TALLY_ERROR_NONE;
	struct tally_object *object;
	int rc = tally_object_open(AT_FDCWD, value, &object, &why);
	if (rc < 0)
		return tally_error_set(
			err, rc, "option --vmlinux: %s%s", why.message,
			rc != -ENOEXEC
				? ""
				: " (use the uncompressed kernel; Debian: package "
				  "linux-image-RELEASE-dbg)");
	tally_object_unref(object);
	return tally_option_store(request, option, value, err);
}

int tally_name_take_file(void *request, const struct tally_option *option, const char *value,
			 struct tally_error *err)
{
	if (access(value, R_OK) < 0)
		return tally_error_set(err, -errno, "option --%s: %s can't be read: %s",
				       option->name, value, tally_errno_text(-errno));
	return tally_option_store(request, option, value, err);
}

int tally_name_take_debuginfod(void *request, const struct tally_option *option, const char *value,
			       struct tally_error *err)
{
	struct tally_name_sources *sources = tally_option_member(request, option);
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
	return 0;
}
