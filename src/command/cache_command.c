/* tally cache: lists and clears the user's cache of data about objects, which saves reading debug
 * information again. */
#include "base/extremes.h"
#include "base/number_text.h"
#include "base/terminal.h"
#include "base/text.h"
#include "base/vector.h"
#include "command/command.h"
#include "object/cache.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct request {
	bool wants_list, wants_clear;
};

static const struct tally_option options[] = {
	{ 0, "list", TALLY_ARGUMENT_NONE, NULL, "list the contents, last used first (the default)",
	  TALLY_SET(struct request, wants_list) },
	{ 0, "clear", TALLY_ARGUMENT_NONE, NULL, "remove everything",
	  TALLY_SET(struct request, wants_clear) },
	TALLY_OPTIONS_END,
};

/* All blobs of one kind of one object. */
struct cached {
	struct tally_build_id id;
	char kind[TALLY_CACHE_KIND_MAX + 1];
	uint64_t blobs, bytes;
	int64_t used_s;
	char *object_path;
};

struct listing {
	TALLY_VECTOR(struct cached) rows;
	uint64_t blobs, bytes;
};

static int by_object(const void *a, const void *b)
{
	const struct cached *left = a, *right = b;
	int order = memcmp(&left->id, &right->id, sizeof(left->id));
	if (order)
		return order;
	return strcmp(left->kind, right->kind);
}

static const char *text_or_dash(const char *text)
{
	if (*text)
		return text;
	return "-";
}

static int by_use(const void *a, const void *b)
{
	const struct cached *left = a, *right = b;
	if (left->used_s != right->used_s)
		return left->used_s > right->used_s ? -1 : 1;
	return by_object(a, b);
}

static int add(void *context, const struct tally_cache_entry *entry)
{
	struct listing *listing = context;
	struct cached row = { .id = entry->id,
			      .blobs = 1,
			      .bytes = entry->file_bytes,
			      .used_s = entry->used_s };
	if (entry->kind[0])
		row.object_path = strdup(entry->object_path);
	else
		row.object_path = strdup("damaged, or of another version");
	memcpy(row.kind, entry->kind, sizeof(row.kind));
	listing->blobs++;
	listing->bytes += entry->file_bytes;
	if (!row.object_path || tally_vector_push(&listing->rows, row) < 0) {
		free(row.object_path);
		return -ENOMEM;
	}
	return 0;
}

/* Merges rows: one for each object and kind. */
static void sum_up(struct listing *listing)
{
	struct cached *rows = listing->rows.items;
	size_t kept = 0;
	if (listing->rows.count)
		qsort(rows, listing->rows.count, sizeof(*rows), by_object);
	for (size_t i = 1; i < listing->rows.count; i++) {
		if (by_object(&rows[kept], &rows[i])) {
			rows[++kept] = rows[i];
			continue;
		}
		rows[kept].blobs += rows[i].blobs;
		rows[kept].bytes += rows[i].bytes;
		rows[kept].used_s = tally_max_i64(rows[i].used_s, rows[kept].used_s);
		free(rows[i].object_path);
	}
	if (!listing->rows.count)
		return;
	listing->rows.count = kept + 1;
	qsort(rows, listing->rows.count, sizeof(*rows), by_use);
}

static void release(struct listing *listing)
{
	for (size_t i = 0; i < listing->rows.count; i++)
		free(listing->rows.items[i].object_path);
	tally_vector_release(&listing->rows);
}

static const char *age_text(int64_t seconds, char text[32])
{
	if (seconds < 7200) /* times of use are exact to the hour */
		snprintf(text, 32, "%s", "now");
	else if (seconds < 2 * 86400)
		snprintf(text, 32, "%lld h", (long long)(seconds / 3600));
	else
		snprintf(text, 32, "%lld d", (long long)(seconds / 86400));
	return text;
}

