/* Prints %pM, %pI4, %pI6, %pIS, %pU: addresses and identifiers
 * (Documentation/core-api/printk-formats.rst). */
#include "tracepoint/tracepoint_internal.h"

#include <string.h>

static void print_mac(struct tally_buffer *out, const char *variant, const uint8_t *bytes,
		      size_t length)
{
	if (length != 6) {
		tally_buffer_text(out, "INVALIDMAC");
		return;
	}
	uint8_t ordered[6];
	bool reverse = variant[1] == 'R';
	for (size_t i = 0; i < 6; i++)
		ordered[i] = bytes[reverse ? 5 - i : i];
	const char *separator = variant[1] == 'F' ? "-" : ":";
	if (variant[0] == 'm')
		separator = "";
	tally_print_hex_bytes(out, ordered, 6, separator);
}

static void print_ipv4(struct tally_buffer *out, bool leading_zeros, bool reverse,
		       const uint8_t *bytes)
{
	const struct tally_print_spec spec = { .conversion = 'u',
					       .zero = leading_zeros,
					       .precision = -1,
					       .width = leading_zeros ? 3 : 0,
					       .plain = !leading_zeros };
	for (size_t i = 0; i < 4; i++) {
		if (i > 0)
			tally_buffer_char(out, '.');
		tally_print_number(out, &spec, 0, bytes[reverse ? 3 - i : i]);
	}
}

static uint16_t word_at(const uint8_t *bytes, size_t word)
{
	return (uint16_t)(bytes[2 * word] << 8 | bytes[2 * word + 1]);
}

/* Finds the longest run of at least two zero words among the first `range`; the first of equally
 * long ones.  Returns its length, or 0. */
static size_t longest_zeros(const uint8_t *bytes, size_t range, size_t *start)
{
	size_t longest = 1;
	for (size_t i = 0; i < range; i++) {
		size_t run = 0;
		while (i + run < range && word_at(bytes, i + run) == 0)
			run++;
		if (run > longest) {
			longest = run;
			*start = i;
		}
	}
	if (longest > 1)
		return longest;
	return 0;
}

/* Prints as in RFC 5952; mapped and ISATAP addresses with the last 32 bits as IPv4. */
static void print_ipv6_short(struct tally_buffer *out, const uint8_t *bytes)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	bool has_ipv4 = memcmp(bytes, mapped, 12) == 0 ||
			((bytes[8] | 2) == 2 && memcmp(bytes + 9, "\x00\x5e\xfe", 3) == 0);
	size_t range = has_ipv4 ? 6 : 8, start = 0;
	size_t zeros = longest_zeros(bytes, range, &start);
	bool needs_colon = false;
	for (size_t i = 0; i < range; i++) {
		if (zeros && i == start) {
			tally_buffer_text(out, needs_colon || i == 0 ? "::" : ":");
			needs_colon = false;
			i += zeros - 1;
			continue;
		}
		static const struct tally_print_spec spec = { .conversion = 'x',
							      .plain = true,
							      .precision = -1 };
		if (needs_colon)
			tally_buffer_char(out, ':');
		tally_print_number(out, &spec, 0, word_at(bytes, i));
		needs_colon = true;
	}
	if (has_ipv4) {
		if (needs_colon)
			tally_buffer_char(out, ':');
		print_ipv4(out, false, false, bytes + 12);
	}
}

static void print_ipv6(struct tally_buffer *out, bool colons, bool compressed, const uint8_t *bytes)
{
	if (compressed) {
		print_ipv6_short(out, bytes);
		return;
	}
	for (size_t i = 0; i < 16; i += 2) {
		if (i > 0 && colons)
			tally_buffer_char(out, ':');
		tally_print_hex_bytes(out, bytes + i, 2, "");
	}
}

static void print_port(struct tally_buffer *out, const uint8_t *bytes)
{
	tally_buffer_char(out, ':');
	tally_print_decimal(out, word_at(bytes, 0));
}

/* Prints a struct sockaddr of the recording machine: Linux' families 2 (16 bytes) and 10 (28
 * bytes).  Other families print nothing. */
static void print_socket_address(struct tally_buffer *out, const char *variant,
				 const uint8_t *bytes, size_t length, bool swap)
{
	bool port = variant[2] & 1, compressed = variant[2] & 2, reverse = variant[2] & 4;
	uint16_t family;
	if (length < 2)
		return;
	memcpy(&family, bytes, 2);
	if (swap)
		family = __builtin_bswap16(family);
	if (family == 2 && length < 16) {
		tally_buffer_text(out, "INVALIDIPv4");
	} else if (family == 2) {
		print_ipv4(out, variant[0] == 'i', reverse, bytes + 4);
		if (port)
			print_port(out, bytes + 2);
	} else if (family == 10 && length < 28) {
		tally_buffer_text(out, "INVALIDIPv6");
	} else if (family == 10) {
		if (port)
			tally_buffer_char(out, '[');
		print_ipv6(out, variant[0] == 'I', compressed, bytes + 8);
		if (port) {
			tally_buffer_char(out, ']');
			print_port(out, bytes + 2);
		}
	}
}

static void print_uuid(struct tally_buffer *out, const char *variant, const uint8_t *bytes,
		       size_t length)
{
	static const uint8_t little_endian[16] = { 3, 2, 1,  0,  5,  4,  7,  6,
						   8, 9, 10, 11, 12, 13, 14, 15 };
	static const char digits[2][17] = { "0123456789abcdef", "0123456789ABCDEF" };
	if (length != 16) {
		tally_buffer_text(out, "INVALIDUUID");
		return;
	}
	bool upper = variant[1] == 'L' || variant[1] == 'B';
	bool reorder = variant[1] == 'L' || variant[1] == 'l';
	for (size_t i = 0; i < 16; i++) {
		uint8_t byte = bytes[reorder ? little_endian[i] : i];
		tally_buffer_char(out, digits[upper][byte >> 4]);
		tally_buffer_char(out, digits[upper][byte & 15]);
		if (i == 3 || i == 5 || i == 7 || i == 9)
			tally_buffer_char(out, '-');
	}
}

void tally_print_address(struct tally_buffer *out, const char *variant, const uint8_t *bytes,
			 size_t length, bool swap)
{
	switch (variant[0]) {
	case 'M':
	case 'm':
		print_mac(out, variant, bytes, length);
		return;
	case 'U':
		print_uuid(out, variant, bytes, length);
		return;
	default:
		break;
	}
	if (variant[1] == 'S')
		print_socket_address(out, variant, bytes, length, swap);
	else if (variant[1] == '4' && length != 4)
		tally_buffer_text(out, "INVALIDIPv4");
	else if (variant[1] == '4')
		print_ipv4(out, variant[0] == 'i', variant[2] & 4, bytes);
	else if (length != 16)
		tally_buffer_text(out, "INVALIDIPv6");
	else
		print_ipv6(out, variant[0] == 'I', variant[2] & 2, bytes);
}
