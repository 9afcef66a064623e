/* Gives records where they lie in the ring.  Only a record that wraps around the ring's end is
 * copied, into the bounce buffer. */
#include "session/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RECORD_BYTES_MAX = 1 << 16 };

static int open_ring(struct tally_ring *ring, struct tally_provider *provider, int handle, int cpu,
		     size_t data_pages, bool is_backward)
{
	errno = 0;
	struct tally_user_page *page = provider->ops->map(provider, handle, data_pages,
							  is_backward);
	if (!page)
		return errno ? -errno : -ENOMEM;
	/* Since Linux 4.1 the page says where the data is; a simulated machine may have another
	 * page size. */
	size_t page_bytes = page->data_offset ? page->data_offset : (size_t)sysconf(_SC_PAGESIZE);
	*ring = (struct tally_ring){
		.provider = provider,
		.page = page,
		.data = (const uint8_t *)page + page_bytes,
		.data_pages = data_pages,
		.mask = data_pages * page_bytes - 1,
		.handle = handle,
		.cpu = cpu,
		.is_backward = is_backward,
	};
	return 0;
}

int tally_ring_open(struct tally_ring *ring, struct tally_provider *provider, int handle, int cpu,
		    size_t data_pages)
{
	return open_ring(ring, provider, handle, cpu, data_pages, false);
}

int tally_ring_open_backward(struct tally_ring *ring, struct tally_provider *provider, int handle,
			     int cpu, size_t data_pages)
{
	return open_ring(ring, provider, handle, cpu, data_pages, true);
}

int tally_ring_reserve(struct tally_ring *ring)
{
	if (!ring->bounce)
		ring->bounce = malloc(RECORD_BYTES_MAX);
	return ring->bounce ? 0 : -ENOMEM;
}

void tally_ring_close(struct tally_ring *ring)
{
	if (ring->page)
		ring->provider->ops->unmap(ring->provider, ring->page, ring->data_pages);
	free(ring->bounce);
	*ring = (struct tally_ring){ 0 };
}

void tally_ring_note(struct tally_ring *ring)
{
	/* C, pairs with the kernel's B */
	ring->noted = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
}

static void copy_out(const struct tally_ring *ring, uint64_t at, void *out, size_t size)
{
	size_t offset = at & ring->mask, first = ring->mask + 1 - offset;
	if (first > size)
		first = size;
	memcpy(out, ring->data + offset, first);
	memcpy((uint8_t *)out + first, ring->data, size - first);
}

const void *tally_ring_at(struct tally_ring *ring, uint64_t at)
{
	struct tally_record_header header;
	const void *record = ring->data + (at & ring->mask);
	memcpy(&header, record, sizeof(header));
	if ((at & ring->mask) + header.size <= ring->mask + 1)
		return record;
	if (tally_ring_reserve(ring) < 0)
		return NULL;
	copy_out(ring, at, ring->bounce, header.size);
	return ring->bounce;
}

const void *tally_ring_peek(struct tally_ring *ring, size_t *size)
{
	struct tally_record_header header;
	uint64_t left = ring->noted - ring->tail;
	if (!left)
		return NULL;
	/* A header has 8 bytes at a multiple of 8, so it never wraps. */
	memcpy(&header, ring->data + (ring->tail & ring->mask), sizeof(header));
	if (header.size < sizeof(header) || header.size > left) {
		ring->tail = ring->noted;
		return NULL;
	}
	*size = header.size;
	return tally_ring_at(ring, ring->tail);
}

const void *tally_ring_piece(const struct tally_ring *ring, size_t *size)
{
	size_t offset = ring->tail & ring->mask, left = ring->mask + 1 - offset;
	*size = ring->noted - ring->tail < left ? ring->noted - ring->tail : left;
	return ring->data + offset;
}

void tally_ring_release_read(struct tally_ring *ring)
{
	/* D, pairs with the kernel's A */
	__atomic_store_n(&ring->page->data_tail, ring->tail, __ATOMIC_RELEASE);
}
