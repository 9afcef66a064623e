/* perf_event as data: the attributes, ioctl requests, record types and user page of
 * perf_event_open(2), after include/uapi/linux/perf_event.h of Linux 6.18.
 *
 * The definitions are tally's own, so that the same code serves engine, tool and foreign recordings
 * on any host, even without Linux headers; src/engine/abi/layout.c asserts them against the system's.  The
 * kernel's bit-fields are one word of flags here.  C99, C++, freestanding. */
#ifndef TALLY_PERF_EVENT_H
#define TALLY_PERF_EVENT_H

#include <stdint.h>

enum tally_type { /* attr.type */
	TALLY_TYPE_HARDWARE,
	TALLY_TYPE_SOFTWARE,
	TALLY_TYPE_TRACEPOINT,
	TALLY_TYPE_HW_CACHE,
	TALLY_TYPE_RAW,
	TALLY_TYPE_BREAKPOINT,
	TALLY_TYPE_MAX /* types at or above are PMUs registered at run time */
};

enum tally_hw { /* attr.config for TYPE_HARDWARE */
	TALLY_HW_CPU_CYCLES,
	TALLY_HW_INSTRUCTIONS,
	TALLY_HW_CACHE_REFERENCES,
	TALLY_HW_CACHE_MISSES,
	TALLY_HW_BRANCH_INSTRUCTIONS,
	TALLY_HW_BRANCH_MISSES,
	TALLY_HW_BUS_CYCLES,
	TALLY_HW_STALLED_CYCLES_FRONTEND,
	TALLY_HW_STALLED_CYCLES_BACKEND,
	TALLY_HW_REF_CPU_CYCLES,
	TALLY_HW_MAX
};

enum tally_sw { /* attr.config for TYPE_SOFTWARE */
	TALLY_SW_CPU_CLOCK,
	TALLY_SW_TASK_CLOCK,
	TALLY_SW_PAGE_FAULTS,
	TALLY_SW_CONTEXT_SWITCHES,
	TALLY_SW_CPU_MIGRATIONS,
	TALLY_SW_PAGE_FAULTS_MIN,
	TALLY_SW_PAGE_FAULTS_MAJ,
	TALLY_SW_ALIGNMENT_FAULTS,
	TALLY_SW_EMULATION_FAULTS,
	TALLY_SW_DUMMY,
	TALLY_SW_BPF_OUTPUT,
	TALLY_SW_CGROUP_SWITCHES,
	TALLY_SW_MAX
};

/* attr.config for TYPE_HW_CACHE: cache | operation << 8 | result << 16. */
enum tally_cache {
	TALLY_CACHE_L1D,
	TALLY_CACHE_L1I,
	TALLY_CACHE_LL,
	TALLY_CACHE_DTLB,
	TALLY_CACHE_ITLB,
	TALLY_CACHE_BPU,
	TALLY_CACHE_NODE,
	TALLY_CACHE_MAX
};
enum tally_cache_op {
	TALLY_CACHE_OP_READ,
	TALLY_CACHE_OP_WRITE,
	TALLY_CACHE_OP_PREFETCH,
	TALLY_CACHE_OP_MAX
};
enum tally_cache_result {
	TALLY_CACHE_RESULT_ACCESS,
	TALLY_CACHE_RESULT_MISS,
	TALLY_CACHE_RESULT_MAX
};

