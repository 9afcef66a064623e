/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Adds counting to a program's code.
 *
 * Valgrind's core hands over each block of code as IR, before the final translation.  Chasing of
 * jumps is off, so a block ends at its first branch, or is an unrolled loop of one block.  A block
 * consists of *straight runs*: a run is the code between two places at which control may leave.  A
 * run that is entered is executed to its end (except for faults), so the counts of its instructions
 * are known before it runs.
 *
 * Counting.  At its beginning, a run adds its constants, two counts to a word, only for the kinds
 * that some event needs.  The words belong to the running thread.  They lie in its second shadow
 * registers, which tools are free to use (Memcheck keeps origins there).  Generated code reaches
 * them like registers, by a short offset from a pointer that it holds anyway: load, add, store, 21
 * bytes.  Alternatives that were worse:
 * - A counter for each run needs no more code.  But then each switch of threads must visit all code
 *   that was ever translated to sum up the totals (80 µs for Python).
 * - Words at fixed addresses cost ten more bytes of code for each use, since x86 has no short form
 *   of such addresses.
 * - One vector addition is as long as two of words, and waits longer for the sum stored before.
 *
 * Sampling.  A kind that is sampled isn't packed.  Instead, the number that is *left* of it is
 * counted down, and sampling costs only a test of its sign.  vsim_run_alarm() then finds the
 * instruction (vsim_run.c).
 *
 * The model is called at the *end* of a run, once for all of the run's accesses.  A comparison
 * recognizes an access that changes nothing, as nine in ten do (vsim_model.h).  A call for each
 * access, however rarely taken, makes the translator spill everything that a call destroys, which
 * costs more than the comparisons.  So the run only collects differences: of each access, of each
 * line of code, of the branch, all or'ed into one word, and stores the addresses in the shadow
 * registers.  One test follows at the end.  If the word isn't zero, the helper gets all accesses,
 * in order.  The counts stay exact: the model doesn't change while differences are collected, so a
 * word of zero means that nothing would have happened; and by contract the model may be given
 * accesses that change nothing.
 * - An access within the bytes of an earlier one of the run needs no comparison of its own.
 * - An access that may not happen (masked moves) has the address VSIM_NO_ADDRESS if it doesn't.
 * - Calls and returns push and pop the model's return stack in place; conditional jumps update its
 *   history.
 *
 * Unwinding needs no work here: chains start from the run's beginning, where all registers are in
 * the guest's state.  Misses are reported at the run's end, so for them the run stores the stack
 * and frame pointer at its beginning.
 *
 * The counts:
 * - Instructions, by their marks in the IR.  A `rep` instruction counts once, when it ends, not for
 *   each repetition.
 * - Branches, by opcode.
 * - Loads and stores, from the IR, with these exceptions.  A load whose value is unused (flags that
 *   nothing tests, a register that is overwritten) is no longer in the IR.  The opcode restores it
 *   as a count, but the model does not see it, since the address is missing too.  A
 *   compare-and-swap on the value that the instruction has just loaded (a locked add) is only the
 *   store.  Accesses by elements under a mask, and whole states of the FPU, are one access.  A
 *   failed compare-and-swap's exit from the block never happens: no other thread runs between two
 *   instructions of a block. */
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

/* The state of one block of code while code is added to it. */
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
	bool loaded, stored;  /* masked vector accesses count only once */
	IRExpr *load_address; /* address of its last plain load */

	/* The current run. */
	bool is_first_run; /* the first run of the block */
	uint64_t start;
	enum vsim_mark mark; /* the mark at its first instruction */
	unsigned step_count;
	struct vsim_step steps[STEPS_MAX];
	IRExpr *difference; /* differences so far, or'ed; NULL: nothing compared yet */
	unsigned access_count, line_count, slot_count, compared_count;
	uint64_t line_address;
	struct vsim_access accesses[ACCESSES_MAX];
	struct compared compared[ACCESSES_MAX];
};

static bool wants(const struct builder *b, uint64_t kinds)
{
	return (b->cpu->wanted & kinds) != 0;
}

static void *keep(struct builder *b, size_t size)
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

static IRExpr *assign(struct builder *b, IRType type, IRExpr *value)
{
	IRTemp temporary = newIRTemp(b->out->tyenv, type);
	addStmtToIRSB(b->out, IRStmt_WrTmp(temporary, value));
	return IRExpr_RdTmp(temporary);
}

