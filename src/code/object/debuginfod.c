/* Calls libdebuginfod, whose settings go through the environment.  A server may send without end,
 * so two limits act during a fetch: the progress callback counts received bytes, and RLIMIT_FSIZE
 * stops the written file. */
#include "object/object.h"

#include "base/environment.h"
#include "base/input_limits.h"
#include "base/loaded.h"
#include "object/cache.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARY "libdebuginfod.so.1"

struct debuginfod_client; /* libdebuginfod's */

struct tally_debuginfod {
	struct debuginfod_client *client;
	tally_debuginfod_progress *progress;
	void *context;
	bool has_given_up;
	uint64_t bytes, bytes_max; /* received of all files; of the one that is being fetched */
	bool is_too_large;         /* the one that is being fetched */
	/* declared in elfutils/debuginfod.h */
	struct debuginfod_client *(*begin)(void);
	int (*find_debuginfo)(struct debuginfod_client *client, const unsigned char *id, int size,
			      char **path);
	int (*find_executable)(struct debuginfod_client *client, const unsigned char *id, int size,
			       char **path);
	void (*set_progress)(struct debuginfod_client *client,
			     int (*call)(struct debuginfod_client *, long, long));
	void (*set_user_data)(struct debuginfod_client *client, void *data);
	void (*end)(struct debuginfod_client *client);
};

static bool load(struct tally_debuginfod *server)
{
	/* It stays loaded: the libraries that it loads (libcurl, TLS) leak when they are unloaded,
	 * and would start anew each time. */
	void *library = tally_loaded_open(LIBRARY);
	return tally_loaded_find(library, "debuginfod_begin", &server->begin) &&
	       tally_loaded_find(library, "debuginfod_end", &server->end) &&
	       tally_loaded_find(library, "debuginfod_find_debuginfo",
				 &server->find_debuginfo) &&
	       tally_loaded_find(library, "debuginfod_find_executable",
				 &server->find_executable) &&
	       tally_loaded_find(library, "debuginfod_set_progressfn",
				 &server->set_progress) &&
	       tally_loaded_find(library, "debuginfod_set_user_data",
				 &server->set_user_data);
}

/* The callback gets only the library's client.  The client's user data is our server;
 * debuginfod_get_user_data() returns it. */
static int on_progress(struct debuginfod_client *client, long done, long total)
{
	void *(*get_user_data)(struct debuginfod_client *client);
	void *library = tally_loaded_open(LIBRARY);
	bool found = tally_loaded_find(library, "debuginfod_get_user_data", &get_user_data);
	struct tally_debuginfod *server = NULL;
	if (found)
		server = get_user_data(client);
	if (library)
		dlclose(library);
	if (server && done > 0 && (uint64_t)done > server->bytes_max)
		server->is_too_large = true;
	if (server && server->progress &&
	    !server->progress(server->context, done > 0 ? (uint64_t)done : 0,
			      total > 0 ? (uint64_t)total : 0))
		server->has_given_up = true;
	return server && (server->has_given_up || server->is_too_large);
}

/* A server may send without end, and compressed: progress counts the bytes before they are unpacked.
 * So the kernel limits the file, too, while it is being fetched. */
static volatile sig_atomic_t wrote_too_much;

static void on_file_limit(int number)
{
	(void)number;
	wrote_too_much = 1;
}

static int find(struct tally_debuginfod *server, const struct tally_build_id *id,
		enum tally_debuginfod_kind kind, char **path)
{
	struct rlimit before, during;
	struct sigaction action = { .sa_handler = on_file_limit }, action_before;
	bool is_limited = !getrlimit(RLIMIT_FSIZE, &before);
	during = before;
	if (before.rlim_cur == RLIM_INFINITY || before.rlim_cur > server->bytes_max)
		during.rlim_cur = server->bytes_max;
	sigemptyset(&action.sa_mask);
	wrote_too_much = 0;
	sigaction(SIGXFSZ, &action, &action_before);
	is_limited = is_limited && !setrlimit(RLIMIT_FSIZE, &during);
	int fd;
	if (kind == TALLY_DEBUGINFOD_DEBUG)
		fd = server->find_debuginfo(server->client, id->bytes, id->size, path);
	else
		fd = server->find_executable(server->client, id->bytes, id->size, path);
	if (is_limited)
		setrlimit(RLIMIT_FSIZE, &before);
	sigaction(SIGXFSZ, &action_before, NULL);
	server->is_too_large |= wrote_too_much;
	return fd;
}

/* Notes a file that was refused. */
static void note(const struct tally_debuginfod *server, const struct tally_build_id *id)
{
	char name[2 * TALLY_BUILD_ID_MAX + 32] = "debuginfod's file of ";
	bool is_last = server->bytes_max < tally_input_limit(TALLY_INPUT_DEBUGINFOD);
	tally_build_id_format(id, name + strlen(name));
	tally_input_note(is_last ? TALLY_INPUT_DEBUGINFOD_ALL : TALLY_INPUT_DEBUGINFOD, name);
}

