"""From the members of a schedule to its series, one builder for each kind."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from betimes.domain.errors import BadSchedule
from betimes.schedule.bounded import Amended, Bounded
from betimes.schedule.bounds import DAY_SECONDS, SECOND
from betimes.schedule.budget import Budget
from betimes.schedule.cron import Cron, possible_clock, read_cron
from betimes.schedule.dst import COMPATIBLE, FIXED, WILD
from betimes.schedule.duration import Duration, read_period
from betimes.schedule.iso8601 import read_repeating
from betimes.schedule.members import Common, text_member
from betimes.schedule.moment import Moment, moment_text, read_moment
from betimes.schedule.period import Period, read_month_end
from betimes.schedule.placement import Placement
from betimes.schedule.rate import Rate
from betimes.schedule.rrule import RuleClock
from betimes.schedule.rrule_rate import UNITS, RuleRate
from betimes.schedule.rrule_syntax import Recurrence, Rule, read_recurrence, refusal
from betimes.schedule.series import Listed, Series
from betimes.schedule.zone import Zone, zone

LETTERS_PER_STEP = 4
"""What reading a recurrence text costs."""

MODES = ("fixed_rate", "fixed_delay")
CRON_GAP_MAX = DAY_SECONDS
"""A gap of a day or more is a date that does not exist: cron has no occurrence in it."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a builder works with; `budget` is what building may cost."""

    source: Mapping[str, object]
    common: Common
    seed: str
    budget: Budget


@dataclass(frozen=True, slots=True)
class Built:
    """A series and what its builder learned; `members` are those of the kind, as stored."""

    series: Series
    members: dict[str, object]
    canonical: str
    zone: Zone
    cron: Cron | None = None
    delay: Duration | None = None
    recurrence: Recurrence | None = None
    hashed: bool = False


def build_once(given: Given) -> Built:
    """One moment."""
    source, common = given.source, given.common
    at = read_moment(source.get("at"), "/at")
    instant = at.instant(common.zone, common.dst.over(COMPATIBLE))
    shown = moment_text(at)
    series = Listed(() if instant is None else (instant,))
    return Built(series, {"at": shown}, f"at {shown}", common.zone)


def build_cron(given: Given) -> Built:
    """A cron expression in its zone."""
    source, common, seed, budget = given.source, given.common, given.seed, given.budget
    wrap = source.get("wrap", False)
    if not isinstance(wrap, bool):
        raise BadSchedule("expected `wrap` as true or false", pointer="/wrap")
    day_match = source.get("day_match")
    cron = read_cron(
        text_member(source, "expr"),
        text_member(source, "dialect", "unix"),
        seed=seed,
        day_match=None if day_match is None else text_member(source, "day_match"),
        wrap=wrap,
    )
    clock = possible_clock(cron, budget)
    dst = common.dst.over(WILD if cron.wild else FIXED)
    series = Placement(
        clock,
        common.zone,
        dst,
        gap_max=CRON_GAP_MAX,
        records=not cron.wild or bool(common.dst.gap or common.dst.overlap),
    )
    members: dict[str, object] = {"expr": cron.expression, "dialect": cron.dialect}
    if day_match is not None:
        members["day_match"] = day_match
    if wrap:
        members["wrap"] = wrap
    dialect = "" if cron.dialect == "unix" else f"[{cron.dialect}]"
    canonical = f"cron{dialect}: {cron.expression}"
    return Built(series, members, canonical, common.zone, cron=cron, hashed=cron.hashed)


def build_interval(given: Given) -> Built:
    """A fixed rate, a calendar period, or a fixed delay after the end of a run."""
    source, common = given.source, given.common
    every = read_period(source.get("every"), "/every")
    anchor = read_moment(source.get("anchor"), "/anchor")
    mode = source.get("mode", MODES[0])
    if mode not in MODES:
        raise BadSchedule(
            f"expected mode out of {', '.join(MODES)}, got {str(mode)[:40]!r}", pointer="/mode"
        )
    month_end = read_month_end(source.get("month_end"))
    members: dict[str, object] = {"every": str(every), "anchor": moment_text(anchor)}
    canonical = f"every {every} from {moment_text(anchor)}"
    if month_end != "clamp":
        members["month_end"] = month_end
    if mode == "fixed_delay":
        members["mode"] = mode
        return _fixed_delay(every, anchor, common, members)
    series = _repeat(anchor, every, common, month_end=month_end)
    return Built(series, members, canonical, common.zone)


def _fixed_delay(
    every: Duration, anchor: Moment, common: Common, members: dict[str, object]
) -> Built:
    pause = every.elapsed("/every")
    Rate(0, pause)  # refuses what is too frequent
    begin = anchor.instant(common.zone, COMPATIBLE)
    series = Listed(() if begin is None else (begin + pause,))
    return Built(series, members, f"{every} after each end", common.zone, delay=every)


