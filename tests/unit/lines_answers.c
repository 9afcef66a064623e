/* Prints the frames of each address of a program's code, one address a line, by tally or by libdw.
 *
 *     lines_answers tally|libdw PROGRAM [STEP [CACHE]]
 *
 * libdw's answers use its simplest functions: they list all functions of a unit and, for each
 * address, search the list from its start.  (dwarf_getscopes() doesn't find a function inside one
 * that has no code.) */
#include "object/cache.h"
#include "object/object.h"
#include "symbol/lines.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct addresses {
	uint64_t *items;
	size_t count;
};

static void print_frame(const char *function, const char *file, unsigned line, unsigned column)
{
	printf(" | %s %s:%u:%u", function ? function : "?", file ? file : "?", line, column);
}

/* Reads every STEPth byte of .text: an address may be anywhere in an instruction. */
static struct addresses read_addresses(const struct tally_object *object, uint64_t step)
{
	struct addresses addresses = { 0 };
	struct tally_section text;
	if (!tally_object_section(object, ".text", &text))
		exit(2);
	addresses.items = calloc(text.size / step + 1, sizeof(*addresses.items));
	for (uint64_t at = 0; addresses.items && at < text.size; at += step)
		addresses.items[addresses.count++] = text.address + at;
	return addresses;
}

static void print_ours(struct tally_object *object, const struct addresses *addresses,
		       const char *cache_folder)
{
	struct tally_object *debug = tally_search_debug(NULL, object, NULL);
	struct tally_disk_cache *cache = cache_folder ? tally_cache_open_at(cache_folder,
									    (uint64_t)1 << 30)
						      : NULL;
	struct tally_lines *lines;
	struct tally_line_answer *answers = calloc(addresses->count + 1, sizeof(*answers));
	if (!answers || tally_lines_new(object, debug, &lines, NULL) < 0)
		exit(2);
	tally_lines_use_cache(lines, cache);
	if (tally_lines_find(lines, addresses->items, addresses->count, answers) < 0)
		exit(2);
	for (size_t i = 0; i < addresses->count; i++) {
		printf("%llx", (unsigned long long)addresses->items[i]);
		for (uint32_t k = 0; k < answers[i].count; k++) {
			const struct tally_line_frame *frame = &answers[i].frames[k];
			print_frame(frame->function, frame->file, frame->line, frame->column);
		}
		putchar('\n');
	}
	tally_lines_keep(lines);
	tally_lines_free(lines);
	tally_cache_close(cache);
	tally_object_unref(debug);
	free(answers);
}

/* ---- libdw ---- */

static const char *name_of(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute))
		return dwarf_formstring(&attribute);
	return dwarf_diename(die);
}

static unsigned number_of(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;
	return dwarf_attr(die, name, &attribute) && dwarf_formudata(&attribute, &value) == 0
		       ? (unsigned)value
		       : 0;
}

/* A function or an inlined copy, in the order of the file: a container comes before its
 * contents. */
struct function {
	Dwarf_Die die;
	size_t parent; /* index of the container + 1 */
	bool is_inlined;
};

struct tree {
	struct function *items;
	size_t count, capacity;
};

static void list(struct tree *tree, Dwarf_Die *die, size_t parent)
{
	int tag = dwarf_tag(die);
	if (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine) {
		if (tree->count == tree->capacity) {
			tree->capacity = 2 * tree->capacity + 64;
			tree->items = realloc(tree->items, tree->capacity * sizeof(*tree->items));
			if (!tree->items)
				exit(2);
		}
		tree->items[tree->count++] = (struct function){ *die, parent,
								tag == DW_TAG_inlined_subroutine };
		parent = tree->count;
	}
	Dwarf_Die child;
	if (dwarf_child(die, &child) != 0)
		return;
	do
		list(tree, &child, parent);
	while (dwarf_siblingof(&child, &child) == 0);
}

