"""The phrases that the text and the Markdown report share about the machine: a line for the host and for each GPU, and a few
below it, of which each is there only where there is something to say."""

from __future__ import annotations

from typing import Any

from tuimon.draw.format import count, duration, percent, size, three
from tuimon.draw.text import clean

Facts = dict[str, Any]
Told = tuple[str, list[str]]
"""(what comes first, the lines below it)"""

MOST = 4
"""So many threads, and kinds of processes, and GPU processes of others are named; the JSON form has them all."""
BUSY = 0.05
"""Cores that a thread takes, to be named."""
_HOW = {"only": "the only process there", "pool": "told by the size of its pool"}


def host(of: Facts) -> Told:
    """CPU and memory of the job, and what the machine and its control group allow it."""
    if of["rss"] is None and of["cpu"] is None:
        return "host: not read", []
    facts = []
    if of["cpu"] is not None:
        facts.append(f"CPU {three(of['cpu']['median'])}% of a core (median), {three(of['cpu']['max'])}% at most")
    if of["rss"] is not None:
        facts.append(f"resident memory {size(of['rss'])}")
    lines = [_cores(of), _waits(of), _group(of.get("cgroup")), _threads(of), _processes(of)]
    return f"host: {', '.join(facts)}", [line for line in lines if line]


def _cores(of: Facts) -> str:
    allowed, cores = of.get("cores_allowed"), of.get("cores")
    if cores is None:
        return ""
    if allowed is None or allowed >= cores:
        return f"{count(cores)} cores"
    return f"may use {allowed:g} of {count(cores)} cores"


def _waits(of: Facts) -> str:
    facts = []
    if of.get("run_queue_wait"):
        facts.append(f"waited {duration(of['run_queue_wait'])} for a core, all threads together")
    if of.get("page_faults"):
        facts.append(f"{count(of['page_faults'])} page faults from disk")
    if of.get("swap"):
        facts.append(f"{size(of['swap'])} swapped out")
    pressed = [f"{clean(what)} {three(share)}%" for what, share in (of.get("pressure") or {}).items() if share >= 1]
    if pressed:
        facts.append(f"pressure on the host: {', '.join(pressed)}")
    return "; ".join(facts)


def _group(group: Facts | None) -> str:
    if group is None:
        return ""
    facts = []
    if group["quota_cores"] is not None:
        held = f", held back for {duration(group['throttled_s'])}" if group["throttled_s"] else ""
        share = f" (in {percent(group['throttled_share'])} of its periods)" if held and group["throttled_share"] else ""
        facts.append(f"CPU quota {group['quota_cores']:g} cores{held}{share}")
    if group["memory_limit"] is not None:
        facts.append(f"memory {size(group['memory_used'])} of {size(group['memory_limit'])}")
    if group["oom_kills"]:
        facts.append(f"{count(group['oom_kills'])} killed for want of memory")
    return f"control group: {'; '.join(facts)}" if facts else ""


def _threads(of: Facts) -> str:
    busy = [one for one in of.get("threads_busy") or () if (one["cpu"] or 0.0) >= BUSY][:MOST]
    told = []
    for one in busy:
        waits = f" and waits {one['wait']:.2f}" if (one["wait"] or 0.0) >= BUSY else ""
        told.append(f"{clean(one['name'] or str(one['native']))} {one['cpu']:.2f}{waits}")
    return f"busiest threads, in cores: {', '.join(told)}" if told else ""


def _processes(of: Facts) -> str:
    kinds: dict[str, list[Facts]] = {}
    for row in of.get("tree") or ():
        if row["kind"] != "job":
            kinds.setdefault(row["kind"], []).append(row)
    told = []
    for kind, rows in list(kinds.items())[:MOST]:
        name = {"other": "other process"}.get(kind, kind)
        plural = f"{name}{'es' if name.endswith('s') else 's'}" if len(rows) > 1 else name
        used, held = ([row[key] for row in rows if row[key] is not None] for key in ("cpu", "rss"))
        takes = [*([f"{sum(used):.0f}% CPU"] if used else []), *([size(sum(held))] if held else [])]
        told.append(f"{count(len(rows))} {plural}" + (f" ({', '.join(takes)})" if takes else ""))
    return f"processes below the job: {', '.join(told)}" if told else ""


