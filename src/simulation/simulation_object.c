/* Makes an ELF object of the simulated program, so that readers of the recording find names.  It
 * has no code: its .text is a hole in the file.  Its symbols are the scenario's functions. */
#include "simulation/simulation_state.h"

#include <elf.h>
#include <string.h>

#define LOAD_ADDRESS 0x400000u

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
		tally_buffer_append(out, zeroes, left < sizeof(zeroes) ? left : sizeof(zeroes));
	}
}

static uint16_t machine_of(const struct scenario *scenario)
{
	return !strncmp(scenario->machine.model, "arm", 3) ||
			       !strcmp(scenario->machine.model, "big.LITTLE")
		       ? EM_AARCH64
		       : EM_X86_64;
}

int simulation_object_write(const struct scenario *scenario, struct tally_buffer *out)
{
	static const char section_names[] = "\0.text\0.symtab\0.strtab\0.shstrtab";
	struct tables tables = { 0 };
	make_tables(scenario, &tables);
	uint64_t text_offset = SCENARIO_CODE - LOAD_ADDRESS,
		 text_size = tables.text_end - SCENARIO_CODE;
	uint64_t symbols_at = text_offset + text_size,
		 names_at = symbols_at + tables.symbols.length;
	uint64_t sections_at = (names_at + tables.names.length + sizeof(section_names) + 7) & ~7ull;
	const Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = machine_of(scenario),
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
				  .p_align = 4096 };
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
	return out->failed ? -12 /* ENOMEM */ : 0;
}
