"""How statements are compared: see `workspaces.logic.normal`, which what is forgotten is looked for by, too."""

from workspaces.logic.normal import fingerprint, normal

__all__ = ["fingerprint", "normal"]
