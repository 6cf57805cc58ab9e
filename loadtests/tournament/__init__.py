"""The tournament: policies on many drawn scenarios, in simulated time, with the real controller among them."""
