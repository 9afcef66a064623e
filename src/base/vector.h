/* A growable array of any type, with a maximum.
 *
 *     TALLY_VECTOR(struct frame) frames = {0};
 *     if (tally_vector_push(&frames, frame) < 0) return -ENOMEM;
 *     frames.items[0]; frames.count;
 *     tally_vector_release(&frames);
 */
#ifndef TALLY_BASE_VECTOR_H
#define TALLY_BASE_VECTOR_H

#include <stddef.h>
#include <stdint.h>

/* Two vectors of one item type have different struct types: name the struct if it must be passed to
 * functions. */
#define TALLY_VECTOR(type) \
	struct { \
		type *items; \
		size_t count; \
		size_t capacity; \
	}

/* Makes room for `need` items; doubles the capacity.  Returns 0, or -ENOMEM (the old items
 * stay). */
int tally_vector_reserve_(void **items, size_t *capacity, size_t need, size_t item_bytes);

#define tally_vector_grow_(vector, need) \
	tally_vector_reserve_((void **)&(vector)->items, &(vector)->capacity, (need), \
			      sizeof(*(vector)->items))

#define tally_vector_reserve(vector, need) \
	((size_t)(need) <= (vector)->capacity ? 0 : tally_vector_grow_((vector), (need)))

/* Appends an item. 0 or -ENOMEM. */
#define tally_vector_push(vector, ...) \
	(tally_vector_reserve((vector), (vector)->count + 1) < 0 ? -12 /* -ENOMEM */ : \
	 ((vector)->items[(vector)->count++] = (__VA_ARGS__), 0))

#define tally_vector_release(vector) \
	(tally_vector_release_((void **)&(vector)->items), (vector)->count = (vector)->capacity = 0)

void tally_vector_release_(void **items);

/* Sorts by a 64-bit key in linear time.  Equal keys keep their order. */

struct tally_radix_item {
	uint64_t key;
	uint32_t index; /* position of the item that is sorted */
};

/* Sorts `keys` with the help of `spare`, which has the same size.  The result is in one of the two
 * arrays, which is returned. */
struct tally_radix_item *tally_radix_sort(struct tally_radix_item *keys,
					  struct tally_radix_item *spare, size_t count);

#endif
