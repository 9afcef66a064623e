/* Names for the slots of the procedure linkage table (NAME@plt), which have no symbols.
 *
 * Each linker and each option has its own layout: lazily bound or not, with branch-target
 * instructions (-z ibtplt, BTI), split into .plt and .plt.sec, with or without a header, eager
 * slots in .plt.got.  But in all layouts a slot jumps through an entry of the global offset table,
 * and a relocation names the entry's symbol.  So the slots are decoded, not counted.  A lazy slot
 * may push the number of its relocation instead (the first half of -z ibtplt's), which names it as
 * well.
 */
#include "symbol/symbol_internal.h"

#include "base/binary_search.h"
#include "base/map.h"
#include "base/vector.h"
#include "object/object.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* An entry of the global offset table and its future value. */
struct got_entry {
	uint64_t address;
	uint64_t addend;
	/* index in .dynsym; 0: `addend` is the address of an indirect function's resolver */
	uint32_t symbol;
};

struct plt {
	struct tally_symbols_builder *builder;
	size_t function_count; /* the builder's entries before the slots, sorted */
	const struct tally_object *object;
	struct tally_symtab dynsym;
	bool has_dynsym;
	TALLY_VECTOR(struct got_entry) lazy;  /* .rela.plt, in the file's order */
	TALLY_VECTOR(struct got_entry) sorted; /* all entries, by address */
	struct tally_map resolvers;            /* address → name of its function */
};

struct slot {
	uint64_t size;
	uint64_t got_address;
	int64_t lazy_index; /* in .rela.plt; -1: use got_address */
};

static bool is_got_relocation(uint16_t machine, uint32_t type)
{
	if (machine == EM_X86_64)
		return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT ||
		       type == R_X86_64_IRELATIVE;
	return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT ||
	       type == R_AARCH64_IRELATIVE;
}

