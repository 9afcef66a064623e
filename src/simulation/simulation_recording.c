/* Writes a simulation's perf.data file, and the object with the names beside it. */
#include "simulation/simulation_state.h"

#include "perfdata/feature.h"
#include "tally/tracepoint.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns -EINVAL unless the path is a regular file or doesn't exist.  /dev/null is refused as
 * well: root would leave a null.elf beside it. */
static int check_regular(struct simulation *simulation, const char *path)
{
	struct stat there;
	if (stat(path, &there) < 0 || S_ISREG(there.st_mode))
		return 0;
	tally_error_set(simulation->err, -EINVAL, "%s is not a regular file", path);
	tally_error_hint(
		simulation->err,
		"-o FILE writes samples to FILE, and the functions' names to FILE.elf");
	return -EINVAL;
}

static int write_object(struct simulation *simulation)
{
	struct tally_buffer bytes = { 0 };
	char relative[PATH_MAX], resolved[PATH_MAX];
	if (snprintf(relative, sizeof(relative), "%s.elf", simulation->options->output_path) >=
	    (int)sizeof(relative))
		return tally_error_set(simulation->err, -ENAMETOOLONG,
				       "the output's path is too long");
	if (check_regular(simulation, relative) < 0)
		return -EINVAL;
	if (simulation_object_write(simulation->scenario, &bytes) < 0) {
		tally_buffer_release(&bytes);
		return simulation_out_of_memory(simulation);
	}
	int fd = open(relative, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	ssize_t wrote = fd < 0 ? -1 : write(fd, bytes.bytes, bytes.length);
	int code = wrote == (ssize_t)bytes.length ? 0 : wrote < 0 ? -errno : -EIO;
	if (fd >= 0)
		close(fd);
	tally_buffer_release(&bytes);
	if (code < 0)
		return tally_error_set(simulation->err, code, "%s can't be written: %s", relative,
				       tally_errno_text(code));
	if (!realpath(relative, resolved))
		return tally_error_set(simulation->err, -errno, "%s: %s", relative,
				       tally_errno_text(-errno));
	snprintf(simulation->object_path, sizeof(simulation->object_path), "%s", resolved);
	return 0;
}

int simulation_recording_begin(struct simulation *simulation)
{
	const char *path = simulation->options->output_path;
	bool samples = false;
	if (!path)
		return 0;
	for (unsigned i = 0; i < simulation->scenario->part_count; i++)
		samples |= simulation->scenario->parts[i].kind == SCENARIO_SAMPLE;
	if (!samples) {
		tally_error_set(simulation->err, -EINVAL,
				"nothing is sampled in %s: there is nothing to record",
				simulation->options->scenario_name);
		tally_error_hint(
			simulation->err,
			"add a line like 'sample cycles of TASK every 100000 with stacks', or leave -o out");
		return -EINVAL;
	}
	if (check_regular(simulation, path) < 0)
		return -EINVAL;
	simulation->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (simulation->fd < 0)
		return tally_error_set(simulation->err, -errno, "%s can't be written: %s", path,
				       tally_errno_text(-errno));
	return write_object(simulation);
}

static void describe(struct tally_recorded_event *to, const struct simulation_source *source,
		     const char *name)
{
	*to = (struct tally_recorded_event){ .attr = source->written,
					     .name = name,
					     .ids = source->ids,
					     .id_count = source->id_count };
}

int simulation_recording_start(struct simulation *simulation)
{
	const struct scenario *scenario = simulation->scenario;
	size_t count = 1;
	if (simulation->fd < 0)
		return 0;
	for (unsigned i = 0; i < scenario->part_count; i++)
		count += simulation->parts[i].rings ? simulation->parts[i].events.count : 0;
	simulation->recorded = tally_arena_array(&simulation->arena, count,
						 sizeof(*simulation->recorded));
	if (!simulation->recorded)
		return simulation_out_of_memory(simulation);
	for (unsigned i = 0; i < scenario->part_count; i++)
		for (size_t j = 0;
		     simulation->parts[i].rings && j < simulation->parts[i].events.count; j++)
			describe(&simulation->recorded[simulation->recorded_count++],
				 &simulation->parts[i].sources[j],
				 simulation->parts[i].events.items[j].name);
	describe(&simulation->recorded[simulation->recorded_count++], &simulation->side_band,
		 "dummy:HG");
	const struct tally_perfdata_options options = { .compression_level = 0 };
	return tally_perfdata_writer_new(simulation->fd, simulation->recorded,
					 simulation->recorded_count, &options, &simulation->writer,
					 simulation->err);
}

int simulation_recording_write(struct simulation *simulation, const void *records, size_t size)
{
	return simulation->writer
		       ? tally_perfdata_write(simulation->writer, records, size, simulation->err)
		       : 0;
}

/* Describes each kernel function as code made at run time, since no file has them. */
static void name_kernel(struct simulation *simulation)
{
	const struct scenario *scenario = simulation->scenario;
	for (unsigned i = 0; i < scenario->function_count; i++) {
		const struct scenario_function *function = &scenario->functions[i];
		if (function->is_kernel)
			tally_engine_ksymbol(sim_engine(simulation->machine), function->address,
					     (uint32_t)function->size, TALLY_KSYMBOL_OUT_OF_LINE,
					     false, function->name);
	}
	simulation->kernel_is_named = true;
}

void simulation_recording_map(struct simulation *simulation, struct scenario_instance *instance)
{
	if (!simulation->object_path[0])
		return;
	if (!simulation->kernel_is_named)
		name_kernel(simulation);
	struct stat file = { 0 };
	stat(simulation->object_path, &file);
	const struct tally_engine_mapping mapping = {
		.address = 0x400000,
		.length = SCENARIO_CODE_END - 0x400000,
		.inode = file.st_ino,
		.protection = PROT_READ | PROT_EXEC,
		.flags = MAP_PRIVATE,
		.path = simulation->object_path,
	};
	tally_engine_mmap_record(sim_engine_task(instance->task), &mapping);
}

/* --- features ------------------------------------------------------------- */

static int put(struct simulation *simulation, unsigned feature, struct tally_buffer *bytes)
{
	int code = bytes->failed
			   ? simulation_out_of_memory(simulation)
			   : tally_perfdata_write_feature(simulation->writer, feature, bytes->bytes,
							  bytes->length, simulation->err);
	tally_buffer_clear(bytes);
	return code;
}

static int put_texts(struct simulation *simulation, struct tally_buffer *bytes)
{
	const char *model = simulation->scenario->machine.model;
	bool is_arm = !strncmp(model, "arm", 3) || !strcmp(model, "big.LITTLE");
	/* No kernel has this release, so no reader takes this machine's kernel for the simulated
	 * one. */
	const struct { unsigned feature; const char *text;
	} texts[] = {
		{ TALLY_FEATURE_HOSTNAME, "sim" },
		{ TALLY_FEATURE_OSRELEASE, "simulated" },
		{ TALLY_FEATURE_ARCH, is_arm ? "aarch64" : "x86_64" },
		{ TALLY_FEATURE_VERSION, "tally " TALLY_VERSION },
		{ TALLY_FEATURE_CPUDESC, model },
	};
	int code = 0;
	for (size_t i = 0; !code && i < sizeof(texts) / sizeof(texts[0]); i++) {
		tally_feature_string(bytes, texts[i].text);
		code = put(simulation, texts[i].feature, bytes);
	}
	return code;
}

static int put_command(struct simulation *simulation, struct tally_buffer *bytes)
{
	int argc = simulation->options->argc;
	const char **words = tally_arena_array(&simulation->arena, (size_t)argc + 1,
					       sizeof(*words));
	if (!words)
		return simulation_out_of_memory(simulation);
	words[0] = "tally";
	for (int i = 0; i < argc; i++)
		words[i + 1] = simulation->options->argv[i];
	tally_feature_string_list(bytes, words, (size_t)argc + 1);
	return put(simulation, TALLY_FEATURE_CMDLINE, bytes);
}

static int put_numbers(struct simulation *simulation, struct tally_buffer *bytes)
{
	unsigned cpus = simulation->scenario->machine.cpus;
	tally_feature_nrcpus(bytes, cpus, cpus);
	int code = put(simulation, TALLY_FEATURE_NRCPUS, bytes);
	tally_feature_event_desc(bytes, simulation->recorded, simulation->recorded_count);
	if (!code)
		code = put(simulation, TALLY_FEATURE_EVENT_DESC, bytes);
	tally_feature_u64(bytes, 1);
	if (!code)
		code = put(simulation, TALLY_FEATURE_CLOCKID, bytes);
	if (!code && simulation->last_sample_ns) {
		tally_feature_sample_time(bytes, simulation->first_sample_ns,
					  simulation->last_sample_ns);
		code = put(simulation, TALLY_FEATURE_SAMPLE_TIME, bytes);
	}
	return code;
}

static bool is_recorded(const struct simulation *simulation, const struct tally_trace_event *event)
{
	for (size_t i = 0; i < simulation->recorded_count; i++)
		if (simulation->recorded[i].attr.type == TALLY_TYPE_TRACEPOINT &&
		    simulation->recorded[i].attr.config == event->id)
			return true;
	return false;
}

/* Tracepoints of one group are registered together, so they are adjacent here. */
static int put_tracepoints(struct simulation *simulation, struct tally_buffer *bytes)
{
	enum { FORMATS_MAX = 64, FORMAT_BYTES = 8192 };
	struct tally_tracing_format formats[FORMATS_MAX];
	/* perf refuses a file without these, although it doesn't use them: there are no records of
	 * a trace buffer. */
	static const char page[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				   "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				   "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
	struct tally_tracing_data data = { .formats = formats,
					   .header_page = page,
					   .header_event = "# none\n" };
	const struct tally_trace_event *event = NULL;
	while ((event = tally_trace_next(sim_engine(simulation->machine), event))) {
		char *text = is_recorded(simulation, event) && data.format_count < FORMATS_MAX ?
				     tally_arena_alloc(&simulation->arena, FORMAT_BYTES) :
				     NULL;
		long length = text ? tally_trace_format(event, text, FORMAT_BYTES) : -1;
		if (length >= 0 && length < FORMAT_BYTES)
			formats[data.format_count++] = (struct tally_tracing_format){
				event->group, text, (size_t)length
			};
	}
	if (!data.format_count)
		return 0;
	tally_feature_tracing_data(bytes, &data);
	return put(simulation, TALLY_FEATURE_TRACING_DATA, bytes);
}

int simulation_recording_finish(struct simulation *simulation)
{
	struct tally_buffer bytes = { 0 };
	if (!simulation->writer)
		return 0;
	int code = put_texts(simulation, &bytes);
	if (!code)
		code = put_command(simulation, &bytes);
	if (!code)
		code = put_numbers(simulation, &bytes);
	if (!code)
		code = put_tracepoints(simulation, &bytes);
	if (!code)
		code = tally_perfdata_finish(simulation->writer, simulation->err);
	simulation->summary->bytes = tally_perfdata_writer_bytes(simulation->writer);
	for (unsigned i = 0; i < simulation->scenario->part_count; i++)
		simulation->summary->samples += simulation->parts[i].samples;
	tally_buffer_release(&bytes);
	return code;
}

void simulation_recording_release(struct simulation *simulation)
{
	if (simulation->writer)
		tally_perfdata_writer_free(simulation->writer);
	if (simulation->fd >= 0)
		close(simulation->fd);
}
