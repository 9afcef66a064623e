/* Reads the symbols of an ELF object: .symtab, or else Go's table, then .dynsym and the PLT.  A
 * filter chooses functions or variables, partly by the section that a symbol is in.  Most names
 * stay in the object's bytes, so the finished table holds references to the objects. */
#include "symbol/symbol_internal.h"

#include "base/binary_search.h"
#include "base/reader.h"
#include "object/object.h"
#include "symbol/symbol.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

bool tally_symtab_open(const struct tally_object *object, const char *section,
		       struct tally_symtab *out)
{
	struct tally_section symbols, names;
	bool has = tally_object_section(object, section, &symbols) && symbols.bytes &&
		   (symbols.type == SHT_SYMTAB || symbols.type == SHT_DYNSYM) &&
		   tally_object_section_at(object, symbols.link, &names) && names.bytes;
	if (!has && (strcmp(section, ".dynsym") != 0 ||
		     !tally_object_dynamic_symbols(object, &symbols, &names)))
		return false;
	*out = (struct tally_symtab){
		.bytes = symbols.bytes,
		.is_64bit = tally_object_is_64bit(object),
		.is_swapped = tally_object_is_swapped(object),
		.names = (const char *)names.bytes,
	};
	out->count = symbols.size / (out->is_64bit ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym));
	/* Every offset before the last NUL gives a terminated string. */
	const char *last = memrchr(names.bytes, '\0', names.size);
	out->names_size = last ? (size_t)(last - out->names) + 1 : 0;
	return true;
}

void tally_symtab_entry(const struct tally_symtab *table, size_t index, Elf64_Sym *out)
{
	if (table->is_64bit && !table->is_swapped) {
		memcpy(out, table->bytes + index * sizeof(*out), sizeof(*out));
		return;
	}
	struct tally_reader reader;
	if (table->is_64bit) {
		tally_reader_init(&reader, table->bytes + index * sizeof(Elf64_Sym),
				  sizeof(Elf64_Sym), table->is_swapped);
		out->st_name = tally_reader_u32(&reader);
		out->st_info = tally_reader_u8(&reader);
		out->st_other = tally_reader_u8(&reader);
		out->st_shndx = tally_reader_u16(&reader);
		out->st_value = tally_reader_u64(&reader);
		out->st_size = tally_reader_u64(&reader);
		return;
	}
	tally_reader_init(&reader, table->bytes + index * sizeof(Elf32_Sym), sizeof(Elf32_Sym),
			  table->is_swapped);
	out->st_name = tally_reader_u32(&reader);
	out->st_value = tally_reader_u32(&reader);
	out->st_size = tally_reader_u32(&reader);
	out->st_info = tally_reader_u8(&reader);
	out->st_other = tally_reader_u8(&reader);
	out->st_shndx = tally_reader_u16(&reader);
}

const char *tally_symtab_name(const struct tally_symtab *table, const Elf64_Sym *entry)
{
	if (entry->st_name < table->names_size)
		return table->names + entry->st_name;
	return "";
}

/* The section that contains a symbol. */
struct place {
	uint64_t start, end;
	bool is_code, is_data; /* neither: the section is not loaded */
};

/* Without section headers: the place of a symbol is its segment. */
static struct place segment_of(const struct tally_object *object, uint64_t address)
{
	const struct tally_segment *segment = tally_object_segment_at(object, address);
	if (!segment)
		return (struct place){ 0 };
	return (struct place){ segment->address, segment->address + segment->file_size,
			       segment->is_executable, !segment->is_executable };
}

static struct place *read_places(const struct tally_object *object, size_t *count)
{
	Elf *elf = tally_object_elf(object);
	if (elf_getshdrnum(elf, count) < 0)
		*count = 0;
	size_t size, possible;
	tally_object_image(object, &size);
	possible = size / sizeof(Elf32_Shdr);
	if (*count > possible)
		*count = possible;
	struct place *places = calloc(*count + 1, sizeof(*places));
	for (size_t i = 0; places && i < *count; i++) {
		GElf_Shdr header;
		Elf_Scn *scn = elf_getscn(elf, i);
		if (!scn || !gelf_getshdr(scn, &header))
			continue;
		places[i] = (struct place){ header.sh_addr, header.sh_addr + header.sh_size,
					    header.sh_flags & SHF_EXECINSTR,
					    header.sh_flags & SHF_ALLOC &&
						    !(header.sh_flags &
						      (SHF_EXECINSTR | SHF_TLS)) };
	}
	return places;
}

/* True for "$x", "$d.12": on ARM and RISC-V they mark where code and data begin, and name
 * nothing. */
static bool is_mapping_symbol(uint16_t machine, const char *name)
{
	if (machine != EM_ARM && machine != EM_AARCH64 && machine != EM_RISCV)
		return false;
	return name[0] == '$' && name[1] && strchr("adtx", name[1]) &&
	       (name[2] == '\0' || name[2] == '.');
}

/* True for functions.  Assembly's labels, and code that is marked as data, count when their section
 * has code. */
