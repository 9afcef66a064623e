/* ELF files of 64 bits: headers, symbols, names, CFI, DWARF, notes, Go's table.
 *
 * A section that grew goes to the file's end, and its header says so; nothing else moves. */
#include "mutate.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

struct elf {
	struct bytes image;
	uint64_t headers, segments; /* offsets of both tables */
	size_t count, segment_count;
	struct bytes names;
};

static bool fits(struct bytes image, uint64_t offset, uint64_t size)
{
	return offset <= image.size && size <= image.size - offset;
}

static uint64_t field(const struct mutation *mutation, const struct elf *elf, size_t section,
		      size_t offset, unsigned width)
{
	return mutate_get(mutation,
			  elf->image.at + elf->headers + section * sizeof(Elf64_Shdr) + offset,
			  width);
}

#define FIELD(elf, section, name) \
	field(mutation, elf, section, offsetof(Elf64_Shdr, name), sizeof(((Elf64_Shdr *)0)->name))

static struct bytes section_bytes(struct mutation *mutation, const struct elf *elf, size_t section)
{
	uint64_t offset = FIELD(elf, section, sh_offset), size = FIELD(elf, section, sh_size);
	if (FIELD(elf, section, sh_type) == SHT_NOBITS || !fits(elf->image, offset, size))
		return (struct bytes){ 0 };
	return (struct bytes){ elf->image.at + offset, (size_t)size };
}

static const char *section_name(struct mutation *mutation, const struct elf *elf, size_t section)
{
	uint64_t name = FIELD(elf, section, sh_name);
	if (name >= elf->names.size || !memchr(elf->names.at + name, 0, elf->names.size - name))
		return "";
	return (const char *)elf->names.at + name;
}

static bool take_apart(struct mutation *mutation, struct bytes input, struct elf *out)
{
	if (input.size < sizeof(Elf64_Ehdr) || memcmp(input.at, ELFMAG, SELFMAG) != 0 ||
	    input.at[EI_CLASS] != ELFCLASS64)
		return false;
	mutation->swap = input.at[EI_DATA] == ELFDATA2MSB;
	*out = (struct elf){ .image = mutate_copy(mutation, input.at, input.size) };
#define HEAD(name, width) mutate_get(mutation, input.at + offsetof(Elf64_Ehdr, name), width)
	out->headers = HEAD(e_shoff, 8);
	out->segments = HEAD(e_phoff, 8);
	out->count = (size_t)HEAD(e_shnum, 2);
	out->segment_count = (size_t)HEAD(e_phnum, 2);
	size_t names = (size_t)HEAD(e_shstrndx, 2);
#undef HEAD
	if (!fits(input, out->headers, out->count * sizeof(Elf64_Shdr)))
		out->count = 0;
	if (!fits(input, out->segments, out->segment_count * sizeof(Elf64_Phdr)))
		out->segment_count = 0;
	if (names < out->count)
		out->names = section_bytes(mutation, out, names);
	return true;
}

/* Puts a section's new bytes into its place, or behind the file's end. */
static void replace(struct mutation *mutation, struct elf *elf, size_t section, struct bytes bytes)
{
	struct bytes old = section_bytes(mutation, elf, section);
	uint8_t *header = elf->image.at + elf->headers + section * sizeof(Elf64_Shdr);
	if (bytes.size <= old.size) {
		if (bytes.size)
			memcpy(old.at, bytes.at, bytes.size);
	} else {
		mutate_put(mutation, header + offsetof(Elf64_Shdr, sh_offset), 8, elf->image.size);
		elf->image = mutate_join(mutation, elf->image, bytes);
		header = elf->image.at + elf->headers + section * sizeof(Elf64_Shdr);
	}
	mutate_put(mutation, header + offsetof(Elf64_Shdr, sh_size), 8, bytes.size);
}

/* ---- what sections contain ----------------------------------------------- */

/* Entries that begin with their length in four bytes: CFI, units of DWARF. */
static struct pieces split_by_length(struct mutation *mutation, struct bytes bytes)
{
	struct pieces pieces = { 0 };
	size_t at = 0, size;
	for (; bytes.size - at >= 4; at += size) {
		uint64_t length = mutate_get(mutation, bytes.at + at, 4);
		size = length + 4 <= bytes.size - at ? (size_t)length + 4 : bytes.size - at;
		pieces_add(mutation, &pieces,
			   (struct piece){ mutate_copy(mutation, bytes.at + at, size), 0, false });
	}
	return pieces;
}

