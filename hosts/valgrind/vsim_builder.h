/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The state of one block of code while code is added to it.  vsim_instrument.c adds counting, and
 * vsim_ask.c adds the questions to the model. */
#ifndef TALLY_VALGRIND_VSIM_BUILDER_H
#define TALLY_VALGRIND_VSIM_BUILDER_H

#include "valgrind/vsim_region.h"
#include "valgrind/vsim_run.h"

#include "pub_tool_hashtable.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_machine.h"
#include "pub_tool_mallocfree.h"

#include <libvex_guest_amd64.h>

enum { STEPS_MAX = 512, ACCESSES_MAX = 200, LINES_MAX = 64 };
#define SHADOW(field) ((Int)(2 * sizeof(VexGuestAMD64State) + offsetof(struct vsim_shadow, field)))

_Static_assert(sizeof(struct vsim_shadow) <= sizeof(VexGuestAMD64State),
	       "it fits into the shadow registers");

/* Kinds that need data and code caches; only data; only code; lines of code. */
static const uint64_t shared_kinds = 1ull << VSIM_L2_LOADS | 1ull << VSIM_L2_STORES |
				     1ull << VSIM_L2_LOAD_MISSES | 1ull << VSIM_L2_STORE_MISSES |
				     1ull << VSIM_LLC_LOADS | 1ull << VSIM_LLC_STORES |
				     1ull << VSIM_LLC_LOAD_MISSES | 1ull << VSIM_LLC_STORE_MISSES |
				     1ull << VSIM_DTLB_LOAD_WALKS | 1ull << VSIM_DTLB_STORE_WALKS |
				     1ull << VSIM_ITLB_WALKS | 1ull << VSIM_EST_CYCLES;
static const uint64_t data_kinds = 1ull << VSIM_L1D_LOAD_MISSES | 1ull << VSIM_L1D_STORE_MISSES |
	1ull << VSIM_DTLB_LOAD_MISSES | 1ull << VSIM_DTLB_STORE_MISSES;
static const uint64_t code_kinds = 1ull << VSIM_L1I_MISSES | 1ull << VSIM_ITLB_MISSES;
static const uint64_t line_kinds = 1ull << VSIM_L1I_LOADS | 1ull << VSIM_ITLB_LOADS;

/* Memory that a block's generated code refers to.  It is freed when the block is discarded. */
struct piece {
	struct piece *next;
};
struct block {
	VgHashNode node; /* key: the block's address */
	struct piece *pieces;
	/* The run that the block's first alarm finds by the block's address alone, or NULL. */
	const struct vsim_run *first_run;
};

/* A temporary, expressed as another temporary plus a constant. */
struct known {
	IRTemp base;
	int64_t offset;
};

/* An access of the run whose line the generated code has compared. */
struct compared {
	IRTemp base; /* IRTemp_INVALID: the address is a constant, in `offset` */
	int64_t offset;
	uint32_t size;
	uint8_t slot;
};

struct builder {
	struct vsim *sim;
	const struct vsim_cpu *cpu;
	IRSB *in, *out;
	struct known *known; /* indexed by temporary of `in` */
	struct block *block;
	/* upper bounds of the block's additions to the lower halves: vsim_run.h */
	unsigned low_halves[3];

	/* The current instruction. */
	uint64_t ip, target;
	unsigned length;
	enum vsim_flow flow;
	bool loaded, stored;     /* masked vector accesses count only once */
	IRExpr *load_address;    /* address of its last plain load */

	/* The current run. */
	bool is_first_run;       /* the first run of the block */
	uint64_t start;
	enum vsim_mark mark;     /* the mark at its first instruction */
	unsigned step_count;
	struct vsim_step steps[STEPS_MAX];
	IRExpr *difference;      /* differences so far, or'ed; NULL: nothing compared yet */
	unsigned access_count, line_count, slot_count, compared_count;
	uint64_t line_address;
	struct vsim_access accesses[ACCESSES_MAX];
	struct compared compared[ACCESSES_MAX];
};