/* attr.sample_type */
#define TALLY_SAMPLE_IP (1ull << 0)
#define TALLY_SAMPLE_TID (1ull << 1)
#define TALLY_SAMPLE_TIME (1ull << 2)
#define TALLY_SAMPLE_ADDR (1ull << 3)
#define TALLY_SAMPLE_READ (1ull << 4)
#define TALLY_SAMPLE_CALLCHAIN (1ull << 5)
#define TALLY_SAMPLE_ID (1ull << 6)
#define TALLY_SAMPLE_CPU (1ull << 7)
#define TALLY_SAMPLE_PERIOD (1ull << 8)
#define TALLY_SAMPLE_STREAM_ID (1ull << 9)
#define TALLY_SAMPLE_RAW (1ull << 10)
#define TALLY_SAMPLE_BRANCH_STACK (1ull << 11)
#define TALLY_SAMPLE_REGS_USER (1ull << 12)
#define TALLY_SAMPLE_STACK_USER (1ull << 13)
#define TALLY_SAMPLE_WEIGHT (1ull << 14)
#define TALLY_SAMPLE_DATA_SRC (1ull << 15)
#define TALLY_SAMPLE_IDENTIFIER (1ull << 16)
#define TALLY_SAMPLE_TRANSACTION (1ull << 17)
#define TALLY_SAMPLE_REGS_INTR (1ull << 18)
#define TALLY_SAMPLE_PHYS_ADDR (1ull << 19)
#define TALLY_SAMPLE_AUX (1ull << 20)
#define TALLY_SAMPLE_CGROUP (1ull << 21)
#define TALLY_SAMPLE_DATA_PAGE_SIZE (1ull << 22)
#define TALLY_SAMPLE_CODE_PAGE_SIZE (1ull << 23)
#define TALLY_SAMPLE_WEIGHT_STRUCT (1ull << 24)
#define TALLY_SAMPLE_MAX (1ull << 25)

/* attr.branch_sample_type */
#define TALLY_BRANCH_USER (1ull << 0)
#define TALLY_BRANCH_KERNEL (1ull << 1)
#define TALLY_BRANCH_HV (1ull << 2)
#define TALLY_BRANCH_ANY (1ull << 3)
#define TALLY_BRANCH_ANY_CALL (1ull << 4)
#define TALLY_BRANCH_ANY_RETURN (1ull << 5)
#define TALLY_BRANCH_IND_CALL (1ull << 6)
#define TALLY_BRANCH_ABORT_TX (1ull << 7)
#define TALLY_BRANCH_IN_TX (1ull << 8)
#define TALLY_BRANCH_NO_TX (1ull << 9)
#define TALLY_BRANCH_COND (1ull << 10)
#define TALLY_BRANCH_CALL_STACK (1ull << 11)
#define TALLY_BRANCH_IND_JUMP (1ull << 12)
#define TALLY_BRANCH_CALL (1ull << 13)
#define TALLY_BRANCH_NO_FLAGS (1ull << 14)
#define TALLY_BRANCH_NO_CYCLES (1ull << 15)
#define TALLY_BRANCH_TYPE_SAVE (1ull << 16)
#define TALLY_BRANCH_HW_INDEX (1ull << 17)
#define TALLY_BRANCH_PRIV_SAVE (1ull << 18)
#define TALLY_BRANCH_COUNTERS (1ull << 19)

/* attr.read_format */
#define TALLY_FORMAT_TOTAL_TIME_ENABLED (1ull << 0)
#define TALLY_FORMAT_TOTAL_TIME_RUNNING (1ull << 1)
#define TALLY_FORMAT_ID (1ull << 2)
#define TALLY_FORMAT_GROUP (1ull << 3)
#define TALLY_FORMAT_LOST (1ull << 4)
#define TALLY_FORMAT_MAX (1ull << 5)

