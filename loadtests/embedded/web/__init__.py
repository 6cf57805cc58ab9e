"""HTTP: paths, bodies and answers of the API. What an answer means is decided in the modules above, not here."""
