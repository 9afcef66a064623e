/* Links a kernel module.
 *
 * A module is a relocatable object: its sections have no addresses, its symbols count from their
 * section's start, and addresses in its debug information are 0, with a relocation for each.  This
 * file makes a copy in which sections have the addresses that the kernel gave them, symbols have
 * absolute values, and the debug sections are relocated.  Code is relocated only on x86-64;
 * otherwise each call there would seem to go to the instruction behind it.  The copy's debug
 * sections are inflated and lie behind the rest of the file, so that no reader has to inflate them
 * again.
 *
 * Code without an address (.init, which the kernel frees once the module has started) is no code in
 * the copy, and its symbols belong to no section.
 */
#include "object/object.h"

#include "base/buffer.h"
#include "base/input_limits.h"
#include "base/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ADDRESS_BYTES_MAX = 64 };
static const size_t LINKED_MAX = (size_t)2 << 30;

/* Reads a compressed file.  The path may be a recording's, so it may lead to anything. */
static int read_packed(const char *path, size_t maximum, struct tally_buffer *out)
{
	struct stat status;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int result = -ENOEXEC;
	if (fd < 0)
		return -errno;
	if (fstat(fd, &status) < 0)
		result = -errno;
	else if (S_ISREG(status.st_mode))
		result = tally_buffer_read_descriptor(out, fd, maximum);
	close(fd);
	return result;
}

/* Unpacks a compressed file.  The caller frees *bytes. */
static int unpack_file(const char *path, size_t most, uint8_t **bytes, size_t *size)
{
	struct tally_buffer packed = { .maximum = most / 4 + TALLY_BUFFER_READ_ROOM };
	int result = read_packed(path, most / 4, &packed);
	if (result)
		goto out;
	result = -ENOEXEC;
	if (tally_is_packed(packed.bytes ? packed.bytes : "", packed.length))
		result = tally_unpack(packed.bytes, packed.length, most, bytes, size);
out:
	tally_buffer_release(&packed);
	return result;
}

int tally_module_open(const struct tally_object_search *search, const char *path,
		      struct tally_object **out)
{
	const size_t most = (size_t)tally_input_limit(TALLY_INPUT_MODULE);
	char below[PATH_MAX];
	uint8_t *bytes = NULL;
	size_t size;
	int result = tally_search_open(search, path, out);
	if (result != -ENOEXEC)
		return result;
	if (snprintf(below, sizeof(below), "%s%s", search->root ? search->root : "", path) >=
	    PATH_MAX)
		return -ENAMETOOLONG;
	result = unpack_file(below, most, &bytes, &size);
	if (result == -EFBIG)
		tally_input_note(TALLY_INPUT_MODULE, path);
	if (result)
		return result;
	result = tally_object_open_memory(path, bytes, size, out, NULL);
	free(bytes);
	return result;
}

/* ---- where sections lie -------------------------------------------------- */

static bool read_header(const struct tally_object *module, size_t index, GElf_Shdr *header,
			const char **name)
{
	Elf *elf = tally_object_elf(module);
	Elf_Scn *scn = elf_getscn(elf, index);
	size_t names;
	if (!scn || !gelf_getshdr(scn, header) || elf_getshdrstrndx(elf, &names) < 0)
		return false;
	*name = elf_strptr(elf, names, header->sh_name);
	return *name;
}

static bool is_code(const GElf_Shdr *header)
{
	return header->sh_flags & SHF_ALLOC && header->sh_flags & SHF_EXECINSTR;
}

uint64_t *tally_module_addresses(const struct tally_object *module, size_t *count)
{
	size_t size;
	if (elf_getshdrnum(tally_object_elf(module), count) < 0)
		*count = 0;
	tally_object_image(module, &size);
	if (*count > size / sizeof(Elf64_Shdr))
		*count = size / sizeof(Elf64_Shdr);
	return calloc(*count + 1, sizeof(uint64_t));
}

void tally_module_place(const struct tally_object *module, uint64_t start, uint64_t *addresses,
			size_t count)
{
	uint64_t end = start;
	for (size_t i = 1; i < count; i++) {
		GElf_Shdr header;
		const char *name;
		addresses[i] = 0;
		if (!read_header(module, i, &header, &name) || !is_code(&header) ||
		    !strncmp(name, ".init", 5))
			continue;
		uint64_t align = 1;
		if (header.sh_addralign && !(header.sh_addralign & (header.sh_addralign - 1)))
			align = header.sh_addralign;
		addresses[i] = (end + align - 1) & ~(align - 1);
		end = addresses[i] + header.sh_size;
	}
}