/* attr.flags: the kernel's bit-fields as one word; the first bit-field is bit 0. */
#define TALLY_ATTR_DISABLED (1ull << 0)
#define TALLY_ATTR_INHERIT (1ull << 1)
#define TALLY_ATTR_PINNED (1ull << 2)
#define TALLY_ATTR_EXCLUSIVE (1ull << 3)
#define TALLY_ATTR_EXCLUDE_USER (1ull << 4)
#define TALLY_ATTR_EXCLUDE_KERNEL (1ull << 5)
#define TALLY_ATTR_EXCLUDE_HV (1ull << 6)
#define TALLY_ATTR_EXCLUDE_IDLE (1ull << 7)
#define TALLY_ATTR_MMAP (1ull << 8)
#define TALLY_ATTR_COMM (1ull << 9)
#define TALLY_ATTR_FREQ (1ull << 10)
#define TALLY_ATTR_INHERIT_STAT (1ull << 11)
#define TALLY_ATTR_ENABLE_ON_EXEC (1ull << 12)
#define TALLY_ATTR_TASK (1ull << 13)
#define TALLY_ATTR_WATERMARK (1ull << 14)
#define TALLY_ATTR_PRECISE_IP_SHIFT 15 /* two bits, 0..3 */
#define TALLY_ATTR_PRECISE_IP (3ull << TALLY_ATTR_PRECISE_IP_SHIFT)
#define TALLY_ATTR_MMAP_DATA (1ull << 17)
#define TALLY_ATTR_SAMPLE_ID_ALL (1ull << 18)
#define TALLY_ATTR_EXCLUDE_HOST (1ull << 19)
#define TALLY_ATTR_EXCLUDE_GUEST (1ull << 20)
#define TALLY_ATTR_EXCLUDE_CALLCHAIN_KERNEL (1ull << 21)
#define TALLY_ATTR_EXCLUDE_CALLCHAIN_USER (1ull << 22)
#define TALLY_ATTR_MMAP2 (1ull << 23)
#define TALLY_ATTR_COMM_EXEC (1ull << 24)
#define TALLY_ATTR_USE_CLOCKID (1ull << 25)
#define TALLY_ATTR_CONTEXT_SWITCH (1ull << 26)
#define TALLY_ATTR_WRITE_BACKWARD (1ull << 27)
#define TALLY_ATTR_NAMESPACES (1ull << 28)
#define TALLY_ATTR_KSYMBOL (1ull << 29)
#define TALLY_ATTR_BPF_EVENT (1ull << 30)
#define TALLY_ATTR_AUX_OUTPUT (1ull << 31)
#define TALLY_ATTR_CGROUP (1ull << 32)
#define TALLY_ATTR_TEXT_POKE (1ull << 33)
#define TALLY_ATTR_BUILD_ID (1ull << 34)
#define TALLY_ATTR_INHERIT_THREAD (1ull << 35)
#define TALLY_ATTR_REMOVE_ON_EXEC (1ull << 36)
#define TALLY_ATTR_SIGTRAP (1ull << 37)
#define TALLY_ATTR_DEFER_CALLCHAIN (1ull << 38)
#define TALLY_ATTR_DEFER_OUTPUT (1ull << 39)

struct tally_attr {
	uint32_t type; /* enum tally_type, or a PMU's type */
	uint32_t size; /* size of this struct in bytes, as the caller knows it */
	uint64_t config;
	uint64_t sample_period; /* or sample_freq (Hz) with ATTR_FREQ */
	uint64_t sample_type;
	uint64_t read_format;
	uint64_t flags;
	uint32_t wakeup_events; /* or wakeup_watermark (bytes) with ATTR_WATERMARK */
	uint32_t bp_type;
	uint64_t config1; /* or bp_addr, kprobe_func, uprobe_path */
	uint64_t config2; /* or bp_len, kprobe_addr, probe_offset */
	uint64_t branch_sample_type;
	uint64_t sample_regs_user;
	uint32_t sample_stack_user; /* bytes */
	int32_t clockid;
	uint64_t sample_regs_intr;
	uint32_t aux_watermark;
	uint16_t sample_max_stack;
	uint16_t reserved_2;
	uint32_t aux_sample_size;
	uint32_t aux_action;
	uint64_t sig_data;
	uint64_t config3;
};

/* Sizes that kernels have used.  An attr in a file may have any of these, or a later one. */
#define TALLY_ATTR_SIZE_VER0 64u
#define TALLY_ATTR_SIZE_VER1 72u
#define TALLY_ATTR_SIZE_VER2 80u
#define TALLY_ATTR_SIZE_VER3 96u
#define TALLY_ATTR_SIZE_VER4 104u
#define TALLY_ATTR_SIZE_VER5 112u
#define TALLY_ATTR_SIZE_VER6 120u
#define TALLY_ATTR_SIZE_VER7 128u
#define TALLY_ATTR_SIZE_VER8 136u

/* Breakpoints, attr.bp_type: linux/hw_breakpoint.h */
#define TALLY_BREAKPOINT_R 1u
#define TALLY_BREAKPOINT_W 2u
#define TALLY_BREAKPOINT_X 4u

/* perf_event_open flags */
#define TALLY_FLAG_FD_NO_GROUP (1ul << 0)
#define TALLY_FLAG_FD_OUTPUT (1ul << 1)
#define TALLY_FLAG_PID_CGROUP (1ul << 2)
#define TALLY_FLAG_FD_CLOEXEC (1ul << 3)

static inline unsigned tally_attr_precise(const struct tally_attr *attr)
{
	return (attr->flags & TALLY_ATTR_PRECISE_IP) >> TALLY_ATTR_PRECISE_IP_SHIFT;
}

