/* Parses BTF for the names of functions, then reads programs by bpf(2), then symbols from kallsyms.
 * A symbol has no size, so its code ends at the next symbol, or at the largest plausible size. */
#include "machine/machine.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/extremes.h"
#include "base/reader.h"
#include "base/vector.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAGIC = 0xeb9f };

/* Bytes that follow a type's three words, by its kind: once, and for each of its members. */
static const struct {
	uint8_t once, each;
} EXTRA[] = {
	[1] = { 4, 0 },   /* INT */
	[3] = { 12, 0 },  /* ARRAY */
	[4] = { 0, 12 },  /* STRUCT */
	[5] = { 0, 12 },  /* UNION */
	[6] = { 0, 8 },   /* ENUM */
	[13] = { 0, 8 },  /* FUNC_PROTO */
	[14] = { 4, 0 },  /* VAR */
	[15] = { 0, 12 }, /* DATASEC */
	[17] = { 4, 0 },  /* DECL_TAG */
	[19] = { 0, 12 }, /* ENUM64 */
};
enum { KINDS = 20 }; /* FLOAT, TYPE_TAG and the others in between have none */

static const char *name_at(const char *names, size_t size, uint32_t offset)
{
	if (offset && offset < size && memchr(names + offset, 0, size - offset))
		return names + offset;
	return NULL;
}

void tally_bpf_type_names(const void *types, size_t size, const uint32_t *ids, size_t count,
			  const char **names)
{
	struct tally_reader header, reader;
	tally_reader_init(&header, types, size, false);
	bool is_btf = tally_reader_u16(&header) == MAGIC;
	tally_reader_u16(&header); /* version, flags */
	uint32_t header_size = tally_reader_u32(&header), types_at = tally_reader_u32(&header);
	uint32_t types_size = tally_reader_u32(&header), names_at = tally_reader_u32(&header);
	uint32_t names_size = tally_reader_u32(&header);
	memset(names, 0, count * sizeof(*names));
	if (header.failed || !is_btf || header_size > size || types_at > size - header_size ||
	    types_size > size - header_size - types_at || names_at > size - header_size ||
	    names_size > size - header_size - names_at)
		return;
	const char *all = (const char *)types + header_size + names_at;
	tally_reader_init(&reader, (const char *)types + header_size + types_at, types_size, false);
	for (uint32_t id = 1; tally_reader_left(&reader); id++) {
		uint32_t name = tally_reader_u32(&reader), info = tally_reader_u32(&reader),
			 kind = info >> 24 & 0x1f;
		tally_reader_u32(&reader); /* its size, or the id of another type */
		if (reader.failed || kind >= KINDS)
			return;
		tally_reader_skip(&reader,
				  EXTRA[kind].once + (size_t)EXTRA[kind].each * (info & 0xffff));
		for (size_t i = 0; i < count; i++)
			if (ids[i] == id)
				names[i] = name_at(all, names_size, name);
	}
}

enum {
	KALLSYMS_BYTES_MAX = 256 << 20, TYPES_BYTES_MAX = 64 << 20, FUNCTIONS_MAX = 4096,
	CODE_BYTES_MAX = 64 << 10, TRAMPOLINE_BYTES_MAX = 4096,
};

/* ---- by bpf(2) ----------------------------------------------------------- */

/* One program, with room for the kernel's data about each of its functions. */
struct program {
	struct bpf_prog_info info;
	size_t count;
	uint64_t *starts;
	uint32_t *sizes, *types; /* types: type ids; 0: none */
	uint8_t (*tags)[BPF_TAG_SIZE], *function_info;
	const char **names; /* they point into `text` */
	uint8_t *text;
};

static void program_release(struct program *program)
{
	free(program->starts);
	free(program->sizes);
	free(program->types);
	free(program->tags);
	free(program->function_info);
	free(program->names);
	free(program->text);
}

static int bpf(int command, union bpf_attr *attr)
{
	long result = syscall(SYS_bpf, command, attr, sizeof(*attr));
	if (result < 0)
		return -errno;
	return (int)result;
}

static int get_info(int fd, void *info, size_t size)
{
	union bpf_attr attr = { .info = { .bpf_fd = (uint32_t)fd,
					  .info_len = (uint32_t)size,
					  .info = (uintptr_t)info } };
	return bpf(BPF_OBJ_GET_INFO_BY_FD, &attr);
}

/* Sets the functions' names from the program's types.  Returns 0, also if there are no types, or
 * -ENOMEM. */
