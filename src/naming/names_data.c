/* Names of data addresses.  Few recordings have such addresses.  So symbols of data are kept apart
 * from those of functions, whose tables stay small, and are read on first use. */
#include "naming/name_functions.h"
#include "naming/name_tables.h"

#include <errno.h>

/* Returns the object's variable at a place; NULL: not known, or memory is out. */
static const struct tally_symbol *find_variable(struct tally_names *names,
						const struct tally_place *place,
						struct tally_name_table *table, uint64_t *offset)
{
	struct tally_object_entry *entry = tally_name_table_entry(names, place->file);
	uint64_t address;
	if (!entry || !tally_object_address_of_offset(entry->object, place->address, &address))
		return NULL;
	if (!table->data_tried && tally_symbols_of_data(entry->object, tally_objects_debug(entry),
							&table->data, NULL) < 0)
		table->data = NULL;
	table->data_tried = true;
	const struct tally_symbol *symbol = table->data ? tally_symbols_find(table->data, address)
							: NULL;
	*offset = symbol ? address - symbol->start : 0;
	return symbol;
}

/* Returns the process whose private memory it is: other processes have other memory at this
 * address.  0: a file's memory, or the kernel's. */
static uint32_t owner_of(const struct tally_tasks *tasks, uint32_t pid,
			 const struct tally_place *place)
{
	if (place->file == TALLY_FILE_NONE)
		return pid;
	return place->file == TALLY_FILE_KERNEL ? 0 : tasks->files.items[place->file].pid;
}

int tally_names_data(struct tally_names *names, uint32_t pid, uint64_t address,
		     struct tally_data_name *out)
{
	const struct tally_mapping *mapping = tally_tasks_find(names->tasks, pid, address >> 63,
							       address);
	struct tally_place place = tally_place_of(names->tasks, pid, address >> 63, address);
	*out = (struct tally_data_name){ .start = place.address,
					 .pid = owner_of(names->tasks, pid, &place) };
	/* Memory without a file that is not executable gets the kernel's name for it, not that of a
	 * JIT. */
	if (mapping && !mapping->executable && names->tasks->files.items[mapping->file].pid) {
		out->object = tally_tasks_path(names->tasks, mapping->file);
		return 0;
	}
	uint32_t function = tally_names_function(names, &place, &out->offset);
	if (function == UINT32_MAX)
		return -ENOMEM;
	out->object = tally_names_object(names, function);
	if (names->functions.items[function].name != TALLY_STRING_NONE) {
		out->name = tally_names_text(names, function);
		out->start = names->functions.items[function].start;
		return 0;
	}
	out->offset = 0; /* code without a symbol: `start` is the place itself */
	if (tally_names_file(names, &place) == TALLY_FILE_NONE || place.file == TALLY_FILE_KERNEL)
		return 0;
	struct tally_name_table *table = tally_name_table_of(names, place.file);
	const struct tally_symbol *symbol = table && !table->is_jit && !table->is_kernel
						    ? find_variable(names, &place, table,
								    &out->offset)
						    : NULL;
	if (!symbol)
		return table ? 0 : -ENOMEM;
	uint32_t text = tally_names_intern_text(names, &table->texts, symbol->name);
	if (text == TALLY_STRING_NONE)
		return -ENOMEM;
	out->name = tally_strings_text(&names->strings, text);
	out->start = symbol->start;
	out->is_variable = true;
	return 0;
}