/* ioctl requests on an event, numbered as in linux/perf_event.h on machines that use
 * asm-generic/ioctl.h (x86, arm, riscv).  Requests that carry a pointer differ between 32 and 64
 * bits. */
#define TALLY_IOC_ENABLE 0x2400u
#define TALLY_IOC_DISABLE 0x2401u
#define TALLY_IOC_REFRESH 0x2402u
#define TALLY_IOC_RESET 0x2403u
#define TALLY_IOC_PERIOD 0x40082404u            /* const uint64_t * */
#define TALLY_IOC_SET_OUTPUT 0x2405u            /* descriptor, or -1 */
#define TALLY_IOC_SET_FILTER (0x40002406u | (uint32_t)sizeof(char *) << 16) /* const char * */
#define TALLY_IOC_ID (0x80002407u | (uint32_t)sizeof(uint64_t *) << 16)     /* uint64_t * */
#define TALLY_IOC_SET_BPF 0x40042408u           /* descriptor of a BPF program */
#define TALLY_IOC_PAUSE_OUTPUT 0x40042409u      /* 0 or 1 */
#define TALLY_IOC_QUERY_BPF (0xc000240au | (uint32_t)sizeof(void *) << 16)
#define TALLY_IOC_MODIFY_ATTRIBUTES (0x4000240bu | (uint32_t)sizeof(struct tally_attr *) << 16)
#define TALLY_IOC_FLAG_GROUP 1u /* argument of ENABLE, DISABLE, RESET: the whole group */

/* prctl(2) options: they concern all events that the caller opened. */
#define TALLY_PR_TASK_PERF_EVENTS_DISABLE 31
#define TALLY_PR_TASK_PERF_EVENTS_ENABLE 32

enum tally_record_type {
	TALLY_RECORD_MMAP = 1,
	TALLY_RECORD_LOST,
	TALLY_RECORD_COMM,
	TALLY_RECORD_EXIT,
	TALLY_RECORD_THROTTLE,
	TALLY_RECORD_UNTHROTTLE,
	TALLY_RECORD_FORK,
	TALLY_RECORD_READ,
	TALLY_RECORD_SAMPLE,
	TALLY_RECORD_MMAP2,
	TALLY_RECORD_AUX,
	TALLY_RECORD_ITRACE_START,
	TALLY_RECORD_LOST_SAMPLES,
	TALLY_RECORD_SWITCH,
	TALLY_RECORD_SWITCH_CPU_WIDE,
	TALLY_RECORD_NAMESPACES,
	TALLY_RECORD_KSYMBOL,
	TALLY_RECORD_BPF_EVENT,
	TALLY_RECORD_CGROUP,
	TALLY_RECORD_TEXT_POKE,
	TALLY_RECORD_AUX_OUTPUT_HW_ID,
	TALLY_RECORD_CALLCHAIN_DEFERRED,
	TALLY_RECORD_KERNEL_MAX,

	/* From 64 on: written by tools, not by the kernel (perf's
	 * tools/lib/perf/include/perf/event.h). */
	TALLY_RECORD_USER_START = 64,
	TALLY_RECORD_HEADER_ATTR = 64,
	TALLY_RECORD_HEADER_EVENT_TYPE = 65,
	TALLY_RECORD_HEADER_TRACING_DATA = 66,
	TALLY_RECORD_HEADER_BUILD_ID = 67,
	TALLY_RECORD_FINISHED_ROUND = 68,
	TALLY_RECORD_ID_INDEX = 69,
	TALLY_RECORD_AUXTRACE_INFO = 70,
	TALLY_RECORD_AUXTRACE = 71,
	TALLY_RECORD_AUXTRACE_ERROR = 72,
	TALLY_RECORD_THREAD_MAP = 73,
	TALLY_RECORD_CPU_MAP = 74,
	TALLY_RECORD_STAT_CONFIG = 75,
	TALLY_RECORD_STAT = 76,
	TALLY_RECORD_STAT_ROUND = 77,
	TALLY_RECORD_EVENT_UPDATE = 78,
	TALLY_RECORD_TIME_CONV = 79,
	TALLY_RECORD_HEADER_FEATURE = 80,
	TALLY_RECORD_COMPRESSED = 81,
	TALLY_RECORD_FINISHED_INIT = 82,
	TALLY_RECORD_COMPRESSED2 = 83,
	TALLY_RECORD_USER_MAX
};

