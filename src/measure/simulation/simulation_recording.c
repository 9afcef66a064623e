/* Writes a simulation's perf.data file, and beside it the object with the names. */
#include "simulation/simulation_state.h"

#include "base/extremes.h"
#include "base/output_path.h"
#include "base/safe_file.h"
#include "perfdata/perfdata.h"
#include "tally/tracepoint.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- the object ---------------------------------------------------------- */

#define LOAD_ADDRESS 0x400000u
#define PAGE_BYTES 4096

enum { NOTHING, TEXT, SYMBOLS, STRINGS, SECTION_NAMES, SECTIONS };

struct tables {
	struct tally_buffer symbols, names;
	uint64_t text_end;
};

static void add_symbol(struct tables *tables, const struct scenario_function *function)
{
	Elf64_Sym symbol = { .st_name = (Elf64_Word)tables->names.length,
			     .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			     .st_shndx = TEXT,
			     .st_value = function->address,
			     .st_size = function->size };
	tally_buffer_append(&tables->symbols, &symbol, sizeof(symbol));
	tally_buffer_append(&tables->names, function->name, strlen(function->name) + 1);
	if (function->address + function->size > tables->text_end)
		tables->text_end = function->address + function->size;
}

static void make_tables(const struct scenario *scenario, struct tables *tables)
{
	static const Elf64_Sym none;
	tables->text_end = SCENARIO_CODE;
	tally_buffer_append(&tables->symbols, &none, sizeof(none));
	tally_buffer_char(&tables->names, 0);
	for (unsigned i = 0; i < scenario->function_count; i++)
		if (!scenario->functions[i].is_kernel)
			add_symbol(tables, &scenario->functions[i]);
}

static void pad_to(struct tally_buffer *out, uint64_t offset)
{
	static const char zeroes[4096];
	while (out->length < offset && !out->failed) {
		uint64_t left = offset - out->length;
		tally_buffer_append(out, zeroes, tally_min_u64(left, sizeof(zeroes)));
	}
}

/* Makes an ELF object of the simulated program, so that readers of the recording find names.  It
 * has no code: its .text is a hole in the file.  Its symbols are the scenario's functions. */
static int make_object(const struct scenario *scenario, struct tally_buffer *out,
		       uint64_t *loaded_bytes)
{
	static const char section_names[] = "\0.text\0.symtab\0.strtab\0.shstrtab";
	struct tables tables = { 0 };
	make_tables(scenario, &tables);
	uint64_t text_offset = SCENARIO_CODE - LOAD_ADDRESS,
		 text_size = tables.text_end - SCENARIO_CODE;
	uint64_t symbols_at = text_offset + text_size,
		 names_at = symbols_at + tables.symbols.length;
	*loaded_bytes = (symbols_at + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
	uint64_t sections_at = (names_at + tables.names.length + sizeof(section_names) + 7) & ~7ull;
	const Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = sim_architecture_of(scenario->machine.model)->elf_machine,
		.e_version = EV_CURRENT,
		.e_entry = SCENARIO_CODE,
		.e_phoff = sizeof(header),
		.e_shoff = sections_at,
		.e_ehsize = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = SECTIONS,
		.e_shstrndx = SECTION_NAMES,
	};
	const Elf64_Phdr load = { .p_type = PT_LOAD,
				  .p_flags = PF_R | PF_X,
				  .p_vaddr = LOAD_ADDRESS,
				  .p_paddr = LOAD_ADDRESS,
				  .p_filesz = symbols_at,
				  .p_memsz = symbols_at,
				  .p_align = PAGE_BYTES };
	const Elf64_Shdr sections[SECTIONS] = {
		[TEXT] = { .sh_name = 1,
			   .sh_type = SHT_PROGBITS,
			   .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
			   .sh_addr = SCENARIO_CODE,
			   .sh_offset = text_offset,
			   .sh_size = text_size,
			   .sh_addralign = 16 },
		[SYMBOLS] = { .sh_name = 7,
			      .sh_type = SHT_SYMTAB,
			      .sh_offset = symbols_at,
			      .sh_size = tables.symbols.length,
			      .sh_link = STRINGS,
			      .sh_info = 1,
			      .sh_addralign = 8,
			      .sh_entsize = sizeof(Elf64_Sym) },
		[STRINGS] = { .sh_name = 15,
			      .sh_type = SHT_STRTAB,
			      .sh_offset = names_at,
			      .sh_size = tables.names.length,
			      .sh_addralign = 1 },
		[SECTION_NAMES] = { .sh_name = 23,
				    .sh_type = SHT_STRTAB,
				    .sh_offset = names_at + tables.names.length,
				    .sh_size = sizeof(section_names),
				    .sh_addralign = 1 },
	};
	tally_buffer_append(out, &header, sizeof(header));
	tally_buffer_append(out, &load, sizeof(load));
	pad_to(out, symbols_at);
	tally_buffer_append(out, tables.symbols.bytes, tables.symbols.length);
	tally_buffer_append(out, tables.names.bytes, tables.names.length);
	tally_buffer_append(out, section_names, sizeof(section_names));
	pad_to(out, sections_at);
	tally_buffer_append(out, sections, sizeof(sections));
	out->failed |= tables.symbols.failed || tables.names.failed;
	tally_buffer_release(&tables.symbols);
	tally_buffer_release(&tables.names);
	if (out->failed)
		return -ENOMEM;
	return 0;
}

