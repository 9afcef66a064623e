#include "base/vector.h"

#include "base/huge.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

int tally_vector_reserve_(void **items, size_t *capacity, size_t need, size_t item_bytes)
{
	size_t wanted = *capacity ? *capacity : 16;
	while (wanted < need) {
		if (wanted > SIZE_MAX / 2)
			return -ENOMEM;
		wanted *= 2;
	}
	size_t total;
	if (__builtin_mul_overflow(wanted, item_bytes, &total))
		return -ENOMEM;
	void *grown = tally_huge_grow(*items, *capacity * item_bytes, total);
	if (!grown)
		return -ENOMEM;
	*items = grown;
	*capacity = wanted;
	return 0;
}

void tally_vector_release_(void **items)
{
	free(*items);
	*items = NULL;
}
