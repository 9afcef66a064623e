/* BPF programs as perf recorded them: each is a bpf_prog_info (linux/bpf.h) of the size of the
 * recording kernel's, whose addresses are offsets into the bytes that follow. */
#include "output/header_parts.h"

#include "machine/bpf_codes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NAMED_MAX = 4096, SIGNATURE_BYTES_MIN = 8 /* instruction, type */ };

struct bpf_program { /* struct bpf_prog_info, as far as it is shown */
	uint32_t type, id;
	uint8_t tag[8];
	uint32_t jited_length, translated_length;
	uint64_t jited, translated, load_time;
	uint32_t user, map_count;
	uint64_t maps;
	char name[16];
	uint32_t interface_index, flags;
	uint64_t namespace_device, namespace_inode;
	uint32_t function_count, length_count;
	uint64_t functions, lengths; /* arrays of u64, u32 */
	uint32_t types_id, signature_size;
	uint64_t signatures;
	uint32_t signature_count, line_count;
	uint64_t lines, jited_lines;
	uint32_t jited_line_count, line_size, jited_line_size, tag_count;
	uint64_t tags; /* array of u8[8] */
};

static const uint8_t *array_at(const uint8_t *data, size_t size, uint64_t offset, uint64_t bytes)
{
	return data && offset <= size && bytes <= size - offset ? data + offset : NULL;
}

/* Returns the BTF with this id, from the section of BPF types. */
static struct tally_feature_bytes types_of(const struct tally_header_part *part, uint32_t wanted)
{
	struct tally_feature_bytes section = tally_perfdata_feature(part->data,
								    TALLY_FEATURE_BPF_BTF);
	struct tally_reader reader;
	if (!section.bytes || !wanted)
		return (struct tally_feature_bytes){ 0 };
	tally_reader_init(&reader, section.bytes, section.size, false);
	for (uint32_t left = tally_reader_u32(&reader); left && !reader.failed; left--) {
		uint32_t id = tally_reader_u32(&reader), size = tally_reader_u32(&reader);
		const uint8_t *bytes = tally_reader_bytes(&reader, size);
		if (bytes && id == wanted)
			return (struct tally_feature_bytes){ .bytes = bytes, .size = size };
	}
	return (struct tally_feature_bytes){ 0 };
}

/* Returns the functions' names from the BTF; a name may be NULL. The caller frees the array. NULL:
 * the program has no usable BTF, or memory is out. */
static const char **function_names(const struct tally_header_part *part,
				   const struct bpf_program *program, const uint8_t *data,
				   size_t size)
{
	struct tally_feature_bytes types = types_of(part, program->types_id);
	uint64_t count = program->function_count, stride = program->signature_size;
	bool is_told = count <= NAMED_MAX && count <= program->signature_count &&
		       stride >= SIGNATURE_BYTES_MIN;
	const uint8_t *signatures = is_told ? array_at(data, size, program->signatures,
						       count * stride)
					    : NULL;
	if (!types.bytes || !signatures)
		return NULL;
	uint32_t *ids = calloc(count, sizeof(*ids));
	const char **names = calloc(count, sizeof(*names));
	for (uint64_t i = 0; ids && i < count; i++)
		memcpy(&ids[i], signatures + i * stride + 4, sizeof(ids[i]));
	if (ids && names)
		tally_bpf_type_names(types.bytes, types.size, ids, count, names);
	free(ids);
	return names;
}

/* Puts "bpf_prog_" tag "_" name, the kernel's name for it in kallsyms. */
static void put_name(struct tally_buffer *out, const struct bpf_program *program,
		     const uint8_t *tag, const char *name)
{
	tally_buffer_text(out, "bpf_prog_");
	for (unsigned i = 0; i < sizeof(program->tag); i++)
		tally_buffer_printf(out, "%02x", tag ? tag[i] : 0);
	if (name)
		tally_buffer_printf(out, "_%s", name);
	else if (program->function_count > 1)
		tally_buffer_text(out, "_F");
	else if (program->name[0])
		tally_buffer_printf(out, "_%.*s",
				    (int)strnlen(program->name, sizeof(program->name)),
				    program->name);
}

static void put_program(struct tally_header_part *part, const struct bpf_program *program,
			const uint8_t *data, size_t size)
{
	uint64_t count = program->function_count;
	const uint8_t *functions = array_at(data, size, program->functions, count * 8);
	const uint8_t *lengths = array_at(data, size, program->lengths, count * 4);
	const uint8_t *tags = array_at(data, size, program->tags, count * 8);
	if (!count || !functions || !lengths || program->length_count < count ||
	    program->tag_count < count)
		return;
	const char **names = function_names(part, program, data, size);
	tally_buffer_printf(part->out, "# bpf_prog_info %u:%s", program->id,
			    count > 1 ? "\n" : " ");
	for (uint64_t i = 0; i < count; i++) {
		uint64_t address;
		uint32_t length;
		memcpy(&address, functions + 8 * i, sizeof(address));
		memcpy(&length, lengths + 4 * i, sizeof(length));
		if (count > 1)
			tally_buffer_printf(part->out, "# \tsub_prog %" PRIu64 ": ", i);
		put_name(part->out, program, tags ? tags + 8 * i : NULL, names ? names[i] : NULL);
		tally_buffer_printf(part->out, " addr 0x%" PRIx64 " size %u\n", address, length);
	}
	free(names);
}

void tally_header_bpf_programs(struct tally_header_part *part)
{
	struct tally_reader *reader = &part->reader;
	uint32_t count = tally_reader_u32(reader);
	for (uint32_t i = 0; i < count && !reader->failed; i++) {
		struct bpf_program program = { 0 };
		uint32_t info_size = tally_reader_u32(reader), data_size = tally_reader_u32(reader);
		tally_reader_u64(reader); /* bit mask of the arrays that follow */
		const uint8_t *info = tally_reader_bytes(reader, info_size);
		const uint8_t *data = tally_reader_bytes(reader, data_size);
		if (reader->failed)
			return;
		memcpy(&program, info, info_size < sizeof(program) ? info_size : sizeof(program));
		put_program(part, &program, data, data_size);
	}
}

void tally_header_bpf_types(struct tally_header_part *part)
{
	uint32_t count = tally_reader_u32(&part->reader);
	for (uint32_t i = 0; i < count && !part->reader.failed; i++) {
		uint32_t id = tally_reader_u32(&part->reader),
			 size = tally_reader_u32(&part->reader);
		if (tally_reader_bytes(&part->reader, size))
			tally_buffer_printf(part->out, "# btf info of id %u\n", id);
	}
}
