"""The demo: a shop that is kept up to date, beside computing everything again.

It checks the laws of a reducer, loads the shop, changes it epoch by epoch, and after each compares
every view, row by row, with what plain Spark SQL (or, in this process, plain Python) makes of all
rows. `ebbflow demo` runs it.

    shop      the program: rows, six views, a reducer and its broken twin
    data      the rows and what happens to them, from a seed
    again     the same views, computed again without ebbflow
    engines   what is different on Spark and in this process
    live      on Spark: a process that a stream feeds is killed, and goes on
    run       the demo itself
    show      how it is printed
"""