static int read_types(uint32_t id, struct program *program)
{
	union bpf_attr attr = { .btf_id = id };
	struct bpf_btf_info info = { 0 };
	int fd = bpf(BPF_BTF_GET_FD_BY_ID, &attr);
	if (fd < 0)
		return 0;
	bool has_types = get_info(fd, &info, sizeof(info)) >= 0 && info.btf_size &&
			 info.btf_size <= TYPES_BYTES_MAX;
	uint32_t size = info.btf_size;
	program->text = NULL;
	if (has_types)
		program->text = malloc(size);
	info = (struct bpf_btf_info){ .btf = (uintptr_t)program->text, .btf_size = size };
	if (program->text && get_info(fd, &info, sizeof(info)) >= 0)
		tally_bpf_type_names(program->text, size, program->types, program->count,
				     program->names);
	close(fd);
	if (has_types && !program->text)
		return -ENOMEM;
	return 0;
}

/* Reads the arrays, as far as there is room for them.  On the second call the kernel may have less
 * data than on the first, but never more. */
static int read_functions(int fd, struct program *program)
{
	const struct bpf_prog_info first = program->info;
	size_t count = program->count,
	       info_size = (size_t)first.nr_func_info * first.func_info_rec_size;
	program->starts = calloc(count, sizeof(*program->starts));
	program->sizes = calloc(count, sizeof(*program->sizes));
	program->types = calloc(count, sizeof(*program->types));
	program->tags = calloc(count, sizeof(*program->tags));
	program->names = calloc(count, sizeof(*program->names));
	program->function_info = calloc(info_size + 1, 1);
	if (!program->starts || !program->sizes || !program->types || !program->tags ||
	    !program->names || !program->function_info)
		return -ENOMEM;
	program->info = (struct bpf_prog_info){
		.nr_jited_ksyms = first.nr_jited_ksyms,
		.jited_ksyms = (uintptr_t)program->starts,
		.nr_jited_func_lens = first.nr_jited_func_lens,
		.jited_func_lens = (uintptr_t)program->sizes,
		.nr_prog_tags = first.nr_prog_tags,
		.prog_tags = (uintptr_t)program->tags,
		.nr_func_info = first.nr_func_info,
		.func_info = (uintptr_t)program->function_info,
		.func_info_rec_size = first.func_info_rec_size,
	};
	return get_info(fd, &program->info, sizeof(program->info));
}

/* Sets program->count.  Returns false if the program is interpreted, if the kernel hides its code,
 * or if the data have an unknown layout. */
static bool has_code(struct program *program)
{
	const struct bpf_prog_info *info = &program->info;
	program->count = info->nr_jited_ksyms;
	return program->count && program->count <= FUNCTIONS_MAX &&
	       info->nr_jited_func_lens == program->count && info->nr_prog_tags == program->count &&
	       info->func_info_rec_size <= 256 && info->nr_func_info <= FUNCTIONS_MAX &&
	       (!info->nr_func_info || info->func_info_rec_size >= 8);
}

/* Sets the functions' names: from the types; otherwise, if there is only one function, from the
 * program's name. */
static int find_names(struct program *program)
{
	const struct bpf_prog_info *info = &program->info;
	/* each entry is an instruction and a type */
	for (size_t i = 0; i < program->count && i < info->nr_func_info; i++)
		memcpy(&program->types[i],
		       program->function_info + i * info->func_info_rec_size + 4, sizeof(uint32_t));
	int result = 0;
	if (info->btf_id && info->nr_func_info)
		result = read_types(info->btf_id, program);
	for (size_t i = 0; i < program->count; i++)
		if (!program->names[i])
			program->names[i] = program->count == 1 ? info->name : "F";
	return result;
}

