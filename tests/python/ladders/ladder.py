"""Steps of a ladder: each compares what a package computes on the device with what the host computes, and prints a line."""

import sys
import time

failed = []


def step(name, check):
    """Runs `check`, which gives whether the values are right, and prints what became of it."""
    started = time.time()
    try:
        outcome = "PASS" if check() else "FAIL"
    except Exception as error:  # Every failure of a package is one of its step.
        outcome = f"FAIL ({type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''})"
    if outcome != "PASS":
        failed.append(name)
    print(f"{outcome} {name}, {time.time() - started:.1f} s", flush=True)


def end():
    """Ends the program: with 1 where a step has failed."""
    print("all steps passed" if not failed else f"failed: {', '.join(failed)}", flush=True)
    sys.exit(1 if failed else 0)
