/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Emits comparisons that decide whether the model must be called.  vsim_instrument.c explains why
 * the call is at the end of a run, and why the counts stay exact. */
#include "valgrind/vsim_builder.h"

static void differs(struct builder *b, IRExpr *difference)
{
	b->difference = b->difference ? op(b, Iop_Or64, b->difference, difference) : difference;
}

void vsim_ask(struct builder *b, enum vsim_flow flow, IRExpr *outcome)
{
	if (!b->access_count && flow == VSIM_FLOW_ON)
		return;
	struct vsim_batch *batch = keep(b,
					sizeof(*batch) + b->access_count * sizeof(b->accesses[0]));
	*batch = (struct vsim_batch){
		.sim = b->sim,
		.branch = flow == VSIM_FLOW_CONDITIONAL ? vsim_model_branch(b->cpu->model, b->ip)
							: 0,
		.start = b->start,
		.line_address = b->line_address,
		.branch_offset = (uint16_t)(b->ip - b->start),
		.flow = (uint8_t)flow,
		.lines = (uint8_t)b->line_count,
		.count = (uint8_t)b->access_count,
		.count_lines = (b->cpu->sampled & line_kinds) != 0,
	};
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
	IRExpr *last = size == 1 ? data->address
				 : op(b, Iop_Add64, data->address, constant(size - 1));
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

void vsim_ask_access(struct builder *b, const struct data *data)
{
	uint32_t size = data->size > 4096 ? 4096 : (uint32_t)data->size;
	if (data->size < 1)
		size = 1;
	if (b->access_count == ACCESSES_MAX || b->slot_count == VSIM_SLOTS)
		vsim_ask(b, VSIM_FLOW_ON, NULL);
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

void vsim_ask_lines(struct builder *b)
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

void vsim_ask_conditional(struct builder *b, const IRStmt *leaving)
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
	vsim_ask(b, VSIM_FLOW_CONDITIONAL, taken);
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

void vsim_ask_end(struct builder *b, unsigned length)
{
	bool indirect = wants(b, 1ull << VSIM_INDIRECT_MISSES | 1ull << VSIM_EST_CYCLES);
	bool returns = wants(b, 1ull << VSIM_RETURN_MISSES | 1ull << VSIM_EST_CYCLES);
	IRExpr *target = b->in->next;
	if (returns && (b->flow == VSIM_FLOW_CALL || b->flow == VSIM_FLOW_INDIRECT_CALL))
		model_call(b, b->ip + length);
	if (returns && b->flow == VSIM_FLOW_RETURN && b->in->jumpkind == Ijk_Ret) {
		model_return(b, target);
		vsim_ask(b, VSIM_FLOW_RETURN, target);
	} else if (indirect &&
		   (b->flow == VSIM_FLOW_INDIRECT_CALL || b->flow == VSIM_FLOW_INDIRECT_JUMP)) {
		differs(b,
			op(b, Iop_Xor64,
			   load(b, address_of(vsim_model_target(b->cpu->model, b->ip))), target));
		vsim_ask(b, b->flow, target);
	} else {
		vsim_ask(b, VSIM_FLOW_ON, NULL);
	}
}
