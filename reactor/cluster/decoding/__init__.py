"""From the API's JSON to our records. The only place that knows how Kubernetes spells things; it does no I/O."""
