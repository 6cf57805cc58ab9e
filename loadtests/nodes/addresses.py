"""Who has which address. Every lab has a /16 of its own that exists on this machine only."""

from __future__ import annotations

import re
from dataclasses import dataclass

SLOTS = 16
_FIRST_NETWORK = 200


@dataclass(frozen=True, slots=True)
class Addresses:
    """`slot` is the number of this lab on this machine, from 0."""

    slot: int

    @property
    def bridge(self) -> str:
        return f"rematch{self.slot}"

    @property
    def host(self) -> str:
        """The machine itself, as the nodes see it: control plane, Prometheus and metrics server listen here."""
        return f"{self._network}.0.1"

    @property
    def nodes(self) -> str:
        return f"{self._network}.0.0/24"

    @property
    def everything(self) -> str:
        return f"{self._network}.0.0/16"

    @property
    def services(self) -> str:
        return f"{self._network}.255.0/24"

    @property
    def api_service(self) -> str:
        """The Service `kubernetes` always has the first address of the range."""
        return f"{self._network}.255.1"

    def node(self, number: int) -> str:
        return f"{self._network}.0.{number + 10}"

    def pods(self, number: int) -> str:
        return f"{self._network}.{number}.0/24"

    def link(self, number: int) -> str:
        """The host's end of a node's cable; the kernel takes 15 characters."""
        return f"rm{self.slot}n{number}"

    def owns(self, link: str) -> bool:
        """The bridge, and every cable to it, whoever is at the other end."""
        return link == self.bridge or re.fullmatch(rf"rm{self.slot}n\d+", link) is not None

    @property
    def _network(self) -> str:
        return f"10.{_FIRST_NETWORK + self.slot}"
