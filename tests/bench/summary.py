"""From the raw results of run.py to the rows of a table: medians over the rounds, and the targets."""
import statistics

RUNGS = ("01", "02", "03", "04", "05")


def median_over_rounds(rounds, value):
    """The median of `value(round)`, where it is not None."""
    values = [v for v in map(value, rounds) if v is not None]
    return statistics.median(values) if values else None


def find(entries, **wanted):
    for entry in entries:
        if all(entry.get(key) == value for key, value in wanted.items()):
            return entry
    return {}


def target(rung, kernel, problem):
    """(lowest share of the ceiling, lowest ratio to the peers, the peers that count) or None."""
    every = lambda peer: True
    if rung == "01":
        return 0, 0.98, every
    if kernel in ("relu_dropout_four_per_call", "relu_dropout_in_flight"):  # one Philox call for four elements
        return 0.95, 1.5, every
    if rung == "04" and not kernel.startswith("softmax_unfused"):
        return 0.93 if " bf16 " in problem else 0.96, 1.0, every
    if rung == "05":
        return 0, 1.0, lambda peer: peer == "PyTorch, math"
    return None


def best_peer(row):
    """(name, figures) of the fastest peer among those that the target speaks of."""
    wanted = target(row["rung"], row["kernel"], row["problem"])
    counting = {name: peer for name, peer in row["peers"].items() if not wanted or wanted[2](name)}
    return min((counting or row["peers"]).items(), key=lambda item: item[1]["ratio"])


def rows(result):
    """One dict for each kernel and shape, in the order of the rungs."""
    rounds = result["rounds"]
    table = []
    for rung in RUNGS:
        for name in [entry["name"] for entry in rounds[0]["ours"].get(rung, [])]:
            def ours(one_round):
                return find(one_round["ours"].get(rung, []), name=name)

            def theirs(one_round, peer):
                return find(one_round["peers"].get(rung, []), problem=problem, peer=peer).get("median_us")

            first = ours(rounds[0])
            row = {"rung": rung, "kernel": name.split("/")[0], "problem": first.get("label", "")}
            table.append(row)
            errors = [ours(r)["error_message"] for r in rounds if ours(r).get("error_occurred")]
            if errors:
                row["error"] = errors[0]
                continue
            problem = row["problem"]
            row["microseconds"] = median_over_rounds(rounds, lambda r: ours(r)["median_us"])
            of_rounds = [ours(r)["median_us"] for r in rounds]
            row["spread"] = (max(of_rounds) - min(of_rounds)) / row["microseconds"]
            for unit in ("GBps", "TFLOPps"):
                if unit in first:
                    row["unit"] = unit
                    row["rate"] = median_over_rounds(rounds, lambda r: ours(r)[unit])
                    row["work"] = row["rate"] * row["microseconds"]  # what a peer's time is turned into a rate with
            row["share"] = median_over_rounds(rounds, lambda r: ours(r).get("share"))

            # The ratios are formed within a round, where both met the same machine, and then the median is taken.
            peers = dict.fromkeys(e["peer"] for r in rounds for e in r["peers"].get(rung, []) if e["problem"] == problem)
            row["peers"] = {}
            for peer in peers if "unfused" not in row["kernel"] else ():  # a foil is measured against its own rung
                ratio = median_over_rounds(
                    rounds, lambda r: theirs(r, peer) / ours(r)["median_us"] if theirs(r, peer) else None)
                if ratio is not None:
                    row["peers"][peer] = {
                        "ratio": ratio, "microseconds": median_over_rounds(rounds, lambda r: theirs(r, peer))}
            wanted = target(rung, row["kernel"], problem)
            if wanted and row["peers"]:
                share, least_ratio, counts = wanted
                ratios = [p["ratio"] for name_, p in row["peers"].items() if counts(name_)]
                row["met"] = (row["share"] or 0) >= share and bool(ratios) and min(ratios) >= least_ratio
                row["target"] = " and ".join(
                    ([f"{share:.2f} of the ceiling"] if share else []) + [f"{least_ratio:.2f} x the peers"])
    # The foil: the factor that the counted bytes predict.
    for row in table:
        if row["kernel"] == "softmax_unfused" and row.get("share") is not None:  # no target for the CPU device
            fused = find(table, kernel="softmax", problem=row["problem"])
            columns = int(row["problem"].split("=")[1])
            row["predicted_factor"] = (8 * columns + 4) / (2 * columns)
            if "microseconds" in fused:
                row["factor"] = row["microseconds"] / fused["microseconds"]
                row["met"] = abs(row["factor"] / row["predicted_factor"] - 1) <= 0.15
                row["target"] = f"{row['predicted_factor']:.2f} x the fused time, within 15%"
    return table


def text(result):
    """The short table that run.py prints."""
    lines = [f"{'rung':4} {'kernel':28} {'shape':44} {'us':>9} {'ours':>12} {'spread':>7} {'ceiling':>8}  "
             f"{'best peer':34} {'ratio':>6}  target"]
    for row in rows(result):
        head = f"{row['rung']:4} {row['kernel']:28} {row['problem'].partition(' ')[2]:44} "
        if "error" in row:
            lines.append(head + "ERROR: " + row["error"])
            continue
        if row["share"] is None:  # the CPU device: a rate would mean nothing
            lines.append(head + f"{row['microseconds']:9.1f}")
            continue
        unit = {"GBps": "GB/s", "TFLOPps": "TF/s"}[row["unit"]]
        digits = 0 if unit == "GB/s" else 2
        line = head + f"{row['microseconds']:9.1f} {row['rate']:7.{digits}f} {unit} {row['spread']:7.1%} "
        line += f"{row['share']:8.3f}  "
        if row["peers"]:
            name, peer = best_peer(row)
            line += f"{name + ' ' + format(row['work'] / peer['microseconds'], f'.{digits}f'):34} {peer['ratio']:6.3f}  "
        else:
            line += f"{'':34} {'':6}  "
        if "factor" in row:
            line += f"{row['factor']:.2f} x fused, "
        if "met" in row:
            line += ("met: " if row["met"] else "NOT MET: ") + row["target"]
        lines.append(line.rstrip())
    return "\n".join(lines)
