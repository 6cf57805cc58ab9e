"""The HTTP layer: paths, bodies and responses. The rules of the API are in the parent package."""
