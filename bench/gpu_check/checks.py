"""The checks on the device, in the order of the report: (name, parts, time limit in seconds).

parts(context) yields the lines of a check (context.Part).
"""
import json
import pathlib
import re
import shutil

from . import runs
from .context import Failed, NotRun, Part
from .speed import speed_parts

# A test that trains, for the programs below and for compute-sanitizer.
TRAINING_TEST = ("stage_trainer_test", "--gtest_filter=StageTrainer.KeepsReplicasEqual")
CODEC_TEST = ("stage_trainer_test", "--gtest_filter=*DeviceFormats*")
LOSS_OFF = 1e-3  # relative; rounding of 20 steps, docs/numerics.md
PREDICTION_OFF = 0.15


def device_tests(context):
    """The programs that the build's tests run a second time on the far device."""
    parts = []
    for program, *arguments in listed_tests(context):
        name = pathlib.Path(program).name
        if context.short:
            if name != TRAINING_TEST[0]:
                continue
            arguments = [TRAINING_TEST[1]]
        parts.append(Part(lambda p=program, a=arguments: run_test(context, p, a), name))
    return parts or [Part(lambda: not_there("the build lists no tests for devices"))]


def listed_tests(context):
    listed = context.build / "device_tests.txt"
    return [line.split("\t") for line in listed.read_text().splitlines()] if listed.is_file() else []


def not_there(reason):
    raise NotRun(reason)


def run_test(context, program, arguments):
    if not pathlib.Path(program).is_file():
        raise NotRun("it was not built")
    out = context.run(program, *arguments, MOTLEY_TEST_DEVICE=context.device)
    passed = re.search(r"\[  PASSED  \] (\d+) test", out)
    skipped = re.search(r"\[  SKIPPED \] (\d+) test", out)
    if not passed or passed.group(1) == "0":
        raise NotRun("all was skipped") if skipped else Failed("no test ran")
    return (f"{passed.group(1)} passed" +
            (f", {skipped.group(1)} skipped" if skipped else ""))


def codec_bytes(context):
    """The device must encode to the same bytes as the CPU."""
    for program, *_ in listed_tests(context):
        if pathlib.Path(program).name == CODEC_TEST[0]:
            return [Part(lambda: run_test(context, program, CODEC_TEST[1:]))]
    return [Part(lambda: not_there("the build lists no tests for devices"))]


def plan_independence(context):
    return [Part(lambda: same_bits(context), "one process and two on the device"),
            Part(lambda: near_the_processor(context), "losses beside the processor's")]


# One thread: results computed on the CPU in place of a device are bit-identical for the same thread
# count.
def same_bits(context):
    threads = ["--set", "run.threads=1"]
    one = runs.train(context, "one", [context.device], *threads)
    hashes = {"one process": one.parameter_hash()}
    for schedule in ("1f1b",) if context.short else ("gpipe", "1f1b", "split"):
        two = runs.train(context, f"two-{schedule}", [context.device] * 2, "--stages", "2", "--set",
                         f"parallel.schedule={schedule}", *threads)
        hashes[f"two, {schedule}"] = two.parameter_hash()
    if len(set(hashes.values())) > 1:
        raise Failed("parameters differ", json.dumps(hashes, indent=1))
    return (f"the same parameters after {runs.steps(context)} steps in one process and in two "
            f"({', '.join(list(hashes)[1:])})")


def near_the_processor(context):
    device = runs.train(context, "near-device", [context.device]).column("loss")
    processor = runs.train(context, "near-processor", ["cpu"]).column("loss")
    off = max(abs(a - b) / abs(b) for a, b in zip(device, processor, strict=True))
    if not off <= LOSS_OFF:
        raise Failed(f"losses differ by up to {off:.1e}")
    return f"off by at most {off:.1e} in {len(device)} steps"


def sanitizer(context):
    def check():
        program = shutil.which("compute-sanitizer")
        if program is None:
            raise NotRun("compute-sanitizer is not installed; it comes with CUDA's toolkit")
        if not context.is_cuda:
            raise NotRun("it knows devices of CUDA alone")
        test, only = TRAINING_TEST
        context.run(program, "--error-exitcode", "9", context.build / "bin" / test, only,
                    MOTLEY_TEST_DEVICE=context.device)
        return "no errors in three steps of two replicas"

    return [Part(check)]


def mixed_plan(context):
    def check():
        run = runs.train(context, "mixed", ["cpu", context.device], "--stages", "2",
                         model=runs.TINY if context.short else runs.MIDDLE)
        step = run.report()["step_s"]
        off = step["measured"] / step["predicted"] - 1
        figures = (f"step predicted {step['predicted'] * 1e3:.1f} ms, measured "
                   f"{step['measured'] * 1e3:.1f} ms ({off:+.1%})")
        for rank in run.report()["ranks"]:
            compute = rank["compute_s"]
            figures += (f"; {rank['device']} computes {compute['predicted'] * 1e3:.1f} and "
                        f"{compute['measured'] * 1e3:.1f} ms")
        # Steps of the tiny model are too short to be predicted from a profile.
        if abs(off) > PREDICTION_OFF and not context.short:
            raise Failed(figures)
        return figures

    return [Part(check, "processor and device")]


CHECKS = [
    ("tests on the device: ", device_tests, 120),
    ("codec bytes", codec_bytes, 60),
    ("plan independence: ", plan_independence, 120),
    ("compute-sanitizer", sanitizer, 120),
    ("speed: ", speed_parts, 180),
    ("mixed plan: ", mixed_plan, 120),
]
