"""The report: one HTML file that needs no network, and its data as CSV and JSON."""
