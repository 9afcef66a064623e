"""Runs a script that was written for `perf script -s`: perf's module perf_trace_context, and its calls of the script's
functions.  `-c THIS DESCRIPTOR SCRIPT ARGUMENT...`; each line from the descriptor is a sample as JSON (script_python.c)."""
import ctypes
import json
import os
import sys
import types


class Context:
    """What perf hands to handlers as `context`."""
    def __init__(self, fields):
        self.fields = fields


def field_of(name):
    return lambda context: context.fields.get(name, 0)


def install_module():
    module = types.ModuleType("perf_trace_context")
    module.common_pc = field_of("common_preempt_count")
    module.common_flags = field_of("common_flags")
    module.common_lock_depth = field_of("common_lock_depth")
    module.perf_sample_insn = lambda context: b""
    module.perf_sample_srcline = lambda context: (None, 0)
    module.perf_sample_srccode = lambda context: (None, 0, None)
    module.perf_set_itrace_options = lambda context, options: -1
    sys.modules["perf_trace_context"] = module


def value_of(value):
    """Arrays come as {"bytes": HEX}."""
    if isinstance(value, dict):
        return bytearray.fromhex(value["bytes"])
    return value


def name_place(about, frame, offset_key, put_symbol):
    """Adds the names of a place: those of the function that is not inlined."""
    if frame.get("function"):
        put_symbol(frame["function"])
        if frame.get("offset") is not None:
            about[offset_key] = frame["offset"]
    if frame.get("object") and frame["object"] != "[unknown]":
        about["dso"] = frame["object"]


def chain_of(sample):
    chain = []
    for place in sample["callchain"]:
        entry = {"ip": place["ip"]}
        if place["frames"]:
            name_place(entry, place["frames"][-1], "sym_off",
                       lambda name, entry=entry: entry.update(sym={"binding": 1, "name": name}))
        chain.append(entry)
    return chain


ORDER = ["pid", "tid", "cpu", "ip", "time", "period", "phys_addr", "addr", "values", "weight", "transaction", "datasrc",
         "datasrc_decode", "cpumode"]
# What samples have in perf 6.1 that lack it.
NOTHING = {"values": [(0, 0, 0)], "datasrc_decode": "|OP N/A|LVL N/A|SNP N/A|TLB N/A|LCK N/A|BLK  N/A"}


def dictionary_of(sample, chain):
    """perf's dictionary of a sample.  A key is missing if the value was recorded and is not known here."""
    known = {**sample["sample"], **{key: value for key, value in NOTHING.items() if not sample["has_" + key]}}
    inner = {key: known[key] for key in ORDER if key in known}
    about = {"ev_name": sample["event"], "attr": bytes.fromhex(sample["attr"]), "sample": inner,
             "raw_buf": bytes.fromhex(sample["raw"]), "comm": sample["comm"], "callchain": chain}
    if sample["leaf"]:
        name_place(about, sample["leaf"][-1], "symoff", lambda name: about.update(symbol=name))
    if not sample["has_branches"]:
        about["brstack"], about["brstacksym"] = [], []
    for key in "iregs", "uregs":
        if not sample["has_" + key]:
            about[key] = ""
    return about


def takes(function):
    """How many arguments, and whether it takes any number."""
    return function.__code__.co_argcount, function.__code__.co_flags & 0x04


class Caller:
    def __init__(self, names):
        self.names = names

    def call(self, name, *arguments):
        function = self.names.get(name)
        if callable(function):
            function(*arguments)

    def tracepoint(self, sample, about, chain):
        fields = {name: value_of(value) for name, value in sample["fields"].items()}
        own = {name: value for name, value in fields.items() if not name.startswith("common_")}
        name, time = sample["handler"], sample["sample"]["time"]
        common = [sample["sample"]["cpu"], time // 10 ** 9, time % 10 ** 9, fields.get("common_pid", 0), sample["comm"], chain]
        context = Context(fields)
        function = self.names.get(name)
        if callable(function):
            arguments = [name, context, *common, *own.values()]
            count, takes_more = takes(function)
            if count < len(arguments) and not takes_more:  # older scripts have no common_callchain
                arguments.remove(chain)
            elif count > len(arguments):
                arguments.append(about)
            function(*arguments)
            return
        function = self.names.get("trace_unhandled")
        if callable(function):
            keys = ["common_cpu", "common_s", "common_ns", "common_pid", "common_comm", "common_callchain"]
            arguments = [name, context, {**dict(zip(keys, common)), **own}]
            if takes(function)[0] > len(arguments):
                arguments.append(about)
            function(*arguments)

    def sample(self, sample):
        chain = chain_of(sample)
        about = dictionary_of(sample, chain)
        if sample["handler"]:
            self.tracepoint(sample, about, chain)
        else:
            self.call("process_event", about)


def main():
    descriptor, script = int(sys.argv[1]), sys.argv[2]
    sys.argv = sys.argv[2:]
    # the script's own name, for ps(1) and killall(1)
    ctypes.CDLL(None).prctl(15, os.fsencode(os.path.basename(script))[:15], 0, 0, 0)
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    install_module()
    names = {"__name__": "__main__", "__file__": script, "__builtins__": __builtins__}
    with open(script, "rb") as source:
        exec(compile(source.read(), script, "exec"), names)
    caller = Caller(names)
    caller.call("trace_begin")
    with open(descriptor, encoding="utf-8", errors="surrogateescape") as samples:
        for line in samples:
            caller.sample(json.loads(line))
    caller.call("trace_end")


main()