static bool is_function(const Elf64_Sym *symbol, const struct place *place)
{
	if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS)
		return false;
	switch (ELF64_ST_TYPE(symbol->st_info)) {
	case STT_FUNC:
	case STT_GNU_IFUNC:
		return true;
	case STT_OBJECT:
		return place && place->is_code;
	case STT_NOTYPE:
		return place && place->is_code &&
		       ELF64_ST_VISIBILITY(symbol->st_other) != STV_HIDDEN &&
		       ELF64_ST_VISIBILITY(symbol->st_other) != STV_INTERNAL;
	default:
		return false;
	}
}

static bool is_variable(const Elf64_Sym *symbol, const struct place *place)
{
	bool is_hidden = ELF64_ST_VISIBILITY(symbol->st_other) == STV_HIDDEN ||
			 ELF64_ST_VISIBILITY(symbol->st_other) == STV_INTERNAL;
	unsigned type = ELF64_ST_TYPE(symbol->st_info);
	return place && place->is_data && symbol->st_value >= place->start &&
	       (type == STT_OBJECT || (type == STT_NOTYPE && !is_hidden));
}

static uint8_t binding_of(const Elf64_Sym *symbol)
{
	switch (ELF64_ST_BIND(symbol->st_info)) {
	case STB_GLOBAL:
		return TALLY_SYMBOL_GLOBAL;
	case STB_WEAK:
		return TALLY_SYMBOL_WEAK;
	default:
		return TALLY_SYMBOL_LOCAL;
	}
}

static bool is_label(const Elf64_Sym *symbol)
{
	return ELF64_ST_TYPE(symbol->st_info) == STT_NOTYPE &&
	       ELF64_ST_BIND(symbol->st_info) == STB_LOCAL && symbol->st_size == 0;
}

typedef bool symbol_filter(const Elf64_Sym *symbol, const struct place *place);

/* Adds a symbol table.  Returns 1, 0 when there is none, -EFBIG or -ENOMEM. */
static int add_table(struct tally_symbols_builder *builder, const struct tally_object *object,
		     const char *section, symbol_filter *is_wanted)
{
	struct tally_symtab table;
	if (!tally_symtab_open(object, section, &table))
		return 0;
	size_t place_count;
	struct place *places = read_places(object, &place_count);
	uint16_t machine = tally_object_machine(object);
	int rc = 0;
	if (!places)
		return -ENOMEM;
	for (size_t i = 0; i < table.count; i++) {
		Elf64_Sym symbol;
		tally_symtab_entry(&table, i, &symbol);
		struct place segment = segment_of(object, place_count ? 0 : symbol.st_value);
		const struct place *place = NULL;
		if (symbol.st_shndx < place_count)
			place = &places[symbol.st_shndx];
		if (!place_count && segment.end)
			place = &segment;
		const char *name = tally_symtab_name(&table, &symbol);
		if (!*name || !is_wanted(&symbol, place) || is_mapping_symbol(machine, name))
			continue;
		uint64_t start = symbol.st_value;
		if (machine == EM_ARM)
			start &= ~(uint64_t)1; /* Thumb */
		uint64_t end;
		if (__builtin_add_overflow(start, symbol.st_size, &end))
			continue;
		/* "etext" and the like are the first address behind the section. */
		if (place && start >= place->end && end == start)
			continue;
		rc = tally_symbols_charge(builder, name);
		if (rc < 0)
			break;
		rc = tally_symbols_add(
			builder, &(struct tally_symbol_entry){
					 .start = start,
					 .end = end,
					 .limit = place && start >= place->start ? place->end : 0,
					 .name = name,
					 .binding = binding_of(&symbol),
					 .is_function = ELF64_ST_TYPE(symbol.st_info) == STT_FUNC,
					 .is_label = is_label(&symbol),
				 });
		if (rc < 0)
			break;
	}
	free(places);
	if (rc < 0)
		return rc;
	return 1;
}

bool tally_symbols_value_in(const struct tally_object *object, const char *name, uint64_t *value)
{
	struct tally_symtab table;
	Elf64_Sym symbol;
	for (size_t i = tally_symtab_open(object, ".symtab", &table) ? table.count : 0; i-- > 0;) {
		tally_symtab_entry(&table, i, &symbol);
		if (symbol.st_shndx == SHN_UNDEF ||
		    strcmp(tally_symtab_name(&table, &symbol), name) != 0)
			continue;
		*value = symbol.st_value;
		return true;
	}
	return false;
}

static int by_start(const void *a_, const void *b_)
{
	const struct tally_symbol_source *a = a_, *b = b_;
	return (a->start > b->start) - (a->start < b->start);
}

static void set_sources(struct tally_symbol_source *wanted, size_t count, uint64_t start,
			const char *name, const char *source)
{
	size_t at = tally_search(i, 0, count, wanted[i].start >= start);
	for (; at < count && wanted[at].start == start; at++)
		if (!wanted[at].source && !strcmp(wanted[at].name, name))
			wanted[at].source = source;
}

