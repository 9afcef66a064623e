/* Branches and repeated string instructions among x86-64's, told by prefixes and opcode. */
#include "valgrind/vsim_decode.h"

/* Sign-extended, of `size` bytes, from the instruction's end. */
static uint64_t relative(const uint8_t *bytes, unsigned at, unsigned size, unsigned length, uint64_t address)
{
	uint32_t value = 0;
	if (at + size > length)
		return 0;
	for (unsigned i = 0; i < size; i++)
		value |= (uint32_t)bytes[at + i] << 8 * i;
	return address + length + (uint64_t)(size == 1 ? (int64_t)(int8_t)value : (int64_t)(int32_t)value);
}

static bool is_prefix(uint8_t byte)
{
	switch (byte) {
	case 0x66: case 0x67: case 0xf0: case 0xf2: case 0xf3: /* sizes, lock, repne or bnd, rep */
	case 0x26: case 0x2e: case 0x36: case 0x3e: case 0x64: case 0x65: /* segments, hints, notrack */
		return true;
	}
	return (byte & 0xf0) == 0x40; /* REX */
}

/* movs, cmps, stos, lods, scas */
static bool is_string(uint8_t opcode)
{
	return (opcode >= 0xa4 && opcode <= 0xa7) || (opcode >= 0xaa && opcode <= 0xaf);
}

enum vsim_flow vsim_decode_flow(const uint8_t *bytes, unsigned length, uint64_t address, uint64_t *target)
{
	unsigned at = 0;
	bool repeats = false;
	*target = 0;
	for (; at < length && is_prefix(bytes[at]); at++)
		repeats |= bytes[at] == 0xf2 || bytes[at] == 0xf3;
	if (at == length)
		return VSIM_FLOW_ON;
	uint8_t opcode = bytes[at++], next = at < length ? bytes[at] : 0;
	if ((opcode >= 0x70 && opcode <= 0x7f) || (opcode >= 0xe0 && opcode <= 0xe3)) {
		*target = relative(bytes, at, 1, length, address);
		return VSIM_FLOW_CONDITIONAL;
	}
	if (opcode == 0x0f && at < length && next >= 0x80 && next <= 0x8f) {
		*target = relative(bytes, at + 1, 4, length, address);
		return VSIM_FLOW_CONDITIONAL;
	}
	switch (opcode) {
	case 0xeb:
		*target = relative(bytes, at, 1, length, address);
		return VSIM_FLOW_JUMP;
	case 0xe9:
		*target = relative(bytes, at, 4, length, address);
		return VSIM_FLOW_JUMP;
	case 0xe8:
		*target = relative(bytes, at, 4, length, address);
		return VSIM_FLOW_CALL;
	case 0xc2: case 0xc3: case 0xca: case 0xcb: case 0xcf:
		return VSIM_FLOW_RETURN;
	case 0xff:
		if (at == length)
			return VSIM_FLOW_ON;
		switch (next >> 3 & 7) {
		case 2: case 3:
			return VSIM_FLOW_INDIRECT_CALL;
		case 4: case 5:
			return VSIM_FLOW_INDIRECT_JUMP;
		}
		return VSIM_FLOW_ON;
	}
	return repeats && is_string(opcode) ? VSIM_FLOW_REPEAT : VSIM_FLOW_ON;
}