bool tally_module_place_by(const struct tally_object *module, const char *folder,
			   uint64_t *addresses, size_t count)
{
	bool has_any = false;
	for (size_t i = 1; i < count; i++) {
		GElf_Shdr header;
		const char *name;
		char path[PATH_MAX];
		struct tally_buffer text = { 0 };
		addresses[i] = 0;
		if (!read_header(module, i, &header, &name) || !is_code(&header) ||
		    strchr(name, '/') ||
		    snprintf(path, sizeof(path), "%s/%s", folder, name) >= PATH_MAX)
			continue;
		if (!tally_buffer_read_file(&text, AT_FDCWD, path, ADDRESS_BYTES_MAX))
			addresses[i] = strtoull(tally_buffer_string(&text), NULL, 16);
		has_any |= addresses[i] != 0;
		tally_buffer_release(&text);
	}
	return has_any;
}

/* ---- linking ------------------------------------------------------------- */

struct linking {
	const struct tally_object *module;
	const uint64_t *addresses;
	size_t count;
	uint8_t *image; /* the linked copy */
	size_t size, used; /* bytes; up to `used` it is filled */
	Elf64_Shdr *headers;
	const Elf64_Sym *symbols; /* as in the file */
	size_t symbol_count;
};

/* Returns how many bytes an absolute relocation writes; 0: none; -1: unknown type. */
static int bytes_of(uint16_t machine, uint32_t type)
{
	static const struct {
		uint16_t machine;
		uint32_t word, half, signed_half;
	} KINDS[] = {
		{ EM_X86_64, R_X86_64_64, R_X86_64_32, R_X86_64_32S },
		{ EM_AARCH64, R_AARCH64_ABS64, R_AARCH64_ABS32, R_AARCH64_ABS32 },
		{ EM_S390, R_390_64, R_390_32, R_390_32 },
		{ EM_PPC64, R_PPC64_ADDR64, R_PPC64_ADDR32, R_PPC64_ADDR32 },
	};
	for (size_t i = 0; i < sizeof(KINDS) / sizeof(*KINDS); i++) {
		if (KINDS[i].machine != machine)
			continue;
		if (!type)
			return 0;
		if (type == KINDS[i].word)
			return 8;
		if (type == KINDS[i].half || type == KINDS[i].signed_half)
			return 4;
		return -1;
	}
	return -1;
}

static uint64_t value_of(const struct linking *linking, const Elf64_Sym *symbol)
{
	bool is_in_section = symbol->st_shndx < SHN_LORESERVE && symbol->st_shndx < linking->count;
	if (is_in_section)
		return symbol->st_value + linking->addresses[symbol->st_shndx];
	return symbol->st_value;
}

/* Relocates code: calls and references that are 4 bytes of an address or of a distance.  Symbols of
 * other modules count as address 0, which no symbol has. */
static void relocate_code(const struct linking *linking, const struct tally_section *relocations,
			  size_t section)
{
	Elf64_Shdr *header = &linking->headers[section];
	for (size_t i = 0; i < relocations->size / sizeof(Elf64_Rela); i++) {
		Elf64_Rela one;
		Elf64_Sym symbol;
		memcpy(&one, relocations->bytes + i * sizeof(one), sizeof(one));
		uint32_t type = ELF64_R_TYPE(one.r_info);
		size_t number = ELF64_R_SYM(one.r_info);
		bool is_distance = type == R_X86_64_PC32 || type == R_X86_64_PLT32;
		if ((!is_distance && type != R_X86_64_32 && type != R_X86_64_32S) ||
		    number >= linking->symbol_count || one.r_offset > header->sh_size ||
		    header->sh_size - one.r_offset < sizeof(uint32_t))
			continue;
		memcpy(&symbol, linking->symbols + number, sizeof(symbol));
		uint64_t address = value_of(linking, &symbol) + (uint64_t)one.r_addend;
		if (is_distance)
			address -= linking->addresses[section] + one.r_offset;
		uint32_t value = (uint32_t)address;
		memcpy(linking->image + header->sh_offset + one.r_offset, &value, sizeof(value));
	}
}

static void link_code(struct linking *linking, size_t image_size)
{
	for (size_t k = 1; k < linking->count && tally_object_machine(linking->module) == EM_X86_64;
	     k++) {
		size_t section = linking->headers[k].sh_info;
		struct tally_section relocations;
		if (linking->headers[k].sh_type != SHT_RELA || section >= linking->count ||
		    !linking->addresses[section])
			continue;
		const Elf64_Shdr *header = &linking->headers[section];
		if (header->sh_type == SHT_PROGBITS && header->sh_offset <= image_size &&
		    header->sh_size <= image_size - header->sh_offset &&
		    !(header->sh_flags & SHF_COMPRESSED) &&
		    tally_object_section_at(linking->module, (uint32_t)k, &relocations) &&
		    relocations.bytes)
			relocate_code(linking, &relocations, section);
	}
}