static IRExpr *constant(uint64_t value)
{
	return IRExpr_Const(IRConst_U64(value));
}

static IRExpr *address_of(const void *pointer)
{
	return constant((uint64_t)(uintptr_t)pointer);
}

static IRExpr *op(struct builder *b, IROp operation, IRExpr *left, IRExpr *right)
{
	return assign(b, Ity_I64, IRExpr_Binop(operation, left, right));
}

static IRExpr *shift(struct builder *b, IROp operation, IRExpr *value, unsigned bits)
{
	if (bits)
		return op(b, operation, value, IRExpr_Const(IRConst_U8((UChar)bits)));
	return value;
}

static IRExpr *load(struct builder *b, IRExpr *address)
{
	return assign(b, Ity_I64, IRExpr_Load(Iend_LE, Ity_I64, address));
}

static void store(struct builder *b, IRExpr *address, IRExpr *value)
{
	addStmtToIRSB(b->out, IRStmt_Store(Iend_LE, address, value));
}

static IRExpr *get(struct builder *b, Int offset)
{
	return assign(b, Ity_I64, IRExpr_Get(offset, Ity_I64));
}

static void put(struct builder *b, Int offset, IRExpr *value)
{
	addStmtToIRSB(b->out, IRStmt_Put(offset, value));
}

