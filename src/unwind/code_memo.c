#include "unwind/code_memo.h"

#include <stdlib.h>
#include <string.h>

enum { ENTRIES = 2048 };

struct entry {
	uint64_t space, address; /* address 0: free */
	uint8_t code[TALLY_CODE_MEMO_BYTES];
	bool is_found;
	struct tally_code_frame frame;
};

struct tally_code_memo {
	struct entry entries[ENTRIES];
};

struct tally_code_memo *tally_code_memo_new(void)
{
	return calloc(1, sizeof(struct tally_code_memo));
}

void tally_code_memo_free(struct tally_code_memo *memo)
{
	free(memo);
}

void tally_code_memo_clear(struct tally_code_memo *memo)
{
	memset(memo, 0, sizeof(*memo));
}

static size_t index_of(uint64_t space, uint64_t address)
{
	return ((address + space * 0x9e3779b97f4a7c15ull) * 0xd6e8feb86659fd93ull >> 40) % ENTRIES;
}

bool tally_code_memo_get(const struct tally_code_memo *memo, uint64_t space, uint64_t address,
			 const uint8_t *code, bool *is_found, struct tally_code_frame *frame)
{
	const struct entry *entry = &memo->entries[index_of(space, address)];
	if (!address || entry->address != address || entry->space != space ||
	    memcmp(entry->code, code, sizeof(entry->code)) != 0)
		return false;
	*is_found = entry->is_found;
	*frame = entry->frame;
	return true;
}

void tally_code_memo_put(struct tally_code_memo *memo, uint64_t space, uint64_t address,
			 const uint8_t *code, bool is_found, const struct tally_code_frame *frame)
{
	struct entry *entry = &memo->entries[index_of(space, address)];
	*entry = (struct entry){ .space = space, .address = address, .is_found = is_found };
	memcpy(entry->code, code, sizeof(entry->code));
	if (is_found)
		entry->frame = *frame;
}
