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
 *   as a count, but the model does not see it, since the address is missing too.  A compare-and-swap
 *   on the value that the instruction has just loaded (a locked add) is only the store.  Accesses
 *   by elements under a mask, and whole states of the FPU, are one access.  A failed
 *   compare-and-swap's exit from the block never happens: no other thread runs between two
 *   instructions of a block. */
#include "valgrind/vsim_builder.h"

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
			sums[kind] += cpu->wanted >> kind & 1 ? b->steps[i].counts[kind] : 0;
	for (unsigned kind = 0; kind < VSIM_STATIC_KINDS; kind++) {
		if (!(cpu->alarmed >> kind & 1) || !sums[kind])
			continue;
		Int offset = SHADOW(left) + (Int)(kind * sizeof(int64_t));
		IRExpr *rest = op(b, Iop_Sub64, get(b, offset), constant(sums[kind]));
		put(b, offset, rest);
		left = left ? op(b, Iop_Or64, left, rest) : rest;
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
	bool always = dirty->guard->tag == Iex_Const;
	if (dirty->mFx == Ifx_Read || dirty->mFx == Ifx_Modify)
		guarded(b, each, dirty->mAddr, always ? NULL : dirty->guard, dirty->mSize, false);
	if (dirty->mFx == Ifx_Write || dirty->mFx == Ifx_Modify)
		guarded(b, each, dirty->mAddr, always ? NULL : dirty->guard, dirty->mSize, true);
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
	b->start = b->in->stmts[at]->tag == Ist_IMark ? b->in->stmts[at]->Ist.IMark.addr : *ip;
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
		vsim_ask_lines(b);
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
		vsim_ask_conditional(b, leaving);
	else
		vsim_ask(b, VSIM_FLOW_ON, NULL);
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
			accesses_of(b, statement, vsim_ask_access);
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
		known[statement->Ist.WrTmp.tmp] = (struct known){
			base->base, (int64_t)((uint64_t)base->offset +
					      (sum->Iex.Binop.op == Iop_Add64 ? value : -value))
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
	return block ? block->first_run : NULL;
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
			vsim_ask(b, VSIM_FLOW_ON, NULL);
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
		vsim_ask_end(b, length);
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
