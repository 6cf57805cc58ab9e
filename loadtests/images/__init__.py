"""Container images of the lab, made without Docker and without a registry: `ctr images import` reads them."""