/* Makes the compiler's path of a file absolute. */
static const char *whole(char path[8192], Dwarf_Die *unit, const char *file)
{
	Dwarf_Attribute attribute;
	const char *directory = dwarf_attr(unit, DW_AT_comp_dir, &attribute)
					? dwarf_formstring(&attribute)
					: NULL;
	if (!file || file[0] == '/' || !directory)
		return file;
	snprintf(path, 8192, "%s/%s", directory, file);
	return path;
}

/* `unit` has the line table, `tree` the functions: they differ if a unit is split. */
static void print_theirs_in(Dwarf_Die *unit, const struct tree *tree, Dwarf_Addr address)
{
	Dwarf_Line *row = dwarf_getsrc_die(unit, address);
	Dwarf_Files *files = NULL;
	size_t file_count = 0;
	char path[8192];
	dwarf_getsrcfiles(unit, &files, &file_count);
	const char *file = row ? dwarf_linesrc(row, NULL, NULL) : NULL;
	int line = 0, column = 0;
	if (row) {
		dwarf_lineno(row, &line);
		dwarf_linecol(row, &column);
	}
	size_t at = 0;
	for (size_t i = 0; i < tree->count; i++)
		if (dwarf_haspc(&tree->items[i].die, address) == 1)
			at = i + 1;
	if (at == 0 && row)
		print_frame(NULL, whole(path, unit, file), (unsigned)line, (unsigned)column);
	while (at > 0) {
		Dwarf_Die *die = &tree->items[at - 1].die;
		print_frame(name_of(die), whole(path, unit, file), (unsigned)line,
			    (unsigned)column);
		Dwarf_Attribute attribute;
		Dwarf_Word call_file;
		file = files && dwarf_attr(die, DW_AT_call_file, &attribute) &&
				       dwarf_formudata(&attribute, &call_file) == 0
			       ? dwarf_filesrc(files, call_file, NULL, NULL)
			       : NULL;
		line = (int)number_of(die, DW_AT_call_line);
		column = (int)number_of(die, DW_AT_call_column);
		at = tree->items[at - 1].is_inlined ? tree->items[at - 1].parent : 0;
	}
}

static void print_theirs(const char *path, const struct addresses *addresses)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Dwarf *dwarf = fd < 0 ? NULL : dwarf_begin(fd, DWARF_C_READ);
	if (!dwarf)
		exit(2);
	struct tree tree = { 0 };
	Dwarf_Off listed = (Dwarf_Off)-1; /* the unit that the tree belongs to */
	for (size_t i = 0; i < addresses->count; i++) {
		printf("%llx", (unsigned long long)addresses->items[i]);
		Dwarf_CU *unit = NULL;
		Dwarf_Die die, split;
		uint8_t type;
		while (dwarf_get_units(dwarf, unit, &unit, NULL, &type, &die, &split) == 0) {
			if (dwarf_tag(&die) == DW_TAG_partial_unit ||
			    dwarf_haspc(&die, addresses->items[i]) != 1)
				continue;
			if (listed != dwarf_dieoffset(&die)) {
				tree.count = 0;
				list(&tree, type == DW_UT_skeleton ? &split : &die, 0);
				listed = dwarf_dieoffset(&die);
			}
			print_theirs_in(&die, &tree, addresses->items[i]);
			break;
		}
		putchar('\n');
	}
	free(tree.items);
	dwarf_end(dwarf);
	close(fd);
}

int main(int argc, char **argv)
{
	struct tally_object *object;
	if (argc < 3 || tally_object_open(AT_FDCWD, argv[2], &object, NULL) < 0)
		return 2;
	struct addresses addresses = read_addresses(object,
						    argc > 3 ? strtoull(argv[3], NULL, 10) : 1);
	if (strcmp(argv[1], "tally") == 0)
		print_ours(object, &addresses, argc > 4 ? argv[4] : NULL);
	else
		print_theirs(argv[2], &addresses);
	tally_object_unref(object);
	free(addresses.items);
	return 0;
}
