"""What every incremental engine owns: a compiled program, its inputs and outputs, and its state.

compile, stage, machine     from a plan to stages, what a stage runs, and the order they run in
inputs, rows, outputs       changes read and checked; the rows of inputs and of outputs
held, identity, durable     the containers of a program, their names on disk, and the disk
failure, report             errors in the user's terms; `verify` and `stats`
subscribe                   callbacks and streams that hear of changes
"""
