"""Members of an ensemble by time stepping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dalembert.compiler import Program
from dalembert.engine._member import MemberRun
from dalembert.engine._members_apart import EnsembleApart
from dalembert.symbolic._lock import symbolic
from dalembert.systems import Spheres
from dalembert.time_stepping._sphere_run import SphereRun
from dalembert.time_stepping._stepping_run import SteppingRun
from dalembert.time_stepping.stepping_methods import counted_of


@dataclass
class SteppingMember(MemberRun, SteppingRun):
    """One member."""


@dataclass
class SphereMember(SteppingMember, SphereRun):
    """One member, of spheres."""


@dataclass(eq=False)
class SteppingEnsembleRun(EnsembleApart):
    """Many runs by time stepping. Contacts close in different steps of different members: each is run on its own."""

    apart: ClassVar[str] = "contacts close in different steps of different members"

    @property
    def counted(self) -> tuple[str, ...]:
        """What each run counts beside Newton iterations."""
        return counted_of(self.system)

    def _programs(self) -> list[list[Program]]:
        """Members make them, which are shared by equal models."""
        return []

    def begun(self, member: int) -> MemberRun:
        """The run of one member."""
        kind = SphereMember if isinstance(self.system, Spheres) else SteppingMember
        with symbolic():
            return kind(self.of_member(member), watch=self.watch)
