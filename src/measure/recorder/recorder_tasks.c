/* Keeps the recorded tasks, their mappings and their files up to date.
 *
 * The records of the side-band tell of forks, mappings and ends.  If an EXIT record was lost, a
 * recorder that runs for hours finds out: from time to time it checks which tasks still exist.  A
 * task leaves the kernel's table only after its EXIT was written.  So if both the record and this
 * check report an end, they do so within two passes, which task/task.h allows for.
 *
 * The build-ids of the mapped files are collected for the list behind the data.  They are read at
 * the end; each file is opened for it.  For a file that no process maps any more, the build-id is
 * read when the recorder forgets the file.  Only path and build-id are kept of such files, for at
 * most 32,768 files per output file; the list lacks further ones.
 */
#include "recorder/recorder_tasks.h"

#include "base/vector.h"
#include "object/object.h"
#include "perfdata/perfdata.h"
#include "task/jit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- records ------------------------------------------------------------- */

int tally_recorder_take_task(struct tally_recorder_tasks *tasks, const struct tally_record *record,
			     struct tally_error *err)
{
	int result = tally_tasks_record(&tasks->known, record);
	if (result < 0)
		goto out_of_memory;
	result = tally_endings_record(&tasks->endings, record);
	if (result < 0)
		goto out_of_memory;
	if (!tasks->objects.is_live)
		return 0;
	result = tally_perf_maps_record(&tasks->perf_maps, &tasks->known, record);
	if (result < 0)
		goto out_of_memory;
	result = tally_jit_files_record(&tasks->jit_files, record);
	if (result < 0)
		goto out_of_memory;
	return 0;

out_of_memory:
	return tally_error_set(err, result, "out of memory");
}

int tally_recorder_apply_task_record(struct tally_recorder_tasks *tasks,
				     const struct tally_record *record, struct tally_error *err)
{
	int result = tally_recorder_take_task(tasks, record, err);
	if (result < 0)
		return result;
	tally_objects_record(&tasks->objects, &tasks->known, record);
	if (tasks->objects.live_jits)
		tally_live_jits_record(tasks->objects.live_jits, record);
	return 0;
}

/* ---- tasks whose EXIT was lost ------------------------------------------- */

static const uint64_t PAUSE_NS = 60000000000;

static bool lives(uint32_t pid, uint32_t tid)
{
	/* the kernel's idle tasks, and tasks past their end */
	if ((int32_t)pid <= 0 || (int32_t)tid <= 0)
		return true;
	return !syscall(SYS_tgkill, pid, tid, 0) || errno != ESRCH;
}

static int end(struct tally_recorder_tasks *tasks, uint32_t pid, uint32_t tid,
	       struct tally_error *err)
{
	struct tally_record record = { .header.type = TALLY_RECORD_EXIT };
	record.task.pid = pid;
	record.task.tid = tid;
	return tally_recorder_take_task(tasks, &record, err);
}

int tally_recorder_end_gone(struct tally_recorder_tasks *tasks, uint64_t now_ns,
			    struct tally_error *err)
{
	/* A flight recorder's tasks are those of an earlier time. */
	if (!tasks->objects.is_live || tasks->session->options.overwrite || now_ns < tasks->gone_at)
		return 0;
	bool is_first = !tasks->gone_at;
	int result = 0;
	tasks->gone_at = now_ns + PAUSE_NS;
	for (size_t i = 0; !is_first && !result && i < tasks->known.threads.count; i++) {
		const struct tally_thread *thread = &tasks->known.threads.items[i];
		if (!lives(thread->pid, thread->tid))
			result = end(tasks, thread->pid, thread->tid, err);
	}
	for (size_t i = 0; !is_first && !result && i < tasks->known.processes.count; i++) {
		uint32_t pid = tasks->known.processes.items[i].pid;
		if (!lives(pid, pid))
			result = end(tasks, pid, pid, err);
	}
	return result;
}