def gpu(of: Facts) -> Told:
    """One device: what it does, then what the job has there, its links, and what is wrong with it."""
    use, memory, power = of["utilization"], of["memory"], of["power"]
    number, name = f"GPU {of['index']}", clean(of["name"])
    facts = [number if name == number else f"{number} {name}"]
    facts.append(f"utilization {three(use['median'])}% (median)" if use else "utilization not readable")
    if of["lost"] is not None:
        facts.append(f"lost: {clean(of['lost'])}")
    if of.get("silent_s") is not None:
        facts.append(f"not answering for {of['silent_s']:.0f} s" + (", the rest is older" if use or memory else ""))
    for name, words in (("sm_activity", "SM"), ("tensor_activity", "tensor"), ("dram_activity", "memory")):
        if of[name]:
            facts.append(f"{words} activity {three(of[name]['median'])}%")
    if memory:
        facts.append(f"memory {size(memory['last'])} of {size(of['memory_total'])}")
    if power:
        limit = f" of {three(of['power_limit'])} W" if of["power_limit"] else " W"
        facts.append(f"{three(power['last'])}{limit}")
    lines = [_job(of), _body(of), _links(of), _others(of), _wrong(of), *(_part(part) for part in of["mig"] or ())]
    return ", ".join(facts), [line for line in lines if line]


def _job(of: Facts) -> str:
    """What the job has there; what is inferred has its sign and the reason."""
    facts = []
    memory, how, pool = of["process_memory"], of["process_memory_how"], of["pool"]
    if memory:
        sign, why = ("~", f" ({_HOW[how]})") if how in _HOW else ("", "")
        facts.append(f"the job: {sign}{size(memory['last'])}{why}")
    if pool is not None:
        split = "" if pool["fragmentation"] is None else f", {percent(pool['fragmentation'])} of it free in pieces"
        peak = f", {size(pool['peak'])} at most" if pool["peak"] is not None else ""
        facts.append(f"its pool: {size(pool['allocated'])} allocated{peak}, {size(pool['reserved'])} reserved{split}")
        if pool["outside"] is not None:
            facts.append(f"{size(pool['outside'])} beside the pool")
        if pool["retries"] or pool["ooms"]:
            retries, ooms = count(pool["retries"]), count(pool["ooms"])
            facts.append(f"gave its cache back {retries} times, found no memory {ooms} times since the job began")
    return "; ".join(facts)


def _body(of: Facts) -> str:
    facts = []
    clock = of["clocks"]["sm"]
    if clock:
        top = f" of {three(of['sm_clock_max'])}" if of["sm_clock_max"] else ""
        facts.append(f"SM clock {three(clock['median'])}{top} MHz (median)")
    if of["temperature"]:
        facts.append(f"{of['temperature']['last']:.0f} C, {of['temperature']['max']:.0f} C at most")
    if of["energy_j"]:
        facts.append(f"{three(of['energy_j'] / 1000)} kJ while watched")
    shares = of["throttle_share"] or {}
    lower = [f"{clean(why)} in {percent(share)}" for why, share in sorted(shares.items(), key=lambda one: -one[1]) if share]
    if lower:
        facts.append(f"clocks held by: {', '.join(lower)} of the readings")
    return "; ".join(facts)


def _links(of: Facts) -> str:
    facts = []
    for key, name in (("pcie", "PCIe"), ("nvlink", "NVLink")):
        ways = of[key] or {}
        told = [f"{size(ways[way]['median'])}/s {words}" for way, words in (("rx", "in"), ("tx", "out")) if ways.get(way)]
        if told:
            facts.append(f"{name} {', '.join(told)} (median)")
    return "; ".join(facts)


def _others(of: Facts) -> str:
    others = sorted((one for one in of["processes"] or () if not one["job"]), key=lambda one: -(one["memory"] or 0))
    if not others:
        return ""
    told = [f"{one['pid']} {size(one['memory'])}" for one in others[:MOST]]
    more = f" and {count(len(others) - MOST)} more" if len(others) > MOST else ""
    return f"other processes there: {', '.join(told)}{more}"


def _wrong(of: Facts) -> str:
    facts = []
    errors = (of["ecc"] or {}).get("uncorrected")
    if errors:
        facts.append(f"{count(errors)} memory errors that ECC could not correct, since the driver was loaded")
    seen = {one["xid"]: one["words"] for one in of["xids"]}
    facts += [f"XID {number} while watched: {words}" for number, words in list(seen.items())[:MOST]]
    return "; ".join(facts)


def _part(part: Facts) -> str:
    facts = [f"MIG {part['number']} {clean(part['profile'] or part['name'])}"]
    if part["memory"] is not None:
        facts.append(f"memory {size(part['memory'])} of {size(part['memory_total'])}")
    for name, words in (("sm_activity", "SM"), ("tensor_activity", "tensor")):
        if part[name] is not None:
            facts.append(f"{words} activity {three(part[name])}%")
    if part["process_memory"] is not None:
        facts.append(f"the job: {size(part['process_memory'])}")
    return ", ".join(facts)