def _repeat(
    anchor: Moment,
    every: Duration,
    common: Common,
    *,
    count: int | None = None,
    month_end: str = "clamp",
) -> Series:
    dst = common.dst.over(COMPATIBLE)
    instant = anchor.instant(common.zone, COMPATIBLE)
    if instant is None:
        return Listed(())
    if every.is_elapsed:
        return Rate(instant, every.micros, count)
    local = anchor.local
    if anchor.offset is not None:
        local = instant + common.zone.offset(instant // SECOND) * SECOND
    return Period(local, every, common.zone, dst, count=count, month_end=month_end)


def build_iso8601(given: Given) -> Built:
    """A repeating interval."""
    source, common = given.source, given.common
    expression = text_member(source, "expr")
    repeating = read_repeating(expression)
    month_end = read_month_end(source.get("month_end"))
    series = _repeat(
        repeating.start,
        repeating.duration,
        common,
        count=repeating.count,
        month_end=month_end,
    )
    if repeating.end is not None:
        end = repeating.end.instant(common.zone, COMPATIBLE)
        series = Bounded(series, last=end or 0)
    members: dict[str, object] = {"expr": expression.strip()}
    if month_end != "clamp":
        members["month_end"] = month_end
    return Built(series, members, expression.strip(), common.zone)


def build_rrule(given: Given) -> Built:
    """A recurrence rule; a TZID or UTC in its DTSTART decides the zone it is read in."""
    source, common, budget = given.source, given.common, given.budget
    text = text_member(source, "expr").strip(" \t\r\n")
    budget.spend(len(text) // LETTERS_PER_STEP)
    recurrence = read_recurrence(text)
    rule_zone = _rule_zone(recurrence, common)
    begins = recurrence.start
    start = begins or read_moment(source.get("anchor"), "/anchor")
    begin = start.instant(rule_zone, COMPATIBLE)
    if begin is None or start.local % SECOND:
        start = Moment(start.local // SECOND * SECOND, start.offset)
        begin = start.instant(rule_zone, COMPATIBLE) or 0
    series = _rule_series(recurrence.rule, begin // SECOND, start, rule_zone, common, budget)
    if begins is not None and series.next(begin - 1, budget) != begin:
        _refuse_start(recurrence, begins, begin, rule_zone)
    if recurrence.rule.until is not None:
        until = recurrence.rule.until.instant(rule_zone, COMPATIBLE)
        series = Bounded(series, last=until or 0)
    members: dict[str, object] = {"expr": text}
    if begins is None:
        members["anchor"] = moment_text(start)
    amended = _amended(series, recurrence, rule_zone)
    return Built(amended, members, text, rule_zone, recurrence=recurrence)


def _refuse_start(recurrence: Recurrence, start: Moment, begin: int, rule_zone: Zone) -> None:
    """A start beside its rule is two sets to two readers, unless EXDATE takes it away again."""
    if recurrence.rule.count is None and begin in _instants(recurrence.removed, rule_zone):
        return
    raise refusal("DTSTART to be an occurrence of its rule", moment_text(start))


def _rule_zone(recurrence: Recurrence, common: Common) -> Zone:
    if recurrence.zone_name is not None:
        return zone(recurrence.zone_name)
    if recurrence.start is not None and recurrence.start.offset == 0:
        return zone("UTC")
    return common.zone


def _rule_series(
    rule: Rule, begin: int, start: Moment, rule_zone: Zone, common: Common, budget: Budget
) -> Series:
    if rule == Rule(rule.frequency, rule.interval, rule.count, rule.until) and rule.is_sub_daily:
        return Rate(begin * SECOND, UNITS[rule.frequency] * rule.interval * SECOND, rule.count)
    if rule.is_sub_daily:
        return RuleRate(rule, begin, rule_zone, budget)
    local = start.local // SECOND if start.offset is None else rule_zone.local(begin)
    return Placement(RuleClock(rule, local, budget), rule_zone, common.dst.over(COMPATIBLE))


def _amended(series: Series, recurrence: Recurrence, rule_zone: Zone) -> Series:
    if not (recurrence.added or recurrence.removed or recurrence.removed_dates):
        return series
    dates = [moment.local // SECOND // DAY_SECONDS for moment in recurrence.removed_dates]
    return Amended(
        series,
        rule_zone,
        added=_instants(recurrence.added, rule_zone),
        removed=_instants(recurrence.removed, rule_zone),
        dates=dates,
    )


def _instants(entries: tuple[tuple[Moment, str | None], ...], rule_zone: Zone) -> list[int]:
    found = [m.instant(zone(name) if name else rule_zone, COMPATIBLE) for m, name in entries]
    return [instant for instant in found if instant is not None]


def build_manual(given: Given) -> Built:
    """Nothing fires by itself."""
    common = given.common
    return Built(Listed(()), {}, "manual", common.zone)


Builder = Callable[[Given], Built]
BUILDERS: Mapping[str, Builder] = MappingProxyType(
    {
        "once": build_once,
        "cron": build_cron,
        "interval": build_interval,
        "iso8601": build_iso8601,
        "rrule": build_rrule,
        "manual": build_manual,
    }
)
