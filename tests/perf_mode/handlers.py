"""For python.py: prints what perf, or tally, hands to the functions of a script."""
from perf_trace_context import common_flags, common_pc


def without_difference(entry):
    """perf names a return address that begins a function for that function, tally for its caller; and perf 6.1 lacks
    the names of some slots of the procedure linkage table."""
    if entry.get("sym", "").endswith(("_dl_start_user", "_start", "@plt")):
        del entry["sym"], entry["sym_off"]
    return entry


def clean(about):
    """Not what tally leaves out (docs/compatibility.md)."""
    about = {key: value for key, value in about.items() if not key.startswith("dso_")}
    about["sample"] = {key: value for key, value in about["sample"].items() if not key.startswith("addr_")}
    about["callchain"] = [without_difference({key: value["name"] if key == "sym" else value for key, value in entry.items()})
                          for entry in about["callchain"]]
    if about.get("symbol", "").endswith("@plt"):  # perf 6.1 lacks the names of some slots
        del about["symbol"], about["symoff"]
    return sorted(about.items())


def trace_begin():
    print("begin")


def sched__sched_switch(event_name, context, common_cpu, common_secs, common_nsecs, common_pid, common_comm,
                        common_callchain, prev_comm, prev_pid, prev_prio, prev_state, next_comm, next_pid, next_prio,
                        perf_sample_dict):
    print(event_name, common_pc(context) >= 0, common_flags(context) >= 0, common_cpu, common_secs, common_nsecs,
          common_pid, common_comm, common_callchain, prev_comm, prev_pid, prev_prio, prev_state, next_comm, next_pid,
          next_prio, clean(perf_sample_dict))


def trace_unhandled(event_name, context, event_fields_dict, perf_sample_dict):
    print("unhandled", event_name, sorted(event_fields_dict.items()), clean(perf_sample_dict))


def process_event(about):
    print(clean(about))


def trace_end():
    print("end")