/* ---- the files ----------------------------------------------------------- */

/* Returns -EINVAL unless the path is a regular file or doesn't exist (/dev/null is refused as well:
 * root would leave a null.elf beside it), and -EEXIST for a file that is no recording, such as the
 * scenario, where a recording is written. */
static int check_replaced(const struct tally_output_path *path, bool is_recording,
			  struct tally_error *err)
{
	struct stat there;
	int found = tally_output_path_look(path, NULL, &there, err);
	if (found <= 0)
		return found;
	if (path->is_open_file || !S_ISREG(there.st_mode)) {
		tally_error_set(err, -EINVAL, "%s is not a regular file", path->path);
		tally_error_hint(err, "-o FILE writes samples to FILE, and the functions' names to "
				      "FILE.elf");
		return -EINVAL;
	}
	if (!is_recording || !there.st_size ||
	    tally_perfdata_is_file(path->folder, path->name) > 0)
		return 0;
	tally_error_set(err, -EEXIST, "%s would be replaced, and is not a recording", path->path);
	tally_error_hint(err, "name another file with -o");
	return -EEXIST;
}

/* Returns a descriptor, or -errno with a message. */
static int open_file(const char *name, bool is_recording, struct tally_error *err)
{
	struct tally_output_path path;
	int result = tally_output_path_open(&path, name, err);
	if (result < 0)
		return result;
	result = check_replaced(&path, is_recording, err);
	if (!result)
		result = tally_output_path_write(&path, O_RDWR | O_TRUNC,
						 is_recording ? 0600 : 0666, err);
	tally_output_path_close(&path);
	return result;
}

static int write_object(struct simulation_recording *recording)
{
	struct tally_buffer bytes = { 0 };
	char relative[PATH_MAX], resolved[PATH_MAX];
	if (snprintf(relative, sizeof(relative), "%s.elf",
		     recording->stage->options->output_path) >= (int)sizeof(relative))
		return tally_error_set(recording->stage->err, -ENAMETOOLONG,
				       "the output's path is too long");
	if (make_object(recording->stage->scenario, &bytes, &recording->object_loaded_bytes) < 0) {
		tally_buffer_release(&bytes);
		return simulation_out_of_memory(recording->stage);
	}
	int fd = open_file(relative, false, recording->stage->err);
	if (fd < 0) {
		tally_buffer_release(&bytes);
		return fd;
	}
	int code = tally_file_write(fd, bytes.bytes, bytes.length);
	if (!code)
		code = tally_file_sync(fd);
	/* The recording may be written in the same tick of the file system's clock.  The program must
	 * look older than its recording, or views don't trust its names. */
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };
	clock_gettime(CLOCK_REALTIME, &times[1]);
	times[1].tv_sec--;
	futimens(fd, times);
	close(fd);
	tally_buffer_release(&bytes);
	if (code < 0)
		return tally_error_set(recording->stage->err, code, "%s can't be written: %s",
				       relative, tally_errno_text(code));
	if (!realpath(relative, resolved))
		return tally_error_set(recording->stage->err, -errno, "%s: %s", relative,
				       tally_errno_text(-errno));
	snprintf(recording->object_path, sizeof(recording->object_path), "%s", resolved);
	return 0;
}