static struct pieces split_by_size(struct mutation *mutation, struct bytes bytes, size_t size)
{
	struct pieces pieces = { 0 };
	for (size_t at = 0; bytes.size - at >= size; at += size)
		pieces_add(mutation, &pieces,
			   (struct piece){ mutate_copy(mutation, bytes.at + at, size), 0, false });
	return pieces;
}

static struct pieces split_by_nul(struct mutation *mutation, struct bytes bytes)
{
	struct pieces pieces = { 0 };
	size_t at = 0, size;
	for (; at < bytes.size; at += size) {
		size = strnlen((const char *)bytes.at + at, bytes.size - at - 1) + 1;
		pieces_add(mutation, &pieces,
			   (struct piece){ mutate_copy(mutation, bytes.at + at, size), 0, false });
	}
	return pieces;
}

/* Writes a LEB128 number, sometimes a padded one, over one place. */
static void put_leb(struct mutation *mutation, struct bytes bytes)
{
	size_t length = 1 + mutate_random(mutation, mutate_once_in(mutation, 4) ? 11 : 3);
	if (bytes.size <= length)
		return;
	uint8_t *at = bytes.at + mutate_random(mutation, bytes.size - length);
	for (size_t i = 0; i < length; i++)
		at[i] = (uint8_t)(mutate_random(mutation, 256) | 0x80);
	at[length - 1] &= 0x7f;
}

/* Puts a prefix in front of a name, by which demanglers and readers know its language. */
static struct bytes begin_name(struct mutation *mutation, struct bytes name)
{
	static const char *const beginnings[] = {
		"_ZN",       "_Z3fooI",    "_ZTSN",           "_D3fooQ",
		"_RNvC",     "_RINv",      "_ZN4core3fmt17h", "$a",
		"$x.1",      "_R",         "_D4core",         "go:",
		"type:.eq.", "main.(*T).", "runtime.goexit",  "py::",
		"\x1b]0;",   "a@@B_1",     "__ksymtab_",      "_ZN1aC2IS",
		"_ZGVbN2v_", "_Dmain",
	};
	const char *chosen =
		beginnings[mutate_random(mutation, sizeof(beginnings) / sizeof(*beginnings))];
	struct bytes beginning = { (uint8_t *)chosen, strlen(chosen) };
	if (name.size > beginning.size && mutate_once_in(mutation, 2)) {
		name.at += beginning.size;
		name.size -= beginning.size;
	}
	return mutate_join(mutation, beginning, name);
}

static void settle_length(struct mutation *mutation, struct piece *piece)
{
	if (piece->bytes.size >= 4 && !mutate_once_in(mutation, 8))
		mutate_put(mutation, piece->bytes.at, 4, piece->bytes.size - 4);
}

static struct bytes change_pieces(struct mutation *mutation, struct pieces *pieces,
				  const struct pieces *other, bool by_length, bool of_names)
{
	if (!pieces->count || mutate_once_in(mutation, 3)) {
		pieces_shuffle(mutation, pieces, other);
		return pieces_join(mutation, pieces);
	}
	struct piece *piece = &pieces->items[mutate_random(mutation, pieces->count)];
	if (of_names && mutate_once_in(mutation, 2))
		piece->bytes = begin_name(mutation, piece->bytes);
	else if (!of_names && mutate_once_in(mutation, 3))
		put_leb(mutation, piece->bytes);
	else
		piece->bytes = mutate_bytes(mutation, piece->bytes);
	if (by_length)
		settle_length(mutation, piece);
	return pieces_join(mutation, pieces);
}

static struct pieces split(struct mutation *mutation, const char *name, struct bytes bytes,
			   bool *by_length, bool *of_names)
{
	static const char *const lists[] = {
		".eh_frame",    ".debug_frame",   ".debug_info",
		".debug_line",  ".debug_aranges", ".debug_rnglists",
		".debug_types", ".debug_addr",    ".debug_str_offsets"
	};
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		if (!strcmp(name, lists[i])) {
			*by_length = true;
			return split_by_length(mutation, bytes);
		}
	if (strstr(name, "sym"))
		return split_by_size(mutation, bytes, sizeof(Elf64_Sym));
	if (strstr(name, ".rela"))
		return split_by_size(mutation, bytes, sizeof(Elf64_Rela));
	if (strstr(name, "str")) {
		*of_names = true;
		return split_by_nul(mutation, bytes);
	}
	if (!strcmp(name, ".eh_frame_hdr") || !strcmp(name, ".gopclntab") ||
	    !strcmp(name, ".dynamic"))
		return split_by_size(mutation, bytes, 8);
	return (struct pieces){ 0 };
}

