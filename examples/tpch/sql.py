"""The 22 queries of TPC-H in SQL, over the same tables: what the programs are compared with.

Each query gives the columns of the rows of its program, in that order.
"""

from __future__ import annotations

REVENUE = "l_extendedprice * (1 - l_discount)"

SQL = {
    "q1": f"""
        SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), sum({REVENUE}),
               sum({REVENUE} * (1 + l_tax)), avg(l_quantity), avg(l_extendedprice),
               avg(l_discount), count(*)
        FROM lineitem WHERE l_shipdate <= DATE '1998-09-02'
        GROUP BY l_returnflag, l_linestatus""",
    "q2": """
        WITH offers AS (
            SELECT * FROM part, supplier, partsupp, nation, region
            WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND p_size = 15
              AND p_type LIKE '%BRASS' AND s_nationkey = n_nationkey
              AND n_regionkey = r_regionkey AND r_name = 'EUROPE')
        SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
        FROM offers AS o
        WHERE ps_supplycost = (SELECT min(i.ps_supplycost) FROM offers AS i
                               WHERE i.p_partkey = o.p_partkey)
        ORDER BY s_acctbal DESC, n_name, s_name, p_partkey LIMIT 100""",
    "q3": f"""
        SELECT l_orderkey, o_orderdate, o_shippriority, sum({REVENUE}) AS revenue
        FROM customer, orders, lineitem
        WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
          AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
        GROUP BY l_orderkey, o_orderdate, o_shippriority
        ORDER BY revenue DESC, o_orderdate, l_orderkey LIMIT 10""",
    "q4": """
        SELECT o_orderpriority, count(*) FROM orders
        WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-10-01'
          AND EXISTS (SELECT 1 FROM lineitem
                      WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
        GROUP BY o_orderpriority""",
    "q5": f"""
        SELECT n_name, sum({REVENUE}) FROM customer, orders, lineitem, supplier, nation, region
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey
          AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey
          AND n_regionkey = r_regionkey AND r_name = 'ASIA'
          AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'
        GROUP BY n_name""",
    "q6": """
        SELECT sum(l_extendedprice * l_discount) FROM lineitem
        WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
          AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24 HAVING count(*) > 0""",
    "q7": f"""
        SELECT s.n_name, c.n_name, year(l_shipdate) AS l_year, sum({REVENUE})
        FROM supplier, lineitem, orders, customer, nation AS s, nation AS c
        WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey
          AND s_nationkey = s.n_nationkey AND c_nationkey = c.n_nationkey
          AND ((s.n_name = 'FRANCE' AND c.n_name = 'GERMANY')
               OR (s.n_name = 'GERMANY' AND c.n_name = 'FRANCE'))
          AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
        GROUP BY s.n_name, c.n_name, l_year""",
    "q8": f"""
        SELECT year(o_orderdate) AS o_year,
               sum(CASE WHEN s.n_name = 'BRAZIL' THEN {REVENUE} ELSE 0 END) / sum({REVENUE})
        FROM part, supplier, lineitem, orders, customer, nation AS c, nation AS s, region
        WHERE p_partkey = l_partkey AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey
          AND o_custkey = c_custkey AND c_nationkey = c.n_nationkey
          AND c.n_regionkey = r_regionkey AND r_name = 'AMERICA' AND s_nationkey = s.n_nationkey
          AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
          AND p_type = 'ECONOMY ANODIZED STEEL'
        GROUP BY o_year""",
    "q9": f"""
        SELECT n_name, year(o_orderdate) AS o_year,
               sum({REVENUE} - ps_supplycost * l_quantity)
        FROM part, supplier, lineitem, partsupp, orders, nation
        WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey
          AND p_partkey = l_partkey AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey
          AND p_name LIKE '%green%'
        GROUP BY n_name, o_year""",
    "q10": f"""
        SELECT c_custkey, c_name, sum({REVENUE}) AS revenue, c_acctbal, n_name, c_address,
               c_phone, c_comment
        FROM customer, orders, lineitem, nation
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_returnflag = 'R'
          AND o_orderdate >= DATE '1993-10-01' AND o_orderdate < DATE '1994-01-01'
          AND c_nationkey = n_nationkey
        GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment
        ORDER BY revenue DESC, c_custkey LIMIT 20""",
    "q11": """
        WITH stock AS (
            SELECT ps_partkey, ps_supplycost * ps_availqty AS worth
            FROM partsupp, supplier, nation
            WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY')
        SELECT ps_partkey, sum(worth) FROM stock GROUP BY ps_partkey
        HAVING sum(worth) * 10000 > (SELECT sum(worth) FROM stock)""",
    "q12": """
        SELECT l_shipmode, count(*) FILTER (o_orderpriority IN ('1-URGENT', '2-HIGH')),
               count(*) FILTER (o_orderpriority NOT IN ('1-URGENT', '2-HIGH'))
        FROM orders, lineitem
        WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP')
          AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate
          AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1995-01-01'
        GROUP BY l_shipmode""",
    "q13": """
        WITH bought AS (
            SELECT c_custkey, count(o_orderkey) AS c_count
            FROM customer LEFT JOIN orders
              ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%'
            GROUP BY c_custkey)
        SELECT c_count, count(*) FROM bought GROUP BY c_count""",
    "q14": f"""
        SELECT 100.00 * sum(CASE WHEN p_type LIKE 'PROMO%' THEN {REVENUE} ELSE 0 END)
                 / sum({REVENUE})
        FROM lineitem, part
        WHERE l_partkey = p_partkey AND l_shipdate >= DATE '1995-09-01'
          AND l_shipdate < DATE '1995-10-01' HAVING count(*) > 0""",
    "q15": f"""
        WITH earned AS (
            SELECT l_suppkey, sum({REVENUE}) AS total FROM lineitem
            WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE '1996-04-01'
            GROUP BY l_suppkey)
        SELECT s_suppkey, s_name, s_address, s_phone, total FROM supplier, earned
        WHERE s_suppkey = l_suppkey AND total = (SELECT max(total) FROM earned)""",
    "q16": """
        SELECT p_brand, p_type, p_size, count(DISTINCT ps_suppkey) FROM partsupp, part
        WHERE p_partkey = ps_partkey AND p_brand <> 'Brand#45'
          AND p_type NOT LIKE 'MEDIUM POLISHED%' AND p_size IN (49, 14, 23, 45, 19, 3, 36, 9)
          AND ps_suppkey NOT IN (SELECT s_suppkey FROM supplier
                                 WHERE s_comment LIKE '%Customer%Complaints%')
        GROUP BY p_brand, p_type, p_size""",
    "q17": """
        SELECT sum(l_extendedprice) / 7.0 FROM lineitem AS l, part
        WHERE p_partkey = l_partkey AND p_brand = 'Brand#23' AND p_container = 'MED BOX'
          AND l_quantity < (SELECT 0.2 * avg(l_quantity) FROM lineitem AS i
                            WHERE i.l_partkey = l.l_partkey)
        HAVING count(*) > 0""",
    "q18": """
        SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity)
        FROM customer, orders, lineitem
        WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey
                             HAVING sum(l_quantity) > 300)
          AND c_custkey = o_custkey AND o_orderkey = l_orderkey
        GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
        ORDER BY o_totalprice DESC, o_orderdate, o_orderkey LIMIT 100""",
    "q19": f"""
        SELECT sum({REVENUE}) FROM lineitem, part
        WHERE p_partkey = l_partkey AND l_shipmode IN ('AIR', 'AIR REG')
          AND l_shipinstruct = 'DELIVER IN PERSON'
          AND ((p_brand = 'Brand#12' AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
                AND l_quantity BETWEEN 1 AND 11 AND p_size BETWEEN 1 AND 5)
               OR (p_brand = 'Brand#23'
                   AND p_container IN ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
                   AND l_quantity BETWEEN 10 AND 20 AND p_size BETWEEN 1 AND 10)
               OR (p_brand = 'Brand#34'
                   AND p_container IN ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
                   AND l_quantity BETWEEN 20 AND 30 AND p_size BETWEEN 1 AND 15))
        HAVING count(*) > 0""",
    "q20": """
        SELECT s_name, s_address FROM supplier, nation
        WHERE s_nationkey = n_nationkey AND n_name = 'CANADA'
          AND s_suppkey IN (
            SELECT ps_suppkey FROM partsupp
            WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'forest%')
              AND ps_availqty > (SELECT 0.5 * sum(l_quantity) FROM lineitem
                                 WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey
                                   AND l_shipdate >= DATE '1994-01-01'
                                   AND l_shipdate < DATE '1995-01-01'))""",
    "q21": """
        SELECT s_name, count(*) AS numwait FROM supplier, lineitem AS l, orders, nation
        WHERE s_suppkey = l.l_suppkey AND o_orderkey = l.l_orderkey AND o_orderstatus = 'F'
          AND l.l_receiptdate > l.l_commitdate AND s_nationkey = n_nationkey
          AND n_name = 'SAUDI ARABIA'
          AND EXISTS (SELECT 1 FROM lineitem AS i
                      WHERE i.l_orderkey = l.l_orderkey AND i.l_suppkey <> l.l_suppkey)
          AND NOT EXISTS (SELECT 1 FROM lineitem AS i
                          WHERE i.l_orderkey = l.l_orderkey AND i.l_suppkey <> l.l_suppkey
                            AND i.l_receiptdate > i.l_commitdate)
        GROUP BY s_name ORDER BY numwait DESC, s_name LIMIT 100""",
    "q22": """
        WITH listed AS (
            SELECT c_custkey, c_acctbal, substr(c_phone, 1, 2) AS code FROM customer
            WHERE code IN ('13', '31', '23', '29', '30', '18', '17'))
        SELECT code, count(*), sum(c_acctbal) FROM listed
        WHERE c_acctbal > (SELECT avg(c_acctbal) FROM listed WHERE c_acctbal > 0)
          AND NOT EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey)
        GROUP BY code""",
}