int simulation_recording_begin(struct simulation_recording *recording)
{
	const char *path = recording->stage->options->output_path;
	bool samples = false;
	if (!path)
		return 0;
	for (unsigned i = 0; i < recording->stage->scenario->part_count; i++)
		samples |= recording->stage->scenario->parts[i].kind == SCENARIO_SAMPLE;
	if (!samples) {
		tally_error_set(recording->stage->err, -EINVAL,
				"nothing is sampled in %s: there is nothing to record",
				recording->stage->options->scenario_name);
		tally_error_hint(
			recording->stage->err,
			"add a line like 'sample cycles of TASK every 100000 "
			"with stacks', or leave -o out");
		return -EINVAL;
	}
	recording->fd = open_file(path, true, recording->stage->err);
	if (recording->fd < 0)
		return recording->fd;
	return write_object(recording);
}

static void describe(struct tally_recorded_event *to, const struct simulation_source *source,
		     const char *name)
{
	*to = (struct tally_recorded_event){ .attr = source->written,
					     .name = name,
					     .ids = source->ids,
					     .id_count = source->id_count };
}

int simulation_recording_start(struct simulation_recording *recording,
			       const struct simulation_part *parts)
{
	const struct scenario *scenario = recording->stage->scenario;
	size_t count = 1;
	if (recording->fd < 0)
		return 0;
	for (unsigned i = 0; i < scenario->part_count; i++)
		if (parts[i].rings)
			count += parts[i].events.count;
	recording->recorded = tally_arena_array(&recording->stage->arena, count,
						sizeof(*recording->recorded));
	if (!recording->recorded)
		return simulation_out_of_memory(recording->stage);
	for (unsigned i = 0; i < scenario->part_count; i++)
		for (size_t j = 0; parts[i].rings && j < parts[i].events.count; j++)
			describe(&recording->recorded[recording->recorded_count++],
				 &parts[i].sources[j], parts[i].events.items[j].name);
	describe(&recording->recorded[recording->recorded_count++], &recording->side_band,
		 "dummy:HG");
	const struct tally_perfdata_options options = { .compression_level = 0 };
	return tally_perfdata_writer_new(recording->fd, recording->recorded,
					 recording->recorded_count, &options, &recording->writer,
					 recording->stage->err);
}

int simulation_recording_write(struct simulation_recording *recording, const void *records,
			       size_t size)
{
	if (!recording->writer)
		return 0;
	return tally_perfdata_write(recording->writer, records, size, recording->stage->err);
}

/* Describes each kernel function as code made at run time, since no file has them. */
static void name_kernel(struct simulation_recording *recording)
{
	const struct scenario *scenario = recording->stage->scenario;
	for (unsigned i = 0; i < scenario->function_count; i++) {
		const struct scenario_function *function = &scenario->functions[i];
		if (function->is_kernel)
			tally_engine_ksymbol(sim_engine(recording->stage->machine),
					     function->address, (uint32_t)function->size,
					     TALLY_KSYMBOL_OUT_OF_LINE, false, function->name);
	}
	recording->kernel_is_named = true;
}

void simulation_recording_map(struct simulation_recording *recording,
			      struct scenario_instance *instance)
{
	if (!recording->object_path[0])
		return;
	if (!recording->kernel_is_named)
		name_kernel(recording);
	struct stat file = { 0 };
	stat(recording->object_path, &file);
	const struct tally_engine_mapping mapping = {
		.address = LOAD_ADDRESS,
		.length = recording->object_loaded_bytes,
		.inode = file.st_ino,
		.protection = PROT_READ | PROT_EXEC,
		.flags = MAP_PRIVATE,
		.path = recording->object_path,
	};
	tally_engine_mmap_record(sim_engine_task(instance->task), &mapping);
}

/* ---- features ------------------------------------------------------------ */

static int put(struct simulation_recording *recording, unsigned feature, struct tally_buffer *bytes)
{
	int code;
	if (bytes->failed)
		code = simulation_out_of_memory(recording->stage);
	else
		code = tally_perfdata_write_feature(recording->writer, feature, bytes->bytes,
						    bytes->length, recording->stage->err);
	tally_buffer_clear(bytes);
	return code;
}

