"""A complete plugin: what a module author writes."""

from better_compute import Catalog, ComputePlugin


class AcmeWidgets(ComputePlugin):
    """Widgets that can be poked."""

    name = "example_project.acme_widgets"
    verbose_name = "ACME widgets"
    id = "acme"
    catalog = Catalog(actions=["compute:acme:poke", "compute:acme:read"])
