"""The few controllers that matter: each turns changes into keys, and a key into the writes that are due."""

from loadtests.embedded.controllers.manager import Controllers

__all__ = ["Controllers"]
