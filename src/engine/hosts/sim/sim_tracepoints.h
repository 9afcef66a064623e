/* The machine's own tracepoints, with the names and layouts of Linux's, so that tools that read
 * those can read these. */
#ifndef TALLY_SIM_TRACEPOINTS_H
#define TALLY_SIM_TRACEPOINTS_H

#include "tally/tracepoint.h"

#include <string.h>

TALLY_TRACE_CLASS(
	sched_switch,
	TALLY_PROTO(const struct tally_engine_identity *previous, int64_t state,
		    const struct tally_engine_identity *next),
	TALLY_ARGS(previous, state, next),
	TALLY_FIELDS(TALLY_ARRAY(char, prev_comm, 16), TALLY_FIELD(int32_t, prev_pid),
		     TALLY_FIELD(int32_t, prev_prio), TALLY_FIELD(int64_t, prev_state),
		     TALLY_ARRAY(char, next_comm, 16), TALLY_FIELD(int32_t, next_pid),
		     TALLY_FIELD(int32_t, next_prio)),
	TALLY_ASSIGN(memcpy(entry->prev_comm, previous->comm, sizeof(entry->prev_comm));
		     entry->prev_pid = previous->tid; entry->prev_prio = 120;
		     entry->prev_state = state;
		     memcpy(entry->next_comm, next->comm, sizeof(entry->next_comm));
		     entry->next_pid = next->tid; entry->next_prio = 120;),
	TALLY_PRINT(
		"prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s ==> next_comm=%s next_pid=%d next_prio=%d",
		REC->prev_comm, REC->prev_pid, REC->prev_prio,
		__print_symbolic(REC->prev_state, { 0, "R" }, { 1, "S" }, { 0x10, "X" }),
		REC->next_comm, REC->next_pid, REC->next_prio))
TALLY_TRACE_EVENT(sched_switch, sched_switch)

TALLY_TRACE_CLASS_WITH(sched_stat_runtime,
		       TALLY_PROTO(const struct tally_engine_identity *identity,
				   struct tally_engine_task *task, uint64_t ns),
		       TALLY_ARGS(identity, task, ns),
		       TALLY_FIELDS(TALLY_ARRAY(char, comm, 16), TALLY_FIELD(int32_t, pid),
				    TALLY_FIELD(uint64_t, runtime)),
		       TALLY_ASSIGN(memcpy(entry->comm, identity->comm, sizeof(entry->comm));
				    entry->pid = identity->tid; entry->runtime = ns;),
		       TALLY_PRINT("comm=%s pid=%d runtime=%llu [ns]", REC->comm, REC->pid,
				   (unsigned long long)REC->runtime),
		       TALLY_HIT(tally_count(ns); tally_task(task)), TALLY_CONSTANTS(0))
TALLY_TRACE_EVENT(sched_stat_runtime, sched_stat_runtime)

TALLY_TRACE_CLASS_WITH(sched_wakeup,
		       TALLY_PROTO(const struct tally_engine_identity *identity,
				   struct tally_engine_task *task, int32_t cpu),
		       TALLY_ARGS(identity, task, cpu),
		       TALLY_FIELDS(TALLY_ARRAY(char, comm, 16), TALLY_FIELD(int32_t, pid),
				    TALLY_FIELD(int32_t, prio), TALLY_FIELD(int32_t, target_cpu)),
		       TALLY_ASSIGN(memcpy(entry->comm, identity->comm, sizeof(entry->comm));
				    entry->pid = identity->tid; entry->prio = 120;
				    entry->target_cpu = cpu;),
		       TALLY_PRINT("comm=%s pid=%d prio=%d target_cpu=%03d", REC->comm, REC->pid,
				   REC->prio, REC->target_cpu),
		       TALLY_HIT(tally_task(task)), TALLY_CONSTANTS(0))
TALLY_TRACE_EVENT(sched_wakeup, sched_wakeup)

TALLY_TRACE_CLASS(sched_process_fork,
		  TALLY_PROTO(const struct tally_engine_identity *parent,
			      const struct tally_engine_identity *child),
		  TALLY_ARGS(parent, child),
		  TALLY_FIELDS(TALLY_STRING(parent_comm, parent->comm),
			       TALLY_FIELD(int32_t, parent_pid),
			       TALLY_STRING(child_comm, child->comm),
			       TALLY_FIELD(int32_t, child_pid)),
		  TALLY_ASSIGN(entry->parent_pid = parent->tid; entry->child_pid = child->tid;),
		  TALLY_PRINT("comm=%s pid=%d child_comm=%s child_pid=%d", __get_str(parent_comm),
			      REC->parent_pid, __get_str(child_comm), REC->child_pid))
TALLY_TRACE_EVENT(sched_process_fork, sched_process_fork)

TALLY_TRACE_CLASS(sys_enter,
	TALLY_PROTO(int32_t number),
	TALLY_ARGS(number),
	TALLY_FIELDS(TALLY_FIELD(int64_t, id)),
	TALLY_ASSIGN(entry->id = number;),
	TALLY_PRINT("NR %ld", (long)REC->id))
TALLY_TRACE_EVENT(sys_enter, sys_enter_getppid)

TALLY_TRACE_CLASS_WITH(page_fault,
	TALLY_PROTO(uint64_t address, uint64_t ip, uint64_t error),
	TALLY_ARGS(address, ip, error),
	TALLY_FIELDS(TALLY_FIELD(uint64_t, address),
		     TALLY_FIELD(uint64_t, ip),
		     TALLY_FIELD(uint64_t, error_code)),
	TALLY_ASSIGN(entry->address = address;
		     entry->ip = ip;
		     entry->error_code = error;),
	TALLY_PRINT("address=0x%llx ip=0x%llx error_code=0x%llx", (unsigned long long)REC->address,
		    (unsigned long long)REC->ip, (unsigned long long)REC->error_code),
	TALLY_HIT(tally_address(address)), TALLY_CONSTANTS(0))
TALLY_TRACE_EVENT(page_fault, page_fault_user)

TALLY_TRACE_GROUP(exceptions, page_fault_user)
TALLY_TRACE_GROUP(sched, sched_switch, sched_stat_runtime, sched_wakeup, sched_process_fork)
TALLY_TRACE_GROUP(syscalls, sys_enter_getppid)

#endif
