"""Random programs and random changes, and an engine beside batch.

Whatever runs plans is tested the same way: programs and changes that nobody thought of, and after
every change the same answer as from scratch.

    from hypothesis import given, strategies as st
    from ebbflow.testing import changes, follow, plans

    @given(st.data())
    def test_my_engine(data):
        program = data.draw(plans())
        follow(my_engine.run, program, data.draw(changes(program)))

Your own program is tested in the same way, by `changes(program)` and `follow`. `random_program` and
`random_epochs` give the same from a seed, without Hypothesis. Needs Hypothesis to be installed.
"""

from ebbflow.testing.epochs import Epoch, changes, random_epochs
from ebbflow.testing.follow import follow
from ebbflow.testing.programs import ALL_NAMES, VERB_NAMES, plans, random_program

__all__ = [
    "ALL_NAMES", "VERB_NAMES", "Epoch", "changes", "follow", "plans", "random_epochs",
    "random_program",
]  # fmt: skip


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
