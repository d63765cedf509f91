"""What the module serves to others."""

from better_compute import define_port

from .gate import TenantsPort

extensions = [define_port("tenants", version="1", port=TenantsPort)]