static int put_texts(struct simulation_recording *recording, struct tally_buffer *bytes)
{
	const char *model = recording->stage->scenario->machine.model;
	/* No kernel has this release, so no reader takes this machine's kernel for the simulated
	 * one. */
	const struct { unsigned feature; const char *text;
	} texts[] = {
		{ TALLY_FEATURE_HOSTNAME, "sim" },
		{ TALLY_FEATURE_OSRELEASE, "simulated" },
		{ TALLY_FEATURE_ARCH, sim_architecture_of(model)->name },
		{ TALLY_FEATURE_VERSION, "tally " TALLY_VERSION },
		{ TALLY_FEATURE_CPUDESC, model },
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		tally_feature_string(bytes, texts[i].text);
		int code = put(recording, texts[i].feature, bytes);
		if (code)
			return code;
	}
	return 0;
}

static int put_command(struct simulation_recording *recording, struct tally_buffer *bytes)
{
	int argc = recording->stage->options->argc;
	const char **words = tally_arena_array(&recording->stage->arena, (size_t)argc + 1,
					       sizeof(*words));
	if (!words)
		return simulation_out_of_memory(recording->stage);
	words[0] = "tally";
	for (int i = 0; i < argc; i++)
		words[i + 1] = recording->stage->options->argv[i];
	tally_feature_string_list(bytes, words, (size_t)argc + 1);
	return put(recording, TALLY_FEATURE_CMDLINE, bytes);
}

static int put_numbers(struct simulation_recording *recording, struct tally_buffer *bytes)
{
	unsigned cpus = recording->stage->scenario->machine.cpus;
	tally_feature_nrcpus(bytes, cpus, cpus);
	int code = put(recording, TALLY_FEATURE_NRCPUS, bytes);
	if (code)
		return code;
	tally_feature_event_desc(bytes, recording->recorded, recording->recorded_count);
	code = put(recording, TALLY_FEATURE_EVENT_DESC, bytes);
	if (code)
		return code;
	tally_feature_u64(bytes, 1);
	code = put(recording, TALLY_FEATURE_CLOCKID, bytes);
	if (code || !recording->last_sample_ns)
		return code;
	tally_feature_sample_time(bytes, recording->first_sample_ns, recording->last_sample_ns);
	return put(recording, TALLY_FEATURE_SAMPLE_TIME, bytes);
}

static bool is_recorded(const struct simulation_recording *recording,
			const struct tally_trace_event *event)
{
	for (size_t i = 0; i < recording->recorded_count; i++)
		if (recording->recorded[i].attr.type == TALLY_TYPE_TRACEPOINT &&
		    recording->recorded[i].attr.config == event->id)
			return true;
	return false;
}

/* Tracepoints of one group are registered together, so they are adjacent here. */
static int put_tracepoints(struct simulation_recording *recording, struct tally_buffer *bytes)
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
	while ((event = tally_trace_next(sim_engine(recording->stage->machine), event))) {
		if (!is_recorded(recording, event) || data.format_count == FORMATS_MAX)
			continue;
		char *text = tally_arena_alloc(&recording->stage->arena, FORMAT_BYTES);
		if (!text)
			continue;
		long length = tally_trace_format(event, text, FORMAT_BYTES);
		if (length >= 0 && length < FORMAT_BYTES)
			formats[data.format_count++] = (struct tally_tracing_format){
				event->group, text, (size_t)length
			};
	}
	if (!data.format_count)
		return 0;
	tally_feature_tracing_data(bytes, &data);
	return put(recording, TALLY_FEATURE_TRACING_DATA, bytes);
}

int simulation_recording_finish(struct simulation_recording *recording)
{
	struct tally_buffer bytes = { 0 };
	if (!recording->writer)
		return 0;
	int code = put_texts(recording, &bytes);
	if (code)
		goto out;
	code = put_command(recording, &bytes);
	if (code)
		goto out;
	code = put_numbers(recording, &bytes);
	if (code)
		goto out;
	code = put_tracepoints(recording, &bytes);
	if (code)
		goto out;
	code = tally_perfdata_finish(recording->writer, recording->stage->err);
	if (code)
		goto out;
	code = tally_file_sync(recording->fd);
	if (code < 0)
		tally_error_set(recording->stage->err, code, "%s is not safe on the disk: %s",
				recording->stage->options->output_path, tally_errno_text(code));
out:
	tally_buffer_release(&bytes);
	return code;
}

void simulation_recording_release(struct simulation_recording *recording)
{
	if (recording->writer)
		tally_perfdata_writer_free(recording->writer);
	if (recording->fd >= 0)
		close(recording->fd);
}
