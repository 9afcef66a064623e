/* A symbol table as bytes, for a cache: the result of sorting, choosing and naming.
 *
 *     u32 count, u32 bytes of names, count × { u32 start, u32 size, u32 name }, names, each with a NUL
 *
 * Starts are relative to a base, so a kernel's table is valid at every KASLR offset.  Reading
 * checks what lookups rely on: the order of starts, and the ends of names. */
#include "symbol/symbol.h"

#include "base/buffer.h"
#include "symbol/symbol_table.h"

#include <errno.h>
#include <string.h>

struct head {
	uint32_t count, name_bytes;
};

struct packed {
	uint32_t start, size, name;
};

static bool is_packable(const struct tally_symbols *symbols, const struct tally_symbol *symbol)
{
	return !tally_symbol_module(symbols, symbol);
}

int tally_symbols_pack(const struct tally_symbols *symbols, uint64_t base, struct tally_buffer *out)
{
	size_t count, head_at = out->length;
	const struct tally_symbol *list = tally_symbols_list(symbols, &count);
	struct head head = { 0 };
	tally_buffer_append(out, &head, sizeof(head));
	for (size_t i = 0; i < count; i++) {
		const struct tally_symbol *symbol = &list[i];
		size_t name_bytes = strlen(symbol->name) + 1;
		if (!is_packable(symbols, symbol))
			continue;
		if (symbol->start < base || symbol->start - base > UINT32_MAX ||
		    symbol->end - symbol->start > UINT32_MAX ||
		    name_bytes > UINT32_MAX - head.name_bytes)
			return -ERANGE;
		const struct packed packed = { (uint32_t)(symbol->start - base),
					       (uint32_t)(symbol->end - symbol->start),
					       head.name_bytes };
		tally_buffer_append(out, &packed, sizeof(packed));
		head.name_bytes += (uint32_t)name_bytes;
		head.count++;
	}
	for (size_t i = 0; i < count; i++)
		if (is_packable(symbols, &list[i]))
			tally_buffer_append(out, list[i].name, strlen(list[i].name) + 1);
	if (out->failed)
		return -ENOMEM;
	memcpy(out->bytes + head_at, &head, sizeof(head));
	return 0;
}

int tally_symbols_unpack(const void *bytes, size_t size, uint64_t base, struct tally_symbols **out)
{
	struct head head;
	if (size < sizeof(head))
		return -EBADMSG;
	memcpy(&head, bytes, sizeof(head));
	const uint8_t *entries = (const uint8_t *)bytes + sizeof(head);
	uint64_t entry_bytes = (uint64_t)head.count * sizeof(struct packed);
	if (size - sizeof(head) != entry_bytes + head.name_bytes)
		return -EBADMSG;
	const char *names = (const char *)entries + entry_bytes;
	if (head.name_bytes ? names[head.name_bytes - 1] != '\0' : head.count > 0)
		return -EBADMSG;
	struct tally_symbol *list;
	int result = tally_symbols_new(head.count, &list, out);
	uint64_t least = 0;
	for (uint32_t i = 0; !result && i < head.count; i++) {
		struct packed packed;
		memcpy(&packed, entries + (size_t)i * sizeof(packed), sizeof(packed));
		uint64_t start = base + packed.start;
		if (packed.name >= head.name_bytes || start < least || start + packed.size < start)
			result = -EBADMSG;
		list[i] = (struct tally_symbol){ start, start + packed.size,
						 names + packed.name % head.name_bytes };
		least = start;
	}
	if (!result) {
		tally_symbols_nest(*out);
		return 0;
	}
	if (result != -ENOMEM)
		tally_symbols_free(*out);
	*out = NULL;
	return result;
}