static void call(struct builder *b, Int by_register, const HChar *name, void *function,
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

/* --- what a run counts ---------------------------------------------------- */

static void add_packed(struct builder *b, unsigned word, uint64_t low, uint64_t high)
{
	if (!low && !high)
		return;
	b->low_halves[word] += (unsigned)low;
	/* Bounds one block's additions, so that no turn's sum carries from the lower half into the
	 * upper. */
	tl_assert(b->low_halves[word] <= VSIM_PACKED_MAX);
	Int offset = SHADOW(packed) + (Int)(word * sizeof(uint64_t));
	put(b, offset,
	    op(b, Iop_Add64, get(b, offset), constant(low + (high << VSIM_PACKED_SHIFT))));
}

static const struct vsim_run *keep_run(struct builder *b, uint64_t start, unsigned count,
				       const struct vsim_step *steps)
{
	struct vsim_run *run = keep(b, sizeof(*run) + count * sizeof(*steps));
	run->start = start;
	run->count = count;
	VG_(memcpy)(run->steps, steps, count * sizeof(*steps));
	return run;
}

/* Emits a call that is taken if `left` is below zero.  Generated code prepares the call's arguments
 * and the guest's registers before it knows whether it will call; that is most of the cost of
 * sampling.  So the call at a block's beginning has no arguments: there the guest's ip is always
 * the block's address. */
static void alarm_below_zero(struct builder *b, IRExpr *left, const struct vsim_run *run)
{
	IRExpr *guard = assign(b, Ity_I1, IRExpr_Binop(Iop_CmpLT64S, left, constant(0)));
	if (b->is_first_run && run->start == b->block->node.key) {
		b->block->first_run = run;
		call(b, 0, "vsim_run_alarm_first", &vsim_run_alarm_first, mkIRExprVec_0(), guard);
		return;
	}
	call(b, 2, "vsim_run_alarm", &vsim_run_alarm,
	     mkIRExprVec_2(IRExpr_GSPTR(), address_of(run)), guard);
}

/* Emits the run's counting, at its beginning. */
static void add_counts(struct builder *b)
{
	const struct vsim_cpu *cpu = b->cpu;
	uint64_t sums[VSIM_STATIC_KINDS] = { 0 };
	IRExpr *left = NULL;
	for (unsigned i = 0; i < b->step_count; i++)
		for (unsigned kind = 0; kind < VSIM_STATIC_KINDS; kind++)
			if (cpu->wanted >> kind & 1)
				sums[kind] += b->steps[i].counts[kind];
	for (unsigned kind = 0; kind < VSIM_STATIC_KINDS; kind++) {
		if (!(cpu->alarmed >> kind & 1) || !sums[kind])
			continue;
		Int offset = SHADOW(left) + (Int)(kind * sizeof(int64_t));
		IRExpr *rest = op(b, Iop_Sub64, get(b, offset), constant(sums[kind]));
		put(b, offset, rest);
		if (left)
			rest = op(b, Iop_Or64, left, rest);
		left = rest;
		sums[kind] = 0;
	}
	add_packed(b, 0, sums[VSIM_INSTRUCTIONS], sums[VSIM_BRANCHES]);
	add_packed(b, 1, sums[VSIM_LOADS], sums[VSIM_STORES]);
	if (wants(b, line_kinds) && !(cpu->sampled & line_kinds))
		add_packed(b, 2, b->line_count, 0);
	if (left)
		alarm_below_zero(b, left, keep_run(b, b->start, b->step_count, b->steps));
}

/* Emits the count of a `rep` instruction that ends when `condition` holds. */
static void add_instruction_if(struct builder *b, IRExpr *condition)
{
	static const struct vsim_step step = { .counts = { [VSIM_INSTRUCTIONS] = 1 } };
	bool alarmed = b->cpu->alarmed >> VSIM_INSTRUCTIONS & 1;
	Int offset = alarmed ? SHADOW(left[VSIM_INSTRUCTIONS]) : SHADOW(packed[0]);
	IRExpr *one = assign(b, Ity_I64, IRExpr_Unop(Iop_1Uto64, condition));
	IRExpr *sum = op(b, alarmed ? Iop_Sub64 : Iop_Add64, get(b, offset), one);
	put(b, offset, sum);
	if (alarmed)
		alarm_below_zero(b, sum, keep_run(b, b->ip, 1, &step));
	else
		b->low_halves[0]++;
}

/* --- questions to the model ----------------------------------------------- */

static void differs(struct builder *b, IRExpr *difference)
{
	if (b->difference)
		difference = op(b, Iop_Or64, b->difference, difference);
	b->difference = difference;
}

/* Ends the run's questions: emits one call of the model for the whole run, taken if any comparison
 * differed.  `outcome` is that of the run's branch, or NULL. */
static void ask(struct builder *b, enum vsim_flow flow, IRExpr *outcome)
{
	if (!b->access_count && flow == VSIM_FLOW_ON)
		return;
	struct vsim_batch *batch = keep(b,
					sizeof(*batch) + b->access_count * sizeof(b->accesses[0]));
	*batch = (struct vsim_batch){
		.sim = b->sim,
		.start = b->start,
		.line_address = b->line_address,
		.branch_offset = (uint16_t)(b->ip - b->start),
		.flow = (uint8_t)flow,
		.lines = (uint8_t)b->line_count,
		.count = (uint8_t)b->access_count,
		.count_lines = (b->cpu->sampled & line_kinds) != 0,
	};
	if (flow == VSIM_FLOW_CONDITIONAL)
		batch->branch = vsim_model_branch(b->cpu->model, b->ip);
	VG_(memcpy)(batch->accesses, b->accesses, b->access_count * sizeof(b->accesses[0]));
	IRExpr *guard = assign(b, Ity_I1, IRExpr_Binop(Iop_CmpNE64, b->difference, constant(0)));
	call(b, 3, "vsim_run_batch", &vsim_run_batch,
	     mkIRExprVec_3(IRExpr_GSPTR(), address_of(batch), outcome ? outcome : constant(0)),
	     guard);
	b->difference = NULL;
	b->access_count = b->line_count = b->slot_count = b->compared_count = 0;
}

static struct compared place_of(const struct builder *b, const IRExpr *address, uint32_t size)
{
	if (address->tag == Iex_Const)
		return (struct compared){ IRTemp_INVALID, (int64_t)address->Iex.Const.con->Ico.U64,
					  size, 0 };
	const struct known *known = &b->known[address->Iex.RdTmp.tmp];
	return (struct compared){ known->base, known->offset, size, 0 };
}

/* Compares: is the last byte's line the recent line at the first byte's place? */
static void compare_line(struct builder *b, const struct data *data, uint32_t size)
{
	const struct vsim_recent *recent = &b->cpu->data_recent;
	if (recent->size_max && size > recent->size_max) {
		differs(b, constant(1));
		return;
	}
	tl_assert(recent->line_shift >= 3);
	IRExpr *index = op(b, Iop_And64, shift(b, Iop_Shr64, data->address, recent->line_shift - 3),
			   constant(recent->mask << 3));
	IRExpr *used = load(b, op(b, Iop_Add64, index, address_of(recent->recent)));
	IRExpr *last = data->address;
	if (size != 1)
		last = op(b, Iop_Add64, data->address, constant(size - 1));
	IRExpr *difference = op(b, Iop_Xor64, used, shift(b, Iop_Shr64, last, recent->line_shift));
	if (data->guard)
		difference = assign(b, Ity_I64, IRExpr_ITE(data->guard, difference, constant(0)));
	differs(b, difference);
}

static const struct compared *compared_before(const struct builder *b, const struct compared *place)
{
	for (unsigned i = 0; i < b->compared_count; i++) {
		const struct compared *earlier = &b->compared[i];
		int64_t delta = place->offset - earlier->offset;
		if (earlier->base == place->base && delta >= 0 &&
		    delta + place->size <= earlier->size)
			return earlier;
	}
	return NULL;
}

static void ask_access(struct builder *b, const struct data *data)
{
	uint32_t size = (uint32_t)data->size;
	if (data->size > 4096)
		size = 4096;
	else if (data->size < 1)
		size = 1;
	if (b->access_count == ACCESSES_MAX || b->slot_count == VSIM_SLOTS)
		ask(b, VSIM_FLOW_ON, NULL);
	struct compared place = place_of(b, data->address, size);
	const struct compared *earlier = data->guard ? NULL : compared_before(b, &place);
	struct vsim_access *access = &b->accesses[b->access_count++];
	*access = (struct vsim_access){ .offset = (uint16_t)(b->ip - b->start),
					.size = (uint16_t)size,
					.store = data->is_store };
	if (earlier) {
		access->slot = earlier->slot;
		access->delta = (int16_t)(place.offset - earlier->offset);
		return;
	}
	access->slot = place.slot = (uint8_t)b->slot_count++;
	IRExpr *address = data->address;
	if (data->guard)
		address = assign(b, Ity_I64,
				 IRExpr_ITE(data->guard, address, constant(VSIM_NO_ADDRESS)));
	else
		b->compared[b->compared_count++] = place;
	put(b, SHADOW(address) + (Int)(access->slot * sizeof(uint64_t)), address);
	compare_line(b, data, size);
}

/* Compares the lines that hold the run's instructions.  Call it at the run's beginning. */
static void ask_lines(struct builder *b)
{
	const struct vsim_recent *recent = &b->cpu->code_recent;
	if (b->cpu->sampled & line_kinds)
		differs(b, constant(1));
	for (unsigned i = 0; i < b->line_count; i++) {
		uint64_t line = (b->line_address >> recent->line_shift) + i;
		IRExpr *used = load(b, address_of(&recent->recent[line & recent->mask]));
		differs(b, op(b, Iop_Xor64, used, constant(line)));
	}
}

static void ask_conditional(struct builder *b, const IRStmt *leaving)
{
	struct vsim_conditional *all = vsim_model_conditionals(b->cpu->model);
	IRExpr *taken = assign(b, Ity_I64, IRExpr_Unop(Iop_1Uto64, leaving->Ist.Exit.guard));
	if (leaving->Ist.Exit.dst->Ico.U64 != b->target)
		taken = op(b, Iop_Xor64, taken, constant(1));
	IRExpr *outcomes = op(b, Iop_Or64,
			      shift(b, Iop_Shl64, load(b, address_of(&all->history)), 1), taken);
	store(b, address_of(&all->history), outcomes);
	IRExpr *index = op(b, Iop_Xor64, op(b, Iop_And64, outcomes, constant(all->history_mask)),
			   constant(vsim_model_branch(b->cpu->model, b->ip)));
	IRExpr *byte = assign(
		b, Ity_I8,
		IRExpr_Load(Iend_LE, Ity_I8, op(b, Iop_Add64, index, address_of(all->counters))));
	differs(b, assign(b, Ity_I64, IRExpr_Unop(Iop_8Uto64, byte)));
	ask(b, VSIM_FLOW_CONDITIONAL, taken);
}

static IRExpr *return_entry(struct builder *b, struct vsim_returns *returns, IRExpr *top)
{
	return op(b, Iop_Add64, shift(b, Iop_Shl64, top, 3), address_of(returns->entry));
}

static void model_call(struct builder *b, uint64_t return_address)
{
	struct vsim_returns *returns = vsim_model_returns(b->cpu->model);
	IRExpr *top = load(b, address_of(&returns->top));
	store(b, return_entry(b, returns, top), constant(return_address));
	store(b, address_of(&returns->top),
	      op(b, Iop_And64, op(b, Iop_Add64, top, constant(1)), constant(returns->mask)));
}

static void model_return(struct builder *b, IRExpr *target)
{
	struct vsim_returns *returns = vsim_model_returns(b->cpu->model);
	IRExpr *top = op(b, Iop_And64,
			 op(b, Iop_Sub64, load(b, address_of(&returns->top)), constant(1)),
			 constant(returns->mask));
	store(b, address_of(&returns->top), top);
	differs(b, op(b, Iop_Xor64, load(b, return_entry(b, returns, top)), target));
}

/* Ends a block that has no conditional branch at its end. */
static void ask_end(struct builder *b, unsigned length)
{
	bool indirect = wants(b, 1ull << VSIM_INDIRECT_MISSES | 1ull << VSIM_EST_CYCLES);
	bool returns = wants(b, 1ull << VSIM_RETURN_MISSES | 1ull << VSIM_EST_CYCLES);
	IRExpr *target = b->in->next;
	if (returns && (b->flow == VSIM_FLOW_CALL || b->flow == VSIM_FLOW_INDIRECT_CALL))
		model_call(b, b->ip + length);
	if (returns && b->flow == VSIM_FLOW_RETURN && b->in->jumpkind == Ijk_Ret) {
		model_return(b, target);
		ask(b, VSIM_FLOW_RETURN, target);
	} else if (indirect &&
		   (b->flow == VSIM_FLOW_INDIRECT_CALL || b->flow == VSIM_FLOW_INDIRECT_JUMP)) {
		differs(b,
			op(b, Iop_Xor64,
			   load(b, address_of(vsim_model_target(b->cpu->model, b->ip))), target));
		ask(b, b->flow, target);
	} else {
		ask(b, VSIM_FLOW_ON, NULL);
	}
}

/* --- data ----------------------------------------------------------------- */

typedef void each_access(struct builder *b, const struct data *data);

static void plain(struct builder *b, each_access *each, IRExpr *address, IRType type, bool is_store)
{
	if (!is_store)
		b->load_address = address;
	each(b, &(struct data){ address, NULL, sizeofIRType(type), is_store, true });
}

/* Handles accesses by elements under a mask: the first one stands for all. */
static void guarded(struct builder *b, each_access *each, IRExpr *address, IRExpr *guard, Int size,
		    bool is_store)
{
	bool *seen = is_store ? &b->stored : &b->loaded;
	each(b, &(struct data){ address, guard, size, is_store, !*seen });
	*seen = true;
}

static void swap(struct builder *b, each_access *each, const IRCAS *cas)
{
	Int size = sizeofIRType(typeOfIRExpr(b->in->tyenv, cas->dataLo)) * (cas->dataHi ? 2 : 1);
	if (!b->load_address || !eqIRAtom(b->load_address, cas->addr))
		each(b, &(struct data){ cas->addr, NULL, size, false, true });
	each(b, &(struct data){ cas->addr, NULL, size, true, true });
}

static void dirty_accesses(struct builder *b, each_access *each, const IRDirty *dirty)
{
	IRExpr *guard = dirty->guard;
	if (guard->tag == Iex_Const) /* always true */
		guard = NULL;
	if (dirty->mFx == Ifx_Read || dirty->mFx == Ifx_Modify)
		guarded(b, each, dirty->mAddr, guard, dirty->mSize, false);
	if (dirty->mFx == Ifx_Write || dirty->mFx == Ifx_Modify)
		guarded(b, each, dirty->mAddr, guard, dirty->mSize, true);
}

static void accesses_of(struct builder *b, const IRStmt *statement, each_access *each)
{
	switch (statement->tag) {
	case Ist_WrTmp: {
		const IRExpr *value = statement->Ist.WrTmp.data;
		if (value->tag == Iex_Load)
			plain(b, each, value->Iex.Load.addr, value->Iex.Load.ty, false);
		break;
	}
	case Ist_Store:
		plain(b, each, statement->Ist.Store.addr,
		      typeOfIRExpr(b->in->tyenv, statement->Ist.Store.data), true);
		break;
	case Ist_LoadG: {
		const IRLoadG *details = statement->Ist.LoadG.details;
		IRType result, loaded;
		typeOfIRLoadGOp(details->cvt, &result, &loaded);
		guarded(b, each, details->addr, details->guard, sizeofIRType(loaded), false);
		break;
	}
	case Ist_StoreG: {
		const IRStoreG *details = statement->Ist.StoreG.details;
		guarded(b, each, details->addr, details->guard,
			sizeofIRType(typeOfIRExpr(b->in->tyenv, details->data)), true);
		break;
	}
	case Ist_CAS:
		swap(b, each, statement->Ist.CAS.details);
		break;
	case Ist_Dirty:
		dirty_accesses(b, each, statement->Ist.Dirty.details);
		break;
	default:
		break;
	}
}

static void count_access(struct builder *b, const struct data *data)
{
	if (data->counted)
		b->steps[b->step_count - 1].counts[data->is_store ? VSIM_STORES : VSIM_LOADS]++;
}

/* --- runs ----------------------------------------------------------------- */

static void begin_instruction(struct builder *b, const IRStmt *mark)
{
	b->ip = mark->Ist.IMark.addr;
	b->length = mark->Ist.IMark.len;
	b->flow = vsim_decode_flow((const uint8_t *)b->ip, b->length, b->ip, &b->target);
	b->loaded = b->stored = false;
	b->load_address = NULL;
}

static struct vsim_step *add_step(struct builder *b)
{
	tl_assert(b->step_count < STEPS_MAX);
	struct vsim_step *step = &b->steps[b->step_count++];
	*step = (struct vsim_step){ .offset = (uint16_t)(b->ip - b->start) };
	return step;
}

/* Corrects the counts of the instruction just finished, after its accesses were counted. */
static void settle_step(struct builder *b)
{
	const uint8_t *bytes = (const uint8_t *)b->ip;
	uint8_t *counts = b->step_count ? b->steps[b->step_count - 1].counts : NULL;
	if (!counts || b->flow == VSIM_FLOW_REPEAT)
		return;
	if (!counts[VSIM_LOADS])
		counts[VSIM_LOADS] = (uint8_t)vsim_decode_loads(bytes, b->length);
	if (counts[VSIM_LOADS] + counts[VSIM_STORES] > 2 &&
	    vsim_decode_is_state(bytes, b->length)) {
		counts[VSIM_LOADS] = counts[VSIM_LOADS] > 0;
		counts[VSIM_STORES] = counts[VSIM_STORES] > 0;
	}
}

static void touch_lines(struct builder *b, const IRStmt *mark)
{
	uint64_t bytes = b->sim->plan->geometry.line_bytes;
	uint64_t last = (mark->Ist.IMark.addr + mark->Ist.IMark.len - 1) & ~(bytes - 1);
	if (!b->line_count)
		b->line_address = mark->Ist.IMark.addr & ~(bytes - 1);
	while (b->line_count < LINES_MAX && b->line_address + b->line_count * bytes <= last) {
		b->accesses[b->line_count] = (struct vsim_access){ .offset = (uint16_t)(b->ip -
											b->start) };
		b->access_count = ++b->line_count;
	}
}

/* True if control may leave here, other than to this same instruction or by a fault. */
static bool ends_run(const struct builder *b, const IRStmt *statement)
{
	return statement->tag == Ist_Exit && statement->Ist.Exit.jk == Ijk_Boring &&
	       (b->flow == VSIM_FLOW_CONDITIONAL || b->flow == VSIM_FLOW_REPEAT);
}

/* Returns the region mark at this instruction. */
static enum vsim_mark mark_of(const struct builder *b, const IRStmt *mark)
{
	Addr address = mark->Ist.IMark.addr;
	return vsim_region_mark(b->sim, address, mark->Ist.IMark.len,
				address == b->block->node.key);
}

static void reach(struct builder *b, enum vsim_mark mark, IRExpr *guard)
{
	if (!guard)
		guard = IRExpr_Const(IRConst_U1(True));
	call(b, 1, "vsim_region_reached", &vsim_region_reached, mkIRExprVec_1(constant(mark)),
	     guard);
}

/* Fills the steps of the run that begins at statement `at`.  Returns where the next run begins. */
static Int measure_run(struct builder *b, Int at, uint64_t *ip, bool lines)
{
	Int end = at;
	b->mark = VSIM_MARK_NONE;
	b->step_count = b->access_count = b->line_count = b->slot_count = b->compared_count = 0;
	b->difference = NULL;
	b->start = *ip;
	if (b->in->stmts[at]->tag == Ist_IMark)
		b->start = b->in->stmts[at]->Ist.IMark.addr;
	b->ip = *ip;
	if (b->in->stmts[at]->tag != Ist_IMark)
		add_step(b);
	for (bool ended = false; !ended && end < b->in->stmts_used; end++) {
		const IRStmt *statement = b->in->stmts[end];
		if (statement->tag == Ist_IMark) {
			if (end > at && vsim_flow_is_branch(b->flow))
				break; /* the IR continues behind a direct branch */
			enum vsim_mark mark = mark_of(b, statement);
			if (end > at && (mark || b->mark))
				break; /* a region begins or ends */
			b->mark = mark;
			if (end > at)
				settle_step(b);
			begin_instruction(b, statement);
			struct vsim_step *step = add_step(b);
			step->counts[VSIM_INSTRUCTIONS] = b->flow != VSIM_FLOW_REPEAT;
			step->counts[VSIM_BRANCHES] = vsim_flow_is_branch(b->flow);
			if (lines)
				touch_lines(b, statement);
		}
		accesses_of(b, statement, count_access);
		ended = ends_run(b, statement);
	}
	settle_step(b);
	*ip = b->ip;
	return end;
}

static void begin_run(struct builder *b)
{
	add_counts(b);
	if (b->cpu->model && (b->cpu->sampled >> VSIM_STATIC_KINDS)) {
		put(b, SHADOW(run_sp), get(b, offsetof(VexGuestAMD64State, guest_RSP)));
		put(b, SHADOW(run_fp), get(b, offsetof(VexGuestAMD64State, guest_RBP)));
	}
	if (wants(b, shared_kinds | code_kinds) || (b->cpu->sampled & line_kinds))
		ask_lines(b);
	else
		b->line_count = b->access_count = 0;
}

static void end_run(struct builder *b, const IRStmt *leaving)
{
	bool foreseen = wants(b, 1ull << VSIM_CONDITIONAL_MISSES | 1ull << VSIM_EST_CYCLES);
	if (b->flow == VSIM_FLOW_REPEAT && leaving->Ist.Exit.dst->Ico.U64 != b->ip)
		add_instruction_if(b, leaving->Ist.Exit.guard);
	if (!b->cpu->model)
		return;
	if (foreseen && b->flow == VSIM_FLOW_CONDITIONAL)
		ask_conditional(b, leaving);
	else
		ask(b, VSIM_FLOW_ON, NULL);
}

/* Writes statements [at, end) and the run's additions. */
static void write_run(struct builder *b, Int at, Int end, bool data)
{
	bool begun = false;
	for (Int i = at; i < end; i++) {
		IRStmt *statement = b->in->stmts[i];
		bool mark = statement->tag == Ist_IMark;
		if (mark) {
			begin_instruction(b, statement);
			addStmtToIRSB(b->out, statement);
		}
		if (!begun)
			begin_run(b);
		begun = true;
		if (mark)
			continue;
		if (ends_run(b, statement))
			end_run(b, statement);
		if (data)
			accesses_of(b, statement, ask_access);
		addStmtToIRSB(b->out, statement);
	}
}

/* --- a block -------------------------------------------------------------- */

/* Finds temporaries that are the sum of another and a constant, so that accesses to the same place
 * are recognized.  The caller frees the array. */
static struct known *known_temporaries(const IRSB *in)
{
	Int count = in->tyenv->types_used;
	struct known *known = VG_(malloc)("vsim.known", (SizeT)(count + 1) * sizeof(*known));
	for (Int i = 0; i < count; i++)
		known[i] = (struct known){ (IRTemp)i, 0 };
	for (Int i = 0; i < in->stmts_used; i++) {
		const IRStmt *statement = in->stmts[i];
		if (statement->tag != Ist_WrTmp || statement->Ist.WrTmp.data->tag != Iex_Binop)
			continue;
		const IRExpr *sum = statement->Ist.WrTmp.data;
		const IRExpr *left = sum->Iex.Binop.arg1, *right = sum->Iex.Binop.arg2;
		if ((sum->Iex.Binop.op != Iop_Add64 && sum->Iex.Binop.op != Iop_Sub64) ||
		    left->tag != Iex_RdTmp || right->tag != Iex_Const)
			continue;
		uint64_t value = right->Iex.Const.con->Ico.U64;
		const struct known *base = &known[left->Iex.RdTmp.tmp];
		if (sum->Iex.Binop.op == Iop_Sub64)
			value = -value;
		known[statement->Ist.WrTmp.tmp] = (struct known){
			base->base, (int64_t)((uint64_t)base->offset + value)
		};
	}
	return known;
}

static VgHashTable *blocks(void)
{
	struct vsim *sim = vsim();
	if (!sim->blocks)
		sim->blocks = VG_(HT_construct)("vsim.blocks");
	return sim->blocks;
}

static void release_pieces(struct block *block)
{
	for (struct piece *piece = block->pieces, *next; piece; piece = next) {
		next = piece->next;
		VG_(free)(piece);
	}
	VG_(free)(block);
}

const struct vsim_run *vsim_instrument_first_run(Addr address)
{
	const struct block *block = VG_(HT_lookup)(blocks(), address);
	if (block)
		return block->first_run;
	return NULL;
}

void vsim_instrument_discard(Addr address, VexGuestExtents extents)
{
	(void)extents;
	struct block *block = VG_(HT_remove)(blocks(), address);
	if (block)
		release_pieces(block);
}

static void write_block(struct builder *b)
{
	bool data = wants(b, shared_kinds | data_kinds);
	bool lines = wants(b, shared_kinds | code_kinds | line_kinds);
	unsigned length = 0;
	uint64_t ip = 0;
	Int at = 0;
	b->is_first_run = true;
	for (; at < b->in->stmts_used && b->in->stmts[at]->tag != Ist_IMark; at++)
		addStmtToIRSB(b->out, b->in->stmts[at]);
	while (at < b->in->stmts_used) {
		/* the state of an instruction that the run begins in the middle of */
		enum vsim_flow flow = b->flow;
		uint64_t target = b->target;
		Int end = measure_run(b, at, &ip, lines);
		b->ip = b->start;
		b->flow = flow;
		b->target = target;
		b->loaded = b->stored = false;
		if (b->mark == VSIM_MARK_END || b->mark == VSIM_MARK_ENTER)
			reach(b, b->mark, NULL);
		write_run(b, at, end, data);
		b->is_first_run = false;
		at = end;
		if (b->access_count && at < b->in->stmts_used)
			ask(b, VSIM_FLOW_ON, NULL);
		if (b->mark == VSIM_MARK_BEGIN)
			reach(b, b->mark, NULL);
	}
	/* A `rep` that ends by its condition ends here, unless the block repeats it. */
	if (b->flow == VSIM_FLOW_REPEAT &&
	    !(b->in->next->tag == Iex_Const && b->in->next->Iex.Const.con->Ico.U64 == b->ip))
		add_instruction_if(b, IRExpr_Const(IRConst_U1(True)));
	for (Int i = b->in->stmts_used - 1; i >= 0 && !length; i--)
		if (b->in->stmts[i]->tag == Ist_IMark)
			length = b->in->stmts[i]->Ist.IMark.len;
	if (b->cpu->model)
		ask_end(b, length);
	if ((b->flow == VSIM_FLOW_RETURN || b->flow == VSIM_FLOW_INDIRECT_JUMP) &&
	    vsim_region_sees_returns(b->sim)) {
		IRExpr *sp = get(b, offsetof(VexGuestAMD64State, guest_RSP));
		IRExpr *above = IRExpr_Binop(Iop_CmpLT64U, load(b, address_of(&b->sim->region_sp)),
					     sp);
		reach(b, VSIM_MARK_LEAVE, assign(b, Ity_I1, above));
	}
}

IRSB *vsim_instrument(VgCallbackClosure *closure, IRSB *in, const VexGuestLayout *layout,
		      const VexGuestExtents *extents, const VexArchInfo *arch, IRType guest_word,
		      IRType host_word)
{
	(void)layout, (void)extents, (void)arch, (void)guest_word, (void)host_word;
	struct vsim *sim = vsim();
	struct builder *b = VG_(calloc)("vsim.builder", 1, sizeof(*b));
	b->sim = sim;
	b->cpu = &sim->cpu;
	b->in = in;
	b->out = deepCopyIRSBExceptStmts(in);
	b->known = known_temporaries(in);
	b->block = VG_(calloc)("vsim.block", 1, sizeof(*b->block));
	b->block->node.key = closure->nraddr;
	write_block(b);
	IRSB *out = b->out;
	if (b->block->pieces)
		VG_(HT_add_node)(blocks(), b->block);
	else
		VG_(free)(b->block);
	VG_(free)(b->known);
	VG_(free)(b);
	return out;
}