/* In .symtab, a source file's local symbols follow the symbol that names the file.  Link-time
 * optimization names its own file "<artificial>". */
static void find_sources_in(const struct tally_object *object, struct tally_symbol_source *wanted,
			    size_t count)
{
	struct tally_symtab table;
	const char *source = NULL;
	uint64_t thumb = tally_object_machine(object) == EM_ARM;
	for (size_t i = 0, all = tally_symtab_open(object, ".symtab", &table) ? table.count : 0;
	     i < all; i++) {
		Elf64_Sym symbol;
		tally_symtab_entry(&table, i, &symbol);
		const char *name = tally_symtab_name(&table, &symbol);
		if (ELF64_ST_BIND(symbol.st_info) != STB_LOCAL)
			continue;
		if (ELF64_ST_TYPE(symbol.st_info) == STT_FILE)
			source = *name && *name != '<' ? name : NULL;
		else if (source && symbol.st_shndx != SHN_UNDEF)
			set_sources(wanted, count, symbol.st_value & ~thumb, name, source);
	}
}

void tally_symbols_find_sources(const struct tally_object *object, const struct tally_object *debug,
				struct tally_symbol_source *wanted, size_t count)
{
	if (count)
		qsort(wanted, count, sizeof(*wanted), by_start);
	if (debug)
		find_sources_in(debug, wanted, count);
	find_sources_in(object, wanted, count);
}

/* The table keeps references to the objects, because its names lie there. */
static struct tally_object *hold(const struct tally_object *object)
{
	return tally_object_ref((struct tally_object *)object);
}

/* Adds the functions of Go's table.  Returns 0 or -ENOMEM. */
static int add_go_functions(struct tally_symbols_builder *builder,
			    const struct tally_object *object)
{
	struct tally_go_table table;
	uint8_t *copy;
	int rc = tally_go_object_open(object, &table, &copy);
	for (uint64_t i = 0; rc > 0 && i < table.count; i++) {
		struct tally_go_function function;
		if (!tally_go_table_function(&table, i, &function) || !*function.name)
			continue;
		struct tally_symbol_entry entry = { .start = function.start,
						    .end = function.end,
						    .name = function.name,
						    .is_function = true };
		int added = tally_symbols_charge(builder, function.name);
		/* the object has the name for longer than the copy */
		if (!added && copy)
			entry.name = tally_arena_string(&builder->names, function.name);
		if (!added && !entry.name)
			added = -ENOMEM;
		if (!added)
			added = tally_symbols_add(builder, &entry);
		if (added < 0)
			rc = added;
	}
	free(copy);
	if (rc < 0)
		return rc;
	return 0;
}

static uint64_t image_bytes(const struct tally_object *object)
{
	size_t size = 0;
	if (object)
		tally_object_image(object, &size);
	return size;
}

/* Adds the symbols of .symtab (without one, of Go's table), of .dynsym and of the PLT.  Returns a
 * negative errno on failure. */
static int add_symbols(struct tally_symbols_builder *builder, const struct tally_object *object,
		       const struct tally_object *debug, symbol_filter *is_wanted)
{
	int rc = 0;
	if (debug)
		rc = add_table(builder, debug, ".symtab", is_wanted);
	if (rc == 0)
		rc = add_table(builder, object, ".symtab", is_wanted);
	if (rc == 0 && is_wanted == is_function)
		rc = add_go_functions(builder, object);
	if (rc < 0)
		return rc;
	rc = add_table(builder, object, ".dynsym", is_wanted);
	if (rc < 0)
		return rc;
	if (is_wanted != is_function)
		return 0;
	return tally_symbols_add_plt(builder, object);
}

static int read_symbols(const struct tally_object *object, const struct tally_object *debug,
			symbol_filter *is_wanted, struct tally_symbols **out,
			struct tally_error *err)
{
	struct tally_symbols_builder builder = { .objects = { hold(object),
							      debug ? hold(debug) : NULL } };
	enum { NAME_TIMES = 8 }; /* two tables may have a name, and two more the name of its slot */
	builder.name_bytes_max = NAME_TIMES * (image_bytes(object) + image_bytes(debug));
	int rc = add_symbols(&builder, object, debug, is_wanted);
	if (rc < 0) {
		const char *path = tally_object_path(object);
		tally_symbols_abandon(&builder);
		if (rc == -EFBIG)
			return tally_error_set(err, rc, "the names of %s overlap", path);
		return tally_error_set(err, rc, "out of memory for the symbols of %s", path);
	}
	return tally_symbols_finish(&builder, out, err);
}

int tally_symbols_from_object(const struct tally_object *object, const struct tally_object *debug,
			      struct tally_symbols **out, struct tally_error *err)
{
	return read_symbols(object, debug, is_function, out, err);
}

int tally_symbols_of_data(const struct tally_object *object, const struct tally_object *debug,
			  struct tally_symbols **out, struct tally_error *err)
{
	return read_symbols(object, debug, is_variable, out, err);
}