/* Applies the relocations of a section.  Returns false at a relocation of unknown type. */
static bool relocate(const struct linking *linking, const struct tally_section *relocations,
		     uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < relocations->size / sizeof(Elf64_Rela); i++) {
		Elf64_Rela one;
		Elf64_Sym symbol;
		memcpy(&one, relocations->bytes + i * sizeof(one), sizeof(one));
		size_t number = ELF64_R_SYM(one.r_info);
		int width = bytes_of(tally_object_machine(linking->module),
				     ELF64_R_TYPE(one.r_info));
		if (width < 0)
			return false;
		if (!width || number >= linking->symbol_count || one.r_offset > size ||
		    size - one.r_offset < (size_t)width)
			continue;
		memcpy(&symbol, linking->symbols + number, sizeof(symbol));
		uint64_t value = value_of(linking, &symbol) + (uint64_t)one.r_addend;
		uint32_t half = (uint32_t)value;
		memcpy(bytes + one.r_offset, width == 8 ? (const void *)&value : &half,
		       (size_t)width);
	}
	return true;
}

static bool is_debug(const struct linking *linking, size_t index)
{
	GElf_Shdr header;
	const char *name;
	return read_header(linking->module, index, &header, &name) &&
	       header.sh_type != SHT_NOBITS && !strncmp(name, ".debug_", 7);
}

/* Appends the debug section to the copy; the caller has checked that it fits. */
static uint8_t *append(struct linking *linking, size_t index, const struct tally_section *section)
{
	uint8_t *to = linking->image + linking->used;
	memcpy(to, section->bytes, section->size);
	linking->headers[index].sh_offset = linking->used;
	linking->headers[index].sh_size = section->size;
	linking->headers[index].sh_flags &= ~(uint64_t)SHF_COMPRESSED;
	linking->used += (section->size + 7) & ~(size_t)7;
	return to;
}

/* Appends and relocates the debug sections.  Returns false when they can't be relocated. */
static bool link_debug(struct linking *linking)
{
	for (size_t i = 1; i < linking->count; i++) {
		struct tally_section section, relocations;
		if (!is_debug(linking, i) ||
		    !tally_object_section_at(linking->module, (uint32_t)i, &section) ||
		    !section.bytes)
			continue;
		if (section.size > linking->size - linking->used)
			return false;
		uint8_t *bytes = append(linking, i, &section);
		for (size_t k = 1; k < linking->count; k++) {
			if (linking->headers[k].sh_type == SHT_REL &&
			    linking->headers[k].sh_info == i)
				return false;
			if (linking->headers[k].sh_type != SHT_RELA ||
			    linking->headers[k].sh_info != i)
				continue;
			if (!tally_object_section_at(linking->module, (uint32_t)k, &relocations) ||
			    !relocations.bytes ||
			    !relocate(linking, &relocations, bytes, section.size))
				return false;
		}
	}
	return true;
}

static void drop_debug(struct linking *linking)
{
	for (size_t i = 1; i < linking->count; i++)
		if (is_debug(linking, i))
			linking->headers[i].sh_type = SHT_NOBITS;
}

static void link_symbols(struct linking *linking, size_t table)
{
	Elf64_Sym *symbols = (Elf64_Sym *)(linking->image + linking->headers[table].sh_offset);
	for (size_t i = 0; i < linking->symbol_count; i++) {
		uint16_t section = symbols[i].st_shndx;
		symbols[i].st_value = value_of(linking, &linking->symbols[i]);
		if (section < linking->count && section < SHN_LORESERVE &&
		    !linking->addresses[section])
			symbols[i].st_shndx = SHN_UNDEF;
	}
}

static void link_sections(struct linking *linking)
{
	for (size_t i = 1; i < linking->count; i++) {
		Elf64_Shdr *header = &linking->headers[i];
		header->sh_addr = linking->addresses[i];
		if (header->sh_flags & SHF_ALLOC && !header->sh_addr)
			header->sh_flags &= ~(uint64_t)(SHF_ALLOC | SHF_EXECINSTR);
	}
}

/* Finds the section of the symbol table; 0 when there is none or it is damaged. */
static size_t find_symbols(struct linking *linking, const uint8_t *image, size_t image_size)
{
	for (size_t i = 1; i < linking->count; i++) {
		const Elf64_Shdr *header = &linking->headers[i];
		if (header->sh_type != SHT_SYMTAB || header->sh_offset % 8 ||
		    header->sh_offset > image_size ||
		    header->sh_size > image_size - header->sh_offset ||
		    header->sh_flags & SHF_COMPRESSED)
			continue;
		linking->symbols = (const Elf64_Sym *)(image + header->sh_offset);
		linking->symbol_count = header->sh_size / sizeof(Elf64_Sym);
		return i;
	}
	return 0;
}

