"""The queries of Nexmark as programs: what is known of auctions while people bid.

They are those of the public benchmark. Where it follows a stream that only grows, these also follow
bids that are cancelled, auctions that are corrected and people who leave, and no result waits for a
watermark: a window is right at any time, and is revised.
"""

from __future__ import annotations

from typing import Any

import ebbflow as ef
from examples.nexmark.tables import SIDE, auction, bid, now, person, side

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
SPAN = 10 * SECOND
"""How long windows are."""


def day(row: Any) -> Any:
    """The day of a row, from 0."""
    return row.date_time // DAY


def q0() -> Any:
    """Every bid, as it is."""
    return bid


def q1() -> Any:
    """Prices in another currency, in thousandths of a cent."""
    return bid.select(
        "auction", "bidder", "date_time", "extra", price=lambda row: row.price * 908
    )  # fmt: skip


def q2() -> Any:
    """Bids for some of the auctions."""
    return bid.filter(lambda row: row.auction % 123 == 0).select("auction", "price")


def q3() -> Any:
    """Who sells things of a category in three states."""
    near = person.filter(
        lambda row: (row.state == "or") | (row.state == "id") | (row.state == "ca")
    )
    return (
        auction.filter(lambda row: row.category == 10)
        .select("seller", auction="id")
        .join(near, left_on="seller", right_on="id")
        .select("name", "city", "state", "auction")
    )


def _in_time() -> Any:
    """Bids with their auctions, while these were open."""
    return bid.join(
        auction, left_on="auction", right_on="id", suffixes=("", "_auction")
    ).filter(
        lambda row: (row.date_time >= row.date_time_auction) & (row.date_time <= row.expires)
    )  # fmt: skip


def q4() -> Any:
    """The average of the winning prices of each category."""
    final = _in_time().group_by("auction", "category").agg(final=ef.max("price"))
    return final.group_by("category").agg(average=ef.mean("final"))


def q5() -> Any:
    """The auctions with most bids of the last ten seconds, every two seconds."""
    counts = (
        bid.sliding("date_time", SPAN, 2 * SECOND)
        .group_by("auction", "window_start", "window_end")
        .agg(bids=ef.count())
    )
    return counts.top_k(1, order="bids", per=("window_start", "window_end"), ties=True)


def q6() -> Any:
    """The average price of the last ten auctions of each seller."""
    sold = _in_time().group_by("seller", "auction", "expires").agg(final=ef.max("price"))
    last = sold.last(10, order=("expires", "auction"), per="seller")
    return last.group_by("seller").agg(average=ef.mean("final"))


def q7() -> Any:
    """The highest bids of every ten seconds."""
    return (
        bid.select("auction", "bidder", "price", "date_time")
        .tumbling("date_time", SPAN)
        .top_k(1, order="price", per="window_start", ties=True)
        .select("auction", "bidder", "price", "date_time")
    )


def q8() -> Any:
    """Who came and sold something in the same ten seconds."""
    came = person.select("id", "name", "date_time").tumbling("date_time", SPAN)
    sold = auction.select("seller", "date_time").tumbling("date_time", SPAN)
    return came.join(
        sold, left_on=("id", "window_start"), right_on=("seller", "window_start"), how="semi"
    ).select("id", "name", "window_start")


def q9() -> Any:
    """The winning bid of each auction: the highest while it was open, and of those the first."""
    return (
        _in_time()
        .top_k(1, order=("price", lambda row: -row.date_time), per="auction")
        .select("auction", "item_name", "seller", "category", "bidder", "price", "date_time")
    )


def q10() -> Any:
    """Bids with the partition of a log that they are written to."""
    return bid.select(
        "auction", "bidder", "price", "date_time", "extra", day=day,
        minute=lambda row: row.date_time % DAY // MINUTE,
    )  # fmt: skip


def q11() -> Any:
    """How often each bidder has bid in each session."""
    return (
        bid.session("date_time", SPAN, per="bidder")
        .group_by("bidder", "window_start", "window_end")
        .agg(bids=ef.count())
    )


