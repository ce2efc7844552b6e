"""Random cron expressions, zones and moments near the changes of their clocks."""

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from betimes.schedule import zone

DST_ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "America/St_Johns",
    "Australia/Lord_Howe",
    "Australia/Adelaide",
    "Pacific/Auckland",
    "Pacific/Chatham",
    "America/Santiago",
    "America/Asuncion",
    "Africa/Cairo",
    "Asia/Beirut",
    "America/Havana",
    "Atlantic/Azores",
    "Antarctica/Casey",
    "Antarctica/Troll",
    "Africa/Casablanca",
    "Europe/Dublin",
    "Asia/Tehran",
    "America/Caracas",
    "Asia/Pyongyang",
    "Asia/Kathmandu",
    "Pacific/Apia",
    "Pacific/Kiritimati",
    "Pacific/Kwajalein",
    "America/Scoresbysund",
    "Africa/Juba",
    "Europe/Moscow",
    "America/Sao_Paulo",
    "Asia/Kolkata",
    "UTC",
)
START = int(datetime(1973, 1, 1, tzinfo=UTC).timestamp())
END = int(datetime(2040, 1, 1, tzinfo=UTC).timestamp())


@st.composite
def terms(draw: st.DrawFn, low: int, high: int) -> str:
    first = draw(st.integers(low, high))
    last = draw(st.integers(first, high))
    step = draw(st.integers(1, min(high - low + 1, 30)))
    return draw(
        st.sampled_from(
            [
                str(first),
                str(first),
                f"{first}-{last}",
                f"{first}-{last}/{step}",
                f"{first}/{step}",
                f"*/{step}",
            ]
        )
    )


def fields(low: int, high: int, star: int = 1) -> st.SearchStrategy[str]:
    lists = st.lists(terms(low, high), min_size=1, max_size=3).map(",".join)
    return st.one_of(*[st.just("*")] * star, lists)


DAYS = st.one_of(
    st.just("*"),
    st.just("*"),
    fields(1, 31),
    st.sampled_from(["L", "LW", "1W", "15W", "31W", "1,L", "?", "30W,5", "28-31"]),
)
WEEKDAYS = st.one_of(
    st.just("*"),
    st.just("*"),
    fields(0, 6),
    st.sampled_from(
        ["MON-FRI", "SAT-SUN", "7", "5-7", "MON#1", "FRI#5", "0L", "SUN#L", "FRIL", "2#2,4", "?"]
    ),
)
MONTHS = st.one_of(*[st.just("*")] * 4, fields(1, 12), st.sampled_from(["JAN-MAR", "MAR,OCT,NOV"]))


@st.composite
def five_fields(draw: st.DrawFn) -> str:
    minute = draw(st.one_of(fields(0, 59), st.sampled_from(["0", "30", "0,30", "*/15", "59"])))
    hour = draw(st.one_of(fields(0, 23), st.sampled_from(["2", "0", "1-3", "*/2", "23", "*"])))
    return " ".join([minute, hour, draw(DAYS), draw(MONTHS), draw(WEEKDAYS)])


@st.composite
def six_fields(draw: st.DrawFn) -> str:
    second = draw(st.one_of(fields(0, 59), st.sampled_from(["0", "30", "*/20", "*"])))
    return f"{second} {draw(five_fields())}"


@st.composite
def near_changes(draw: st.DrawFn, hours: int = 30) -> tuple[str, datetime]:
    """A zone, and a moment shortly before or after one of its changes (or anywhere)."""
    name = draw(st.sampled_from(DST_ZONES))
    changes = [start for start in zone(name).starts if START < start < END] or [START]
    change = draw(st.sampled_from(changes))
    shift = draw(st.integers(-hours * 3600, hours * 3600))
    return name, datetime.fromtimestamp(change, UTC) + timedelta(seconds=shift)


POLICIES = st.one_of(
    st.none(),
    st.none(),
    st.fixed_dictionaries(
        {},
        optional={
            "gap": st.sampled_from(["next", "skip", "shift"]),
            "overlap": st.sampled_from(["first", "second", "both"]),
        },
    ),
)