static inline bool wants(const struct builder *b, uint64_t kinds)
{
	return (b->cpu->wanted & kinds) != 0;
}

static inline void *keep(struct builder *b, size_t size)
{
	struct piece *piece = VG_(calloc)("vsim.block", 1, sizeof(*piece) + size);
	piece->next = b->block->pieces;
	b->block->pieces = piece;
	return piece + 1;
}

/* One access in the IR.  `guard` is NULL if it always happens. */
struct data {
	IRExpr *address, *guard;
	Int size;
	bool is_store, counted;
};

/* --- IR ------------------------------------------------------------------- */

static inline IRExpr *assign(struct builder *b, IRType type, IRExpr *value)
{
	IRTemp temporary = newIRTemp(b->out->tyenv, type);
	addStmtToIRSB(b->out, IRStmt_WrTmp(temporary, value));
	return IRExpr_RdTmp(temporary);
}

static inline IRExpr *constant(uint64_t value)
{
	return IRExpr_Const(IRConst_U64(value));
}

static inline IRExpr *address_of(const void *pointer)
{
	return constant((uint64_t)(uintptr_t)pointer);
}

static inline IRExpr *op(struct builder *b, IROp operation, IRExpr *left, IRExpr *right)
{
	return assign(b, Ity_I64, IRExpr_Binop(operation, left, right));
}

static inline IRExpr *shift(struct builder *b, IROp operation, IRExpr *value, unsigned bits)
{
	return bits ? op(b, operation, value, IRExpr_Const(IRConst_U8((UChar)bits))) : value;
}

static inline IRExpr *load(struct builder *b, IRExpr *address)
{
	return assign(b, Ity_I64, IRExpr_Load(Iend_LE, Ity_I64, address));
}

static inline void store(struct builder *b, IRExpr *address, IRExpr *value)
{
	addStmtToIRSB(b->out, IRStmt_Store(Iend_LE, address, value));
}

static inline IRExpr *get(struct builder *b, Int offset)
{
	return assign(b, Ity_I64, IRExpr_Get(offset, Ity_I64));
}

static inline void put(struct builder *b, Int offset, IRExpr *value)
{
	addStmtToIRSB(b->out, IRStmt_Put(offset, value));
}

static inline void call(struct builder *b, Int by_register, const HChar *name, void *function,
			IRExpr **arguments, IRExpr *guard)
{
	static const Int unwound[] = { offsetof(VexGuestAMD64State, guest_RIP),
				       offsetof(VexGuestAMD64State, guest_RSP),
				       offsetof(VexGuestAMD64State, guest_RBP) };
	IRDirty *dirty = unsafeIRDirty_0_N(by_register, name, VG_(fnptr_to_fnentry)(function),
					   arguments);
	dirty->guard = guard;
	dirty->nFxState = 3;
	for (unsigned i = 0; i < 3; i++) {
		dirty->fxState[i].fx = Ifx_Read;
		dirty->fxState[i].offset = (UShort)unwound[i];
		dirty->fxState[i].size = 8;
		dirty->fxState[i].nRepeats = dirty->fxState[i].repeatLen = 0;
	}
	addStmtToIRSB(b->out, IRStmt_Dirty(dirty));
}

/* --- vsim_ask.c ----------------------------------------------------------- */

/* Ends the run's questions: emits one call of the model for the whole run, taken if any comparison
 * differed.  `outcome` is that of the run's branch, or NULL. */
void vsim_ask(struct builder *b, enum vsim_flow flow, IRExpr *outcome);
void vsim_ask_access(struct builder *b, const struct data *data);
/* Compares the lines that hold the run's instructions.  Call it at the run's beginning. */
void vsim_ask_lines(struct builder *b);
void vsim_ask_conditional(struct builder *b, const IRStmt *leaving);
/* Ends a block that has no conditional branch at its end. */
void vsim_ask_end(struct builder *b, unsigned length);

#endif
