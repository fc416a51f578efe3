"""Connectors: live data from elsewhere into a view, and its results to where others read them.

A *source* brings the changes of a place, a table or a topic, as batches that have a name, so that
each happens once; a *sink* takes what every epoch changed to a place, and asks that place how far
it is. Both serve views of either engine, and each connector is a module of its own, which needs the
library of its extra:

    ebbflow.connectors.postgres   tables of PostgreSQL, in and out   the extra `postgres`
    ebbflow.connectors.kafka      topics of Kafka, in and out        the extra `kafka`
    ebbflow.connectors.delta      tables of Delta, in and out        the extra `delta`

Killed at any moment and started again, nothing is lost and nothing happens twice: a source keeps
its position in the same commit as the rows (`batch=`), a sink keeps the number of the epoch in the
same transaction as its rows.
"""
