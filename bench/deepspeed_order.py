"""The step time of a pipeline in DeepSpeed's 1F1B order and in Motley's order.

Both follow a per-rank instruction list: they wait for a message where the list says so, and send asynchronously, one
message at a time in each direction of a link. They differ in the timing. Motley sends a result as soon as it is
computed and waits only for the inputs of the next instruction. DeepSpeed exchanges with its neighbours in lockstep
and receives before it sends (TrainSchedule in DeepSpeed's runtime/pipe/schedule.py). With long transfers these
receives make neighbours wait for each other.
"""
from dataclasses import dataclass


@dataclass
class Stage:
    forward_s: float  # of a micro-batch
    backward_s: float
    to_next_s: float = 0  # an activation to the next stage
    from_next_s: float = 0  # a gradient to the previous stage


def motley_order(stages, stage, micro_batches):
    warm_up = min(micro_batches, stages - stage) - 1
    forwards = [[("receive activation", m), ("forward", m), ("send activation", m)] for m in range(micro_batches)]
    backwards = [[("receive gradient", m), ("backward", m), ("send gradient", m)] for m in range(micro_batches)]
    order = forwards[:warm_up]
    for m in range(micro_batches):
        order += forwards[warm_up + m:warm_up + m + 1] + [backwards[m]]
    return [each for part in order for each in part]


def deepspeed_order(stages, stage, micro_batches):
    order, before = [], None
    for step in range(2 * (micro_batches + stages - 1)):
        is_forward = step % 2 == stage % 2
        micro = (step - stage) // 2 if is_forward else (step + stage + 1) // 2 - stages
        now = micro if 0 <= micro < micro_batches else None
        if is_forward:
            order += [("send gradient", before), ("receive activation", now), ("forward", now)]
        else:
            order += [("receive gradient", now), ("send activation", before), ("backward", now)]
        before = now
    return [each for each in order if each[1] is not None]


def step_s(stages, micro_batches, order):
    """Ends when the last stage has its last gradient; excludes all-reduces and updates."""
    last = len(stages) - 1
    lists = [order(len(stages), s, micro_batches) for s in range(len(stages))]
    # Transfers without a neighbour are not in the list.
    ends = {"send activation": last, "receive gradient": last, "receive activation": 0, "send gradient": 0}
    lists = [[each for each in todo if ends.get(each[0]) != s] for s, todo in enumerate(lists)]
    at, now_s = [0] * len(stages), [0.0] * len(stages)
    arrivals, link_free_s = {}, {}
    while True:
        done_before = sum(at)
        for s, stage in enumerate(stages):
            for what, micro in lists[s][at[s]:]:
                if what == "forward":
                    now_s[s] += stage.forward_s
                elif what == "backward":
                    now_s[s] += stage.backward_s
                elif what.startswith("send"):
                    is_up = what == "send activation"
                    link = (s, is_up)
                    end_s = max(now_s[s], link_free_s.get(link, 0)) + (stage.to_next_s if is_up else stages[s - 1].from_next_s)
                    link_free_s[link] = end_s
                    arrivals[(what[5:], s + 1 if is_up else s - 1, micro)] = end_s
                else:
                    arrival_s = arrivals.get((what[8:], s, micro))
                    if arrival_s is None:
                        break
                    now_s[s] = max(now_s[s], arrival_s)
                at[s] += 1
        if sum(at) == done_before:
            break
    assert all(done == len(todo) for done, todo in zip(at, lists)), "the order deadlocks"
    return max(now_s)