static int put_codes(const struct program *program, struct tally_bpf_codes *out)
{
	for (size_t i = 0; i < program->count; i++) {
		struct tally_bpf_code code = { .start = program->starts[i],
					       .size = program->sizes[i],
					       .program = program->info.id };
		char tag[2 * BPF_TAG_SIZE + 1];
		for (size_t k = 0; k < BPF_TAG_SIZE; k++)
			snprintf(tag + 2 * k, 3, "%02x", program->tags[i][k]);
		memcpy(code.tag, program->info.tag, sizeof(code.tag));
		snprintf(code.name, sizeof(code.name), "bpf_prog_%s%s%s", tag,
			 *program->names[i] ? "_" : "", program->names[i]);
		if (code.start && code.size && tally_vector_push(out, code) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* A program's functions don't change, so the count must still match the room. */
static int read_program(int fd, struct tally_bpf_codes *out)
{
	struct program program = { 0 };
	int result = get_info(fd, &program.info, sizeof(program.info));
	bool has_info = result >= 0 && has_code(&program);
	size_t count = program.count;
	if (has_info)
		result = read_functions(fd, &program);
	if (has_info && result >= 0 && has_code(&program) && program.count == count) {
		result = find_names(&program);
		if (!result)
			result = put_codes(&program, out);
	}
	program_release(&program);
	return tally_only_enomem(result);
}

static bool has_trampoline(uint32_t type)
{
	return type == BPF_PROG_TYPE_XDP || type == BPF_PROG_TYPE_TRACING ||
	       type == BPF_PROG_TYPE_STRUCT_OPS || type == BPF_PROG_TYPE_EXT ||
	       type == BPF_PROG_TYPE_LSM;
}

static int read_programs(struct tally_bpf_codes *out, bool *trampolines)
{
	union bpf_attr attr = { 0 };
	int result;
	*trampolines = false;
	while ((result = bpf(BPF_PROG_GET_NEXT_ID, &attr)) >= 0) {
		uint32_t id = attr.next_id;
		struct bpf_prog_info info = { 0 };
		attr = (union bpf_attr){ .prog_id = id };
		int fd = bpf(BPF_PROG_GET_FD_BY_ID, &attr);
		if (fd == -EPERM)
			return fd;
		attr = (union bpf_attr){ .start_id = id };
		if (fd < 0) /* the program may have been unloaded since */
			continue;
		result = read_program(fd, out);
		*trampolines |= get_info(fd, &info, sizeof(info)) >= 0 && has_trampoline(info.type);
		close(fd);
		if (result < 0)
			return result;
	}
	if (result == -ENOENT)
		return 0;
	return result;
}

/* ---- by kallsyms --------------------------------------------------------- */

struct symbol {
	uint64_t start;
	char *name; /* NULL: a module's symbol */
	size_t length;
};

/* Parses "ffffffffc002212c t bpf_prog_7b5b3fe293b4bd7e_first\t[bpf]".  The kernel's own symbols
 * have no brackets. */
static bool take_symbol(const char *line, const char *end, struct symbol *out)
{
	char *at;
	const char *tab = memchr(line, '\t', (size_t)(end - line));
	out->start = strtoull(line, &at, 16);
	if (!tab || !out->start || at + 3 >= tab || *at != ' ' || at[2] != ' ')
		return false;
	out->name = NULL;
	if (end - tab == 6 && !memcmp(tab, "\t[bpf]", 6))
		out->name = at + 3;
	out->length = (size_t)(tab - at) - 3;
	return true;
}

static int by_start(const void *a_, const void *b_)
{
	const struct symbol *a = a_, *b = b_;
	return tally_compare_u64(a->start, b->start);
}

static bool begins(const struct symbol *symbol, const char *prefix)
{
	return symbol->length >= strlen(prefix) && !memcmp(symbol->name, prefix, strlen(prefix));
}

/* Returns the largest plausible size in bytes of such a symbol's code; 0 if it is not wanted. */
static uint32_t longest(const struct symbol *symbol, bool programs)
{
	if (!symbol->name)
		return 0;
	if (begins(symbol, "bpf_trampoline_") || begins(symbol, "bpf_dispatcher_"))
		return TRAMPOLINE_BYTES_MAX;
	if (programs && begins(symbol, "bpf_prog_"))
		return CODE_BYTES_MAX;
	return 0;
}

int tally_bpf_codes_parse(const char *kallsyms, bool programs, struct tally_bpf_codes *out)
{
	struct { struct symbol *items; size_t count, capacity; } all = { 0 };
	struct symbol symbol;
	int result = 0;
	for (const char *line = kallsyms, *end; !result && *line; line = end + (*end == '\n')) {
		end = line + strcspn(line, "\n");
		if (take_symbol(line, end, &symbol))
			result = tally_vector_push(&all, symbol);
	}
	if (all.count)
		qsort(all.items, all.count, sizeof(*all.items), by_start);
	for (size_t i = 0; !result && i < all.count; i++) {
		struct tally_bpf_code code = { .start = all.items[i].start,
					       .size = longest(&all.items[i], programs) };
		if (!code.size)
			continue;
		if (i + 1 < all.count && all.items[i + 1].start - code.start < code.size)
			code.size = (uint32_t)(all.items[i + 1].start - code.start);
		snprintf(code.name, sizeof(code.name), "%.*s",
			 (int)tally_min_u64(all.items[i].length, 255),
			 all.items[i].name);
		if (code.size)
			result = tally_vector_push(out, code);
	}
	tally_vector_release(&all);
	return result;
}

int tally_bpf_codes_read(struct tally_bpf_codes *out)
{
	struct tally_buffer text = { .maximum = KALLSYMS_BYTES_MAX };
	bool trampolines;
	int why = read_programs(out, &trampolines);
	if (why == -ENOMEM || (!why && !trampolines))
		return why;
	int result = tally_buffer_read_file(&text, AT_FDCWD, "/proc/kallsyms", KALLSYMS_BYTES_MAX);
	if (!result)
		result = tally_bpf_codes_parse(tally_buffer_string(&text), why < 0, out);
	tally_buffer_release(&text);
	return result;
}