/* libdebuginfod would keep files in /.cache, or where another user's links lead.  It knows them by
 * build-id, so another user must not put files there either. */
static bool has_folder(struct tally_error *err)
{
	return tally_environment("DEBUGINFOD_CACHE_PATH") || !tally_cache_check_folder(err);
}

static int refuse_without_folder(const char *distrust, const struct tally_error *why,
				 struct tally_error *err)
{
	tally_error_set(err, -EDESTADDRREQ,
			"debuginfod servers can't be asked: there is no folder for their files: %s",
			why->message);
	if (distrust)
		tally_error_hint(err,
				 "the caller's is not used, because %s; view the recording with "
				 "a tally without them: cp \"$(command -v tally)\" .",
				 distrust);
	else
		tally_error_hint(err, "set HOME, XDG_CACHE_HOME or DEBUGINFOD_CACHE_PATH");
	return -EDESTADDRREQ;
}

int tally_debuginfod_open(const char *urls, tally_debuginfod_progress *progress, void *context,
			  struct tally_debuginfod **out, struct tally_error *err)
{
	const char *known = tally_environment("DEBUGINFOD_URLS");
	const char *distrust = tally_environment_distrust();
	if (!urls && (!known || !*known)) {
		tally_error_set(err, -EDESTADDRREQ, "no debuginfod server is named");
		if (distrust)
			tally_error_hint(err,
					 "--debuginfod=https://debuginfod.debian.net; "
					 "DEBUGINFOD_URLS is ignored, because %s",
					 distrust);
		else
			tally_error_hint(err, "--debuginfod=https://debuginfod.debian.net, "
					      "or set DEBUGINFOD_URLS");
		return -EDESTADDRREQ;
	}
	struct tally_error why = TALLY_ERROR_NONE;
	if (!has_folder(&why))
		return refuse_without_folder(distrust, &why, err);
	struct tally_debuginfod *server = calloc(1, sizeof(*server));
	if (!server)
		return tally_error_set(err, -ENOMEM, "out of memory");
	*server = (struct tally_debuginfod){ .progress = progress, .context = context };
	if (!load(server)) {
		tally_debuginfod_close(server);
		return tally_loaded_refuse(err, -ENOPKG, "debuginfod servers can't be asked", LIBRARY,
					   "libdebuginfod1");
	}
	/* libdebuginfod takes its settings only from the environment. */
	bool is_set = (!urls || !setenv("DEBUGINFOD_URLS", urls, 1)) &&
		      !setenv("DEBUGINFOD_TIMEOUT", "10", 0) &&
		      !setenv("DEBUGINFOD_MAXTIME", "120", 0) &&
		      !setenv("DEBUGINFOD_RETRY_LIMIT", "1", 0);
	if (is_set)
		server->client = server->begin();
	if (!server->client) {
		tally_debuginfod_close(server);
		return tally_error_set(err, -ENOMEM, "out of memory");
	}
	server->set_user_data(server->client, server);
	server->set_progress(server->client, on_progress);
	*out = server;
	return 0;
}

int tally_debuginfod_fetch(struct tally_debuginfod *server, const struct tally_build_id *id,
			   enum tally_debuginfod_kind kind, struct tally_object **out)
{
	char *path = NULL;
	struct stat status;
	const uint64_t one = tally_input_limit(TALLY_INPUT_DEBUGINFOD),
		       all = tally_input_limit(TALLY_INPUT_DEBUGINFOD_ALL);
	if (server->has_given_up)
		return -EINTR;
	server->bytes_max = 0;
	if (all > server->bytes)
		server->bytes_max = all - server->bytes;
	if (server->bytes_max > one)
		server->bytes_max = one;
	server->is_too_large = false;
	int fd = find(server, id, kind, &path);
	if (fd < 0 && server->is_too_large) {
		server->bytes += server->bytes_max;
		note(server, id);
		return -EFBIG;
	}
	if (fd < 0)
		return server->has_given_up ? -EINTR : fd;
	if (!fstat(fd, &status))
		server->bytes += (uint64_t)status.st_size;
	int rc = tally_object_open_descriptor(fd, path ? path : "debuginfod", out, NULL);
	close(fd);
	free(path);
	if (!rc && !tally_build_id_equal(tally_object_build_id(*out), id)) {
		tally_object_unref(*out);
		rc = -ENOENT;
	}
	return rc;
}

void tally_debuginfod_close(struct tally_debuginfod *server)
{
	if (!server)
		return;
	if (server->client)
		server->end(server->client);
	free(server);
}