/* ---- files --------------------------------------------------------------- */

enum { FILES_MAX = 16384, FORGOTTEN_MAX = 32768 };

/* When too many files are open, closes those not used for longest. */
static void trim_objects(struct tally_recorder_tasks *tasks)
{
	static const struct tally_objects_budget budget = { .bytes = 32 << 20,
							    .mapped = 1 << 30,
							    .objects = 512 };
	if (tasks->objects.is_live)
		tally_objects_trim(&tasks->objects, &budget);
}

/* Interns what the list has for a file.  Returns TALLY_STRING_NONE without memory. */
static uint32_t intern_file(struct tally_strings *files, const char *path,
			    const struct tally_build_id *id)
{
	char hex[2 * TALLY_BUILD_ID_MAX + 1];
	struct tally_buffer text = { 0 };
	tally_build_id_format(id, hex);
	tally_buffer_printf(&text, "%s %s", hex, path);
	uint32_t file = TALLY_STRING_NONE;
	if (!text.failed)
		file = tally_strings_intern(files, tally_buffer_string(&text));
	tally_buffer_release(&text);
	return file;
}

static int keep(void *context, const char *path, const struct tally_build_id *id)
{
	struct tally_recorder_forgotten *forgotten = context;
	if (forgotten->files.count >= FORGOTTEN_MAX)
		return 0;
	uint32_t at = intern_file(&forgotten->files, path, id);
	if (at == TALLY_STRING_NONE)
		return -ENOMEM;
	return at == forgotten->ids.count ? tally_vector_push(&forgotten->ids, *id) : 0;
}

/* Forgets files that no process maps any more, except the most recent. */
static int forget_files(struct tally_recorder_tasks *tasks, struct tally_error *err)
{
	/* The user of take_sample may refer to files by their ids. */
	if (!tasks->objects.is_live || tasks->session->options.take_sample)
		return 0;
	int result = tally_objects_forget(&tasks->objects, &tasks->known, FILES_MAX,
					  tasks->session->is_pipe ? NULL : keep, &tasks->forgotten);
	return result < 0 ? tally_error_set(err, result, "out of memory") : 0;
}

void tally_recorder_forgotten_release(struct tally_recorder_forgotten *forgotten)
{
	tally_strings_release(&forgotten->files);
	tally_vector_release(&forgotten->ids);
}

static void put(struct tally_buffer *bytes, uint16_t misc, const char *path,
		const struct tally_build_id *id)
{
	struct tally_recorded_build_id record = {
		.pid = UINT32_MAX, .misc = misc, .size = id->size, .filename = path
	};
	memcpy(record.bytes, id->bytes, id->size);
	if (id->size)
		tally_feature_build_id(bytes, &record);
}

static void put_kernel(struct tally_buffer *bytes)
{
	struct tally_buffer notes = { 0 };
	struct tally_build_id id;
	if (!tally_buffer_read_file(&notes, AT_FDCWD, "/sys/kernel/notes", 1 << 16) &&
	    tally_build_id_from_notes(notes.bytes, notes.length, &id))
		put(bytes, TALLY_MISC_KERNEL, "[kernel.kallsyms]", &id);
	tally_buffer_release(&notes);
}

/* The files of one path. */
struct listed_path {
	bool has;   /* there is a build-id */
	bool lacks; /* a file without one had the path, too */
};

static void note_build_id(struct listed_path *path, bool has_build_id)
{
	path->has |= has_build_id;
	path->lacks |= !has_build_id;
}

static void put_forgotten(const struct tally_recorder_forgotten *forgotten,
			  struct tally_strings *done, struct tally_buffer *bytes)
{
	for (uint32_t i = 0; i < forgotten->ids.count; i++) {
		const char *path = strchr(tally_strings_text(&forgotten->files, i), ' ') + 1;
		size_t before = done->count;
		if (intern_file(done, path, &forgotten->ids.items[i]) == before)
			put(bytes, TALLY_MISC_USER, path, &forgotten->ids.items[i]);
	}
}

