/* Unwinds stacks through an object's code and code made at run time, as unwind_entered.c and
 * go_switch.c do.
 *
 * The input is a folder (folder.h): "object", an ELF file with addresses from OBJECT on; "code",
 * code without a file at CODE; "stack", the copied stack at STACK; "memory", other memory of the
 * task, at MEMORY; "registers", words of 8 bytes in DWARF's order (rsp is always STACK).  Bit 0 of
 * `views`: C functions are left out where C calls Go.  Each walk must end, and agree between
 * compiled rules and interpreter.  A walk that uses results of earlier walks must end. */
#include "folder.h"
#include "fuzz.h"

#include "object/object.h"
#include "symbol/symbol.h"
#include "unwind/unwind.h"

#include "../unit/unwind_ways.h"

#include <string.h>

#define OBJECT UINT64_C(0x400000)
#define CODE UINT64_C(0x7f0000000000)
#define STACK UINT64_C(0x7ffc00000000)
#define MEMORY UINT64_C(0xc000000000)

enum { FRAMES = 64, OBJECT_BYTES = 1 << 24 };

struct scene {
	struct tally_object *object;
	struct tally_symbols *symbols;
	struct tally_unwind_table *table;
	struct folder folder;
};

static struct folder_file file_named(const struct folder *folder, const char *name)
{
	for (size_t i = 0; i < folder->count; i++)
		if (!strcmp(folder->files[i].name, name))
			return folder->files[i];
	return (struct folder_file){ .bytes = (const uint8_t *)"" };
}

static bool find(void *context, uint64_t address, struct tally_unwind_place *place)
{
	const struct scene *scene = context;
	*place = (struct tally_unwind_place){ .address = address };
	if (address - CODE < file_named(&scene->folder, "code").size)
		return true;
	if (address - OBJECT >= OBJECT_BYTES)
		return false;
	place->table = scene->table;
	return true;
}

static size_t copy(struct folder_file file, uint64_t offset, void *out, size_t size)
{
	if (offset >= file.size)
		return 0;
	size = file.size - offset < size ? (size_t)(file.size - offset) : size;
	memcpy(out, file.bytes + offset, size);
	return size;
}

static size_t read_code(void *context, uint64_t address, void *out, size_t size)
{
	const struct scene *scene = context;
	size_t available;
	if (address - OBJECT < OBJECT_BYTES) {
		const uint8_t *bytes = tally_object_bytes_at(scene->object, address, &available);
		return bytes ? copy((struct folder_file){ .bytes = bytes, .size = available }, 0,
				    out, size)
			     : 0;
	}
	if (address >= STACK)
		return copy(file_named(&scene->folder, "stack"), address - STACK, out, size);
	if (address >= CODE)
		return copy(file_named(&scene->folder, "code"), address - CODE, out, size);
	return copy(file_named(&scene->folder, "memory"), address - MEMORY, out, size);
}

static enum tally_unwind_function_kind find_function(void *context, uint64_t address,
						     uint64_t *start, uint64_t *end)
{
	const struct scene *scene = context;
	const struct tally_symbol *symbol = tally_symbols_find(scene->symbols, address);
	if (!symbol)
		return TALLY_UNWIND_NO_FUNCTION;
	*start = symbol->start;
	*end = symbol->end;
	return TALLY_UNWIND_FUNCTION;
}

static void walk(struct scene *scene)
{
	static struct tally_unwind_cache *cache;
	static uint64_t spaces;
	struct folder_file stack = file_named(&scene->folder, "stack"),
			   registers = file_named(&scene->folder, "registers");
	struct tally_unwind_request request = { .machine = TALLY_UNWIND_X86_64,
						.space = ++spaces,
						.stack_size = stack.size,
						.find = find,
						.read_code = read_code,
						.skips_c = scene->folder.views & 1,
						.context = scene };
	struct unwind_way way;
	uint64_t addresses[FRAMES];
	if (!cache)
		cache = tally_unwind_cache_new();
	/* Allocations of their own, so that reads beyond them are seen. */
	uint8_t *words = malloc(stack.size ? stack.size : 1);
	struct tally_code_memo *memo = tally_code_memo_new();
	require(words && memo && cache);
	memcpy(words, stack.bytes, stack.size);
	request.stack = words;
	for (unsigned i = 0; i <= TALLY_UNWIND_RIP; i++)
		copy(registers, 8 * i, &request.registers[i], 8);
	request.registers[TALLY_UNWIND_RSP] = STACK;
	require(unwind_every_way(&request, cache, FRAMES, &way) && way.count &&
		way.count <= FRAMES);
	request.memo = memo;
	for (unsigned i = 0; i < 2; i++)
		require(tally_unwind(&request, addresses, FRAMES, NULL) <= FRAMES);
	tally_unwind_cache_clear(cache);
	tally_code_memo_free(memo);
	free(words);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct scene scene = { 0 };
	if (!folder_read(bytes, size, &scene.folder))
		return 0;
	struct folder_file object = file_named(&scene.folder, "object");
	uint8_t *copied = malloc(object.size ? object.size : 1);
	require(copied != NULL);
	memcpy(copied, object.bytes, object.size);
	if (tally_object_open_memory("object", copied, object.size, &scene.object, NULL) < 0) {
		free(copied);
		return 0;
	}
	if (tally_symbols_from_object(scene.object, scene.object, &scene.symbols, NULL) == 0 &&
	    tally_unwind_table_new(scene.object, NULL, &scene.table, NULL) == 0) {
		tally_unwind_table_use_functions(scene.table, find_function, &scene);
		walk(&scene);
	}
	tally_unwind_table_free(scene.table);
	tally_symbols_free(scene.symbols);
	tally_object_unref(scene.object);
	free(copied);
	return 0;
}