/* Finds the section of this name in another file. */
static struct bytes section_of(struct mutation *mutation, const struct elf *elf, const char *name)
{
	for (size_t i = 0; elf && i < elf->count; i++)
		if (!strcmp(section_name(mutation, elf, i), name))
			return section_bytes(mutation, elf, i);
	return (struct bytes){ 0 };
}

static void change_section(struct mutation *mutation, struct elf *elf, const struct elf *other)
{
	size_t section = mutate_random(mutation, elf->count);
	const char *name = section_name(mutation, elf, section);
	struct bytes bytes = section_bytes(mutation, elf, section),
		     others = section_of(mutation, other, name);
	bool by_length = false, of_names = false;
	if (others.size && mutate_once_in(mutation, 3)) {
		replace(mutation, elf, section, others);
		return;
	}
	struct pieces pieces = split(mutation, name, bytes, &by_length, &of_names);
	struct pieces more = split(mutation, name, others, &by_length, &of_names);
	bytes = pieces.count && !mutate_once_in(mutation, 6)
			? change_pieces(mutation, &pieces, &more, by_length, of_names)
			: mutate_bytes(mutation, bytes);
	replace(mutation, elf, section, bytes);
}

/* Packs a section as linkers do, for a reader that unpacks. */
static void pack_section(struct mutation *mutation, struct elf *elf)
{
	size_t section = mutate_random(mutation, elf->count);
	struct bytes bytes = section_bytes(mutation, elf, section);
	size_t room = ZSTD_compressBound(bytes.size);
	struct bytes packed = { mutate_alloc(mutation, sizeof(Elf64_Chdr) + room),
				sizeof(Elf64_Chdr) };
	size_t stored = ZSTD_compress(packed.at + packed.size, room, bytes.at, bytes.size, 1);
	if (ZSTD_isError(stored))
		return;
	packed.size += stored;
	mutate_put(mutation, packed.at, 4, 2 /* ELFCOMPRESS_ZSTD */);
	mutate_put(mutation, packed.at + offsetof(Elf64_Chdr, ch_size), 8, bytes.size);
	mutate_put(mutation, packed.at + offsetof(Elf64_Chdr, ch_addralign), 8, 1);
	replace(mutation, elf, section, packed);
	uint8_t *header = elf->image.at + elf->headers + section * sizeof(Elf64_Shdr);
	uint64_t flags = FIELD(elf, section, sh_flags);
	mutate_put(mutation, header + offsetof(Elf64_Shdr, sh_flags), 8, flags | SHF_COMPRESSED);
}

static void change_headers(struct mutation *mutation, struct elf *elf)
{
	struct bytes head = { elf->image.at, sizeof(Elf64_Ehdr) };
	unsigned kind = (unsigned)mutate_random(mutation, 3);
	if (kind == 0 && elf->segment_count)
		head = (struct bytes){ elf->image.at + elf->segments +
					       mutate_random(mutation, elf->segment_count) *
						       sizeof(Elf64_Phdr),
				       sizeof(Elf64_Phdr) };
	else if (kind == 1 && elf->count)
		head = (struct bytes){ elf->image.at + elf->headers +
					       mutate_random(mutation, elf->count) *
						       sizeof(Elf64_Shdr),
				       sizeof(Elf64_Shdr) };
	mutate_number(mutation, head);
}

struct bytes mutate_elf(struct mutation *mutation, struct bytes input, struct bytes other)
{
	struct elf elf, others;
	bool has_other = other.size && take_apart(mutation, other, &others);
	if (!take_apart(mutation, input, &elf))
		return (struct bytes){ 0 };
	for (size_t turns = 1 + mutate_random(mutation, 3); turns-- > 0;) {
		if (!elf.count || mutate_once_in(mutation, 8))
			change_headers(mutation, &elf);
		else if (mutate_once_in(mutation, 24))
			pack_section(mutation, &elf);
		else
			change_section(mutation, &elf, has_other ? &others : NULL);
	}
	if (mutate_once_in(mutation, 40))
		elf.image.size = mutate_random(mutation, elf.image.size + 1);
	return elf.image;
}
