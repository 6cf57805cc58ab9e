"""BNIP's placement test: nine pods in order on three nodes with links of 50, 75 and 125 Mbit/s."""
