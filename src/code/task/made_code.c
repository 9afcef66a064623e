/* A direct-mapped cache of pages of other processes' memory.  Each pass reads a page anew on its
 * first use; if that fails because the process has ended, the old content stays. */
#include "task/jit.h"

#include "unwind/unwind.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, PAGES = 512, MEMO_PASSES = 128 };

struct page {
	uint64_t address, pass;
	uint32_t pid;
	size_t size; /* bytes that could be read; 0: none */
	uint8_t bytes[PAGE];
};

struct tally_made_code {
	long (*read)(void *context, uint32_t pid, uint64_t address, void *out, size_t size);
	void *context;
	uint64_t pass;
	struct page *pages[PAGES];
	struct tally_code_memo *memo; /* made on first use */
};

struct tally_made_code *tally_made_code_new(long (*read)(void *context, uint32_t pid,
							 uint64_t address, void *out, size_t size),
					    void *context)
{
	struct tally_made_code *code = calloc(1, sizeof(*code));
	if (code)
		*code = (struct tally_made_code){ .read = read, .context = context, .pass = 1 };
	return code;
}

void tally_made_code_free(struct tally_made_code *code)
{
	for (size_t i = 0; code && i < PAGES; i++)
		free(code->pages[i]);
	if (code)
		tally_code_memo_free(code->memo);
	free(code);
}

void tally_made_code_pass(struct tally_made_code *code)
{
	code->pass++;
	if (code->memo && code->pass % MEMO_PASSES == 0)
		tally_code_memo_clear(code->memo);
}

struct tally_code_memo *tally_made_code_memo(struct tally_made_code *code)
{
	if (!code->memo)
		code->memo = tally_code_memo_new();
	return code->memo;
}

static const struct page *page_of(struct tally_made_code *code, uint32_t pid, uint64_t address)
{
	struct page **place = &code->pages[(address / PAGE + pid * 31u) % PAGES];
	if (!*place)
		*place = calloc(1, sizeof(**place));
	struct page *page = *place;
	if (!page || (page->pass == code->pass && page->pid == pid && page->address == address))
		return page;
	long got = code->read(code->context, pid, address, page->bytes, PAGE);
	if (got <= 0 && page->pid == pid && page->address == address)
		got = (long)page->size; /* the process has ended; its code stays as it was */
	page->size = got > 0 ? (size_t)got : 0;
	page->address = address;
	page->pass = code->pass;
	page->pid = pid;
	return page;
}

size_t tally_made_code_read(struct tally_made_code *code, uint32_t pid, uint64_t address, void *out,
			    size_t size)
{
	size_t done = 0;
	while (done < size) {
		uint64_t at = address + done, offset = at % PAGE;
		const struct page *page = page_of(code, pid, at - offset);
		size_t left = 0;
		if (page && page->size > offset)
			left = page->size - (size_t)offset;
		size_t part = left;
		if (part > size - done)
			part = size - done;
		if (!part)
			break;
		memcpy((uint8_t *)out + done, page->bytes + offset, part);
		done += part;
	}
	return done;
}