/* Returns the size of all debug sections when inflated.  Inflates them now, because that may change
 * headers. */
static size_t debug_bytes(const struct linking *linking)
{
	size_t total = 0;
	for (size_t i = 1; i < linking->count; i++) {
		struct tally_section section;
		if (is_debug(linking, i) &&
		    tally_object_section_at(linking->module, (uint32_t)i, &section) &&
		    section.bytes && section.size < LINKED_MAX && total < LINKED_MAX)
			total += (section.size + 7) & ~(size_t)7;
	}
	return total;
}

static int copy(struct linking *linking, size_t *table)
{
	size_t size;
	const uint8_t *image = tally_object_image(linking->module, &size);
	size_t debug = debug_bytes(linking), start = (size + 7) & ~(size_t)7;
	Elf64_Ehdr header;
	memcpy(&header, image, sizeof(header));
	if (header.e_shoff % 8 || header.e_shoff > size ||
	    linking->count > (size - header.e_shoff) / sizeof(Elf64_Shdr))
		return -EBADMSG;
	if (size > LINKED_MAX || debug > LINKED_MAX)
		return -ENOTSUP;
	linking->size = start + debug;
	linking->used = start;
	linking->image = calloc(1, linking->size + 1);
	if (!linking->image)
		return -ENOMEM;
	memcpy(linking->image, image, size);
	linking->headers = (Elf64_Shdr *)(linking->image + header.e_shoff);
	header.e_type = ET_DYN;
	memcpy(linking->image, &header, sizeof(header));
	*table = find_symbols(linking, image, size);
	if (!*table)
		return -EBADMSG;
	return 0;
}

int tally_module_link(const struct tally_object *module, const uint64_t *addresses, size_t count,
		      struct tally_object **out)
{
	struct linking linking = { .module = module, .addresses = addresses, .count = count };
	size_t table, size;
	tally_object_image(module, &size);
	if (tally_object_type(module) != ET_REL || !tally_object_is_64bit(module) ||
	    tally_object_is_swapped(module) || size < sizeof(Elf64_Ehdr))
		return -ENOTSUP;
	int result = copy(&linking, &table);
	if (result)
		goto out;
	if (!link_debug(&linking))
		drop_debug(&linking);
	link_code(&linking, size);
	link_symbols(&linking, table);
	link_sections(&linking);
	result = tally_object_open_memory(tally_object_path(module), linking.image, linking.size,
					  out, NULL);
	if (result && result != -ENOMEM)
		result = -EBADMSG;
out:
	free(linking.image);
	return result;
}

enum { NOTES_BYTES_MAX = 1 << 16 };

bool tally_module_name(const char *path, char name[TALLY_MODULE_NAME_BYTES])
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path + (*path == '[');
	const char *end = *path == '[' ? strchr(base, ']') : strstr(base, ".ko");
	size_t length = 0;
	if (end)
		length = (size_t)(end - base);
	if (!length || length >= TALLY_MODULE_NAME_BYTES || !strncmp(path, "[kernel", 7) ||
	    !strncmp(path, "[guest", 6) || (*path != '[' && end[3] && end[3] != '.'))
		return false;
	for (size_t i = 0; i < length; i++)
		name[i] = base[i] == '-' ? '_' : base[i];
	name[length] = '\0';
	return true;
}

/* "kernel/net/netfilter/nf_tables.ko.xz: kernel/…" */
bool tally_module_dependency_next(const char **text, struct tally_module_dependency *out)
{
	while (**text) {
		const char *line = *text;
		size_t length = strcspn(line, ":\n");
		bool is_path = line[length] == ':' && length < sizeof(out->path);
		*text = line + length + strcspn(line + length, "\n");
		*text += **text == '\n';
		if (!is_path)
			continue;
		memcpy(out->path, line, length);
		out->path[length] = '\0';
		if (strchr(out->path, '/') && !strstr(out->path, "..") &&
		    tally_module_name(out->path, out->name))
			return true;
	}
	return false;
}

bool tally_module_loaded_build_id(const char *name, struct tally_build_id *id)
{
	struct tally_buffer notes = { 0 };
	char path[160];
	snprintf(path, sizeof(path), "/sys/module/%s/notes/.note.gnu.build-id", name);
	bool found = !strchr(name, '/') &&
		     !tally_buffer_read_file(&notes, AT_FDCWD, path, NOTES_BYTES_MAX) &&
		     tally_build_id_from_notes(notes.bytes, notes.length, id);
	tally_buffer_release(&notes);
	return found;
}
