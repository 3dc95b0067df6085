"""Describes the machine, and detects whether the device under test exists."""
import json
import os
import pathlib
import platform
import shutil
import subprocess

from .context import Failed

LIBRARY_VARIABLE = "MOTLEY_DEVICE_LIBRARY"

# Runs in the Python whose PyTorch is inspected.
ASK_TORCH = """
import json, torch
facts = {"PyTorch": torch.__version__, "its CUDA": torch.version.cuda or "none"}
if torch.cuda.is_available():
    index = int(DEVICE.partition(":")[2] or 0) if DEVICE.startswith("cuda") else 0
    if index < torch.cuda.device_count():
        card = torch.cuda.get_device_properties(index)
        facts["card"] = card.name
        facts["compute capability"] = f"{card.major}.{card.minor}"
        facts["memory of the card"] = f"{card.total_memory / 2**30:.1f} GiB"
    facts["cards"] = torch.cuda.device_count()
print(json.dumps(facts))
"""


def first_lines(*words):
    """A program's output lines; [] if it cannot be run."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []


def torch_facts(python, device):
    lines = first_lines(python, "-c", f"DEVICE = {device!r}\n{ASK_TORCH}")
    try:
        return json.loads(lines[-1])
    except (IndexError, ValueError):
        return {}


def no_device(device):
    return f"there is no device '{device}'"


def device_trouble(given):
    """(what, cause, remedy) if there is no such device; None if there may be one."""
    device, python = given.device, given.python
    what = no_device(device)
    if device.startswith("privateuseone"):
        library = os.environ.get(LIBRARY_VARIABLE, "")
        if not pathlib.Path(library).is_file():
            return (what, f"{LIBRARY_VARIABLE} is no file: '{library}'",
                    "name the device's library for LibTorch; the far device of the tests is "
                    "lib*/libmotley_far_device.so of a build")
        return None
    if device == "mps":
        return (what, f"this is {platform.system()}", "only a Mac has it, and Motley does not run there yet")
    if not device.startswith("cuda"):
        return no_pytorch(what, given) if device == "cpu" else None  # only Motley has it
    if given.torch or given.build:
        return card_trouble(what)
    return (card_trouble(what) or no_pytorch(what, given) or
            pytorch_trouble(what, torch_facts(python, device), python))


def no_pytorch(what, given):
    """The error if the PyTorch to build against is missing."""
    if given.torch or given.build or torch_facts(given.python, given.device):
        return None
    return (what, f"{given.python} does not import torch",
            "name the Python of your PyTorch by --python PROGRAM, or a LibTorch by --torch FOLDER")


def card_trouble(what):
    if first_lines("nvidia-smi", "-L"):
        return None
    return (what, "nvidia-smi lists no card" if shutil.which("nvidia-smi") else
            "there is no nvidia-smi, so no driver of NVIDIA's",
            "run this on a machine with an NVIDIA card whose driver is installed")


def pytorch_trouble(what, facts, python):
    """REQUIRES: the build uses the PyTorch that reported these facts."""
    if "card" in facts:
        return None
    cards = facts.get("cards", 0)
    if cards:
        names = ", ".join(f"cuda:{index}" for index in range(cards))
        return (what, f"the PyTorch of {python} sees {names}", "name one of these by --device")
    return (what, f"the PyTorch of {python} ({facts['PyTorch']}, CUDA {facts['its CUDA']}) sees no "
                  "card",
            "install a PyTorch for CUDA that fits the driver, or name its Python by --python")


def found_device_trouble(context):
    """The same check by the built Motley; stores the device's properties in context.card."""
    try:
        here = json.loads(context.run(context.motley, "devices", "--json"))["machines"]["local"]
    except (Failed, ValueError, KeyError):
        return None  # the checks will report details
    device = context.device
    facts = next((each for each in here["devices"] if each["name"] == device), None)
    if facts is None:
        missing = [each["fault"] for each in here["missing"] if each["kind"] == device.split(":")[0]]
        if missing and missing[0]:
            return no_device(device), missing[0]["cause"], missing[0]["remedy"]
        names = ", ".join(each["name"] for each in here["devices"])
        return no_device(device), f"Motley finds {names}", "name one of these by --device"
    if facts["fault"]:
        return (f"{device} cannot compute", facts["fault"]["cause"],
                facts["fault"]["remedy"])
    card = {"card": facts["model"], "compute capability": facts["capability"],
            "memory of the card": facts["memory_bytes"] and
            f"{facts['memory_bytes'] / 2**30:.1f} GiB"}
    if device != "cpu":
        context.card = {**{what: value for what, value in card.items() if value}, **context.card}
    return None


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def system():
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        return platform.system()


def commit(root):
    lines = first_lines("git", "-C", str(root), "rev-parse", "--short=12", "HEAD")
    if not lines:
        return "unknown"
    changed = first_lines("git", "-C", str(root), "status", "--porcelain", "--untracked-files=no")
    return lines[0] + (" and changes" if changed else "")


def machine_facts(context):
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    facts = {"device": context.device, "Motley": commit(context.root), "system": system(),
             "kernel": platform.release(), "processor": processor(),
             "cores": len(os.sched_getaffinity(0)), "memory": f"{memory_gib:.1f} GiB"}
    context.card = torch_facts(context.given.python, context.device)
    context.has_pytorch = bool(context.card)
    drivers = first_lines("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    if drivers:
        facts["driver"] = drivers[0]
    return facts
