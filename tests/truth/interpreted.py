"""A Python program that spends its time in libraries below the interpreter, and in the interpreter.

Prints its shares of CPU time.  With -X perf, its own functions have names.
"""
import hashlib
import time
import zlib

parts = {"packing": 0.0, "hashing": 0.0, "looping": 0.0}
data = b" ".join(str(number * 7919 % 100003).encode() for number in range(50000))


def packing():
    zlib.compress(data, 6)


def hashing():
    hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 2000)


def looping():
    total = 0
    for number in range(20000):
        total += number * number % 7
    return total


def spend(part, seconds, call):
    start = now = time.thread_time()
    while now - start < seconds:
        call()
        now = time.thread_time()
    parts[part] += now - start


def drive():
    for _ in range(12):
        spend("packing", 0.06, packing)
        spend("hashing", 0.045, hashing)
        spend("looping", 0.045, looping)


drive()
whole = time.process_time() / 100
for name, seconds in parts.items():
    print(f"{name} {seconds / whole:.2f}")