static struct tally_build_id id_of(struct tally_recorder_tasks *tasks, uint32_t file)
{
	const struct tally_mapped_file *mapped = &tasks->known.files.items[file];
	char module[TALLY_MODULE_NAME_BYTES];
	struct tally_build_id id = { 0 };
	const struct tally_build_id *of_file;
	if (!mapped->is_kernel) {
		of_file = tally_objects_file_build_id(&tasks->objects, &tasks->known, file);
		return of_file ? *of_file : id;
	}
	if (tasks->objects.is_live && !mapped->is_symbol &&
	    tally_module_name(tally_tasks_path(&tasks->known, file), module))
		tally_module_loaded_build_id(module, &id);
	return id;
}

/* The list knows files by their paths.  A path that several files had is listed with each build-id.
 * If one of them has none, the list must not give it another's. */
int tally_recorder_build_ids(struct tally_recorder_tasks *tasks, struct tally_buffer *bytes,
			     struct tally_error *err)
{
	const struct tally_tasks *known = &tasks->known;
	struct tally_strings done = { 0 };
	struct listed_path *paths = calloc(known->strings.count + 1, sizeof(*paths));
	if (!paths)
		return tally_error_set(err, -ENOMEM, "out of memory");
	put_kernel(bytes);
	for (uint32_t file = 0; file < known->files.count; file++) {
		note_build_id(&paths[known->files.items[file].path], id_of(tasks, file).size);
		trim_objects(tasks);
	}
	for (uint32_t file = 0; file < known->files.count; file++) {
		const struct tally_mapped_file *mapped = &known->files.items[file];
		const char *path = tally_tasks_path(known, file);
		size_t before = done.count;
		if (!paths[mapped->path].has || paths[mapped->path].lacks)
			continue;
		const struct tally_build_id id = id_of(tasks, file);
		if (intern_file(&done, path, &id) == before)
			put(bytes, mapped->is_kernel ? TALLY_MISC_KERNEL : TALLY_MISC_USER, path,
			    &id);
		trim_objects(tasks);
	}
	put_forgotten(&tasks->forgotten, &done, bytes);
	tally_strings_release(&done);
	free(paths);
	return bytes->failed ? tally_error_set(err, -ENOMEM, "out of memory") : 0;
}

/* ---- passes -------------------------------------------------------------- */

void tally_recorder_tasks_begin_pass(struct tally_recorder_tasks *tasks)
{
	if (tasks->objects.made_code)
		tally_made_code_pass(tasks->objects.made_code);
	if (tasks->objects.live_jits)
		tally_live_jits_pass(tasks->objects.live_jits, &tasks->known);
}

int tally_recorder_tasks_end_pass(struct tally_recorder_tasks *tasks, uint64_t now_ns, bool last,
				  struct tally_error *err)
{
	int result = tally_recorder_end_gone(tasks, now_ns, err);
	tally_endings_pass(&tasks->endings, &tasks->known);
	tally_perf_maps_look(&tasks->perf_maps, now_ns, last);
	trim_objects(tasks);
	return result ? result : forget_files(tasks, err);
}

void tally_recorder_tasks_release(struct tally_recorder_tasks *tasks)
{
	tally_made_code_free(tasks->objects.made_code);
	tally_live_jits_free(tasks->objects.live_jits);
	tally_objects_release(&tasks->objects);
	tally_tasks_release(&tasks->known);
	tally_endings_release(&tasks->endings);
	tally_perf_maps_release(&tasks->perf_maps);
	tally_jit_files_release(&tasks->jit_files);
	tally_recorder_forgotten_release(&tasks->forgotten);
	tally_recorder_build_ids_release(&tasks->build_ids);
	if (tasks->modules.fd > 0)
		close(tasks->modules.fd);
	tally_vector_release(&tasks->modules.known);
	tally_vector_release(&tasks->modules.now);
}