static int read_relocations(struct plt *plt, const char *name, bool is_lazy)
{
	struct tally_section section;
	if (!tally_object_section(plt->object, name, &section) || !section.bytes ||
	    section.type != SHT_RELA)
		return 0;
	uint16_t machine = tally_object_machine(plt->object);
	for (size_t at = 0; section.size - at >= sizeof(Elf64_Rela); at += sizeof(Elf64_Rela)) {
		Elf64_Rela relocation;
		memcpy(&relocation, section.bytes + at, sizeof(relocation));
		struct got_entry entry = { relocation.r_offset, (uint64_t)relocation.r_addend,
					   (uint32_t)ELF64_R_SYM(relocation.r_info) };
		if (is_lazy && tally_vector_push(&plt->lazy, entry) < 0)
			return -ENOMEM;
		if (is_got_relocation(machine, (uint32_t)ELF64_R_TYPE(relocation.r_info)) &&
		    tally_vector_push(&plt->sorted, entry) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int compare_got(const void *a_, const void *b_)
{
	const struct got_entry *a = a_, *b = b_;
	if (a->address < b->address)
		return -1;
	return a->address > b->address;
}

static const struct got_entry *find_got(const struct plt *plt, const struct slot *slot)
{
	if (slot->lazy_index >= 0) {
		if ((uint64_t)slot->lazy_index >= plt->lazy.count)
			return NULL;
		return &plt->lazy.items[slot->lazy_index];
	}
	struct got_entry key = { .address = slot->got_address };
	if (!plt->sorted.count)
		return NULL;
	return bsearch(&key, plt->sorted.items, plt->sorted.count, sizeof(key), compare_got);
}

/* Returns the best name of the function whose resolver is at an address. */
static const char *resolver_name(struct plt *plt, uint64_t address)
{
	const struct tally_symbol_entry *entries = plt->builder->entries;
	bool is_new = true;
	uint64_t *known = tally_map_put(&plt->resolvers, address, &is_new);
	if (known && !is_new)
		return (const char *)(uintptr_t)*known;
	size_t at = tally_search(i, 0, plt->function_count, entries[i].start >= address),
	       end = tally_search(i, at, plt->function_count, entries[i].start > address);
	const char *name = NULL;
	if (end > at)
		name = tally_symbols_best(&entries[at], end - at)->name;
	if (known)
		*known = (uintptr_t)name;
	return name;
}

/* Sets `*out` to the slot's name, or to NULL when the file has none.  Returns 0, -EFBIG or
 * -ENOMEM. */
static int slot_name(struct plt *plt, const struct got_entry *got, const char **out)
{
	struct tally_arena *arena = &plt->builder->names;
	const char *name;
	*out = NULL;
	if (got->symbol != 0) {
		Elf64_Sym symbol;
		if (!plt->has_dynsym || got->symbol >= plt->dynsym.count)
			return 0;
		tally_symtab_entry(&plt->dynsym, got->symbol, &symbol);
		name = tally_symtab_name(&plt->dynsym, &symbol);
		if (!*name)
			return 0;
		if (tally_symbols_charge(plt->builder, name) < 0)
			return -EFBIG;
		*out = tally_arena_printf(arena, "%s@plt", name);
	} else {
		name = resolver_name(plt, got->addend);
		if (name && tally_symbols_charge(plt->builder, name) < 0)
			return -EFBIG;
		if (name)
			*out = tally_arena_printf(arena, "%s@plt", name);
		else
			*out = tally_arena_printf(arena, "*ABS*+0x%llx@plt",
						  (unsigned long long)got->addend);
	}
	if (!*out)
		return -ENOMEM;
	return 0;
}

static uint32_t little32(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

/* Decodes a slot: [endbr64] [bnd] jmp *entry(%rip), or endbr64; push $index; [bnd] jmp header. */
static bool decode_x86_64(const uint8_t *bytes, size_t size, uint64_t address, struct slot *out)
{
	static const uint8_t ENDBR64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	size_t at = 0;
	bool has_endbr = size >= sizeof(ENDBR64) && memcmp(bytes, ENDBR64, sizeof(ENDBR64)) == 0;
	if (has_endbr)
		at = sizeof(ENDBR64);
	*out = (struct slot){ .size = has_endbr ? 16 : 8, .lazy_index = -1 };
	if (has_endbr && size - at >= 5 && bytes[at] == 0x68) {
		out->lazy_index = little32(bytes + at + 1);
		return true;
	}
	if (at < size && bytes[at] == 0xf2)
		at++;
	if (size - at < 6 || bytes[at] != 0xff || bytes[at + 1] != 0x25)
		return false;
	out->got_address = address + at + 6 + (uint64_t)(int64_t)(int32_t)little32(bytes + at + 2);
	return true;
}

/* Decodes a slot: [bti c] adrp x16, page; ldr x17, [x16, #offset]; add x16, x16, #offset; br
 * x17. */
static bool decode_aarch64(const uint8_t *bytes, size_t size, uint64_t address, struct slot *out)
{
	static const uint32_t BTI_C = 0xd503245f;
	size_t at = 0;
	if (size >= 4 && little32(bytes) == BTI_C)
		at = 4;
	if (size - at < 16)
		return false;
	uint32_t adrp = little32(bytes + at), ldr = little32(bytes + at + 4);
	if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
		return false;
	uint64_t pages = (adrp >> 29 & 3) | (uint64_t)(adrp >> 5 & 0x7ffff) << 2;
	if (pages & 1 << 20)
		pages |= ~(uint64_t)0 << 21;
	*out = (struct slot){
		.size = at + 16,
		.got_address = ((address + at) & ~(uint64_t)0xfff) + (pages << 12) +
			       (ldr >> 10 & 0xfff) * 8,
		.lazy_index = -1,
	};
	return true;
}

static int add(struct plt *plt, uint64_t start, uint64_t end, const char *name)
{
	return tally_symbols_add(plt->builder, &(struct tally_symbol_entry){
						       .start = start, .end = end, .name = name,
						       .binding = TALLY_SYMBOL_GLOBAL });
}

static int read_slots(struct plt *plt, const char *section_name)
{
	struct tally_section section;
	if (!tally_object_section(plt->object, section_name, &section) || !section.bytes ||
	    section.address > UINT64_MAX - section.size)
		return 0;
	bool is_x86 = tally_object_machine(plt->object) == EM_X86_64;
	bool is_packed = strcmp(section_name, ".plt.got") == 0; /* slots of 8 bytes */
	size_t step = is_x86 ? 8 : 4, header = 0;
	for (size_t at = 0, next; at < section.size; at = next) {
		const uint8_t *bytes = section.bytes + at;
		struct slot slot;
		next = at + step;
		size_t left = section.size - at;
		bool is_slot;
		if (is_x86)
			is_slot = decode_x86_64(bytes, left, section.address + at, &slot);
		else
			is_slot = decode_aarch64(bytes, left, section.address + at, &slot);
		if (!is_slot)
			continue;
		const struct got_entry *got = find_got(plt, &slot);
		if (!got)
			continue;
		int rc = 0;
		if (header == 0 && at > 0)
			rc = add(plt, section.address, section.address + at, section_name);
		if (rc)
			return rc;
		header = 1;
		if (is_x86 && !is_packed)
			slot.size = 16;
		if (slot.size > left)
			slot.size = left;
		next = at + slot.size;
		const char *name = NULL;
		rc = slot_name(plt, got, &name);
		if (!rc && name)
			rc = add(plt, section.address + at, section.address + next, name);
		if (rc)
			return rc;
	}
	return 0;
}

int tally_symbols_add_plt(struct tally_symbols_builder *builder, const struct tally_object *object)
{
	static const char *const SECTIONS[] = { ".plt", ".plt.sec", ".plt.got", ".iplt" };
	uint16_t machine = tally_object_machine(object);
	if ((machine != EM_X86_64 && machine != EM_AARCH64) || !tally_object_is_64bit(object) ||
	    tally_object_is_swapped(object))
		return 0;
	tally_symbols_sort(builder);
	struct plt plt = { .builder = builder, .function_count = builder->count, .object = object };
	plt.has_dynsym = tally_symtab_open(object, ".dynsym", &plt.dynsym);
	int rc = read_relocations(&plt, ".rela.plt", true);
	if (rc)
		goto out;
	rc = read_relocations(&plt, ".rela.dyn", false);
	if (rc || !plt.sorted.count)
		goto out;
	qsort(plt.sorted.items, plt.sorted.count, sizeof(*plt.sorted.items), compare_got);
	for (size_t i = 0; i < sizeof(SECTIONS) / sizeof(SECTIONS[0]); i++) {
		rc = read_slots(&plt, SECTIONS[i]);
		if (rc)
			goto out;
	}
out:
	tally_vector_release(&plt.lazy);
	tally_vector_release(&plt.sorted);
	tally_map_release(&plt.resolvers);
	return rc;
}