static void print_row(const struct cached *row, int64_t now)
{
	char id[2 * TALLY_BUILD_ID_MAX + 1], size[TALLY_SIZE_TEXT], age[32],
		path[TALLY_CACHE_PATH_MAX];
	tally_build_id_format(&row->id, id);
	tally_terminal_clean_name(row->object_path, path, sizeof(path));
	printf("%10s  %5llu  %6s  %-*s  %-40s  %s\n", tally_size_text(row->bytes, size),
	       (unsigned long long)row->blobs, age_text(now - row->used_s, age),
	       TALLY_CACHE_KIND_MAX, text_or_dash(row->kind), text_or_dash(id), path);
}

static int list(struct tally_disk_cache *cache, struct tally_error *err)
{
	struct listing listing = { 0 };
	char used[TALLY_SIZE_TEXT], most[TALLY_SIZE_TEXT], folder[TALLY_CACHE_PATH_MAX];
	int status = tally_cache_list(cache, add, &listing);
	if (status) {
		release(&listing);
		return tally_error_set(err, status, "%s can't be read: %s",
				       tally_cache_folder(cache), tally_errno_text(status));
	}
	sum_up(&listing);
	tally_terminal_clean_name(tally_cache_folder(cache), folder, sizeof(folder));
	printf("%s: %s of at most %s\n", folder, tally_size_text(listing.bytes, used),
	       tally_size_text(tally_cache_bytes_max(cache), most));
	if (listing.rows.count)
		printf("\n%10s  %5s  %6s  %-*s  %-40s  %s\n", "SIZE", "BLOBS", "USED",
		       TALLY_CACHE_KIND_MAX, "KIND", "BUILD-ID", "OBJECT");
	for (size_t i = 0; i < listing.rows.count; i++)
		print_row(&listing.rows.items[i], time(NULL));
	release(&listing);
	return 0;
}

static int clear(struct tally_disk_cache *cache, struct tally_error *err)
{
	uint64_t files, bytes;
	char size[TALLY_SIZE_TEXT];
	int status = tally_cache_clear(cache, &files, &bytes);
	printf("removed %s blob%s, %s\n", tally_number(files), tally_plural(files),
	       tally_size_text(bytes, size));
	if (status < 0)
		return tally_error_set(err, status, "%s can't be cleared: %s",
				       tally_cache_folder(cache), tally_errno_text(status));
	return 0;
}

static int run(const struct tally_command *command, int argc, char **argv)
{
	struct tally_options walk = TALLY_OPTIONS_INIT(command, argc, argv);
	struct tally_error err = TALLY_ERROR_NONE;
	struct request request = { 0 };
	int status = 0;
	if (!tally_options_parse(&walk, &request))
		return walk.status;
	if (walk.index < argc)
		return tally_command_misuse(command, "unexpected argument '%s'",
					    argv[walk.index]);
	struct tally_disk_cache *cache = tally_cache_open(&err);
	if (!cache) {
		printf("no cache: %s\n", err.message);
		return TALLY_EXIT_OK;
	}
	if (request.wants_list || !request.wants_clear)
		status = list(cache, &err);
	if (!status && request.wants_clear)
		status = clear(cache, &err);
	tally_cache_close(cache);
	if (status)
		return tally_command_fail(command, &err);
	return TALLY_EXIT_OK;
}

const struct tally_command tally_command_cache = {
	.name = "cache",
	.summary = "list or clear the cache of data about programs and libraries",
	.usage = "[--list] [--clear]",
	.details =
		"Symbols, lines and inlined functions of an object are computed once and cached, "
		"in\n"
		"$XDG_CACHE_HOME/tally or ~/.cache/tally, so that the next report of the same "
		"programs starts at once.\n"
		"A file that was written anew, or another file, has an entry of its own.  The "
		"folder must be the user's:\n"
		"root has no cache with another user's HOME.\n"
		"The cache may be removed at any time, even while tally runs: tally computes it "
		"again.\n\n"
		"TALLY_CACHE_BYTES limits its size, such as 2G (default 512M; 0: no cache).  "
		"Beyond that, the least\n"
		"recently used data are removed.\n\n"
		"  tally cache\n"
		"  tally cache --clear",
	.options = options,
	.run = run,
};