def q12() -> Any:
    """How often each bidder has bid in the last ten seconds, by the clock."""
    return bid.within("date_time", now, SPAN).group_by("bidder").agg(bids=ef.count())


def q13() -> Any:
    """Bids with what is looked up for them in a table."""
    return (
        bid.select("auction", "bidder", "price", "date_time", key=lambda row: row.auction % SIDE)
        .join(side, on="key")
        .select("auction", "bidder", "price", "date_time", "value")
    )


def _part_of_day(row: Any) -> str:
    hour = row.date_time % DAY // HOUR
    if (hour >= 8) & (hour <= 18):
        return "day"
    return "night" if (hour <= 6) | (hour >= 20) else "other"


def q14() -> Any:
    """Bids of some prices, with the part of the day, and how many c there are in a text."""
    return bid.filter(
        lambda row: (row.price * 908 > 1_000_000_000) & (row.price * 908 < 50_000_000_000)
    ).select(
        "auction", "bidder", "date_time", price=lambda row: row.price * 908, part=_part_of_day,
        c_counts=lambda row: row.extra.count("c"),
    )  # fmt: skip


def _low(row: Any) -> Any:
    return row.price < 10_000


def _middle(row: Any) -> Any:
    return (row.price >= 10_000) & (row.price < 1_000_000)


def _high(row: Any) -> Any:
    return row.price >= 1_000_000


def _ranks(name: str, reducer: Any) -> dict[str, Any]:
    """A reducer of all rows, and of those of each range of prices."""
    ranges = (_low, _middle, _high)
    return {f"total_{name}": reducer} | {
        f"rank{i}_{name}": reducer.where(wanted) for i, wanted in enumerate(ranges, start=1)
    }


def _statistics() -> dict[str, Any]:
    return {
        **_ranks("bids", ef.count()),
        **_ranks("bidders", ef.count_distinct("bidder")),
        **_ranks("auctions", ef.count_distinct("auction")),
    }


def q15() -> Any:
    """How many bids, bidders and auctions there were each day, by ranges of prices."""
    return bid.group_by(day=day).agg(**_statistics())


def q16() -> Any:
    """The same for each channel, with the last minute in which something happened."""
    last = ef.max(lambda row: row.date_time % DAY // MINUTE)
    return bid.group_by("channel", day=day).agg(minute=last, **_statistics())


def q17() -> Any:
    """Bids and prices of each auction and day."""
    return bid.group_by("auction", day=day).agg(
        **_ranks("bids", ef.count()), min_price=ef.min("price"), max_price=ef.max("price"),
        avg_price=ef.mean("price"), sum_price=ef.sum("price"),
    )  # fmt: skip


def q18() -> Any:
    """The last bid of each bidder for each auction."""
    return bid.last(order="date_time", per=("bidder", "auction"))


def q19() -> Any:
    """The ten highest bids for each auction; of equal ones, the last."""
    return bid.top_k(10, order=("price", "date_time"), per="auction")


def q20() -> Any:
    """Bids with their auctions, of one category."""
    return bid.join(
        auction.filter(lambda row: row.category == 10), left_on="auction", right_on="id",
        suffixes=("", "_auction"),
    )  # fmt: skip


def _channel(row: Any) -> str | None:
    """The number of a channel, or what stands for it in an address."""
    known = {"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}.get(row.channel.lower())
    if known is not None:
        return known
    _, found, rest = row.url.partition("&channel_id=")
    return rest.partition("&")[0] if found else None


def q21() -> Any:
    """Bids with the numbers of their channels."""
    return bid.select(
        "auction", "bidder", "price", "channel", channel_id=_channel
    ).filter(lambda row: row.channel_id is not None)  # fmt: skip


def q22() -> Any:
    """Bids with the parts of their addresses."""
    return bid.select(
        "auction", "bidder", "price", "channel", dir1=lambda row: row.url.split("/")[3],
        dir2=lambda row: row.url.split("/")[4], dir3=lambda row: row.url.split("/")[5],
    )  # fmt: skip


QUERIES = {name: made for name, made in globals().items() if name[0] == "q" and name[1:].isdigit()}
