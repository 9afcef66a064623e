/* A strict decoder of UTF-8, and the ranges of characters that are not plain. */
#include "base/characters.h"

unsigned tally_character_decode(const char *text, uint32_t *character)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *at = (const unsigned char *)text;
	unsigned length = 0;
	if (*at < 0x80) {
		*character = *at;
		return *at != 0;
	}
	if (*at >= 0xc2 && *at <= 0xdf)
		length = 2;
	else if ((*at & 0xf0) == 0xe0)
		length = 3;
	else if (*at >= 0xf0 && *at <= 0xf4)
		length = 4;
	uint32_t c = *at & (0x7fu >> length);
	for (unsigned i = 1; i < length; i++) {
		if (tally_begins_character((char)at[i]))
			return 0;
		c = c << 6 | (at[i] & 0x3fu);
	}
	if (!length || c < least[length] || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
		return 0;
	*character = c;
	return length;
}

bool tally_character_is_plain(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} others[] = {
		{ 0, 0x1f },        { 0x7f, 0x9f },     { 0x61c, 0x61c },
		{ 0x200e, 0x200f }, /* marks of left to right, right to left */
		{ 0x2028, 0x202e }, /* separators; embeddings and overrides */
		{ 0x2066, 0x206f }, /* isolates; deprecated marks */
		{ 0xd800, 0xdfff }, { 0xfdd0, 0xfdef }, { 0xfeff, 0xfeff },
	};
	if (c >= ' ' && c < 0x7f)
		return true;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (c >= others[i].first && c <= others[i].last)
			return false;
	return (c & 0xfffe) != 0xfffe && c <= 0x10ffff;
}
