"""GPT-2 124M on the device, alternating between Motley and eager PyTorch."""
import json
import pathlib
import statistics

from . import runs
from .context import NotRun, Part

GPT2_124M = dict(layers=12, width=768, heads=12, context=1024, vocab=50257, micro_batches=1)
FLOP_PER_TOKEN = 0.857e9  # of the model above: 6 per parameter, plus the attention products
ROUNDS = 2
STEPS = 12
WARM_UP = 3  # steps

# Dense peaks in 10^12 operations per second from the vendor's data sheets: fp32 without tensor
# cores, bf16 with tensor cores and fp32 accumulation. The first entry whose words all occur in the
# card's name applies.
PEAKS = [
    ("H200", 67, 989), ("H100 PCIe", 51, 756), ("H100 NVL", 60, 835), ("H100", 67, 989),
    ("A100", 19.5, 312), ("L40S", 91.6, 362), ("L4", 30.3, 121), ("A10", 31.2, 125),
    ("T4", 8.1, None), ("V100", 15.7, None), ("RTX 4090", 82.6, 165), ("RTX 3090", 35.6, 71),
]


def peak(card, precision):
    for words, fp32, bf16 in PEAKS:
        if all(word in card.split() or word in card.replace("-", " ").split()
               for word in words.split()):
            value = fp32 if precision == "fp32" else bf16
            return value and value * 1e12
    return None


def require_precision(context, precision):
    capability = context.card.get("compute capability")
    if precision == "bf16" and capability and float(capability) < 8:
        raise NotRun(f"the card has no bf16 (compute capability {capability})")


def speed_parts(context):
    model = "a tiny GPT" if context.short else "GPT-2 124M"
    return [Part(lambda p=precision: compare(context, p), f"{model}, {precision}")
            for precision in ("fp32", "bf16")]


def micro_batch(context):
    """The number of samples that fit the card: about 2 GiB each at fp32, doubled for safety."""
    card_gib = float(context.card.get("memory of the card", "16 GiB").split()[0])
    return max(1, min(16, int(card_gib / 4)))


def compare(context, precision):
    require_precision(context, precision)
    model = dict(runs.TINY) if context.short else {**GPT2_124M, "micro_batch": micro_batch(context)}
    model["micro_batches"] = 1
    ours, theirs = [], []
    for repeat in range(1 if context.short else ROUNDS):
        ours.append(by_motley(context, f"speed-{precision}-{repeat}", model, precision))
        if context.has_pytorch:
            theirs.append(by_pytorch(context, model, precision))
    return figures_text(context, model, precision, statistics.median(ours),
                        statistics.median(theirs) if theirs else None)


def by_motley(context, name, model, precision):
    words = [] if precision == "fp32" else ["--set", f"train.precision={precision}"]
    run = runs.train(context, name, [context.device], "--stages", "1", *words, model=model,
                     step_count=STEPS)
    return statistics.median(run.column("tokens_per_s")[WARM_UP:])


def by_pytorch(context, model, precision):
    words = [word for key in ("layers", "width", "heads", "context", "vocab")
             for word in (f"--{key}", model[key])]
    out = context.run(context.given.python, context.root / "bench/device_step_peer.py", "--device",
                      context.device, "--precision", precision, "--batch", model["micro_batch"],
                      "--steps", STEPS - WARM_UP, "--warmup", WARM_UP, *words)
    return json.loads(out.splitlines()[-1])["tokens_per_s"]


def figures_text(context, model, precision, ours, theirs):
    beside = (f"eager PyTorch {theirs:,.0f}: {ours / theirs:.2f} ×" if theirs else
              f"eager PyTorch not run: {pathlib.Path(context.given.python).name} has no torch")
    text = (f"{ours:,.0f} tokens/s, {beside}; "
            f"{model['micro_batch']} × {model['context']} tokens a step")
    most = None if context.short else peak(context.card.get("card", ""), precision)
    if most is None:
        return text + "; share of peak unknown"
    shares = " and ".join(f"{rate * FLOP_PER_TOKEN / most:.1%}" for rate in (ours, theirs) if rate)
    return text + f"; {shares} of the card's {most / 1e12:g} Tflop/s"