/* header.misc */
#define TALLY_MISC_CPUMODE_MASK 7u
#define TALLY_MISC_CPUMODE_UNKNOWN 0u
#define TALLY_MISC_KERNEL 1u
#define TALLY_MISC_USER 2u
#define TALLY_MISC_HYPERVISOR 3u
#define TALLY_MISC_GUEST_KERNEL 4u
#define TALLY_MISC_GUEST_USER 5u
#define TALLY_MISC_PROC_MAP_PARSE_TIMEOUT (1u << 12)
#define TALLY_MISC_MMAP_DATA (1u << 13)            /* MMAP, MMAP2 */
#define TALLY_MISC_COMM_EXEC (1u << 13)            /* COMM */
#define TALLY_MISC_FORK_EXEC (1u << 13)            /* FORK */
#define TALLY_MISC_SWITCH_OUT (1u << 13)           /* SWITCH, SWITCH_CPU_WIDE */
#define TALLY_MISC_EXACT_IP (1u << 14)             /* SAMPLE */
#define TALLY_MISC_SWITCH_OUT_PREEMPT (1u << 14)   /* SWITCH, SWITCH_CPU_WIDE */
#define TALLY_MISC_MMAP_BUILD_ID (1u << 14)        /* MMAP2 */
#define TALLY_MISC_BUILD_ID_SIZE (1u << 15)        /* HEADER_BUILD_ID: the size byte is valid */

/* KSYMBOL records: kinds of code, and a flag. */
#define TALLY_KSYMBOL_BPF 1u
#define TALLY_KSYMBOL_OUT_OF_LINE 2u
#define TALLY_KSYMBOL_UNREGISTER 1u

/* Markers among a call chain's addresses: the addresses that follow belong to this context. */
#define TALLY_CONTEXT_HV ((uint64_t)-32)
#define TALLY_CONTEXT_KERNEL ((uint64_t)-128)
#define TALLY_CONTEXT_USER ((uint64_t)-512)
#define TALLY_CONTEXT_USER_DEFERRED ((uint64_t)-640)
#define TALLY_CONTEXT_GUEST ((uint64_t)-2048)
#define TALLY_CONTEXT_GUEST_KERNEL ((uint64_t)-2176)
#define TALLY_CONTEXT_GUEST_USER ((uint64_t)-2560)
#define TALLY_CONTEXT_MAX ((uint64_t)-4095) /* values at or above are markers */

struct tally_record_header {
	uint32_t type;
	uint16_t misc;
	uint16_t size; /* bytes of the whole record */
};

/* The first page of a mapped ring (struct perf_event_mmap_page).  Read fields that the kernel
 * changes with atomic loads; perf_event_open(2) describes the protocol. */
struct tally_user_page {
	uint32_t version, compat_version;
	uint32_t lock;  /* seqlock */
	uint32_t index; /* hardware counter + 1; 0: not on the PMU */
	int64_t offset;
	uint64_t time_enabled, time_running; /* ns */
	uint64_t capabilities;
	uint16_t pmc_width, time_shift;
	uint32_t time_mult;
	uint64_t time_offset, time_zero;
	uint32_t size, reserved_1;
	uint64_t time_cycles, time_mask;
	uint8_t reserved[116 * 8];
	/* stored with release by the kernel, loaded with acquire by the reader */
	uint64_t data_head;
	uint64_t data_tail; /* stored with release by the reader */
	uint64_t data_offset, data_size;
	uint64_t aux_head, aux_tail, aux_offset, aux_size;
};

/* tally_user_page.capabilities */
#define TALLY_CAP_BIT0_IS_DEPRECATED (1ull << 1) /* always set */
#define TALLY_CAP_USER_RDPMC (1ull << 2)
#define TALLY_CAP_USER_TIME (1ull << 3)       /* time_shift, time_mult, time_offset are valid */
#define TALLY_CAP_USER_TIME_ZERO (1ull << 4)  /* time_zero is valid */
#define TALLY_CAP_USER_TIME_SHORT \
	(1ull << 5) /* time_cycles and time_mask are valid: the cycle counter wraps early */

#endif
