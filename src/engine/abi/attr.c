/* Finds the attribute's last byte that is not zero, and the first published size that includes
 * it. */
#include "abi/abi.h"

uint32_t tally_attr_size_needed(const struct tally_attr *attr)
{
	static const uint32_t sizes[] = { TALLY_ATTR_SIZE_VER0, TALLY_ATTR_SIZE_VER1,
					  TALLY_ATTR_SIZE_VER2, TALLY_ATTR_SIZE_VER3,
					  TALLY_ATTR_SIZE_VER4, TALLY_ATTR_SIZE_VER5,
					  TALLY_ATTR_SIZE_VER6, TALLY_ATTR_SIZE_VER7,
					  TALLY_ATTR_SIZE_VER8 };
	const unsigned char *bytes = (const unsigned char *)attr;
	uint32_t used = sizeof(*attr);
	while (used > TALLY_ATTR_SIZE_VER0 && !bytes[used - 1])
		used--;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (sizes[i] >= used)
			return sizes[i];
	return sizeof(*attr);
}
