"""The queries of Nexmark in SQL, over the same tables: what the programs are compared with.

Each gives the columns of the rows of its program, in that order. `$now` is the time.
"""

from __future__ import annotations

DAY, HOUR, MINUTE, SPAN = 86_400_000, 3_600_000, 60_000, 10_000
IN_TIME = """FROM bid AS b JOIN auction AS a ON b.auction = a.id
             WHERE b.date_time BETWEEN a.date_time AND a.expires"""
RANKS = ("true", "price < 10000", "price >= 10000 AND price < 1000000", "price >= 1000000")
STATISTICS = ", ".join(
    f"count({of}) FILTER ({rank})"
    for of in ("*", "DISTINCT bidder", "DISTINCT auction")
    for rank in RANKS
)

SQL = {
    "q0": "SELECT * FROM bid",
    "q1": "SELECT auction, bidder, date_time, extra, price * 908 FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    "q3": """
        SELECT name, city, state, a.id FROM auction AS a JOIN person AS p ON a.seller = p.id
        WHERE category = 10 AND state IN ('or', 'id', 'ca')""",
    "q4": f"""
        SELECT category, avg(final)
        FROM (SELECT a.id, category, max(price) AS final {IN_TIME} GROUP BY a.id, category)
        GROUP BY category""",
    "q5": f"""
        WITH counts AS (
            SELECT auction, begin, count(*) AS bids
            FROM (SELECT auction, unnest([date_time // 2000 * 2000 - 2000 * i
                                          FOR i IN range({SPAN // 2000})]) AS begin FROM bid)
            GROUP BY auction, begin)
        SELECT auction, begin, begin + {SPAN}, bids FROM counts
        QUALIFY bids = max(bids) OVER (PARTITION BY begin)""",
    "q6": f"""
        WITH sold AS (SELECT seller, a.id, expires, max(price) AS final {IN_TIME}
                      GROUP BY seller, a.id, expires)
        SELECT seller, avg(final)
        FROM (SELECT *, row_number() OVER (PARTITION BY seller ORDER BY expires DESC, id DESC) AS n
              FROM sold)
        WHERE n <= 10 GROUP BY seller""",
    "q7": f"""
        SELECT auction, bidder, price, date_time FROM bid
        QUALIFY price = max(price) OVER (PARTITION BY date_time // {SPAN})""",
    "q8": f"""
        SELECT id, name, date_time // {SPAN} * {SPAN} FROM person AS p
        WHERE EXISTS (SELECT 1 FROM auction AS a
                      WHERE a.seller = p.id AND a.date_time // {SPAN} = p.date_time // {SPAN})""",
    "q9": f"""
        SELECT auction, item_name, seller, category, bidder, price, "at"
        FROM (SELECT *, b.date_time AS "at", row_number() OVER
                     (PARTITION BY a.id ORDER BY price DESC, b.date_time) AS n {IN_TIME})
        WHERE n = 1""",
    "q10": f"""
        SELECT auction, bidder, price, date_time, extra, date_time // {DAY},
               date_time % {DAY} // {MINUTE} FROM bid""",
    "q11": f"""
        WITH begun AS (
            SELECT *, date_time - lag(date_time) OVER w <= {SPAN} AS follows
            FROM bid WINDOW w AS (PARTITION BY bidder ORDER BY date_time)),
        numbered AS (
            SELECT *, count(*) FILTER (follows IS NOT TRUE) OVER
                      (PARTITION BY bidder ORDER BY date_time) AS number
            FROM begun)
        SELECT bidder, min(date_time), max(date_time) + {SPAN}, count(*)
        FROM numbered GROUP BY bidder, number""",
    "q12": f"""
        SELECT bidder, count(*) FROM bid
        WHERE date_time > $now - {SPAN} AND date_time <= $now GROUP BY bidder""",
    "q13": """
        SELECT auction, bidder, price, date_time, value
        FROM bid JOIN side ON auction % 1000 = key""",
    "q14": f"""
        SELECT auction, bidder, date_time, price * 908,
               CASE WHEN date_time % {DAY} // {HOUR} BETWEEN 8 AND 18 THEN 'day'
                    WHEN date_time % {DAY} // {HOUR} <= 6 OR date_time % {DAY} // {HOUR} >= 20
                    THEN 'night' ELSE 'other' END,
               len(extra) - len(replace(extra, 'c', ''))
        FROM bid WHERE price * 908 > 1000000000 AND price * 908 < 50000000000""",
    "q15": f"SELECT date_time // {DAY} AS day, {STATISTICS} FROM bid GROUP BY day",
    "q16": f"""
        SELECT channel, date_time // {DAY} AS day, max(date_time % {DAY} // {MINUTE}), {STATISTICS}
        FROM bid GROUP BY channel, day""",
    "q17": f"""
        SELECT auction, date_time // {DAY} AS day,
               {", ".join(f"count(*) FILTER ({rank})" for rank in RANKS)},
               min(price), max(price), avg(price), sum(price)
        FROM bid GROUP BY auction, day""",
    "q18": """
        SELECT * FROM bid
        QUALIFY row_number() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC) = 1""",
    "q19": """
        SELECT * FROM bid
        QUALIFY 10 >= row_number() OVER
            (PARTITION BY auction ORDER BY price DESC, date_time DESC)""",
    "q20": """
        SELECT b.*, a.* FROM bid AS b JOIN auction AS a ON b.auction = a.id WHERE category = 10""",
    "q21": """
        SELECT auction, bidder, price, channel, id FROM (
            SELECT *, CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1'
                           WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
                           ELSE regexp_extract(url, '&channel_id=([^&]*)', 1) END AS id
            FROM bid)
        WHERE id <> ''""",
    "q22": """
        SELECT auction, bidder, price, channel, split_part(url, '/', 4), split_part(url, '/', 5),
               split_part(url, '/', 6) FROM bid""",
}
